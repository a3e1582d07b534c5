//===- Bufferize.cpp - exec-bufferize ---------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "BufferCoalescing.h"
#include "Exec/Passes.h"
#include "Gradients.h"
#include "InPlaceAliases.h"
#include "InsertCopies.h"
#include "LowerToMemory.h"

#include "Dist/Dist.h"
#include "Train/Quantize.h"
#include "meshwright/Cost/TripCount.h"

#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

namespace meshwright::exec {
#define GEN_PASS_DEF_EXECBUFFERIZE
#include "Exec/Passes.h.inc"
} // namespace meshwright::exec

//===--- what shares memory -------------------------------------------------===//

/// Removes copies, the costliest first.
static void coalesceCopies(func::FuncOp function, BufferCoalescing &coalescing) {
  SmallVector<std::pair<int64_t, CopyOp>> copies;
  function.walk([&](CopyOp copy) {
    copies.push_back({cost::runsOf(copy) * bytesOf(copy.getSource().getType()), copy});
  });
  llvm::stable_sort(copies, [](auto &a, auto &b) { return a.first > b.first; });
  for (auto &[cost, copy] : copies)
    coalescing.tryMerge(copy.getSource(), copy.getValue());
}

/// Lets ops write over operands that die, the largest first.
static void reuseOperands(func::FuncOp function, BufferCoalescing &coalescing) {
  SymbolTableCollection symbols;
  SmallVector<std::pair<Value, Value>> pairs;
  function.walk([&](Operation *op) {
    if (auto launch = dyn_cast<LaunchOp>(op)) {
      auto kernel = symbols.lookupNearestSymbolFrom<func::FuncOp>(op, launch.getKernelAttr());
      if (auto allowed = kernel->getAttrOfType<ArrayAttr>(inplaceAttr))
        for (Attribute attr : allowed) {
          auto pair = cast<ArrayAttr>(attr);
          pairs.push_back({launch.getInputs()[cast<IntegerAttr>(pair[0]).getInt()],
                           launch.getResult(cast<IntegerAttr>(pair[1]).getInt())});
        }
    } else if (auto product = dyn_cast<ProductOp>(op)) {
      if (product.getAddend())
        pairs.push_back({product.getAddend(), product.getResult()});
    } else if (auto reduce = dyn_cast<dist::AllReduceOp>(op)) {
      for (auto [x, y] : llvm::zip(reduce.getXs(), reduce.getYs()))
        pairs.push_back({x, y});
    }
  });
  llvm::stable_sort(pairs, [](auto &a, auto &b) {
    return bytesOf(a.second.getType()) > bytesOf(b.second.getType());
  });
  // A parameter that nothing but its update writes has the upper half of its master (exec-halve-masters), so what it
  // leaves is no room for others.
  auto isKept = [&](Value operand, Value result) {
    return getElementTypeOrSelf(operand).isBF16() && coalescing.isInVariable(operand) &&
           !coalescing.isInVariable(result);
  };
  for (auto &[operand, result] : pairs)
    if (bytesOf(operand.getType()) == bytesOf(result.getType()) && !isKept(operand, result))
      coalescing.tryMerge(operand, result);
}

//===--- the memory form ----------------------------------------------------===//

static MemRefType memoryType(RankedTensorType type) {
  return MemRefType::get(type.getShape(), type.getElementType());
}

namespace {
class ProgramBuilder : public MemoryMap {
public:
  ProgramBuilder(func::FuncOp function, BufferCoalescing &coalescing)
      : function(function), coalescing(coalescing) {}

  LogicalResult build();

  Value memory(OpBuilder &builder, Value value) override;
  Value workspace(OpBuilder &builder, Location loc, int64_t bytes) override {
    auto type = MemRefType::get({bytes}, builder.getI8Type());
    return buffer(Category::Workspace, type, loc);
  }
  func::FuncOp kernelOf(LaunchOp op) override {
    return symbols.lookupNearestSymbolFrom<func::FuncOp>(function, op.getKernelAttr());
  }
  Value sendBuffer(dist::SendOp op) override;

private:
  LogicalResult emit(Block &from, OpBuilder &builder);
  void addArguments(Block &top);
  Value buffer(Category category, MemRefType type, Location loc);
  Value bufferOf(CoalescedMemory &coalesced);
  Category categoryOf(CoalescedMemory &coalesced);
  Value view(OpBuilder &builder, Location loc, Value base, MemRefType type) {
    return base.getType() == type ? base : ViewOp::create(builder, loc, type, base).getResult();
  }
  func::FuncOp function;
  BufferCoalescing &coalescing;
  SymbolTableCollection symbols;
  ProgramOp program;
  Operation *lastBuffer = nullptr;
  DenseMap<CoalescedMemory *, Value> buffers;
  DenseMap<Operation *, LoopOp> loops;
  llvm::DenseSet<CoalescedMemory *> gradients;
  unsigned counts[8] = {};
  /// By group, channel and receiver.
  llvm::MapVector<std::tuple<Attribute, int64_t, int64_t>, Value> sendBuffers;
};
} // namespace

/// Adds the ops that read `value`, there or where it is copied to.
static void collectReaders(Value value, SmallVectorImpl<Operation *> &readers) {
  for (Operation *user : value.getUsers())
    if (isView(user) || isa<CopyOp>(user))
      collectReaders(user->getResult(0), readers);
    else
      readers.push_back(user);
}

/// Whether layers stack `value` for their backward or for the gradients of their weights, or
/// several of the functions that are called know it.
static bool isActivation(Value value) {
  SmallVector<Operation *> knownTo;
  collectReaders(value, knownTo);
  auto loop = value.getDefiningOp<LoopOp>();
  if (loop && llvm::is_contained(loop.getStacks(), value)) {
    std::optional<train::Role> role = train::roleOf(loop);
    return role == train::Role::Forward ||
           (role == train::Role::Backward && llvm::any_of(knownTo, [](Operation *reader) {
              return train::roleOf(reader) == train::Role::Weight;
            }));
  }
  if (Operation *op = value.getDefiningOp())
    knownTo.push_back(op);
  llvm::SmallDenseSet<StringRef, 4> functions;
  for (Operation *op : knownTo)
    if (auto call = dyn_cast<func::CallOp>(op))
      functions.insert(call.getCallee());
  return functions.size() > 1;
}

Category ProgramBuilder::categoryOf(CoalescedMemory &coalesced) {
  if (coalesced.input)
    return Category::Input;
  if (coalesced.output)
    return Category::Output;
  if (coalesced.variable) {
    auto variable = symbols.lookupNearestSymbolFrom<train::VariableOp>(
        function, FlatSymbolRefAttr::get(coalesced.variable));
    return variable.isParameter() || train::isScale(variable) ? Category::Parameter
           : variable.isOptimizerState()                      ? Category::Optimizer
                                                              : Category::Output;
  }
  if (gradients.contains(&coalesced))
    return Category::Gradient;
  bool kept = llvm::any_of(coalesced.intervals.all(), [](LiveInterval *interval) {
    return interval->value && isActivation(interval->value);
  });
  return kept ? Category::Activation : Category::Temporary;
}

Value ProgramBuilder::buffer(Category category, MemRefType type, Location loc) {
  OpBuilder builder(program.getContext());
  if (lastBuffer)
    builder.setInsertionPointAfter(lastBuffer);
  else
    builder.setInsertionPointToStart(&program.getBody().front());
  std::string name =
      (stringifyCategory(category) + "." + Twine(counts[unsigned(category)]++)).str();
  auto op =
      BufferOp::create(builder, loc, type, name, category, nullptr, nullptr, nullptr, nullptr);
  lastBuffer = op;
  return op;
}

Value ProgramBuilder::sendBuffer(dist::SendOp op) {
  int64_t bytes = bytesOf(op.getX().getType());
  Value &known = sendBuffers[{op.getGroup(), op.getChannel(), op.getTo()}];
  if (!known || bytesOf(known.getType()) < bytes) {
    auto type = MemRefType::get({bytes}, Builder(op.getContext()).getI8Type());
    if (known)
      known.setType(type);
    else
      known = buffer(Category::Workspace, type, op.getLoc());
  }
  return known;
}

Value ProgramBuilder::bufferOf(CoalescedMemory &coalesced) {
  Value &entry = buffers[&coalesced];
  if (entry)
    return entry;
  entry = buffer(categoryOf(coalesced), memoryType(coalesced.type), coalesced.first.getLoc());
  auto op = cast<BufferOp>(entry.getDefiningOp());
  if (coalesced.variable) {
    op.setName(coalesced.variable);
    op.setVariableAttr(FlatSymbolRefAttr::get(coalesced.variable));
  } else if (coalesced.isFixed()) {
    op.setName(coalesced.input ? coalesced.input : coalesced.output);
    op.setInputAttr(coalesced.input);
    op.setOutputAttr(coalesced.output);
  }
  return entry;
}

Value ProgramBuilder::memory(OpBuilder &builder, Value value) {
  if (isWindow(value)) {
    Operation *op = value.getDefiningOp();
    Value base = memory(builder, op->getOperand(0));
    MemRefType type = memoryType(cast<RankedTensorType>(value.getType()));
    if (auto slice = dyn_cast<dist::SliceOp>(op))
      return WindowOp::create(builder, value.getLoc(), type, base, axesOf(slice.getGroup()),
                              slice.getShift());
    if (auto take = dyn_cast<dist::TakeOp>(op))
      return ViewOp::create(builder, value.getLoc(), type, base,
                            int64_t(take.getAt()) * type.getNumElements());
    return view(builder, value.getLoc(), base, type);
  }
  if (OpOperand *part = writtenInto(value)) {
    auto concat = cast<dist::ConcatOp>(part->getOwner());
    return WindowOp::create(builder, value.getLoc(),
                            memoryType(cast<RankedTensorType>(value.getType())),
                            memory(builder, concat.getY()), axesOf(concat.getGroup()),
                            part->getOperandNumber());
  }
  CoalescedMemory &coalesced = coalescing.memoryOf(value);
  Location loc = value.getLoc();
  Value base = bufferOf(coalesced);
  SmallVector<Operation *, 2> key;
  for (LoopOp loop : coalescing.pathOf(value)) {
    key.push_back(loop);
    RankedTensorType slot = coalesced.slots.at(key);
    SmallVector<int64_t> shape{int64_t(loop.getCount())};
    llvm::append_range(shape, slot.getShape());
    base = view(builder, loc, base, MemRefType::get(shape, slot.getElementType()));
    base = SlotOp::create(builder, loc, memoryType(slot), base, loops.at(loop).getIndex());
  }
  return view(builder, loc, base, memoryType(cast<RankedTensorType>(value.getType())));
}

LogicalResult ProgramBuilder::emit(Block &from, OpBuilder &builder) {
  for (Operation &op : from.without_terminator()) {
    if (auto slice = dyn_cast<dist::SliceOp>(op))
      if (failed(checkContiguous(slice, slice.getX(), slice.getDim())))
        return failure();
    if (auto concat = dyn_cast<dist::ConcatOp>(op)) {
      if (failed(checkContiguous(concat, concat.getY(), concat.getDim())))
        return failure();
      continue; // its parts are there already
    }
    if (isView(&op) || isa<train::GetOp, train::SetOp>(op))
      continue;
    if (auto copy = dyn_cast<CopyOp>(op)) {
      if (!coalescing.sameAddress(copy.getSource(), copy.getValue()))
        CopyOp::create(builder, op.getLoc(), Type(), memory(builder, copy.getSource()),
                       memory(builder, copy.getValue()));
    } else if (auto index = dyn_cast<IndexOp>(op)) {
      Operation *loop = index.getIndex().getParentBlock()->getParentOp();
      StoreIndexOp::create(builder, op.getLoc(), loops.at(loop).getIndex(),
                           memory(builder, index.getValue()));
    } else if (auto loop = dyn_cast<LoopOp>(op)) {
      auto inMemory = LoopOp::create(builder, op.getLoc(), loop.getCount(), loop.getReverse(),
                                     ValueRange(), ValueRange(), TypeRange(),
                                     loop.getTimes() ? memory(builder, loop.getTimes()) : Value());
      inMemory.setFrom(loop.getFrom());
      inMemory->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
      loops[loop] = inMemory;
      OpBuilder inner = OpBuilder::atBlockEnd(&inMemory.getBlock());
      if (failed(emit(loop.getBlock(), inner)))
        return failure();
      YieldOp::create(inner, op.getLoc(), ValueRange());
    } else if (failed(lowerToMemory(&op, builder, *this))) {
      return failure();
    }
    if (auto number = op.getAttrOfType<IntegerAttr>(valueIdAttr))
      for (OpResult result : op.getResults())
        ObserveOp::create(builder, op.getLoc(), memory(builder, result), number.getInt(),
                          result.getResultNumber());
  }
  return success();
}

/// The caller's memory: what is read, what is also written, and what is written.
void ProgramBuilder::addArguments(Block &top) {
  SmallVector<CoalescedMemory *> segments[3];
  for (BlockArgument argument : top.getArguments()) {
    CoalescedMemory &coalesced = coalescing.memoryOf(argument);
    segments[coalesced.result ? 1 : 0].push_back(&coalesced);
  }
  for (Value result : top.getTerminator()->getOperands())
    if (CoalescedMemory &coalesced = coalescing.memoryOf(result); !coalesced.argument)
      segments[2].push_back(&coalesced);
  SmallVector<int32_t> sizes;
  for (auto &segment : segments) {
    sizes.push_back(segment.size());
    for (CoalescedMemory *coalesced : segment)
      buffers[coalesced] =
          program.getBlock().addArgument(memoryType(coalesced->type), function.getLoc());
  }
  program.setArgumentSegments(sizes);
}

LogicalResult ProgramBuilder::build() {
  for (Value gradient : gradientsOf(function))
    gradients.insert(&coalescing.memoryOf(gradient));
  OpBuilder builder(function);
  program = ProgramOp::create(builder, function.getLoc(), function.getSymName());
  program.setSymVisibilityAttr(function.getSymVisibilityAttr());
  Block &top = function.getBody().front();
  if (function.isPrivate())
    addArguments(top);
  // Persistent memory first, in the order of the module's variables, whether this
  // program uses it or not: the other one may.
  for (BlockArgument argument : top.getArguments())
    bufferOf(coalescing.memoryOf(argument));
  builder.setInsertionPointToEnd(&program.getBody().front());
  if (failed(emit(top, builder)))
    return failure();
  if (!sendBuffers.empty())
    FinishSendsOp::create(builder, function.getLoc(),
                          llvm::to_vector(llvm::make_second_range(sendBuffers)));
  return success();
}

namespace {
struct ExecBufferize : exec::impl::ExecBufferizeBase<ExecBufferize> {
  void runOnModule() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function->hasAttr(kernelAttr))
        functions.insert({function, Progress::Waiting});
    for (auto [function, progress] : functions)
      function.walk([&](func::CallOp call) {
        calls[call.getCalleeAttr().getAttr()].push_back(call);
      });
    for (auto &[function, progress] : functions)
      if (failed(bufferize(function)))
        return signalPassFailure();
    for (auto &[function, progress] : functions)
      function.erase();
    for (auto program : getOperation().getOps<ProgramOp>()) {
      DominanceInfo dominance(program);
      IRRewriter rewriter(&getContext());
      eliminateCommonSubExpressions(rewriter, dominance, program);
    }
    functions.clear();
    calls.clear();
  }

private:
  enum class Progress { Waiting, Begun, Done };

  LogicalResult bufferize(func::FuncOp function);

  llvm::MapVector<func::FuncOp, Progress> functions;
  llvm::DenseMap<StringAttr, SmallVector<func::CallOp>> calls; ///< by callee
};
} // namespace

/// Callees first: whether they work in place decides which copies their callers need.
LogicalResult ExecBufferize::bufferize(func::FuncOp function) {
  Progress &progress = functions[function];
  if (progress == Progress::Done)
    return success();
  if (progress == Progress::Begun)
    return function.emitError("calls itself; memory is assigned for calls that end");
  progress = Progress::Begun;
  WalkResult result = function.walk([&](func::CallOp call) {
    // Not by symbol: what is done has its program beside it, of the same name.
    auto entry = llvm::find_if(
        functions, [&](auto &e) { return func::FuncOp(e.first).getSymName() == call.getCallee(); });
    func::FuncOp callee = entry == functions.end() ? func::FuncOp() : entry->first;
    if (!callee || callee.isExternal() || !callee.isPrivate()) {
      call.emitOpError("calls ") << call.getCalleeAttr()
                                 << "; a private function that is no kernel and has a body works";
      return WalkResult::interrupt();
    }
    return failed(bufferize(callee)) ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  ArrayRef<func::CallOp> callers = calls[function.getSymNameAttr()];
  SmallVector<int64_t> aliases;
  if (function.isPrivate())
    aliases = findInPlaceAliases(function, callers);
  insertCopies(function);
  BufferCoalescing coalescing(function);
  if (failed(coalescing.build()))
    return failure();
  for (auto [result, argument] : llvm::enumerate(aliases))
    if (argument >= 0 && !coalescing.alias(argument, result))
      argument = -1;
  if (llvm::any_of(aliases, [](int64_t argument) { return argument >= 0; }))
    for (func::CallOp call : callers)
      call->setAttr(inPlaceAliasesAttr, DenseI64ArrayAttr::get(&getContext(), aliases));
  coalesceCopies(function, coalescing);
  reuseOperands(function, coalescing);
  if (failed(coalescing.verify()) || failed(ProgramBuilder(function, coalescing).build()))
    return failure();
  progress = Progress::Done;
  return success();
}
