//===- InlineRepeats.cpp - exec-inline-repeats ------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Exec/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

namespace meshwright::exec {
#define GEN_PASS_DEF_EXECINLINEREPEATS
#include "Exec/Passes.h.inc"
} // namespace meshwright::exec

namespace {
class Inliner {
public:
  explicit Inliner(func::FuncOp function) : function(function) {}

  LogicalResult run() {
    SmallVector<train::RepeatOp> repeats;
    function.walk([&](train::RepeatOp repeat) { repeats.push_back(repeat); });
    while (!repeats.empty())
      if (failed(inlineRepeat(repeats.pop_back_val(), repeats)))
        return failure();
    return hoistReads();
  }

private:
  LogicalResult inlineRepeat(train::RepeatOp repeat, SmallVectorImpl<train::RepeatOp> &repeats);
  LogicalResult hoistReads();

  func::FuncOp function;
  SymbolTableCollection symbols;
};
} // namespace

/// Whether the first iteration of `repeat` may run in any case: a round, which without rows adds
/// nothing, and which needs its number only to choose them.
static bool mayPeel(train::RepeatOp repeat, Block &body) {
  return train::roleOf(repeat) == train::Role::Round && repeat.getTimes() &&
         repeat.getCount() > 1 && repeat.getIndexed() && !body.getArgument(0).use_empty() &&
         llvm::all_of(body.getArgument(0).getUsers(), [&](Operation *user) {
           return isa<train::RowsOfRoundOp>(user) && user->getBlock() == &body;
         });
}

/// Writes the first iteration before the builder, and returns what it carries on.
static SmallVector<Value> peel(OpBuilder &builder, train::RepeatOp repeat, Block &body,
                               SmallVectorImpl<train::RepeatOp> &repeats) {
  IRMapping mapping;
  for (auto [i, outer] : llvm::enumerate(repeat.getPassed()))
    mapping.map(body.getArgument(repeat.getCalleeArgument(i)), outer);
  for (Operation &op : body.without_terminator()) {
    Operation *copy = builder.clone(op, mapping);
    if (auto nested = dyn_cast<train::RepeatOp>(copy))
      repeats.push_back(nested);
    if (repeat.getIndexed() && llvm::is_contained(op.getOperands(), body.getArgument(0)))
      cast<train::RowsOfRoundOp>(copy).getRoundMutable().clear(); // It is round 0 then.
    if (Attribute again = repeat->getAttr(train::recomputedAttr))
      copy->setAttr(train::recomputedAttr, again);
  }
  return llvm::map_to_vector(body.getTerminator()->getOperands(),
                             [&](Value value) { return mapping.lookupOrDefault(value); });
}

LogicalResult Inliner::inlineRepeat(train::RepeatOp repeat,
                                    SmallVectorImpl<train::RepeatOp> &repeats) {
  func::FuncOp callee = repeat.lookupCallee(symbols);
  Block &body = callee.getBody().front();
  // An operand that is sliced twice is one slice: memory tells them apart by value.
  llvm::MapVector<Value, unsigned> each;
  for (Value value : repeat.getEach())
    each.insert({value, each.size()});
  SmallVector<Value> sliced(llvm::make_first_range(each));
  OpBuilder builder(repeat);
  SmallVector<Value> carry(repeat.getCarry());
  bool peels = mayPeel(repeat, body);
  if (peels)
    carry = peel(builder, repeat, body, repeats);
  auto loop = LoopOp::create(builder, repeat.getLoc(), repeat.getCount(), repeat.getReverse(), carry,
                             sliced, repeat.getStacks().getTypes(), repeat.getTimes());
  if (peels)
    loop.setFrom(1);
  loop->setDiscardableAttrs(repeat->getDiscardableAttrDictionary());
  builder.setInsertionPointToEnd(&loop.getBlock());
  IRMapping mapping;
  if (repeat.getIndexed())
    mapping.map(
        body.getArgument(0),
        IndexOp::create(builder, repeat.getLoc(), body.getArgument(0).getType(), loop.getIndex()));
  unsigned carries = repeat.getCarry().size(), slices = repeat.getEach().size();
  for (unsigned i = 0; i < repeat.getPassed().size(); ++i) {
    Value outer = repeat->getOperand(i), inner = outer;
    if (i < carries)
      inner = loop.getCarryArguments()[i];
    else if (i < carries + slices)
      inner = loop.getEachArguments()[each.find(outer)->second];
    mapping.map(body.getArgument(repeat.getCalleeArgument(i)), inner);
  }
  for (Operation &op : body.without_terminator())
    if (auto nested = dyn_cast<train::RepeatOp>(builder.clone(op, mapping)))
      repeats.push_back(nested);
  SmallVector<Value> yielded;
  for (Value value : body.getTerminator()->getOperands())
    yielded.push_back(mapping.lookupOrDefault(value));
  YieldOp::create(builder, body.getTerminator()->getLoc(), yielded);
  repeat->replaceAllUsesWith(loop.getResults());
  repeat.erase();
  return success();
}

LogicalResult Inliner::hoistReads() {
  Block &top = function.getBody().front();
  llvm::StringMap<Operation *> written; // by the first set in program order
  WalkResult result = function.walk([&](train::SetOp set) {
    if (set->getBlock() != &top) {
      set.emitOpError("is inside a repeated function; variables are written by @step itself");
      return WalkResult::interrupt();
    }
    written.insert({set.getVariable(), set});
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  llvm::StringMap<train::GetOp> first;
  SmallVector<train::GetOp> reads;
  function.walk([&](train::GetOp get) { reads.push_back(get); });
  for (train::GetOp get : reads) {
    Operation *at = top.findAncestorOpInBlock(*get);
    Operation *set = written.lookup(get.getVariable());
    if (set && set->isBeforeInBlock(at)) {
      if (at != get)
        get->moveBefore(at);
      continue;
    }
    // Until the variable is written all reads are the same value.
    auto [entry, isNew] = first.try_emplace(get.getVariable(), get);
    if (isNew) {
      get->moveBefore(at);
      continue;
    }
    get.replaceAllUsesWith(entry->second.getValue());
    get.erase();
  }
  return success();
}

/// Variables that a called function reads become arguments, which its callers read: they
/// know where a variable lies and when it is written.
static LogicalResult passVariables(func::FuncOp callee, ArrayRef<func::CallOp> calls) {
  Block &body = callee.getBody().front();
  if (auto sets = body.getOps<train::SetOp>(); !sets.empty())
    return (*sets.begin()).emitOpError(
        "is inside a called function; variables are written by @step itself");
  for (auto get : llvm::to_vector(body.getOps<train::GetOp>())) {
    unsigned number = callee.getNumArguments();
    if (failed(callee.insertArgument(number, get.getType(), {}, get.getLoc())))
      return failure();
    get.replaceAllUsesWith(body.getArgument(number));
    for (func::CallOp call : calls) {
      OpBuilder builder(call);
      Value value = train::GetOp::create(builder, get.getLoc(), get.getType(), get.getVariable());
      call->insertOperands(call->getNumOperands(), value);
    }
    get.erase();
  }
  return success();
}

namespace {
struct ExecInlineRepeats : exec::impl::ExecInlineRepeatsBase<ExecInlineRepeats> {
  void runOnModule() override {
    SymbolTable symbols(getOperation());
    // What runs, callers first.
    llvm::SetVector<Operation *> reached;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isPrivate())
        reached.insert(function);
    for (size_t i = 0; i < reached.size(); ++i) {
      auto function = cast<func::FuncOp>(reached[i]);
      if (failed(Inliner(function).run()))
        return signalPassFailure();
      function.walk([&](func::CallOp call) {
        if (auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
            callee && !callee.isExternal())
          reached.insert(callee);
      });
    }
    for (auto function : llvm::to_vector(getOperation().getOps<func::FuncOp>()))
      if (!reached.contains(function) && !function->hasAttr(kernelAttr))
        function.erase();
    if (failed(passAllVariables(reached.getArrayRef())))
      return signalPassFailure();
  }

  /// From callees to callers, until no called function reads a variable itself.
  LogicalResult passAllVariables(ArrayRef<Operation *> functions) {
    llvm::DenseMap<StringRef, SmallVector<func::CallOp>> calls;
    for (Operation *function : functions)
      function->walk([&](func::CallOp call) { calls[call.getCallee()].push_back(call); });
    for (bool changed = true; changed;) {
      changed = false;
      for (Operation *op : functions) {
        auto function = cast<func::FuncOp>(op);
        if (!function.isPrivate() ||
            (function.getOps<train::GetOp>().empty() && function.getOps<train::SetOp>().empty()))
          continue;
        changed = true;
        if (failed(passVariables(function, calls[function.getSymName()])))
          return failure();
      }
    }
    // Reads that came into loops with calls leave them.
    for (Operation *op : functions)
      if (failed(Inliner(cast<func::FuncOp>(op)).run()))
        return failure();
    return success();
  }
};
} // namespace
