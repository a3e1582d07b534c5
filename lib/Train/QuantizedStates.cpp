//===- QuantizedStates.cpp - blocks of 8-bit optimizer states ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "QuantizedStates.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;

/// The defaults of bitsandbytes: `min_8bit_size`, and the length of a block.
static constexpr int64_t leastElements = 4096, longest = 256;
/// Below it an amax costs more than half a byte of each element.
static constexpr int64_t shortest = 8;
/// Along so many devices rows may be sharded without cutting a block, unless that makes blocks shorter than this.
static constexpr int64_t devices = 8, shortestPart = 64;

/// The largest divisor of `size` that is at most `most`.
static int64_t largestDivisor(int64_t size, int64_t most) {
  int64_t divisor = std::min(size, most);
  while (size % divisor)
    --divisor;
  return divisor;
}

/// Elements of the tensor in files that `parameter`, whose one tensor has the shape `one`, is or is part of: all parts have
/// blocks, or none.
static int64_t elementsInFile(VariableOp parameter, ArrayRef<int64_t> one) {
  int64_t elements = ShapedType::getNumElements(one);
  StorageAttr storage = parameter.getStorageAttr();
  if (!storage || !storage.getFull())
    return elements;
  SmallVector<int64_t> file(one);
  if (storage.getTranspose())
    std::swap(file[file.size() - 1], file[file.size() - 2]);
  return elements / file[storage.getDim()] * storage.getFull();
}

int64_t train::quantizedBlocks(VariableOp parameter) {
  ArrayRef<int64_t> shape = parameter.getTensorType().getShape();
  ArrayRef<int64_t> one = shape.drop_front(parameter.getNumbered());
  if (one.empty() || elementsInFile(parameter, one) < leastElements)
    return 0;
  int64_t row = shape.back();
  int64_t block = row % devices == 0 ? largestDivisor(row / devices, longest) : 0;
  if (block < shortestPart)
    block = largestDivisor(row, longest);
  return block < shortest ? 0 : row / block;
}

RankedTensorType train::blockType(VariableOp parameter, int64_t blocks) {
  SmallVector<int64_t> shape(parameter.getTensorType().getShape());
  shape.back() = blocks;
  return RankedTensorType::get(shape, Float32Type::get(parameter.getContext()));
}
