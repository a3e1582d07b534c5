//===- MatmulMixed.cpp - matrix products with bf16 and f16 ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Blocks of the factors are converted to f32 and multiplied by the library in f32:
// Debian's OpenBLAS is built without its own product of bf16 matrices.
//
//===----------------------------------------------------------------------===//
#include "Blas.h"
#include "Convert.h"
#include "InstructionSet.h"
#include "MatmulTiling.h"
#include "common/launch/Threads.h"
#include "common/plan/ElementType.h"

#include <algorithm>
#include <iterator>
#include <omp.h>

namespace meshwright::cpu {

#define MW_DECLARE_VARIANT(ISA)                                                                    \
  namespace ISA {                                                                                  \
  void extendRow(int32_t type, const void *from, float *to, int64_t count);                        \
  void roundRow(int32_t type, const float *from, float beta, void *to, int64_t count);             \
  static const ConvertKernels convertKernels = {#ISA, extendRow, roundRow};                        \
  }
MW_FOR_EACH_ISA(MW_DECLARE_VARIANT)

#define MW_LIST_VARIANT(ISA) &ISA::convertKernels,
const ConvertKernels *const *availableConvertKernels(int *count) {
  static const ConvertKernels *const all[] = {MW_FOR_EACH_ISA(MW_LIST_VARIANT)};
  int first = bestInstructionSet();
  *count = int(std::size(all)) - first;
  return all + first;
}

namespace {
/// A matrix as stored, of any of the types.
struct Stored {
  int32_t type;
  const char *data;
  int64_t ld;

  const char *at(int64_t row, int64_t column) const {
    return data + (row * ld + column) * bytesOf(ElementType(type));
  }
};

/// A factor's part in f32: where it is, or converted to `scratch`.
struct Part {
  Part(const ConvertKernels &kernels, const Stored &from, int64_t row, int64_t column, int64_t rows,
       int64_t columns, float *scratch)
      : data(scratch), ld(columns) {
    if (from.type == MW_F32) {
      data = reinterpret_cast<const float *>(from.at(row, column));
      ld = from.ld;
      return;
    }
    for (int64_t i = 0; i < rows; ++i)
      kernels.extend(from.type, from.at(row + i, column), scratch + i * columns, columns);
  }
  const float *data;
  int64_t ld;
};

struct MixedProduct {
  bool transA, transB;
  int64_t m, n, k;
  float alpha, beta;
  Stored a, b, c;
  int64_t strideA, strideB, strideC;

  void block(const ConvertKernels &kernels, const MatmulTiling &tiling, int64_t item,
             float *scratch) const;
};
} // namespace

void MixedProduct::block(const ConvertKernels &kernels, const MatmulTiling &tiling, int64_t item,
                         float *scratch) const {
  int64_t blocks = tiling.rowBlocks * tiling.columnBlocks, matrix = item / blocks;
  int64_t i = item % blocks / tiling.columnBlocks * tiling.rows;
  int64_t j = item % blocks % tiling.columnBlocks * tiling.columns;
  int64_t rows = std::min(tiling.rows, m - i), columns = std::min(tiling.columns, n - j);
  auto ofMatrix = [&](Stored stored, int64_t stride) {
    stored.data += matrix * stride * bytesOf(ElementType(stored.type));
    return stored;
  };
  Stored left = ofMatrix(a, strideA), right = ofMatrix(b, strideB), result = ofMatrix(c, strideC);
  // Sums in f32: in C itself where that is f32.
  bool direct = result.type == MW_F32;
  char *out = const_cast<char *>(result.at(i, j));
  float *sum = direct ? reinterpret_cast<float *>(out) : scratch + tiling.cOffset;
  int64_t sumLd = direct ? result.ld : columns;
  for (int64_t p = 0; p < k; p += tiling.depth) {
    int64_t depth = std::min(tiling.depth, k - p);
    Part x(kernels, left, transA ? p : i, transA ? i : p, transA ? depth : rows,
           transA ? rows : depth, scratch + tiling.aOffset);
    Part y(kernels, right, transB ? j : p, transB ? p : j, transB ? columns : depth,
           transB ? depth : columns, scratch + tiling.bOffset);
    float before = p > 0 ? 1.0f : direct ? beta : 0.0f;
    multiply(transA, transB, rows, columns, depth, alpha, x.data, x.ld, y.data, y.ld, before, sum,
             sumLd);
  }
  if (direct)
    return;
  for (int64_t row = 0; row < rows; ++row)
    kernels.round(result.type, sum + row * columns, beta, const_cast<char *>(result.at(i + row, j)),
                  columns);
}

} // namespace meshwright::cpu

void mw_matmul_mixed(MwContext *context, int32_t transA, int32_t transB, int64_t m, int64_t n,
                     int64_t k, float alpha, int32_t factorType, const void *a, int64_t lda,
                     const void *b, int64_t ldb, float beta, int32_t resultType, void *c,
                     int64_t ldc, int64_t batch, int64_t strideA, int64_t strideB, int64_t strideC,
                     void *workspace) {
  using namespace meshwright::cpu;
  int count;
  const ConvertKernels &kernels = *availableConvertKernels(&count)[0];
  MatmulTiling tiling(m, n, k, batch);
  MixedProduct product{transA != 0,
                       transB != 0,
                       m,
                       n,
                       k,
                       alpha,
                       beta,
                       {factorType, static_cast<const char *>(a), lda},
                       {factorType, static_cast<const char *>(b), ldb},
                       {resultType, static_cast<const char *>(c), ldc},
                       strideA,
                       strideB,
                       strideC};
  auto *scratch = static_cast<float *>(workspace);
  // Below this many multiplications waking a thread costs more than it saves.
  constexpr double kWorkPerThread = 1 << 18;
  double work = double(m) * double(n) * double(k) * double(batch);
  int64_t team = std::min<int64_t>(std::max<int64_t>(int64_t(work / kWorkPerThread), 1),
                                   std::min<int64_t>(mw_context_threads(context), tiling.slots));
  if (team <= 1) {
    for (int64_t item = 0; item < tiling.items; ++item)
      product.block(kernels, tiling, item, scratch);
    return;
  }
#pragma omp parallel num_threads(int(team))
  {
    float *own = scratch + omp_get_thread_num() * tiling.scratch;
#pragma omp for schedule(dynamic, 1)
    for (int64_t item = 0; item < tiling.items; ++item)
      product.block(kernels, tiling, item, own);
  }
}
