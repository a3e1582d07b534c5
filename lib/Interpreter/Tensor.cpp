//===- Tensor.cpp - the interpreter's values --------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Tensor.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace meshwright::interp;

int64_t meshwright::interp::product(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

Tensor::Tensor(Type type)
    : Tensor(getElementTypeOrSelf(type),
             isa<ShapedType>(type) ? cast<ShapedType>(type).getShape() : ArrayRef<int64_t>()) {}

Tensor::Tensor(Type elementType, ArrayRef<int64_t> shape)
    : element(elementType), sizes(shape), count(product(shape)) {
  if (isFloat())
    floatData = std::make_shared<std::vector<double>>(count);
  else
    integerData = std::make_shared<std::vector<int64_t>>(count);
}

Tensor Tensor::undefined(Type type) {
  Tensor value(type);
  value.nobodys = true;
  if (value.isFloat())
    std::fill_n(value.writeFloats(), value.size(), std::nan(""));
  else
    std::fill_n(value.writeIntegers(), value.size(), std::numeric_limits<int32_t>::min());
  return value;
}

ArrayRef<double> Tensor::floats() const {
  assert(isFloat() && "not a tensor of floats");
  return *floatData;
}

ArrayRef<int64_t> Tensor::integers() const {
  assert(!isFloat() && "not a tensor of integers");
  return *integerData;
}

double *Tensor::writeFloats() {
  if (floatData.use_count() != 1)
    floatData = std::make_shared<std::vector<double>>(*floatData);
  return floatData->data();
}

int64_t *Tensor::writeIntegers() {
  if (integerData.use_count() != 1)
    integerData = std::make_shared<std::vector<int64_t>>(*integerData);
  return integerData->data();
}

Tensor Tensor::reshaped(ArrayRef<int64_t> shape) const {
  assert(product(shape) == count && "a reshape keeps the number of elements");
  Tensor result = *this;
  result.sizes.assign(shape.begin(), shape.end());
  return result;
}

Tensor Tensor::slice(int64_t index) const {
  Tensor result(element, shape().drop_front());
  int64_t n = result.count;
  if (isFloat())
    llvm::copy(floats().slice(index * n, n), result.writeFloats());
  else
    llvm::copy(integers().slice(index * n, n), result.writeIntegers());
  return result;
}

void Tensor::setSlice(int64_t index, const Tensor &value) {
  if (isFloat())
    llvm::copy(value.floats(), writeFloats() + index * value.count);
  else
    llvm::copy(value.integers(), writeIntegers() + index * value.count);
}

/// Calls `row(begin in whole, begin in box, elements)` for each run of elements
/// that a box at `offsets` in a tensor of shape `whole` shares with it.
template <typename Row>
static void forEachRow(ArrayRef<int64_t> whole, ArrayRef<int64_t> offsets, ArrayRef<int64_t> box,
                       Row row) {
  int64_t rank = int64_t(whole.size());
  if (rank == 0)
    return row(0, 0, 1);
  SmallVector<int64_t> index(rank, 0);
  int64_t last = std::min(box[rank - 1], whole[rank - 1] - offsets[rank - 1]);
  if (last <= 0 || product(box) == 0)
    return;
  while (true) {
    int64_t in = 0, out = 0;
    bool inside = true;
    for (int64_t d = 0; d < rank; ++d) {
      inside &= index[d] + offsets[d] < whole[d];
      in = in * whole[d] + index[d] + offsets[d];
      out = out * box[d] + index[d];
    }
    if (inside)
      row(in, out, last);
    int64_t d = rank - 2;
    while (d >= 0 && ++index[d] == box[d])
      index[d--] = 0;
    if (d < 0)
      return;
  }
}

Tensor Tensor::box(ArrayRef<int64_t> offsets, ArrayRef<int64_t> boxSizes) const {
  Tensor result(element, boxSizes);
  if (isFloat()) {
    double *out = result.writeFloats();
    const double *in = floats().data();
    forEachRow(sizes, offsets, boxSizes,
               [&](int64_t from, int64_t to, int64_t n) { std::copy_n(in + from, n, out + to); });
  } else {
    int64_t *out = result.writeIntegers();
    const int64_t *in = integers().data();
    forEachRow(sizes, offsets, boxSizes,
               [&](int64_t from, int64_t to, int64_t n) { std::copy_n(in + from, n, out + to); });
  }
  return result;
}

void Tensor::setBox(ArrayRef<int64_t> offsets, const Tensor &value) {
  if (isFloat()) {
    double *out = writeFloats();
    const double *in = value.floats().data();
    forEachRow(sizes, offsets, value.shape(),
               [&](int64_t to, int64_t from, int64_t n) { std::copy_n(in + from, n, out + to); });
  } else {
    int64_t *out = writeIntegers();
    const int64_t *in = value.integers().data();
    forEachRow(sizes, offsets, value.shape(),
               [&](int64_t to, int64_t from, int64_t n) { std::copy_n(in + from, n, out + to); });
  }
}

double meshwright::interp::roundTo(FloatType type, double value) {
  if (type.isF64() || value == 0 || !std::isfinite(value))
    return value;
  if (type.isF32())
    return double(float(value));
  const llvm::fltSemantics &semantics = type.getFloatSemantics();
  int precision = int(llvm::APFloat::semanticsPrecision(semantics));
  int least = llvm::APFloat::semanticsMinExponent(semantics);
  int most = llvm::APFloat::semanticsMaxExponent(semantics);
  uint64_t bits = llvm::bit_cast<uint64_t>(value);
  if (int exponent = int(bits >> 52 & 0x7ff) - 1023; exponent >= least && exponent < most) {
    // In the middle of the range: cut the digits, carry as integers do.
    int cut = 53 - precision;
    uint64_t odd = bits >> cut & 1;
    bits += (uint64_t(1) << (cut - 1)) - 1 + odd;
    return llvm::bit_cast<double>(bits >> cut << cut);
  }
  // Every number of the type near `value` is a multiple of 2^unit, so rounding
  // is exact division, rounding to an integer and exact multiplication.
  int unit = std::max(std::ilogb(value), least) - (precision - 1);
  double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -unit)), unit);
  if (std::fabs(rounded) <= llvm::APFloat::getLargest(semantics).convertToDouble())
    return rounded;
  bool hasInfinity = llvm::APFloat::semanticsHasInf(semantics);
  return std::copysign(hasInfinity ? std::numeric_limits<double>::infinity()
                                   : std::numeric_limits<double>::quiet_NaN(),
                       value);
}

int64_t meshwright::interp::wrapTo(Type type, int64_t value) {
  unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  if (width == 1)
    return value & 1;
  return llvm::SignExtend64(uint64_t(value), width);
}

void Tensor::round() {
  auto type = dyn_cast<FloatType>(element);
  if (!type || type.isF64())
    return;
  double *data = writeFloats();
  if (type.isF32()) {
    for (int64_t i = 0; i < count; ++i)
      data[i] = double(float(data[i]));
    return;
  }
  for (int64_t i = 0; i < count; ++i)
    data[i] = roundTo(type, data[i]);
}

double meshwright::interp::norm(const Tensor &x) {
  double sum = 0;
  for (double value : x.floats())
    sum += value * value;
  return std::sqrt(sum);
}

Difference meshwright::interp::difference(const Tensor &a, const Tensor &b) {
  Difference result;
  if (a.shape() != b.shape() || a.isFloat() != b.isFloat()) {
    result.sameKind = false;
    return result;
  }
  long double apart = 0, whole = 0; // Squares of large numbers are no doubles.
  for (int64_t i = 0; i < a.size(); ++i) {
    double x = a.isFloat() ? a.floats()[i] : double(a.integers()[i]);
    double y = b.isFloat() ? b.floats()[i] : double(b.integers()[i]);
    if (!std::isfinite(x) || !std::isfinite(y)) {
      if (!(x == y || (std::isnan(x) && std::isnan(y))))
        result.finite = false;
      continue;
    }
    result.largest = std::max(result.largest, std::fabs(x - y));
    apart += (x - y) * static_cast<long double>(x - y);
    whole += y * static_cast<long double>(y);
  }
  result.norm = double(std::sqrt(apart));
  if (apart > 0)
    result.relative =
        whole > 0 ? double(std::sqrt(apart / whole)) : std::numeric_limits<double>::infinity();
  return result;
}
