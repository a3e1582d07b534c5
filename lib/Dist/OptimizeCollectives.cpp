//===- OptimizeCollectives.cpp - fewer and smaller collectives --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/Passes.h"

#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

namespace meshwright::dist {
#define GEN_PASS_DEF_DISTOPTIMIZECOLLECTIVES
#include "Dist/Passes.h.inc"
} // namespace meshwright::dist

namespace {
/// slice(all_reduce(x)) -> reduce_scatter(x), which sends half.
struct ScatterInsteadOfSlice : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SliceOp slice, PatternRewriter &rewriter) const override {
    auto reduce = slice.getX().getDefiningOp<AllReduceOp>();
    if (!reduce || !reduce->hasOneUse() || reduce.getGroup() != slice.getGroup())
      return failure();
    rewriter.replaceOpWithNewOp<ReduceScatterOp>(slice, slice.getType(), reduce.getKind(),
                                                 reduce.getX(), slice.getDim(), slice.getGroup());
    return success();
  }
};

/// slice(all_gather(x)) along the same dimension and group is x.
struct KeepOwnPart : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SliceOp slice, PatternRewriter &rewriter) const override {
    auto gather = slice.getX().getDefiningOp<AllGatherOp>();
    if (!gather || gather.getGroup() != slice.getGroup() || gather.getDim() != slice.getDim())
      return failure();
    rewriter.replaceOp(slice, gather.getX());
    return success();
  }
};

class OptimizeCollectivesPass
    : public dist::impl::DistOptimizeCollectivesBase<OptimizeCollectivesPass> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    DominanceInfo dominance(getOperation());
    eliminateCommonSubExpressions(rewriter, dominance, getOperation());
    RewritePatternSet patterns(&getContext());
    patterns.add<ScatterInsteadOfSlice, KeepOwnPart>(&getContext());
    GreedyRewriteConfig config;
    config.enableFolding(false).enableConstantCSE(false);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      signalPassFailure();
  }
};
} // namespace
