//===- Sums.cpp - which terms of a sum over indices devices have -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Certify/Sums.h"

#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::certify;

const Expression *certify::termOf(ArrayRef<SummedIndex> summed, ArrayRef<unsigned> along,
                                  Checker &checker) {
  SmallVector<int64_t> numbers;
  for (const SummedIndex &index : summed) {
    auto isAlong = [&](unsigned axis) { return llvm::is_contained(along, axis); };
    if (llvm::none_of(index.axes, isAlong))
      continue;
    numbers.append({index.index, index.extent, int64_t(index.axes.size())});
    for (unsigned axis : index.axes)
      numbers.append({checker.mesh.axes[axis].size, isAlong(axis)});
  }
  const Expression *of = summed.front().of;
  return checker.make(of->location, "term",
                      DenseI64ArrayAttr::get(checker.module.getContext(), numbers), {of},
                      of->element, of->shape);
}

/// Whether the value's terms are blocks of what it is the sum over, in the order of the devices that had
/// them first.
static bool areBlocks(const Fact &fact, Checker &checker) {
  const Summands &terms = *fact.type.summands;
  return terms.count == checker.mesh.size(terms.group) &&
         terms.term == termOf(fact.summed, terms.group, checker);
}

bool certify::divideSum(Fact &fact, ArrayRef<unsigned> axes, Checker &checker) {
  const Mesh &mesh = checker.mesh;
  std::optional<Summands> &known = fact.type.summands;
  if (fact.summed.empty() || fact.summed.front().of != fact.expression ||
      (known && !areBlocks(fact, checker)))
    return false;
  Axes along;
  for (const SummedIndex &index : fact.summed)
    for (unsigned axis : index.axes)
      if (llvm::is_contained(axes, axis))
        along.push_back(axis);
  auto isDivided = [&](unsigned axis) {
    return llvm::is_contained(fact.type.sum, axis) ||
           (known && llvm::is_contained(known->group, axis));
  };
  bool hasAll = along.size() == axes.size() && llvm::all_of(along, isDivided);
  if (known)
    hasAll &= llvm::all_of(known->group,
                           [&](unsigned axis) { return llvm::is_contained(along, axis); });
  if (!hasAll)
    return false;
  Summands made = Summands::ofDevices(along, mesh);
  made.term = termOf(fact.summed, along, checker);
  for (int64_t position = 0; known && position < made.count; ++position) {
    const Coordinates own = Coordinates::at(position, along, mesh);
    made.of[position].reset();
    for (unsigned term : known->of[own.position(known->group, mesh)].set_bits()) {
      Coordinates of = own;
      of.move(Coordinates::at(term, known->group, mesh));
      made.of[position].set(of.position(along, mesh));
    }
  }
  llvm::erase_if(fact.type.sum, [&](unsigned axis) { return llvm::is_contained(along, axis); });
  known = made;
  return true;
}

/// The terms without `axis`, of which each device has its own along it, or those of all if `hasAll`; none
/// if that is not so, or if devices along it have others of the rest.
static std::optional<Summands> withoutAxis(const Summands &terms, unsigned axis, bool hasAll,
                                           const Mesh &mesh) {
  Axes rest = terms.group;
  llvm::erase(rest, axis);
  Summands made{rest, nullptr, mesh.size(rest)};
  made.of.resize(made.count);
  for (auto [position, own] : llvm::enumerate(terms.of)) {
    const Coordinates device = Coordinates::at(position, terms.group, mesh);
    llvm::BitVector projected(made.count);
    for (unsigned term : own.set_bits()) {
      const Coordinates of = Coordinates::at(term, terms.group, mesh);
      if (!hasAll && of[axis] != device[axis])
        return {};
      projected.set(of.position(rest, mesh));
    }
    unsigned expected = projected.count() * (hasAll ? mesh.axes[axis].size : 1);
    llvm::BitVector &known = made.of[device.position(rest, mesh)];
    if (own.count() != expected || (!known.empty() && known != projected))
      return {};
    known = projected;
  }
  return made;
}

void certify::joinTerms(Fact &fact, Checker &checker) {
  const Mesh &mesh = checker.mesh;
  std::optional<Summands> &terms = fact.type.summands;
  if (!terms)
    return;
  if (terms->isComplete()) {
    terms.reset();
    return;
  }
  // Devices that have other elements have no terms of one sum.
  auto dividesElements = [&](unsigned axis) {
    for (int64_t dim = 0; dim < fact.type.rank(); ++dim)
      if (auto pieces = fact.type.pieces.find(dim);
          llvm::is_contained(fact.type.dims[dim], axis) ||
          (pieces != fact.type.pieces.end() && llvm::is_contained(pieces->second.group, axis)))
        return true;
    return false;
  };
  // Whatever the terms are, each device has its own.
  if (terms->count == mesh.size(terms->group) &&
      terms->of == Summands::ofDevices(terms->group, mesh).of &&
      llvm::none_of(terms->group, dividesElements)) {
    fact.type.sum.append(terms->group);
    llvm::sort(fact.type.sum);
    terms.reset();
    return;
  }
  bool isOfBlocks = !fact.summed.empty() && fact.summed.front().of == fact.expression;
  if (!isOfBlocks || !areBlocks(fact, checker))
    return;
  for (unsigned axis : Axes(terms->group)) {
    if (terms->group.size() == 1)
      return;
    std::optional<Summands> rest = withoutAxis(*terms, axis, /*hasAll=*/true, mesh);
    if (!rest && !dividesElements(axis)) {
      rest = withoutAxis(*terms, axis, /*hasAll=*/false, mesh);
      if (rest)
        fact.type.sum.push_back(axis);
    }
    if (!rest)
      continue;
    llvm::sort(fact.type.sum);
    if (rest->isComplete()) {
      terms.reset();
      return;
    }
    rest->term = termOf(fact.summed, rest->group, checker);
    terms = rest;
  }
}
