//===- BuildDecoder.cpp - a program that reads a few tokens at a time -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Attention of the next tokens is attention over all keys so far, whose queries begin at their
// position: what a rank with a part of the queries computes in training too. So the one thing a
// decoder adds to a model is memory for keys and values: of its tokens, and of a source, whose keys and
// values another program computes (SplitSource.h). States of recurrences are variables of the model that the
// frontend makes for a decoder.
//
//===----------------------------------------------------------------------===//
#include "FunctionUtils.h"
#include "SplitSource.h"
#include "Train/Passes.h"

#include "llvm/ADT/BitVector.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;

namespace meshwright::train {
#define GEN_PASS_DEF_TRAINBUILDDECODER
#include "Train/Passes.h.inc"
} // namespace meshwright::train

namespace {
class DecoderBuilder {
public:
  DecoderBuilder(ModuleOp module, int64_t length)
      : module(module), symbols(module), builder(module.getContext()), length(length) {}

  LogicalResult run();

private:
  LogicalResult check(func::FuncOp function);
  LogicalResult check(AttentionOp attention);
  /// Whether `value` is that of a variable or a slice of it, which no token changes.
  bool isKept(Value value);
  FailureOr<Value> findLogits(func::FuncOp loss);
  /// Makes attention in `function` and in what it repeats read and write caches, which become
  /// arguments before `sharedFrom` and results of it, and positions the argument behind all others.
  /// Returns the types of the caches.
  SmallVector<RankedTensorType> addCaches(func::FuncOp function, unsigned before);
  /// The ops with caches of a block, which are replaced one by one: `cacheFor` gives memory of a
  /// type, and is told what becomes of it.
  using Cache = llvm::function_ref<Value(RankedTensorType)>;
  void rewrite(Block &block, Value positions, Value first, Cache cacheFor,
               SmallVectorImpl<Value> &written);
  void rewrite(AttentionOp attention, Value positions, Value first, Cache cacheFor,
               SmallVectorImpl<Value> &written);
  /// Makes the numbers by distance that attention adds to scores those of whole sequences, wherever they
  /// come from.
  void widenDistances(Value distances);
  void rewrite(RepeatOp repeat, Value positions, Value first, Cache cacheFor,
               SmallVectorImpl<Value> &written);

  ModuleOp module;
  SymbolTable symbols;
  OpBuilder builder;
  int64_t length; ///< tokens that caches hold
  DenseMap<Operation *, SmallVector<RankedTensorType>> caches; ///< of functions that are done
  DenseMap<Operation *, RepeatOp> repeats; ///< by the function that they repeat
};
} // namespace

bool DecoderBuilder::isKept(Value value) {
  if (value.getDefiningOp<GetOp>())
    return true;
  auto argument = dyn_cast<BlockArgument>(value);
  RepeatOp repeat = argument ? repeats.lookup(argument.getOwner()->getParentOp()) : RepeatOp();
  if (!repeat)
    return false;
  unsigned operand = argument.getArgNumber() - repeat.getCalleeArgument(0);
  return operand >= repeat.getCarry().size() && isKept(repeat.getPassed()[operand]);
}

LogicalResult DecoderBuilder::check(AttentionOp attention) {
  if (!attention.getSpec()->causal && !(isKept(attention.getK()) && isKept(attention.getV())))
    return attention.emitOpError("is not causal: the model predicts no next token");
  if (Value distances = attention.getDistances(); distances && attention.getSpec()->causal) {
    while (auto argument = dyn_cast<BlockArgument>(distances)) {
      RepeatOp repeat = repeats.lookup(argument.getOwner()->getParentOp());
      if (!repeat)
        break;
      distances = repeat.getPassed()[argument.getArgNumber() - repeat.getCalleeArgument(0)];
    }
    auto rows = distances.getDefiningOp<EmbeddingOp>();
    if (!rows || !rows.getIds().getDefiningOp<DistanceBucketsOp>())
      return attention.emitOpError("has distances that are not rows of a table by train.distance_buckets, "
                                   "which a decoder makes for whole sequences");
  }
  return success();
}

LogicalResult DecoderBuilder::check(func::FuncOp function) {
  module.walk([&](RepeatOp repeat) { repeats[symbols.lookup(repeat.getCallee())] = repeat; });
  // Those of an encoder see both sides.
  SmallVector<func::FuncOp> reached{function};
  for (unsigned i = 0; i < reached.size(); ++i)
    for (auto repeat : reached[i].getOps<RepeatOp>())
      reached.push_back(symbols.lookup<func::FuncOp>(repeat.getCallee()));
  for (func::FuncOp one : reached)
    for (auto attention : one.getOps<AttentionOp>())
      if (failed(check(attention)))
        return failure();
  WalkResult result = module.walk([&](Operation *op) {
    auto attention = dyn_cast<AttentionOp>(op);
    if (attention && attention.getIds()) {
      op->emitOpError("has dropout, which a decoder does without; import the model with --dropout 0");
      return WalkResult::interrupt();
    }
    if (isa<DropoutOp>(op)) {
      op->emitOpError("is for training alone; import the model with --dropout 0");
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  for (StringRef name : {"tokens", "positions"}) {
    BlockArgument input = inputNamed(function, name);
    if (!input)
      return function.emitError() << "has no input " << name
                                  << ": a decoder needs tokens and their positions; import the model with --packed";
    if (cast<RankedTensorType>(input.getType()).getRank() != 2 ||
        cast<RankedTensorType>(input.getType()).getDimSize(0) != 1)
      return function.emitError() << "has the input " << name << " of type " << input.getType()
                                  << ", but a decoder reads one sequence";
  }
  return success();
}

FailureOr<Value> DecoderBuilder::findLogits(func::FuncOp loss) {
  auto losses = loss.getOps<CrossEntropyOp>();
  if (!llvm::hasSingleElement(losses))
    return loss.emitError("must have one train.cross_entropy, whose logits a decoder returns");
  return (*losses.begin()).getLogits();
}

void DecoderBuilder::widenDistances(Value distances) {
  auto type = cast<RankedTensorType>(distances.getType());
  auto wide = RankedTensorType::get({2 * length - 1, type.getDimSize(1)}, type.getElementType());
  if (type == wide)
    return;
  distances.setType(wide);
  if (auto argument = dyn_cast<BlockArgument>(distances)) {
    auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
    function.setType(builder.getFunctionType(function.getBody().getArgumentTypes(),
                                             function.getResultTypes()));
    RepeatOp repeat = repeats.lookup(function);
    widenDistances(repeat.getPassed()[argument.getArgNumber() - repeat.getCalleeArgument(0)]);
    return;
  }
  auto buckets = distances.getDefiningOp<EmbeddingOp>().getIds().getDefiningOp<DistanceBucketsOp>();
  buckets.setQueries(uint64_t(length));
  buckets.setKeys(uint64_t(length));
  buckets.getY().setType(RankedTensorType::get({2 * length - 1}, builder.getI32Type()));
}

void DecoderBuilder::rewrite(AttentionOp attention, Value positions, Value first, Cache cacheFor,
                             SmallVectorImpl<Value> &written) {
  if (Value distances = attention.getDistances())
    widenDistances(distances);
  builder.setInsertionPoint(attention);
  Location loc = attention.getLoc();
  // Rows of tokens go where their positions say; those of no token have none, and go nowhere.
  auto append = [&](Value rows) {
    auto type = cast<RankedTensorType>(rows.getType());
    int64_t width = type.getDimSize(2) * type.getDimSize(3);
    auto flat = RankedTensorType::get({1, type.getDimSize(1), width}, type.getElementType());
    auto stored = RankedTensorType::get({length, width}, type.getElementType());
    Value cache = EmbeddingGradOp::create(
        builder, loc, stored, ReshapeOp::create(builder, loc, flat, rows), positions,
        builder.getI64IntegerAttr(length), cacheFor(stored));
    written.push_back(cache);
    auto all = RankedTensorType::get({1, length, type.getDimSize(2), type.getDimSize(3)},
                                     type.getElementType());
    return ReshapeOp::create(builder, loc, all, cache);
  };
  attention.getKMutable().assign(append(attention.getK()));
  attention.getVMutable().assign(append(attention.getV()));
  attention.getPositionsMutable().clear();
  attention.getQueryOffsetMutable().assign(first);
  AttentionSpec spec = attention.getSpec().getValue();
  spec.queries = length;
  attention.setSpec(spec);
}

void DecoderBuilder::rewrite(RepeatOp repeat, Value positions, Value first, Cache cacheFor,
                             SmallVectorImpl<Value> &written) {
  auto callee = symbols.lookup<func::FuncOp>(repeat.getCallee());
  unsigned before = repeat.getCalleeArgument(repeat.getCarry().size() + repeat.getEach().size());
  if (!caches.count(callee)) {
    SmallVector<RankedTensorType> added = addCaches(callee, before);
    caches[callee] = added;
  }
  const SmallVector<RankedTensorType> &needed = caches[callee];
  if (needed.empty())
    return;
  SmallVector<Value> each(repeat.getEach()), shared(repeat.getShared());
  SmallVector<Type> types(repeat.getResultTypes());
  for (RankedTensorType type : needed) {
    SmallVector<int64_t> shape{int64_t(repeat.getCount())};
    llvm::append_range(shape, type.getShape());
    auto stack = RankedTensorType::get(shape, type.getElementType());
    each.push_back(cacheFor(stack));
    types.push_back(stack);
  }
  llvm::append_range(shared, ValueRange{positions, first});
  builder.setInsertionPoint(repeat);
  auto made = RepeatOp::create(builder, repeat.getLoc(), types, repeat.getCallee(),
                               repeat.getCount(), repeat.getReverse(), repeat.getIndexed(),
                               repeat.getCarry(), each, shared);
  made->setDiscardableAttrs(repeat->getDiscardableAttrDictionary());
  repeat->replaceAllUsesWith(made.getResults().take_front(repeat.getNumResults()));
  llvm::append_range(written, made.getResults().take_back(needed.size()));
  repeat.erase();
}

void DecoderBuilder::rewrite(Block &block, Value positions, Value first, Cache cacheFor,
                             SmallVectorImpl<Value> &written) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (auto attention = dyn_cast<AttentionOp>(op); attention && attention.getSpec()->causal)
      rewrite(attention, positions, first, cacheFor, written);
    else if (auto repeat = dyn_cast<RepeatOp>(op); repeat && !repeat.getTimes())
      rewrite(repeat, positions, first, cacheFor, written);
  }
}

SmallVector<RankedTensorType> DecoderBuilder::addCaches(func::FuncOp function, unsigned before) {
  Location loc = function.getLoc();
  Block &block = function.getBody().front();
  Operation *end = block.getTerminator();
  auto ids = builder.getI32Type();
  auto argument = [&](unsigned at, Type type, StringRef name) -> Value {
    (void)function.insertArgument(at, type, {}, nameLocation(name, loc));
    return function.getArgument(at);
  };
  int64_t tokens = 0;
  if (BlockArgument input = inputNamed(symbols.lookup<func::FuncOp>("loss"), "positions"))
    tokens = cast<RankedTensorType>(input.getType()).getDimSize(1);
  Value positions = argument(function.getNumArguments(), RankedTensorType::get({1, tokens}, ids),
                             "token_positions");
  Value first =
      argument(function.getNumArguments(), RankedTensorType::get({}, ids), "first_position");
  SmallVector<RankedTensorType> added;
  SmallVector<Value> written;
  rewrite(
      block, positions, first,
      [&](RankedTensorType type) {
        added.push_back(type);
        return argument(before++, type, "cache");
      },
      written);
  end->insertOperands(end->getNumOperands(), written);
  if (added.empty())
    (void)function.eraseArguments(llvm::BitVector(function.getNumArguments())
                                      .set(function.getNumArguments() - 2,
                                           function.getNumArguments()));
  function.setType(builder.getFunctionType(function.getArgumentTypes(), end->getOperandTypes()));
  return added;
}

/// Erases what no result of `function` needs.
static void eraseUnused(func::FuncOp function) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
    if (op.use_empty() && !isa<func::ReturnOp, SetOp>(op))
      op.erase();
}

LogicalResult DecoderBuilder::run() {
  auto loss = symbols.lookup<func::FuncOp>("loss");
  if (!loss)
    return module.emitError("has no @loss to make a decoder of");
  if (failed(check(loss)))
    return failure();
  FailureOr<Value> logits = findLogits(loss);
  if (failed(logits))
    return failure();
  Location loc = loss.getLoc();
  Operation *end = loss.getBody().front().getTerminator();
  end->setOperands(*logits);
  loss.setResultAttrs(0, builder.getDictionaryAttr(builder.getNamedAttr(
                             outputAttr, builder.getStringAttr("logits"))));
  eraseUnused(loss);
  (void)loss.insertArgument(loss.getNumArguments(), RankedTensorType::get({}, builder.getI32Type()),
                            builder.getDictionaryAttr(builder.getNamedAttr(
                                inputAttr, builder.getStringAttr("first_position"))),
                            nameLocation("first_position", loc));
  Value first = loss.getArguments().back();
  auto zero = InitAttr::get(module.getContext(), "constant", builder.getF64FloatAttr(0.0));
  SmallVector<StringAttr> names;
  SmallVector<Value> written;
  rewrite(
      loss.getBody().front(), inputNamed(loss, "positions"), first,
      [&](RankedTensorType type) -> Value {
        OpBuilder::InsertionGuard guard(builder);
        builder.setInsertionPointToStart(module.getBody());
        auto variable = VariableOp::create(
            builder, loc, "cache." + std::to_string(names.size()), type, /*stacked=*/false,
            /*experts=*/IntegerAttr(), zero, StorageAttr(), FlatSymbolRefAttr(),
            StringAttr(), StringAttr());
        names.push_back(variable.getSymNameAttr());
        builder.setInsertionPointToStart(&loss.getBody().front());
        return GetOp::create(builder, loc, type, variable.getSymName());
      },
      written);
  builder.setInsertionPoint(end);
  for (auto [name, cache] : llvm::zip_equal(names, written))
    SetOp::create(builder, loc, name.getValue(), cache);
  // Programs take ids of [microbatches, sequences, positions], and lengths of [microbatches, sequences].
  for (auto program : module.getOps<func::FuncOp>()) {
    builder.setInsertionPointToStart(&program.getBody().front());
    for (BlockArgument input : program.getArguments()) {
      StringRef name = inputName(input);
      if (input.use_empty() || !(isByToken(name) || isBySequence(name)))
        continue;
      auto type = cast<RankedTensorType>(input.getType());
      auto slice = ReshapeOp::create(builder, loc, type, input);
      input.replaceAllUsesExcept(slice, slice);
      SmallVector<int64_t> shape{1};
      llvm::append_range(shape, type.getShape());
      input.setType(RankedTensorType::get(shape, type.getElementType()));
    }
    program.setType(builder.getFunctionType(program.getBody().getArgumentTypes(),
                                            program.getResultTypes()));
  }
  llvm::BitVector unused(loss.getNumArguments());
  for (BlockArgument input : loss.getArguments())
    if (input.use_empty())
      unused.set(input.getArgNumber());
  loss.setType(builder.getFunctionType(loss.getBody().getArgumentTypes(), end->getOperandTypes()));
  (void)loss.eraseArguments(unused);
  loss.setType(
      builder.getFunctionType(loss.getBody().getArgumentTypes(), end->getOperandTypes()));
  loss.setSymName("step");
  // Recurrences keep states, whose size does not say how many tokens may be read.
  module->setAttr(maxPositionsAttr, builder.getI64IntegerAttr(length));
  module.walk([&](RepeatOp repeat) {
    auto role = RoleAttr::get(module.getContext(), Role::Forward);
    repeat->setAttr(TrainDialect::roleAttr, role);
    symbols.lookup(repeat.getCallee())->setAttr(TrainDialect::roleAttr, role);
  });
  return success();
}

namespace {
struct TrainBuildDecoder : train::impl::TrainBuildDecoderBase<TrainBuildDecoder> {
  using TrainBuildDecoderBase::TrainBuildDecoderBase;
  void runOnModule() override {
    auto loss = getOperation().lookupSymbol<func::FuncOp>("loss");
    if ((loss && failed(splitSource(getOperation(), loss))) ||
        failed(DecoderBuilder(getOperation(), length).run()))
      signalPassFailure();
  }
};
} // namespace
