//===- Layout.h - ways to spread a training step over devices ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_PIPELINE_PLANNER_LAYOUT_H
#define MESHWRIGHT_LIB_PIPELINE_PLANNER_LAYOUT_H

#include "meshwright/Options.h"

#include <string>
#include <vector>

namespace meshwright::planner {

/// What is known of a model before anything is compiled for a mesh.
struct ModelFacts {
  int64_t layers = 0, hidden = 0, heads = 0, sequence = 0;
  double parameters = 0, expertParameters = 0; ///< elements; of all, and of experts' own
  int64_t experts = 0;                         ///< of a layer; 0: none
  double flops = 0;                            ///< of a sequence, forward
};

/// A layout: the flags that the search decides.
struct Layout {
  int64_t pipe = 1, data = 1, context = 1, expert = 1, tensor = 1;
  int64_t zero = 0, microbatches = 1;
  int64_t chunks = 1;          ///< of a stage, in an interleaved schedule
  std::string schedule, remat; ///< empty: the default

  int64_t devices() const { return pipe * data * context * expert * tensor; }
  /// Ranks that read data of their own.
  int64_t dataRanks() const { return data * expert; }
  /// The flags as one writes them, those that are not the default; of switches "true".
  std::vector<std::pair<std::string, std::string>> flags() const;
  /// "--mesh pipe=4,data=8 --zero 1".
  std::string str() const;
};

/// What the search is about.
struct Problem {
  const CompileOptions &options; ///< with the flags that are kept
  const cost::Cluster &cluster;
  ModelFacts model;
  int64_t devices = 0, batch = 0;
};

/// All layouts, with the default of activation checkpointing; those that `problem`'s flags decide
/// otherwise, or that cannot be, left out.
std::vector<Layout> layoutsOf(const Problem &problem);

/// Seconds that a device computes at least in a step: products at their best rate.
double leastComputing(const Problem &problem);

/// Seconds that a step of a layout takes at least: `computing`, what tensor parallelism sends beside
/// that, and the pipeline's bubble.
double leastSeconds(const Problem &problem, const Layout &layout, double computing);

/// Bytes of a device that weights, gradients and optimizer states take at least.
double leastBytes(const Problem &problem, const Layout &layout);

} // namespace meshwright::planner

#endif // MESHWRIGHT_LIB_PIPELINE_PLANNER_LAYOUT_H
