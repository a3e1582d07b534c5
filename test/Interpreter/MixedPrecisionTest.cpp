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
  OwningOpRef<ModuleOp> model(uint64_t seed, MixedPrecision precision, GradientType gradDtype,
                              uint64_t markEvery = 0) {
    RandomGraphOptions options;
    options.layers = 1 + seed % 3;
    options.microbatches = 1 + seed / 3 % 3;
    options.dropout = seed % 4 == 1;
    OwningOpRef<ModuleOp> module = randomModel(&context, seed, options);
    if (markEvery) // One op in so many, or parameter, stays f32.
      module->walk([&, at = uint64_t(0)](Operation *op) mutable {
        if (isa<train::TrainDialect>(op->getDialect()) && (++at + seed) % markEvery == 0)
          op->setAttr(train::fullPrecisionAttr, UnitAttr::get(&context));
      });
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
        model(seed, MixedPrecision::bf16, seed % 2 ? GradientType::bf16 : GradientType::f32,
              seed % 2 ? 1 + seed % 5 : 0);
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

/// What is marked is not narrowed, and the marks are gone.
TEST_F(MixedPrecisionPass, KeepsWhatIsMarked) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    SCOPED_TRACE(seed);
    OwningOpRef<ModuleOp> mixed = model(seed, MixedPrecision::bf16, GradientType::f32, 1);
    mixed->walk([&](Operation *op) {
      EXPECT_FALSE(op->hasAttr(train::fullPrecisionAttr));
      for (Type type : op->getResultTypes())
        EXPECT_FALSE(getElementTypeOrSelf(type).isBF16()) << op->getName().getStringRef().str();
    });
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
