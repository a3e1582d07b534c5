//===- Run.cpp - one run of a program ----------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Run.h"
#include "Contents.h"
#include "DeviceCopies.h"
#include "InFlight.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

namespace {
/// What a run has done to memory so far.
struct State {
  Contents contents;
  InFlight inFlight;
  DeviceCopies copies;

  bool operator==(const State &other) const {
    return contents == other.contents && inFlight == other.inFlight && copies == other.copies;
  }
  void join(const State &other) {
    contents.join(other.contents);
    inFlight.join(other.inFlight);
    copies.join(other.copies);
  }
};

class Run {
public:
  explicit Run(ProgramOp program) : reader(program), iterations(reader.loops.size()) {}

  LogicalResult run() {
    if (failed(run(reader.steps)) || failed(state.contents.checkEnd(reader)) ||
        failed(state.inFlight.checkEnd()))
      return failure();
    return state.copies.checkEnd(reader);
  }

private:
  LogicalResult run(ArrayRef<Step> steps);
  LogicalResult runLoop(const Step &step);
  LogicalResult visit(const Step &step);

  ProgramReader reader;
  SmallVector<int64_t> iterations; ///< the present ones, by loop
  SmallVector<Access> accesses;
  State state;
};
} // namespace

LogicalResult Run::visit(const Step &step) {
  reader.accesses(step, iterations, accesses);
  if (failed(state.contents.visit(reader, step.op, accesses)) ||
      failed(state.inFlight.visit(reader, step.op, accesses)))
    return failure();
  return reader.usesOffloaded ? state.copies.visit(reader, step.op, accesses) : success();
}

LogicalResult Run::run(ArrayRef<Step> steps) {
  for (const Step &step : steps) {
    if (isa<LoopOp>(step.op)) {
      if (failed(visit(step)) || failed(runLoop(step)))
        return failure();
    } else if (auto when = dyn_cast<WhenOp>(step.op)) {
      int64_t iteration = iterations[step.loop];
      if (iteration >= int64_t(when.getBegin()) && iteration < int64_t(when.getEnd()) &&
          failed(run(step.body)))
        return failure();
    } else if (failed(visit(step))) {
      return failure();
    }
  }
  return success();
}

LogicalResult Run::runLoop(const Step &step) {
  const Loop &loop = reader.loops[step.loop];
  int64_t count = loop.count(), by = loop.by();
  // Between two of these numbers of iterations no condition changes.
  SmallVector<int64_t> changes{count};
  for (int64_t bound : loop.bounds)
    changes.push_back(by > 0 ? bound - loop.first : loop.first - bound + 1);
  llvm::sort(changes);
  bool mayEnd = bool(cast<LoopOp>(step.op).getTimes());
  State ends;
  if (mayEnd)
    ends = state;
  // The state some iterations ago, since when conditions are the same.
  std::optional<State> before;
  int64_t at = 0;
  for (int64_t done = 0; done < count; ++done) {
    if (!loop.differs) {
      int64_t change = *llvm::find_if(changes, [&](int64_t number) { return number > done; });
      if (llvm::is_contained(changes, done))
        before.reset();
      if (!before || done - at == loop.period) {
        if (before && *before == state) {
          // From here on it goes round and round.
          done += (change - done) / loop.period * loop.period;
          before.reset();
          if (done == count)
            break;
        }
        if (change - done > loop.period) {
          before = state;
          at = done;
        }
      }
    }
    iterations[step.loop] = loop.first + done * by;
    if (failed(run(step.body)))
      return failure();
    if (mayEnd)
      ends.join(state);
  }
  if (mayEnd)
    state = std::move(ends);
  return success();
}

LogicalResult exec::verifyRun(ProgramOp program) { return Run(program).run(); }
