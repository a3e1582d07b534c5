//===- World.h - what simulated ranks share ---------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_INTERPRETER_WORLD_H
#define MESHWRIGHT_INTERPRETER_WORLD_H

#include "meshwright/Interpreter.h"

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <tuple>

namespace meshwright::interp {

/// The ranks of a run, where they meet and what they send each other. A rank's
/// thread holds `mutex` whenever it runs and gives it up only in `wait`, so one
/// rank runs at a time and nothing else here needs locks.
class World {
public:
  World(mlir::ModuleOp module, int64_t ranks, Precision precision)
      : module(module), ranks(ranks), precision(precision), states(ranks), waitingAt(ranks) {}

  /// One collective, from the first member's arrival to the last one's departure.
  struct Meeting {
    mlir::Operation *op = nullptr; ///< of the first member
    int64_t firstRank = 0;
    std::vector<TensorList> operands, results;
    size_t arrived = 0;
    bool done = false;
  };
  using Channel = std::tuple<int64_t, int64_t, int64_t>; ///< from, to, channel

  /// Blocks `rank` at `op` until someone calls `wake(rank)`. Fails if the run has
  /// failed meanwhile, or if no rank is left that could call.
  llvm::LogicalResult wait(int64_t rank, mlir::Operation *op);
  void wake(int64_t rank);
  /// To be called by a rank's thread at its end.
  void finish(llvm::LogicalResult result);
  /// Prepares for the next run.
  void reset();

  const mlir::ModuleOp module;
  const int64_t ranks;
  const Precision precision;
  std::vector<State> states;
  Observer observer; ///< or null

  std::mutex mutex;
  std::condition_variable changed;
  bool failed = false;
  /// Meetings that are not complete, by group.
  std::map<std::vector<int64_t>, std::shared_ptr<Meeting>> meetings;
  std::map<Channel, std::deque<Tensor>> mail;

private:
  /// Reports who waits where, if nobody can go on.
  void checkDeadlock();

  std::vector<mlir::Operation *> waitingAt;
  int64_t finished = 0;
};

} // namespace meshwright::interp

#endif // MESHWRIGHT_INTERPRETER_WORLD_H
