//===- Fact.cpp - which part of which global value a device has --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Certify/Fact.h"

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
  shape.insert(shape.begin(), extent);
  dims.insert(dims.begin(), Axes());
  padding = shifted(padding, 1);
}

void Distribution::eraseFront() {
  assert(!padding.count(0) && "slices of padding are none of the expression's");
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
         !llvm::is_contained(root, axis) &&
         llvm::none_of(dims, [&](const Axes &axes) { return llvm::is_contained(axes, axis); });
}

int64_t Distribution::localExtent(int64_t dim, const Mesh &mesh) const {
  return isAny(dim) ? anyExtent : shape[dim] / mesh.size(dims[dim]);
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
  if (rows)
    os << (rows->isIds ? " of numbers of rows" : " of rows");
  if (llvm::none_of(dims, [](const Axes &axes) { return !axes.empty(); }) && sum.empty() &&
      max.empty() && root.empty())
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
  return result;
}

Offset Offset::plus(const Offset &other) const {
  std::map<unsigned, int64_t> factors;
  for (const Offset *offset : {this, &other})
    for (auto [axis, factor] : offset->terms)
      factors[axis] += factor;
  Offset result;
  for (auto [axis, factor] : factors)
    if (factor)
      result.terms.push_back({axis, factor});
  return result;
}

std::optional<Axes> Offset::axesOfParts(int64_t size, const Mesh &mesh) const {
  auto ordered = terms;
  llvm::sort(ordered, [](auto &a, auto &b) { return a.second > b.second; });
  Axes axes;
  for (auto &term : ordered)
    axes.push_back(term.first);
  return ofParts(axes, size, mesh) == *this ? std::optional(axes) : std::nullopt;
}
