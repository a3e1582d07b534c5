//===- DeviceCopies.h - what the device has copies of ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_DEVICECOPIES_H
#define MESHWRIGHT_LIB_EXEC_DEVICECOPIES_H

#include "ProgramReader.h"

namespace meshwright::exec {

/// Tracks which memory of the device holds copies of offloaded memory, and which of the two is newer. A program is wrong if it reads the older one, or if it ends with changes on the device
/// that belong to variables or to `inouts` of the caller.
class DeviceCopies {
public:
  /// An error names the op that reads an outdated value or loses a changed one.
  mlir::LogicalResult visit(const ProgramReader &reader, mlir::Operation *op,
                            llvm::ArrayRef<Access> accesses);
  mlir::LogicalResult checkEnd(const ProgramReader &reader) const;

  bool operator==(const DeviceCopies &other) const {
    return copies == other.copies && lost == other.lost;
  }
  /// What may be so after either of two runs.
  void join(const DeviceCopies &other);

private:
  /// `changed` is the op that has written the device's copy since the last copy, `outdated` the
  /// op that has written the origin.
  struct Copy {
    Access device, origin;
    mlir::Operation *changed = nullptr, *outdated = nullptr;
    bool operator==(const Copy &other) const {
      return device == other.device && origin == other.origin && changed == other.changed &&
             outdated == other.outdated;
    }
  };
  /// Offloaded memory whose changed copy is lost.
  struct Lost {
    Access origin;
    mlir::Operation *changed;
    bool operator==(const Lost &other) const {
      return origin == other.origin && changed == other.changed;
    }
  };

  mlir::LogicalResult read(const ProgramReader &reader, mlir::Operation *op,
                           const Access &part) const;
  void write(mlir::Operation *op, const Access &part);
  void overwriteOrigin(mlir::Operation *op, const Access &origin);
  void fetch(const Access &origin, const Access &device);
  void store(mlir::Operation *op, const Access &device, const Access &origin);
  void dropCopies(const Access &device);

  llvm::SmallVector<Copy> copies;
  llvm::SmallVector<Lost> lost;
};

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_DEVICECOPIES_H
