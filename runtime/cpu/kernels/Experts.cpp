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
#include <vector>

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

/// Calls `visit(expert, first row, number of rows)` for each run of rows of one expert, in the
/// order of rows; the expert is -1 where it is none of its block's.
template <typename Visit>
void forEachRun(const int32_t *experts, int64_t rows, int64_t blocks, int64_t count, Visit visit) {
  int64_t ofBlock = count / blocks, slots = rows / blocks;
  for (int64_t block = 0; block < blocks; ++block)
    for (int64_t from = block * slots, end = from + slots, to = from; from < end; from = to) {
      int32_t id = experts[from];
      while (to < end && experts[to] == id)
        ++to;
      visit(id >= 0 && id < ofBlock ? block * ofBlock + id : -1, from, to - from);
    }
}

/// In place of the row of a choice, until rows have numbers: it gets none.
constexpr int32_t dropped = -2;

/// Marks the choices of experts that `capacity` earlier tokens of the sequence have chosen.
void markDropped(int64_t sequences, int64_t length, int64_t experts, int64_t k, int64_t capacity,
                 const int32_t *chosen, int32_t *rows) {
  std::vector<int64_t> taken;
  for (int64_t sequence = 0; sequence < sequences; ++sequence) {
    taken.assign(static_cast<size_t>(experts), 0);
    for (int64_t token = sequence * length; token < (sequence + 1) * length; ++token)
      for (int64_t choice = token; choice < k * sequences * length; choice += sequences * length)
        if (chosen[choice] < experts && ++taken[static_cast<size_t>(chosen[choice])] > capacity)
          rows[choice] = dropped;
  }
}

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

/// `count` numbers of one type as another.
void convert(int64_t count, int32_t from, const void *input, int32_t to, void *output) {
  for (int64_t i = 0; i < count; ++i) {
    float value;
    uint16_t bits;
    if (from == MW_F32) {
      std::memcpy(&value, at(input, i, from), 4);
    } else {
      std::memcpy(&bits, at(input, i, from), 2);
      value = from == MW_BF16 ? meshwright::bf16ToFloat(bits) : meshwright::f16ToFloat(bits);
    }
    if (to == MW_F32) {
      std::memcpy(at(output, i, to), &value, 4);
    } else {
      bits = to == MW_BF16 ? meshwright::floatToBf16(value) : meshwright::floatToF16(value);
      std::memcpy(at(output, i, to), &bits, 2);
    }
  }
}
} // namespace

void mw_route(MwContext *, int64_t sequences, int64_t length, int64_t experts, int64_t k,
              int64_t blocks, int64_t slots, int64_t capacity, int32_t elementType,
              const void *mask, int32_t *chosen, int32_t *rows, int32_t *choices,
              int32_t *sorted) {
  int64_t tokens = sequences * length;
  for (int64_t token = 0; token < tokens; ++token) {
    int64_t found = 0;
    for (int64_t expert = 0; expert < experts && found < k; ++expert)
      if (isNonzero(elementType, mask, token * experts + expert))
        chosen[found++ * tokens + token] = int32_t(expert);
    for (; found < k; ++found)
      chosen[found * tokens + token] = int32_t(experts);
  }
  int64_t all = k * tokens, total = blocks * slots, ofBlock = experts / blocks;
  std::fill_n(rows, all, -1);
  if (capacity > 0)
    markDropped(sequences, length, experts, k, capacity, chosen, rows);
  auto hasRow = [&](int64_t choice) { return chosen[choice] < experts && rows[choice] != dropped; };
  std::fill_n(choices, total, -1);
  auto put = [&](int64_t choice, int64_t row) {
    rows[choice] = int32_t(row);
    choices[row] = int32_t(choice);
  };
  if (experts <= total) {
    // A counting sort. `sorted` holds where each expert's next row goes until it holds experts.
    std::fill_n(sorted, experts, 0);
    for (int64_t choice = 0; choice < all; ++choice)
      if (hasRow(choice))
        ++sorted[chosen[choice]];
    for (int64_t block = 0; block < blocks; ++block) {
      int32_t next = int32_t(block * slots);
      for (int64_t expert = block * ofBlock; expert < (block + 1) * ofBlock; ++expert)
        next += std::exchange(sorted[expert], next);
    }
    for (int64_t choice = 0; choice < all; ++choice)
      if (hasRow(choice))
        put(choice, sorted[chosen[choice]]++);
  } else {
    for (int64_t block = 0; block < blocks; ++block) {
      int64_t row = block * slots;
      for (int64_t expert = block * ofBlock; expert < (block + 1) * ofBlock; ++expert)
        for (int64_t choice = 0; choice < all; ++choice)
          if (chosen[choice] == expert && hasRow(choice))
            put(choice, row++);
    }
  }
  if (capacity > 0)
    std::replace(rows, rows + all, dropped, -1);
  for (int64_t row = 0; row < total; ++row)
    sorted[row] = choices[row] < 0 ? int32_t(ofBlock) : chosen[choices[row]] % int32_t(ofBlock);
}

/// How many of a block's slots have rows: the first ones.
static int64_t filledSlots(const int32_t *choices, int64_t slots) {
  return std::partition_point(choices, choices + slots, [](int32_t c) { return c >= 0; }) - choices;
}

void mw_rounds(MwContext *, int64_t blocks, int64_t slots, int64_t ofRound, const int32_t *choices,
               int32_t *rounds) {
  int64_t most = 0;
  for (int64_t block = 0; block < blocks; ++block)
    most = std::max(most, filledSlots(choices + block * slots, slots));
  *rounds = int32_t((most + ofRound - 1) / ofRound);
}

void mw_rows_of_round(MwContext *, const int32_t *round, int64_t part, int64_t parts, int64_t count,
                      int64_t blocks, int64_t slots, int64_t ofPart, const int32_t *rows,
                      const int32_t *choices, const int32_t *experts, int32_t *ownRows,
                      int32_t *ownChoices, int32_t *ownExperts) {
  // The slots that each block has in this part.
  struct Slots {
    int64_t begin, size;
  };
  int64_t before = (round ? *round : 0) * parts * ofPart;
  std::vector<Slots> own;
  for (int64_t block = 0; block < blocks; ++block) {
    int64_t end = parts > 1 ? filledSlots(choices + block * slots, slots) : slots;
    int64_t there = std::clamp<int64_t>(end - before, 0, parts * ofPart);
    int64_t share = (there + parts - 1) / parts;
    own.push_back({before + part * share, std::clamp<int64_t>(there - part * share, 0, share)});
  }
  for (int64_t i = 0; i < count; ++i) {
    int64_t block = std::max(rows[i], 0) / slots, at = rows[i] - block * slots - own[size_t(block)].begin;
    ownRows[i] = rows[i] >= 0 && at >= 0 && at < own[size_t(block)].size ? int32_t(block * ofPart + at) : -1;
  }
  for (int64_t block = 0; block < blocks; ++block)
    for (auto [all, target] : {std::pair(choices, ownChoices), std::pair(experts, ownExperts)}) {
      auto [begin, size] = own[size_t(block)];
      std::copy_n(all + block * slots + begin, size, target + block * ofPart);
      std::fill_n(target + block * ofPart + size, ofPart - size, -1);
    }
}

void mw_grouped_matmul(MwContext *context, int32_t transB, int64_t rows, int64_t n, int64_t k,
                       int64_t blocks, int64_t count, const int32_t *experts, int32_t elementType,
                       const void *x, const void *w, void *y, void *workspace) {
  forEachRun(experts, rows, blocks, count, [&](int64_t expert, int64_t from, int64_t size) {
    if (expert >= 0)
      multiply(context, false, transB != 0, size, n, k, elementType, at(x, from * k, elementType),
               k, at(w, expert * n * k, elementType), transB ? k : n, 0, elementType,
               at(y, from * n, elementType), workspace);
    else
      std::memset(at(y, from * n, elementType), 0,
                  size_t(size * n * bytesOf(ElementType(elementType))));
  });
}

void mw_grouped_matmul_grad(MwContext *context, int64_t rows, int64_t m, int64_t n, int64_t blocks,
                            int64_t count, const int32_t *experts, int32_t factorType,
                            const void *a, const void *b, float beta, int32_t resultType, void *c,
                            void *workspace) {
  struct Run {
    int64_t expert, from, size;
  };
  std::vector<Run> runs;
  forEachRun(experts, rows, blocks, count, [&](int64_t expert, int64_t from, int64_t size) {
    if (expert >= 0)
      runs.push_back({expert, from, size});
  });
  std::stable_sort(runs.begin(), runs.end(),
                   [](const Run &a, const Run &b) { return a.expert < b.expert; });
  // The sums of one expert are behind what a product needs.
  void *sum = nullptr;
  if (resultType != MW_F32)
    sum = static_cast<char *>(workspace) + mw_matmul_mixed_workspace(m, n, rows, 1);
  int64_t expert = 0;
  auto clearUntil = [&](int64_t end) {
    for (; expert < end; ++expert)
      if (beta == 0)
        std::memset(at(c, expert * m * n, resultType), 0,
                    size_t(m * n * bytesOf(ElementType(resultType))));
  };
  for (auto run = runs.begin(), end = run; run != runs.end(); run = end) {
    end = std::find_if(run, runs.end(), [&](const Run &r) { return r.expert != run->expert; });
    clearUntil(run->expert);
    expert = run->expert + 1;
    // Several runs add up in f32, so that a narrow result is rounded once.
    void *result = at(c, run->expert * m * n, resultType);
    bool apart = end - run > 1 && resultType != MW_F32;
    if (apart && beta != 0)
      convert(m * n, resultType, result, MW_F32, sum);
    float before = beta;
    for (auto one = run; one != end; ++one, before = 1)
      multiply(context, true, false, m, n, one->size, factorType, at(a, one->from * m, factorType),
               m, at(b, one->from * n, factorType), n, before, apart ? MW_F32 : resultType,
               apart ? sum : result, workspace);
    if (apart)
      convert(m * n, MW_F32, sum, resultType, result);
  }
  clearUntil(count);
}
