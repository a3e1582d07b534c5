//===- CountBatch.cpp - what is of the whole batch, counted beforehand -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "FunctionUtils.h"
#include "Train/Passes.h"

#include "llvm/ADT/BitVector.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;

namespace meshwright::train {
#define GEN_PASS_DEF_TRAINCOUNTBATCH
#include "Train/Passes.h.inc"
} // namespace meshwright::train

static RankedTensorType stackOf(Type type, int64_t count) {
  auto slice = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape{count};
  llvm::append_range(shape, slice.getShape());
  return RankedTensorType::get(shape, slice.getElementType());
}

/// Adds those of `values`' ops and arguments that they need; all in one block.
static void need(ValueRange values, DenseSet<Value> &needed) {
  SmallVector<Value> work(values);
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (!needed.insert(value).second)
      continue;
    if (Operation *op = value.getDefiningOp())
      llvm::append_range(work, op->getOperands());
  }
}

namespace {
class BatchCounter {
public:
  BatchCounter(ModuleOp module, func::FuncOp loss)
      : module(module), loss(loss), symbols(module), builder(module.getContext()) {}

  LogicalResult run(int64_t microbatches);

private:
  func::FuncOp calleeOf(RepeatOp repeat) {
    return symbols.lookup<func::FuncOp>(repeat.getCallee());
  }
  SmallVector<BatchSumOp> sumsIn(func::FuncOp function) {
    return llvm::to_vector(function.getOps<BatchSumOp>());
  }
  LogicalResult check();
  /// Whether what `function` repeats, and what that repeats, has a body and does not repeat itself.
  LogicalResult checkRepeats(func::FuncOp function, SmallVector<func::FuncOp> &above);
  /// `@loss.counts`, which returns what is to be summed.
  LogicalResult makeCounts();
  /// `repeat` with stacks of what is summed in its callee, behind its own results.
  RepeatOp withStacks(RepeatOp repeat);
  /// `repeat` without the results, carried values and operands that no result of `live` needs.
  LogicalResult narrow(RepeatOp repeat, llvm::BitVector live);
  /// Erases what no result of `function` needs.
  LogicalResult narrow(func::FuncOp function);
  /// Makes the sums arguments of `@loss`, and slices of them arguments of its layers.
  void takeSums();

  ModuleOp module;
  func::FuncOp loss;
  SymbolTable symbols;
  OpBuilder builder;
};
} // namespace

LogicalResult BatchCounter::checkRepeats(func::FuncOp function,
                                         SmallVector<func::FuncOp> &above) {
  above.push_back(function);
  for (auto repeat : function.getOps<RepeatOp>()) {
    func::FuncOp callee = calleeOf(repeat);
    if (!callee || callee.isExternal() || llvm::is_contained(above, callee))
      return repeat.emitOpError("repeats @")
             << repeat.getCallee() << ", which has no body or repeats itself: nothing can be counted there";
    if (failed(checkRepeats(callee, above)))
      return failure();
  }
  above.pop_back();
  return success();
}

LogicalResult BatchCounter::check() {
  if (failed(checkNameIsFree(module, "loss.counts", "the function with the counts of @loss")))
    return failure();
  SmallVector<func::FuncOp> above;
  if (failed(checkRepeats(loss, above)))
    return failure();
  DenseSet<Operation *> layers;
  for (auto repeat : loss.getOps<RepeatOp>()) {
    func::FuncOp layer = calleeOf(repeat);
    layers.insert(layer);
    if (sumsIn(layer).empty())
      continue;
    if (repeat.getTimes())
      return repeat.emitOpError("repeats @") << repeat.getCallee() << ", which has a train.batch_sum, as often as "
                                             << "data says: the sums of such iterations cannot be stacked";
    std::optional<SymbolTable::UseRange> uses = symbols.getSymbolUses(layer, module);
    for (SymbolTable::SymbolUse use : *uses)
      if (use.getUser()->getParentOfType<func::FuncOp>() != loss)
        return use.getUser()->emitOpError("repeats @")
               << repeat.getCallee() << " outside of @loss, where its train.batch_sum has no value";
  }
  WalkResult result = module.walk([&](BatchSumOp sum) {
    Operation *function = sum->getParentOp();
    if (function == loss || layers.contains(function))
      return WalkResult::advance();
    sum.emitOpError("must be in @loss or in a function that @loss itself repeats");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

RepeatOp BatchCounter::withStacks(RepeatOp repeat) {
  func::FuncOp callee = calleeOf(repeat), copy = callee.clone();
  copy.setSymName((callee.getSymName() + ".counts").str());
  symbols.insert(copy);
  Operation *end = copy.getBody().front().getTerminator();
  SmallVector<Type> types(repeat.getResultTypes());
  for (BatchSumOp sum : sumsIn(copy)) {
    end->insertOperands(end->getNumOperands(), sum.getX());
    types.push_back(stackOf(sum.getType(), repeat.getCount()));
  }
  copy.setType(builder.getFunctionType(copy.getArgumentTypes(), end->getOperandTypes()));
  builder.setInsertionPoint(repeat);
  auto made = RepeatOp::create(builder, repeat.getLoc(), types, copy.getSymName(),
                               repeat.getCount(), repeat.getReverse(), repeat.getIndexed(),
                               repeat.getCarry(), repeat.getEach(), repeat.getShared());
  made->setDiscardableAttrs(repeat->getDiscardableAttrDictionary());
  repeat->replaceAllUsesWith(made.getResults().take_front(repeat.getNumResults()));
  repeat.erase();
  return made;
}

LogicalResult BatchCounter::narrow(RepeatOp repeat, llvm::BitVector live) {
  func::FuncOp function = calleeOf(repeat);
  unsigned index = repeat.getIndexed() ? 1 : 0, carries = repeat.getCarry().size();
  // A carried value is also needed by the iterations after its own.
  DenseSet<Value> needed;
  Operation *end = function.getBody().front().getTerminator();
  for (bool grows = true; grows;) {
    grows = false;
    for (unsigned i : live.set_bits())
      need(end->getOperand(i), needed);
    for (unsigned i = 0; i < carries; ++i)
      if (!live.test(i) && needed.contains(function.getArgument(index + i))) {
        live.set(i);
        grows = true;
      }
  }
  // Functions are layers', of which chunks may share one.
  if (llvm::range_size(*symbols.getSymbolUses(function, module)) > 1) {
    function = function.clone();
    symbols.insert(function);
    repeat.setCallee(function.getSymName());
    end = function.getBody().front().getTerminator();
  }
  llvm::BitVector gone = live;
  gone.flip();
  end->eraseOperands(gone);
  if (failed(narrow(function)))
    return failure();
  llvm::BitVector unused(function.getNumArguments());
  SmallVector<Value> carry, each, shared;
  for (auto [i, operand] : llvm::enumerate(repeat.getPassed())) {
    bool used = i < carries ? live.test(i) : !function.getArgument(index + i).use_empty();
    if (!used)
      unused.set(index + i);
    else
      (i < carries                            ? carry
       : i < carries + repeat.getEach().size() ? each
                                               : shared)
          .push_back(operand);
  }
  (void)function.eraseArguments(unused);
  function.setType(builder.getFunctionType(function.getArgumentTypes(), end->getOperandTypes()));
  SmallVector<Value> kept;
  for (unsigned i : live.set_bits())
    kept.push_back(repeat.getResult(i));
  builder.setInsertionPoint(repeat);
  auto made = RepeatOp::create(builder, repeat.getLoc(), ValueRange(kept).getTypes(),
                               repeat.getCallee(), repeat.getCount(), repeat.getReverse(),
                               repeat.getIndexed(), carry, each, shared);
  made->setDiscardableAttrs(repeat->getDiscardableAttrDictionary());
  for (auto [old, now] : llvm::zip_equal(kept, made.getResults()))
    old.replaceAllUsesWith(now);
  repeat.erase();
  return success();
}

LogicalResult BatchCounter::narrow(func::FuncOp function) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.getBody().front()))) {
    if (isa<func::ReturnOp>(op))
      continue;
    if (op.use_empty()) {
      op.erase();
      continue;
    }
    if (isa<BatchSumOp>(op))
      return op.emitOpError("has helped to compute what another one sums: neither can be first");
    auto repeat = dyn_cast<RepeatOp>(op);
    if (!repeat || repeat.getTimes())
      continue;
    llvm::BitVector live(repeat.getNumResults());
    for (OpResult result : repeat.getResults())
      if (!result.use_empty())
        live.set(result.getResultNumber());
    if (failed(narrow(repeat, live)))
      return failure();
  }
  return success();
}

LogicalResult BatchCounter::makeCounts() {
  func::FuncOp counts = loss.clone();
  counts.setSymName("loss.counts");
  counts.setPrivate();
  counts.removeResAttrsAttr();
  symbols.insert(counts, std::next(loss->getIterator()));
  SmallVector<Value> results;
  for (Operation &op : llvm::make_early_inc_range(counts.getBody().front())) {
    if (auto sum = dyn_cast<BatchSumOp>(op))
      results.push_back(sum.getX());
    else if (auto repeat = dyn_cast<RepeatOp>(op))
      if (unsigned sums = sumsIn(calleeOf(repeat)).size())
        llvm::append_range(results, withStacks(repeat).getResults().take_back(sums));
  }
  Operation *end = counts.getBody().front().getTerminator();
  end->setOperands(results);
  if (failed(narrow(counts)))
    return failure();
  llvm::BitVector unused(counts.getNumArguments());
  for (BlockArgument argument : counts.getArguments())
    if (argument.use_empty())
      unused.set(argument.getArgNumber());
  (void)counts.eraseArguments(unused);
  counts.setType(builder.getFunctionType(counts.getArgumentTypes(), end->getOperandTypes()));
  return success();
}

void BatchCounter::takeSums() {
  unsigned taken = 0;
  DenseMap<Operation *, SmallVector<Type>> changed; // the types of a layer's sums
  auto take = [&](Type type, Location location) {
    unsigned at = loss.getNumArguments();
    auto number = builder.getNamedAttr(batchSumAttr, builder.getI64IntegerAttr(taken++));
    (void)loss.insertArgument(at, type, builder.getDictionaryAttr(number), location);
    return loss.getArgument(at);
  };
  for (Operation &op : llvm::make_early_inc_range(loss.getBody().front())) {
    if (auto sum = dyn_cast<BatchSumOp>(op)) {
      sum.replaceAllUsesWith(Value(take(sum.getType(), sum.getLoc())));
      sum.erase();
      continue;
    }
    auto repeat = dyn_cast<RepeatOp>(op);
    if (!repeat)
      continue;
    func::FuncOp callee = calleeOf(repeat);
    auto [known, isNew] = changed.try_emplace(callee);
    unsigned at = repeat.getCalleeArgument(repeat.getCarry().size() + repeat.getEach().size());
    if (isNew)
      for (BatchSumOp sum : sumsIn(callee)) {
        known->second.push_back(sum.getType());
        (void)callee.insertArgument(at, sum.getType(), {}, sum.getLoc());
        sum.replaceAllUsesWith(Value(callee.getArgument(at++)));
        sum.erase();
      }
    for (Type type : known->second)
      repeat.getEachMutable().append(take(stackOf(type, repeat.getCount()), repeat.getLoc()));
  }
}

LogicalResult BatchCounter::run(int64_t microbatches) {
  if (microbatches == 1) {
    module.walk([](BatchSumOp sum) {
      sum.replaceAllUsesWith(sum.getX());
      sum.erase();
    });
    return success();
  }
  if (failed(check()) || failed(makeCounts()))
    return failure();
  takeSums();
  return success();
}

namespace {
struct TrainCountBatch : train::impl::TrainCountBatchBase<TrainCountBatch> {
  void runOnModule() override {
    ModuleOp module = getOperation();
    if (!module.walk([](BatchSumOp) { return WalkResult::interrupt(); }).wasInterrupted())
      return;
    auto loss = module.lookupSymbol<func::FuncOp>("loss");
    std::optional<int64_t> count = moduleSize(module, microbatchesAttr);
    if (!loss || !count) {
      module.emitError("needs @loss and the attribute train.microbatches");
      return signalPassFailure();
    }
    if (failed(BatchCounter(module, loss).run(*count)))
      signalPassFailure();
  }
};
} // namespace
