//===- DecomposeCollectives.cpp - all_reduce as messages --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/CollectiveAlgorithms.h"
#include "Dist/Passes.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

namespace meshwright::dist {
#define GEN_PASS_DEF_DISTDECOMPOSECOLLECTIVES
#include "Dist/Passes.h.inc"
} // namespace meshwright::dist

static RankedTensorType shaped(RankedTensorType like, ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, like.getElementType());
}

/// Every exchange of `messages` on `x`, one after another.
static Value exchangeAll(OpBuilder &b, AllReduceOp op, const AllReduceMessages &messages, Value x) {
  for (const Exchange &e : messages.exchanges)
    x = ExchangeOp::create(b, op.getLoc(), x.getType(), e.add ? op.getKindAttr() : nullptr, x,
                           messages.pieces, e.length, e.to, e.sendBegin, e.from, e.receiveBegin,
                           e.round, op.getGroup());
  return x;
}

static void decompose(AllReduceOp op, const AllReduceMessages &messages) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  Value x = op.getX();
  auto type = cast<RankedTensorType>(x.getType());
  int64_t elements = type.getNumElements();
  if (messages.stacked) {
    // Each device has copies of its own vector, of which the others replace all
    // but the one at its place.
    SmallVector<int64_t> shape(type.getShape());
    shape.insert(shape.begin(), messages.places);
    x = train::BroadcastOp::create(b, loc, shaped(type, shape), x, ArrayRef<int64_t>{0});
    x = exchangeAll(b, op, messages, x);
    x = train::ReduceOp::create(b, loc, type, op.getKind(), x, ArrayRef<int64_t>{0});
  } else if (elements % messages.pieces == 0) {
    x = exchangeAll(b, op, messages, x);
  } else {
    int64_t padded = llvm::alignTo(elements, messages.pieces);
    x = train::ReshapeOp::create(b, loc, shaped(type, {elements}), x);
    x = train::PadOp::create(b, loc, shaped(type, {padded}), x, padded);
    x = exchangeAll(b, op, messages, x);
    x = train::SliceOp::create(b, loc, shaped(type, {elements}), x, elements);
    x = train::ReshapeOp::create(b, loc, type, x);
  }
  op.replaceAllUsesWith(x);
  op.erase();
}

namespace {
class DecomposeCollectivesPass
    : public dist::impl::DistDecomposeCollectivesBase<DecomposeCollectivesPass> {
public:
  using DistDecomposeCollectivesBase::DistDecomposeCollectivesBase;

  void runOnOperation() override {
    if (algorithm == "native")
      return;
    std::optional<CollectiveAlgorithm> named = collectiveAlgorithmNamed(algorithm);
    if (!named && algorithm != "auto") {
      InFlightDiagnostic error = getOperation().emitError("collective algorithm '")
                                 << algorithm << "' is unknown; algorithms are native, auto";
      for (CollectiveAlgorithm known : collectiveAlgorithms())
        error << ", " << nameOf(known);
      return signalPassFailure();
    }
    MeshOp meshOp = lookupMesh(getOperation());
    if (!meshOp)
      return signalPassFailure();
    Mesh mesh = meshOp.getMesh();
    SmallVector<AllReduceOp> reductions;
    getOperation().walk([&](AllReduceOp op) { reductions.push_back(op); });
    for (AllReduceOp op : reductions) {
      int64_t places = mesh.size(op.getGroup().on(mesh));
      decompose(op, allReduceMessages(named ? *named : fastest(op, places), places));
    }
  }

private:
  CollectiveAlgorithm fastest(AllReduceOp op, int64_t places) {
    auto type = cast<RankedTensorType>(op.getX().getType());
    double bytes = double(type.getNumElements()) * type.getElementTypeBitWidth() / 8;
    auto seconds = [&](CollectiveAlgorithm a) {
      return secondsOf(allReduceMessages(a, places), bytes, latency, bandwidth);
    };
    return *llvm::min_element(collectiveAlgorithms(), [&](auto a, auto b) {
      return seconds(a) < seconds(b);
    });
  }
};
} // namespace
