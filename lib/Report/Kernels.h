//===- Kernels.h - what each kernel of a step moves and computes ------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_REPORT_KERNELS_H
#define MESHWRIGHT_LIB_REPORT_KERNELS_H

#include "Flops.h"
#include "meshwright/runtime/PlanSchema.h"

namespace meshwright::report {

struct MovedBytes {
  int64_t read = 0, written = 0;
};
/// What a launch, a product, a call of attention or a copy reads and writes: each operand once,
/// but of tables and targets of rows only those.
MovedBytes movedBy(mlir::Operation *op, mlir::SymbolTableCollection &symbols);

/// The plan's `kernels` of `program`: the launches, products, attention and copies of a step
/// of one rank, each kind once.
std::vector<plan::Kernel> kernelsOf(mlir::ModuleOp program, FlopCounter &flops);

} // namespace meshwright::report

#endif // MESHWRIGHT_LIB_REPORT_KERNELS_H
