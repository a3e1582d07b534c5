//===- Files.h - the interpreter's weights and tokens -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Reads and writes with the runtime's own code, so that a training run of the
// interpreter sees what an executable sees. The runtime throws, LLVM does not:
// this is where exceptions become llvm::Error.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_INTERPRETER_FILES_H
#define MESHWRIGHT_INTERPRETER_FILES_H

#include "Train/Optimizer.h"
#include "common/data/BatchRamp.h"
#include "common/launch/Options.h" // The executable's command line.
#include "meshwright/Tensor.h"

#include "llvm/Support/Error.h"

#include <functional>
#include <memory>
#include <optional>

namespace meshwright::interp {

/// The tensor called `name` in a safetensors file, for a value of type `type`.
llvm::Expected<Tensor> readTensor(llvm::StringRef path, llvm::StringRef name,
                                  mlir::RankedTensorType type);

/// The name of a variable's tensor `number` in files: its storage name with `{layer}` or
/// `{layer+N}` and `{expert}` filled in, where layers are counted in experts. `shape` is the
/// variable's global one: its own type may be what a rank has, which is fewer experts.
std::string storageName(train::VariableOp variable, llvm::ArrayRef<int64_t> shape, int64_t number);
/// Where that tensor begins in the file's, along the dimension of which a file holds more.
int64_t offsetInFile(train::VariableOp variable, llvm::ArrayRef<int64_t> shape, int64_t number);

/// The value of a variable of (global) type `type` in a safetensors file, as its
/// storage attribute says. `suffix` follows the names of its tensors, as that of an optimizer's state does.
llvm::Expected<Tensor> readVariable(llvm::StringRef path, train::VariableOp variable,
                                    mlir::RankedTensorType type, llvm::StringRef suffix = "");

/// Writes values shaped like parameters (weights, gradients) in f32, in the
/// names and layouts of the parameters' storage attributes.
llvm::Error writeVariables(llvm::StringRef path,
                           llvm::ArrayRef<std::pair<train::VariableOp, Tensor>> values);

/// Reads the command line of an executable with `optimizer`, and with averages of parameters; null if that was a call for help, which
/// has been printed.
llvm::Expected<std::unique_ptr<Options>> parseTrainingOptions(const train::Optimizer &optimizer, bool averages,
                                                              llvm::ArrayRef<std::string> args);

/// The learning rate of a step.
double learningRateOf(const Options &options, int64_t step);

/// How the batch grows by `text`, the value of --batch-ramp, of a module for `batch` sequences in `microbatches` parts,
/// if it does.
llvm::Expected<std::optional<BatchRamp>> batchRampOf(const std::string &text, int64_t batch, int64_t microbatches);

/// The sequences of a token file in the order the options ask for.
class Sequences {
public:
  virtual ~Sequences() = default;
  /// The sequence at `position` of the run: its tokens, their positions in their documents, which are
  /// written with --documents alone, and its targets.
  virtual llvm::Error read(int64_t position, int32_t *tokens, int32_t *positions,
                           int32_t *targets) = 0;
  /// How many targets count of `sequences` of them from `position` on.
  virtual llvm::Expected<int64_t> countedTargets(int64_t position, int64_t sequences) = 0;

  /// What an encoder reads with it, and how many tokens of that are no padding.
  virtual llvm::Expected<int64_t> readSource(int64_t position, int32_t *source) = 0;

  /// The log-probability of the sequence at `position` under the reference model, as --reference-log-probs says.
  virtual llvm::Expected<double> reference(int64_t position) = 0;

  /// `sourceLength`, and what precedes a target, are 0 for models without an encoder. With `pairs` each sequence is a
  /// document.
  static llvm::Expected<std::unique_ptr<Sequences>> open(const Options &options, int64_t length,
                                                         int64_t vocabulary, int64_t sourceLength,
                                                         int64_t startToken, bool pairs);
};

} // namespace meshwright::interp

#endif // MESHWRIGHT_INTERPRETER_FILES_H
