//===- Liveness.h - when buffers of a program hold something ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_LIVENESS_H
#define MESHWRIGHT_LIB_EXEC_LIVENESS_H

#include "Exec/Exec.h"
#include "Lifetime.h"

namespace meshwright::exec {

/// One op that uses a buffer or a part of it.
struct OpAccess {
  mlir::Operation *op;
  bool reads, writes;
};

/// Time runs over the ops of a program in the order they are written, a loop's
/// body between the loop and its yield.
class ProgramLiveness {
public:
  explicit ProgramLiveness(ProgramOp program);

  /// The number of an op of the program.
  int64_t numberOf(mlir::Operation *op) const { return begins.at(op); }

  /// The number of ops.
  int64_t size() const { return count; }

  /// All uses of a buffer or an argument, in the order of the program.
  llvm::SmallVector<OpAccess> accesses(mlir::Value memory) const;

  /// The first and last op at which the buffer must keep what is in it. A
  /// buffer that a loop's body reads before it writes keeps its contents from one
  /// iteration to the next, so it lives through the whole loop; so does one that a
  /// collective uses for which an earlier op of the body waits. Nothing if it is not
  /// used. `uninitialized` is the op that reads what nothing wrote, if any.
  std::optional<std::pair<int64_t, int64_t>> range(mlir::Value memory,
                                                   mlir::Operation **uninitialized = nullptr) const;

  /// The life of a buffer, or nothing if it is not used: its range, and how the loops at the
  /// range's beginning and end fill and empty it. They do if they reach it by the slots of their
  /// own iterations alone, which are 1,024 at most, and if no op that runs beside others uses it.
  std::optional<Lifetime> life(BufferOp buffer) const;

private:
  void number(mlir::Block &block);
  std::optional<SlotLife> slotsIn(LoopOp loop, BufferOp buffer, llvm::ArrayRef<OpAccess> accesses,
                                  bool fills) const;
  void addWaits(mlir::Operation *start, llvm::SmallVectorImpl<mlir::Operation *> &ops) const;
  std::optional<std::pair<int64_t, int64_t>> rangeOf(llvm::ArrayRef<OpAccess> list,
                                                     mlir::Operation **uninitialized) const;
  void collect(mlir::Value memory, llvm::SmallDenseMap<mlir::Operation *, OpAccess> &found) const;

  struct OperandUse {
    bool reads = false, writes = false;
  };
  /// By operand; kept, since a call of a task has many operands.
  llvm::ArrayRef<OperandUse> usesOf(mlir::Operation *op) const;

  int64_t count = 0;
  llvm::DenseMap<int64_t, llvm::SmallVector<mlir::Operation *, 2>> waits; ///< by number
  llvm::DenseMap<mlir::Operation *, int64_t> begins, ends;
  mutable llvm::DenseMap<mlir::Operation *, llvm::SmallVector<OperandUse, 0>> operandUses;
};

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_LIVENESS_H
