//===- MixedPrecisionTest.cpp - element types and what they change ----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Interpreter/Compare.h"
#include "Interpreter/RandomGraph.h"
#include "Train/Passes.h"
#include "meshwright/Register.h"

#include "mlir/Pass/PassManager.h"

#include "gtest/gtest.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::interp;

namespace {
class MixedPrecisionPass : public testing::Test {
protected:
  MixedPrecisionPass() {
    DialectRegistry registry;
    registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// @gradients and @eval of a random model.
  OwningOpRef<ModuleOp> model(uint64_t seed, MixedPrecision precision, GradientType gradDtype) {
    RandomGraphOptions options;
    options.layers = 1 + seed % 3;
    options.microbatches = 1 + seed / 3 % 3;
    options.dropout = seed % 4 == 1;
    OwningOpRef<ModuleOp> module = randomModel(&context, seed, options);
    PassManager manager(&context);
    manager.addPass(train::createTrainMixedPrecision({precision, gradDtype}));
    manager.addPass(train::createTrainAutodiff());
    manager.addPass(train::createTrainAccumulate());
    EXPECT_TRUE(succeeded(manager.run(*module)));
    return module;
  }

  MLIRContext context;
};
} // namespace

/// In f64 nothing is rounded, so types must not matter.
TEST_F(MixedPrecisionPass, ComputesTheSameInF64) {
  for (uint64_t seed = 0; seed < 30 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    OwningOpRef<ModuleOp> full = model(seed, MixedPrecision::f32, GradientType::f32);
    OwningOpRef<ModuleOp> mixed =
        model(seed, MixedPrecision::bf16, seed % 2 ? GradientType::bf16 : GradientType::f32);
    for (StringRef function : {"gradients", "eval"}) {
      auto want = runOnRandom(*full, function, {}), got = runOnRandom(*mixed, function, {});
      ASSERT_TRUE(succeeded(want) && succeeded(got));
      // Values carry their types' names, not their kinds: compare numbers.
      ASSERT_EQ(want->size(), got->size());
      for (auto [x, y] : llvm::zip(*want, *got)) {
        EXPECT_EQ(x.name, y.name);
        Difference apart = difference(y.value, x.value);
        EXPECT_TRUE(apart.sameKind && apart.finite && apart.relative < 1e-9)
            << x.name << " differs by " << apart.relative;
      }
    }
  }
}

/// Rounding to types does: every gradient has few digits, and the type asked for.
TEST_F(MixedPrecisionPass, GradientsHaveTheirTypes) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    for (GradientType gradDtype : {GradientType::f32, GradientType::bf16}) {
      OwningOpRef<ModuleOp> mixed = model(seed, MixedPrecision::bf16, gradDtype);
      auto gradients = mixed->lookupSymbol<func::FuncOp>("gradients");
      for (Type type : gradients.getResultTypes().drop_front())
        EXPECT_EQ(getElementTypeOrSelf(type).isF32(), gradDtype == GradientType::f32);
      for (auto variable : mixed->getOps<train::VariableOp>())
        EXPECT_TRUE(variable.getTensorType().getElementType().isBF16());
      EXPECT_TRUE(getElementTypeOrSelf(gradients.getResultTypes()[0]).isF32());
    }
  }
}
