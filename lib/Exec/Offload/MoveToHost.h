//===- MoveToHost.h - one piece of memory from the arena to the host ---------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_MOVETOHOST_H
#define MESHWRIGHT_LIB_EXEC_MOVETOHOST_H

#include "Exec/Memory/Liveness.h"

#include "llvm/ADT/MapVector.h"

namespace meshwright::exec {

/// How a program uses a buffer or an argument.
struct HostUses {
  /// In a loop, each iteration its own slot.
  struct Slots {
    llvm::SmallVector<SlotOp> slots;
    llvm::SmallVector<Access> accesses; ///< in the order of the program
    bool fetches() const { return accesses.front().reads; }
    bool writes() const {
      return llvm::any_of(accesses, [](const Access &access) { return access.writes; });
    }
    mlir::MemRefType type() const { return SlotOp(slots.front()).getSlice().getType(); }
  };
  llvm::MapVector<LoopOp, Slots> loops;
  /// All of it, or parts that no loop counts.
  llvm::SmallVector<mlir::OpOperand *> whole;
  /// As what a called program gets.
  llvm::SmallVector<mlir::OpOperand *> calls;

  HostUses(mlir::Value root, const ProgramLiveness &liveness);

private:
  void collect(mlir::Value memory, const ProgramLiveness &liveness);
  void collectWhole(mlir::Value part);
};

/// What a piece of memory is to the program, which says which copies are needed.
enum class Kept {
  Always, ///< a variable: what an iteration leaves is there in the next run
  Handed, ///< a stack: a loop that does not read a slot first writes all of it
  Scratch ///< a stack whose only reader may write over it: nobody sees what it leaves there
};

/// Moves `root`, which no op uses but those in `uses`, to the host. Ops use buffers of
/// category `category` instead, to and from which copies are started, with numbers from `number`
/// on. `number` becomes the next one. Waits stand where copies of one number follow each other,
/// others are still to be placed (`placeWaits`).
void moveToHost(mlir::Value root, HostUses &uses, Kept kept, Category category, int64_t &number);

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_MOVETOHOST_H
