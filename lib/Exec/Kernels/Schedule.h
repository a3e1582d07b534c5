//===- Schedule.h - how a kernel is divided into loop nests and chunks ------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_SCHEDULE_H
#define MESHWRIGHT_LIB_EXEC_SCHEDULE_H

#include "Exec/Target.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace meshwright::exec {

/// Writes the schedule of a decomposed kernel into its attributes.
mlir::LogicalResult scheduleKernel(mlir::func::FuncOp kernel, const ScheduleLimits &limits);

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_SCHEDULE_H
