//===- Tensors.h - shardings of single tensors on a given mesh --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_PIPELINE_PLANNER_TENSORS_H
#define MESHWRIGHT_LIB_PIPELINE_PLANNER_TENSORS_H

#include "Candidate.h"

namespace meshwright::planner {

/// What a parameter, or what layers pass on, has by the search. Partial sums have no seed, so no
/// sharding here.
struct FoundTensor {
  std::string name, sharding, words;
};

/// A reshard of a choice that was found.
struct FoundReshard {
  std::string value, from, to;
  double seconds = 0; ///< of a step
};

/// Seeds, and what they come from.
struct TensorPlan {
  std::string name;       ///< "tensor parallelism", "search"
  CompileOptions options; ///< of its compilation
  Candidate candidate;    ///< what the simulation says of it
  /// Of what the search found: all parameters, and what layers pass on; what is sent, the longest
  /// first.
  std::vector<FoundTensor> tensors;
  std::vector<FoundReshard> reshards;
  bool isFound = false;  ///< whether the search found it; else it is a preset
  double cost = 0;       ///< seconds by the search's tables
  bool isProved = false; ///< whether no choice has less by the tables
  std::optional<double> bound; ///< seconds that each choice has at least by the tables
};

struct TensorSearchResult {
  std::vector<TensorPlan> plans; ///< those that fit first, the fastest first
  size_t fitting = 0;            ///< of these
  unsigned ops = 0;              ///< of the step, each of a layer once
  bool isOutOfTime = false;      ///< the time ended before that of "search"
  double seconds = 0;            ///< that the search took, without compilations

  /// The best plan that the search found.
  const TensorPlan &found() const;
};

/// Searches the shardings of tensors along the mesh axis `tensor` of `options`, which have a
/// cluster, and compiles and simulates what it finds and tensor parallelism's own. After `seconds`
/// it finishes with small tables and begins no further compilations within memory.
llvm::Expected<TensorSearchResult> searchTensors(const CompileOptions &options, unsigned threads,
                                                 double seconds, mlir::MLIRContext &context);

} // namespace meshwright::planner

#endif // MESHWRIGHT_LIB_PIPELINE_PLANNER_TENSORS_H
