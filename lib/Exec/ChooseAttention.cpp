//===- ChooseAttention.cpp - exec-choose-attention --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Exec/Exec.h"
#include "Exec/Passes.h"
#include "meshwright/runtime/Cudnn.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

namespace meshwright::exec {
#define GEN_PASS_DEF_EXECCHOOSEATTENTION
#include "Exec/Passes.h.inc"
} // namespace meshwright::exec

/// The call as cuDNN would see it.
template <typename Op> static cudnn::Attention describe(Op op, bool deterministic) {
  auto q = cast<RankedTensorType>(op.getQ().getType());
  auto k = cast<RankedTensorType>(op.getK().getType());
  cudnn::Attention call;
  MwAttention &sizes = call.sizes;
  sizes.batch = q.getDimSize(0);
  sizes.queries = q.getDimSize(1);
  sizes.heads = q.getDimSize(2);
  sizes.headDim = q.getDimSize(3);
  sizes.keys = k.getDimSize(1);
  sizes.kvHeads = k.getDimSize(2);
  sizes.causal = op.getCausal();
  sizes.window = op.getWindow();
  sizes.dropout = op.getDropout().convertToDouble();
  Type element = q.getElementType();
  sizes.elementType = element.isBF16() ? MW_BF16 : element.isF16() ? MW_F16 : MW_F32;
  call.backward = isa<train::AttentionGradOp>(op);
  call.deterministic = deterministic;
  return call;
}

/// The numbers of "sm_90,sm_80". What is no architecture is refused where code for it is
/// made.
static SmallVector<int64_t> numbersOf(StringRef archs) {
  SmallVector<int64_t> numbers;
  for (StringRef name : llvm::split(archs, ',')) {
    int64_t number = 0;
    name = name.trim();
    if (name.consume_front("sm_") && !name.consumeInteger(10, number))
      numbers.push_back(number);
  }
  return numbers;
}

namespace {
struct ExecChooseAttention : exec::impl::ExecChooseAttentionBase<ExecChooseAttention> {
  using ExecChooseAttentionBase::ExecChooseAttentionBase;

  void runOnModule() override {
    if (!llvm::is_contained({"auto", "cudnn", "generated"}, attention)) {
      getOperation().emitError("attention '")
          << attention << "' is unknown; auto, cudnn and generated work";
      return signalPassFailure();
    }
    if (targetOf(getOperation()) != "cuda")
      return;
    WalkResult walked = getOperation().walk([&](Operation *op) {
      return llvm::TypeSwitch<Operation *, WalkResult>(op)
          .Case<train::AttentionOp, train::AttentionGradOp>([&](auto op) { return choose(op); })
          .Default([](Operation *) { return WalkResult::advance(); });
    });
    if (walked.wasInterrupted())
      signalPassFailure();
  }

  template <typename Op> WalkResult choose(Op op) {
    Builder b(op.getContext());
    cudnn::Attention call = describe(op, deterministic);
    int64_t bytes = -1;
    std::string reason = "--attention generated";
    if (attention != "generated")
      for (int64_t arch : numbersOf(archs)) {
        std::string found = cudnn::whyNot(call, arch);
        if (found.empty()) {
          bytes = std::max(bytes, cudnn::workspaceBytes(call, arch));
          continue;
        }
        reason = std::move(found);
        if (attention == "cudnn")
          return op.emitOpError("cannot be cuDNN's: ")
                 << reason << "; --attention auto or generated works";
      }
    if (bytes < 0) {
      op->setAttr(reasonAttr, b.getStringAttr(reason));
      return WalkResult::advance();
    }
    op->setAttr(cudnnAttr, b.getI64IntegerAttr(bytes));
    if (attention == "auto")
      op->setAttr(fallbackAttr, b.getUnitAttr());
    if (deterministic)
      op->setAttr(deterministicAttr, b.getUnitAttr());
    return WalkResult::advance();
  }
};
} // namespace
