//===- RandomGraph.h - random programs to test passes with ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A pass must not change what is computed: tests make many small random programs,
// run the pass and compare with the interpreter (Compare.h). The same seed makes
// the same program.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_INTERPRETER_RANDOMGRAPH_H
#define MESHWRIGHT_INTERPRETER_RANDOMGRAPH_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace meshwright::interp {

struct RandomGraphOptions {
  unsigned steps = 8; ///< blocks of one to a dozen ops each
  /// All dimensions are multiples of this: 4 suits meshes with axes of 2 and 4.
  int64_t granularity = 1;
  bool dropout = false;
  bool biases = false; ///< projections are two, with a bias between and maybe gelu's tanh form
  bool gates = false;  ///< projections are of a product of two, one under silu
  int64_t layers = 2;       ///< of a random model
  int64_t microbatches = 1; ///< of a random model
  /// Above 0: layers of a random model have a loop of at most so many iterations. Its input "rounds"
  /// says how many run.
  int64_t rounds = 0;
  int64_t rowsMultiple = 1; ///< sequences of a microbatch of a random model
};

/// A module with one function `@main`: a random graph of train ops in f32 whose
/// inputs are arguments and whose results are all values that nothing uses.
mlir::OwningOpRef<mlir::ModuleOp> randomGraph(mlir::MLIRContext *context, uint64_t seed,
                                              const RandomGraphOptions &options = {});

/// A module as a frontend makes it: variables, `@loss` on tokens and targets, and
/// a random `@layer` that it repeats. Every parameter has a gradient.
mlir::OwningOpRef<mlir::ModuleOp> randomModel(mlir::MLIRContext *context, uint64_t seed,
                                              const RandomGraphOptions &options = {});

} // namespace meshwright::interp

#endif // MESHWRIGHT_INTERPRETER_RANDOMGRAPH_H
