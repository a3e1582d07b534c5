//===- Operands.cpp - memory for calls that are made to try them ----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cuda/Operands.h"

#include <algorithm>

namespace meshwright::cuda {

static void *take(CUdeviceptr begin, int64_t &at, int64_t bytes) {
  CUdeviceptr here = begin + CUdeviceptr(at);
  at += (bytes + 255) / 256 * 256;
  return reinterpret_cast<void *>(here);
}

BoundOperands bindOperands(const MwProduct &p, CUdeviceptr begin) {
  int64_t at = 0;
  auto next = [&](bool is, int64_t elements, int64_t type) {
    return is ? take(begin, at, elements * bytesOf(ElementType(type))) : nullptr;
  };
  auto matrix = [&](bool is, int64_t rows, int64_t columns, int64_t ld, int64_t stride,
                    int64_t type) {
    return next(is, (p.batch - 1) * stride + (rows - 1) * ld + columns, type);
  };
  bool beside = p.epilogue & (MW_PREACTIVATION | MW_GELU_GRAD);
  std::vector<void *> operands = {
      matrix(true, p.transA ? p.k : p.m, p.transA ? p.m : p.k, p.lda, p.strideA, p.factors),
      matrix(true, p.transB ? p.n : p.k, p.transB ? p.k : p.n, p.ldb, p.strideB, p.factors),
      matrix(true, p.m, p.n, p.ldd, p.strideD, p.result),
      matrix(p.epilogue & MW_ADDEND, p.m, p.n, p.ldd, p.strideD, p.result),
      next(p.epilogue & (MW_BIAS | MW_SUM_A | MW_SUM_B), p.epilogue & MW_SUM_A ? p.m : p.n,
           p.result),
      matrix(beside, p.m, p.n, p.ldd, p.strideD, p.result)};
  operands.push_back(take(begin, at, MW_PRODUCT_WORKSPACE));
  return {operands, at};
}

BoundOperands bindOperands(const AttentionEntry &entry, CUdeviceptr begin) {
  const MwAttention &s = entry.call.sizes;
  int64_t queries = 2 * s.batch * s.queries * s.heads * s.headDim;
  int64_t keys = 2 * s.batch * s.keys * s.kvHeads * s.headDim;
  int64_t logarithms = 4 * s.batch * s.heads * s.queries, at = 0;
  std::vector<int64_t> sizes = {queries, keys, keys, queries, logarithms};
  if (entry.call.backward)
    sizes = {queries, queries, keys, keys, queries, logarithms, queries, keys, keys};
  sizes.push_back(entry.workspaceBytes);
  std::vector<void *> operands;
  for (int64_t bytes : sizes)
    operands.push_back(take(begin, at, bytes));
  return {operands, at};
}

void fill(Space space, CUstream stream, ElementType type, int shift) {
  constexpr int64_t most = int64_t(8) << 20;
  std::vector<uint16_t> block(size_t(std::min(space.bytes, most) / 2));
  // Halves of an f32 are filled alike: the upper one decides.
  auto exponent = uint16_t(shift << (type == ElementType::F16 ? 10 : 7));
  uint32_t state = 1;
  for (uint16_t &half : block) {
    state = state * 1664525 + 1013904223;
    half = uint16_t((state >> 16 & 0x8000) | (0x3f00 - exponent) | (state >> 24 & 0x7f));
  }
  auto size = int64_t(block.size() * 2);
  if (!size)
    return;
  MW_CUDA(cuMemcpyHtoDAsync, space.begin, block.data(), size_t(size), stream);
  // The rest within the GPU's memory, which is faster by far: twice as much each time.
  for (int64_t at = size; at < space.bytes; at *= 2)
    MW_CUDA(cuMemcpyDtoDAsync, space.begin + CUdeviceptr(at), space.begin,
            size_t(std::min(at, space.bytes - at)), stream);
  MW_CUDA(cuStreamSynchronize, stream);
}

} // namespace meshwright::cuda
