//===- Fact.cpp - which part of which global value a device has --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Certify/Fact.h"

#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using llvm::ArrayRef;
using namespace meshwright::certify;

RoutedRows RoutedRows::shifted(int count) const {
  RoutedRows result = *this;
  if (blockDim)
    result.blockDim = *blockDim + count;
  if (slotDim)
    result.slotDim = *slotDim + count;
  return result;
}

void Padding::weaken(const Padding &other) {
  auto isInfinite = [](const Padding &x) { return x.fill && std::isinf(*x.fill); };
  auto isPositiveIn = [](const Padding &x) { return x.isPositive || (x.fill && *x.fill >= 0); };
  if (*this == other || isInfinite(*this) || isInfinite(other))
    return;
  bool isNeverNegative = isPositiveIn(*this) && isPositiveIn(other);
  if (fill == other.fill && fill)
    return;
  fill.reset();
  isPositive = isNeverNegative;
}

int64_t Distribution::logical(int64_t dim) const {
  auto found = padding.find(dim);
  return found == padding.end() ? shape[dim] : found->second.logical;
}

bool Distribution::isFilled(int64_t dim, double value) const {
  auto found = padding.find(dim);
  return found != padding.end() && found->second.fill == value;
}

static std::map<int64_t, Padding> shifted(const std::map<int64_t, Padding> &padding, int64_t by) {
  std::map<int64_t, Padding> result;
  for (auto &[dim, value] : padding)
    result[dim + by] = value;
  return result;
}

void Distribution::insertFront(int64_t extent) {
  assert((!hasParts() || (chunks && chunks->axis)) && "stacks are of equal parts");
  if (chunks)
    ++chunks->first;
  shape.insert(shape.begin(), extent);
  dims.insert(dims.begin(), Axes());
  padding = shifted(padding, 1);
}

void Distribution::eraseFront() {
  assert(!padding.count(0) && (!hasParts() || (chunks && !chunks->has(0))) &&
         "slices are of elements of the expression");
  if (chunks)
    --chunks->first;
  shape.erase(shape.begin());
  dims.erase(dims.begin());
  padding = shifted(padding, -1);
}

Shape Distribution::expressionShape() const {
  Shape result = shape;
  for (auto &[dim, value] : padding)
    result[dim] = value.logical;
  if (rows && rows->blockDim)
    result[*rows->blockDim] = result[*rows->slotDim] = anyExtent;
  return result;
}

Distribution Distribution::replicated(ArrayRef<int64_t> shape) {
  Distribution result;
  result.shape.assign(shape.begin(), shape.end());
  result.dims.resize(shape.size());
  return result;
}

bool Distribution::isReplicated(unsigned axis) const {
  return !llvm::is_contained(sum, axis) && !llvm::is_contained(max, axis) &&
         !llvm::is_contained(root, axis) && !(chunks && chunks->axis == axis) &&
         !(messages && llvm::is_contained(messages->group, axis)) &&
         !(terms && llvm::is_contained(terms->group, axis)) &&
         !(summands && llvm::is_contained(summands->group, axis)) &&
         llvm::none_of(pieces, [&](auto &of) { return llvm::is_contained(of.second.group, axis); }) &&
         llvm::none_of(dims, [&](const Axes &axes) { return llvm::is_contained(axes, axis); });
}

int64_t Distribution::localExtent(int64_t dim, const Mesh &mesh) const {
  if (auto found = pieces.find(dim); found != pieces.end())
    return found->second.size();
  return isAny(dim) ? anyExtent : shape[dim] / mesh.size(dims[dim]);
}

std::optional<Pieces> Distribution::piecesOf(int64_t dim, const Mesh &mesh) const {
  if (auto found = pieces.find(dim); found != pieces.end())
    return found->second;
  if (dims[dim].empty() || isAny(dim))
    return {};
  return Pieces::ofShards(dims[dim], shape[dim], mesh);
}

void Distribution::setPieces(int64_t dim, const Pieces &given, const Mesh &mesh) {
  pieces.erase(dim);
  dims[dim].clear();
  bool divides = shape[dim] % mesh.size(given.group) == 0;
  if (divides && given == Pieces::ofShards(given.group, shape[dim], mesh))
    dims[dim] = given.group;
  else
    pieces[dim] = given;
}

bool Distribution::isDiagonal() const {
  llvm::SmallSet<unsigned, 8> seen;
  auto isAgain = [&](ArrayRef<unsigned> axes) {
    return llvm::any_of(axes, [&](unsigned axis) { return !seen.insert(axis).second; });
  };
  return llvm::any_of(dims, isAgain) ||
         llvm::any_of(pieces, [&](auto &entry) { return isAgain(entry.second.group); });
}

bool Distribution::fits(ArrayRef<int64_t> local, const Mesh &mesh) const {
  if (rank() != int64_t(local.size()) + (chunks && !chunks->axis ? -1 : 0))
    return false;
  int64_t before = 1, now = 1;
  if (chunks) {
    // All chunks, or one of them.
    if (!chunks->axis) {
      if (local[0] != chunks->count)
        return false;
      local = local.drop_front();
    }
    for (int64_t i = 0; i < chunks->dims; ++i) {
      int64_t dim = chunks->first + i;
      if (isAny(dim) || shape[dim] % mesh.size(dims[dim]) || (i + 1 < chunks->dims && local[dim] != 1))
        return false;
      before *= localExtent(dim, mesh);
      now *= local[dim];
    }
    if (before != now * chunks->count)
      return false;
  }
  for (int64_t dim = 0; dim < rank(); ++dim)
    if (bool isOfChunk = chunks && chunks->first <= dim && dim < chunks->first + chunks->dims;
        !isOfChunk && !isAny(dim) && (shape[dim] % mesh.size(dims[dim]) || localExtent(dim, mesh) != local[dim]))
      return false;
  return true;
}

std::string Distribution::str(const Mesh &mesh) const {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (shape.empty())
    os << "scalar";
  for (int64_t dim = 0; dim < rank(); ++dim) {
    os << (dim ? "x" : "");
    isAny(dim) ? os << "?" : os << shape[dim];
  }
  if (llvm::any_of(dims, [](const Axes &axes) { return !axes.empty(); })) {
    os << " sharded [";
    llvm::interleaveComma(dims, os, [&](const Axes &axes) { os << mesh.str(axes); });
    os << "]";
  }
  if (!sum.empty())
    os << " partial by sum over " << mesh.str(sum);
  if (!max.empty())
    os << " partial by maximum over " << mesh.str(max);
  if (!root.empty())
    os << " on the first device along " << mesh.str(root);
  for (auto &[dim, value] : padding) {
    os << " padded from " << value.logical << " in dimension " << dim << " with ";
    if (value.fill)
      os << llvm::format("%g", *value.fill);
    else
      os << (value.isPositive ? "any numbers from 0 on" : "any numbers");
  }
  for (auto &[dim, value] : pieces)
    os << " in pieces of dimension " << dim << " along " << mesh.str(value.group);
  if (terms)
    os << (terms->kind == Terms::sum ? ", terms of it of some queries and keys"
                                     : ", the softmax over some keys alone");
  if (summands)
    os << ", some of " << summands->count << " terms of a sum along " << mesh.str(summands->group);
  if (chunks)
    os << " in " << chunks->count << " chunks of " << chunks->dims << " dimensions from " << chunks->first << " on";
  if (messages)
    os << ", a sum over " << mesh.str(messages->group) << " that lacks messages";
  if (rows)
    os << (rows->isIds ? " of numbers of rows" : " of rows");
  if (llvm::none_of(dims, [](const Axes &axes) { return !axes.empty(); }) && sum.empty() &&
      max.empty() && root.empty() && !hasParts())
    os << " replicated";
  return text;
}

Offset Offset::ofParts(ArrayRef<unsigned> axes, int64_t size, const Mesh &mesh) {
  std::map<unsigned, int64_t> factors;
  for (unsigned axis : llvm::reverse(axes)) {
    factors[axis] = size;
    size *= mesh.axes[axis].size;
  }
  Offset offset;
  for (auto [axis, factor] : factors)
    if (factor)
      offset.terms.push_back({axis, factor});
  return offset;
}

Offset Offset::negated() const {
  Offset result = *this;
  for (auto &term : result.terms)
    term.second = -term.second;
  for (int64_t &number : result.table)
    number = -number;
  return result;
}

std::optional<Offset> Offset::plus(const Offset &other) const {
  if (!table.empty() && !other.table.empty() && group != other.group)
    return {};
  std::map<unsigned, int64_t> factors;
  for (const Offset *offset : {this, &other})
    for (auto [axis, factor] : offset->terms)
      factors[axis] += factor;
  Offset result;
  for (auto [axis, factor] : factors)
    if (factor)
      result.terms.push_back({axis, factor});
  result.group = table.empty() ? other.group : group;
  result.table = table.empty() ? other.table : table;
  if (!table.empty() && !other.table.empty())
    for (auto [number, more] : llvm::zip_equal(result.table, other.table))
      number += more;
  if (llvm::all_of(result.table, [](int64_t number) { return number == 0; })) {
    result.group.clear();
    result.table.clear();
  }
  return result;
}

std::optional<llvm::SmallVector<int64_t>> Offset::along(const Axes &along, const Mesh &mesh) const {
  if (!table.empty() && group != along)
    return {};
  llvm::SmallVector<int64_t> numbers(mesh.size(along));
  for (auto [position, number] : llvm::enumerate(numbers)) {
    int64_t rest = position;
    std::map<unsigned, int64_t> coordinates;
    for (unsigned axis : llvm::reverse(along)) {
      coordinates[axis] = rest % mesh.axes[axis].size;
      rest /= mesh.axes[axis].size;
    }
    for (auto [axis, factor] : terms) {
      auto found = coordinates.find(axis);
      if (found == coordinates.end())
        return {};
      number += factor * found->second;
    }
    if (!table.empty())
      number += table[position];
  }
  return numbers;
}

std::optional<Axes> Offset::axesOfParts(int64_t size, const Mesh &mesh) const {
  auto ordered = terms;
  llvm::sort(ordered, [](auto &a, auto &b) { return a.second > b.second; });
  Axes axes;
  for (auto &term : ordered)
    axes.push_back(term.first);
  return ofParts(axes, size, mesh) == *this ? std::optional(axes) : std::nullopt;
}
