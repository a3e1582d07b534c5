//===- CopiedBytes.cpp - what a program copies between host and device -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "CopiedBytes.h"

using namespace mlir;
using namespace meshwright;

static void add(Block &block, int64_t times, report::CopiedBytes &sum) {
  for (Operation &op : block) {
    if (auto loop = dyn_cast<exec::LoopOp>(op)) {
      add(loop.getBlock(), times * int64_t(loop.getCount()), sum);
    } else if (auto when = dyn_cast<exec::WhenOp>(op)) {
      // So many of the iterations of the loop around it, once for each of those of other loops.
      int64_t iterations = when.getLoop().getCount();
      int64_t taken = std::min<int64_t>(when.getEnd(), iterations) - int64_t(when.getBegin());
      add(when.getBlock(), times / iterations * std::max<int64_t>(0, taken), sum);
    } else if (auto call = dyn_cast<exec::CallOp>(op)) {
      auto callee = SymbolTable::lookupNearestSymbolFrom<exec::ProgramOp>(call, call.getCalleeAttr());
      add(callee.getBlock(), times, sum);
    } else if (std::optional<exec::Queue> queue = exec::queueOf(&op)) {
      if (auto copy = dyn_cast<exec::CopyOp>(op))
        (queue == exec::Queue::ToHost ? sum.toHost : sum.toDevice) +=
            times * exec::bytesOf(copy.getSource().getType());
    }
  }
}

report::CopiedBytes report::copiedBytes(exec::ProgramOp program) {
  CopiedBytes sum;
  add(program.getBlock(), 1, sum);
  return sum;
}
