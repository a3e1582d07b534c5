//===- TripCount.cpp - how often ops run ------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Cost/TripCount.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;

double cost::tripCount(Operation *op, Rounds rounds) {
  auto runs = dyn_cast<train::TripCountOpInterface>(op);
  return runs ? runs.getTripCount(rounds) : 1;
}

int64_t cost::runsOf(Operation *op, Rounds rounds) {
  double runs = 1;
  for (Operation *around = op->getParentOp();
       around && !around->hasTrait<OpTrait::IsIsolatedFromAbove>(); around = around->getParentOp())
    runs *= tripCount(around, rounds);
  return std::llround(runs); // Shares of iterations need not be exact.
}

Operation *cost::calleeOf(Operation *op, SymbolTableCollection &symbols) {
  SymbolRefAttr name;
  if (auto runs = dyn_cast<train::TripCountOpInterface>(op))
    name = runs.getCalleeAttr();
  else if (auto call = dyn_cast<CallOpInterface>(op))
    name = dyn_cast<SymbolRefAttr>(call.getCallableForCallee());
  return name ? symbols.lookupNearestSymbolFrom(op, name) : nullptr;
}

static void visitRuns(Block &block, double runs, cost::Rounds rounds,
                      SymbolTableCollection &symbols,
                      llvm::function_ref<void(Operation *, double)> visit) {
  for (Operation &op : block) {
    Operation *callee = cost::calleeOf(&op, symbols);
    if (!callee && op.getNumRegions() == 0) {
      visit(&op, runs);
      continue;
    }
    double inside = runs * cost::tripCount(&op, rounds);
    if (inside > 0)
      for (Region &region : (callee ? callee : &op)->getRegions())
        for (Block &body : region)
          visitRuns(body, inside, rounds, symbols, visit);
  }
}

void cost::forEachRun(Block &block, Rounds rounds, SymbolTableCollection &symbols,
                      llvm::function_ref<void(Operation *, double)> visit) {
  visitRuns(block, 1, rounds, symbols, visit);
}
