//===- HostCopies.h - what the device has copies of -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_HOSTCOPIES_H
#define MESHWRIGHT_LIB_EXEC_HOSTCOPIES_H

#include "Exec/Verify/ProgramWalk.h"

namespace meshwright::exec {

/// Follows which places of the device have copies of memory of the host, and which of the two is
/// newer. A program is wrong if it reads the older one, or ends while a place has what variables,
/// or callers who asked for it, should have.
class HostCopies {
public:
  explicit HostCopies(ProgramOp program) : program(program) {}

  /// Walks the program; an error at the op that reads something old or loses something new.
  mlir::LogicalResult verify();

private:
  /// `changed` is the op that has written the device's place since it was copied, `outdated` the
  /// one that has written the host's.
  struct Copy {
    PartAccess device, host;
    mlir::Operation *changed = nullptr, *outdated = nullptr;
  };
  /// Memory of the host whose changed copy nobody has any more.
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
