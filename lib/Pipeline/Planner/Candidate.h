//===- Candidate.h - a layout that was compiled and simulated ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_PIPELINE_PLANNER_CANDIDATE_H
#define MESHWRIGHT_LIB_PIPELINE_PLANNER_CANDIDATE_H

#include "Layout.h"
#include "meshwright/StepTime.h"

namespace meshwright::planner {

struct Candidate {
  Layout layout;
  std::string refused;           ///< why the compiler refuses it; empty: it does not
  double seconds = 0, flops = 0; ///< of a step; FLOPs without what is computed again
  double recomputed = 0;         ///< FLOPs of a step that are computed again
  int64_t bytes = 0;             ///< of a device
  BySpace<int64_t> needed = {};  ///< bytes, of each space
  int64_t copied = 0;            ///< bytes of a step from and to offload spaces, of the rank that copies most
  TimeParts parts;
  double leastSeconds = 0, leastBytes = 0; ///< its bounds

  bool fits(double capacity) const {
    return refused.empty() && (capacity == 0 || double(bytes) <= capacity);
  }
};

/// The options of a compilation of `layout`: those of `options`, and its flags.
CompileOptions optionsOf(const CompileOptions &options, int64_t batch, const Layout &layout);

/// Compiles what `options` say in a context of its own and simulates a step on `cluster`, if there is one; the
/// layout is empty.
Candidate simulate(const CompileOptions &options, const cost::Cluster *cluster);
Candidate simulate(const CompileOptions &options, const cost::Cluster &cluster);

/// Compiles `layout` in a context of its own and simulates a step on the problem's cluster.
Candidate compileLayout(const Problem &problem, const Layout &layout);

/// Bytes of a device that a program of these options needs; nothing if it is refused.
std::optional<int64_t> bytesOf(const CompileOptions &options);

} // namespace meshwright::planner

#endif // MESHWRIGHT_LIB_PIPELINE_PLANNER_CANDIDATE_H
