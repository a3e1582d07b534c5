//===- SplitReductions.cpp - lets sharded indices be summed in parts -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/Passes.h"
#include "SeededClasses.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

namespace meshwright::dist {
#define GEN_PASS_DEF_DISTSPLITREDUCTIONS
#include "Dist/Passes.h.inc"
} // namespace meshwright::dist

namespace {
class SplitReductionsPass : public dist::impl::DistSplitReductionsBase<SplitReductionsPass> {
  void runOnModule() override {
    MeshOp mesh = lookupMesh(getOperation());
    if (!mesh)
      return signalPassFailure();
    FailureOr<IndexClasses> classes = IndexClasses::of(getOperation());
    if (failed(classes))
      return signalPassFailure();
    llvm::SetVector<Operation *> found;
    for (auto [id, parts] : seededClasses(getOperation(), mesh.getMesh(), *classes))
      for (auto [op, factor] : (*classes)[id].neededWhole)
        if (isa<train::SplittableOpInterface>(op))
          found.insert(op);
    for (Operation *op : found) {
      OpBuilder b(op);
      op->replaceAllUsesWith(cast<train::SplittableOpInterface>(op).split(b));
      op->erase();
    }
  }
};
} // namespace
