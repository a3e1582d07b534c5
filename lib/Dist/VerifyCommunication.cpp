//===- VerifyCommunication.cpp - proves that all collectives meet -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/HandOver.h"
#include "Dist/Passes.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

namespace meshwright::dist {
#define GEN_PASS_DEF_DISTVERIFYCOMMUNICATION
#include "Dist/Passes.h.inc"
} // namespace meshwright::dist

namespace {
class VerifyCommunicationPass
    : public dist::impl::DistVerifyCommunicationBase<VerifyCommunicationPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    MeshOp mesh = lookupMesh(module);
    // Calls that cannot be followed could hide a collective.
    if (!mesh || failed(structureOf(module)))
      return signalPassFailure();
    WalkResult result = module.walk([&](Operation *op) {
      for (Value value : op->getResults())
        if (dist::shardingOf(value.getType())) {
          op->emitOpError() << describe(value) << " still has a sharding, " << value.getType()
                            << "; run dist-partition first";
          return WalkResult::interrupt();
        }
      auto collective = dyn_cast<CollectiveOpInterface>(op);
      if (!collective)
        return WalkResult::advance();
      if (collective.getGroupAttr().getMesh() != FlatSymbolRefAttr::get(mesh)) {
        op->emitOpError("runs on ") << collective.getGroupAttr().getMesh()
                                    << ", but the devices are those of @" << mesh.getSymName();
        return WalkResult::interrupt();
      }
      Operation *around = op->getParentOp();
      if (!isa<func::FuncOp>(around)) {
        (op->emitOpError("stands inside ")
         << around->getName() << ", so some devices could pass it by while others wait in it")
                .attachNote(around->getLoc())
            << "move the collective out of this op";
        return WalkResult::interrupt();
      }
      if (!around->getRegion(0).hasOneBlock()) {
        op->emitOpError("stands in a function with branches, so some devices could pass it by "
                        "while others wait in it");
        return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
