//===- Kernels.h - what each kernel of a step moves and computes ------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_REPORT_KERNELS_H
#define MESHWRIGHT_LIB_REPORT_KERNELS_H

#include "meshwright/Cost/CallWork.h"
#include "meshwright/runtime/PlanSchema.h"

namespace meshwright::report {

/// The plan's `kernels` of `program`: the launches, products, attention and copies of a step
/// of one rank, each kind once.
std::vector<plan::Kernel> kernelsOf(mlir::ModuleOp program, cost::FlopCounter &flops);

/// Seconds that a device takes for one run of a row of the plan's kernels, without its launch.
double expectedSeconds(const plan::Plan &plan, const plan::Kernel &row, const cost::Device &device);

} // namespace meshwright::report

#endif // MESHWRIGHT_LIB_REPORT_KERNELS_H
