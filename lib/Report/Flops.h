//===- Flops.h - floating-point operations of a program ---------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_REPORT_FLOPS_H
#define MESHWRIGHT_LIB_REPORT_FLOPS_H

#include "Dist/Sharding.h"
#include "Exec/Exec.h"
#include "meshwright/runtime/PlanSchema.h"

namespace meshwright::report {

/// Counts what one rank does in ops of the memory form, with loops as often as they run
/// and calls as what they call.
class FlopCounter {
public:
  /// `again`: only what has run before, marked with this value of `train.recomputed`.
  double of(mlir::Operation *op, mlir::Attribute again = {});
  double of(mlir::Block &block, mlir::Attribute again = {});

private:
  mlir::SymbolTableCollection symbols;
  /// By callee and `again`.
  llvm::DenseMap<std::pair<mlir::Operation *, mlir::Attribute>, double> callees;
};

/// What a rank of the program does in a step that other ranks do alike, by location: the operations
/// that were saved if ranks shared it.
std::vector<plan::Repeated> repeatedWork(mlir::ModuleOp program, const dist::Mesh &mesh,
                                         FlopCounter &flops);

/// How much more attention the device with most of it has than the mean has, in a step of the
/// program: a factor. Nothing where queries are not divided.
std::optional<double> attentionImbalance(mlir::ModuleOp program);

/// What a run needs to say so of packed sequences, whose documents it knows; empty where ranks
/// divide no queries.
std::vector<plan::AttentionShare> attentionShares(mlir::ModuleOp program, int64_t microbatches);

} // namespace meshwright::report

#endif // MESHWRIGHT_LIB_REPORT_FLOPS_H
