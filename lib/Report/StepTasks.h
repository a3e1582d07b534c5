//===- StepTasks.h - what pipeline stages do in a step ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The plan says for each stage in which order its program runs the tasks of the
// schedule and how many floating-point operations each is. From that alone the
// step's timeline can be drawn, of an executable's plan as well.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_REPORT_STEPTASKS_H
#define MESHWRIGHT_LIB_REPORT_STEPTASKS_H

#include "meshwright/Cost/Flops.h"
#include "meshwright/PipelineSchedule.h"
#include "meshwright/runtime/PlanSchema.h"

namespace meshwright::report {

/// Adds to `entry` its order of tasks, and the operations of these and of what follows them,
/// if `program`, one of `programs`, is a stage.
void addTasks(mlir::ModuleOp program, llvm::ArrayRef<mlir::ModuleOp> programs,
              cost::FlopCounter &flops, plan::Program &entry);

struct StepTasks {
  schedule::PipelineSchedule schedule;
  /// As if each operation took the same time. All of it, with the rounds after the
  /// tasks, takes 100.
  schedule::Timeline timeline;
};

/// Nothing if the plan's programs are no pipeline stages. An error if the order that
/// they run in is none that ends.
llvm::Expected<std::optional<StepTasks>> tasksOf(const plan::Plan &plan);

} // namespace meshwright::report

#endif // MESHWRIGHT_LIB_REPORT_STEPTASKS_H
