//===- SplitSource.cpp - what a decoder computes once for its source --------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Values are of three kinds: those that depend on tokens, those that depend on the source but on no token,
// and constants, which depend on neither. What of the second kind an op of the first kind reads is kept
// from one call to the next.
//
//===----------------------------------------------------------------------===//
#include "SplitSource.h"

#include "FunctionUtils.h"
#include "meshwright/runtime/DecoderVariables.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;

namespace {
class SourceSplitter {
public:
  SourceSplitter(ModuleOp module, func::FuncOp loss)
      : module(module), loss(loss), symbols(module), builder(module.getContext()) {}

  LogicalResult run();

private:
  bool isOfSource(Value value) const { return ofSource.contains(value) && !ofTokens.contains(value); }
  void classify(Block &block);
  /// The results of ops that depend on the source alone, which other ops of `block` read.
  SmallVector<Value> keptValues(Block &block) const;
  /// Clones the ops of `block` that `values` need, and no others, at `builder`. `argument` gives what stands
  /// for a block's argument. Returns what stands for the values.
  SmallVector<Value> cloneFor(ArrayRef<Value> values, Block &block,
                              llvm::function_ref<Value(BlockArgument)> argument);
  /// Moves what `repeat` computes of the source in each iteration into a repetition before it, whose
  /// results it reads.
  LogicalResult splitRepeat(RepeatOp repeat);
  /// Makes @encode.
  void splitLoss();

  ModuleOp module;
  func::FuncOp loss;
  SymbolTable symbols;
  OpBuilder builder;
  DenseSet<Value> ofTokens, ofSource;
};
} // namespace

void SourceSplitter::classify(Block &block) {
  for (Operation &op : block)
    for (auto *kind : {&ofTokens, &ofSource})
      if (llvm::any_of(op.getOperands(), [&](Value value) { return kind->contains(value); }))
        kind->insert(op.result_begin(), op.result_end());
}

SmallVector<Value> SourceSplitter::keptValues(Block &block) const {
  SmallVector<Value> kept;
  for (Operation &op : block)
    for (Value result : op.getResults()) {
      auto isOther = [&](Operation *user) {
        return user->getNumResults() == 0 || !isOfSource(user->getResult(0));
      };
      if (isOfSource(result) && llvm::any_of(result.getUsers(), isOther))
        kept.push_back(result);
    }
  return kept;
}

SmallVector<Value> SourceSplitter::cloneFor(ArrayRef<Value> values, Block &block,
                                            llvm::function_ref<Value(BlockArgument)> argument) {
  llvm::SetVector<Operation *> needed;
  SmallVector<Value> worklist(values);
  IRMapping map;
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (auto given = dyn_cast<BlockArgument>(value)) {
      if (!map.contains(value))
        map.map(value, argument(given));
    } else if (needed.insert(value.getDefiningOp())) {
      llvm::append_range(worklist, value.getDefiningOp()->getOperands());
    }
  }
  for (Operation &op : block)
    if (needed.contains(&op))
      builder.clone(op, map);
  return llvm::map_to_vector(values, [&](Value value) { return map.lookup(value); });
}

/// Erases ops of `block` whose results nothing reads any more.
static void eraseDead(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (op.getNumResults() && op.use_empty())
      op.erase();
}

LogicalResult SourceSplitter::splitRepeat(RepeatOp repeat) {
  auto callee = symbols.lookup<func::FuncOp>(repeat.getCallee());
  Block &block = callee.getBody().front();
  unsigned carries = repeat.getCarry().size(), eachs = repeat.getEach().size();
  // What goes from one iteration to the next depends on tokens after the first.
  for (BlockArgument argument : callee.getArguments().take_front(repeat.getCalleeArgument(carries)))
    ofTokens.insert(argument);
  for (unsigned i = carries; i < repeat.getPassed().size(); ++i)
    for (auto *kind : {&ofTokens, &ofSource})
      if (kind->contains(repeat.getPassed()[i]))
        kind->insert(callee.getArgument(repeat.getCalleeArgument(i)));
  classify(block);
  SmallVector<Value> kept = keptValues(block);
  if (kept.empty())
    return success();
  int calls = 0;
  module.walk([&](RepeatOp other) { calls += other.getCallee() == repeat.getCallee(); });
  if (calls > 1 || repeat.getTimes())
    return repeat.emitOpError("computes in @")
           << callee.getSymName()
           << " what depends on the source alone, which a decoder computes once; another repetition of "
              "the function, or a number of rounds that is data, does not allow that";

  // The function of the source has what it needs of the arguments: slices first, then what is shared.
  Location loc = repeat.getLoc();
  auto function = createFunction(module, builder, callee.getLoc(),
                                 (callee.getSymName() + ".source").str(), {}, {});
  SmallVector<Value> each, shared;
  unsigned slices = 0;
  auto pass = [&](BlockArgument given) -> Value {
    unsigned operand = given.getArgNumber() - repeat.getCalleeArgument(0);
    bool isEach = operand < carries + eachs;
    unsigned at = isEach ? slices++ : function.getNumArguments();
    (isEach ? each : shared).push_back(repeat.getPassed()[operand]);
    (void)function.insertArgument(at, given.getType(), {}, given.getLoc());
    return function.getArgument(at);
  };
  SmallVector<Value> made = cloneFor(kept, block, pass);
  finishFunction(function, builder, made);
  SmallVector<Type> stacks = llvm::map_to_vector(kept, [&](Value value) -> Type {
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> shape{int64_t(repeat.getCount())};
    llvm::append_range(shape, type.getShape());
    return RankedTensorType::get(shape, type.getElementType());
  });
  builder.setInsertionPoint(repeat);
  auto before = RepeatOp::create(builder, loc, stacks, function.getSymName(), repeat.getCount(),
                                 repeat.getReverse(), /*indexed=*/false, ValueRange(), each, shared);
  before->setDiscardableAttrs(repeat->getDiscardableAttrDictionary());
  for (Value stack : before.getResults())
    ofSource.insert(stack);

  // The layer reads slices of these instead.
  for (auto [value, stack] : llvm::zip_equal(kept, before.getResults())) {
    unsigned at = repeat.getCalleeArgument(carries + repeat.getEach().size());
    (void)callee.insertArgument(at, value.getType(), {}, value.getLoc());
    repeat.getEachMutable().append(stack);
    value.replaceAllUsesWith(callee.getArgument(at));
  }
  eraseDead(block);
  // What only the source's part has read is passed no more.
  for (int64_t i = repeat.getPassed().size() - 1; i >= int64_t(carries); --i) {
    unsigned at = repeat.getCalleeArgument(i);
    if (!callee.getArgument(at).use_empty())
      continue;
    bool isEach = i < int64_t(carries + repeat.getEach().size());
    (isEach ? repeat.getEachMutable() : repeat.getSharedMutable())
        .erase(unsigned(i) - carries - (isEach ? 0 : repeat.getEach().size()));
    (void)callee.eraseArgument(at);
  }
  return success();
}

void SourceSplitter::splitLoss() {
  Block &block = loss.getBody().front();
  Location loc = loss.getLoc();
  SmallVector<Value> kept = keptValues(block);
  auto encode = createFunction(module, builder, nameLocation("encode", loc), "encode", {}, {});
  encode.setPublic();
  auto input = [&](BlockArgument given) -> Value {
    unsigned at = encode.getNumArguments();
    (void)encode.insertArgument(at, given.getType(), loss.getArgAttrDict(given.getArgNumber()),
                                given.getLoc());
    return encode.getArgument(at);
  };
  SmallVector<Value> made = cloneFor(kept, block, input);
  auto zero = InitAttr::get(module.getContext(), "constant", builder.getF64FloatAttr(0.0));
  for (auto [i, value] : llvm::enumerate(kept)) {
    std::string name = plan::sourcePrefix + std::to_string(i);
    auto type = cast<RankedTensorType>(value.getType());
    OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
    VariableOp::create(top, value.getLoc(), name, type, /*stacked=*/false,
                       /*experts=*/IntegerAttr(), zero, StorageAttr(), FlatSymbolRefAttr(),
                       StringAttr(), StringAttr());
    SetOp::create(builder, loc, StringRef(name), made[i]);
    OpBuilder inner = OpBuilder::atBlockBegin(&block);
    value.replaceAllUsesWith(GetOp::create(inner, value.getLoc(), type, StringRef(name)));
  }
  finishFunction(encode, builder, {});
  eraseDead(block);
}

LogicalResult SourceSplitter::run() {
  if (!inputNamed(loss, "source"))
    return success();
  if (failed(checkNameIsFree(module, "encode", "the function that reads a source")))
    return failure();
  for (BlockArgument input : loss.getArguments()) {
    StringRef name = inputName(input);
    (name == "source" || name == "source_lengths" ? ofSource : ofTokens).insert(input);
  }
  Block &block = loss.getBody().front();
  classify(block);
  for (auto repeat : llvm::to_vector(block.getOps<RepeatOp>()))
    if (!isOfSource(repeat.getResult(0)) && failed(splitRepeat(repeat)))
      return failure();
  splitLoss();
  return success();
}

LogicalResult train::splitSource(ModuleOp module, func::FuncOp loss) {
  return SourceSplitter(module, loss).run();
}
