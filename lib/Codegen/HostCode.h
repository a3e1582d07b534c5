//===- HostCode.h - what the host runs, to LLVM IR --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_HOSTCODE_H
#define MESHWRIGHT_CODEGEN_HOSTCODE_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace llvm {
class TargetMachine;
} // namespace llvm

namespace meshwright::codegen {

/// Numbers of f32 in the widest vectors worth using.
unsigned vectorLanes(const llvm::TargetMachine &machine);

/// Excludes a function that does nothing but call others from optimization. That of a model with many different
/// layers has tens of thousands of calls in a row, and LLVM's scheduling and register allocation take time that
/// grows with their square.
void disableOptimization(mlir::LLVM::LLVMFuncOp function);
/// Whether no function of `module` is to be optimized, so that its code can be generated without.
bool isUnoptimized(mlir::ModuleOp module);

/// Turns loops, vectors and arithmetic of functions for the host into the LLVM dialect.
mlir::LogicalResult convertToLLVMDialect(mlir::ModuleOp module);

} // namespace meshwright::codegen

#endif // MESHWRIGHT_CODEGEN_HOSTCODE_H
