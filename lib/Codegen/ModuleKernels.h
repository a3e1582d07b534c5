//===- ModuleKernels.h - all kernels of a module, planned -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_MODULEKERNELS_H
#define MESHWRIGHT_CODEGEN_MODULEKERNELS_H

#include "Codegen/KernelPlan.h"

#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringMap.h"

#include <deque>

namespace meshwright::codegen {

/// The kernels of one program, by the names that its launches use.
using PlannedKernels = llvm::StringMap<KernelPlan>;

/// The kernels of all programs of a module. Those that are equal have one name, under
/// which they are emitted once; different ones have different names.
struct ModuleKernels {
  /// A copy: planning rewrites kernels.
  mutable mlir::OwningOpRef<mlir::ModuleOp> module;
  /// In the order of `dist::programsOf(*module)`.
  std::deque<PlannedKernels> programs;
  /// One of each name.
  llvm::SmallVector<const KernelPlan *> distinct;

  static mlir::FailureOr<ModuleKernels> plan(mlir::ModuleOp module,
                                             const exec::ScheduleLimits &options);
  /// Whether the module has programs; without, kernels are what it is for.
  bool hasPrograms() const;
};

} // namespace meshwright::codegen

#endif // MESHWRIGHT_CODEGEN_MODULEKERNELS_H
