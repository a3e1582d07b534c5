//===- OptimizeCollectives.cpp - fewer and smaller collectives --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "BucketCollectives.h"
#include "Dist/Passes.h"
#include "Dist/Programs.h"
#include "Dist/Wire.h"

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
    if (!reduce || reduce.getXs().size() > 1 || !reduce->hasOneUse() ||
        reduce.getGroup() != slice.getGroup() || slice.getShift())
      return failure();
    Attribute wire = reduce->getAttr(wireAttr);
    auto scatter = rewriter.replaceOpWithNewOp<ReduceScatterOp>(
        slice, slice.getType(), reduce.getKind(), reduce.getX(), slice.getDim(), slice.getGroup());
    if (wire)
      scatter->setAttr(wireAttr, wire);
    return success();
  }
};

/// slice(all_gather(x)) along the same dimension and group is x.
struct KeepOwnPart : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SliceOp slice, PatternRewriter &rewriter) const override {
    auto gather = slice.getX().getDefiningOp<AllGatherOp>();
    if (!gather || gather.getXs().size() > 1 || gather.getGroup() != slice.getGroup() ||
        int64_t(gather.getDim()) != int64_t(slice.getDim()) || slice.getShift())
      return failure();
    rewriter.replaceOp(slice, gather.getX());
    return success();
  }
};

/// reduce(a) + reduce(b) -> reduce(a + b): terms are added before they are sent.
template <typename Reduce> struct AddBeforeReducing : OpRewritePattern<train::AddOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(train::AddOp add, PatternRewriter &rewriter) const override {
    auto a = add.getLhs().template getDefiningOp<Reduce>(), b = add.getRhs().template getDefiningOp<Reduce>();
    if (!a || !b || a == b || a->getNumOperands() > 1 || b->getNumOperands() > 1 ||
        !a->hasOneUse() || !b->hasOneUse() || a->getAttrDictionary() != b->getAttrDictionary() ||
        a.getKind() != train::ReduceKind::Sum || a.getX().getType() != b.getX().getType())
      return failure();
    Value sum = train::AddOp::create(rewriter, add.getLoc(), a.getX(), b.getX());
    Operation *reduce = rewriter.clone(*a);
    reduce->setOperand(0, sum);
    rewriter.replaceOp(add, reduce);
    rewriter.eraseOp(a);
    rewriter.eraseOp(b);
    return success();
  }
};

class OptimizeCollectivesPass
    : public dist::impl::DistOptimizeCollectivesBase<OptimizeCollectivesPass> {
public:
  using DistOptimizeCollectivesBase::DistOptimizeCollectivesBase;

private:
  void runOnModule() override {
    IRRewriter rewriter(&getContext());
    DominanceInfo dominance(getOperation());
    eliminateCommonSubExpressions(rewriter, dominance, getOperation());
    RewritePatternSet patterns(&getContext());
    patterns.add<ScatterInsteadOfSlice, KeepOwnPart, AddBeforeReducing<AllReduceOp>,
                 AddBeforeReducing<ReduceScatterOp>>(&getContext());
    GreedyRewriteConfig config;
    config.enableFolding(false).enableConstantCSE(false);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      return signalPassFailure();
    MeshOp mesh = lookupMesh(getOperation());
    if (bucketBytes == 0 || !mesh)
      return;
    BucketSize size{bucketBytes, sliceBytes, device->network};
    for (ModuleOp program : programsOf(getOperation()))
      for (auto function : program.getOps<func::FuncOp>())
        for (Block &block : function.getBody())
          bucketCollectives(block, mesh.getMesh(), size);
  }
};
} // namespace
