//===- Tensors.h - shardings of single tensors on a given mesh --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_PIPELINE_PLANNER_TENSORS_H
#define MESHWRIGHT_LIB_PIPELINE_PLANNER_TENSORS_H

#include "Candidate.h"

namespace meshwright::planner {

/// Seeds, and what they come from.
struct TensorPlan {
  std::string name;      ///< "tensor parallelism", "search"
  CompileOptions options; ///< of its compilation
  Candidate candidate;   ///< what the simulation says of it
};

/// What a parameter, or what layers pass on, has by the search.
struct FoundTensor {
  std::string name, sharding, words;
  bool isParameter = true;
};

/// A reshard of the choice that was found.
struct FoundReshard {
  std::string value, from, to;
  double seconds = 0; ///< of a step
};

struct TensorSearchResult {
  std::vector<TensorPlan> plans; ///< those that fit first, the fastest first
  size_t fitting = 0;            ///< of these
  std::vector<FoundTensor> tensors;
  std::vector<FoundReshard> reshards; ///< the longest first
  unsigned ops = 0;              ///< of the step, each of a layer once
  bool isProved = false;         ///< whether no choice has less by the search's tables
  double cost = 0, bound = 0;    ///< seconds of the tables, and at least
  double seconds = 0;            ///< that the search took, without compilations
};

/// Searches the shardings of tensors along the mesh axis `tensor` of `options`, which have a
/// cluster, and compiles and simulates what it finds and tensor parallelism's own.
llvm::Expected<TensorSearchResult> searchTensors(const CompileOptions &options, unsigned threads,
                                                 mlir::MLIRContext &context);

} // namespace meshwright::planner

#endif // MESHWRIGHT_LIB_PIPELINE_PLANNER_TENSORS_H
