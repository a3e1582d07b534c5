//===- ModuleKernels.h - all kernels of a module, scheduled -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_MODULEKERNELS_H
#define MESHWRIGHT_CODEGEN_MODULEKERNELS_H

#include "meshwright/Cost/KernelRows.h"
#include "meshwright/KernelLoops.h"

#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringMap.h"

#include <deque>

namespace meshwright::codegen {

/// The kernels of one program, by the names that its launches use.
using ScheduledKernels = llvm::StringMap<KernelLoops>;

/// The kernels of all programs of a module. Those that are equal have one name, under
/// which they are emitted once; different ones have different names.
struct ModuleKernels {
  /// A copy: scheduling rewrites kernels.
  mutable mlir::OwningOpRef<mlir::ModuleOp> module;
  /// In the order of `dist::programsOf(*module)`.
  std::deque<ScheduledKernels> programs;
  /// In the same order, the rows of the programs' plans, which count kernels as they were.
  std::deque<cost::KernelRows> rows;
  /// One of each name.
  llvm::SmallVector<const KernelLoops *> distinct;

  static mlir::FailureOr<ModuleKernels> build(mlir::ModuleOp module,
                                              const exec::ScheduleLimits &options);
  /// Whether the module has programs; without, kernels are what it is for.
  bool hasPrograms() const;
};

} // namespace meshwright::codegen

#endif // MESHWRIGHT_CODEGEN_MODULEKERNELS_H
