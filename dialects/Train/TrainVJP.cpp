//===- TrainVJP.cpp - the derivative of each op ------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Each method builds one op's vector-Jacobian product from its result
// cotangents. Checked against finite differences in test/Interpreter/VJPTest.cpp.
//
//===----------------------------------------------------------------------===//
#include "Train/Quantize.h"
#include "Train/Redistribution.h"
#include "Train/TensorType.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;

/// The cotangent of a sum in the element type of what was summed.
static Value asSummed(OpBuilder &b, Value cotangent, Value summed) {
  Type type = withElementType(cotangent.getType(), tensor(summed).getElementType());
  return type == cotangent.getType()
             ? cotangent
             : CastOp::create(b, cotangent.getLoc(), type, cotangent).getResult();
}

//===--- contractions -------------------------------------------------------===//

/// The gradients of a sum of products over `rule`: each operand's is the
/// cotangent contracted with the other operand. Every factor of an operand must
/// be in the cotangent or in the other operand, or there is nothing to read its
/// index from. `rounded` gives what is multiplied for operand i's, of dy and the other operand.
static LogicalResult
contractionVJP(Operation *op, OpBuilder &b, Value dy, ArrayRef<bool> needed, SmallVectorImpl<Value> &grads,
               llvm::function_ref<std::pair<Value, Value>(unsigned, Value, Value)> rounded = nullptr) {
  ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
  auto text = [&](const TensorFactors &t) {
    return llvm::join(llvm::map_range(t.dims, [&](auto &dim) { return rule.factors[dim[0]].name; }),
                      " ");
  };
  for (unsigned i : {0u, 1u}) {
    grads.push_back(nullptr);
    if (!needed[i])
      continue;
    const TensorFactors &self = rule.operands[i], &other = rule.operands[1 - i];
    for (auto &dim : self.dims) {
      auto holds = [&](const TensorFactors &t) { return llvm::is_contained(t.dims, dim); };
      if (!holds(rule.results[0]) && !holds(other))
        return op->emitOpError("has no derivative: factor ")
               << rule.factors[dim[0]].name << " appears in one operand only";
    }
    // dy first for the left operand, x second for the right: rows of the
    // gradient come from dy, as the matrix library likes it.
    dy = asSummed(b, dy, op->getOperand(i));
    std::string spec = text(rule.results[0]) + ", " + text(other) + " -> " + text(self);
    std::pair<Value, Value> factors(dy, op->getOperand(1 - i));
    if (rounded)
      factors = rounded(i, factors.first, factors.second);
    grads.back() = ContractOp::create(b, op->getLoc(), b.getStringAttr(spec), factors.first, factors.second, Value());
  }
  return success();
}

LogicalResult LinearOp::buildVJP(OpBuilder &b, ValueRange cotangents, ArrayRef<bool> needed,
                                 SmallVectorImpl<Value> &grads) {
  if (!getBlocks())
    return contractionVJP(*this, b, cotangents[0], needed, grads);
  int64_t rows = (*getBlocks())[0], length = (*getBlocks())[1];
  RankedTensorType x = tensor(getX());
  ArrayRef<int64_t> ofWeight = tensor(getWeight()).getShape();
  if (x.getRank() < 2 || x.getDimSize(x.getRank() - 2) % length || ofWeight[0] % length || ofWeight[1] % length)
    return emitOpError("has blocks of ") << length << " elements, which do not divide the last two dimensions of " << x
                                         << " and " << getWeight().getType();
  // Blocks along the last dimension of `value`, or along the one before.
  auto along = [&](Value value, bool last) {
    SmallVector<int64_t> block(tensor(value).getRank(), 1);
    block[block.size() - (last ? 1 : 2)] = length;
    return roundInBlocks(b, getLoc(), value, Float8E4M3FNType::get(b.getContext()), block);
  };
  auto rounded = [&](unsigned i, Value dy, Value other) -> std::pair<Value, Value> {
    if (i == 1)
      return {along(dy, /*last=*/false), along(other, /*last=*/false)};
    return {along(dy, /*last=*/true), rows == length ? other : along(other, /*last=*/false)};
  };
  return contractionVJP(*this, b, cotangents[0], needed, grads, rounded);
}

LogicalResult ContractOp::buildVJP(OpBuilder &b, ValueRange cotangents, ArrayRef<bool> needed,
                                   SmallVectorImpl<Value> &grads) {
  if (failed(contractionVJP(*this, b, cotangents[0], needed, grads)))
    return failure();
  if (getInit())
    grads.push_back(cotangents[0]);
  return success();
}

//===--- embedding, normalization, positions --------------------------------===//

LogicalResult EmbeddingOp::buildVJP(OpBuilder &b, ValueRange cotangents, ArrayRef<bool> needed,
                                    SmallVectorImpl<Value> &grads) {
  grads.resize(2);
  if (!needed[0])
    return success();
  Value ids = getIds();
  if (int64_t(getPadding()) >= 0)
    ids = IgnoreIdOp::create(b, getLoc(), ids, getPaddingAttr());
  grads[0] = EmbeddingGradOp::create(b, getLoc(), cotangents[0], ids,
                                     tensor(getTable()).getDimSize(0), Value());
  return success();
}

LogicalResult LayerNormOp::buildVJP(OpBuilder &b, ValueRange cotangents, ArrayRef<bool>,
                                    SmallVectorImpl<Value> &grads) {
  auto grad =
      LayerNormGradOp::create(b, getLoc(), cotangents[0], getX(), getWeight(), getEpsAttr());
  llvm::append_range(grads, grad.getResults());
  return success();
}

LogicalResult RmsNormOp::buildVJP(OpBuilder &b, ValueRange cotangents, ArrayRef<bool>,
                                  SmallVectorImpl<Value> &grads) {
  auto grad = RmsNormGradOp::create(b, getLoc(), cotangents[0], getX(), getWeight(), getEpsAttr());
  llvm::append_range(grads, grad.getResults());
  return success();
}

LogicalResult RopeOp::buildVJP(OpBuilder &b, ValueRange cotangents, ArrayRef<bool>,
                               SmallVectorImpl<Value> &grads) {
  // A rotation's transpose is the rotation back. The tables are constants.
  grads.push_back(RopeOp::create(b, getLoc(), cotangents[0], getCos(), getSin(), !getInverse()));
  grads.append({nullptr, nullptr});
  return success();
}

//===--- attention, loss ----------------------------------------------------===//

LogicalResult AttentionOp::buildVJP(OpBuilder &b, ValueRange cotangents, ArrayRef<bool>,
                                    SmallVectorImpl<Value> &grads) {
  if (cotangents[1])
    return emitOpError("has no derivative through lse");
  if (getKeyOffset())
    return emitOpError("has no derivative with a part of the keys; differentiate before keys are "
                       "divided");
  AttentionOptions options = getOptions();
  auto grad = AttentionGradOp::create(b, getLoc(), cotangents[0], getQ(), getK(), getV(), getOut(),
                                      getLse(), options, getSpec().getValue());
  grads.append({grad.getDq(), grad.getDk(), grad.getDv()});
  for (const AttentionOption &option : attentionOptions)
    if (options.*option.member)
      grads.push_back(option.hasGradient ? grad.getGradientOf(option.member) : Value());
  return success();
}

LogicalResult CrossEntropyOp::buildVJP(OpBuilder &b, ValueRange cotangents, ArrayRef<bool>,
                                       SmallVectorImpl<Value> &grads) {
  if (cotangents[1])
    return emitOpError("has no derivative through lse");
  grads.push_back(CrossEntropyGradOp::create(b, getLoc(), getLogits(), getTargets(), getLse(),
                                             cotangents[0], getScaleAttr()));
  grads.push_back(nullptr);
  return success();
}

//===--- element-wise -------------------------------------------------------===//

/// Sums `value` over the leading dimensions that `like` does not have.
static Value sumToShape(OpBuilder &b, Location loc, Value value, Value like) {
  int64_t extra = tensor(value).getRank() - tensor(like).getRank();
  if (extra == 0)
    return value;
  return ReduceOp::create(b, loc, ReduceKind::Sum, value,
                          llvm::to_vector(llvm::seq<int64_t>(0, extra)));
}

LogicalResult AddOp::buildVJP(OpBuilder &b, ValueRange cotangents, ArrayRef<bool> needed,
                              SmallVectorImpl<Value> &grads) {
  grads.push_back(cotangents[0]);
  grads.push_back(needed[1] ? sumToShape(b, getLoc(), cotangents[0], getRhs()) : Value());
  return success();
}

LogicalResult MulOp::buildVJP(OpBuilder &b, ValueRange cotangents, ArrayRef<bool> needed,
                              SmallVectorImpl<Value> &grads) {
  grads.push_back(needed[0] ? MulOp::create(b, getLoc(), cotangents[0], getRhs()).getResult()
                            : Value());
  grads.push_back(nullptr);
  if (needed[1])
    grads.back() =
        sumToShape(b, getLoc(), MulOp::create(b, getLoc(), cotangents[0], getLhs()), getRhs());
  return success();
}

LogicalResult CastOp::buildVJP(OpBuilder &b, ValueRange cotangents, ArrayRef<bool>,
                               SmallVectorImpl<Value> &grads) {
  grads.push_back(CastOp::create(b, getLoc(), getX().getType(), cotangents[0]));
  return success();
}

LogicalResult ScaleOp::buildVJP(OpBuilder &b, ValueRange cotangents, ArrayRef<bool>,
                                SmallVectorImpl<Value> &grads) {
  grads.push_back(ScaleOp::create(b, getLoc(), cotangents[0], getFactorAttr()));
  return success();
}

LogicalResult GeluOp::buildVJP(OpBuilder &b, ValueRange cotangents, ArrayRef<bool>,
                               SmallVectorImpl<Value> &grads) {
  grads.push_back(GeluGradOp::create(b, getLoc(), cotangents[0], getX(), getTanh()));
  return success();
}
LogicalResult SiluOp::buildVJP(OpBuilder &b, ValueRange cotangents, ArrayRef<bool>,
                               SmallVectorImpl<Value> &grads) {
  grads.push_back(SiluGradOp::create(b, getLoc(), cotangents[0], getX()));
  return success();
}
LogicalResult TanhOp::buildVJP(OpBuilder &b, ValueRange cotangents, ArrayRef<bool>,
                               SmallVectorImpl<Value> &grads) {
  // dy (1 - y^2)
  Value square = MulOp::create(b, getLoc(), getY(), getY());
  Value lost = MulOp::create(b, getLoc(), cotangents[0], square);
  lost = ScaleOp::create(b, getLoc(), lost, b.getF64FloatAttr(-1));
  grads.push_back(AddOp::create(b, getLoc(), cotangents[0], lost));
  return success();
}
LogicalResult ReluOp::buildVJP(OpBuilder &b, ValueRange cotangents, ArrayRef<bool>,
                               SmallVectorImpl<Value> &grads) {
  grads.push_back(ReluGradOp::create(b, getLoc(), cotangents[0], getX()));
  return success();
}

LogicalResult ClampOp::buildVJP(OpBuilder &b, ValueRange cotangents, ArrayRef<bool>,
                                SmallVectorImpl<Value> &grads) {
  grads.push_back(
      ClampGradOp::create(b, getLoc(), cotangents[0], getX(), getLeastAttr(), getMostAttr()));
  return success();
}

LogicalResult DropoutOp::buildVJP(OpBuilder &b, ValueRange cotangents, ArrayRef<bool>,
                                  SmallVectorImpl<Value> &grads) {
  grads.push_back(DropoutOp::create(b, getLoc(), cotangents[0], getIds(), getKey(), getOffsets(),
                                    getRateAttr(), getStreamAttr(), getSizesAttr(),
                                    getOffsetDimsAttr()));
  grads.resize(getNumOperands());
  return success();
}

LogicalResult MaskOp::buildVJP(OpBuilder &b, ValueRange cotangents, ArrayRef<bool>,
                               SmallVectorImpl<Value> &grads) {
  grads.push_back(
      MaskOp::create(b, getLoc(), cotangents[0], getOffset(), getDim(), getBelow(), APFloat(0.0)));
  grads.resize(getNumOperands());
  return success();
}

LogicalResult ExpOp::buildVJP(OpBuilder &b, ValueRange cotangents, ArrayRef<bool>,
                              SmallVectorImpl<Value> &grads) {
  grads.push_back(MulOp::create(b, getLoc(), cotangents[0], getY()));
  return success();
}

LogicalResult DecayOp::buildVJP(OpBuilder &b, ValueRange cotangents, ArrayRef<bool> needed,
                                SmallVectorImpl<Value> &grads) {
  // y dy, summed over what each operand does not have; y is 0 where neither counts.
  Value product = MulOp::create(b, getLoc(), cotangents[0], getY());
  int64_t rank = tensor(product).getRank();
  auto sumOver = [&](int64_t dim) -> Value {
    return ReduceOp::create(b, getLoc(), ReduceKind::Sum, product, ArrayRef<int64_t>{dim});
  };
  grads.push_back(needed[0] ? sumOver(rank - 1) : Value());
  grads.push_back(needed[1] ? ScaleOp::create(b, getLoc(), sumOver(rank - 2), b.getF64FloatAttr(-1))
                            : Value());
  return success();
}

/// r^n for n = 2, 3.
static Value powerOf(OpBuilder &b, Location loc, Value r, int n) {
  Value square = MulOp::create(b, loc, r, r);
  return n == 2 ? square : MulOp::create(b, loc, square, r).getResult();
}

LogicalResult LogOp::buildVJP(OpBuilder &b, ValueRange cotangents, ArrayRef<bool>,
                              SmallVectorImpl<Value> &grads) {
  Value r = InverseRootOp::create(b, getLoc(), getX(), b.getF64FloatAttr(0));
  grads.push_back(MulOp::create(b, getLoc(), cotangents[0], powerOf(b, getLoc(), r, 2)));
  return success();
}

LogicalResult InverseRootOp::buildVJP(OpBuilder &b, ValueRange cotangents, ArrayRef<bool>,
                                      SmallVectorImpl<Value> &grads) {
  Value slope =
      ScaleOp::create(b, getLoc(), powerOf(b, getLoc(), getY(), 3), b.getF64FloatAttr(-0.5));
  grads.push_back(MulOp::create(b, getLoc(), cotangents[0], slope));
  return success();
}

//===--- shape --------------------------------------------------------------===//

LogicalResult ReshapeOp::buildVJP(OpBuilder &b, ValueRange cotangents, ArrayRef<bool>,
                                  SmallVectorImpl<Value> &grads) {
  // A gradient may have another element type than what it is of.
  Type type = withElementType(getX().getType(), tensor(cotangents[0]).getElementType());
  grads.push_back(ReshapeOp::create(b, getLoc(), type, cotangents[0]));
  return success();
}

LogicalResult SliceOp::buildVJP(OpBuilder &b, ValueRange cotangents, ArrayRef<bool>,
                                SmallVectorImpl<Value> &grads) {
  if (redistributes(*this)) {
    grads.push_back(createRedistribution(b, getLoc(), cotangents[0], getDim()));
    return success();
  }
  grads.push_back(PadOp::create(b, getLoc(), cotangents[0], tensor(getX()).getDimSize(getDim()),
                                getDim(), /*value=*/0, getFrom()));
  return success();
}

LogicalResult PadOp::buildVJP(OpBuilder &b, ValueRange cotangents, ArrayRef<bool>,
                              SmallVectorImpl<Value> &grads) {
  grads.push_back(SliceOp::create(b, getLoc(), cotangents[0], tensor(getX()).getDimSize(getDim()),
                                  getDim(), getFrom()));
  return success();
}

LogicalResult TransposeBlocksOp::buildVJP(OpBuilder &b, ValueRange cotangents, ArrayRef<bool>,
                                          SmallVectorImpl<Value> &grads) {
  grads.push_back(TransposeBlocksOp::create(b, getLoc(), cotangents[0]));
  return success();
}

LogicalResult ReduceOp::buildVJP(OpBuilder &b, ValueRange cotangents, ArrayRef<bool>,
                                 SmallVectorImpl<Value> &grads) {
  if (getKind() != ReduceKind::Sum)
    return emitOpError("has no derivative: only sums have");
  Value dy = asSummed(b, cotangents[0], getX());
  grads.push_back(BroadcastOp::create(b, getLoc(), getX().getType(), dy, getDims()));
  return success();
}

LogicalResult BroadcastOp::buildVJP(OpBuilder &b, ValueRange cotangents, ArrayRef<bool>,
                                    SmallVectorImpl<Value> &grads) {
  grads.push_back(ReduceOp::create(b, getLoc(), ReduceKind::Sum, cotangents[0], getDims()));
  return success();
}
