//===- DividedWork.h - how ranks divide the work of a step -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_REPORT_DIVIDEDWORK_H
#define MESHWRIGHT_LIB_REPORT_DIVIDEDWORK_H

#include "meshwright/Cost/Flops.h"
#include "Dist/Sharding.h"
#include "meshwright/runtime/PlanSchema.h"

namespace meshwright::report {

/// What a rank of the program does in a step that other ranks do alike, by location: the operations
/// that were saved if ranks shared it.
std::vector<plan::Repeated> repeatedWork(mlir::ModuleOp program, const dist::Mesh &mesh,
                                         cost::FlopCounter &flops);

/// How much more attention the device with most of it has than the mean has, in a step of the
/// program: a factor. Nothing where queries are not divided.
std::optional<double> attentionImbalance(mlir::ModuleOp program);

/// What a run needs to say so of packed sequences, whose documents it knows; empty where ranks
/// divide no queries.
std::vector<plan::AttentionShare> attentionShares(mlir::ModuleOp program, int64_t microbatches);

} // namespace meshwright::report

#endif // MESHWRIGHT_LIB_REPORT_DIVIDEDWORK_H
