//===- MoveOffDevice.h - one piece of memory to an offload space -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_MOVEOFFDEVICE_H
#define MESHWRIGHT_LIB_EXEC_MOVEOFFDEVICE_H

#include "Exec/Memory/Liveness.h"

#include "llvm/ADT/MapVector.h"

namespace meshwright::exec {

/// How a program uses a buffer or an argument.
struct OffloadUses {
  /// In a loop, each iteration its own slot.
  struct Slots {
    llvm::SmallVector<SlotOp> slots;
    llvm::SmallVector<OpAccess> accesses; ///< in the order of the program
    bool fetches() const { return accesses.front().reads; }
    bool writes() const {
      return llvm::any_of(accesses, [](const OpAccess &access) { return access.writes; });
    }
    mlir::MemRefType type() const { return SlotOp(slots.front()).getSlice().getType(); }
  };
  llvm::MapVector<LoopOp, Slots> loops;
  /// All of it, or parts that no loop counts.
  llvm::SmallVector<mlir::OpOperand *> whole;
  /// As what a called program gets.
  llvm::SmallVector<mlir::OpOperand *> calls;

  OffloadUses(mlir::Value root, const ProgramLiveness &liveness);

private:
  void collect(mlir::Value memory, const ProgramLiveness &liveness);
  void collectWhole(mlir::Value part);
};

/// Whether `use` is of a kernel that goes through its operands element by element, as a sum of squares
/// does. It takes as long in memory of a space with addresses as a copy of that would.
bool isInOrder(mlir::OpOperand *use);

/// How a program uses memory, which decides which copies are needed.
enum class Kept {
  Always, ///< a variable: its contents must survive the program
  Handed, ///< a stack: a loop that does not read a slot first writes the whole slot
  Scratch, ///< a stack whose only reader may overwrite it: nobody reads it afterwards
  UntilUpdate ///< a gradient: what an update's loop writes over it is kept if something behind it reads that
};

/// Moves `root`, which only the ops in `uses` use, to `space`. These ops get buffers of category
/// `category` instead, with asynchronous copies from and to `root`. Async tokens are numbered from
/// `number` on; `number` becomes the next free one. Waits are inserted between copies with one
/// token; `insertWaits` has to insert all others. Of parameters and gradients no buffer is as large as all
/// layers if kernels alone use all of them, in order, and the space has addresses: these kernels read and write there.
void moveOffDevice(mlir::Value root, MemorySpace space, OffloadUses &uses, Kept kept, Category category,
                   int64_t &number);

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_MOVEOFFDEVICE_H
