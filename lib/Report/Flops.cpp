//===- Flops.cpp - floating-point operations of a program -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Flops.h"

#include "Dist/AttentionPairs.h"
#include "Dist/Dist.h"
#include "meshwright/runtime/VisiblePairs.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::report;

/// Products over the visible part of queries x keys: so many over elements of q and k, and of v.
/// Devices that divide the queries, or the keys, share a program, which says what they do on average,
/// and what that of `rank` does.
template <typename Op>
static double attentionFlops(Op op, int64_t keys, int64_t values, std::optional<int64_t> rank) {
  MwAttention shape = op.getAttention();
  double pairs = shape.partial ? op.getPairs().convertToDouble()
                               : visiblePairs(shape.queries, shape.globalQueries, shape.keys,
                                              shape.causal, shape.window);
  auto each = op->template getAttrOfType<DenseI64ArrayAttr>(dist::attentionPairsAttr);
  if (rank && each && *rank < each.size())
    pairs = double(each[*rank]);
  return 2.0 * double(shape.batch) * double(shape.heads) *
         double(keys * shape.headDim + values * shape.valueDim) * pairs;
}

double FlopCounter::of(Operation *op, bool again) {
  if (rank && !isa<exec::LoopOp, exec::WhenOp, exec::CallOp, exec::AttentionOp, exec::AttentionGradOp>(op))
    return 0;
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
      .Case<exec::AttentionOp>([&](auto op) { return attentionFlops(op, 1, 1, rank); })
      // The scores again, and two products for each of the two.
      .Case<exec::AttentionGradOp>([&](auto op) { return attentionFlops(op, 3, 2, rank); })
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

std::optional<double> report::attentionImbalance(ModuleOp program) {
  int64_t ranks = 0;
  program.walk([&](Operation *op) {
    if (auto pairs = op->getAttrOfType<DenseI64ArrayAttr>(dist::attentionPairsAttr))
      ranks = std::max<int64_t>(ranks, pairs.size());
  });
  double most = 0, sum = 0;
  for (auto step : program.getOps<exec::ProgramOp>())
    for (int64_t rank = 0; rank < ranks && step.getSymName() == "step"; ++rank) {
      double work = FlopCounter(rank).of(step.getBlock());
      most = std::max(most, work), sum += work;
    }
  if (sum == 0)
    return {};
  return most * double(ranks) / sum;
}
