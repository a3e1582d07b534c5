//===- GatheredKeys.cpp - where attention's keys come from ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "GatheredKeys.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

Gathered dist::gatheredOf(Value keys) {
  Gathered from;
  if (auto sum = keys.getDefiningOp<AllReduceOp>(); sum && sum->getNumOperands() == 1) {
    from.sum = sum;
    keys = sum->getOperand(0);
  }
  if (auto slice = keys.getDefiningOp<train::SliceOp>();
      slice && slice.getDim() == 1 && slice.getFrom() == 0)
    keys = slice.getX();
  auto gather = keys.getDefiningOp<AllGatherOp>();
  if (gather && gather->getNumOperands() == 1 && gather.getDim() == 1)
    from.gather = gather;
  return from;
}

SummedPart dist::summedPartOf(Value partial, ArrayRef<unsigned> ring, int64_t tokens,
                               const Mesh &mesh) {
  SummedPart part;
  auto isOwn = [&] {
    ArrayRef<unsigned> axes = part.dims[1];
    int64_t size = cast<RankedTensorType>(partial.getType()).getDimSize(1);
    return axes.size() >= ring.size() && llvm::equal(ring, axes.take_front(ring.size())) &&
           size * mesh.size(axes) == tokens;
  };
  while (!isOwn()) {
    Operation *op = partial.hasOneUse() ? *partial.user_begin() : nullptr;
    if (!op || op->getNumOperands() != 1 || op->getNumResults() != 1)
      return {};
    bool follows = llvm::TypeSwitch<Operation *, bool>(op)
                       .Case([&](AllReduceOp reduce) {
                         part.summed.insert_range(reduce.getGroup().on(mesh));
                         return reduce.getKind() == train::ReduceKind::Sum;
                       })
                       .Case([&](ReduceScatterOp scatter) {
                         Axes axes = scatter.getGroup().on(mesh);
                         part.summed.insert_range(axes);
                         llvm::append_range(part.dims[scatter.getDim()], axes);
                         return scatter.getKind() == train::ReduceKind::Sum;
                       })
                       .Case([&](AllGatherOp gather) {
                         // The end of a sum over many devices, which goes by parts.
                         Axes &axes = part.dims[gather.getDim()];
                         bool whole = axes == gather.getGroup().on(mesh);
                         axes.clear();
                         return whole;
                       })
                       .Case([&](SliceOp slice) {
                         llvm::append_range(part.dims[slice.getDim()], slice.getGroup().on(mesh));
                         return slice.getShift() == 0;
                       })
                       .Case([](train::PadOp pad) { return pad.getDim() == 1 && pad.getFrom() == 0; })
                       .Default(false);
    if (!follows)
      return {};
    partial = op->getResult(0);
  }
  part.value = partial;
  return part;
}

bool dist::comeAlong(ArrayRef<unsigned> axes, ArrayRef<Value> values, const Mesh &mesh) {
  llvm::SetVector<Operation *> made;
  auto insertMaker = [&](Value value) {
    if (Operation *maker = value.getDefiningOp())
      made.insert(maker);
  };
  llvm::for_each(values, insertMaker);
  for (size_t i = 0; i < made.size(); ++i) {
    if (auto collective = dyn_cast<CollectiveOpInterface>(made[i]);
        collective && llvm::any_of(collective.getGroupAttr().on(mesh), [&](unsigned axis) {
          return llvm::is_contained(axes, axis);
        }))
      return true;
    llvm::for_each(made[i]->getOperands(), insertMaker);
  }
  return false;
}
