//===- AnnotateReplication.cpp - annotate-replication -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "EqualAlong.h"
#include "meshwright/Annotations.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

namespace {
struct AnnotateReplication : PassWrapper<AnnotateReplication, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(AnnotateReplication)
  StringRef getArgument() const final { return "annotate-replication"; }
  StringRef getDescription() const final {
    return "Say along which axes all devices hold the same value (EqualAlong.h)";
  }

  void runOnOperation() final {
    MeshOp meshOp = lookupMesh(getOperation());
    if (!meshOp)
      return;
    EqualAlong equal(meshOp);
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isPrivate())
        equal.add(function);
    Mesh mesh = meshOp.getMesh();
    Builder b(&getContext());
    auto axes = [&](Value value) -> Attribute {
      return b.getStrArrayAttr(llvm::map_to_vector(
          equal.of(value), [&](unsigned axis) { return StringRef(mesh.axes[axis].name); }));
    };
    getOperation().walk([&](Operation *op) {
      if (op->getNumResults() > 0)
        op->setAttr("dist.replicated",
                    b.getArrayAttr(llvm::map_to_vector(op->getResults(), [&](OpResult result) {
                      return axes(result);
                    })));
    });
  }
};
} // namespace

void meshwright::registerAnnotateReplication() { PassRegistration<AnnotateReplication>(); }
