//===- Training.h - training runs under the interpreter ---------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_INTERPRETER_TRAINING_H
#define MESHWRIGHT_INTERPRETER_TRAINING_H

#include "Interpreter/Files.h"
#include "common/data/LossScaler.h"
#include "common/data/RateWeights.h"
#include "common/data/TokenMask.h"
#include "meshwright/Session.h"

#include "llvm/Support/raw_ostream.h"

namespace meshwright::interp {

/// Runs a module's training functions on the data, in the order and with the
/// scalars of a compiled executable's run with the same options.
class Training {
public:
  /// The sizes come from the module's attributes. Variables get their initial
  /// values: those of --init, or those every executable starts from.
  static llvm::Expected<Training> create(Session &session, const train::Optimizer &optimizer,
                                         std::unique_ptr<Options> options);
  /// The optimizer of a module, before it has one the default.
  static llvm::Expected<const train::Optimizer *> optimizerOf(mlir::ModuleOp module);
  /// Whether a step as `gradients` makes it leaves the gradients in variables.
  static bool showsGradients(const train::Optimizer &optimizer);
  /// Whether a variable is an average of gradients, which such a step makes the gradient.
  static bool isAverageOfGradients(const train::Optimizer &optimizer, train::VariableOp variable);

  struct Step {
    double loss, gradNorm, lr;
    std::optional<double> auxLoss;   ///< the routers' part of the loss, where there is one
    std::optional<double> lossScale; ///< of a module that scales it
  };
  /// Step `index` by @step.
  llvm::Expected<Step> step(int64_t index);

  /// Runs @loss, of a module of phase train, on the first microbatch of the data of step `index`.
  llvm::Error forward(int64_t index);

  struct Gradients {
    double loss = 0;
    llvm::SmallVector<std::pair<train::VariableOp, Tensor>> values;
  };
  /// Loss and gradients of step `index`'s data at the variables' present values,
  /// by @gradients, by @loss.gradients summed over the microbatches, or by what @step does.
  llvm::Expected<Gradients> gradients(int64_t index);

  int64_t steps() const;

private:
  Training(Session &session, const train::Optimizer &optimizer, std::unique_ptr<Options> options)
      : session(&session), optimizer(&optimizer), options(std::move(options)) {}

  llvm::Error initialize();
  llvm::Error fillRowNorms(const llvm::StringMap<train::VariableOp> &scales);
  llvm::Expected<Gradients> gradientsOfStep(int64_t index);
  /// The sequences that the steps before `step` have read, and those of its own batch.
  int64_t positionOf(int64_t step) const;
  int64_t batchOf(int64_t step) const;
  int64_t microbatchesOf(int64_t step) const { return batchOf(step) * microbatches / batch; }
  /// The values of a function's inputs at a step.
  llvm::Expected<TensorList> inputs(mlir::FunctionOpInterface function, int64_t step,
                                    int64_t microbatch);
  /// What each of a step's counted targets weighs.
  llvm::Expected<double> targetWeight(int64_t step) const;
  llvm::Expected<Tensor> input(mlir::FunctionOpInterface function, unsigned i, int64_t step,
                               int64_t microbatch);

  Session *session;
  const train::Optimizer *optimizer;
  std::unique_ptr<Options> options;
  std::unique_ptr<Sequences> sequences;
  int64_t batch = 0, sequence = 0, microbatches = 0;
  std::optional<BatchRamp> ramp; ///< of a module whose steps may have fewer sequences
  LossScaler scaler;
  RateWeights rates; ///< of an optimizer whose parameters are averages
  std::optional<TokenMask> mask; ///< of encoders
};

} // namespace meshwright::interp

#endif // MESHWRIGHT_INTERPRETER_TRAINING_H
