//===- Search.h - finds the layout whose step takes least ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_PIPELINE_PLANNER_SEARCH_H
#define MESHWRIGHT_LIB_PIPELINE_PLANNER_SEARCH_H

#include "Layout.h"
#include "meshwright/StepTime.h"

#include "mlir/IR/DialectRegistry.h"

namespace meshwright::planner {

/// A layout that was compiled and simulated.
struct Candidate {
  Layout layout;
  std::string refused; ///< why the compiler refuses it; empty: it does not
  double seconds = 0, flops = 0; ///< of a step; FLOPs without what is computed again
  int64_t bytes = 0;             ///< of a device
  TimeParts parts;
};

struct Found {
  std::vector<Candidate> fitting; ///< the fastest first
  std::vector<Candidate> others;  ///< that do not fit, those of fewest bytes first
  int64_t layouts = 0;            ///< in the space
  int64_t compiled = 0, refused = 0;
  std::string example; ///< what one of these was refused for
  /// Whether each layout that was not compiled needs more time than the best one, or more memory
  /// than there is, by its bounds.
  bool complete = false;
  double seconds = 0; ///< that the search took
};

/// What the model says itself; an error if it cannot be imported.
llvm::Expected<ModelFacts> factsOf(const CompileOptions &options, mlir::MLIRContext &context);

/// Compiles and simulates layouts for at most `seconds`, those with the lowest bounds first.
/// Progress goes to `log`, a line that is written again, if it is a terminal.
Found searchLayouts(const Problem &problem, double seconds, llvm::raw_ostream &log);

} // namespace meshwright::planner

#endif // MESHWRIGHT_LIB_PIPELINE_PLANNER_SEARCH_H
