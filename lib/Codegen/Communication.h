//===- Communication.h - numbers of groups and collectives ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Generated calls name communicator groups and collectives by their place in the
// plan's tables. Both are numbered here, so that code and plan agree.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_COMMUNICATION_H
#define MESHWRIGHT_CODEGEN_COMMUNICATION_H

#include "Exec/Exec.h"

namespace meshwright::codegen {

struct Collective {
  mlir::Operation *op;
  unsigned group;
  mlir::Value input, output;
  /// Only of reductions.
  std::optional<train::ReduceKind> reduction;
  /// Elements, as the call counts them.
  int64_t count;

  mlir::Type getElementType() const {
    return llvm::cast<mlir::MemRefType>(input.getType()).getElementType();
  }
  /// "all_reduce"; the runtime's function is "mw_" and this.
  llvm::StringRef getName() const { return op->getName().stripDialect(); }
};

struct Communication {
  /// The mesh axes of each group.
  llvm::SmallVector<llvm::SmallVector<llvm::StringRef>> groups;
  llvm::SmallVector<Collective> collectives;

  explicit Communication(mlir::ModuleOp module);
  /// The number of the group along `axes`, which some op of the module names.
  unsigned groupOf(mlir::ArrayAttr axes) const;
  /// The number of a collective, or -1 if `op` is none.
  int64_t find(mlir::Operation *op) const;
};

} // namespace meshwright::codegen

#endif // MESHWRIGHT_CODEGEN_COMMUNICATION_H
