//===- Compare.h - do two modules compute the same? -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_INTERPRETER_COMPARE_H
#define MESHWRIGHT_INTERPRETER_COMPARE_H

#include "meshwright/Session.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/raw_ostream.h"

namespace meshwright::interp {

struct RandomOptions {
  int64_t ranks = 0; ///< see Session::create
  Precision precision = Precision::F64;
  uint64_t seed = 1;
  /// Integer inputs are below this; 0: the module's `train.vocabulary`, or 2.
  int64_t integersBelow = 0;
  /// Inputs by name that are not random.
  llvm::StringMap<Tensor> inputs;
};

/// A random tensor, a function of (seed, name) alone: floats are normal and exact
/// in f32, scalars uniform in [0.1, 0.9] (rates and factors live there), integers
/// uniform in [0, below).
Tensor randomTensor(mlir::RankedTensorType type, llvm::StringRef name, uint64_t seed,
                    int64_t below);

/// A value that a run leaves: a result or a variable.
struct NamedTensor {
  std::string name;
  Tensor value;
};

/// Runs `function` on random inputs and random variables: results, then all
/// variables as the run leaves them. Parameters start as 0.3 of a normal value,
/// around 1 where the model starts them at 1; optimizer states are not negative.
llvm::FailureOr<llvm::SmallVector<NamedTensor>>
runOnRandom(mlir::ModuleOp module, llvm::StringRef function, const RandomOptions &options);

/// Whether both have the same names and, relatively (norm of the difference over
/// norm), differ by at most `tolerance`. Reports the first that does not.
/// Variables that only one has are not compared: passes may add or drop state.
bool agree(llvm::ArrayRef<NamedTensor> a, llvm::ArrayRef<NamedTensor> b, double tolerance,
           llvm::raw_ostream &report);

} // namespace meshwright::interp

#endif // MESHWRIGHT_INTERPRETER_COMPARE_H
