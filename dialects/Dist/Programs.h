//===- Programs.h - what devices run that do not all run the same -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Usually all devices run one program, and a module is that program. Pipeline
// stages differ: then the module holds one nested module per program,
//
//   module @stage0 attributes {dist.coordinates = {pipe = 0 : i64}} {
//     dist.mesh @mesh ["pipe" = 2, "data" = 2]
//     func.func @step ...
//
// whose `dist.coordinates` gives, for some axes of the mesh, the coordinate of the devices
// that run it, or, as in {data = [1, 2, 3]}, several. Every device is of exactly one
// program.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_DIST_PROGRAMS_H
#define MESHWRIGHT_DIST_PROGRAMS_H

#include "Dist/Sharding.h"

#include "mlir/IR/BuiltinOps.h"

namespace meshwright::dist {

/// The attribute of a nested module that makes it a program.
inline constexpr llvm::StringLiteral coordinatesAttr = "dist.coordinates";

/// The attribute of an op that belongs to a task of a pipeline's schedule: the task's
/// name, "F3.1". Calls keep it to the end.
inline constexpr llvm::StringLiteral taskAttr = "dist.task";

/// The attribute of a stage's program: the largest number of forward tasks whose results it keeps.
inline constexpr llvm::StringLiteral heldAttr = "dist.held";

/// The coordinates that one entry of a `dist.coordinates` gives: those of an integer or of a
/// list of integers; empty where it is neither.
llvm::SmallVector<int64_t> coordinatesOf(mlir::Attribute entry);

/// Whether one coordinate alone along `axis` runs the program that `op` is in.
bool isFixed(llvm::StringRef axis, mlir::Operation *op);

/// The nested modules that are programs, in their order, or the module itself where
/// there are none.
llvm::SmallVector<mlir::ModuleOp> programsOf(mlir::ModuleOp module);

/// Whether `module` holds several programs rather than being one.
bool hasPrograms(mlir::ModuleOp module);

/// Whether the device `rank` of `mesh` runs `program`; a program without a
/// `dist.coordinates` is everybody's.
bool runsOn(mlir::ModuleOp program, const Mesh &mesh, int64_t rank);

/// Checks that each `dist.coordinates` names axes and coordinates of the mesh, that each
/// program has the outer module's mesh, and that every device is of exactly one.
mlir::LogicalResult verifyPrograms(mlir::ModuleOp module);

/// Checks that variables of all programs are parts of their global types, and where parameters are
/// stored (Train/Storage.h), by the types that files have them in; programs that have the same
/// parameter store it alike.
mlir::LogicalResult verifyStorage(mlir::ModuleOp module);

} // namespace meshwright::dist

#endif // MESHWRIGHT_DIST_PROGRAMS_H
