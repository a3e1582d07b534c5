//===- HostCopies.h - what the device has copies of -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_HOSTCOPIES_H
#define MESHWRIGHT_LIB_EXEC_HOSTCOPIES_H

#include "ProgramReader.h"

namespace meshwright::exec {

/// Tracks which memory of the device holds copies of memory of the host, and which of the two is
/// newer. A program is wrong if it reads the older one, or if it ends with changes on the device
/// that belong to variables or to `inouts` of the caller.
class HostCopies {
public:
  /// An error names the op that reads an outdated value or loses a changed one.
  mlir::LogicalResult visit(const ProgramReader &reader, mlir::Operation *op,
                            llvm::ArrayRef<Access> accesses);
  mlir::LogicalResult checkEnd(const ProgramReader &reader) const;

  bool operator==(const HostCopies &other) const {
    return copies == other.copies && lost == other.lost;
  }
  /// What may be so after either of two runs.
  void join(const HostCopies &other);

private:
  /// `changed` is the op that has written the device's copy since the last copy, `outdated` the
  /// op that has written the host's.
  struct Copy {
    Access device, host;
    mlir::Operation *changed = nullptr, *outdated = nullptr;
    bool operator==(const Copy &other) const {
      return device == other.device && host == other.host && changed == other.changed &&
             outdated == other.outdated;
    }
  };
  /// Memory of the host whose changed copy is lost.
  struct Lost {
    Access host;
    mlir::Operation *changed;
    bool operator==(const Lost &other) const {
      return host == other.host && changed == other.changed;
    }
  };

  mlir::LogicalResult read(const ProgramReader &reader, mlir::Operation *op,
                           const Access &part) const;
  void write(mlir::Operation *op, const Access &part);
  void overwriteHost(mlir::Operation *op, const Access &host);
  void fetch(const Access &host, const Access &device);
  void store(mlir::Operation *op, const Access &device, const Access &host);
  void dropCopies(const Access &device);

  llvm::SmallVector<Copy> copies;
  llvm::SmallVector<Lost> lost;
};

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_HOSTCOPIES_H
