//===- StagePrograms.cpp - a program for each pipeline stage -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "StagePrograms.h"

#include "Dist/Programs.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;
using schedule::TaskKind;

namespace {
class StageEmitter {
public:
  StageEmitter(const StageInputs &inputs, int64_t stage, ModuleOp program)
      : inputs(inputs), ops(inputs.ops), stage(stage), builder(program.getBodyRegion()) {}

  void run();

private:
  /// Emits the microbatches that count beforehand, in the function of `main`.
  StageEmitter(const StageInputs &inputs, const StageEmitter &main)
      : inputs(inputs), ops(inputs.ops), stage(main.stage), builder(main.builder),
        function(main.function), map(main.map) {}

  void makeTasks();
  /// Maps the results of the loop that this stage has.
  void mapSums();
  void makeTask(const Part &part, const PartFunction &function, int64_t microbatch);
  Value argument(Value value, const Part &part, int64_t microbatch);
  /// A value around the microbatches: free ops are repeated here.
  Value outer(Value value);
  /// Whether some part of `at` takes the value.
  bool reads(int64_t at, Value value) const;
  void send(Value value, Value own, int64_t to);
  Value receive(Value value);
  void exchange(Value value);
  void makeNorm(train::GlobalNormOp norm);
  void finish();
  int64_t stageOf(Value value) const { return inputs.stageOf[ops.partOf(value)->chunk]; }
  int64_t channelOf(Value value);
  int64_t devicesOf(GroupAttr along) const {
    MeshOp mesh = lookupMesh(ops.function->getParentOp());
    return mesh.getMesh().size(along.on(mesh.getMesh()));
  }

  const StageInputs &inputs;
  MicrobatchOps &ops;
  int64_t stage;
  OpBuilder builder;
  func::FuncOp function;
  IRMapping map;                                   ///< around the microbatches
  DenseMap<std::pair<Value, int64_t>, Value> made; ///< by microbatch
  DenseMap<Value, Value> accumulators;             ///< by argument of the block
};
} // namespace

Value StageEmitter::outer(Value value) {
  if (map.contains(value))
    return map.lookup(value);
  Operation *op = value.getDefiningOp();
  for (Value operand : op->getOperands())
    outer(operand);
  builder.clone(*op, map);
  return map.lookup(value);
}

/// Every value that crosses stages has a channel of its own: the index of its op.
int64_t StageEmitter::channelOf(Value value) {
  int64_t channel = inputs.firstChannel;
  for (Block *block : {ops.block, &ops.function.getBody().front()}) {
    for (Operation &op : *block) {
      if (&op == value.getDefiningOp())
        return channel + cast<OpResult>(value).getResultNumber();
      channel += op.getNumResults();
    }
    if (!ops.loop)
      break;
  }
  llvm_unreachable("a value that crosses stages is an op's");
}

bool StageEmitter::reads(int64_t at, Value value) const {
  return llvm::any_of(inputs.functions, [&](auto &entry) {
    return inputs.stageOf[entry.first.chunk] == at &&
           llvm::is_contained(entry.second.arguments, value);
  });
}

Value StageEmitter::argument(Value value, const Part &part, int64_t microbatch) {
  if (auto leaf = dyn_cast<BlockArgument>(value)) {
    if (!ops.loop)
      return outer(leaf);
    unsigned i = leaf.getArgNumber(), carries = ops.loop.getCarry().size();
    if (i < carries)
      return accumulators.lookup(leaf);
    Value all = outer(ops.loop->getOperand(i));
    return i < carries + ops.loop.getEach().size()
               ? Value(TakeOp::create(builder, leaf.getLoc(), leaf.getType(), all, microbatch))
               : all;
  }
  if (ops.isOfState(value))
    return outer(value);
  Value &known = made[{value, microbatch}];
  if (!known)
    known = receive(value);
  return known;
}

void StageEmitter::send(Value value, Value own, int64_t to) {
  if (auto share = inputs.shares.find(value); share != inputs.shares.end()) {
    auto type = cast<RankedTensorType>(own.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[share->second.dim] /= devicesOf(share->second.group);
    own = dist::SliceOp::create(builder, value.getLoc(),
                                RankedTensorType::get(shape, type.getElementType()), own,
                                share->second.dim, share->second.group);
  }
  dist::SendOp::create(builder, value.getLoc(), own, to, channelOf(value), inputs.group);
}

Value StageEmitter::receive(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  auto share = inputs.shares.find(value);
  SmallVector<int64_t> shape(type.getShape());
  if (share != inputs.shares.end())
    shape[share->second.dim] /= devicesOf(share->second.group);
  Value got = dist::RecvOp::create(builder, value.getLoc(),
                                   RankedTensorType::get(shape, type.getElementType()),
                                   stageOf(value), channelOf(value), inputs.group);
  if (share == inputs.shares.end())
    return got;
  return AllGatherOp::create(builder, value.getLoc(), type, got, share->second.dim,
                             share->second.group)
      .getY();
}

void StageEmitter::makeTask(const Part &part, const PartFunction &called, int64_t microbatch) {
  Block &block = function.getBody().front();
  Operation *before = block.empty() ? nullptr : &block.back();
  SmallVector<Value> arguments;
  for (Value value : called.arguments)
    arguments.push_back(argument(value, part, microbatch));
  func::FuncOp callee = called.function;
  auto call = func::CallOp::create(builder, callee.getLoc(), callee, arguments);
  Operation *end = ops.block->getTerminator();
  for (auto [value, result] : llvm::zip(called.results, call.getResults())) {
    made[{value, microbatch}] = result;
    if (ops.loop)
      for (OpOperand &use : value.getUses())
        if (use.getOwner() == end)
          accumulators[ops.block->getArgument(use.getOperandNumber())] = result;
    for (int64_t at = 0; at < inputs.stages; ++at)
      if (at != stage && reads(at, value))
        send(value, result, at);
  }
  // No schedule moves what comes before its tasks.
  if (!inputs.after)
    return;
  auto name = builder.getStringAttr(schedule::Task{part.kind, microbatch, part.chunk}.str());
  for (Operation *op = before ? before->getNextNode() : &block.front(); op; op = op->getNextNode())
    op->setAttr(taskAttr, name);
}

/// Sends or receives what the ops after the microbatches need of other stages.
void StageEmitter::exchange(Value value) {
  auto found = inputs.after->sentTo.find(value);
  if (found == inputs.after->sentTo.end())
    return;
  int64_t home = *inputs.after->homeOf(value);
  SmallVector<int64_t> readers(found->second.begin(), found->second.end());
  llvm::sort(readers);
  for (int64_t reader : readers)
    if (home == stage)
      dist::SendOp::create(builder, value.getLoc(), map.lookup(value), reader, channelOf(value),
                           inputs.group);
    else if (reader == stage)
      map.map(value, dist::RecvOp::create(builder, value.getLoc(), value.getType(), home,
                                          channelOf(value), inputs.group)
                         .getY());
}

/// Each stage adds its own squares; the sum over the stages is under the root.
void StageEmitter::makeNorm(train::GlobalNormOp norm) {
  Value sum;
  for (Value term : norm.getSquares()) {
    if (inputs.after->ownerOf(term) != stage)
      continue;
    Value own = map.lookup(term);
    sum = sum ? train::AddOp::create(builder, norm.getLoc(), sum, own).getResult() : own;
  }
  if (!sum)
    sum = train::FillOp::create(builder, norm.getLoc(), norm.getSquares()[0].getType(),
                                builder.getF64FloatAttr(0));
  Value all = AllReduceOp::create(builder, norm.getLoc(), sum.getType(), train::ReduceKind::Sum,
                                  sum, inputs.group);
  map.map(norm.getNorm(),
          train::GlobalNormOp::create(builder, norm.getLoc(), norm.getType(), ValueRange(all))
              .getNorm());
}

void StageEmitter::mapSums() {
  Operation *end = ops.block->getTerminator();
  for (OpResult result : ops.loop->getResults()) {
    Value total = end->getOperand(result.getResultNumber());
    if (std::optional<Part> part = ops.partOf(total); part && inputs.stageOf[part->chunk] == stage)
      map.map(result, made.lookup({total, ops.count() - 1}));
    else if (!part)
      map.map(result, outer(ops.loop.getCarry()[result.getResultNumber()]));
  }
}

void StageEmitter::finish() {
  Block &block = ops.function.getBody().front();
  for (Operation &op : block.without_terminator()) {
    if (&op == ops.loop) {
      mapSums();
    } else if (auto part = ops.parts.find(&op); part != ops.parts.end()) {
      if (inputs.stageOf[part->second.chunk] == stage)
        for (Value result : op.getResults())
          if (Value known = made.lookup({result, 0}))
            map.map(result, known);
    } else if (inputs.after->ops[stage].contains(&op)) {
      auto norm = dyn_cast<train::GlobalNormOp>(op);
      if (norm && inputs.after->homeOf(norm.getNorm()) == std::optional(StageAssignment::everywhere))
        makeNorm(norm);
      else if (op.getNumResults() == 0 || !map.contains(op.getResult(0)))
        builder.clone(op, map);
    }
    for (Value result : op.getResults())
      exchange(result);
  }
  SmallVector<Value> results;
  for (Value value : block.getTerminator()->getOperands()) {
    std::optional<int64_t> home = inputs.after->homeOf(value);
    if (!home || *home == StageAssignment::everywhere) {
      results.push_back(outer(value));
      continue;
    }
    Value own = *home == stage ? map.lookup(value)
                               : train::FillOp::create(builder, value.getLoc(), value.getType(),
                                                       builder.getF64FloatAttr(0))
                                     .getResult();
    results.push_back(BroadcastOp::create(builder, value.getLoc(), own, *home, inputs.group));
  }
  func::ReturnOp::create(builder, function.getLoc(), results);
}

void StageEmitter::makeTasks() {
  // First of all what the microbatches are made from.
  SmallVector<std::pair<Part, const PartFunction *>> own;
  for (auto &[part, called] : inputs.functions)
    if (inputs.stageOf[part.chunk] == stage) {
      own.push_back({part, &called});
      for (Value value : called.arguments)
        if (ops.isOfState(value)) {
          outer(value);
        } else if (auto leaf = dyn_cast<BlockArgument>(value); leaf && ops.loop) {
          Value all = outer(ops.loop->getOperand(leaf.getArgNumber()));
          if (leaf.getArgNumber() < ops.loop.getCarry().size())
            accumulators[leaf] = all;
        }
    }
  // Microbatch by microbatch; dist-schedule changes the order.
  for (int64_t m = 0; m < ops.count(); ++m)
    for (TaskKind kind : {TaskKind::forward, TaskKind::backward, TaskKind::weight}) {
      auto make = [&](auto &entry) {
        if (entry.first.kind == kind)
          makeTask(entry.first, *entry.second, m);
      };
      if (kind == TaskKind::forward)
        llvm::for_each(own, make);
      else
        llvm::for_each(llvm::reverse(own), make);
    }
}

void StageEmitter::run() {
  function = ops.function.cloneWithoutRegions();
  builder.insert(function);
  builder.setInsertionPointToStart(function.addEntryBlock());
  map.map(ops.function.getArguments(), function.getArguments());
  if (inputs.counts) {
    StageEmitter counts(*inputs.counts, *this);
    counts.makeTasks();
    counts.mapSums();
    map = counts.map;
  }
  makeTasks();
  finish();
}

void dist::emitStage(const StageInputs &inputs, int64_t stage, ModuleOp program) {
  StageEmitter(inputs, stage, program).run();
}
