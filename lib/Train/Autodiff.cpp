//===- Autodiff.cpp - reverse-mode differentiation of @loss -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "FunctionUtils.h"
#include "Residuals.h"
#include "Train/Quantize.h"
#include "Train/Passes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;

namespace meshwright::train {
#define GEN_PASS_DEF_TRAINAUTODIFF
#include "Train/Passes.h.inc"
} // namespace meshwright::train

static bool isFloat(Value value) {
  return isa<FloatType>(cast<RankedTensorType>(value.getType()).getElementType());
}

namespace {
/// The derivative of a function that train.repeat calls.
struct Derivative {
  func::FuncOp forward, backward;
  unsigned residuals = 0;             ///< stacks the forward adds after the original ones
  llvm::BitVector active;             ///< of the original stacks, those that gradients pass
  SmallVector<unsigned> each, shared; ///< forward operands the backward takes again
};

/// Cotangents by forward value; sums where a value is used more than once.
class Cotangents {
public:
  Value lookup(Value value) const { return map.lookup(value); }
  void add(OpBuilder &builder, Location loc, Value value, Value cotangent) {
    Value &slot = map[value];
    name(cotangent, value.getLoc());
    slot = slot ? AddOp::create(builder, loc, slot, cotangent).getResult() : cotangent;
    name(slot, value.getLoc());
  }

private:
  /// Names the derivative with respect to the value at `of`: "d_" and that value's name. An op with
  /// several results has one location, so they share "d_" and the op's own name.
  static void name(Value cotangent, Location of) {
    constexpr StringRef prefix = "d_";
    auto mine = cotangent.getLoc()->findInstanceOf<NameLoc>();
    if (mine && mine.getName().strref().starts_with(prefix))
      return;
    Operation *op = cotangent.getDefiningOp();
    auto called = op && op->getNumResults() > 1 ? mine : of->findInstanceOf<NameLoc>();
    if (called)
      cotangent.setLoc(
          nameLocation((prefix + called.getName().strref()).str(), cotangent.getLoc()));
  }

  DenseMap<Value, Value> map;
};

class Differentiator {
public:
  Differentiator(ModuleOp module, ResidualChoice choice)
      : module(module), choice(choice), builder(module.getContext()) {}

  LogicalResult run(func::FuncOp loss);

private:
  /// The cotangent of the loss: 1, or the input by which gradients are scaled.
  Value seed(func::FuncOp gradients, Value loss);
  /// Values that depend on the active ones among the block's own.
  static DenseSet<Value> propagateActivity(Block &block, DenseSet<Value> active);
  /// Which operands of `op` want a gradient.
  static SmallVector<bool> activeOperands(Operation *op, const DenseSet<Value> &active) {
    return llvm::map_to_vector(op->getOperands(), [&](Value v) { return active.contains(v); });
  }

  /// Replaces each repeat in `block` that depends on `seeds` by its forward
  /// variant.
  LogicalResult augment(Block &block, const DenseSet<Value> &seeds);
  /// Walks the first `count` ops of `block` backward, emitting at `backward`.
  LogicalResult reverse(Block &block, unsigned count, const DenseSet<Value> &active,
                        Cotangents &cotangents, OpBuilder &backward);
  LogicalResult reverseRepeat(RepeatOp repeat, const DenseSet<Value> &active,
                              Cotangents &cotangents, OpBuilder &backward);
  FailureOr<Derivative> differentiate(RepeatOp repeat, const DenseSet<Value> &active);

  /// The type of a value's gradient.
  Type gradientType(Value value) const {
    Type element = gradientElements.lookup(value);
    if (Operation *op = value.getDefiningOp(); op && !element) {
      // Of what is made of a parameter in 8 bits it is the parameter's.
      auto reshape = dyn_cast<ReshapeOp>(op);
      if (isa<QuantizeOp, DequantizeOp, ObserveOp>(op) || (reshape && reshapesBlocks(reshape)))
        element = getElementTypeOrSelf(gradientType(op->getOperand(0)));
    }
    return element ? Type(withElementType(value.getType(), element)) : value.getType();
  }
  /// The type of the sum of a shared operand's gradients over the iterations of `repeat`. A sum
  /// over rounds is f32: it is rounded once, after the last, so that its digits do not depend on
  /// how many there are.
  Type sumType(RepeatOp repeat, Value shared) {
    Type type = gradientType(shared);
    bool isNarrow = getElementTypeOrSelf(type).getIntOrFloatBitWidth() < 32;
    return repeat.getTimes() && isNarrow ? withElementType(type, builder.getF32Type()) : type;
  }
  /// `gradient` in the type that `value`'s gradient has. `isOwn`: it is nothing
  /// else's gradient, and may change.
  Value fit(OpBuilder &builder, Value gradient, Value value, bool isOwn = false);

  ModuleOp module;
  ResidualChoice choice;
  OpBuilder builder;
  /// Of parameters whose gradients have another element type, here and inside the
  /// functions they are passed to.
  DenseMap<Value, Type> gradientElements;
  /// By the forward variant that a repeat calls.
  llvm::MapVector<Operation *, Derivative> derivatives;
  llvm::StringMap<Operation *> known;
};
} // namespace

/// Removes the ops that only say how gradients are computed: these are there now.
static void dropObservers(Operation *root) {
  root->walk([](Operation *op) {
    if (!isa<ObserveOp, QuantizeGradientOp>(op))
      return;
    op->replaceAllUsesWith(ValueRange(op->getOperand(0)));
    op->erase();
  });
}

/// Moves measures of forward values into the forward, before its `end`: the backward would need all of the value.
static void measureInForward(Block &backward, Operation *end) {
  for (Operation &op : llvm::make_early_inc_range(backward))
    if (isa<AmaxOp>(op) && op.getOperand(0).getParentBlock() == end->getBlock())
      op.moveBefore(end);
}

DenseSet<Value> Differentiator::propagateActivity(Block &block, DenseSet<Value> active) {
  for (Operation &op : block)
    if (!isa<ConstantOpInterface>(op) && !op.hasAttr(constantAttr) &&
        llvm::any_of(op.getOperands(), [&](Value v) { return active.contains(v); }))
      for (Value result : op.getResults())
        if (isFloat(result))
          active.insert(result);
  return active;
}

Value Differentiator::fit(OpBuilder &builder, Value gradient, Value value, bool isOwn) {
  Type type = gradientType(value);
  if (gradient.getType() == type)
    return gradient;
  // A sum is rounded once, to the type that is wanted.
  auto sum = gradient.getDefiningOp<SumOpInterface>();
  if (sum && isOwn && sum.isSum(cast<OpResult>(gradient).getResultNumber())) {
    gradient.setType(type);
    return gradient;
  }
  return CastOp::create(builder, gradient.getLoc(), type, gradient);
}

LogicalResult Differentiator::augment(Block &block, const DenseSet<Value> &seeds) {
  for (RepeatOp repeat : llvm::to_vector(block.getOps<RepeatOp>())) {
    // Anew each time: the repeat before this one has new results.
    DenseSet<Value> active = propagateActivity(block, seeds);
    if (llvm::none_of(repeat->getOperands(), [&](Value v) { return active.contains(v); }))
      continue;
    FailureOr<Derivative> derivative = differentiate(repeat, active);
    if (failed(derivative))
      return failure();
    OpBuilder b(repeat);
    SmallVector<Type> types(repeat.getResultTypes());
    for (Type type : derivative->forward.getResultTypes().take_back(derivative->residuals)) {
      auto slice = cast<RankedTensorType>(type);
      SmallVector<int64_t> shape{int64_t(repeat.getCount())};
      llvm::append_range(shape, slice.getShape());
      types.push_back(RankedTensorType::get(shape, slice.getElementType()));
    }
    auto forward = RepeatOp::create(b, repeat.getLoc(), types, derivative->forward.getSymName(),
                                    repeat.getCount(), repeat.getReverse(), repeat.getIndexed(),
                                    repeat.getCarry(), repeat.getEach(), repeat.getShared(),
                                    repeat.getTimes());
    forward->setDiscardableAttrs(repeat->getDiscardableAttrDictionary());
    repeat->replaceAllUsesWith(forward.getResults().take_front(repeat.getNumResults()));
    repeat.erase();
  }
  return success();
}

LogicalResult Differentiator::reverse(Block &block, unsigned count, const DenseSet<Value> &active,
                                      Cotangents &cotangents, OpBuilder &backward) {
  SmallVector<Operation *> ops;
  for (Operation &op : llvm::make_range(block.begin(), std::next(block.begin(), count)))
    ops.push_back(&op);
  for (Operation *op : llvm::reverse(ops)) {
    SmallVector<Value> results =
        llvm::map_to_vector(op->getResults(), [&](Value v) { return cotangents.lookup(v); });
    SmallVector<bool> needed = activeOperands(op, active);
    if (llvm::none_of(results, [](Value v) { return bool(v); }) ||
        !llvm::is_contained(needed, true))
      continue;
    if (auto repeat = dyn_cast<RepeatOp>(op)) {
      if (failed(reverseRepeat(repeat, active, cotangents, backward)))
        return failure();
      continue;
    }
    auto vjp = dyn_cast<VJPOpInterface>(op);
    if (!vjp)
      return op->emitOpError("lies between a parameter and the loss but has no derivative");
    SmallVector<Value> grads;
    if (failed(vjp.buildVJP(backward, results, needed, grads)))
      return failure();
    for (auto [operand, grad, wanted] : llvm::zip_equal(op->getOperands(), grads, needed))
      if (grad && wanted)
        cotangents.add(backward, op->getLoc(), operand,
                       fit(backward, grad, operand,
                           !llvm::is_contained(results, grad) && llvm::count(grads, grad) == 1 &&
                               grad.use_empty()));
  }
  return success();
}

LogicalResult Differentiator::reverseRepeat(RepeatOp repeat, const DenseSet<Value> &active,
                                            Cotangents &cotangents, OpBuilder &backward) {
  Location loc = repeat.getLoc();
  Derivative &derivative = derivatives[module.lookupSymbol(repeat.getCallee())];
  unsigned carries = repeat.getCarry().size();
  unsigned stacks = repeat.getNumResults() - carries - derivative.residuals;
  auto cotangentOrZero = [&](Value value) {
    Value cotangent = cotangents.lookup(value);
    return cotangent ? cotangent : zeros(backward, loc, value.getType());
  };
  SmallVector<Value> carry, each, shared, eachWanted, sharedWanted;
  for (Value value : repeat.getCarried())
    carry.push_back(cotangentOrZero(value));
  for (Value value : repeat.getShared())
    if (active.contains(value)) {
      sharedWanted.push_back(value);
      carry.push_back(zeros(backward, loc, sumType(repeat, value)));
    }
  for (Value value : repeat.getEach())
    if (active.contains(value))
      eachWanted.push_back(value);
  for (unsigned i : derivative.each)
    each.push_back(repeat.getEach()[i]);
  llvm::append_range(each, repeat.getResults().take_back(derivative.residuals));
  for (auto [i, value] : llvm::enumerate(repeat.getStacks().take_front(stacks)))
    if (derivative.active.test(i))
      each.push_back(cotangentOrZero(value));
  for (unsigned i : derivative.shared)
    shared.push_back(repeat.getShared()[i]);

  SmallVector<Type> types(llvm::map_range(carry, [](Value v) { return v.getType(); }));
  for (Value value : eachWanted)
    types.push_back(gradientType(value));
  auto gradient =
      RepeatOp::create(backward, loc, types, derivative.backward.getSymName(), repeat.getCount(),
                       !repeat.getReverse() && !repeat.getTimes(), repeat.getIndexed(), carry,
                       each, shared, repeat.getTimes());
  gradient->setDiscardableAttrs(repeat->getDiscardableAttrDictionary());
  setRole(gradient, *roleOf(derivative.backward));
  ValueRange results = gradient.getResults();
  auto take = [&](ValueRange operands) {
    for (Value operand : operands) {
      if (active.contains(operand))
        cotangents.add(backward, loc, operand, fit(backward, results.front(), operand));
      results = results.drop_front();
    }
  };
  take(repeat.getCarry());
  take(sharedWanted);
  take(eachWanted);
  return success();
}

FailureOr<Derivative> Differentiator::differentiate(RepeatOp repeat,
                                                    const DenseSet<Value> &active) {
  auto callee = module.lookupSymbol<func::FuncOp>(repeat.getCallee());
  Location loc = callee.getLoc();
  unsigned index = repeat.getIndexed() ? 1 : 0, carries = repeat.getCarry().size();
  unsigned firstEach = index + carries, firstShared = firstEach + repeat.getEach().size();

  SmallVector<bool> wanted = activeOperands(repeat, active);
  std::string key = callee.getSymName().str() + "/" +
                    llvm::join(llvm::map_range(wanted, [](bool b) { return b ? "1" : "0"; }), "");
  for (Value value : repeat->getOperands())
    if (Type element = gradientElements.lookup(value))
      llvm::raw_string_ostream(key) << "/" << element;
    else
      key += "/";
  llvm::raw_string_ostream(key) << "/" << index << "/" << carries << "/" << repeat.getEach().size();
  if (Operation *forward = known.lookup(key))
    return derivatives[forward];
  for (Value value : repeat.getCarry())
    if (!isFloat(value))
      return repeat.emitOpError("carries ") << value.getType() << ", which has no derivative";
  std::string suffix = known.empty() ? "" : ("." + llvm::Twine(known.size())).str();

  // The forward: the callee, its own repeats augmented.
  Derivative derivative;
  derivative.forward =
      createFunction(module, builder, loc, (callee.getSymName() + ".forward" + suffix).str(),
                     callee.getArgumentTypes(), {});
  setRole(derivative.forward, repeat.getTimes() ? Role::Round : Role::Forward);
  SmallVector<Value> results = inlineBody(callee, builder, derivative.forward.getArguments());
  finishFunction(derivative.forward, builder, results);
  Block &body = derivative.forward.getBody().front();
  DenseSet<Value> seeds;
  for (auto [i, argument] : llvm::enumerate(body.getArguments())) {
    if (i >= index && isFloat(argument) && (i < firstEach || wanted[i - index]))
      seeds.insert(argument);
    // What is carried has its own type: it comes from another iteration.
    if (i < firstEach || !isFloat(argument))
      continue;
    Value operand = repeat->getOperand(i - index);
    Type type = i < firstShared ? gradientType(operand) : sumType(repeat, operand);
    if (Type element = getElementTypeOrSelf(type);
        element != getElementTypeOrSelf(argument.getType()))
      gradientElements[argument] = element;
  }
  if (failed(augment(body, seeds)))
    return failure();
  DenseSet<Value> inner = propagateActivity(body, seeds);

  // The backward, at first reading forward values across the function boundary.
  SmallVector<Type> none;
  derivative.backward = createFunction(
      module, builder, loc, (callee.getSymName() + ".backward" + suffix).str(), none, none);
  setRole(derivative.backward, repeat.getTimes() ? Role::Round : Role::Backward);
  Block &back = derivative.backward.getBody().front();
  if (index)
    back.addArgument(body.getArgument(0).getType(), loc);
  Cotangents cotangents;
  Operation *end = body.getTerminator();
  for (Value value : end->getOperands().take_front(carries))
    cotangents.add(builder, loc, value, back.addArgument(value.getType(), loc));
  SmallVector<BlockArgument> sharedSums;
  for (unsigned i = firstShared; i < body.getNumArguments(); ++i)
    if (inner.contains(body.getArgument(i)))
      sharedSums.push_back(back.addArgument(gradientType(body.getArgument(i)), loc));
  unsigned eachOffset = back.getNumArguments();
  for (Value value : end->getOperands().drop_front(carries)) {
    derivative.active.push_back(inner.contains(value));
    if (derivative.active.back())
      cotangents.add(builder, loc, value, back.addArgument(value.getType(), loc));
  }
  if (failed(
          reverse(body, std::distance(body.begin(), body.end()) - 1, inner, cotangents, builder)))
    return failure();
  SmallVector<Value> outputs;
  auto gradientOf = [&](Value value) {
    Value gradient = cotangents.lookup(value);
    return gradient ? gradient : zeros(builder, loc, gradientType(value));
  };
  for (unsigned i = index; i < firstEach; ++i)
    outputs.push_back(gradientOf(body.getArgument(i)));
  for (unsigned i = firstShared, sum = 0; i < body.getNumArguments(); ++i)
    if (inner.contains(body.getArgument(i)))
      outputs.push_back(
          AddOp::create(builder, loc, sharedSums[sum++], gradientOf(body.getArgument(i))));
  for (unsigned i = firstEach; i < firstShared; ++i)
    if (inner.contains(body.getArgument(i)))
      outputs.push_back(gradientOf(body.getArgument(i)));
  dropObservers(derivative.forward);
  measureInForward(back, end);

  // How the forward values it reads reach it.
  llvm::SetVector<Value> needed;
  auto need = [&](Value value) {
    if (value.getParentBlock() == &body)
      needed.insert(value);
  };
  for (Operation &op : back)
    llvm::for_each(op.getOperands(), need);
  llvm::for_each(outputs, need);
  auto isFree = [&](Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument && (argument.getArgNumber() < index || argument.getArgNumber() >= firstEach);
  };
  // The backward would write them again for an op that is not fused with what it reads.
  DenseSet<Value> preferred;
  if (choice == ResidualChoice::written)
    for (Operation &op : back)
      if (!isa<KernelOpInterface>(op))
        for (Value value : op.getOperands()) {
          while (auto reshape = value.getDefiningOp<ReshapeOp>()) // a view
            value = reshape.getX();
          // What is of 8 bits is stored in fewer bytes: weights for all layers.
          if (!isa_and_nonnull<DequantizeRowsOp, DequantizeOp>(value.getDefiningOp()))
            preferred.insert(value);
        }
  // How often rounds run is data, so no memory can be planned for what each of them leaves.
  Residuals residuals = repeat.getTimes() ? recomputeAll(body, needed)
                                          : chooseResiduals(body, needed, isFree, preferred);
  if (repeat.getTimes() && !llvm::all_of(residuals.kept, isFree))
    return repeat.emitOpError("carries a value that its derivative needs, which is possible only "
                              "where the number of iterations is known");
  if (repeat.getTimes())
    residuals.kept.clear();
  IRMapping map;
  llvm::SetVector<Value> taken(needed);
  for (Operation *op : residuals.recomputed)
    taken.insert(op->operand_begin(), op->operand_end());
  if (index)
    map.map(body.getArgument(0), back.getArgument(0));
  unsigned at = eachOffset;
  auto receive = [&](Value value) {
    map.map(value, back.insertArgument(at++, value.getType(), value.getLoc()));
  };
  for (unsigned i = firstEach; i < firstShared; ++i)
    if (taken.contains(body.getArgument(i))) {
      derivative.each.push_back(i - firstEach);
      receive(body.getArgument(i));
    }
  for (Value value : residuals.kept)
    receive(value);
  at = back.getNumArguments();
  for (unsigned i = firstShared; i < body.getNumArguments(); ++i)
    if (taken.contains(body.getArgument(i))) {
      derivative.shared.push_back(i - firstShared);
      receive(body.getArgument(i));
    }
  OpBuilder start = OpBuilder::atBlockBegin(&back);
  for (Operation *op : residuals.recomputed) {
    Operation *again = start.clone(*op, map);
    if (repeat.getTimes())
      again->setAttr(recomputedAttr, builder.getStringAttr(recomputedOfRounds));
  }
  for (Operation &op : back)
    for (OpOperand &operand : op.getOpOperands())
      operand.set(map.lookupOrDefault(operand.get()));
  // The backward's iterations run in the forward's order, not from the last. That matters only to one
  // that reads its number, and only where what is carried is more than a sum.
  if (repeat.getTimes() && index && !back.getArgument(0).use_empty())
    for (unsigned i = index; i < firstEach; ++i)
      if (outputs[i - index] != back.getArgument(i))
        return repeat.emitOpError("reads the iteration's number and does more than add to what it "
                                  "carries, which has a derivative only where the number of "
                                  "iterations is known");
  finishFunction(derivative.backward, builder,
                 llvm::map_to_vector(outputs, [&](Value v) { return map.lookupOrDefault(v); }));

  derivative.residuals = residuals.kept.size();
  end->insertOperands(end->getNumOperands(), residuals.kept.getArrayRef());
  derivative.forward.setType(
      builder.getFunctionType(body.getArgumentTypes(), end->getOperandTypes()));
  known[key] = derivative.forward;
  derivatives[derivative.forward] = derivative;
  return derivative;
}

Value Differentiator::seed(func::FuncOp gradients, Value loss) {
  if (!module->hasAttr(lossScalingAttr))
    return FillOp::create(builder, loss.getLoc(), loss.getType(), builder.getF64FloatAttr(1.0));
  unsigned at = gradients.getNumArguments();
  auto name = builder.getNamedAttr(inputAttr, builder.getStringAttr("loss_scale"));
  (void)gradients.insertArgument(at, loss.getType(), builder.getDictionaryAttr(name),
                                 loss.getLoc());
  return gradients.getArgument(at);
}

LogicalResult Differentiator::run(func::FuncOp loss) {
  if (failed(checkNameIsFree(module, "loss.gradients", "the function with the gradients of @loss")))
    return failure();
  Location loc = loss.getLoc();
  // One value of each variable, so that layers take slices of its stack once.
  DenseMap<StringAttr, GetOp> reads;
  for (GetOp get : llvm::make_early_inc_range(loss.getOps<GetOp>()))
    if (auto [read, isNew] = reads.try_emplace(get.getVariableAttr().getAttr(), get); !isNew) {
      get.replaceAllUsesWith(read->second.getResult());
      get.erase();
    }
  module.walk([&](RepeatOp repeat) {
    Role role = repeat.getTimes() ? Role::Round : Role::Forward;
    setRole(repeat, role);
    setRole(module.lookupSymbol(repeat.getCallee()), role);
  });
  func::FuncOp gradients =
      createFunction(module, builder, loc, "loss.gradients", loss.getArgumentTypes(), {});
  copyArgumentAttrs(loss, gradients);
  SmallVector<Value> results = inlineBody(loss, builder, gradients.getArguments());
  Block &body = gradients.getBody().front();
  DenseSet<Value> parameters;
  llvm::MapVector<StringAttr, Value> gradient;
  for (auto variable : module.getOps<VariableOp>())
    if (variable.isParameter() || isObserved(variable))
      gradient[variable.getSymNameAttr()] = nullptr;
  SymbolTable symbols(module);
  for (auto get : body.getOps<GetOp>())
    if (auto variable = symbols.lookup<VariableOp>(get.getVariable());
        isFloat(get) && !variable->hasAttr(balanceRateAttr) && !variable->hasAttr(frozenAttr)) {
      parameters.insert(get);
      if (auto attr = module->getAttrOfType<TypeAttr>(gradTypeAttr); attr && variable.isParameter())
        gradientElements[get] = attr.getValue();
    }
  // Inlined values survive augmentation except repeats' results: keep the loss
  // reachable through a terminator while that happens.
  finishFunction(gradients, builder, results);
  if (failed(augment(body, parameters)))
    return failure();
  DenseSet<Value> active = propagateActivity(body, parameters);
  Operation *end = body.getTerminator();
  Value value = end->getOperand(0);
  builder.setInsertionPoint(end);
  unsigned count = std::distance(body.begin(), Block::iterator(end));
  Cotangents cotangents;
  cotangents.add(builder, loc, value, seed(gradients, value));
  if (failed(reverse(body, count, active, cotangents, builder)))
    return failure();

  for (auto get : body.getOps<GetOp>()) {
    Value contribution = cotangents.lookup(get);
    auto entry = gradient.find(get.getVariableAttr().getAttr());
    if (!contribution || entry == gradient.end())
      continue;
    Value &sum = entry->second;
    sum = sum ? AddOp::create(builder, loc, sum, contribution).getResult() : contribution;
  }
  SmallVector<Value> outputs(end->getOperands());
  SmallVector<DictionaryAttr> attrs{
      builder.getDictionaryAttr(builder.getNamedAttr(outputAttr, builder.getStringAttr("loss")))};
  for (unsigned i = 1; i < outputs.size(); ++i)
    attrs.push_back(builder.getDictionaryAttr(loss.getResultAttrs(i)));
  for (auto &[name, grad] : gradient)
    if (grad) {
      outputs.push_back(grad);
      attrs.push_back(builder.getDictionaryAttr(
          builder.getNamedAttr(gradientAttr, FlatSymbolRefAttr::get(name))));
    }
  if (outputs.size() == loss.getNumResults())
    return loss.emitError("the loss depends on no parameter that is trained");
  end->setOperands(outputs);
  gradients.setType(builder.getFunctionType(body.getArgumentTypes(), end->getOperandTypes()));
  gradients.setAllResultAttrs(attrs);
  dropObservers(module);
  return success();
}

namespace {
struct TrainAutodiff : train::impl::TrainAutodiffBase<TrainAutodiff> {
  using TrainAutodiffBase::TrainAutodiffBase;
  void runOnModule() override {
    auto loss = getOperation().lookupSymbol<func::FuncOp>("loss");
    auto isReported = [&](unsigned i) {
      auto type = dyn_cast<RankedTensorType>(loss.getResultTypes()[i]);
      return tokensOf(loss, i) || (type && type.getElementType().isF32() && (i > 0 || type.getRank() == 0));
    };
    if (!loss || loss.getNumResults() < 1 || tokensOf(loss, 0) ||
        !llvm::all_of(llvm::seq(loss.getNumResults()), isReported)) {
      getOperation().emitError(
          "needs a function @loss with a result of type tensor<f32>, and others "
          "of f32 if it reports more than the loss, but for counts of tokens");
      return signalPassFailure();
    }
    for (unsigned i = 1; i < loss.getNumResults(); ++i)
      if (outputName(loss, i).empty() && !tokensOf(loss, i)) {
        loss.emitError("result ") << i << " has no " << outputAttr;
        return signalPassFailure();
      }
    if (failed(Differentiator(getOperation(), residuals).run(loss)))
      signalPassFailure();
  }
};
} // namespace
