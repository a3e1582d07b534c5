//===- DecomposeTest.cpp - kernels and splits against formulas-----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "OpCases.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::interp;

/// Checks that ops with the interface compute what `rewrite` makes of them.
template <typename Interface, typename Rewrite> static void check(Rewrite rewrite) {
  OpCases cases;
  cases.forEach<Interface>([&](func::FuncOp function, Operation *op) {
    TensorList arguments = OpCases::arguments(function);
    TensorList direct = cases.run(function, arguments);

    func::FuncOp rewritten = function.clone();
    rewritten.setName("rewritten");
    function->getBlock()->push_back(rewritten);
    Operation *copy = &rewritten.getBody().front().front();
    OpBuilder b(copy);
    SmallVector<Value> values = rewrite(cast<Interface>(copy), b);
    ASSERT_EQ(values.size(), copy->getNumResults());
    for (auto [result, value] : llvm::zip(copy->getResults(), values))
      EXPECT_EQ(result.getType(), value.getType());
    copy->replaceAllUsesWith(values);
    copy->erase();
    TensorList results = cases.run(rewritten, arguments);
    rewritten.erase();

    for (auto [i, pair] : llvm::enumerate(llvm::zip(results, direct))) {
      Difference apart = difference(std::get<0>(pair), std::get<1>(pair));
      EXPECT_TRUE(apart.sameKind && apart.finite && apart.relative < 1e-13)
          << "result " << i << " differs by " << apart.relative;
    }
  });
}

TEST(Decompose, AgreesWithDirectFormulas) {
  check<train::KernelOpInterface>(
      [](train::KernelOpInterface op, OpBuilder &b) { return train::decomposeInF32(op, b); });
}

TEST(Split, AgreesWithDirectFormulas) {
  check<train::SplittableOpInterface>([](train::SplittableOpInterface op, OpBuilder &b) {
    SmallVector<Value> values = op.split(b);
    // Nothing that it is made of needs the last dimension whole.
    op->getBlock()->walk([&](train::ShardingRuleOpInterface part) {
      if (part != op)
        EXPECT_TRUE(llvm::none_of(part.getShardingRule().factors,
                                  [](const Factor &factor) { return factor.whole; }))
            << part->getName().getStringRef().str();
    });
    return values;
  });
}
