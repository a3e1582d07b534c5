//===- Communication.h - what groups and collectives are --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// What the plan, generated calls and traces say of communicator groups and of collectives.
// exec-number-collectives has given both their numbers, the rows of the plan's tables.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_COMMUNICATION_H
#define MESHWRIGHT_COMMUNICATION_H

#include "Exec/Exec.h"
#include "meshwright/runtime/Traffic.h"

namespace meshwright::codegen {

struct Collective {
  /// One tensor of the call: null where nothing is sent or received.
  struct Segment {
    mlir::Value source, target;
    /// Elements, as the call counts them.
    int64_t count;
  };
  mlir::Operation *op;
  unsigned group;
  int64_t members = 1;
  llvm::SmallVector<Segment> segments = {};
  /// Bytes that the group's members send each other in one call.
  int64_t groupBytes = 0;
  /// Memory that each member allocates for the call, if they send messages.
  Scratch scratch = {};
  /// How often the call is made in one run of `step` and of `eval`, where it is made.
  llvm::SmallVector<std::pair<llvm::StringRef, int64_t>, 2> runs = {};

  mlir::Type getElementType() const;
  /// Elements of all segments.
  int64_t getCount() const;
  /// "all_reduce"; the runtime's function is "mw_" and this.
  llvm::StringRef getName() const { return op->getName().stripDialect(); }
};

struct Communication {
  /// The mesh axes of each group.
  llvm::SmallVector<llvm::SmallVector<llvm::StringRef>> groups;
  /// Bytes that each group's communicator allocates at most.
  llvm::SmallVector<int64_t> scratchBytes;
  llvm::SmallVector<Collective> collectives;

  /// The module must have passed exec-verify.
  explicit Communication(mlir::ModuleOp module);
  /// The number of a group, which some op of the module names.
  unsigned numberOf(mlir::ArrayAttr group) const {
    return llvm::find(numbered, group) - numbered.begin();
  }

private:
  mlir::ArrayAttr numbered;
};

} // namespace meshwright::codegen

#endif // MESHWRIGHT_COMMUNICATION_H
