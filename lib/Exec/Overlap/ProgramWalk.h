//===- ProgramWalk.h - a program's ops as they would run --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_PROGRAMWALK_H
#define MESHWRIGHT_LIB_EXEC_PROGRAMWALK_H

#include "Exec/Exec.h"

namespace meshwright::exec {

/// Bytes that an op reads or writes of a buffer or of an argument of the program.
struct PartAccess {
  mlir::Value root;
  int64_t begin, end;
  bool writes;

  /// Whether the order of the two matters.
  bool conflicts(const PartAccess &other) const {
    return root == other.root && begin < other.end && other.begin < end &&
           (writes || other.writes);
  }
};

/// An asynchronous collective or copy for which the program has not waited yet.
struct PendingOp {
  mlir::Operation *op;
  int64_t number;
  llvm::SmallVector<PartAccess> accesses;
  /// False once a wait on a later op of the same queue, or a synchronous op of the queue,
  /// implies that this one has ended.
  bool runs = true;
};

/// How the passes of this folder read a program. `exec-verify` does not: it judges them.
class ProgramWalk {
public:
  explicit ProgramWalk(ProgramOp program) : program(program) {}

  /// Calls `visit` for all ops except structure and ops that name memory, in the order in which
  /// the program runs them, and for a loop with `times`, which reads that, before its iterations,
  /// until `visit` returns false; returns whether it never did. Of long
  /// loops only the first and last iterations are walked, the same ones in both directions, so
  /// that iterations keep using double buffers in turn. An op that `visit` inserts before its
  /// argument is visited in later iterations only.
  bool run(llvm::function_ref<bool(mlir::Operation *)> visit);

  /// Makes `iteration` the present one of `loop`.
  void setIteration(LoopOp loop, int64_t iteration) { iterations[loop.getIndex()] = iteration; }
  /// The accesses of `op` in the present iterations; iteration 0 of loops for which none is set.
  llvm::SmallVector<PartAccess> accesses(mlir::Operation *op) const;
  /// Those of `op` and of all ops inside it, in any iteration of loops there.
  llvm::SmallVector<PartAccess> accessesInside(mlir::Operation *op) const;

  /// The running ops that `op` has to wait for, except those of its own queue, which run in
  /// order anyway. A loop with `times`, which may not run, waits for what any op inside it would.
  llvm::SmallVector<const PendingOp *> conflicts(mlir::Operation *op) const;
  /// Must be called once `op` has run. An asynchronous op stays pending until a wait with its
  /// own token, so that live intervals follow from these waits alone.
  void step(mlir::Operation *op);

  /// The running ops, in the order in which they started.
  llvm::SmallVector<PendingOp> pending;

private:
  bool run(mlir::Block &block, llvm::function_ref<bool(mlir::Operation *)> visit);
  bool run(LoopOp loop, llvm::function_ref<bool(mlir::Operation *)> visit);
  PartAccess partOf(mlir::Value memory) const;

  ProgramOp program;
  llvm::DenseMap<mlir::Value, int64_t> iterations; ///< by loop's number
};

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_PROGRAMWALK_H
