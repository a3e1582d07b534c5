//===- DecomposeKernels.cpp - exec-decompose-kernels ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Exec/Passes.h"
#include "NarrowScatter.h"

#include "mlir/IR/Dominance.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

namespace meshwright::exec {
#define GEN_PASS_DEF_EXECDECOMPOSEKERNELS
#include "Exec/Passes.h.inc"
} // namespace meshwright::exec

namespace {
/// A constant repeated along more dimensions is a constant.
struct FoldBroadcast : OpRewritePattern<train::BroadcastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(train::BroadcastOp op, PatternRewriter &rewriter) const override {
    DenseElementsAttr value;
    if (!matchPattern(op.getX(), m_Constant(&value)) || !value.isSplat())
      return failure();
    auto type = cast<RankedTensorType>(op.getY().getType());
    rewriter.replaceOpWithNewOp<arith::ConstantOp>(
        op, DenseElementsAttr::get(type, value.getSplatValue<Attribute>()));
    return success();
  }
};
} // namespace

static LogicalResult decompose(func::FuncOp kernel) {
  Block &body = kernel.getBody().front();
  for (Operation &op : llvm::make_early_inc_range(body.without_terminator())) {
    auto kernelOp = dyn_cast<train::KernelOpInterface>(op);
    if (!kernelOp)
      return op.emitOpError("is in kernel @") << kernel.getSymName() << " but has no decomposition";
    OpBuilder builder(&op);
    op.replaceAllUsesWith(train::decomposeInF32(kernelOp, builder));
    op.erase();
  }
  return success();
}

namespace {
struct ExecDecomposeKernels : exec::impl::ExecDecomposeKernelsBase<ExecDecomposeKernels> {
  void runOnModule() override {
    RewritePatternSet patterns(&getContext());
    // Besides folds of arith and math ops, only these: kernels keep the shape that the
    // scheduler knows.
    patterns.add<FoldBroadcast>(&getContext());
    populateNarrowScatterPatterns(patterns);
    FrozenRewritePatternSet frozen(std::move(patterns));
    for (auto kernel : getOperation().getOps<func::FuncOp>()) {
      if (!kernel->hasAttr(kernelAttr))
        continue;
      if (failed(decompose(kernel)) || failed(applyPatternsGreedily(kernel, frozen)))
        return signalPassFailure();
      DominanceInfo dominance(kernel);
      IRRewriter rewriter(&getContext());
      eliminateCommonSubExpressions(rewriter, dominance, kernel);
    }
  }
};
} // namespace
