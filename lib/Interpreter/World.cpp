//===- World.cpp - simulated ranks and how they meet ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Interpreter/World.h"

#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace meshwright::interp;

LogicalResult World::wait(int64_t rank, Operation *op) {
  std::unique_lock<std::mutex> lock(mutex, std::adopt_lock);
  waitingAt[rank] = op;
  checkDeadlock();
  changed.wait(lock, [&] { return failed || !waitingAt[rank]; });
  lock.release(); // Still held: the rank runs on.
  waitingAt[rank] = nullptr;
  return success(!failed);
}

void World::wake(int64_t rank) {
  waitingAt[rank] = nullptr;
  changed.notify_all();
}

void World::finish(LogicalResult result) {
  ++finished;
  if (mlir::failed(result)) {
    failed = true;
    changed.notify_all();
    return;
  }
  checkDeadlock();
}

void World::checkDeadlock() {
  if (failed)
    return;
  int64_t waiting = 0, first = -1;
  for (int64_t rank = ranks - 1; rank >= 0; --rank)
    if (waitingAt[rank]) {
      ++waiting;
      first = rank;
    }
  if (waiting == 0 || waiting + finished < ranks)
    return;
  InFlightDiagnostic error = waitingAt[first]->emitError()
                             << "deadlock: rank " << first
                             << " waits here for ranks that will not come";
  for (int64_t rank = 0; rank < ranks; ++rank) {
    if (rank == first)
      continue;
    if (waitingAt[rank])
      error.attachNote(waitingAt[rank]->getLoc())
          << "rank " << rank << " waits at '" << waitingAt[rank]->getName() << "'";
    else
      error.attachNote() << "rank " << rank << " has ended";
  }
  error.report();
  failed = true;
  changed.notify_all();
}

void World::reset() {
  failed = false;
  finished = 0;
  meetings.clear();
  mail.clear();
  std::fill(waitingAt.begin(), waitingAt.end(), nullptr);
}

//===--- a rank's side ------------------------------------------------------===//

int64_t RankContext::ranks() const { return world.ranks; }
ModuleOp RankContext::module() const { return world.module; }
State &RankContext::state() { return world.states[myRank]; }

void RankContext::send(int64_t to, int64_t channel, Tensor value) {
  world.mail[{myRank, to, channel}].push_back(std::move(value));
  world.wake(to); // Looks again whether it is the one it waits for.
}

FailureOr<Tensor> RankContext::receive(Operation *op, int64_t from, int64_t channel) {
  std::deque<Tensor> &box = world.mail[{from, myRank, channel}];
  while (box.empty())
    if (mlir::failed(world.wait(myRank, op)))
      return failure();
  Tensor value = box.front();
  box.pop_front();
  return value;
}

LogicalResult RankContext::meet(Operation *op, TensorList &operands, TensorList &results) {
  auto collective = cast<InterpretableCollectiveOpInterface>(op);
  FailureOr<SmallVector<int64_t>> group = collective.getGroup(*this);
  if (mlir::failed(group))
    return failure();
  size_t groupRank = llvm::find(*group, myRank) - group->begin();
  if (groupRank == group->size())
    return op->emitError() << "rank " << myRank << " is not a member of its own group";

  std::shared_ptr<World::Meeting> &open = world.meetings[{group->begin(), group->end()}];
  if (!open) {
    open = std::make_shared<World::Meeting>();
    open->op = op;
    open->firstRank = myRank;
    open->operands.resize(group->size());
    open->results.resize(group->size());
  }
  std::shared_ptr<World::Meeting> meeting = open;
  if (meeting->op->getName() != op->getName()) {
    auto error = op->emitError() << "rank " << myRank << " is at this op while rank "
                                 << meeting->firstRank << " of its group is at '"
                                 << meeting->op->getName() << "'";
    error.attachNote(meeting->op->getLoc()) << "rank " << meeting->firstRank << " is here";
    return error;
  }
  meeting->operands[groupRank] = operands;
  if (++meeting->arrived < group->size()) {
    while (!meeting->done)
      if (mlir::failed(world.wait(myRank, op)))
        return failure();
  } else {
    // Closed: the next one of this group is another meeting.
    world.meetings.erase({group->begin(), group->end()});
    if (mlir::failed(
            collective.interpretCollective(*group, meeting->operands, meeting->results, *this)))
      return failure();
    meeting->done = true;
    for (int64_t member : *group)
      world.wake(member);
  }
  results = meeting->results[groupRank];
  return success();
}
