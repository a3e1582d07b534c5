//===- Rematerialize.cpp - dist-rematerialize --------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/Passes.h"
#include "LayerPairs.h"
#include "meshwright/Remat.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

namespace meshwright::dist {
#define GEN_PASS_DEF_DISTREMATERIALIZE
#include "Dist/Passes.h.inc"
} // namespace meshwright::dist

static LogicalResult refuseTail(const RematPolicy &policy, LayerPair &pair) {
  SmallVector<std::string> workable;
  for (int64_t n = 1; n <= pair.count(); ++n)
    if (pair.count() % n == 0)
      workable.push_back(std::to_string(n));
  InFlightDiagnostic error = pair.forward.emitOpError("repeats ");
  error << pair.count() << " times, which ";
  if (policy.every)
    error << "groups of " << policy.every << " layers";
  else
    error << "groups of about the square root of that";
  return error
         << " do not divide; train-split-layers makes a run of its own of what is left over, so "
            "compile from the model, or use every:K with K = "
         << llvm::join(workable, ", ");
}

static LogicalResult apply(const RematPolicy &policy, LayerPair &pair, const cost::Device &device) {
  if (policy.every == 1 && !policy.price)
    return success();
  LayerGroups groups = groupsOf(policy.every, pair.count());
  if (groups.tail(pair.count()))
    return refuseTail(policy, pair);
  if (groups.size > 1)
    groupLayers(pair, groups.size);
  if (policy.price) {
    LayerGraph layer(pair, device);
    applyChoice(pair, layer, cheapestChoice(layer.graph, *policy.price));
  } else if (groups.size == 1) {
    LayerGraph layer(pair, device);
    applyChoice(pair, layer, cheapestChoice(layer.graph, anyPrice));
  }
  return success();
}

namespace {
struct DistRematerialize : dist::impl::DistRematerializeBase<DistRematerialize> {
  using DistRematerializeBase::DistRematerializeBase;

  void runOnModule() override {
    if (failed(run()))
      signalPassFailure();
  }

  LogicalResult run() {
    WalkResult roles = getOperation().walk([](train::RepeatOp repeat) {
      if (train::roleOf(repeat))
        return WalkResult::advance();
      repeat.emitOpError("has no ") << train::TrainDialect::roleAttr
                                    << ", by which forward and backward are told apart; "
                                       "train-autodiff gives layers one";
      return WalkResult::interrupt();
    });
    if (roles.wasInterrupted())
      return failure();
    int64_t chunks = chunkCount(getOperation());
    if (policies.size() > 1 && int64_t(policies.size()) != chunks)
      return getOperation().emitError("has ")
             << chunks << (chunks == 1 ? " chunk" : " chunks") << " of layers, but "
             << policies.size() << " policies of rematerialization; give one, or one for each";
    for (LayerPair &pair : findLayerPairs(getOperation()))
      if (!policies.empty() &&
          failed(apply(policies[policies.size() > 1 ? pair.chunk : 0], pair, *device)))
        return failure();
    return success();
  }
};
} // namespace
