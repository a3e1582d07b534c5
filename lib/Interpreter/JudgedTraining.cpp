//===- JudgedTraining.cpp - a training run beside the sequential program -----===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/JudgedTraining.h"

#include "Interpreter/Training.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::interp;

/// What is smaller than this part of all parameters' size is compared with that part of it: the gradient of a bias that
/// softmax cancels is rounding alone.
static constexpr double negligible = 1e-4;

llvm::Expected<bool> interp::showsGradients(ModuleOp step) {
  auto optimizer = Training::optimizerOf(step);
  if (!optimizer)
    return optimizer.takeError();
  return Training::showsGradients(**optimizer);
}

llvm::Expected<std::vector<std::string>> interp::gradientArguments(ModuleOp step) {
  auto optimizer = Training::optimizerOf(step);
  if (!optimizer)
    return optimizer.takeError();
  std::vector<std::string> arguments = {"--steps", "1", "--lr", "1", "--grad-clip", "0"};
  plan::Header plan;
  addToPlan(**optimizer, plan);
  for (const plan::Hyperparameter &number : plan.hyperparameters) {
    // Executables divide by it.
    if (number.name == "eps" || number.most == 0.0)
      continue;
    std::string flag = number.name;
    std::replace(flag.begin(), flag.end(), '_', '-');
    arguments.insert(arguments.end(), {"--" + flag, "0"});
  }
  return arguments;
}

/// The name of a parameter's tensors in files, the same for all layers and experts.
static std::string groupName(train::VariableOp variable) {
  train::StorageAttr storage = variable.getStorageAttr();
  std::string name = storage ? storage.getTensor().str() : variable.getSymName().str();
  for (size_t open = name.find('{'); open != std::string::npos; open = name.find('{', open))
    name.replace(open, name.find('}', open) + 1 - open, "*");
  return name;
}

static std::vector<double> minus(const Tensor &a, const Tensor &b) {
  std::vector<double> result(a.floats().begin(), a.floats().end());
  for (auto [x, y] : llvm::zip_equal(result, b.floats()))
    x -= y;
  return result;
}

static double squares(ArrayRef<double> values) {
  double sum = 0;
  for (double value : values)
    sum += value * value;
  return sum;
}

namespace {
/// Squared norms of what is right and of the distance from it, and how much of the latter may be the rounding of what is
/// stored.
struct Apart {
  double right = 0, distance = 0, rounding = 0;

  /// Of elements of which `isLeft` is not true.
  void add(ArrayRef<double> expected, ArrayRef<double> found, const llvm::BitVector &isLeft = {}) {
    for (auto [i, x, y] : llvm::enumerate(expected, found))
      if (isLeft.empty() || !isLeft[i]) {
        right += x * x;
        distance += (x - y) * (x - y);
      }
  }
  double relative(double all) const {
    double size = std::sqrt(std::max(right, negligible * negligible * all));
    double apart = std::max(std::sqrt(distance) - std::sqrt(rounding), 0.0);
    return distance == 0 ? 0 : std::isfinite(distance) && size > 0 ? apart / size : INFINITY;
  }
};

struct Group {
  Apart gradient, update;
};
} // namespace

/// The file of a checkpoint that holds a parameter.
static std::string weightsIn(StringRef checkpoint, train::VariableOp variable) {
  return (checkpoint + (variable->hasAttr(train::adapterAttr) ? "/adapter_model.safetensors" : "/model.safetensors")).str();
}

llvm::Expected<JudgedRun> interp::judgeTraining(ModuleOp step, ArrayRef<std::string> arguments,
                                                const JudgedCheckpoints &checkpoints) {
  auto optimizer = Training::optimizerOf(step);
  if (!optimizer)
    return optimizer.takeError();
  auto session = Session::create(step, /*ranks=*/1, Precision::F64);
  if (failed(session))
    return llvm::createStringError("the module is not of one rank");
  auto options = parseTrainingOptions(**optimizer, train::keepsAverages(step), arguments);
  if (!options)
    return options.takeError();
  auto training = Training::create(*session, **optimizer, std::move(*options));
  if (!training)
    return training.takeError();

  llvm::MapVector<std::string, Group, llvm::StringMap<unsigned>> groups;
  llvm::StringMap<Tensor> start;
  SmallVector<train::VariableOp> parameters;
  llvm::StringMap<std::string> averages; // by parameter, what follows its name
  for (train::VariableOp variable : session->variables()) {
    FailureOr<Tensor> value = session->getVariable(variable);
    if (failed(value))
      return llvm::createStringError("@" + variable.getSymName() + " has no value");
    bool trained = variable.isParameter() && !variable->hasAttr(train::frozenAttr) && value->isFloat();
    if (trained) {
      parameters.push_back(variable);
      start[variable.getSymName()] = *value;
    }
    if (Training::isAverageOfGradients(**optimizer, variable))
      averages[variable.getOfAttr().getValue()] = variable.getRole()->str();
  }

  JudgedRun run;
  llvm::StringMap<llvm::BitVector> ofRounding; // by parameter, elements whose gradient is that
  if (!checkpoints.gradients.empty()) {
    auto gradients = training->gradients(0);
    if (!gradients)
      return gradients.takeError();
    double most = 0;
    for (auto &[parameter, right] : gradients->values)
      for (double value : right.floats())
        most = std::max(most, std::abs(value));
    for (auto &[parameter, right] : gradients->values) {
      // Rounding may also be 0; of a matrix, that is a row that nothing reads.
      train::VariableOp variable = parameter;
      bool isVector = variable.getTensorType().getRank() - int64_t(variable.getStacked()) == 1;
      llvm::BitVector &isLeft = ofRounding[variable.getSymName()];
      for (double value : right.floats())
        isLeft.push_back((isVector || value != 0) && std::abs(value) <= 0x1p-40 * most);
      auto average = averages.find(parameter.getSymName());
      bool averaged = average != averages.end();
      auto read = averaged ? readVariable(checkpoints.gradients + "/optimizer.safetensors", parameter,
                                          session->globalType(parameter), "." + average->second)
                           : readVariable(weightsIn(checkpoints.gradients, parameter), parameter,
                                          session->globalType(parameter));
      if (!read)
        return read.takeError();
      std::vector<double> found(read->floats().begin(), read->floats().end());
      Apart &gradient = groups[groupName(parameter)].gradient;
      if (!averaged) {
        const Tensor &before = start[parameter.getSymName()];
        found = minus(before, *read);
        gradient.rounding += 0x1p-48 * squares(before.floats());
      }
      gradient.add(right.floats(), found);
    }
  }
  for (int64_t i = 0; i < training->steps(); ++i) {
    auto made = training->step(i);
    if (!made)
      return made.takeError();
    run.losses.push_back(made->loss);
    run.norms.push_back(made->gradNorm);
  }
  for (train::VariableOp parameter : parameters) {
    FailureOr<Tensor> right = session->getVariable(parameter);
    auto found = readVariable(weightsIn(checkpoints.last, parameter), parameter, session->globalType(parameter));
    if (!found)
      return found.takeError();
    const Tensor &before = start[parameter.getSymName()];
    Apart &update = groups[groupName(parameter)].update;
    update.add(minus(*right, before), minus(*found, before), ofRounding.lookup(parameter.getSymName()));
    // Each step rounds the parameter.
    double half = 0x1p-24 * double(training->steps());
    update.rounding += half * half * squares(before.floats());
    run.routed |= parameter.getNumbered() > parameter.getStacked();
  }

  double gradients = 0, updates = 0;
  for (const auto &[name, group] : groups) {
    gradients += group.gradient.right;
    updates += group.update.right;
  }
  for (const auto &[name, group] : groups) {
    ParameterError error{name, std::nullopt, group.update.relative(updates)};
    if (!checkpoints.gradients.empty())
      error.gradient = group.gradient.relative(gradients);
    run.parameters.push_back(std::move(error));
  }
  return run;
}
