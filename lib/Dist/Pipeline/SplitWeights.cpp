//===- SplitWeights.cpp - gradients of weights apart from those of inputs ----===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Zero-bubble schedules (Qi et al. 2024) do gradients of weights when nothing else is
// to be done. What has to be done at once is what the gradient of the chunk's input
// needs: a slice of the backward, in the chunk and in the function of a layer.
//
//===----------------------------------------------------------------------===//
#include "Dist/Remat/LayerPairs.h"
#include "StageParts.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;
using schedule::TaskKind;

/// `op` and the ops of `within` that it needs.
static void need(Operation *op, llvm::function_ref<bool(Operation *)> within,
                 DenseSet<Operation *> &known) {
  if (!op || !within(op) || !known.insert(op).second)
    return;
  for (Value operand : op->getOperands())
    need(operand.getDefiningOp(), within, known);
}

namespace {
/// The two functions of a layer's backward.
struct Halves {
  func::FuncOp input, weight;
  SmallVector<Value> kept;        ///< of the layer: what the weights' half reads of the inputs'
  SmallVector<unsigned> operands; ///< of the repeat: what the weights' half takes itself
  llvm::BitVector unused;         ///< arguments of the layer that only the weights' half reads
};

/// By layer and number of its arguments that are slices: chunks may share a layer, and then
/// they share its halves.
using KnownHalves = DenseMap<std::pair<Operation *, unsigned>, Halves>;

/// Splits one backward repeat in two.
class LayerSplitter {
public:
  LayerSplitter(train::RepeatOp repeat, KnownHalves &known)
      : repeat(repeat),
        layer(SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(repeat, repeat.getCalleeAttr())),
        body(layer.getBody().front()), carries(repeat.getCarry().size()), known(known) {}

  /// The repeats of the inputs' gradients and of the weights'; `repeat` itself is gone.
  std::pair<train::RepeatOp, train::RepeatOp> split();

private:
  Halves makeHalves();
  /// Adds to the inputs' half what makes fewer bytes wait than its operands.
  void computeSmallerValues();
  func::FuncOp makeInputs(ArrayRef<Value> kept);
  func::FuncOp makeWeights(ArrayRef<Value> kept, ArrayRef<unsigned> operands);

  train::RepeatOp repeat;
  func::FuncOp layer;
  Block &body;
  unsigned carries;
  DenseSet<Operation *> inputs;
  KnownHalves &known;
};
} // namespace

func::FuncOp LayerSplitter::makeInputs(ArrayRef<Value> kept) {
  func::FuncOp function = layer.clone();
  function.setSymName((layer.getSymName() + ".input").str());
  Block &block = function.getBody().front();
  // The same values in the clone: both blocks have the same ops.
  IRMapping map;
  map.map(body.getArguments(), block.getArguments());
  for (auto [from, to] : llvm::zip(body, block))
    map.map(from.getResults(), to.getResults());
  Operation *end = block.getTerminator();
  SmallVector<Value> results(end->getOperands().take_front(carries));
  for (Value value : kept)
    results.push_back(map.lookup(value));
  end->setOperands(results);
  SmallVector<Operation *> gone;
  for (auto [from, to] : llvm::zip(body.without_terminator(), block.without_terminator()))
    if (!inputs.contains(&from))
      gone.push_back(&to);
  for (Operation *op : llvm::reverse(gone))
    op->erase();
  Builder b(layer.getContext());
  function.setType(b.getFunctionType(block.getArgumentTypes(), end->getOperandTypes()));
  return function;
}

func::FuncOp LayerSplitter::makeWeights(ArrayRef<Value> kept, ArrayRef<unsigned> operands) {
  OpBuilder b(layer.getContext());
  auto function = func::FuncOp::create(b, layer.getLoc(), (layer.getSymName() + ".weight").str(),
                                       b.getFunctionType({}, {}));
  function.setPrivate();
  train::setRole(function, train::Role::Weight);
  b.setInsertionPointToStart(function.addEntryBlock());
  Block &block = function.getBody().front();
  IRMapping map;
  if (repeat.getIndexed())
    map.map(body.getArgument(0),
            block.addArgument(body.getArgument(0).getType(), body.getArgument(0).getLoc()));
  auto add = [&](Value value) {
    map.map(value, block.addArgument(value.getType(), value.getLoc()));
  };
  auto addOperands = [&](bool each) {
    unsigned shared = carries + repeat.getEach().size();
    for (unsigned i : operands)
      if ((i < shared) == each)
        add(body.getArgument(repeat.getCalleeArgument(i)));
  };
  addOperands(true);
  for (Value value : kept)
    add(value);
  addOperands(false);
  for (Operation &op : body.without_terminator())
    if (!inputs.contains(&op))
      b.clone(op, map);
  auto results = llvm::map_to_vector(body.getTerminator()->getOperands().drop_front(carries),
                                     [&](Value v) { return map.lookup(v); });
  func::ReturnOp::create(b, layer.getLoc(), results);
  function.setType(b.getFunctionType(block.getArgumentTypes(), TypeRange(ValueRange(results))));
  return function;
}

void LayerSplitter::computeSmallerValues() {
  // Parameters are there anyway.
  DenseSet<Value> parameters;
  for (unsigned i = carries; i < repeat->getNumOperands(); ++i)
    if (repeat->getOperand(i).getDefiningOp<train::GetOp>())
      parameters.insert(body.getArgument(repeat.getCalleeArgument(i)));
  auto isKnown = [&](Value value) {
    return isa<BlockArgument>(value) || inputs.contains(value.getDefiningOp());
  };
  for (Operation &op : body.without_terminator()) {
    if (inputs.contains(&op) || !isa<train::KernelOpInterface>(op) ||
        !llvm::all_of(op.getOperands(), isKnown))
      continue;
    // Results of the layer are gradients, which the weights' half adds up.
    if (llvm::any_of(op.getUsers(),
                     [](Operation *user) { return user->hasTrait<OpTrait::IsTerminator>(); }))
      continue;
    int64_t waits = 0, freed = 0;
    for (Value result : op.getResults())
      waits += result.use_empty() ? 0 : bytesOf(result.getType());
    llvm::SmallSetVector<Value, 4> operands(op.operand_begin(), op.operand_end());
    for (Value operand : operands) {
      bool isKept = llvm::any_of(operand.getUsers(), [&](Operation *user) {
        return user != &op && !inputs.contains(user);
      });
      freed += isKept || parameters.contains(operand) ? 0 : bytesOf(operand.getType());
    }
    if (waits < freed)
      inputs.insert(&op);
  }
}

Halves LayerSplitter::makeHalves() {
  // A group of layers goes forward again and then back: that is split first, so that what
  // ran again is kept for both.
  for (auto inner : llvm::to_vector(body.getOps<train::RepeatOp>()))
    if (train::roleOf(inner) == train::Role::Backward && !inner.getStacks().empty())
      LayerSplitter(inner, known).split();
  Operation *end = body.getTerminator();
  for (Value carried : end->getOperands().take_front(carries))
    need(
        carried.getDefiningOp(), [](Operation *) { return true; }, inputs);
  // Nor can sums over the steps of a ring wait: what all steps read would have to.
  for (Operation &op : body)
    if (op.hasAttr(DistDialect::sumOfStepsAttr))
      need(
          &op, [](Operation *) { return true; }, inputs);
  computeSmallerValues();
  // What the weights' gradients read of the rest: each layer's is kept, but not what
  // they can slice or share themselves.
  llvm::SetVector<Value> kept, read;
  auto use = [&](Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (argument && argument.getArgNumber() >= repeat.getCalleeArgument(carries))
      read.insert(value);
    else if (argument && repeat.getIndexed() && argument.getArgNumber() == 0)
      return;
    else if (argument || inputs.contains(value.getDefiningOp()))
      kept.insert(value);
  };
  for (Operation &op : body.without_terminator())
    if (!inputs.contains(&op))
      llvm::for_each(op.getOperands(), use);
  llvm::for_each(end->getOperands().drop_front(carries), use);
  Halves made;
  for (unsigned i = carries; i < repeat->getNumOperands(); ++i)
    if (read.contains(body.getArgument(repeat.getCalleeArgument(i))))
      made.operands.push_back(i);
  made.kept = kept.takeVector();
  made.input = makeInputs(made.kept);
  made.weight = makeWeights(made.kept, made.operands);
  // Slices that only weights read are no business of the inputs any more.
  made.unused.resize(made.input.getNumArguments());
  for (unsigned i = carries; i < repeat->getNumOperands(); ++i)
    if (unsigned a = repeat.getCalleeArgument(i); made.input.getArgument(a).use_empty())
      made.unused.set(a);
  (void)made.input.eraseArguments(made.unused);
  SymbolTable symbols(SymbolTable::getNearestSymbolTable(repeat));
  for (func::FuncOp half : {made.weight, made.input})
    symbols.insert(half, std::next(layer->getIterator()));
  return made;
}

std::pair<train::RepeatOp, train::RepeatOp> LayerSplitter::split() {
  unsigned slices = repeat.getEach().size();
  std::pair<Operation *, unsigned> key(layer, slices);
  auto found = known.find(key);
  if (found == known.end())
    found = known.try_emplace(key, makeHalves()).first;
  const Halves &halves = found->second;

  OpBuilder b(repeat);
  SmallVector<Type> types(repeat.getCarried().getTypes());
  for (Value value : halves.kept) {
    auto slice = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> shape{int64_t(repeat.getCount())};
    llvm::append_range(shape, slice.getShape());
    types.push_back(RankedTensorType::get(shape, slice.getElementType()));
  }
  auto operandsOf = [&](auto takes) {
    std::pair<SmallVector<Value>, SmallVector<Value>> eachAndShared;
    for (unsigned i = carries; i < repeat->getNumOperands(); ++i)
      if (takes(i))
        (i < carries + slices ? eachAndShared.first : eachAndShared.second)
            .push_back(repeat->getOperand(i));
    return eachAndShared;
  };
  auto [each, shared] =
      operandsOf([&](unsigned i) { return !halves.unused.test(repeat.getCalleeArgument(i)); });
  auto input = train::RepeatOp::create(
      b, repeat.getLoc(), types, func::FuncOp(halves.input).getSymName(), repeat.getCount(),
      repeat.getReverse(), repeat.getIndexed(), repeat.getCarry(), each, shared);
  input->setDiscardableAttrs(repeat->getDiscardableAttrDictionary());
  std::tie(each, shared) =
      operandsOf([&](unsigned i) { return llvm::is_contained(halves.operands, i); });
  llvm::append_range(each, input.getStacks());
  auto weight = train::RepeatOp::create(
      b, repeat.getLoc(), repeat.getStacks().getTypes(), func::FuncOp(halves.weight).getSymName(),
      repeat.getCount(), repeat.getReverse(), repeat.getIndexed(), ValueRange(), each, shared);
  weight->setDiscardableAttrs(repeat->getDiscardableAttrDictionary());
  train::setRole(weight, train::Role::Weight);
  repeat.getCarried().replaceAllUsesWith(input.getCarried());
  repeat.getStacks().replaceAllUsesWith(weight.getResults());
  repeat.erase();
  return {input, weight};
}

void dist::splitWeights(MicrobatchOps &ops) {
  SmallVector<std::pair<train::RepeatOp, Part>> backward;
  for (auto repeat : ops.block->getOps<train::RepeatOp>())
    if (train::roleOf(repeat) == train::Role::Backward)
      backward.push_back({repeat, ops.parts.at(repeat)});
  DenseSet<Operation *> now; // what cannot wait
  SmallVector<Operation *> targets;
  KnownHalves halves;
  for (auto [repeat, part] : backward) {
    ops.parts.erase(repeat);
    if (repeat.getStacks().empty()) {
      ops.parts[repeat] = part;
      targets.push_back(repeat);
      continue;
    }
    auto [input, weight] = LayerSplitter(repeat, halves).split();
    ops.parts[input] = part;
    ops.parts[weight] = {part.chunk, TaskKind::weight};
    targets.push_back(input);
  }
  // Besides the layers: what other chunks read.
  auto leavesChunk = [&](Operation *op, int64_t chunk) {
    return llvm::any_of(op->getUsers(), [&](Operation *user) {
      auto other = ops.parts.find(user);
      return other != ops.parts.end() && other->second.chunk != chunk;
    });
  };
  // What comes of the forward pass and is behind no layer is the gradient of the head: that of its weight
  // would keep the gradient of the logits, on the stage where weights wait longest.
  auto behind = [&](llvm::function_ref<bool(Operation *, const Part &)> isFirst) {
    DenseSet<Operation *> found;
    for (Operation &op : *ops.block) {
      auto isBehind = [&](Value operand) {
        Operation *from = operand.getDefiningOp();
        return from && (found.contains(from) ||
                        (ops.parts.contains(from) && isFirst(from, ops.parts.at(from))));
      };
      if (llvm::any_of(op.getOperands(), isBehind))
        found.insert(&op);
    }
    return found;
  };
  DenseSet<Operation *> behindForward =
      behind([](Operation *, const Part &part) { return part.kind == TaskKind::forward; });
  auto isLayers = [](Operation *op, const Part &part) {
    auto repeat = dyn_cast<train::RepeatOp>(op);
    return repeat && train::roleOf(repeat) != train::Role::Loss && part.kind != TaskKind::forward;
  };
  DenseSet<Operation *> behindLayers = behind(isLayers);
  for (auto &[op, part] : ops.parts)
    if (part.kind == TaskKind::backward &&
        (leavesChunk(op, part.chunk) ||
         (behindForward.contains(op) && !behindLayers.contains(op) && !isLayers(op, part))))
      targets.push_back(op);
  auto isBackward = [&](Operation *op) {
    auto part = ops.parts.find(op);
    return part != ops.parts.end() && part->second.kind == TaskKind::backward;
  };
  for (Operation *op : targets)
    need(op, isBackward, now);
  // The loop of the loss makes its head's gradient beside that of the layers. It adds to the
  // accumulator; a gradient that waits would need memory beside that.
  for (auto repeat : ops.block->getOps<train::RepeatOp>()) {
    if (train::roleOf(repeat) != train::Role::Loss || !now.contains(repeat))
      continue;
    SmallVector<Operation *> readers(repeat->getUsers());
    while (!readers.empty()) {
      Operation *reader = readers.pop_back_val();
      if (!isBackward(reader) || now.contains(reader))
        continue;
      need(reader, isBackward, now);
      llvm::append_range(readers, reader->getUsers());
    }
  }
  for (auto &[op, part] : ops.parts)
    if (part.kind == TaskKind::backward && !now.contains(op))
      part.kind = TaskKind::weight;
}
