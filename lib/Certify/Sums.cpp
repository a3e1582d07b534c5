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
  if (!hasAll || mesh.size(along) > mostDevices)
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

std::optional<Summands> certify::withoutOwn(const Summands &all, ArrayRef<unsigned> more,
                                          const Mesh &mesh) {
  if (all.count != mesh.size(all.group))
    return {};
  std::set<unsigned> moved(more.begin(), more.end());
  for (auto [position, terms] : llvm::enumerate(all.of)) {
    const Coordinates device = Coordinates::at(position, all.group, mesh),
                      term = Coordinates::at(terms.find_first(), all.group, mesh);
    for (unsigned axis : all.group)
      if (device[axis] != term[axis])
        moved.insert(axis);
  }
  Axes along;
  for (unsigned axis : all.group)
    if (moved.count(axis))
      along.push_back(axis);
  if (along.empty())
    return {};
  Summands made{along, nullptr, mesh.size(along)};
  made.of.resize(made.count);
  auto projected = [&](int64_t position) {
    return Coordinates::at(position, all.group, mesh).position(along, mesh);
  };
  for (auto [position, terms] : llvm::enumerate(all.of)) {
    llvm::BitVector own(made.count);
    own.set(projected(terms.find_first()));
    llvm::BitVector &known = made.of[projected(position)];
    if (!known.empty() && known != own)
      return {};
    known = own;
  }
  return made;
}

/// Whether an operand is partial along an axis that divides a dimension of another one: each device then
/// has its own term of what it has elements of.
static bool dividesTerms(const Fact &partial, unsigned index, Facts operands, Axes &along) {
  for (unsigned axis : partial.type.sum)
    for (auto [other, fact] : llvm::enumerate(operands)) {
      auto divides = [&](ArrayRef<unsigned> axes) { return llvm::is_contained(axes, axis); };
      if (other != index && !divides(along) &&
          (llvm::any_of(fact.type.dims, divides) ||
           llvm::any_of(fact.type.pieces, [&](auto &of) { return divides(of.second.group); })))
        along.push_back(axis);
    }
  return !along.empty();
}

void certify::divideFactors(Operation *op, MutableArrayRef<Fact> facts, Checker &checker) {
  const FactList operands(facts.begin(), facts.end());
  for (auto [index, fact] : llvm::enumerate(facts)) {
    Axes along;
    if (fact.type.summands || !dividesTerms(fact, index, operands, along) ||
        divideSum(fact, along, checker) || checker.mesh.size(along) > mostDevices)
      continue;
    llvm::erase_if(fact.type.sum, [&](unsigned axis) { return llvm::is_contained(along, axis); });
    fact.type.summands = Summands::ofDevices(along, checker.mesh);
    fact.type.summands->term = checker.termsOf(op->getOperand(index), fact.expression);
  }
}

LogicalResult certify::applyToTerms(const IndexRule &rule, Operation *op, MutableArrayRef<Fact> facts,
                                    NewFacts &results, Checker &checker, Attribute attributes) {
  SmallVector<const Expression *> of = expressionsOf(facts);
  std::set<unsigned> readers;
  std::optional<Summands> terms;
  for (auto [index, fact] : llvm::enumerate(facts)) {
    std::optional<Summands> &own = fact.type.summands;
    if (!own)
      continue;
    if (terms && (terms->group != own->group || terms->count != own->count || terms->of != own->of))
      return checker.refuse(op) << "reads " << Checker::nameOf(op, index)
                                << ", of which devices have other terms than of what is beside it";
    readers.insert(index);
    of[index] = own->term;
    terms = own;
    own.reset();
    fact.summed.clear();
  }
  bool isLinear = llvm::any_of(rule.linear, [&](const auto &group) {
    return std::set<unsigned>(group.begin(), group.end()) == readers;
  });
  if (!isLinear || op->getNumResults() != 1)
    return checker.refuse(op) << "reads " << Checker::nameOf(op, *readers.begin())
                              << ", some terms of a sum, as if it were complete";
  if (failed(applyRule(rule, op, facts, results, checker, attributes)))
    return failure();
  Fact &result = results.back();
  if (isZero(result.expression))
    return success();
  for (unsigned axis : terms->group)
    if (result.type.summands || llvm::is_contained(result.type.sum, axis))
      return checker.refuse(op) << "adds up, along " << checker.mesh.str({axis}) << ", products with "
                                << Checker::nameOf(op, *readers.begin())
                                << ", of which devices have other terms of a sum";
  if (result.type.summands)
    return checker.refuse(op) << "makes terms of a sum of some terms of another";
  terms->term = checker.make(op, attributes ? attributes : op->getPropertiesAsAttribute(), of, 0,
                             result.expression->shape);
  result.type.summands = terms;
  checker.use("linear ops and sums commute with sums over devices");
  return success();
}
