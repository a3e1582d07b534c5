//===- Accumulate.cpp - the microbatch loop ---------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "FunctionUtils.h"
#include "Train/Passes.h"
#include "Train/Quantize.h"
#include "meshwright/runtime/ExpertPlacement.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;

namespace meshwright::train {
#define GEN_PASS_DEF_TRAINACCUMULATE
#include "Train/Passes.h.inc"
} // namespace meshwright::train

/// The number in `train.batch_sum` of an argument.
static std::optional<int64_t> batchSumOf(func::FuncOp function, unsigned argument) {
  auto number = function.getArgAttrOfType<IntegerAttr>(argument, batchSumAttr);
  return number ? std::optional(number.getInt()) : std::nullopt;
}

/// Whether each microbatch has its own part of this input: not of a scalar, nor of what is one for the step.
static bool isPerMicrobatch(func::FuncOp function, unsigned argument) {
  auto type = cast<RankedTensorType>(function.getArgument(argument).getType());
  StringRef name = inputName(function, argument);
  return name != "key" && name != expertPlacementInput && !batchSumOf(function, argument) && type.getRank() > 0;
}

static RankedTensorType withLeading(Type type, int64_t count) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape{count};
  llvm::append_range(shape, tensor.getShape());
  return RankedTensorType::get(shape, tensor.getElementType());
}

namespace {
class MicrobatchLoop {
public:
  MicrobatchLoop(ModuleOp module, int64_t microbatches)
      : module(module), builder(module.getContext()), microbatches(microbatches) {}

  /// `@name` over all microbatches, or with `isRamped` over as many as the input `microbatches` says, summing every
  /// result of `one`. Of `one`'s arguments that are sums over the batch, the values are those of `counts`, or zeros
  /// without it.
  void sum(func::FuncOp one, func::FuncOp counts, StringRef name, StringRef bodyName, bool isRamped);

private:
  /// The sums of what `one` returns for `operands`, its arguments or, where microbatches have parts of
  /// their own, those of all.
  SmallVector<Value> sumResults(func::FuncOp one, ArrayRef<Value> operands, StringRef bodyName,
                                Role role);
  /// The function that only `repeat` calls: of runs of layers that have one, all but the last get
  /// copies.
  func::FuncOp ownCallee(RepeatOp repeat);
  /// Whether a result of `one` is what a microbatch has observed, of which the largest counts.
  bool isMaximum(func::FuncOp one, unsigned result);
  static Value combine(OpBuilder &b, Location loc, Value accumulator, Value value, bool isMaximum);
  /// Gradients that a repeat stacks are summed where they are made.
  Value accumulateInside(Value gradient, Value accumulator, bool isMaximum);

  ModuleOp module;
  OpBuilder builder;
  int64_t microbatches;
  Value times; ///< how many of them a step has, if not all
  DenseMap<StringAttr, unsigned> callsOf; ///< repeats of a function
};
} // namespace

func::FuncOp MicrobatchLoop::ownCallee(RepeatOp repeat) {
  auto callee = module.lookupSymbol<func::FuncOp>(repeat.getCallee());
  unsigned &calls = callsOf[repeat.getCalleeAttr().getAttr()];
  if (calls == 1)
    return callee;
  --calls;
  func::FuncOp copy = callee.clone();
  SymbolTable(module).insert(copy, std::next(callee->getIterator()));
  repeat.setCallee(copy.getSymName());
  callsOf[copy.getSymNameAttr()] = 1;
  return copy;
}

bool MicrobatchLoop::isMaximum(func::FuncOp one, unsigned result) {
  auto of = one.getResultAttrOfType<FlatSymbolRefAttr>(result, gradientAttr);
  return of && isObserved(module.lookupSymbol<VariableOp>(of.getAttr()));
}

Value MicrobatchLoop::combine(OpBuilder &b, Location loc, Value accumulator, Value value, bool isMaximum) {
  if (isMaximum)
    return MaximumOp::create(b, loc, accumulator, value);
  return AccumulateOp::create(b, loc, accumulator, value);
}

Value MicrobatchLoop::accumulateInside(Value gradient, Value accumulator, bool isMaximum) {
  auto repeat = gradient.getDefiningOp<RepeatOp>();
  if (!repeat || !gradient.hasOneUse() || !llvm::is_contained(repeat.getStacks(), gradient))
    return {};
  // One more `each` operand, the accumulator's slices, added to the stacked value.
  func::FuncOp callee = ownCallee(repeat);
  Block &body = callee.getBody().front();
  Operation *end = body.getTerminator();
  unsigned result = cast<OpResult>(gradient).getResultNumber();
  unsigned position = repeat.getCarry().size() + repeat.getEach().size();
  OpBuilder b(end);
  Value slice = body.insertArgument(repeat.getCalleeArgument(position),
                                    end->getOperand(result).getType(), repeat.getLoc());
  end->setOperand(result, combine(b, repeat.getLoc(), slice, end->getOperand(result), isMaximum));
  callee.setType(b.getFunctionType(body.getArgumentTypes(), end->getOperandTypes()));
  repeat.getEachMutable().append(accumulator);
  return gradient;
}

SmallVector<Value> MicrobatchLoop::sumResults(func::FuncOp one, ArrayRef<Value> operands,
                                              StringRef bodyName, Role role) {
  Location loc = one.getLoc();
  if (microbatches == 1) {
    SmallVector<Value> own;
    for (auto [i, operand] : llvm::enumerate(operands))
      own.push_back(isPerMicrobatch(one, i)
                        ? Value(ReshapeOp::create(builder, operand.getLoc(),
                                                  one.getArgumentTypes()[i], operand))
                        : operand);
    return inlineBody(one, builder, own);
  }
  SmallVector<Value> carry, each, shared;
  SmallVector<unsigned> order; // arguments of `one` as each, then as shared
  for (Type type : one.getResultTypes())
    carry.push_back(zeros(builder, loc, type));
  for (bool per : {true, false})
    for (auto [i, operand] : llvm::enumerate(operands))
      if (operand && isPerMicrobatch(one, i) == per) {
        (per ? each : shared).push_back(operand);
        order.push_back(i);
      }
  auto repeat = RepeatOp::create(builder, loc, one.getResultTypes(), bodyName, microbatches, false,
                                 false, carry, each, shared, times);
  setRole(repeat, role);
  OpBuilder::InsertionGuard guard(builder);
  SmallVector<Type> types(one.getResultTypes());
  for (unsigned i : order)
    types.push_back(one.getArgumentTypes()[i]);
  func::FuncOp body = createFunction(module, builder, loc, bodyName, types, {});
  repeat.setCallee(body.getSymName());
  setRole(body, role);
  SmallVector<Value> arguments(operands.size());
  for (auto [at, i] : llvm::enumerate(order))
    arguments[i] = body.getArgument(carry.size() + at);
  SmallVector<Value> values = inlineBody(one, builder, arguments);
  callsOf.clear();
  module.walk([&](RepeatOp repeat) {
    if (repeat->getParentOp() != one)
      ++callsOf[repeat.getCalleeAttr().getAttr()];
  });
  // Terminated first: a gradient with one use is one that nothing else reads.
  auto end = func::ReturnOp::create(builder, loc, values);
  builder.setInsertionPoint(end);
  for (unsigned i = 0; i < values.size(); ++i) {
    // A forward that adds up counts would need the sum where it is run again, too.
    bool isGradient = bool(one.getResultAttr(i, gradientAttr)), isMaximum = this->isMaximum(one, i);
    Value sum = isGradient ? accumulateInside(values[i], body.getArgument(i), isMaximum) : Value();
    end->setOperand(i, sum ? sum : combine(builder, loc, body.getArgument(i), values[i], isMaximum));
  }
  body.setType(builder.getFunctionType(types, end->getOperandTypes()));
  return llvm::to_vector_of<Value>(repeat.getResults());
}

void MicrobatchLoop::sum(func::FuncOp one, func::FuncOp counts, StringRef name,
                         StringRef bodyName, bool isRamped) {
  SmallVector<Type> types;
  SmallVector<unsigned> inputs;
  auto isCount = [&](unsigned i) { return inputName(one, i) == microbatchesInput; };
  for (auto [i, type] : llvm::enumerate(one.getArgumentTypes()))
    if (!batchSumOf(one, i) && (isRamped || !isCount(i))) {
      inputs.push_back(i);
      types.push_back(isPerMicrobatch(one, i) ? withLeading(type, microbatches) : Type(type));
    }
  func::FuncOp all = createFunction(module, builder, one.getLoc(), name, types, {});
  SmallVector<Value> operands(one.getNumArguments());
  for (auto [argument, i] : llvm::zip_equal(all.getArguments(), inputs)) {
    all.setArgAttrs(argument.getArgNumber(), one.getArgAttrDict(i));
    argument.setLoc(one.getArgument(i).getLoc());
    if (!isCount(i))
      operands[i] = argument;
  }
  times = isRamped ? inputNamed(all, microbatchesInput) : Value();
  SmallVector<Value> sums;
  if (counts)
    sums = sumResults(counts, llvm::map_to_vector(llvm::seq(counts.getNumArguments()),
                                                  [&](unsigned i) -> Value {
                                                    return inputNamed(all, inputName(counts, i));
                                                  }),
                      "count", Role::Count);
  for (auto [i, operand] : llvm::enumerate(operands))
    if (std::optional<int64_t> number = batchSumOf(one, i))
      operand = counts ? sums[*number]
                       : zeros(builder, one.getArgument(i).getLoc(), one.getArgumentTypes()[i]);
  SmallVector<Value> results = sumResults(one, operands, bodyName, Role::Microbatch);
  finishFunction(all, builder, results);
  if (ArrayAttr attrs = one.getAllResultAttrs())
    all.setAllResultAttrs(attrs);
}

namespace {
/// What a function is in evaluation, without random zeroing and counts of tokens, and the
/// arguments of the original that it has no more.
struct Evaluation {
  func::FuncOp function;
  llvm::BitVector gone;
};
} // namespace

/// Drops the operands of `repeat` whose arguments its new callee has not, and unused stacks.
static void callInstead(RepeatOp repeat, Evaluation callee) {
  repeat.setCallee(callee.function.getSymName());
  unsigned carries = repeat.getCarry().size(), eachs = repeat.getEach().size();
  for (unsigned i = repeat.getPassed().size(); i-- > carries;)
    if (callee.gone.test(repeat.getCalleeArgument(i))) {
      if (i < carries + eachs)
        repeat.getEachMutable().erase(i - carries);
      else
        repeat.getSharedMutable().erase(i - carries - eachs);
    }
  SmallVector<Value> kept(repeat.getCarried());
  for (Value stack : repeat.getStacks())
    if (!stack.use_empty())
      kept.push_back(stack);
  if (kept.size() == repeat.getNumResults())
    return;
  OpBuilder b(repeat);
  auto without = RepeatOp::create(b, repeat.getLoc(), ValueRange(kept).getTypes(),
                                  repeat.getCallee(), repeat.getCount(), repeat.getReverse(),
                                  repeat.getIndexed(), repeat.getCarry(), repeat.getEach(),
                                  repeat.getShared());
  without->setDiscardableAttrs(repeat->getDiscardableAttrDictionary());
  for (auto [old, now] : llvm::zip_equal(kept, without.getResults()))
    old.replaceAllUsesWith(now);
  repeat.erase();
}

/// Makes the results of `function` those that `keeps` says.
static bool keepResults(func::FuncOp function, llvm::function_ref<bool(unsigned)> keeps) {
  llvm::BitVector gone(function.getNumResults());
  for (unsigned i = 0; i < gone.size(); ++i)
    if (!keeps(i))
      gone.set(i);
  if (gone.none())
    return false;
  function.getBody().front().getTerminator()->eraseOperands(gone);
  (void)function.eraseResults(gone);
  return true;
}

/// `function` and what it repeats in evaluation, and without the arguments only training needed;
/// the same function when there is no difference. Of its results those that `keeps` says are left.
static Evaluation forEvaluation(ModuleOp module, func::FuncOp function,
                                llvm::function_ref<bool(unsigned)> keeps, unsigned keep = 0) {
  auto copy = function.clone();
  copy.setSymName((function.getSymName() + ".eval").str());
  copy.setPrivate();
  bool drops = keepResults(copy, keeps);
  for (Operation &op : llvm::make_early_inc_range(copy.getBody().front())) {
    if (auto random = dyn_cast<RandomOpInterface>(op)) {
      drops |= random.dropRandomness();
    } else if (auto repeat = dyn_cast<RepeatOp>(op)) {
      auto callee = module.lookupSymbol<func::FuncOp>(repeat.getCallee());
      unsigned carries = repeat.getCarry().size();
      Evaluation other = forEvaluation(
          module, callee,
          [&](unsigned i) { return i < carries || !repeat.getResult(i).use_empty(); },
          repeat.getCalleeArgument(carries));
      drops |= other.function != callee;
      callInstead(repeat, other);
    }
  }
  llvm::BitVector gone(function.getNumArguments());
  if (!drops) {
    copy.erase();
    return {function, gone};
  }
  // Keys are folded where only dropout read them; counts were results alone.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(copy.getBody().front())))
    if (isOpTriviallyDead(&op))
      op.erase();
  for (unsigned i = keep; i < function.getNumArguments(); ++i)
    if (copy.getArgument(i).use_empty() && !function.getArgument(i).use_empty())
      gone.set(i);
  (void)copy.eraseArguments(gone);
  SymbolTable(module).insert(copy);
  return {copy, gone};
}

/// Whether `counts` is computed from inputs of `loss`.
static LogicalResult checkCounts(func::FuncOp counts, func::FuncOp loss) {
  if (counts.isExternal())
    return counts.emitError("has no body; train-count-batch makes one");
  for (unsigned i = 0; i < counts.getNumArguments(); ++i) {
    StringRef name = inputName(counts, i);
    bool known = llvm::any_of(llvm::seq(loss.getNumArguments()), [&](unsigned j) {
      return !name.empty() && inputName(loss, j) == name &&
             loss.getArgumentTypes()[j] == counts.getArgumentTypes()[i];
    });
    if (!known)
      return counts.emitError("argument ") << i << " is no input of @loss";
  }
  return success();
}

/// Whether `times`, the input of `loss` that says how many microbatches a step has, says that alone.
static LogicalResult checkTimes(func::FuncOp loss, BlockArgument times, int64_t microbatches) {
  auto type = cast<RankedTensorType>(times.getType());
  if (type.getRank() != 0 || !type.getElementType().isInteger(32))
    return loss.emitError("input ") << microbatchesInput << " is " << type << "; expected tensor<i32>";
  if (!times.use_empty())
    return loss.emitError("input ") << microbatchesInput << " is used by the loss of a microbatch, which does not depend on "
                                    << "how many there are; multiply means over the batch by the input "
                                    << batchWeightInput;
  if (!inputNamed(loss, "target_weight") && !inputNamed(loss, batchWeightInput))
    return loss.emitError("has an input ") << microbatchesInput << ", but none that says what a smaller batch's means are "
                                           << "divided by: target_weight, of counted targets, or " << batchWeightInput;
  if (microbatches == 1)
    return loss.emitError("has an input ") << microbatchesInput << ", but " << microbatchesAttr
                                           << " is 1: there are no fewer microbatches to run; leave the input out";
  return success();
}

namespace {
struct TrainAccumulate : train::impl::TrainAccumulateBase<TrainAccumulate> {
  void runOnModule() override {
    ModuleOp module = getOperation();
    auto loss = module.lookupSymbol<func::FuncOp>("loss");
    auto gradients = module.lookupSymbol<func::FuncOp>("loss.gradients");
    std::optional<int64_t> count = moduleSize(module, microbatchesAttr);
    if (!loss || !gradients || !count) {
      module.emitError("needs @loss, @loss.gradients and the module's attribute ")
          << microbatchesAttr << ", in how many parts a batch is computed (1 : i64: at once)";
      return signalPassFailure();
    }
    func::FuncOp counts;
    for (unsigned i = 0; i < loss.getNumArguments(); ++i)
      if (batchSumOf(loss, i))
        counts = module.lookupSymbol<func::FuncOp>("loss.counts");
    if (counts && failed(checkCounts(counts, loss)))
      return signalPassFailure();
    for (unsigned i = 0; i < loss.getNumArguments(); ++i) {
      std::optional<int64_t> number = batchSumOf(loss, i);
      if (number && counts && uint64_t(*number) < counts.getNumResults() &&
          counts.getResultTypes()[*number] == loss.getArgumentTypes()[i])
        continue;
      if (number) {
        loss.emitError("argument ") << i << " is the sum of result " << *number << " of @loss.counts, "
                                    << "which has none of its type; train-count-batch makes both";
        return signalPassFailure();
      }
      if (inputName(loss, i).empty()) {
        loss.emitError("argument ") << i << " has no train.input attribute";
        return signalPassFailure();
      }
    }
    if (*count < 1) {
      module.emitError("train.microbatches must be at least 1, found ") << *count;
      return signalPassFailure();
    }
    if (failed(checkNameIsFree(module, "gradients", "the function with the gradients of a step")) ||
        failed(checkNameIsFree(module, "eval", "the function that evaluates")))
      return signalPassFailure();
    BlockArgument times = inputNamed(loss, microbatchesInput);
    if (times && failed(checkTimes(loss, times, *count)))
      return signalPassFailure();
    MicrobatchLoop builder(module, *count);
    auto isNoCount = [&](unsigned i) { return !tokensOf(loss, i); };
    builder.sum(gradients, counts, "gradients", "microbatch", bool(times));
    builder.sum(forEvaluation(module, loss, isNoCount).function, /*counts=*/{}, "eval",
                "eval.microbatch", /*isRamped=*/false);
    // Its backward functions now take accumulators; @gradients is in its place.
    gradients.erase();
    if (counts)
      counts.erase();
    auto eval = module.lookupSymbol<func::FuncOp>("eval");
    eval.setPublic();
    eval.setResultAttr(0, outputAttr, StringAttr::get(&getContext(), "loss"));
    loss.setPrivate();
  }
};
} // namespace
