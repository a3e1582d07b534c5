//===- ExpertsTest.cpp - tests of mixtures of experts -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace meshwright::test;

/// In each block the order is that of experts, then of choices, from its first slot on; both maps are
/// inverse.
TEST(Experts, RoutesByExpertThenByChoice) {
  std::mt19937 generator(1);
  for (int i = 0; i < 200; ++i) {
    int64_t blocks = 1 + int64_t(generator() % 4), ofBlock = 1 + int64_t(generator() % 30);
    int64_t tokens = 1 + int64_t(generator() % 40), experts = blocks * ofBlock;
    int64_t k = 1 + int64_t(generator() % uint32_t(std::min<int64_t>(experts, 9)));
    int64_t slots = tokens * std::min(k, ofBlock) + int64_t(generator() % 3);
    int32_t type = std::vector<int32_t>{MW_F32, MW_BF16, MW_F16}[generator() % 3];
    SCOPED_TRACE(::testing::Message() << tokens << " tokens " << experts << " experts in " << blocks
                                      << " blocks k " << k);
    std::vector<float> mask(size_t(tokens * experts), generator() % 2 ? 0.0f : -0.0f);
    std::vector<std::vector<int32_t>> wanted;
    for (int64_t token = 0; token < tokens; ++token) {
      std::vector<int32_t> all(static_cast<size_t>(experts));
      std::iota(all.begin(), all.end(), 0);
      std::shuffle(all.begin(), all.end(), generator);
      // Some tokens choose fewer.
      all.resize(generator() % 5 ? size_t(k) : generator() % size_t(k + 1));
      std::sort(all.begin(), all.end());
      for (int32_t expert : all)
        mask[size_t(token * experts + expert)] = 1;
      all.resize(size_t(k), int32_t(experts));
      wanted.push_back(all);
    }
    size_t count = size_t(k * tokens), total = size_t(blocks * slots);
    std::vector<int32_t> chosen(count, -7), rows(count, -7), choices(total, -7), sorted(total, -7);
    MwContext context{2};
    mw_route(&context, 1, tokens, experts, k, blocks, slots, /*capacity=*/0, type, encode(type, mask).data(),
             chosen.data(), rows.data(), choices.data(), sorted.data());
    size_t filled = 0;
    for (int64_t token = 0; token < tokens; ++token)
      for (int64_t j = 0; j < k; ++j) {
        size_t choice = size_t(j * tokens + token);
        EXPECT_EQ(chosen[choice], wanted[size_t(token)][size_t(j)]);
        EXPECT_EQ(rows[choice] == -1, chosen[choice] == experts);
        filled += chosen[choice] != experts;
      }
    for (size_t row = 0; row < total; ++row) {
      if (choices[row] == -1) {
        EXPECT_EQ(sorted[row], ofBlock);
        continue;
      }
      ASSERT_TRUE(choices[row] >= 0 && size_t(choices[row]) < count);
      EXPECT_EQ(rows[size_t(choices[row])], int32_t(row));
      EXPECT_EQ(int64_t(row) / slots * ofBlock + sorted[row], chosen[size_t(choices[row])]);
      if (row % size_t(slots) > 0) {
        EXPECT_LT(std::pair(sorted[row - 1], choices[row - 1]),
                  std::pair(sorted[row], choices[row]));
      }
      --filled;
    }
    EXPECT_EQ(filled, 0u);
  }
}

/// Experts take the first tokens of each sequence; what they take is routed as if nobody else had chosen
/// them.
TEST(Experts, DropsBeyondCapacity) {
  std::mt19937 generator(5);
  for (int i = 0; i < 200; ++i) {
    int64_t blocks = 1 + int64_t(generator() % 3), ofBlock = 1 + int64_t(generator() % 8);
    int64_t sequences = 1 + int64_t(generator() % 3), length = 1 + int64_t(generator() % 20);
    int64_t experts = blocks * ofBlock, tokens = sequences * length;
    int64_t k = 1 + int64_t(generator() % uint32_t(std::min<int64_t>(experts, 4)));
    int64_t capacity = 1 + int64_t(generator() % 6);
    int64_t slots = sequences * std::min(length * std::min(k, ofBlock), ofBlock * capacity);
    SCOPED_TRACE(::testing::Message() << sequences << " x " << length << " tokens " << experts
                                      << " experts k " << k << " capacity " << capacity);
    std::vector<float> mask(size_t(tokens * experts)), kept(mask);
    for (int64_t sequence = 0; sequence < sequences; ++sequence) {
      std::vector<int64_t> taken(static_cast<size_t>(experts));
      for (int64_t token = sequence * length; token < (sequence + 1) * length; ++token) {
        std::vector<size_t> all(static_cast<size_t>(experts));
        std::iota(all.begin(), all.end(), 0);
        std::shuffle(all.begin(), all.end(), generator);
        all.resize(size_t(k));
        for (size_t expert : all) {
          mask[size_t(token * experts) + expert] = 1;
          kept[size_t(token * experts) + expert] = ++taken[expert] <= capacity;
        }
      }
    }
    auto route = [&](const std::vector<float> &from, int64_t limit) {
      std::vector<int32_t> chosen(size_t(k * tokens)), rows(chosen),
          choices(size_t(blocks * slots)), sorted(choices);
      MwContext context{1};
      mw_route(&context, sequences, length, experts, k, blocks, slots, limit, MW_F32, from.data(),
               chosen.data(), rows.data(), choices.data(), sorted.data());
      // By token and expert, as the number of a choice depends on who else is chosen.
      std::vector<int32_t> rowOf(size_t(tokens * experts), -1);
      for (int64_t choice = 0; choice < k * tokens; ++choice)
        if (chosen[size_t(choice)] < experts)
          rowOf[size_t(choice % tokens * experts + chosen[size_t(choice)])] = rows[size_t(choice)];
      std::vector<int32_t> tokenOf(choices);
      for (int32_t &choice : tokenOf)
        choice = choice < 0 ? -1 : int32_t(choice % tokens);
      return std::tuple(rowOf, tokenOf, sorted);
    };
    auto [rows, whose, sorted] = route(mask, capacity);
    auto [rows0, whose0, sorted0] = route(kept, 0);
    // The order within an expert is that of choices: the same rows, perhaps in another order.
    EXPECT_EQ(sorted, sorted0);
    for (size_t at = 0; at < rows.size(); ++at) {
      EXPECT_EQ(rows[at] < 0, rows0[at] < 0);
      if (rows[at] >= 0) {
        EXPECT_EQ(whose[size_t(rows[at])], int32_t(at / size_t(experts)));
      }
    }
  }
}

/// All rounds together have each row once, at its place among the rows of its block.
TEST(Experts, RoundsHaveAllRows) {
  std::mt19937 generator(4);
  for (int i = 0; i < 200; ++i) {
    int64_t blocks = 1 + int64_t(generator() % 4), slots = 1 + int64_t(generator() % 30);
    int64_t ofPart = 1 + int64_t(generator() % uint32_t(slots)), parts = 1 + i % 3, ofBlock = 3;
    int64_t ofRound = parts * ofPart, most = 0;
    SCOPED_TRACE(::testing::Message() << blocks << " blocks of " << slots << ", " << ofPart << " in each of " << parts);
    std::vector<int32_t> choices, experts, rows(size_t(blocks * slots), -1);
    std::vector<int64_t> filled;
    int32_t choice = 0;
    for (int64_t block = 0; block < blocks; ++block) {
      filled.push_back(int64_t(generator() % uint32_t(slots + 1)));
      most = std::max(most, filled.back());
      for (int64_t slot = 0; slot < slots; ++slot) {
        if (slot < filled.back())
          rows[size_t(choice)] = int32_t(block * slots + slot);
        choices.push_back(slot < filled.back() ? choice++ : -1);
        experts.push_back(slot < filled.back() ? int32_t(slot * ofBlock / filled.back()) : int32_t(ofBlock));
      }
    }
    MwContext context{1};
    int32_t rounds = -7;
    mw_rounds(&context, blocks, slots, ofRound, choices.data(), &rounds);
    EXPECT_EQ(rounds, (most + ofRound - 1) / ofRound);
    int64_t seen = 0;
    // The round after the last one has none.
    for (int32_t round = 0; round <= rounds; ++round)
      for (int64_t part = 0; part < parts; ++part) {
        std::vector<int32_t> ownRows(rows.size(), -7), ownChoices(size_t(blocks * ofPart), -7),
            ownExperts(ownChoices);
        mw_rows_of_round(&context, round == 0 ? nullptr : &round, part, parts, int64_t(rows.size()),
                         blocks, slots, ofPart, rows.data(), choices.data(), experts.data(),
                         ownRows.data(), ownChoices.data(), ownExperts.data());
        for (int64_t block = 0; block < blocks; ++block) {
          int64_t ofThisRound = std::clamp<int64_t>(filled[size_t(block)] - round * ofRound, 0, ofRound);
          int64_t share = (ofThisRound + parts - 1) / parts;
          for (int64_t own = 0; own < ofPart; ++own) {
            int64_t row = part * share + own, at = block * slots + round * ofRound + row;
            bool isThere = own < share && row < ofThisRound;
            size_t slot = size_t(block * ofPart + own);
            EXPECT_EQ(ownChoices[slot], isThere ? choices[size_t(at)] : -1);
            if (isThere) {
              EXPECT_EQ(ownExperts[slot], experts[size_t(at)]);
              EXPECT_EQ(ownRows[size_t(ownChoices[slot])], int32_t(slot));
            } else {
              EXPECT_TRUE(ownExperts[slot] < 0 || ownExperts[slot] >= ofBlock);
            }
          }
        }
        seen += std::count_if(ownRows.begin(), ownRows.end(), [](int32_t row) { return row >= 0; });
      }
    EXPECT_EQ(seen, choice);
  }
}

/// Products in all types against f64; workspaces are not written past their ends.
TEST(Experts, GroupedProducts) {
  std::mt19937 generator(2);
  for (int i = 0; i < 150; ++i) {
    auto size = [&](int64_t limit) { return 1 + int64_t(generator() % uint32_t(limit)); };
    int64_t limit = i % 5 == 0 ? 300 : 40, n = size(limit), k = size(limit), blocks = size(3);
    int64_t ofBlock = size(4), count = blocks * ofBlock, slots = size(limit), rows = blocks * slots;
    bool transB = generator() % 2;
    int32_t type = std::vector<int32_t>{MW_F32, MW_BF16, MW_F16}[generator() % 3];
    SCOPED_TRACE(::testing::Message() << "type " << type << " transB " << transB << " rows " << rows
                                      << " n " << n << " k " << k << " experts " << count << " blocks "
                                      << blocks);
    std::vector<int32_t> experts = someExperts(generator, rows, ofBlock);
    std::vector<char> x = encode(type, randomValues(generator, rows * k));
    std::vector<char> w = encode(type, randomValues(generator, count * n * k));
    std::vector<float> fx = decode(type, x), fw = decode(type, w);
    std::vector<double> wanted(static_cast<size_t>(rows * n));
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < n; ++column)
        for (int64_t p = 0; p < k; ++p)
          if (int64_t e = expertOf(experts, row, blocks, ofBlock); e >= 0)
            wanted[size_t(row * n + column)] +=
                double(fx[size_t(row * k + p)]) *
                fw[size_t(e * n * k + (transB ? column * k + p : p * n + column))];
    MwContext context{1 + int(generator() % 3)};
    std::vector<char> y = encode(type, std::vector<float>(size_t(rows * n), NAN));
    std::vector<char> scratch(size_t(mw_matmul_mixed_workspace(rows, n, k, 1)) + 64, 0x5A);
    mw_grouped_matmul(&context, transB, rows, n, k, blocks, count, experts.data(), type, x.data(), w.data(),
                      y.data(), scratch.data());
    EXPECT_LT(relativeError(decode(type, y), wanted, 1e-3),
              type == MW_F32 ? 1e-6 : type == MW_F16 ? 0x1p-11 : 0x1p-8);
    for (size_t j = scratch.size() - 64; j < scratch.size(); ++j)
      EXPECT_EQ(scratch[j], 0x5A) << "written past the workspace";
  }
}

TEST(Experts, GradientsOfGroupedProducts) {
  std::mt19937 generator(3);
  for (int i = 0; i < 150; ++i) {
    auto size = [&](int64_t limit) { return 1 + int64_t(generator() % uint32_t(limit)); };
    int64_t limit = i % 5 == 0 ? 300 : 40, m = size(limit), n = size(limit), blocks = size(3);
    int64_t ofBlock = size(4), count = blocks * ofBlock, slots = size(limit), rows = blocks * slots;
    const std::vector<int32_t> types = {MW_F32, MW_BF16, MW_F16};
    int32_t factor = types[generator() % 3], result = generator() % 2 ? factor : int32_t(MW_F32);
    float beta = generator() % 2 ? 1.0f : 0.0f;
    SCOPED_TRACE(::testing::Message() << "types " << factor << " " << result << " beta " << beta
                                      << " rows " << rows << " m " << m << " n " << n
                                      << " experts " << count << " blocks " << blocks);
    std::vector<int32_t> experts = someExperts(generator, rows, ofBlock);
    std::vector<char> a = encode(factor, randomValues(generator, rows * m));
    std::vector<char> b = encode(factor, randomValues(generator, rows * n));
    std::vector<char> c = encode(result, beta == 0
                                             ? std::vector<float>(size_t(count * m * n), NAN)
                                             : randomValues(generator, count * m * n));
    std::vector<float> fa = decode(factor, a), fb = decode(factor, b), before = decode(result, c);
    std::vector<double> wanted(static_cast<size_t>(count * m * n));
    if (beta != 0)
      wanted.assign(before.begin(), before.end());
    for (int64_t row = 0; row < rows; ++row)
      if (int64_t e = expertOf(experts, row, blocks, ofBlock); e >= 0)
        for (int64_t p = 0; p < m; ++p)
          for (int64_t q = 0; q < n; ++q)
            wanted[size_t((e * m + p) * n + q)] +=
                double(fa[size_t(row * m + p)]) * fb[size_t(row * n + q)];
    MwContext context{1 + int(generator() % 3)};
    std::vector<char> scratch(size_t(mw_grouped_matmul_grad_workspace(rows, m, n, factor, result)) + 64, 0x5A);
    mw_grouped_matmul_grad(&context, rows, m, n, blocks, count, experts.data(), factor, a.data(), b.data(),
                           beta, result, c.data(), scratch.data());
    EXPECT_LT(relativeError(decode(result, c), wanted, 1e-3),
              result == MW_F32 ? 2e-6 : result == MW_F16 ? 0x1p-11 : 0x1p-8);
    for (size_t j = scratch.size() - 64; j < scratch.size(); ++j)
      EXPECT_EQ(scratch[j], 0x5A) << "written past the workspace";
  }
}

/// 1 added 300 times in a narrow type would stay at 256.
TEST(Experts, NarrowGradientsAreRoundedOnce) {
  const int64_t rows = 600, m = 2, n = 3;
  for (int32_t result : {int32_t(MW_BF16), int32_t(MW_F16)})
    for (float beta : {0.0f, 1.0f}) {
      std::vector<int32_t> experts(size_t(rows), 0);
      for (size_t row = 1; row < experts.size(); row += 2)
        experts[row] = 1;
      std::vector<char> a = encode(result, std::vector<float>(size_t(rows * m), 1));
      std::vector<char> b = encode(result, std::vector<float>(size_t(rows * n), 1));
      std::vector<char> c = encode(result, std::vector<float>(size_t(2 * m * n), 1));
      MwContext context{1};
      std::vector<char> scratch(size_t(mw_grouped_matmul_grad_workspace(rows, m, n, result, result)));
      mw_grouped_matmul_grad(&context, rows, m, n, 1, 2, experts.data(), result, a.data(), b.data(), beta, result,
                             c.data(), scratch.data());
      std::vector<float> wanted = decode(result, encode(result, std::vector<float>(size_t(2 * m * n), 300 + beta)));
      EXPECT_EQ(decode(result, c), wanted);
    }
}
