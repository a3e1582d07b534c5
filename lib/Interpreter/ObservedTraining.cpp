//===- ObservedTraining.cpp - what a model computes while it is trained ------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A module of phase train has the forward alone, op by op as the model's builder made it; that of a step
// also has derivatives and values that are computed again. So activations are those of the former, with
// the parameters of the latter.
//
//===----------------------------------------------------------------------===//
#include "meshwright/ObservedTraining.h"

#include "Interpreter/Training.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::interp;

static llvm::Expected<Training> start(Session &session, const train::Optimizer &optimizer,
                                      bool averages, ArrayRef<std::string> arguments) {
  auto options = parseTrainingOptions(optimizer, averages, arguments);
  if (!options)
    return options.takeError();
  return Training::create(session, optimizer, std::move(*options));
}

/// Gives `to` the parameters of `from`.
static llvm::Error copyParameters(const Session &from, Session &to) {
  llvm::StringMap<train::VariableOp> trained;
  for (train::VariableOp variable : from.variables())
    if (variable.isParameter())
      trained[variable.getSymName()] = variable;
  for (train::VariableOp variable : to.variables()) {
    auto found = trained.find(variable.getSymName());
    if (found == trained.end() || from.globalType(found->second) != to.globalType(variable))
      return llvm::createStringError("parameter @" + variable.getSymName() +
                                     " has another form in a training step");
    FailureOr<Tensor> value = from.getVariable(found->second);
    if (failed(value))
      return llvm::createStringError("@" + variable.getSymName() + " has no value");
    to.setVariable(variable, *value);
  }
  return llvm::Error::success();
}

llvm::Error interp::observeTraining(
    ModuleOp forward, ModuleOp step, ArrayRef<std::string> arguments,
    llvm::function_ref<void(int64_t, Operation *, ArrayRef<Tensor>)> observe) {
  auto optimizer = Training::optimizerOf(step);
  if (!optimizer)
    return optimizer.takeError();
  auto trained = Session::create(step, /*ranks=*/1, Precision::F64);
  auto watched = Session::create(forward, /*ranks=*/1, Precision::F64);
  if (failed(trained) || failed(watched))
    return llvm::createStringError("the modules are not of one rank");
  bool averages = train::keepsAverages(step);
  auto training = start(*trained, **optimizer, averages, arguments);
  if (!training)
    return training.takeError();
  auto watching = start(*watched, **optimizer, averages, arguments);
  if (!watching)
    return watching.takeError();
  int64_t steps = training->steps(), t = 0;
  watched->observe([&](RankContext &, Operation *op, ArrayRef<Tensor>, TensorList &results) {
    observe(t, op, results);
    return success();
  });
  for (;; ++t) {
    if (llvm::Error error = copyParameters(*trained, *watched))
      return error;
    if (llvm::Error error = watching->forward(t))
      return error;
    if (t == steps)
      return llvm::Error::success();
    auto done = training->step(t);
    if (!done)
      return done.takeError();
  }
}
