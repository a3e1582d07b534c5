//===- OptimizersTest.cpp - updates against published formulas --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The interpreter builds an update from the same row as kernels do. Here each row is held
// against its paper, written down a second time.
//
//===----------------------------------------------------------------------===//
#include "Train/Optimizer.h"
#include "meshwright/Session.h"
#include "meshwright/Register.h"
#include "meshwright/runtime/Averages.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include "gtest/gtest.h"

#include <cmath>
#include <functional>
#include <map>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::interp;

namespace {
/// One element: the parameter, its states by name, and what the run is given.
struct Element {
  double p;
  std::map<std::string, double> states, numbers;
  double direction; ///< of the step, where it is of whole matrices
  double lr, decay; ///< 0 for what does not decay
  int t;            ///< updates, this one included
};
/// An update by the gradient `g`.
using Formula = std::function<void(Element &, double g)>;
} // namespace

/// torch.optim.Adam, whose step both Adams make.
static void adam(Element &e, double g) {
  double beta1 = e.numbers["beta1"], beta2 = e.numbers["beta2"];
  double &m = e.states["momentum"], &v = e.states["variance"];
  m += (1 - beta1) * (g - m);
  v = beta2 * v + (1 - beta2) * g * g;
  double corrected = m / (1 - std::pow(beta1, e.t)),
         root = std::sqrt(v / (1 - std::pow(beta2, e.t)));
  e.p -= e.lr * corrected / (root + e.numbers["eps"]);
}

/// torch.optim.SGD with momentum and without dampening, whose buffer begins as the first gradient.
static void sgd(Element &e, double g, bool nesterov) {
  double mu = e.numbers["momentum"], &buffer = e.states["momentum"];
  g += e.decay * e.p;
  buffer = e.t == 1 ? g : mu * buffer + g;
  e.p -= e.lr * (nesterov ? g + mu * buffer : buffer);
}

/// A step along the direction of whole matrices, which optimizers.test holds to published runs.
static void along(Element &e) { e.p = e.p * (1 - e.lr * e.decay) - e.lr * e.direction; }

/// torch.optim.Muon.
static void muon(Element &e, double g) {
  double &buffer = e.states["momentum"];
  buffer += (1 - e.numbers["momentum"]) * (g - buffer);
  along(e);
}

/// AdamWScheduleFree of the package schedulefree 1.4.1 (r = 0), whose parameter in training is y, at one learning
/// rate, so that all steps weigh the same.
static void scheduleFree(Element &e, double g) {
  double beta1 = e.numbers["beta1"], beta2 = e.numbers["beta2"], &v = e.states["variance"];
  double y = e.p + e.states["y_minus_x"], z = e.p + e.states["y_minus_x"] / (1 - beta1);
  v = beta2 * v + (1 - beta2) * g * g;
  double direction = g / (std::sqrt(v / (1 - std::pow(beta2, e.t))) + e.numbers["eps"]) + e.decay * y;
  double c = 1.0 / e.t;
  y += c * (z - y) + direction * e.lr * (beta1 * (1 - c) - 1);
  z -= e.lr * direction;
  e.p = y + (1 - 1 / beta1) * (z - y);
  e.states["y_minus_x"] = y - e.p;
}

static const std::map<std::string, Formula> formulas = {
    {"adamw",
     [](Element &e, double g) {
       e.p -= e.lr * e.decay * e.p;
       adam(e, g);
     }},
    {"adam", [](Element &e, double g) { adam(e, g + e.decay * e.p); }},
    // Its moments are quantized behind the update.
    {"adamw-8bit",
     [](Element &e, double g) {
       e.p -= e.lr * e.decay * e.p;
       adam(e, g);
     }},
    // Chen et al. 2023, algorithm 2.
    {"lion",
     [](Element &e, double g) {
       double beta1 = e.numbers["beta1"], beta2 = e.numbers["beta2"], &m = e.states["momentum"];
       double c = beta1 * m + (1 - beta1) * g;
       e.p -= e.lr * ((c > 0) - (c < 0) + e.decay * e.p);
       m = beta2 * m + (1 - beta2) * g;
     }},
    {"sgd", [](Element &e, double g) { e.p -= e.lr * g; }},
    {"sgd-momentum", [](Element &e, double g) { sgd(e, g, /*nesterov=*/false); }},
    {"sgd-nesterov", [](Element &e, double g) { sgd(e, g, /*nesterov=*/true); }},
    // Behind what they compute of whole matrices.
    {"muon", [](Element &e, double g) { muon(e, g); }},
    {"normuon", [](Element &e, double g) { muon(e, g); }},
    {"adafactor", [](Element &e, double) { along(e); }},
    {"adafactor-scaled", [](Element &e, double) { along(e); }},
    {"schedule-free-adamw", scheduleFree}};

/// A function of one update of `size` elements in f64.
static std::string functionText(const train::Optimizer &row, bool decays, int64_t size) {
  std::string whole = "tensor<" + std::to_string(size) + "xf64>", arguments, names, types, results;
  auto add = [&](const std::string &type) {
    std::string comma = names.empty() ? "" : ", ", name = "%a" + std::to_string(arguments.size());
    arguments += comma + name + ": " + type;
    names += comma + name;
    types += comma + type;
  };
  for (size_t i = 0; i < 2 + row.states.size() + row.hasDirection(); ++i)
    add(whole);
  for (size_t i = 0; i < 2 + row.scalars().size(); ++i)
    add("tensor<f64>");
  for (size_t i = 0; i < 1 + row.states.size(); ++i)
    results += (i ? ", " : "") + whole;
  std::string count = std::to_string(1 + row.states.size()), values;
  for (size_t i = 0; i < 1 + row.states.size(); ++i)
    values += (i ? ", %u#" : "%u#") + std::to_string(i);
  return "func.func @update(" + arguments + ") -> (" + results + ") { %u:" + count +
         " = train.update \"" + row.name.str() + "\" " + (decays ? "decay " : "") + names + " : (" +
         types + ") -> (" + results + ") return " + (count == "1" ? "%u" : values) + " : " +
         results + " }";
}

static Tensor tensorOf(Type element, ArrayRef<int64_t> shape, ArrayRef<double> values) {
  Tensor tensor(element, shape);
  llvm::copy(values, tensor.writeFloats());
  return tensor;
}

TEST(Optimizers, AreAsPublished) {
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  const double clip = 0.75, lr = 0.01;
  // One gradient is always 0, and one changes its sign.
  const std::vector<std::vector<double>> gradients = {
      {0.5, 0, -2, 1e-3}, {-0.25, 0, 1, 1e-3}, {3, 0, 1e-9, 2e-3}, {-1, 0, 0.5, -7}};
  for (const train::Optimizer *row : train::optimizers())
    for (bool decays : {false, true}) {
      SCOPED_TRACE(row->name.str() + (decays ? ", decaying" : ""));
      auto formula = formulas.find(row->name.str());
      ASSERT_TRUE(formula != formulas.end()) << "the row has no published formula in this test";
      auto module = parseSourceString<ModuleOp>(functionText(*row, decays, 4), &context);
      ASSERT_TRUE(module);
      std::vector<Element> elements;
      for (double p : {1.0, -0.5, 0.0, 3.0}) {
        Element &e = elements.emplace_back(Element{p, {}, {}, 1 - p, lr, 0, 0});
        for (const train::Hyperparameter &number : row->hyperparameters)
          e.numbers[number.name.str()] =
              number.name == "weight_decay" && number.isInput() ? 0.3 : number.initial;
        e.decay = decays ? e.numbers["weight_decay"] : 0;
      }
      for (const std::vector<double> &gradient : gradients) {
        Type f64 = Float64Type::get(&context);
        auto column = [&](auto value) {
          std::vector<double> values;
          for (Element &e : elements)
            values.push_back(value(e));
          return tensorOf(f64, {4}, values);
        };
        TensorList arguments = {column([](Element &e) { return e.p; }),
                                tensorOf(f64, {4}, gradient)};
        for (const train::OptimizerState &state : row->states)
          arguments.push_back(column([&](Element &e) { return e.states[state.name.str()]; }));
        if (row->hasDirection())
          arguments.push_back(column([](Element &e) { return e.direction; }));
        for (Element &e : elements)
          ++e.t;
        std::map<std::string, double> scalars = elements[0].numbers;
        for (const train::BiasCorrection &correction : row->corrections)
          scalars[correction.name.str()] =
              1 - std::pow(scalars[correction.of.str()], elements[0].t);
        // Updates at one learning rate weigh the same in an average.
        scalars[updateWeight] = 1.0 / elements[0].t;
        for (double number : {clip, lr})
          arguments.push_back(tensorOf(f64, {}, number));
        for (StringRef name : row->scalars())
          arguments.push_back(tensorOf(f64, {}, scalars[name.str()]));
        Interpreter interpreter(*module, 1, Precision::F64);
        SmallVector<TensorList> results;
        ASSERT_TRUE(succeeded(
            interpreter.run(module->lookupSymbol<func::FuncOp>("update"), {arguments}, results)));
        for (auto [i, e] : llvm::enumerate(elements)) {
          formula->second(e, clip * gradient[i]);
          EXPECT_NEAR(results[0][0].floats()[i], e.p, 1e-13)
              << "parameter " << i << ", update " << e.t;
          for (auto [s, state] : llvm::enumerate(row->states))
            EXPECT_NEAR(results[0][s + 1].floats()[i], e.states[state.name.str()], 1e-13)
                << state.name.str() << " " << i << ", update " << e.t;
        }
      }
    }
}

// Padding, whose parameters, gradients and states are 0, stays 0: for all rows, with decay.
TEST(Optimizers, MakeZerosOfZeros) {
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  for (const train::Optimizer *row : train::optimizers()) {
    SCOPED_TRACE(row->name.str());
    auto module = parseSourceString<ModuleOp>(functionText(*row, true, 2), &context);
    ASSERT_TRUE(module);
    Type f64 = Float64Type::get(&context);
    TensorList arguments(2 + row->states.size() + row->hasDirection(), Tensor(f64, {2}));
    for (size_t i = 0; i < 2 + row->scalars().size(); ++i)
      arguments.push_back(tensorOf(f64, {}, 0.5));
    Interpreter interpreter(*module, 1, Precision::F64);
    SmallVector<TensorList> results;
    ASSERT_TRUE(succeeded(
        interpreter.run(module->lookupSymbol<func::FuncOp>("update"), {arguments}, results)));
    for (const Tensor &result : results[0])
      for (double value : result.floats())
        EXPECT_EQ(value, 0);
  }
}
