//===- HostCopies.h - what the device has copies of -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_HOSTCOPIES_H
#define MESHWRIGHT_LIB_EXEC_HOSTCOPIES_H

#include "Exec/Verify/ProgramWalk.h"

namespace meshwright::exec {

/// Tracks which memory of the device holds copies of memory of the host, and which of the two is
/// newer. A program is wrong if it reads the older one, or if it ends with changes on the device
/// that belong to variables or to `inouts` of the caller.
class HostCopies {
public:
  explicit HostCopies(ProgramOp program) : program(program) {}

  /// Walks the program; an error names the op that reads an outdated value or loses a changed one.
  mlir::LogicalResult verify();

private:
  /// `changed` is the op that has written the device's copy since the last copy, `outdated` the
  /// op that has written the host's.
  struct Copy {
    PartAccess device, host;
    mlir::Operation *changed = nullptr, *outdated = nullptr;
  };
  /// Memory of the host whose changed copy is lost.
  struct Lost {
    PartAccess host;
    mlir::Operation *changed;
  };

  mlir::LogicalResult visit(mlir::Operation *op, const ProgramWalk &walk);
  mlir::LogicalResult read(mlir::Operation *op, const PartAccess &part);
  void write(mlir::Operation *op, const PartAccess &part);
  void overwriteHost(mlir::Operation *op, const PartAccess &host);
  void fetch(const PartAccess &host, const PartAccess &device);
  void store(mlir::Operation *op, const PartAccess &device, const PartAccess &host);
  void dropCopies(const PartAccess &device);
  mlir::LogicalResult checkEnd();

  ProgramOp program;
  llvm::SmallVector<Copy> copies;
  llvm::SmallVector<Lost> lost;
};

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_HOSTCOPIES_H
