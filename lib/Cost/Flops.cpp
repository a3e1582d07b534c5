//===- Flops.cpp - floating-point operations of a program -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Cost/Flops.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::cost;

double FlopCounter::of(Operation *op, Attribute again) {
  bool runsOthers =
      op->getNumRegions() > 0 || isa<train::TripCountOpInterface, CallOpInterface>(op);
  Attribute mark = op->getAttr(train::recomputedAttr);
  if (again && mark != again && (mark || !runsOthers))
    return 0;
  if (!runsOthers) {
    auto cost = dyn_cast<train::CostOpInterface>(op);
    bool counts = cost && (counted == All || !isa<train::KernelOpInterface>(op));
    return counts ? cost.getFlops() : 0;
  }
  // All that is inside of what is marked runs again.
  Attribute inside = mark ? Attribute() : again;
  double runs = tripCount(op), sum = 0;
  if (runs == 0)
    return 0;
  Operation *callee = calleeOf(op, symbols);
  if (callee) {
    auto found = callees.find({callee, inside});
    if (found != callees.end())
      return runs * found->second;
  }
  for (Region &region : (callee ? callee : op)->getRegions())
    for (Block &block : region)
      sum += of(block, inside);
  if (callee)
    callees[{callee, inside}] = sum;
  return runs * sum;
}

double FlopCounter::of(Block &block, Attribute again) {
  double sum = 0;
  for (Operation &op : block)
    sum += of(&op, again);
  return sum;
}
