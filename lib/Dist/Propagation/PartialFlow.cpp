//===- PartialFlow.cpp - how far partial values go before they are summed ---===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Two fixed points. The first is optimistic: every value might be partial over
// every axis, and what contradicts that is taken away; what is left says where
// partial values may flow, loops included. The second starts from the sharded
// reductions and spreads along what is left. Where an addition or a loop then has
// a partial side, its other sides, which may be partial, become so too.
//
//===----------------------------------------------------------------------===//
#include "Dist/Propagation/PartialFlow.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

/// Whether the value is zero everywhere.
static bool isZero(Value value) {
  auto fill = value.getDefiningOp<train::FillOp>();
  return fill && fill.getValue().isZero();
}

static int64_t localElements(RankedTensorType type, const TensorFactors &tensor,
                             const FactorAxes &axes, const Mesh &mesh) {
  int64_t elements = type.getNumElements();
  for (const Axes &axesOfDim : dist::shardingOf(tensor, axes).dims)
    elements /= mesh.size(axesOfDim);
  return elements;
}

PartialFlow::PartialFlow(const Structure &structure, ArrayRef<ShardedOp> ops, const Mesh &mesh,
                         function_ref<AxisMask(Value)> shardedOver)
    : structure(structure), ops(ops), mesh(mesh), allAxes((AxisMask(1) << mesh.axes.size()) - 1) {
  for (const ValueBinding &h : structure.bindings)
    bindingOf[h.use] = &h;
  for (const ShardedOp &op : ops)
    sharded[op.op] = &op;
  for (auto [argument, result] : structure.carried) {
    carriedTwin[argument] = result;
    carriedTwin[result] = argument;
  }
  auto optimistic = [&](Value value) {
    State &s = states[value];
    s.possible = s.flows = allAxes & ~shardedOver(value);
    s.zero = isZero(value);
    s.elements = cast<RankedTensorType>(value.getType()).getNumElements();
    for (unsigned axis = 0; axis < mesh.axes.size(); ++axis)
      if (shardedOver(value) >> axis & 1)
        s.elements /= mesh.axes[axis].size;
  };
  for (const ShardedOp &op : ops)
    llvm::for_each(op.op->getResults(), optimistic);
  for (const ValueBinding &h : structure.bindings) {
    auto constrain = h.to ? h.to.getDefiningOp<ConstrainOp>() : ConstrainOp();
    if (!h.to || (constrain && !constrain.getBoundary()))
      continue;
    optimistic(h.to);
    State &s = states[h.to];
    if (constrain)
      s.possible = s.flows = s.possible & ~maskOf(constrain.getSharding().replicatedOn(mesh));
  }

  // What reductions reach if nothing stops them.
  for (bool changed = true; changed;) {
    changed = false;
    auto reach = [&](Value value, AxisMask mask) {
      State &s = states[value];
      changed |= (s.reachable | mask) != s.reachable;
      s.reachable |= mask;
    };
    for (const ShardedOp &op : ops) {
      AxisMask through = 0;
      for (OpOperand &use : op.op->getOpOperands()) {
        const TensorFactors &tensor = op.rule.operands[use.getOperandNumber()];
        if (tensor.linear || tensor.additive)
          through |= state(use.get()).reachable;
      }
      for (OpResult result : op.op->getResults())
        if (!op.rule.max)
          reach(result, partialFromReduction(op.rule, result.getResultNumber(), op.axes) |
                            (through & ~op.used()));
    }
    for (const ValueBinding &h : structure.bindings)
      if (h.to)
        reach(h.to, state(h.use->get()).reachable);
    for (auto [argument, result] : structure.carried)
      reach(argument, state(result).reachable);
  }
  for (const ShardedOp &op : ops)
    for (Value result : op.op->getResults())
      timesAccumulated(result);
  for (auto &[value, s] : states)
    if (movesMoreApart(value))
      s.flows = 0;
  while (mergePossible())
    ;
  while (spreadPartial())
    ;
}

/// Through how many iterations the argument, or what it is a slice of, is carried.
int64_t PartialFlow::iterationsCarried(BlockArgument argument) const {
  for (const ValueBinding &h : structure.bindings) {
    auto repeat = dyn_cast<train::RepeatOp>(h.use->getOwner());
    if (h.to != argument || !repeat)
      continue;
    if (carriedTwin.contains(argument))
      return repeat.getCount();
    if (auto outer = dyn_cast<BlockArgument>(h.use->get()))
      return iterationsCarried(outer);
  }
  return 1;
}

int64_t PartialFlow::timesAccumulated(Value value) {
  auto [it, isNew] = accumulated.try_emplace(value, 1);
  if (!isNew)
    return it->second;
  int64_t times = 1;
  for (OpOperand &use : value.getUses()) {
    const ShardedOp *op = sharded.lookup(use.getOwner());
    if (!op)
      continue;
    const TensorFactors &tensor = op->rule.operands[use.getOperandNumber()];
    if (tensor.linear || tensor.additive)
      for (Value result : op->op->getResults())
        times = std::max(times, timesAccumulated(result));
    if (tensor.additive)
      for (auto [i, operand] : llvm::enumerate(op->op->getOperands()))
        if (auto argument = dyn_cast<BlockArgument>(operand);
            argument && op->rule.operands[i].additive)
          times = std::max(times, iterationsCarried(argument));
  }
  accumulated[value] = times;
  return times;
}

/// Whether to complete the value behind each of its uses moves more than to do it once,
/// here. Additions and carried sums do not count: they may be completed for others anyway.
bool PartialFlow::movesMoreApart(Value value) const {
  int64_t here = state(value).elements, after = 0, uses = 0;
  for (OpOperand &use : value.getUses()) {
    if (const ValueBinding *h = bindingOf.lookup(&use)) {
      if (!h->to || carriedTwin.contains(h->to))
        continue;
      after += here;
      ++uses;
      continue;
    }
    const ShardedOp *op = sharded.lookup(use.getOwner());
    if (!op || op->rule.operands[use.getOperandNumber()].additive)
      continue;
    for (OpResult result : op->op->getResults())
      after += llvm::divideCeil(state(result).elements, accumulated.lookup(result));
    ++uses;
  }
  return uses > 1 && after > here;
}

AxisMask PartialFlow::flowing(OpOperand &use) const {
  State s = state(use.get());
  return s.zero ? allAxes : s.flows;
}

AxisMask PartialFlow::accepts(OpOperand &use) const {
  if (const ValueBinding *h = bindingOf.lookup(&use))
    return h->to ? state(h->to).possible : 0;
  const ShardedOp *op = sharded.lookup(use.getOwner());
  if (!op)
    return 0;
  const TensorFactors &self = op->rule.operands[use.getOperandNumber()];
  AxisMask mask = allAxes & ~op->used();
  if (self.additive) {
    for (OpOperand &other : op->op->getOpOperands())
      if (op->rule.operands[other.getOperandNumber()].additive)
        mask &= flowing(other);
    return mask;
  }
  if (!self.linear)
    return 0;
  // Linear in each operand alone: not both may be partial along one axis.
  for (OpOperand &other : op->op->getOpOperands())
    if (&other != &use && op->rule.operands[other.getOperandNumber()].linear)
      mask &= ~state(other.get()).reachable;
  // An op of one operand only moves, scales or pads it: for that a loop is not
  // made to communicate in every iteration.
  bool summed = llvm::all_of(op->op->getResults(),
                             [&](Value result) { return accumulated.lookup(result) > 1; });
  if (summed && op->op->getNumOperands() == 1)
    return mask;
  auto operandType = cast<RankedTensorType>(use.get().getType());
  int64_t here = localElements(operandType, self, op->axes, mesh), after = 0;
  for (auto [result, tensor] : llvm::zip(op->op->getResults(), op->rule.results))
    after += llvm::divideCeil(
        localElements(cast<RankedTensorType>(result.getType()), tensor, op->axes, mesh),
        accumulated.lookup(result));
  return after <= here ? mask : 0;
}

bool PartialFlow::mergePossible() {
  bool changed = false;
  auto limit = [&](AxisMask &have, AxisMask mask) {
    changed |= (have & mask) != have;
    have &= mask;
  };
  for (const ShardedOp &op : ops) {
    AxisMask linear = 0, additive = allAxes;
    bool anyAdditive = false;
    for (OpOperand &use : op.op->getOpOperands()) {
      const TensorFactors &tensor = op.rule.operands[use.getOperandNumber()];
      if (tensor.linear)
        linear |= flowing(use) & accepts(use);
      if (tensor.additive)
        additive &= flowing(use) & accepts(use);
      anyAdditive |= tensor.additive;
    }
    AxisMask through = (anyAdditive ? linear | additive : linear) & ~op.used();
    for (OpResult result : op.op->getResults()) {
      State &s = states[result];
      // A partial maximum is completed where it is made: nothing is linear in it.
      if (op.rule.max)
        limit(s.possible, 0);
      else if (!s.zero)
        limit(s.possible,
              through | partialFromReduction(op.rule, result.getResultNumber(), op.axes));
    }
  }
  for (const ValueBinding &h : structure.bindings)
    if (h.to)
      limit(states[h.to].possible, flowing(*h.use));
  for (auto &[value, s] : states) {
    AxisMask uses = allAxes;
    for (OpOperand &use : value.getUses())
      uses &= accepts(use);
    // An argument takes nothing partial that it would have to complete in every
    // iteration, and a constraint nothing that is completed right behind it.
    if (isa<BlockArgument>(value) || value.getDefiningOp<ConstrainOp>())
      limit(s.possible, uses);
    if (Value twin = carriedTwin.lookup(value))
      limit(s.possible, state(twin).possible);
    limit(s.flows, s.possible & uses);
  }
  return changed;
}

bool PartialFlow::spreadPartial() {
  bool changed = false;
  auto add = [&](Value value, AxisMask mask) {
    State &s = states[value];
    if (s.zero)
      return;
    changed |= (s.partial | mask) != s.partial;
    s.partial |= mask;
  };
  auto carriedIn = [&](OpOperand &use) {
    State s = state(use.get());
    return s.zero ? 0 : s.partial & s.flows;
  };
  takenBy.clear();
  for (const ShardedOp &op : ops) {
    AxisMask through = 0;
    for (OpOperand &use : op.op->getOpOperands()) {
      const TensorFactors &tensor = op.rule.operands[use.getOperandNumber()];
      if (tensor.linear || tensor.additive)
        through |= carriedIn(use);
    }
    through &= ~op.used();
    for (OpResult result : op.op->getResults()) {
      AxisMask own = partialFromReduction(op.rule, result.getResultNumber(), op.axes);
      through |= state(result).partial & ~own;
      add(result, own);
    }
    for (OpResult result : op.op->getResults())
      add(result, through);
    // Each axis comes in through one linear operand, or through all additive ones.
    AxisMask left = through;
    auto take = [&](OpOperand &use, AxisMask mask) {
      takenBy[&use] = mask;
      add(use.get(), mask);
      left &= ~mask;
    };
    auto forLinear = [&](auto mask) {
      for (OpOperand &use : op.op->getOpOperands())
        if (op.rule.operands[use.getOperandNumber()].linear)
          if (AxisMask m = mask(use) & left)
            take(use, takenBy.lookup(&use) | m);
    };
    forLinear(carriedIn);
    forLinear([&](OpOperand &use) { return flowing(use) & accepts(use); });
    for (OpOperand &use : op.op->getOpOperands())
      if (op.rule.operands[use.getOperandNumber()].additive) {
        takenBy[&use] = left;
        add(use.get(), left);
      }
  }
  for (const ValueBinding &h : structure.bindings)
    if (h.to) {
      add(h.to, carriedIn(*h.use) & state(h.to).possible);
      takenBy[h.use] = state(h.to).partial;
      add(h.use->get(), state(h.to).partial);
    }
  for (auto [argument, result] : structure.carried) {
    add(argument, state(result).partial);
    add(result, state(argument).partial);
  }
  return changed;
}
