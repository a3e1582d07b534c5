//===- ProgramWalk.h - a program's ops as they would run --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_PROGRAMWALK_H
#define MESHWRIGHT_LIB_EXEC_PROGRAMWALK_H

#include "Exec/Exec.h"

#include <functional>

namespace meshwright::exec {

/// Bytes that an op reads or writes: of the arena, whose root is null, or of the host's, of a
/// buffer or of a program's argument.
struct PartAccess {
  mlir::Value root;
  int64_t begin, end;
  bool writes;
  bool onHost = false;

  /// Whether the two may not change places.
  bool conflicts(const PartAccess &other) const {
    return root == other.root && onHost == other.onHost && begin < other.end && other.begin < end && (writes || other.writes);
  }
};

/// A collective or a copy that has been started and that nothing has waited for yet.
struct PendingStart {
  mlir::Operation *op;
  int64_t number;
  llvm::SmallVector<PartAccess> accesses;
  /// False once a wait for a later one of its queue, or one that is not only started, has
  /// waited for it too.
  bool runs = true;
};

class ProgramWalk {
public:
  /// `inArena`: places are those that buffers have in the arena; otherwise each buffer is
  /// memory of its own.
  ProgramWalk(ProgramOp program, bool inArena) : program(program), inArena(inArena) {}

  /// Calls `visit` for all ops but structure and places, in the order in which the program
  /// runs them, until it returns false; whether it never did. Of loops that run often the
  /// first and the last iterations, the same ones in both directions, so that slots that are taken
  /// in turns stay so. An op that `visit` puts before the one it is called for is not visited, but
  /// in iterations that come later.
  bool run(llvm::function_ref<bool(mlir::Operation *)> visit);

  /// Called where iterations of a loop are left out, before the next one.
  std::function<void()> onSkip;

  /// Makes `iteration` the present one of `loop`.
  void setIteration(LoopOp loop, int64_t iteration) { iterations[loop.getIndex()] = iteration; }
  /// What `op` reads and writes in the present iterations; 0 where none has been set.
  llvm::SmallVector<PartAccess> accesses(mlir::Operation *op) const;

  /// What runs now and `op` has to wait for; nothing of the queue that `op` is in, which
  /// runs in order anyway.
  llvm::SmallVector<const PendingStart *> conflicts(mlir::Operation *op) const;
  /// To be called once `op` has run. What is started is pending until a wait of its own
  /// number: so lives can be told from these alone.
  void step(mlir::Operation *op);

  /// What runs now, in the order of the starts.
  llvm::SmallVector<PendingStart> pending;

private:
  bool run(mlir::Block &block, llvm::function_ref<bool(mlir::Operation *)> visit);
  bool run(LoopOp loop, llvm::function_ref<bool(mlir::Operation *)> visit);
  PartAccess partOf(mlir::Value memory) const;

  ProgramOp program;
  bool inArena;
  llvm::DenseMap<mlir::Value, int64_t> iterations; ///< by loop's number
};

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_PROGRAMWALK_H
