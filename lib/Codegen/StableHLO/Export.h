//===- Export.h - programs as StableHLO --------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_STABLEHLO_EXPORT_H
#define MESHWRIGHT_CODEGEN_STABLEHLO_EXPORT_H

#include "Codegen/StableHLO/Builder.h"
#include "Dist/Dist.h"
#include "Train/Train.h"

#include "mlir/IR/IRMapping.h"

namespace meshwright::codegen::stablehlo {

/// The step of `module`, at phase step, dist or local, as StableHLO text in generic form.
/// At phase dist the program is global, with Shardy's mesh and shardings; at phase local it
/// is that of one of the mesh's replicas, with its collectives. `@main` takes all variables
/// and the step's inputs, and returns the variables after the step and its outputs; comments
/// at the top say which is which. Refuses ops that have no form there, naming them.
mlir::FailureOr<std::string> exportStep(mlir::ModuleOp module);

/// A type without its encoding.
mlir::RankedTensorType plain(mlir::Type type);

/// The results of ops, of operands that are in StableHLO already; failure, with no error
/// emitted, for other ops.
using Results = llvm::SmallVector<mlir::Value>;
/// arith, math and the structural ops that kernels decompose into.
mlir::FailureOr<Results> exportPrimitive(mlir::Operation *op, mlir::ValueRange operands,
                                         HLOBuilder &b);
/// Sums of products.
mlir::FailureOr<Results> exportContraction(mlir::Operation *op, mlir::ValueRange operands,
                                           HLOBuilder &b);
/// Attention and its gradient, with scores stored.
mlir::FailureOr<Results> exportAttention(mlir::Operation *op, mlir::ValueRange operands,
                                         HLOBuilder &b);
/// The order of experts' rows, and products with the matrix of each row's expert.
mlir::FailureOr<Results> exportExperts(mlir::Operation *op, mlir::ValueRange operands, HLOBuilder &b);
/// Collectives and ops that depend on a device's rank, with a replica for each device.
mlir::FailureOr<Results> exportCollective(mlir::Operation *op, mlir::ValueRange operands,
                                          const dist::Mesh &mesh, HLOBuilder &b);

} // namespace meshwright::codegen::stablehlo

#endif // MESHWRIGHT_CODEGEN_STABLEHLO_EXPORT_H
