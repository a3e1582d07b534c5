//===- RandomGraphTest.cpp - random programs, and what judges them ----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Interpreter/RandomGraph.h"

#include "Interpreter/Compare.h"
#include "Train/Passes.h"
#include "meshwright/Register.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"

#include "gtest/gtest.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::interp;

namespace {
class RandomGraph : public testing::Test {
protected:
  RandomGraph() {
    DialectRegistry registry;
    registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  MLIRContext context;
};
} // namespace

static std::string text(ModuleOp module) {
  std::string result;
  llvm::raw_string_ostream stream(result);
  module.print(stream);
  return result;
}

TEST_F(RandomGraph, SeedsMakeValidAndDifferentGraphs) {
  llvm::StringMap<int> seen;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    RandomGraphOptions options;
    options.dropout = seed % 2;
    options.granularity = seed % 3 ? 1 : 2;
    OwningOpRef<ModuleOp> module = randomGraph(&context, seed, options);
    ASSERT_TRUE(succeeded(verify(*module))) << text(*module);
    EXPECT_EQ(text(*module), text(*randomGraph(&context, seed, options)));
    ++seen[text(*module)];
    auto values = runOnRandom(*module, "main", {});
    ASSERT_TRUE(succeeded(values));
    for (const NamedTensor &value : *values)
      for (double element : value.value.floats())
        ASSERT_TRUE(std::isfinite(element)) << seed << " " << value.name;
  }
  EXPECT_EQ(seen.size(), 30u);
}

/// The whole gradient of random models against finite differences of the loss
/// along a random direction.
TEST_F(RandomGraph, GradientsOfModelsAreDerivatives) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    RandomGraphOptions options;
    options.steps = 5;
    OwningOpRef<ModuleOp> module = randomModel(&context, seed, options);
    ASSERT_TRUE(succeeded(verify(*module))) << text(*module);
    PassManager manager(&context);
    manager.addPass(train::createTrainAutodiff());
    ASSERT_TRUE(succeeded(manager.run(*module)));

    FailureOr<Session> session = Session::create(*module, 1, Precision::F64);
    FunctionOpInterface gradients = session->lookup("loss.gradients");
    auto vocabulary = (*module)->getAttrOfType<IntegerAttr>("train.vocabulary").getInt();
    TensorList inputs;
    for (unsigned i = 0; i < gradients.getNumArguments(); ++i)
      inputs.push_back(randomTensor(session->globalArgument(gradients, i),
                                    Session::argumentName(gradients, i), seed, vocabulary));
    auto at = [&](double step) {
      for (train::VariableOp variable : session->variables()) {
        Tensor value = randomTensor(variable.getTensorType(), variable.getSymName(), 1, 2);
        Tensor move = randomTensor(variable.getTensorType(), variable.getSymName(), 2, 2);
        double *data = value.writeFloats();
        for (int64_t i = 0; i < value.size(); ++i)
          data[i] = 0.3 * data[i] + step * move.floats()[i];
        session->setVariable(variable, value);
      }
      TensorList results;
      EXPECT_TRUE(succeeded(session->run(gradients, inputs, results)));
      return results;
    };
    TensorList results = at(0);
    ASSERT_EQ(results.size(), session->variables().size() + 1);
    double slope = 0, h = 1e-6;
    for (auto [variable, gradient] :
         llvm::zip(session->variables(), ArrayRef<Tensor>(results).drop_front())) {
      Tensor move = randomTensor(variable.getTensorType(), variable.getSymName(), 2, 2);
      for (auto [a, b] : llvm::zip(gradient.floats(), move.floats()))
        slope += a * b;
    }
    double expected = (at(h)[0].asFloat() - at(-h)[0].asFloat()) / (2 * h);
    EXPECT_NEAR(slope, expected, 1e-6 * std::max(1.0, std::fabs(expected)));
  }
}

/// The loss and all gradients of a random model whose loops run `rounds` times.
static TensorList gradientsOf(ModuleOp module, int64_t rounds, uint64_t seed) {
  PassManager manager(module.getContext());
  manager.addPass(train::createTrainAutodiff());
  TensorList inputs, results;
  EXPECT_TRUE(succeeded(verify(module)) && succeeded(manager.run(module))) << text(module);
  FailureOr<Session> session = Session::create(module, 1, Precision::F64);
  FunctionOpInterface gradients = session->lookup("loss.gradients");
  auto vocabulary = module->getAttrOfType<IntegerAttr>("train.vocabulary").getInt();
  for (unsigned i = 0; i < gradients.getNumArguments(); ++i) {
    std::string name = Session::argumentName(gradients, i);
    inputs.push_back(randomTensor(session->globalArgument(gradients, i), name, seed, vocabulary));
    if (name == "rounds")
      inputs.back().writeIntegers()[0] = int32_t(rounds);
  }
  for (train::VariableOp variable : session->variables()) {
    Tensor value = randomTensor(variable.getTensorType(), variable.getSymName(), 1, 2);
    double *data = value.writeFloats();
    for (int64_t i = 0; i < value.size(); ++i)
      data[i] *= 0.3;
    session->setVariable(variable, value);
  }
  EXPECT_TRUE(succeeded(session->run(gradients, inputs, results)));
  return results;
}

/// Gives loops whose count is a value the count `rounds`.
static void countRounds(ModuleOp module, int64_t rounds) {
  SmallVector<train::RepeatOp> loops;
  module.walk([&](train::RepeatOp loop) {
    if (loop.getTimes())
      loops.push_back(loop);
  });
  EXPECT_EQ(loops.size(), 1u);
  for (train::RepeatOp loop : loops) {
    OpBuilder b(loop);
    if (rounds > 0) {
      auto counted = train::RepeatOp::create(b, loop.getLoc(), loop.getResultTypes(), loop.getCallee(),
                                             uint64_t(rounds), false, loop.getIndexed(),
                                             loop.getCarry(), loop.getEach(), loop.getShared());
      loop->replaceAllUsesWith(counted);
    } else {
      loop->replaceAllUsesWith(loop.getCarry());
    }
    loop.erase();
  }
}

/// A loop whose count is a value has the gradients of one whose count is known, which keeps what its
/// iterations computed and runs its backward from the last.
TEST_F(RandomGraph, RoundsHaveTheGradientsOfCountedLoops) {
  unsigned numbered = 0, scaled = 0;
  for (uint64_t seed = 0; seed < 16; ++seed)
    for (int64_t rounds = 0; rounds <= 3; ++rounds) {
      SCOPED_TRACE(std::to_string(seed) + " " + std::to_string(rounds));
      RandomGraphOptions options;
      options.steps = 3;
      options.rounds = 3;
      OwningOpRef<ModuleOp> module = randomModel(&context, seed, options);
      OwningOpRef<ModuleOp> counted = module->clone();
      numbered += text(*module).find("indexed") != std::string::npos;
      scaled += text(*module).find("by 7.500000e-01") != std::string::npos;
      countRounds(*counted, rounds);
      TensorList have = gradientsOf(*module, rounds, seed), want = gradientsOf(*counted, rounds, seed);
      ASSERT_EQ(have.size(), want.size());
      for (auto [a, b] : llvm::zip(have, want)) {
        ASSERT_EQ(a.size(), b.size());
        double largest = 0;
        for (double element : b.floats())
          largest = std::max(largest, std::fabs(element));
        for (auto [x, y] : llvm::zip(a.floats(), b.floats()))
          ASSERT_NEAR(x, y, 1e-12 * std::max(1.0, largest));
      }
    }
  EXPECT_GE(numbered, 8u);
  EXPECT_GE(scaled, 8u);
}

TEST_F(RandomGraph, ComparisonNamesTheFirstDifference) {
  MLIRContext *c = &context;
  OwningOpRef<ModuleOp> a = randomGraph(c, 3), b = randomGraph(c, 3);
  auto x = runOnRandom(*a, "main", {}), y = runOnRandom(*b, "main", {});
  ASSERT_TRUE(succeeded(x) && succeeded(y));
  std::string report;
  llvm::raw_string_ostream stream(report);
  EXPECT_TRUE(agree(*x, *y, 0, stream)) << report;
  (*y)[0].value.writeFloats()[0] += 1;
  EXPECT_FALSE(agree(*x, *y, 1e-9, stream));
  EXPECT_NE(report.find("result0 differs"), std::string::npos) << report;
  (*y)[0].value.writeFloats()[0] = NAN;
  EXPECT_FALSE(agree(*x, *y, 1e9, stream));
}
