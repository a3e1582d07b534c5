//===- EqualAlong.cpp - along which axes devices hold the same value -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "EqualAlong.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

bool EqualAlong::join(Value value, Mask mask) {
  auto [known, isNew] = differ.insert({value, mask});
  if (isNew)
    return true;
  Mask all = known->second | mask;
  bool news = all != known->second;
  known->second = all;
  return news;
}

EqualAlong::Mask EqualAlong::maskOf(Value value) const {
  auto known = differ.find(value);
  return known == differ.end() ? unknown : known->second;
}

EqualAlong::Mask EqualAlong::cutBy(Attribute globalType) const {
  auto type = dyn_cast_or_null<TypeAttr>(globalType);
  ShardingAttr sharding = type ? shardingOf(type.getValue()) : ShardingAttr();
  if (!sharding)
    return unknown;
  Mask mask = 0;
  Sharding on = sharding.on(mesh);
  for (unsigned axis = 0; axis < mesh.axes.size(); ++axis)
    if (on.uses(axis))
      mask |= Mask(1) << axis;
  return mask;
}

void EqualAlong::add(func::FuncOp function) {
  for (BlockArgument argument : function.getArguments())
    join(argument, cutBy(function.getArgAttr(argument.getArgNumber(), DistDialect::globalAttr)));
  walk(function.getBody().front());
}

void EqualAlong::walk(Block &block) {
  for (Operation &op : block)
    visit(&op);
}

/// Goes through the callee until what it carries brings nothing new.
void EqualAlong::visit(train::RepeatOp repeat) {
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(repeat, repeat.getCalleeAttr());
  Block &body = callee.getBody().front();
  if (repeat.getIndexed())
    join(body.getArgument(0), 0);
  for (unsigned i = 0; i < repeat->getNumOperands(); ++i)
    join(body.getArgument(repeat.getCalleeArgument(i)), maskOf(repeat->getOperand(i)));
  Operation *end = body.getTerminator();
  for (bool news = true; news;) {
    walk(body);
    news = false;
    for (unsigned i = 0; i < repeat.getCarry().size(); ++i)
      news |= join(body.getArgument(repeat.getCalleeArgument(i)), maskOf(end->getOperand(i)));
  }
  for (auto [result, returned] : llvm::zip(repeat.getResults(), end->getOperands()))
    join(result, maskOf(returned));
}

void EqualAlong::visit(Operation *op) {
  if (auto repeat = dyn_cast<train::RepeatOp>(op))
    return visit(repeat);
  Mask mask = 0;
  for (Value operand : op->getOperands())
    mask |= maskOf(operand);
  if (auto get = dyn_cast<train::GetOp>(op)) {
    Operation *variable = SymbolTable::lookupNearestSymbolFrom(op, get.getVariableAttr());
    mask = cutBy(variable->getAttr(DistDialect::globalAttr));
  } else if (auto group = op->getAttrOfType<GroupAttr>("group")) {
    Mask along = 0;
    for (unsigned axis : group.on(mesh))
      along |= Mask(1) << axis;
    if (isa<AllReduceOp, AllGatherOp, BroadcastOp>(op))
      mask &= ~along;
    else if (isa<dist::SliceOp, BeginOp, ReduceScatterOp, AllToAllOp, PermuteOp>(op))
      mask |= along;
    else
      mask = unknown;
  } else if (!isPure(op)) {
    mask = unknown;
  }
  for (Value result : op->getResults())
    join(result, mask);
}

Axes EqualAlong::of(Value value) const {
  Mask mask = maskOf(value);
  Axes axes;
  for (unsigned axis = 0; axis < mesh.axes.size(); ++axis)
    if (mesh.axes[axis].size > 1 && !(mask >> axis & 1))
      axes.push_back(axis);
  return axes;
}
