//===- SliceCollectives.cpp - exec-slice-collectives ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Exec/Passes.h"

#include "Dist/Dist.h"
#include "Dist/Wire.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

namespace meshwright::exec {
#define GEN_PASS_DEF_EXECSLICECOLLECTIVES
#include "Exec/Passes.h.inc"
} // namespace meshwright::exec

static RankedTensorType sliceOf(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return RankedTensorType::get(type.getShape().drop_front(), type.getElementType());
}

static dist::AllGatherOp createSlice(OpBuilder &b, dist::AllGatherOp op, Value x) {
  return dist::AllGatherOp::create(b, op.getLoc(), TypeRange{sliceOf(op.getYs()[0])}, ValueRange{x},
                                   {op.getDims()[0] - 1}, op.getGroup());
}

static dist::ReduceScatterOp createSlice(OpBuilder &b, dist::ReduceScatterOp op, Value x) {
  return dist::ReduceScatterOp::create(b, op.getLoc(), TypeRange{sliceOf(op.getYs()[0])},
                                       op.getKind(), ValueRange{x}, {op.getDims()[0] - 1},
                                       op.getGroup());
}

static dist::AllReduceOp createSlice(OpBuilder &b, dist::AllReduceOp op, Value x) {
  return dist::AllReduceOp::create(b, op.getLoc(), x.getType(), op.getKind(), x, op.getGroup());
}

/// Whether `x` is a stack that layers' backward has made, summed over microbatches or by tasks of a pipeline: of
/// gradients. Slices of activations would be sequences of a batch, each of which needs as much latency as all.
static bool isGradientOfLayers(Value x) {
  Operation *made = x.getDefiningOp();
  while (made && made->getNumOperands() == 1 && isa<train::KernelOpInterface>(made)) {
    x = made->getOperand(0);
    made = x.getDefiningOp();
  }
  if (isa_and_nonnull<func::CallOp>(made))
    return true;
  auto repeat = dyn_cast_or_null<train::RepeatOp>(made);
  std::optional<train::Role> role = repeat ? train::roleOf(repeat) : std::nullopt;
  bool isStack = repeat && cast<OpResult>(x).getResultNumber() >= repeat.getCarry().size();
  return role == train::Role::Microbatch ||
         (isStack && (role == train::Role::Backward || role == train::Role::Weight));
}

static bool mayBeSliced(dist::AllReduceOp op) { return isGradientOfLayers(op.getXs()[0]); }
/// Whether shards of the first tensor are along another dimension than the one that is sliced.
template <typename Op> static bool mayBeSliced(Op op) { return op.getDims()[0] != 0; }

namespace {
struct ExecSliceCollectives : exec::impl::ExecSliceCollectivesBase<ExecSliceCollectives> {
  using ExecSliceCollectivesBase::ExecSliceCollectivesBase;

  void runOnModule() override {
    SymbolTable symbols(getOperation());
    getOperation().walk([&](Operation *op) {
      if (auto gather = dyn_cast<dist::AllGatherOp>(op))
        rewrite(gather, symbols);
      else if (auto scatter = dyn_cast<dist::ReduceScatterOp>(op))
        rewrite(scatter, symbols);
      else if (auto sum = dyn_cast<dist::AllReduceOp>(op); sum && sums)
        rewrite(sum, symbols);
    });
  }

private:
  template <typename Op> void rewrite(Op op, SymbolTable &symbols) {
    if (op.getXs().size() != 1 || !mayBeSliced(op))
      return;
    Value x = op.getXs()[0], y = op.getYs()[0];
    if (cast<RankedTensorType>(x.getType()).getRank() == 0)
      return;
    int64_t slices = cast<RankedTensorType>(x.getType()).getDimSize(0);
    int64_t largest = std::max(bytesOf(x.getType()), bytesOf(y.getType()));
    if (slices == 1 || largest / slices < minBytes)
      return;
    OpBuilder b(op.getContext());
    auto type = b.getFunctionType({sliceOf(x)}, {sliceOf(y)});
    auto function =
        func::FuncOp::create(b, op.getLoc(), (op->getName().stripDialect() + ".slice").str(), type);
    function.setPrivate();
    symbols.insert(function);
    b.setInsertionPointToStart(function.addEntryBlock());
    Op slice = createSlice(b, op, function.getArgument(0));
    if (Attribute wire = op->getAttr(dist::wireAttr))
      slice->setAttr(dist::wireAttr, wire);
    func::ReturnOp::create(b, op.getLoc(), slice.getYs());
    b.setInsertionPoint(op);
    auto repeat = train::RepeatOp::create(
        b, op.getLoc(), y.getType(), function.getSymName(), slices,
        /*reverse=*/false, /*indexed=*/false, ValueRange(), ValueRange{x}, ValueRange());
    y.replaceAllUsesWith(repeat.getResult(0));
    op.erase();
  }
};
} // namespace
