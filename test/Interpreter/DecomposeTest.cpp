//===- DecomposeTest.cpp - kernels against direct formulas ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "OpCases.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::interp;

TEST(Decompose, AgreesWithDirectFormulas) {
  OpCases cases;
  cases.forEach<train::KernelOpInterface>([&](func::FuncOp function, Operation *op) {
    TensorList arguments = OpCases::arguments(function);
    TensorList direct = cases.run(function, arguments);

    func::FuncOp decomposed = function.clone();
    decomposed.setName("decomposed");
    function->getBlock()->push_back(decomposed);
    Operation *copy = &decomposed.getBody().front().front();
    OpBuilder b(copy);
    SmallVector<Value> values = train::decomposeInF32(cast<train::KernelOpInterface>(copy), b);
    ASSERT_EQ(values.size(), copy->getNumResults());
    for (auto [result, value] : llvm::zip(copy->getResults(), values))
      EXPECT_EQ(result.getType(), value.getType());
    copy->replaceAllUsesWith(values);
    copy->erase();
    TensorList primitive = cases.run(decomposed, arguments);
    decomposed.erase();

    for (auto [i, pair] : llvm::enumerate(llvm::zip(primitive, direct))) {
      Difference apart = difference(std::get<0>(pair), std::get<1>(pair));
      EXPECT_TRUE(apart.sameKind && apart.finite && apart.relative < 1e-13)
          << "result " << i << " differs by " << apart.relative;
    }
  });
}
