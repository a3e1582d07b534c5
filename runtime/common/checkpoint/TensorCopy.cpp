//===- TensorCopy.cpp - strided copies with conversion --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/checkpoint/TensorCopy.h"

#include "common/monitor/Error.h"

#include <algorithm>
#include <cmath>

using namespace meshwright;

namespace {
struct Float32 {
  using Stored = float;
  static float load(float value) { return value; }
  static float store(float value) { return value; }
};
struct Float64 {
  using Stored = double;
  static float load(double value) { return float(value); }
  static double store(float value) { return value; }
};
struct BFloat16 {
  using Stored = uint16_t;
  static float load(uint16_t value) { return bf16ToFloat(value); }
  static uint16_t store(float value) { return floatToBf16(value); }
};
struct Float16 {
  using Stored = uint16_t;
  static float load(uint16_t value) { return f16ToFloat(value); }
  static uint16_t store(float value) { return floatToF16(value); }
};
struct LowerHalf {
  using Stored = int16_t;
  static float load(int16_t value) { return float(value); }
  static int16_t store(float value) { return lowerHalf(value); }
};
/// Codes of optimizer states, which files have as whole numbers in f32.
struct Code {
  using Stored = int8_t;
  static float load(int8_t value) { return float(value); }
  static int8_t store(float value) {
    if (!(value >= -128 && value <= 127) || value != std::floor(value))
      fail("a code of an optimizer state is ", value, " in the file, not a whole number from -128 to 127: the "
           "checkpoint is damaged; resume from another one");
    return int8_t(value);
  }
};
struct UpperHalf {
  using Stored = uint16_t;
  static uint16_t store(float value) { return upperHalf(value); }
};
} // namespace

/// Element `index` of memory that need not be aligned: files put tensors anywhere.
template <typename Type> static float loadAt(const char *bytes, int64_t index) {
  typename Type::Stored value;
  std::memcpy(&value, bytes + index * int64_t(sizeof(value)), sizeof(value));
  return Type::load(value);
}

/// A matrix, in square tiles: where one side is transposed its cache lines are
/// used whole before they leave the cache.
template <typename From, typename To>
static void copyMatrix(int64_t rows, int64_t columns, const char *from, int64_t fromRow,
                       int64_t fromColumn, char *toBytes, int64_t toRow, int64_t toColumn) {
  auto *to = reinterpret_cast<typename To::Stored *>(toBytes);
  if (fromColumn == 1 && toColumn == 1) {
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column)
        to[row * toRow + column] = To::store(loadAt<From>(from, row * fromRow + column));
    return;
  }
  constexpr int64_t tile = 32;
  for (int64_t rowTile = 0; rowTile < rows; rowTile += tile)
    for (int64_t columnTile = 0; columnTile < columns; columnTile += tile)
      for (int64_t row = rowTile; row < std::min(rows, rowTile + tile); ++row)
        for (int64_t column = columnTile; column < std::min(columns, columnTile + tile); ++column)
          to[row * toRow + column * toColumn] =
              To::store(loadAt<From>(from, row * fromRow + column * fromColumn));
}

/// Peels outer dimensions until a matrix is left.
template <typename From, typename To>
static void copyBox(size_t dim, const std::vector<int64_t> &extent, const char *from,
                    const std::vector<int64_t> &fromStrides, char *to,
                    const std::vector<int64_t> &toStrides) {
  size_t left = extent.size() - dim;
  if (left <= 2) {
    int64_t rows = left == 2 ? extent[dim] : 1, columns = left ? extent.back() : 1;
    copyMatrix<From, To>(rows, columns, from, left == 2 ? fromStrides[dim] : 0,
                         left ? fromStrides.back() : 1, to, left == 2 ? toStrides[dim] : 0,
                         left ? toStrides.back() : 1);
    return;
  }
  for (int64_t i = 0; i < extent[dim]; ++i)
    copyBox<From, To>(
        dim + 1, extent, from + i * fromStrides[dim] * int64_t(sizeof(typename From::Stored)),
        fromStrides, to + i * toStrides[dim] * int64_t(sizeof(typename To::Stored)), toStrides);
}

template <typename From, typename To>
static void copyAs(const std::vector<int64_t> &extent, const TensorView &from,
                   const TensorView &to) {
  copyBox<From, To>(0, extent, static_cast<const char *>(from.data), from.strides,
                    static_cast<char *>(to.data), to.strides);
}

template <typename From>
static void copyFrom(const std::vector<int64_t> &extent, const TensorView &from,
                     const TensorView &to) {
  switch (to.type) {
  case ElementType::F32:
    return copyAs<From, Float32>(extent, from, to);
  case ElementType::F64:
    return copyAs<From, Float64>(extent, from, to);
  case ElementType::BF16:
    return copyAs<From, BFloat16>(extent, from, to);
  case ElementType::F16:
    return copyAs<From, Float16>(extent, from, to);
  case ElementType::I16:
    return copyAs<From, LowerHalf>(extent, from, to);
  case ElementType::I8:
    return copyAs<From, Code>(extent, from, to);
  case ElementType::I32:
  case ElementType::F8E4M3:
  case ElementType::F8E5M2:
    fail("a weight cannot be converted to ", nameOf(to.type));
  }
}

static bool isEmpty(const std::vector<int64_t> &extent) {
  return std::find(extent.begin(), extent.end(), 0) != extent.end();
}

/// Calls `copy` with what reads elements of `type`.
template <typename Copy> static void dispatch(ElementType type, Copy copy) {
  switch (type) {
  case ElementType::F32:
    return copy(Float32());
  case ElementType::F64:
    return copy(Float64());
  case ElementType::BF16:
    return copy(BFloat16());
  case ElementType::F16:
    return copy(Float16());
  case ElementType::I16:
    return copy(LowerHalf());
  case ElementType::I8:
    return copy(Code());
  case ElementType::I32:
  case ElementType::F8E4M3:
  case ElementType::F8E5M2:
    fail("a weight cannot be converted from ", nameOf(type));
  }
}

void meshwright::copyTensor(const std::vector<int64_t> &extent, const TensorView &from,
                            const TensorView &to) {
  if (!isEmpty(extent))
    dispatch(from.type, [&](auto type) { copyFrom<decltype(type)>(extent, from, to); });
}

void meshwright::copyUpperHalves(const std::vector<int64_t> &extent, const TensorView &from,
                                 const TensorView &to) {
  if (!isEmpty(extent))
    dispatch(from.type, [&](auto type) { copyAs<decltype(type), UpperHalf>(extent, from, to); });
}

void meshwright::addLowerHalves(const std::vector<int64_t> &extent, const TensorView &lower,
                                const TensorView &to) {
  if (isEmpty(extent))
    return;
  std::vector<int64_t> index(extent.size(), 0);
  auto *sums = static_cast<float *>(to.data);
  for (bool more = true; more;) {
    int64_t from = 0, at = 0;
    for (size_t d = 0; d < extent.size(); ++d) {
      from += index[d] * lower.strides[d];
      at += index[d] * to.strides[d];
    }
    auto *bytes = static_cast<const char *>(lower.data);
    float half = lower.type == ElementType::I16 ? loadAt<LowerHalf>(bytes, from)
                                                : loadAt<Float32>(bytes, from);
    sums[at] = addLowerHalf(sums[at], int32_t(half));
    more = false;
    for (size_t d = extent.size(); d-- > 0 && !more;) {
      more = ++index[d] < extent[d];
      if (!more)
        index[d] = 0;
    }
  }
}
