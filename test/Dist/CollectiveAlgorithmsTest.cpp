//===- CollectiveAlgorithmsTest.cpp - messages that sum vectors -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Runs the messages of every algorithm for 1 to 16 places on numbers whose sum
// depends on the order, and counts them.
//
//===----------------------------------------------------------------------===//
#include "Dist/Collectives/CollectiveAlgorithms.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace meshwright;
using namespace meshwright::dist;

namespace {
using Vector = std::vector<float>;

/// What each place has in the end; `size` elements a piece.
std::vector<Vector> run(const AllReduceMessages &m, std::vector<Vector> x, size_t size) {
  if (m.stacked)
    for (size_t p = 0; p < x.size(); ++p) {
      Vector stack(x[p].size() * m.pieces);
      std::copy(x[p].begin(), x[p].end(), stack.begin() + p * size);
      x[p] = stack;
    }
  for (size_t i = 0; i < m.exchanges.size();) {
    // All of a round is sent before anything arrives.
    std::vector<Vector> before = x;
    for (unsigned round = m.exchanges[i].round;
         i < m.exchanges.size() && m.exchanges[i].round == round; ++i) {
      const Exchange &e = m.exchanges[i];
      for (int64_t p = 0; p < m.ranks; ++p) {
        int64_t q = e.from[p];
        if (e.to[p] >= 0) {
          EXPECT_EQ(e.from[e.to[p]], p);
        }
        if (q < 0)
          continue;
        EXPECT_EQ(e.to[q], p);
        for (size_t k = 0; k < e.length * size; ++k) {
          float &to = x[p][e.receiveBegin[p] * size + k], got = before[q][e.sendBegin[q] * size + k];
          to = e.add ? to + got : got;
        }
      }
    }
  }
  if (m.stacked)
    for (Vector &stack : x) {
      Vector sum(size);
      for (size_t k = 0; k < stack.size(); ++k)
        sum[k % size] += stack[k];
      stack = sum;
    }
  return x;
}

TEST(CollectiveAlgorithms, AllPlacesGetTheSameSum) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (CollectiveAlgorithm algorithm : collectiveAlgorithms())
    for (int64_t n = 1; n <= 16; ++n) {
      SCOPED_TRACE(optionText(algorithm) + " over " + std::to_string(n));
      AllReduceMessages m = allReduceMessages(algorithm, n);
      size_t size = 3, elements = m.stacked ? size : size * m.pieces;
      std::vector<Vector> x(n, Vector(elements));
      Vector want(elements);
      for (Vector &v : x)
        for (size_t k = 0; k < elements; ++k)
          want[k] += v[k] = uniform(random);
      std::vector<Vector> got = run(m, x, size);
      for (size_t k = 0; k < elements; ++k)
        EXPECT_NEAR(got[0][k], want[k], 1e-5);
      for (const Vector &v : got)
        EXPECT_EQ(v, got[0]) << "not the same bits everywhere";
    }
}

TEST(CollectiveAlgorithms, RoundsAndVolumes) {
  auto expect = [](CollectiveAlgorithm algorithm, int64_t n, unsigned rounds, double busiest,
                   double total) {
    AllReduceMessages m = allReduceMessages(algorithm, n);
    SCOPED_TRACE(optionText(algorithm) + " over " + std::to_string(n));
    EXPECT_EQ(m.rounds(), rounds);
    EXPECT_DOUBLE_EQ(m.busiest(), busiest);
    EXPECT_DOUBLE_EQ(m.total(), total);
  };
  using A = CollectiveAlgorithm;
  for (int64_t n = 2; n <= 16; ++n) {
    double others = double(n - 1);
    expect(A::ParameterServer, n, 2, others, 2 * others);
    expect(A::Sequential, n, 2 * (n - 1), others, 2 * others);
    expect(A::Ring, n, 2 * (n - 1), 2 * others / n, 2 * others);
    expect(A::Parallel, n, 1, others, n * others);
    unsigned log = std::floor(std::log2(n));
    int64_t m = int64_t(1) << log, extra = n - m;
    // Folding sends each further vector once there and once back.
    expect(A::Doubling, n, log + (extra ? 2 : 0), log + (extra ? 1 : 0), m * log + 2 * extra);
    double exchanged = 2.0 * (m - 1) / m;
    expect(A::HalvingDoubling, n, 2 * log + (extra ? 2 : 0), exchanged + (extra ? 1 : 0),
           m * exchanged + 2 * extra);
  }
}

TEST(CollectiveAlgorithms, CostModel) {
  AllReduceMessages ring = allReduceMessages(CollectiveAlgorithm::Ring, 4);
  EXPECT_DOUBLE_EQ(secondsOf(ring, 8e9, cost::Link{1e-3, 1e9}), 6e-3 + 12);
}

TEST(CollectiveAlgorithms, Names) {
  CollectiveAlgorithm read;
  for (CollectiveAlgorithm algorithm : collectiveAlgorithms()) {
    llvm::cantFail(parseOption(optionText(algorithm), read));
    EXPECT_EQ(read, algorithm);
  }
  EXPECT_TRUE(llvm::errorToBool(parseOption("tree", read)));
}
} // namespace
