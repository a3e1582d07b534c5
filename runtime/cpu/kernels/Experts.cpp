//===- Experts.cpp - mixtures of experts ------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/plan/ElementType.h"
#include "meshwright/runtime/ABI.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace {
using meshwright::ElementType, meshwright::bytesOf;

/// Whether a number is not 0: both zeros have no bits but the sign.
bool isNonzero(int32_t type, const void *data, int64_t i) {
  if (type == MW_F32) {
    uint32_t bits;
    std::memcpy(&bits, static_cast<const char *>(data) + 4 * i, 4);
    return bits << 1 != 0;
  }
  uint16_t bits;
  std::memcpy(&bits, static_cast<const char *>(data) + 2 * i, 2);
  return uint16_t(bits << 1) != 0;
}

/// The rows of experts 0 to count - 1, which lie behind those of lower experts.
struct Groups {
  Groups(const int32_t *experts, int64_t rows, int64_t count)
      : experts(experts), end(experts + rows), count(count) {}

  /// Calls `visit(expert, first row, number of rows)` for each expert in order.
  template <typename Visit> void forEach(Visit visit) const {
    const int32_t *from = std::lower_bound(experts, end, 0);
    for (int64_t expert = 0; expert < count; ++expert) {
      const int32_t *to = std::upper_bound(from, end, int32_t(expert));
      visit(expert, from - experts, to - from);
      from = to;
    }
  }
  int64_t first() const { return std::lower_bound(experts, end, 0) - experts; }
  int64_t last() const { return std::lower_bound(experts, end, int32_t(count)) - experts; }

  const int32_t *experts, *end;
  int64_t count;
};

char *at(void *data, int64_t elements, int32_t type) {
  return static_cast<char *>(data) + elements * bytesOf(ElementType(type));
}
const char *at(const void *data, int64_t elements, int32_t type) {
  return static_cast<const char *>(data) + elements * bytesOf(ElementType(type));
}

/// One product by whichever function has these types.
void multiply(MwContext *context, bool transA, bool transB, int64_t m, int64_t n, int64_t k,
              int32_t factorType, const void *a, int64_t lda, const void *b, int64_t ldb,
              float beta, int32_t resultType, void *c, void *workspace) {
  if (factorType == MW_F32 && resultType == MW_F32)
    mw_matmul_f32(context, transA, transB, m, n, k, 1, static_cast<const float *>(a), lda,
                  static_cast<const float *>(b), ldb, beta, static_cast<float *>(c), n, 1, 0, 0, 0);
  else
    mw_matmul_mixed(context, transA, transB, m, n, k, 1, factorType, a, lda, b, ldb, beta,
                    resultType, c, n, 1, 0, 0, 0, workspace);
}
} // namespace

void mw_route(MwContext *, int64_t tokens, int64_t experts, int64_t k, int32_t elementType,
              const void *mask, int32_t *chosen, int32_t *rows, int32_t *choices, int32_t *sorted) {
  for (int64_t token = 0; token < tokens; ++token) {
    int64_t found = 0;
    for (int64_t expert = 0; expert < experts && found < k; ++expert)
      if (isNonzero(elementType, mask, token * experts + expert))
        chosen[found++ * tokens + token] = int32_t(expert);
    for (; found < k; ++found)
      chosen[found * tokens + token] = int32_t(experts);
  }
  int64_t all = k * tokens;
  auto put = [&](int64_t choice, int64_t row) {
    rows[choice] = int32_t(row);
    choices[row] = int32_t(choice);
  };
  if (experts < all) {
    // A counting sort. `sorted` holds where each expert's next row goes until it holds experts.
    std::fill_n(sorted, experts + 1, 0);
    for (int64_t choice = 0; choice < all; ++choice)
      ++sorted[chosen[choice]];
    int32_t next = 0;
    for (int64_t expert = 0; expert <= experts; ++expert)
      next += std::exchange(sorted[expert], next);
    for (int64_t choice = 0; choice < all; ++choice)
      put(choice, sorted[chosen[choice]]++);
  } else {
    int64_t row = 0;
    for (int64_t expert = 0; expert <= experts; ++expert)
      for (int64_t choice = 0; choice < all; ++choice)
        if (chosen[choice] == expert)
          put(choice, row++);
  }
  for (int64_t row = 0; row < all; ++row)
    sorted[row] = chosen[choices[row]];
}

void mw_grouped_matmul(MwContext *context, int32_t transB, int64_t rows, int64_t n, int64_t k,
                       int64_t count, const int32_t *experts, int32_t elementType, const void *x,
                       const void *w, void *y, void *workspace) {
  Groups groups(experts, rows, count);
  auto clear = [&](int64_t from, int64_t to) {
    std::memset(at(y, from * n, elementType), 0,
                size_t((to - from) * n * bytesOf(ElementType(elementType))));
  };
  clear(0, groups.first());
  groups.forEach([&](int64_t expert, int64_t from, int64_t size) {
    if (size > 0)
      multiply(context, false, transB != 0, size, n, k, elementType, at(x, from * k, elementType),
               k, at(w, expert * n * k, elementType), transB ? k : n, 0, elementType,
               at(y, from * n, elementType), workspace);
  });
  clear(groups.last(), rows);
}

void mw_grouped_matmul_grad(MwContext *context, int64_t rows, int64_t m, int64_t n, int64_t count,
                            const int32_t *experts, int32_t factorType, const void *a,
                            const void *b, float beta, int32_t resultType, void *c,
                            void *workspace) {
  Groups(experts, rows, count).forEach([&](int64_t expert, int64_t from, int64_t size) {
    void *result = at(c, expert * m * n, resultType);
    if (size > 0)
      multiply(context, true, false, m, n, size, factorType, at(a, from * m, factorType), m,
               at(b, from * n, factorType), n, beta, resultType, result, workspace);
    else if (beta == 0)
      std::memset(result, 0, size_t(m * n * bytesOf(ElementType(resultType))));
  });
}
