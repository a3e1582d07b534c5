//===- MergeScales.cpp - a rewrite of Meshwright's ops -----------------------===//
//
// An op of the training graph stays one until kernels are formed, so the pass can run at any place
// before that: on global tensors, and after dist-partition on those of a rank.
//
//===----------------------------------------------------------------------===//
#include "MyPasses.h"

#include "Train/Train.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using meshwright::train::ScaleOp;

namespace {
/// a (b x) is (a b) x. In f32 alone: `train.scale` rounds its result, and narrower types would round
/// once where they rounded twice.
struct MergeScales : OpRewritePattern<ScaleOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ScaleOp outer, PatternRewriter &rewriter) const override {
    auto inner = outer.getX().getDefiningOp<ScaleOp>();
    if (!inner || !inner->hasOneUse())
      return failure();
    if (!cast<RankedTensorType>(outer.getY().getType()).getElementType().isF32())
      return failure();
    double factor = outer.getFactor().convertToDouble() * inner.getFactor().convertToDouble();
    rewriter.modifyOpInPlace(outer, [&] {
      outer.getXMutable().assign(inner.getX());
      outer.setFactorAttr(rewriter.getF64FloatAttr(factor));
    });
    rewriter.eraseOp(inner);
    return success();
  }
};

struct MergeScalesPass : PassWrapper<MergeScalesPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(MergeScalesPass)

  StringRef getArgument() const override { return "my-merge-scales"; }
  StringRef getDescription() const override { return "Merges multiplications by constants"; }

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<MergeScales>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace

std::unique_ptr<Pass> createMergeScales() { return std::make_unique<MergeScalesPass>(); }
