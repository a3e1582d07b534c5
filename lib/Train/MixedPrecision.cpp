//===- MixedPrecision.cpp - train-mixed-precision ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "FunctionUtils.h"
#include "Train/Passes.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;

namespace meshwright::train {
#define GEN_PASS_DEF_TRAINMIXEDPRECISION
#include "Train/Passes.h.inc"
} // namespace meshwright::train

static FloatType floatOf(Value value) {
  return dyn_cast<FloatType>(getElementTypeOrSelf(value.getType()));
}

namespace {
class Narrower {
public:
  Narrower(ModuleOp module, FloatType narrow)
      : module(module), narrow(narrow), full(cast<FloatType>(atLeastF32(narrow))) {}

  LogicalResult run(func::FuncOp loss);

private:
  /// Gives what `function` computes its new types, from its arguments'.
  LogicalResult convert(func::FuncOp function);
  LogicalResult convert(RepeatOp repeat);
  LogicalResult convert(Operation *op);
  /// `use` takes a value of this element type, by a cast if need be.
  void want(OpOperand &use, FloatType element);

  ModuleOp module;
  FloatType narrow, full;
  /// Values that layers may carry as they are: of ops that stay in f32.
  DenseSet<Value> keptFull;
  /// Functions that are repeated, with the types they are called with.
  DenseMap<Operation *, SmallVector<Type>> called;
};
} // namespace

void Narrower::want(OpOperand &use, FloatType element) {
  FloatType have = floatOf(use.get());
  // Only what this pass narrows, and what meets it, is its business.
  if (!have || have == element || have.getWidth() > 32)
    return;
  OpBuilder builder(use.getOwner());
  use.set(CastOp::create(builder, use.getOwner()->getLoc(),
                         withElementType(use.get().getType(), element), use.get()));
}

LogicalResult Narrower::convert(RepeatOp repeat) {
  for (OpOperand &carried : repeat.getCarryMutable())
    if (!keptFull.contains(carried.get()))
      want(carried, narrow);
  for (auto [carried, result] : llvm::zip_equal(repeat.getCarry(), repeat.getCarried()))
    if (keptFull.contains(carried))
      keptFull.insert(result);
  auto callee = module.lookupSymbol<func::FuncOp>(repeat.getCallee());
  Block &body = callee.getBody().front();
  SmallVector<Type> types;
  if (repeat.getIndexed())
    types.push_back(body.getArgument(0).getType());
  for (auto [number, operand] : llvm::enumerate(repeat.getPassed())) {
    BlockArgument argument = body.getArgument(repeat.getCalleeArgument(number));
    Type element = getElementTypeOrSelf(operand.getType());
    types.push_back(withElementType(argument.getType(), element));
  }
  auto [known, isNew] = called.try_emplace(callee, types);
  if (!isNew && known->second != types)
    return repeat.emitOpError("calls ")
           << repeat.getCalleeAttr()
           << ", which another op calls with other element types; give each its own function";
  if (isNew) {
    for (auto [argument, type] : llvm::zip_equal(body.getArguments(), types))
      argument.setType(type);
    for (auto [i, carried] : llvm::enumerate(repeat.getCarry()))
      if (keptFull.contains(carried))
        keptFull.insert(body.getArgument(repeat.getCalleeArgument(i)));
    if (failed(convert(callee)))
      return failure();
    auto end = cast<func::ReturnOp>(body.getTerminator());
    for (OpOperand &next : end->getOpOperands())
      if (next.getOperandNumber() < repeat.getCarry().size() && floatOf(next.get()))
        want(next, floatOf(repeat.getCarry()[next.getOperandNumber()]));
    callee.setType(FunctionType::get(module.getContext(), types, end->getOperandTypes()));
  }
  for (auto [result, value] :
       llvm::zip_equal(repeat.getResults(), body.getTerminator()->getOperands()))
    result.setType(withElementType(result.getType(), getElementTypeOrSelf(value.getType())));
  return success();
}

LogicalResult Narrower::convert(Operation *op) {
  bool isFull = op->hasAttr(fullPrecisionAttr);
  auto precision = isFull ? PrecisionOpInterface() : dyn_cast<PrecisionOpInterface>(op);
  // Scalars take no memory: what is computed of them alone is not rounded, such as a weighed loss.
  auto isScalar = [](Type type) { return cast<RankedTensorType>(type).getRank() == 0; };
  bool ofScalars =
      llvm::all_of(op->getOperandTypes(), isScalar) && llvm::all_of(op->getResultTypes(), isScalar);
  FloatType otherwise = isFull || ofScalars ? full : narrow;
  for (OpOperand &operand : op->getOpOperands())
    if (floatOf(operand.get()))
      want(operand, precision ? precision.getOperandPrecision(operand.getOperandNumber(), narrow)
                              : otherwise);
  if (isFull)
    keptFull.insert(op->result_begin(), op->result_end());
  auto inferring = dyn_cast<InferTypeOpInterface>(op);
  if (inferring) {
    SmallVector<Type> types;
    if (failed(inferring.inferReturnTypes(op->getContext(), op->getLoc(), op->getOperands(),
                                          op->getAttrDictionary(), op->getPropertiesStorage(),
                                          op->getRegions(), types)))
      return failure();
    for (auto [result, type] : llvm::zip_equal(op->getResults(), types))
      result.setType(type);
    return success();
  }
  // Ops that only give elements another shape keep their type.
  bool fromOperand = op->getNumOperands() > 0 && floatOf(op->getOperand(0));
  FloatType element = fromOperand ? floatOf(op->getOperand(0))
                      : precision ? precision.getResultPrecision(narrow)
                      : isFull    ? full
                                  : narrow;
  for (Value result : op->getResults())
    if (floatOf(result) && floatOf(result).getWidth() <= 32)
      result.setType(withElementType(result.getType(), element));
  return success();
}

LogicalResult Narrower::convert(func::FuncOp function) {
  for (Operation &op :
       llvm::make_early_inc_range(function.getBody().front().without_terminator())) {
    LogicalResult done = success();
    if (auto get = dyn_cast<GetOp>(op))
      get.getValue().setType(
          cast<RankedTensorType>(module.lookupSymbol<VariableOp>(get.getVariable()).getType()));
    else if (auto repeat = dyn_cast<RepeatOp>(op))
      done = convert(repeat);
    else if (!isa<CastOp>(op))
      done = convert(&op);
    if (failed(done))
      return failure();
  }
  return success();
}

LogicalResult Narrower::run(func::FuncOp loss) {
  for (auto variable : module.getOps<VariableOp>()) {
    Type element = variable.getTensorType().getElementType();
    if (!element.isF32())
      return variable.emitOpError("is in ")
             << element << "; mixed precision starts from parameters in f32";
    if (!variable->hasAttr(fullPrecisionAttr))
      variable.setType(withElementType(variable.getType(), narrow));
  }
  if (failed(convert(loss)))
    return failure();
  auto end = cast<func::ReturnOp>(loss.getBody().front().getTerminator());
  for (OpOperand &result : end->getOpOperands()) {
    // A loss that is a sum is rounded once, as f32.
    if (result.get().hasOneUse() && isa_and_nonnull<SumOpInterface>(result.get().getDefiningOp()))
      result.get().setType(withElementType(result.get().getType(), full));
    want(result, full);
  }
  loss.setType(
      FunctionType::get(module.getContext(), loss.getArgumentTypes(), end->getOperandTypes()));
  return success();
}

namespace {
struct TrainMixedPrecision : train::impl::TrainMixedPrecisionBase<TrainMixedPrecision> {
  using TrainMixedPrecisionBase::TrainMixedPrecisionBase;

  void runOnModule() override {
    if (failed(run()))
      signalPassFailure();
    // From here on types say it.
    getOperation().walk([](Operation *op) { op->removeAttr(fullPrecisionAttr); });
  }

private:
  LogicalResult run() {
    ModuleOp module = getOperation();
    MLIRContext *context = &getContext();
    bool narrowGradients = gradDtype == GradientType::bf16,
         brain = precision == MixedPrecision::bf16;
    if (narrowGradients && !brain)
      return module.emitError("gradients in ")
             << optionText(gradDtype.getValue()) << " do not go with precision "
             << optionText(precision.getValue())
             << "; f32 goes with every precision, bf16 with bf16";
    if (precision == MixedPrecision::f32)
      return success();
    if (auto already = module->getAttr(precisionAttr))
      return module.emitError("has precision ") << already << " already";
    auto loss = module.lookupSymbol<func::FuncOp>("loss");
    if (!loss)
      return module.emitError("needs a function @loss");
    FloatType narrow =
        brain ? FloatType(BFloat16Type::get(context)) : FloatType(Float16Type::get(context));
    if (failed(Narrower(module, narrow).run(loss)))
      return failure();
    FloatType gradients = narrowGradients ? narrow : FloatType(Float32Type::get(context));
    module->setAttr(precisionAttr, StringAttr::get(context, optionText(precision.getValue())));
    module->setAttr(gradTypeAttr, TypeAttr::get(gradients));
    if (precision == MixedPrecision::fp16)
      module->setAttr(lossScalingAttr, UnitAttr::get(context));
    return success();
  }
};
} // namespace
