//===- TensorCopy.cpp - strided copies with conversion --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/checkpoint/TensorCopy.h"

#include "common/monitor/Error.h"

#include <algorithm>

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

template <typename From>
static void copyFrom(const std::vector<int64_t> &extent, const TensorView &from,
                     const TensorView &to) {
  const char *source = static_cast<const char *>(from.data);
  char *target = static_cast<char *>(to.data);
  switch (to.type) {
  case ElementType::F32:
    return copyBox<From, Float32>(0, extent, source, from.strides, target, to.strides);
  case ElementType::F64:
    return copyBox<From, Float64>(0, extent, source, from.strides, target, to.strides);
  case ElementType::BF16:
    return copyBox<From, BFloat16>(0, extent, source, from.strides, target, to.strides);
  case ElementType::F16:
    return copyBox<From, Float16>(0, extent, source, from.strides, target, to.strides);
  case ElementType::I32:
    fail("a weight cannot be converted to i32");
  }
}

void meshwright::copyTensor(const std::vector<int64_t> &extent, const TensorView &from,
                            const TensorView &to) {
  if (std::find(extent.begin(), extent.end(), 0) != extent.end())
    return;
  switch (from.type) {
  case ElementType::F32:
    return copyFrom<Float32>(extent, from, to);
  case ElementType::F64:
    return copyFrom<Float64>(extent, from, to);
  case ElementType::BF16:
    return copyFrom<BFloat16>(extent, from, to);
  case ElementType::F16:
    return copyFrom<Float16>(extent, from, to);
  case ElementType::I32:
    fail("a weight cannot be converted from i32");
  }
}
