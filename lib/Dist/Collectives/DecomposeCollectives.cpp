//===- DecomposeCollectives.cpp - all_reduce as messages --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/Collectives/CollectiveAlgorithms.h"
#include "Dist/Passes.h"
#include "Dist/Wire.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

namespace meshwright::dist {
#define GEN_PASS_DEF_DISTDECOMPOSECOLLECTIVES
#include "Dist/Passes.h.inc"
} // namespace meshwright::dist

static void decompose(AllReduceOp op, const AllReduceMessages &messages) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  SmallVector<Value> xs(op.getXs());
  // Each device has copies of its own vectors, of which the others replace all but
  // the one at its place.
  if (messages.stacked)
    for (Value &x : xs) {
      auto type = cast<RankedTensorType>(x.getType());
      SmallVector<int64_t> shape(type.getShape());
      shape.insert(shape.begin(), messages.ranks);
      x = train::BroadcastOp::create(b, loc, RankedTensorType::get(shape, type.getElementType()), x,
                                     ArrayRef<int64_t>{0});
    }
  for (const Exchange &e : messages.exchanges) {
    auto exchange =
        ExchangeOp::create(b, loc, ValueRange(xs).getTypes(), e.add ? op.getKindAttr() : nullptr,
                           xs, messages.pieces, e.length, e.to, e.sendBegin, e.from,
                           e.receiveBegin, e.round, op.getGroup());
    xs.assign(exchange.getYs().begin(), exchange.getYs().end());
  }
  if (messages.stacked)
    for (auto [x, y] : llvm::zip(xs, op.getYs()))
      x = train::ReduceOp::create(b, loc, y.getType(), op.getKind(), x, ArrayRef<int64_t>{0});
  op->replaceAllUsesWith(xs);
  op.erase();
}

namespace {
class DecomposeCollectivesPass
    : public dist::impl::DistDecomposeCollectivesBase<DecomposeCollectivesPass> {
public:
  using DistDecomposeCollectivesBase::DistDecomposeCollectivesBase;

  void runOnModule() override {
    if (algorithm == CollectiveAlgorithm::Native)
      return;
    MeshOp meshOp = lookupMesh(getOperation());
    if (!meshOp)
      return signalPassFailure();
    Mesh mesh = meshOp.getMesh();
    SmallVector<AllReduceOp> reductions;
    // Integers are single numbers that decide what comes next: messages would not make them faster. Where terms
    // are narrower than sums, no device may pass on a sum of some.
    getOperation().walk([&](AllReduceOp op) {
      if (isa<FloatType>(getElementTypeOrSelf(op->getOperandTypes().front())) && !op->hasAttr(wireAttr))
        reductions.push_back(op);
    });
    for (AllReduceOp op : reductions) {
      int64_t ranks = mesh.size(op.getGroup().on(mesh));
      bool free = algorithm == CollectiveAlgorithm::Auto;
      decompose(op, allReduceMessages(free ? fastest(op, ranks) : algorithm, ranks));
    }
  }

private:
  CollectiveAlgorithm fastest(AllReduceOp op, int64_t ranks) {
    double bytes = 0;
    for (Type type : op->getOperandTypes())
      bytes += double(cast<RankedTensorType>(type).getNumElements()) *
               getElementTypeOrSelf(type).getIntOrFloatBitWidth() / 8;
    cost::Link link = device->network;
    if (latency > 0)
      link.latency = latency;
    if (bandwidth > 0)
      link.bandwidth = bandwidth;
    auto seconds = [&](CollectiveAlgorithm a) {
      return secondsOf(allReduceMessages(a, ranks), bytes, link);
    };
    return *llvm::min_element(collectiveAlgorithms(), [&](auto a, auto b) {
      return seconds(a) < seconds(b);
    });
  }
};
} // namespace
