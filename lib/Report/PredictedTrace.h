//===- PredictedTrace.h - a step as the plan has it, for Perfetto ------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_REPORT_PREDICTEDTRACE_H
#define MESHWRIGHT_LIB_REPORT_PREDICTEDTRACE_H

#include "meshwright/StepTime.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

#include <string>

namespace meshwright::report {

/// Trace events of one step of a module at phase exec: a process for each program, with a
/// track for what it computes and one for what it communicates. Times are those of the simulation
/// on `cluster`. Without one they are relative: what the rates of the target's device
/// (`exec::Target::getDefaultDevice`) allow, without latency, so they compare parts of a step with
/// each other, not with a clock, and the trace says so. Of a loop the first iteration shows its
/// ops, of the tasks that call one function the first.
/// An error if programs wait for each other for ever, or the cluster has too few devices.
/// `step` becomes the simulated step.
llvm::Expected<std::string> predictTrace(mlir::ModuleOp module, const cost::Cluster *cluster,
                                         StepTime &step);

} // namespace meshwright::report

#endif // MESHWRIGHT_LIB_REPORT_PREDICTEDTRACE_H
