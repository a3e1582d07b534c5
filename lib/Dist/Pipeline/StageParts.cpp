//===- StageParts.cpp - what belongs to which pipeline chunk -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "StageParts.h"

#include "Train/Quantize.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;
using schedule::TaskKind;

std::optional<Part> MicrobatchOps::partOf(Value value) const {
  Operation *op = value.getDefiningOp();
  auto found = op ? parts.find(op) : parts.end();
  return found == parts.end() ? std::nullopt : std::optional(found->second);
}

bool MicrobatchOps::isOfState(Value value) const {
  Operation *op = value.getDefiningOp();
  if (loop || !op || !isFree(op) || isa<train::GetOp>(op))
    return false;
  return llvm::any_of(readsBehind(value), [](train::GetOp get) {
    auto variable =
        SymbolTable::lookupNearestSymbolFrom<train::VariableOp>(get, get.getVariableAttr());
    return variable && !variable.isParameter();
  });
}

/// The function that `repeat` calls; floor 2 has checked that it exists.
static func::FuncOp calleeOf(train::RepeatOp repeat) {
  return SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(repeat, repeat.getCalleeAttr());
}

namespace {
class ChunkAssigner {
public:
  ChunkAssigner(func::FuncOp function, int64_t chunks, train::Role role)
      : chunks(chunks), role(role) {
    ops.function = function;
  }

  FailureOr<MicrobatchOps> run();

private:
  LogicalResult findLayers();
  void findDependences();
  void findForward();
  void assign(Operation *op);
  void assignByUsers(Operation *op);
  bool isInForward(Operation *op) const { return forward.contains(op) || backwardLayers.empty(); }
  /// The last chunk forward, or the first one backward, that computes what `op` reads.
  std::optional<int64_t> chunkOfOperands(Operation *op, bool isForward);
  LogicalResult assignSums();
  void splitAccumulators();
  void splitAccumulator(unsigned result, ArrayRef<Value> terms);
  SmallVector<Value> termsOf(Value value);
  void need(Operation *op, DenseSet<Operation *> &known);

  MicrobatchOps ops;
  int64_t chunks;
  train::Role role; ///< of the loop
  SmallVector<train::RepeatOp> forwardLayers, backwardLayers;
  DenseSet<Operation *> forward, feeding, pending;
};
} // namespace

/// What an op is computed from.
enum : unsigned { onLayers = 1, onVariables = 2, onData = 4 };

LogicalResult ChunkAssigner::findLayers() {
  func::FuncOp function = ops.function;
  ops.block = &function.getBody().front();
  for (auto repeat : function.getOps<train::RepeatOp>())
    if (train::roleOf(repeat) == role) {
      if (ops.loop)
        return repeat.emitOpError("is the second loop over microbatches; stages have one");
      if (!repeat.getStacks().empty())
        return repeat.emitOpError("stacks results over microbatches, which stages cannot");
      ops.loop = repeat;
      ops.block = &calleeOf(repeat).getBody().front();
    }
  int64_t begun = 0; // chunks whose layers have come forward
  for (auto repeat : ops.block->getOps<train::RepeatOp>()) {
    if (!train::isLayers(repeat))
      continue;
    std::optional<int64_t> chunk = train::chunkOf(repeat);
    if (!chunk)
      return repeat.emitOpError("has no ")
             << train::TrainDialect::chunkAttr << ", by which stages get their layers; "
             << "train-split-layers gives it, so compile from the model";
    bool isForward = train::roleOf(repeat) == train::Role::Forward;
    (isForward ? forwardLayers : backwardLayers).push_back(repeat);
    ops.parts[repeat] = {*chunk, isForward ? TaskKind::forward : TaskKind::backward};
    if (isForward && *chunk != begun && *chunk + 1 != begun)
      return repeat.emitOpError("runs layers of chunk ")
             << *chunk << ", but " << begun << " chunks have begun before it; chunks are in order";
    if (isForward)
      begun = *chunk + 1;
  }
  if (!backwardLayers.empty() && backwardLayers.size() != forwardLayers.size())
    return function.emitOpError("has ")
           << forwardLayers.size() << " runs of layers forward, but " << backwardLayers.size()
           << " backward; stages need a backward for each";
  // Chunks after the last one that has something to count are not run beforehand.
  if (begun < chunks && role != train::Role::Count)
    return function.emitOpError("has layers of ")
           << begun << " of the pipeline's " << chunks << " chunks, as "
           << train::TrainDialect::roleAttr << " and " << train::TrainDialect::chunkAttr
           << " of its repeats say";
  return success();
}

void ChunkAssigner::findDependences() {
  DenseMap<Value, unsigned> depends;
  unsigned accumulators = ops.loop ? ops.loop.getCarry().size() : 0;
  for (BlockArgument argument : ops.block->getArguments()) {
    unsigned number = argument.getArgNumber();
    bool isOfVariables = ops.loop && !readsBehind(ops.loop->getOperand(number)).empty();
    depends[argument] = number < accumulators ? 0 : isOfVariables ? onVariables : onData;
  }
  for (Operation &op : ops.block->without_terminator()) {
    auto repeat = dyn_cast<train::RepeatOp>(op);
    bool layers = repeat && train::isLayers(repeat);
    unsigned on = isa<train::GetOp>(op) ? onVariables : layers ? onLayers : 0;
    for (Value operand : op.getOperands())
      on |= depends.lookup(operand);
    for (Value result : op.getResults())
      depends[result] = on;
    bool sums = llvm::any_of(op.getOperands(), [&](Value operand) {
      auto argument = dyn_cast<BlockArgument>(operand);
      return argument && argument.getArgNumber() < accumulators;
    });
    if (!sums && !(on & onLayers) && on != (onVariables | onData) && op.getNumResults() > 0 &&
        (isa<train::GetOp>(op) || isPure(&op) || (repeat && !layers)))
      ops.free.insert(&op);
  }
  if (!ops.loop)
    return;
  // Around the loop: whatever does not need it, or another loop.
  DenseSet<Value> after;
  for (Operation &op : ops.function.getBody().front().without_terminator()) {
    bool isLoop = &op == ops.loop || &op == findLoop(ops.function, train::Role::Count);
    if (isLoop || llvm::any_of(op.getOperands(), [&](Value v) { return after.contains(v); }))
      after.insert(op.result_begin(), op.result_end());
    else if (op.getNumResults() > 0)
      ops.free.insert(&op);
  }
}

/// `op` and all ops of its block that it needs.
void ChunkAssigner::need(Operation *op, DenseSet<Operation *> &known) {
  if (!op || !known.insert(op).second)
    return;
  for (Value operand : op->getOperands())
    need(operand.getDefiningOp(), known);
}

void ChunkAssigner::findForward() {
  for (train::RepeatOp repeat : forwardLayers)
    need(repeat, forward);
  feeding = forward;
  for (train::RepeatOp repeat : backwardLayers)
    need(repeat, feeding);
  Operation *end = ops.function.getBody().front().getTerminator();
  for (unsigned i = 0; i < ops.function.getNumResults(); ++i) {
    // What the optimizer says comes after all gradients.
    if (train::outputName(ops.function, i) == "grad_norm")
      continue;
    DenseSet<Operation *> behind;
    need(end->getOperand(i).getDefiningOp(), behind);
    if (!ops.loop) {
      forward.insert(behind.begin(), behind.end());
      continue;
    }
    // Which of the loop's sums the loss comes from.
    Operation *last = ops.block->getTerminator();
    DenseSet<Operation *> inLoop;
    behind.insert(end);
    for (OpResult sum : ops.loop->getResults())
      if (llvm::any_of(sum.getUses(), [&](OpOperand &use) {
            return use.getOwner() == end ? use.getOperandNumber() == i
                                         : behind.contains(use.getOwner());
          }))
        need(last->getOperand(sum.getResultNumber()).getDefiningOp(), forward);
  }
  if (backwardLayers.empty())
    return;
  // A loop that computes the loss with its gradients is backward, and so is what reads it.
  DenseSet<Operation *> behindLoss;
  for (Operation &op : ops.block->without_terminator()) {
    auto repeat = dyn_cast<train::RepeatOp>(op);
    bool isBehind = (repeat && train::roleOf(repeat) == train::Role::Loss) ||
                    llvm::any_of(op.getOperands(), [&](Value operand) {
                      return behindLoss.contains(operand.getDefiningOp());
                    });
    if (isBehind && forward.erase(&op))
      behindLoss.insert(&op);
  }
}

std::optional<int64_t> ChunkAssigner::chunkOfOperands(Operation *op, bool isForward) {
  SmallVector<int64_t> before, behind; // chunks of what it reads, forward and backward
  for (Value operand : op->getOperands())
    if (std::optional<Part> part = ops.partOf(operand))
      (part->kind == TaskKind::forward ? before : behind).push_back(part->chunk);
  if (!isForward && !behind.empty())
    return *llvm::min_element(behind);
  return before.empty() ? std::nullopt : std::optional(*llvm::max_element(before));
}

/// Whether an optimizer keeps the value from step to step.
static bool isState(Value value) {
  auto get = value.getDefiningOp<train::GetOp>();
  if (!get)
    return false;
  auto variable = SymbolTable::lookupNearestSymbolFrom<train::VariableOp>(get, get.getVariableAttr());
  return variable && !variable.isParameter() && !train::isScale(variable) && !train::isObserved(variable);
}

void ChunkAssigner::assign(Operation *op) {
  if (ops.isFree(op) || isa<train::SetOp>(op) || ops.parts.contains(op))
    return;
  // Updates come after the end, also where one chunk alone has gradients. What layers need may read states,
  // as weights that an optimizer averages.
  bool isOfGradients = !backwardLayers.empty() && !ops.loop && !isInForward(op) && !feeding.contains(op);
  if (isOfGradients &&
      llvm::any_of(op->getOperands(), [&](Value v) { return isState(v) || ops.isOfState(v); }))
    return;
  SmallVector<int64_t> behind; // chunks of gradients that it reads
  for (Value operand : op->getOperands()) {
    Operation *source = operand.getDefiningOp();
    if (!source || ops.isFree(source) || pending.contains(source))
      continue;
    std::optional<Part> part = ops.partOf(operand);
    if (!part)
      return; // It comes after the microbatch's end, and so does this.
    if (part->kind == TaskKind::backward)
      behind.push_back(part->chunk);
  }
  bool isForward = isInForward(op);
  std::optional<int64_t> chunk = chunkOfOperands(op, isForward);
  if (!isForward && !behind.empty() && !llvm::all_equal(behind) && !ops.loop &&
      !feeding.contains(op))
    return; // Values of several chunks meet: after the end.
  if (chunk)
    ops.parts[op] = {*chunk, isForward ? TaskKind::forward : TaskKind::backward};
  else
    pending.insert(op);
}

/// What needs no layer belongs to the chunk that reads it before others do: forward the first
/// one, backward the last.
void ChunkAssigner::assignByUsers(Operation *op) {
  bool isForward = isInForward(op);
  TaskKind kind = isForward ? TaskKind::forward : TaskKind::backward;
  std::optional<int64_t> chunk;
  for (Operation *user : op->getUsers())
    if (auto part = ops.parts.find(user); part != ops.parts.end() && part->second.kind == kind) {
      int64_t reads = part->second.chunk;
      chunk = !chunk ? reads : isForward ? std::min(*chunk, reads) : std::max(*chunk, reads);
    }
  if (chunk)
    ops.parts[op] = {*chunk, kind};
}

/// What is summed over microbatches without need of a layer, such as the gradient of a table
/// whose loss is added to that of the layers, belongs where what it reads does.
LogicalResult ChunkAssigner::assignSums() {
  Operation *end = ops.block->getTerminator();
  DenseSet<Operation *> needed;
  need(end, needed);
  for (Operation &op : ops.block->without_terminator()) {
    if (!pending.contains(&op) || ops.parts.contains(&op) || !needed.contains(&op))
      continue;
    bool isForward = isInForward(&op);
    ops.parts[&op] = {chunkOfOperands(&op, isForward).value_or(0),
                      isForward ? TaskKind::forward : TaskKind::backward};
  }
  for (Value sum : end->getOperands())
    if (!isa<BlockArgument>(sum) && !ops.partOf(sum))
      return sum.getDefiningOp()->emitOpError("is summed over microbatches, but belongs to no "
                                              "chunk of the pipeline; leave out the mesh axis "
                                              "'pipe' for such a model");
  return success();
}

//===--- one accumulator a chunk --------------------------------------------------===//

/// Whether op(a + b) = op(a) + op(b) for its one operand.
static bool isLinear(Operation *op) {
  if (op->getNumOperands() != 1 || op->getNumResults() != 1)
    return false;
  if (auto reduce = dyn_cast<AllReduceOp>(op))
    return reduce.getKind() == train::ReduceKind::Sum;
  if (auto reduce = dyn_cast<ReduceScatterOp>(op))
    return reduce.getKind() == train::ReduceKind::Sum;
  if (isa<dist::SliceOp>(op))
    return true;
  auto rule = dyn_cast<train::ShardingRuleOpInterface>(op);
  return rule && rule.getShardingRule().operands[0].linear;
}

/// The terms of a sum whose parts are in different chunks; the value alone where it is
/// no such sum. Linear ops after the addition go into the terms.
SmallVector<Value> ChunkAssigner::termsOf(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !ops.parts.contains(op) || !value.hasOneUse())
    return {value};
  if (auto add = dyn_cast<train::AddOp>(op)) {
    std::optional<Part> a = ops.partOf(add.getLhs()), b = ops.partOf(add.getRhs());
    if (!a || !b || add.getLhs().getType() != add.getRhs().getType())
      return {value};
    SmallVector<Value> terms = termsOf(add.getLhs());
    terms.append(termsOf(add.getRhs()));
    bool apart = llvm::any_of(
        terms, [&](Value term) { return ops.partOf(term)->chunk != ops.partOf(terms[0])->chunk; });
    return apart ? terms : SmallVector<Value>{value};
  }
  if (!isLinear(op))
    return {value};
  SmallVector<Value> terms = termsOf(op->getOperand(0));
  if (terms.size() == 1)
    return {value};
  for (Value &term : terms) {
    OpBuilder builder(op);
    Operation *copy = builder.clone(*op);
    copy->setOperand(0, term);
    ops.parts[copy] = *ops.partOf(term);
    term = copy->getResult(0);
  }
  return terms;
}

/// Gives each term after the first an accumulator of its own.
void ChunkAssigner::splitAccumulator(unsigned result, ArrayRef<Value> terms) {
  Operation *end = ops.block->getTerminator();
  auto first = end->getOperand(result).getDefiningOp<train::AccumulateOp>();
  Operation *sum = first.getValue().getDefiningOp();
  first.getValueMutable().assign(terms[0]);
  ops.parts[first] = *ops.partOf(terms[0]);
  Type type = first.getType();
  OpBuilder inside(first), outside(ops.loop);
  inside.setInsertionPointAfter(first);

  SmallVector<Value> carry(ops.loop.getCarry());
  SmallVector<Type> types(ops.loop.getResultTypes());
  unsigned firstNew = carry.size();
  for (Value term : terms.drop_front()) {
    BlockArgument accumulator = ops.block->insertArgument(carry.size(), type, first.getLoc());
    auto accumulate = train::AccumulateOp::create(inside, first.getLoc(), accumulator, term);
    ops.parts[accumulate] = *ops.partOf(term);
    end->insertOperands(end->getNumOperands(), accumulate.getResult());
    carry.push_back(ops.loop.getCarry()[result]);
    types.push_back(type);
  }
  auto callee = cast<func::FuncOp>(ops.block->getParentOp());
  callee.setType(inside.getFunctionType(ops.block->getArgumentTypes(), end->getOperandTypes()));
  auto loop =
      train::RepeatOp::create(outside, ops.loop.getLoc(), types, ops.loop.getCallee(),
                              ops.loop.getCount(), ops.loop.getReverse(), ops.loop.getIndexed(),
                              carry, ops.loop.getEach(), ops.loop.getShared());
  loop->setDiscardableAttrs(ops.loop->getDiscardableAttrDictionary());
  ops.loop->replaceAllUsesWith(loop.getResults().take_front(firstNew));
  ops.loop.erase();
  ops.loop = loop;
  outside.setInsertionPointAfter(loop);
  Value total = loop.getResult(result);
  SmallPtrSet<Operation *, 2> adds;
  for (unsigned i = firstNew; i < types.size(); ++i) {
    auto add = train::AddOp::create(outside, loop.getLoc(), total, loop.getResult(i));
    train::setRole(add, train::Role::Update);
    adds.insert(add);
    total = add;
  }
  loop.getResult(result).replaceAllUsesExcept(total, adds);
  // The sum, and what was behind it, is not needed any more.
  while (sum && sum->use_empty()) {
    Operation *next = sum->getNumOperands() == 1 ? sum->getOperand(0).getDefiningOp() : nullptr;
    ops.parts.erase(sum);
    sum->erase();
    sum = next;
  }
}

void ChunkAssigner::splitAccumulators() {
  if (!ops.loop)
    return;
  for (unsigned i = 0, n = ops.loop.getCarry().size(); i < n; ++i) {
    auto accumulate =
        ops.block->getTerminator()->getOperand(i).getDefiningOp<train::AccumulateOp>();
    if (!accumulate || accumulate.getAccumulator() != ops.block->getArgument(i))
      continue;
    SmallVector<Value> terms = termsOf(accumulate.getValue());
    if (terms.size() > 1)
      splitAccumulator(i, terms);
  }
}

FailureOr<MicrobatchOps> ChunkAssigner::run() {
  if (failed(findLayers()))
    return failure();
  findDependences();
  findForward();
  for (Operation &op : ops.block->without_terminator())
    assign(&op);
  for (Operation &op : llvm::reverse(*ops.block))
    if (pending.contains(&op))
      assignByUsers(&op);
  if (ops.loop && failed(assignSums()))
    return failure();
  splitAccumulators();
  return std::move(ops);
}

SmallVector<train::GetOp> dist::readsBehind(Value operand) {
  SmallVector<train::GetOp> reads;
  llvm::SetVector<Value> behind;
  behind.insert(operand);
  for (size_t i = 0; i < behind.size(); ++i) {
    Operation *op = behind[i].getDefiningOp();
    if (auto get = dyn_cast_or_null<train::GetOp>(op))
      reads.push_back(get);
    else if (op && !isa<train::RepeatOp>(op))
      behind.insert(op->operand_begin(), op->operand_end());
  }
  return reads;
}

train::RepeatOp dist::findLoop(func::FuncOp function, train::Role role) {
  for (auto repeat : function.getOps<train::RepeatOp>())
    if (train::roleOf(repeat) == role)
      return repeat;
  return {};
}

FailureOr<MicrobatchOps> dist::findParts(func::FuncOp function, int64_t chunks, train::Role role) {
  return ChunkAssigner(function, chunks, role).run();
}
