//===- Flops.cpp - floating-point operations of a program -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Flops.h"

#include "Dist/Dist.h"
#include "meshwright/runtime/VisiblePairs.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::report;

/// Products over the visible part of queries x keys: so many over elements of q and k, and of v.
/// Devices that divide the queries, or the keys, share a program, which says what they do on average.
template <typename Op> static double attentionFlops(Op op, int64_t keys, int64_t values) {
  MwAttention shape = op.getAttention();
  double pairs = shape.partial ? op.getPairs().convertToDouble()
                               : visiblePairs(shape.queries, shape.globalQueries, shape.keys,
                                              shape.causal, shape.window);
  return 2.0 * double(shape.batch) * double(shape.heads) *
         double(keys * shape.headDim + values * shape.valueDim) * pairs;
}

double FlopCounter::of(Operation *op, bool again) {
  bool marked = op->hasAttr(train::recomputedAttr);
  if (again && !marked && !isa<exec::LoopOp, exec::WhenOp, exec::CallOp>(op))
    return 0;
  return llvm::TypeSwitch<Operation *, double>(op)
      .Case<exec::LoopOp>([&](auto loop) {
        return double(loop.getCountedIterations()) * of(loop.getBlock(), again && !marked);
      })
      .Case<exec::WhenOp>([&](auto when) {
        return double(when.getEnd() - when.getBegin()) / double(when.getLoop().getCount()) *
               of(when.getBlock(), again && !marked);
      })
      .Case<exec::CallOp>([&](auto call) {
        auto callee =
            symbols.lookupNearestSymbolFrom<exec::ProgramOp>(call, call.getCalleeAttr());
        auto &known = callees[again && !marked];
        auto found = known.find(callee);
        if (found == known.end()) {
          double sum = of(callee.getBlock(), again && !marked);
          found = known.try_emplace(callee, sum).first;
        }
        return found->second;
      })
      .Case<exec::MatmulOp>([](auto op) {
        return 2.0 * double(op.getM()) * double(op.getN()) * double(op.getK()) *
               double(op.getBatch());
      })
      // A row meets one expert's matrix.
      .Case<exec::GroupedMatmulOp, exec::GroupedMatmulGradOp>([](auto op) {
        exec::ProductShape shape = op.getShape();
        return 2.0 * double(shape.m) * double(shape.n) * double(shape.k) *
               op.getFilled().convertToDouble();
      })
      .Case<exec::AttentionOp>([](auto op) { return attentionFlops(op, 1, 1); })
      // The scores again, and two products for each of the two.
      .Case<exec::AttentionGradOp>([](auto op) { return attentionFlops(op, 3, 2); })
      .Case<exec::LaunchOp>([](auto op) {
        double elements = 0;
        for (Value out : op.getOutputs())
          elements += double(cast<MemRefType>(out.getType()).getNumElements());
        return elements;
      })
      .Default(0.0);
}

double FlopCounter::of(Block &block, bool again) {
  double sum = 0;
  for (Operation &op : block)
    sum += of(&op, again);
  return sum;
}
