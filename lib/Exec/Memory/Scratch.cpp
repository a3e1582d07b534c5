//===- Scratch.cpp - memory that library calls need for their inside --------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Scratch.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

int64_t exec::scratchBytes(Operation *call) {
  const Target &target = targetOf(call).getTarget();
  return llvm::TypeSwitch<Operation *, int64_t>(call)
      .Case<AttentionOp, AttentionGradOp>([&](auto op) {
        return target.getAttentionWorkspace(op.getAttention(), isa<AttentionGradOp>(call),
                                            op.getLibraryAttr());
      })
      .Case([&](RouteOp op) { return target.getRouteWorkspace(op.getShape()); })
      .Case<GroupedMatmulOp, GroupedMatmulGradOp>([&](auto op) {
        return target.getGroupedWorkspace(op.getShape(), op.getGroups(),
                                          isa<GroupedMatmulGradOp>(call));
      })
      .Default(int64_t(0));
}
