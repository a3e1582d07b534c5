//===- Matmul.cpp - matrix products ---------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Chooses the instruction set and divides C among threads. The arithmetic is in
// MatmulBlock.cpp.
//
//===----------------------------------------------------------------------===//
#include "InstructionSet.h"
#include "MatmulPlan.h"
#include "common/Threads.h"
#include "meshwright/runtime/ABI.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <new>

namespace meshwright::cpu {

#define MW_DECLARE_VARIANT(ISA)                                                                    \
  namespace ISA {                                                                                  \
  void multiplyBlock(const Product &product, const Block &block, float *packedA, float *packedB);  \
  static const MatmulKernel matmulKernel = {#ISA, multiplyBlock};                                  \
  }
MW_FOR_EACH_ISA(MW_DECLARE_VARIANT)

#define MW_LIST_VARIANT(ISA) &ISA::matmulKernel,
const MatmulKernel *const *availableMatmulKernels(int *count) {
  static const MatmulKernel *const all[] = {MW_FOR_EACH_ISA(MW_LIST_VARIANT)};
  int first = bestInstructionSet();
  *count = int(std::size(all)) - first;
  return all + first;
}

namespace {
/// A thread's packing space, kept for its next product.
struct PackingSpace {
  struct Free {
    void operator()(float *p) const { std::free(p); }
  };
  std::unique_ptr<float, Free> floats;

  float *get() {
    if (!floats) {
      size_t bytes = (kPackedA + kPackedB) * sizeof(float);
      floats.reset(static_cast<float *>(std::aligned_alloc(MW_ALIGNMENT, bytes)));
      if (!floats)
        throw std::bad_alloc();
    }
    return floats.get();
  }
};

/// C cut into rows x columns blocks of nearly equal size.
struct Grid {
  int64_t rows = 1, columns = 1;

  Block block(const Product &p, int64_t index) const {
    int64_t row = index / columns, column = index % columns;
    auto edge = [](int64_t size, int64_t parts, int64_t part, int64_t multiple) {
      int64_t units = (size + multiple - 1) / multiple;
      return std::min(size, units * part / parts * multiple);
    };
    return {edge(p.m, rows, row, kRowUnit), edge(p.m, rows, row + 1, kRowUnit),
            edge(p.n, columns, column, kColumnUnit), edge(p.n, columns, column + 1, kColumnUnit)};
  }

  /// Blocks begin at multiples of these, so that few panels are narrow.
  static constexpr int64_t kRowUnit = 4, kColumnUnit = 32;
};
} // namespace

static thread_local PackingSpace packingSpace;

/// The grid whose largest block takes the least time.
static Grid chooseGrid(const Product &p, int64_t threads) {
  Grid best;
  double bestCost = 0;
  for (int64_t rows = 1; rows <= threads; ++rows) {
    Grid grid{rows, threads / rows};
    auto largest = [](int64_t size, int64_t parts, int64_t unit) {
      int64_t units = (size + unit - 1) / unit;
      return double((units + parts - 1) / parts * unit);
    };
    double m = largest(p.m, grid.rows, Grid::kRowUnit);
    double n = largest(p.n, grid.columns, Grid::kColumnUnit);
    // Packing an element costs about as much as multiplying it 32 times.
    double cost = m * n + 32 * (m + n);
    if (rows == 1 || cost < bestCost) {
      best = grid;
      bestCost = cost;
    }
  }
  return best;
}

static void scale(float *c, int64_t ldc, int64_t m, int64_t n, float beta) {
  for (int64_t row = 0; row < m; ++row)
    for (int64_t column = 0; column < n; ++column)
      c[row * ldc + column] = beta == 0.0f ? 0.0f : beta * c[row * ldc + column];
}

void multiplyMatrices(const MatmulKernel &kernel, int threads, const Product &first, int64_t batch,
                      int64_t strideA, int64_t strideB, int64_t strideC) {
  // Below this many multiplications waking a thread costs more than it saves.
  constexpr double kWorkPerThread = 1 << 18;
  double work = double(first.m) * double(first.n) * double(first.k) * double(batch);
  int64_t team = std::clamp<int64_t>(int64_t(work / kWorkPerThread), 1, threads);
  // Whole matrices while they go round evenly; else each is cut as well.
  Grid grid;
  if (batch % team != 0 && batch < 8 * team)
    grid = chooseGrid(first, team);
  int64_t blocks = grid.rows * grid.columns, items = batch * blocks;
  auto multiply = [&](int64_t item) {
    int64_t matrix = item / blocks;
    Product p = first;
    p.a += matrix * strideA;
    p.b += matrix * strideB;
    p.c += matrix * strideC;
    float *packed = packingSpace.get();
    kernel.multiply(p, grid.block(p, item % blocks), packed, packed + kPackedA);
  };
  if (team <= 1) {
    for (int64_t item = 0; item < items; ++item)
      multiply(item);
    return;
  }
#pragma omp parallel for num_threads(int(team)) schedule(static)
  for (int64_t item = 0; item < items; ++item)
    multiply(item);
}

} // namespace meshwright::cpu

void mw_matmul_f32(MwContext *context, int32_t transA, int32_t transB, int64_t m, int64_t n,
                   int64_t k, float alpha, const float *a, int64_t lda, const float *b, int64_t ldb,
                   float beta, float *c, int64_t ldc, int64_t batch, int64_t strideA,
                   int64_t strideB, int64_t strideC) {
  using namespace meshwright::cpu;
  if (m <= 0 || n <= 0 || batch <= 0)
    return;
  if (k <= 0) {
    for (int64_t matrix = 0; matrix < batch; ++matrix)
      scale(c + matrix * strideC, ldc, m, n, beta);
    return;
  }
  static const MatmulKernel &kernel = []() -> const MatmulKernel & {
    int count;
    return *availableMatmulKernels(&count)[0];
  }();
  Product product{transA != 0, transB != 0, m, n, k, alpha, beta, a, lda, b, ldb, c, ldc};
  multiplyMatrices(kernel, mw_context_threads(context), product, batch, strideA, strideB, strideC);
}
