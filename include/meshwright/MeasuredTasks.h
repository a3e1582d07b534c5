//===- MeasuredTasks.h - how long tasks took in a run ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_MEASUREDTASKS_H
#define MESHWRIGHT_MEASUREDTASKS_H

#include "meshwright/PipelineSchedule.h"

namespace meshwright::report {

/// Milliseconds, medians over steps, microbatches and the ranks of a stage. The first of
/// several steps is left out: it waits for memory and files.
struct MeasuredTasks {
  schedule::TaskCosts costs;
  /// By stage, what it computes outside of tasks: the update, most of it after them.
  std::vector<double> rest;
  /// A step, of the rank that took longest.
  double step = 0;
  int64_t steps = 0;
};

/// Of the file that an executable's `--trace` has written. An error unless every rank did
/// just the tasks of `schedule` in its order.
llvm::Expected<MeasuredTasks> readMeasured(llvm::StringRef path,
                                           const schedule::PipelineSchedule &schedule);

} // namespace meshwright::report

#endif // MESHWRIGHT_MEASUREDTASKS_H
