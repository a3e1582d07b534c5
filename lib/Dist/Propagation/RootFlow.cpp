//===- RootFlow.cpp - what only one device of each group computes -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "RootFlow.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

void RootFlow::run(const Structure &structure, MutableArrayRef<ShardedOp> ops,
                   llvm::DenseMap<Value, AxisMask> seeds) {
  roots = std::move(seeds);
  bool changed = true;
  auto add = [&](Value value, AxisMask mask) {
    AxisMask &have = roots[value];
    changed |= (have | mask) != have;
    have |= mask;
  };
  while (changed) {
    changed = false;
    for (ShardedOp &sharded : ops) {
      for (Value operand : sharded.op->getOperands())
        sharded.root |= of(operand);
      for (Value result : sharded.op->getResults())
        add(result, sharded.root);
    }
    for (const ValueBinding &h : structure.bindings) {
      auto constrain = h.to ? h.to.getDefiningOp<ConstrainOp>() : ConstrainOp();
      if (h.to && !(constrain && constrain.getBoundary()))
        add(h.to, of(h.use->get()));
    }
    for (auto [argument, result] : structure.carried) {
      add(argument, of(result));
      add(result, of(argument));
    }
  }
}
