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
