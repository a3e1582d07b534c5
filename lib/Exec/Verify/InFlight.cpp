//===- InFlight.cpp - asynchronous ops that may still run -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "InFlight.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

LogicalResult InFlight::visit(const ProgramReader &reader, Operation *op,
                              ArrayRef<Access> accesses) {
  if (auto wait = dyn_cast<WaitOp>(op)) {
    llvm::erase_if(started, [&](const Started &other) {
      return other.token == int64_t(wait.getAsyncToken());
    });
    return success();
  }
  std::optional<Queue> queue = queueOf(op);
  for (const Started &other : started) {
    if (queue == other.queue)
      continue;
    for (const Access &mine : accesses)
      for (const Access &theirs : other.accesses)
        if ((mine.writes || theirs.writes) && reader.overlap(mine, theirs)) {
          InFlightDiagnostic error = op->emitOpError("touches memory of ")
                                     << (isa<CopyOp>(other.op) ? "copy " : "collective ")
                                     << other.token << ", which may still run";
          error.attachNote(other.op->getLoc()) << "it is started here";
          return error;
        }
  }
  if (std::optional<int64_t> token = asyncTokenOf(op))
    started.push_back({op, *token, *queue, SmallVector<Access>(accesses)});
  return success();
}

LogicalResult InFlight::checkEnd() const {
  if (started.empty())
    return success();
  return started.front().op->emitOpError("is started as ")
         << started.front().token << " and may still run when the program ends";
}

void InFlight::join(const InFlight &other) {
  for (const Started &op : other.started)
    if (!llvm::is_contained(started, op))
      started.push_back(op);
}
