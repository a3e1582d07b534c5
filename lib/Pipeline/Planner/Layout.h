//===- Layout.h - ways to spread a training step over devices ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_PIPELINE_PLANNER_LAYOUT_H
#define MESHWRIGHT_LIB_PIPELINE_PLANNER_LAYOUT_H

#include "ModelFacts.h"

#include <string>
#include <vector>

namespace meshwright::planner {

/// A layout: the flags that the search decides.
struct Layout {
  int64_t pipe = 1, replica = 1, data = 1, context = 1, expert = 1, tensor = 1;
  int64_t zero = 0, microbatches = 1;
  schedule::ScheduleKind schedule;
  std::string remat;           ///< empty: the default, or what is kept
  std::string offload;         ///< empty: nothing, or what is kept
  bool isScheduleKept = false; ///< given, and not the search's choice
  /// The order of `sizes` in the mesh, whose last axis has neighbouring devices; empty: theirs.
  std::vector<unsigned> order;

  int64_t devices() const { return pipe * replica * data * context * expert * tensor; }
  /// Ranks that read data of their own.
  int64_t dataRanks() const { return replica * data * expert; }
  /// Chunks of consecutive layers, of all stages.
  int64_t chunks() const { return pipe > 1 ? pipe * schedule.chunksPerStage : 1; }
  /// All axes, of one device too, in an order that suits most layouts: tensor parallelism, which
  /// communicates most, has neighbouring devices.
  std::vector<std::pair<llvm::StringRef, int64_t>> sizes() const;
  /// The axes of more than one device in the order of the mesh, the outermost first.
  std::vector<std::pair<llvm::StringRef, int64_t>> axes() const;
  /// The flags as one writes them, those that are not the default; of switches "true".
  std::vector<std::pair<std::string, std::string>> flags() const;
  /// "--mesh pipe=4,data=8 --zero 1".
  std::string str() const;
};

/// Bytes that a device of the first `devices` may use: of the smallest of them, and --memory-limit; 0: not known.
double capacityOf(const CompileOptions &options, const cost::Cluster &cluster, int64_t devices);

/// What may be offloaded where nothing fits, as texts of --offload: what copies least first.
std::vector<std::string> waysToOffload(const CompileOptions &options);
/// What may be offloaded beside what a layout offloads, so that it recomputes less.
std::vector<std::string> moreOffload(const CompileOptions &options, llvm::StringRef offload);

/// What the search is about.
struct Problem {
  const CompileOptions &options; ///< with the flags that are kept
  const cost::Cluster &cluster;
  ModelFacts model;
  int64_t devices = 0, batch = 0;
  std::map<std::string, int64_t> keptAxes; ///< of the mesh

  bool isKept(llvm::StringRef flag) const { return options.given.count(flag.str()); }
  /// Whether the search decides what is offloaded.
  bool searchesOffload() const { return !isKept("offload"); }
  Offload offloadOf(const Layout &layout) const;
  double capacity() const { return capacityOf(options, cluster, devices); }
};

/// The layout with its axes in other orders, in each of which groups of ranks lie on other links of the
/// cluster than in the orders before it, and than in that of the layout.
std::vector<Layout> placementsOf(const Problem &problem, const Layout &layout);

/// All layouts, with the default of activation checkpointing; those that `problem`'s flags decide
/// otherwise, or that cannot be, left out.
std::vector<Layout> layoutsOf(const Problem &problem);

} // namespace meshwright::planner

#endif // MESHWRIGHT_LIB_PIPELINE_PLANNER_LAYOUT_H
