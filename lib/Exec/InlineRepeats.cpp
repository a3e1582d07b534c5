//===- InlineRepeats.cpp - exec-inline-repeats ------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Exec/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

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
  auto loop = LoopOp::create(builder, repeat.getLoc(), repeat.getCount(), repeat.getReverse(),
                             repeat.getCarry(), sliced, repeat.getStacks().getTypes());
  loop->setDiscardableAttrs(repeat->getDiscardableAttrDictionary());
  builder.setInsertionPointToEnd(&loop.getBlock());
  IRMapping mapping;
  if (repeat.getIndexed())
    mapping.map(
        body.getArgument(0),
        IndexOp::create(builder, repeat.getLoc(), body.getArgument(0).getType(), loop.getIndex()));
  unsigned carries = repeat.getCarry().size(), slices = repeat.getEach().size();
  for (unsigned i = 0; i < repeat->getNumOperands(); ++i) {
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

namespace {
struct ExecInlineRepeats : exec::impl::ExecInlineRepeatsBase<ExecInlineRepeats> {
  void runOnOperation() override {
    SmallVector<func::FuncOp> called;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isPrivate()) {
        if (!function->hasAttr(kernelAttr))
          called.push_back(function);
      } else if (failed(Inliner(function).run())) {
        return signalPassFailure();
      }
    }
    for (func::FuncOp function : called)
      function.erase();
  }
};
} // namespace
