//===- HostCode.h - what the host runs, to LLVM IR --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_HOSTCODE_H
#define MESHWRIGHT_CODEGEN_HOSTCODE_H

#include "mlir/IR/BuiltinOps.h"

namespace llvm {
class TargetMachine;
} // namespace llvm

namespace meshwright::codegen {

/// Numbers of f32 in the widest vectors worth using.
unsigned vectorLanes(const llvm::TargetMachine &machine);

/// Has LLVM leave the functions of `programs` as they are (optnone), because they are nothing but
/// calls. Of a model with many different layers that is tens of thousands in a row, for which
/// LLVM's allocation of registers takes time that grows with the square.
void leaveAsTheyAre(mlir::ModuleOp programs);
/// Whether all functions of `module` are to be left as they are, so that its code can be
/// generated without optimizations.
bool isLeftAsItIs(mlir::ModuleOp module);

/// Turns loops, vectors and arithmetic of functions for the host into the LLVM dialect.
mlir::LogicalResult convertToLLVMDialect(mlir::ModuleOp module);

} // namespace meshwright::codegen

#endif // MESHWRIGHT_CODEGEN_HOSTCODE_H
