//===- MatmulMixed.cpp - matrix products with bf16 and f16 ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Blocks of C are handed to threads; the factors of each are packed and multiplied
// piece by piece along the sum.
//
//===----------------------------------------------------------------------===//
#include "MatmulMixed.h"
#include "InstructionSet.h"
#include "MatmulTiling.h"
#include "common/launch/Threads.h"
#include "common/plan/ElementType.h"
#include "meshwright/runtime/Fp8.h"

#include <algorithm>
#include <iterator>
#include <omp.h>

namespace meshwright::cpu {

#define MW_DECLARE_VARIANT(ISA)                                                                    \
  namespace ISA {                                                                                  \
  int64_t elementsOfWord(int32_t type);                                                            \
  void packRows(const Lines &from, float *to);                                                     \
  void packColumns(const Lines &from, float *to);                                                  \
  void multiplyPanels(int32_t type, int64_t rows, int64_t columns, int64_t words, const float *a,  \
                      const float *b, float alpha, float beta, float *c, int64_t ldc);             \
  void roundRow(int32_t type, const float *from, float beta, void *to, int64_t count);             \
  static const PanelKernels panelKernels = {#ISA,        elementsOfWord, packRows,                 \
                                            packColumns, multiplyPanels, roundRow};                \
  }
MW_FOR_EACH_ISA(MW_DECLARE_VARIANT)

#define MW_LIST_VARIANT(ISA) &ISA::panelKernels,
const PanelKernels *const *availablePanelKernels(int *count) {
  static const PanelKernels *const all[] = {MW_FOR_EACH_ISA(MW_LIST_VARIANT)};
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
} // namespace

static void multiplyBlock(const PanelKernels &kernels, const MixedProduct &p,
                          const MatmulTiling &tiling, int64_t item, float *scratch) {
  int64_t blocks = tiling.rowBlocks * tiling.columnBlocks, matrix = item / blocks;
  int64_t i = item % blocks % tiling.rowBlocks * tiling.rows;
  int64_t j = item % blocks / tiling.rowBlocks * tiling.columns;
  int64_t rows = std::min(tiling.rows, p.m - i), columns = std::min(tiling.columns, p.n - j);
  auto ofMatrix = [&](int32_t type, const void *data, int64_t ld, int64_t stride) {
    return Stored{
        type, static_cast<const char *>(data) + matrix * stride * bytesOf(ElementType(type)), ld};
  };
  Stored a = ofMatrix(p.factorType, p.a, p.lda, p.strideA);
  Stored b = ofMatrix(p.rightType, p.b, p.ldb, p.strideB);
  Stored c = ofMatrix(p.resultType, p.c, p.ldc, p.strideC);
  // Sums in f32: in C itself where that is f32.
  bool direct = c.type == MW_F32;
  char *out = const_cast<char *>(c.at(i, j));
  float *sum = direct ? reinterpret_cast<float *>(out) : scratch + tiling.sumOffset;
  int64_t sumLd = direct ? c.ld : columns;
  int64_t perWord = kernels.elementsOfWord(p.factorType), piece = kWords * perWord;
  for (int64_t from = 0; from < p.k || from == 0; from += piece) {
    int64_t depth = std::min(piece, p.k - from);
    int64_t words = (depth + perWord - 1) / perWord;
    float before = from > 0 ? 1.0f : direct ? p.beta : 0.0f;
    float *left = scratch, *right = scratch + tiling.columnOffset;
    kernels.packColumns(
        {b.type, p.transB ? b.at(j, from) : b.at(from, j), b.ld, p.transB, columns, depth}, right);
    for (int64_t row = 0; row < rows; row += kPackedRows) {
      int64_t some = std::min(kPackedRows, rows - row);
      kernels.packRows({a.type, p.transA ? a.at(from, i + row) : a.at(i + row, from), a.ld,
                        !p.transA, some, depth},
                       left);
      kernels.multiply(p.factorType, some, columns, words, left, right, p.alpha, before,
                       sum + row * sumLd, sumLd);
    }
  }
  if (direct)
    return;
  for (int64_t row = 0; row < rows; ++row)
    kernels.round(c.type, sum + row * columns, p.beta, const_cast<char *>(c.at(i + row, j)),
                  columns);
}

void multiplyMixed(const PanelKernels &kernels, int threads, const MixedProduct &p,
                   void *workspace) {
  if (p.m <= 0 || p.n <= 0 || p.batch <= 0)
    return;
  // Below this many multiplications waking a thread costs more than it saves.
  constexpr double kWorkPerThread = 1 << 18;
  double work = double(p.m) * double(p.n) * double(p.k) * double(p.batch) / kWorkPerThread;
  MatmulTiling tiling(p.m, p.n, p.k, p.batch, std::clamp<int64_t>(int64_t(work), 1, threads));
  auto *scratch = static_cast<float *>(workspace);
  if (tiling.team <= 1) {
    for (int64_t item = 0; item < tiling.items; ++item)
      multiplyBlock(kernels, p, tiling, item, scratch);
    return;
  }
#pragma omp parallel num_threads(int(tiling.team))
  {
    float *own = scratch + omp_get_thread_num() * tiling.scratch;
#pragma omp for schedule(dynamic, 1)
    for (int64_t item = 0; item < tiling.items; ++item)
      multiplyBlock(kernels, p, tiling, item, own);
  }
}

} // namespace meshwright::cpu

void mw_matmul_mixed(MwContext *context, int32_t transA, int32_t transB, int64_t m, int64_t n,
                     int64_t k, float alpha, int32_t factorType, const void *a, int64_t lda,
                     const void *b, int64_t ldb, float beta, int32_t resultType, void *c,
                     int64_t ldc, int64_t batch, int64_t strideA, int64_t strideB, int64_t strideC,
                     void *workspace) {
  using namespace meshwright::cpu;
  MixedProduct product{transA != 0, transB != 0, m,       n,       k,      alpha,      beta,
                       factorType,  a,           lda,     b,       ldb,    resultType, c,
                       ldc,         batch,       strideA, strideB, strideC};
  int count;
  multiplyMixed(*availablePanelKernels(&count)[0], mw_context_threads(context), product, workspace);
}

void mw_matmul_fp8(MwContext *context, int32_t transA, int32_t transB, int64_t m, int64_t n,
                   int64_t k, int32_t typeA, const void *a, int64_t lda, const float *scaleA,
                   int32_t typeB, const void *b, int64_t ldb, const float *scaleB, float beta,
                   int32_t resultType, void *c, int64_t ldc, int64_t batch, int64_t strideA,
                   int64_t strideB, int64_t strideC, void *workspace) {
  using namespace meshwright::cpu;
  float alpha = *scaleA * *scaleB;
  MixedProduct product{transA != 0, transB != 0, m,       n,       k,       alpha,      beta,
                       typeA,       a,           lda,     b,       ldb,     resultType, c,
                       ldc,         batch,       strideA, strideB, strideC, typeB};
  int count;
  multiplyMixed(*availablePanelKernels(&count)[0], mw_context_threads(context), product, workspace);
}
