//===- ContractionTest.cpp - einsums as matrix products ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Each derived product is computed as the library would and compared with the sum
// over all indices.
//
//===----------------------------------------------------------------------===//
#include "Exec/Kernels/Contraction.h"

#include "llvm/ADT/STLExtras.h"

#include "gtest/gtest.h"

#include <map>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

static const std::map<std::string, int64_t> sizes = {{"a", 2}, {"b", 3}, {"c", 4},
                                                     {"d", 5}, {"e", 6}, {"x", 1}};

static ShardingRule ruleFrom(const std::string &text) {
  llvm::SmallVector<int64_t> ranks;
  llvm::StringRef left = llvm::StringRef(text).split("->").first;
  llvm::SmallVector<llvm::StringRef> tensors, names;
  left.split(tensors, ',');
  for (llvm::StringRef tensor : tensors) {
    names.clear();
    tensor.trim().split(names, ' ', -1, false);
    ranks.push_back(names.size());
  }
  std::string error;
  ShardingRule rule = *parseShardingRule(text, ranks, error);
  for (Factor &factor : rule.factors)
    factor.size = sizes.at(factor.name);
  return rule;
}

static int64_t indexOf(const ShardingRule &rule, const TensorFactors &tensor,
                       llvm::ArrayRef<int64_t> at) {
  int64_t index = 0;
  for (const auto &dim : tensor.dims)
    for (unsigned f : dim)
      index = index * rule.factors[f].size + at[f];
  return index;
}

/// Both ways of computing C, from operands that hold small distinct integers.
static void expectProduct(const std::string &text) {
  SCOPED_TRACE(text);
  ShardingRule rule = ruleFrom(text);
  std::string error;
  FailureOr<MatrixProduct> p = matrixProductOf(rule, error);
  ASSERT_TRUE(succeeded(p)) << error;
  std::vector<double> tensors[3];
  for (unsigned t = 0; t < 3; ++t) {
    int64_t size = 1;
    for (const auto &dim : (t < 2 ? rule.operands[t] : rule.results[0]).dims)
      for (unsigned f : dim)
        size *= rule.factors[f].size;
    for (int64_t i = 0; i < size; ++i)
      tensors[t].push_back(t == 2 ? 0 : (7 * i + 3 * t) % 23);
  }
  std::vector<double> got(tensors[2].size(), -1);
  const double *a = tensors[p->swapped ? 1 : 0].data(), *b = tensors[p->swapped ? 0 : 1].data();
  for (int64_t i = 0; i < p->batch; ++i)
    for (int64_t m = 0; m < p->m; ++m)
      for (int64_t n = 0; n < p->n; ++n) {
        double sum = 0;
        for (int64_t k = 0; k < p->k; ++k)
          sum += a[i * p->strideA + (p->transA ? k * p->lda + m : m * p->lda + k)] *
                 b[i * p->strideB + (p->transB ? n * p->ldb + k : k * p->ldb + n)];
        got[i * p->strideC + m * p->ldc + n] = sum;
      }
  llvm::SmallVector<int64_t> at(rule.factors.size(), 0);
  while (true) {
    tensors[2][indexOf(rule, rule.results[0], at)] +=
        tensors[0][indexOf(rule, rule.operands[0], at)] *
        tensors[1][indexOf(rule, rule.operands[1], at)];
    int f = int(at.size()) - 1;
    for (; f >= 0 && ++at[f] == rule.factors[f].size; --f)
      at[f] = 0;
    if (f < 0)
      break;
  }
  EXPECT_EQ(got, tensors[2]);
}

TEST(Contraction, LinearAndItsGradients) {
  expectProduct("a b c, d c -> a b d"); // y = x W^T
  expectProduct("a b d, d c -> a b c"); // dx
  expectProduct("a b d, a b c -> d c"); // dW
}

TEST(Contraction, Transpositions) {
  for (const char *a : {"a c", "c a"})
    for (const char *b : {"c d", "d c"})
      for (const char *c : {"a d", "d a"})
        expectProduct(std::string(a) + ", " + b + " -> " + c);
}

TEST(Contraction, Batches) {
  expectProduct("a b c, a c d -> a b d");
  expectProduct("b a c, c a d -> b a d"); // the batch in the middle
  expectProduct("a b c d, a b e d -> a b c e");
  expectProduct("a b d c, a b d e -> a b c e");
}

TEST(Contraction, VectorsAndOnes) {
  expectProduct("c, c d -> d");
  expectProduct("a c, c -> a");
  expectProduct("a, d -> a d");
  expectProduct("c, c -> ");
  expectProduct("a x c, d c -> a x d");
  expectProduct("x c, d c -> x d");
}

TEST(Contraction, SeveralSummedIndices) { expectProduct("a b c, d b c -> a d"); }

TEST(Contraction, RefusesWhatNeedsATransposition) {
  auto refusal = [](const char *text) {
    std::string error;
    EXPECT_TRUE(failed(matrixProductOf(ruleFrom(text), error))) << text;
    return error;
  };
  EXPECT_EQ(refusal("a c b, b c d -> b a d"), "neither index of operand 0 is contiguous");
  EXPECT_EQ(refusal("b c a, d c -> a b d"),
            "indices a and b are one index of the matrix product but do not "
            "follow one another in operand 0");
  EXPECT_EQ(refusal("a b, b c -> a"), "index c is in one tensor only; sum or repeat it apart");
}
