//===- JudgedTraining.h - a training run beside the sequential program -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_JUDGEDTRAINING_H
#define MESHWRIGHT_JUDGEDTRAINING_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>
#include <vector>

namespace meshwright::interp {

/// How far the parameters of one name, whatever their layer, are from those of the sequential program: the norm of the
/// difference over the norm of what is right. What is almost zero is compared with the other parameters' size.
struct ParameterError {
  std::string name; ///< in files, with `*` for the layer and for the expert
  std::optional<double> gradient; ///< of the first step; nothing where the optimizer's steps do not show it
  /// Of what all steps added to the parameter, beyond the rounding of the parameter itself. Elements whose gradient is 0
  /// but for the rounding of float64, as keys' biases have where keys do not turn, may have been moved in any direction.
  double update = 0;
};

/// A training run in float64 on one rank, and how far an executable's parameters are from it.
struct JudgedRun {
  std::vector<double> losses, norms; ///< of each step
  std::vector<ParameterError> parameters;
  bool routed = false; ///< whether there are experts, to which rounding may send other tokens
};

/// The folders of two checkpoints of an executable. Both runs start from the initial weights.
struct JudgedCheckpoints {
  std::string gradients; ///< after one step as `gradientArguments` has it; empty: none was made
  std::string last;      ///< after the run with the arguments that the sequential program is given
};

/// Whether the gradients of a step of `step` can be read off a checkpoint.
llvm::Expected<bool> showsGradients(mlir::ModuleOp step);

/// The arguments with which one step of an executable leaves its gradients in the checkpoint: in an average of gradients
/// that forgets at once or, without one, as the step at the rate 1.
llvm::Expected<std::vector<std::string>> gradientArguments(mlir::ModuleOp step);

/// Trains `step`, a module of phase step on one rank, in float64 with the `arguments` of the executable.
llvm::Expected<JudgedRun> judgeTraining(mlir::ModuleOp step, llvm::ArrayRef<std::string> arguments,
                                        const JudgedCheckpoints &checkpoints);

} // namespace meshwright::interp

#endif // MESHWRIGHT_JUDGEDTRAINING_H
