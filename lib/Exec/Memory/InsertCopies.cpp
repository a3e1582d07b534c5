//===- InsertCopies.cpp - a value for every memory --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "InsertCopies.h"

#include "Dist/Dist.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

bool meshwright::exec::isView(Operation *op) {
  auto slice = dyn_cast_or_null<train::SliceOp>(op);
  return isa_and_nonnull<train::ReshapeOp, dist::SliceOp, dist::TakeOp>(op) ||
         (slice && slice.isPrefix());
}

bool meshwright::exec::isWindow(Value value) {
  for (; isView(value.getDefiningOp()); value = value.getDefiningOp()->getOperand(0))
    if (isa<dist::SliceOp, dist::TakeOp>(value.getDefiningOp()))
      return true;
  return false;
}

OpOperand *meshwright::exec::writtenInto(Value value) {
  while (value.hasOneUse()) {
    OpOperand &use = *value.use_begin();
    if (isa<dist::ConcatOp>(use.getOwner()))
      return &use;
    if (!isa<train::ReshapeOp>(use.getOwner()))
      return nullptr;
    value = use.getOwner()->getResult(0);
  }
  return nullptr;
}

ArrayRef<int64_t> meshwright::exec::inPlaceAliasesOf(func::CallOp call) {
  auto aliases = call->getAttrOfType<DenseI64ArrayAttr>(inPlaceAliasesAttr);
  return aliases ? aliases.asArrayRef() : ArrayRef<int64_t>();
}

static Value copyAt(OpBuilder &builder, Value value) {
  return CopyOp::create(builder, value.getLoc(), value.getType(), value, Value()).getValue();
}

Value meshwright::exec::viewed(Value value) {
  while (isView(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

bool meshwright::exec::isUsedAfter(Value value, Operation *point) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    Operation *at = point->getBlock()->findAncestorOpInBlock(*user);
    return point->isBeforeInBlock(at) || (isView(user) && isUsedAfter(user->getResult(0), point));
  });
}

/// What was read of a variable before it is written, and is used after that.
static void copyOldValues(Block &top) {
  llvm::StringMap<SmallVector<train::GetOp, 2>> reads; // by variable
  for (auto get : top.getOps<train::GetOp>())
    reads[get.getVariable()].push_back(get);
  for (auto set : llvm::to_vector(top.getOps<train::SetOp>()))
    for (train::GetOp get : reads[set.getVariable()]) {
      if (!get->isBeforeInBlock(set) || !isUsedAfter(get.getValue(), set))
        continue;
      OpBuilder builder(get->getContext());
      builder.setInsertionPointAfter(get);
      Value copy = copyAt(builder, get.getValue());
      get.getValue().replaceAllUsesExcept(copy, copy.getDefiningOp());
    }
}

static void copyAroundLoop(LoopOp loop) {
  OpBuilder before(loop);
  for (OpOperand &init : loop.getCarryMutable())
    init.set(copyAt(before, init.get()));
  // Slots are found from where a stack begins.
  for (OpOperand &stack : loop.getEachMutable())
    if (isWindow(stack.get()))
      stack.set(copyAt(before, stack.get()));

  Block &body = loop.getBlock();
  Operation *end = body.getTerminator();
  unsigned carries = loop.getCarry().size();
  auto atStart = [&](Value value) {
    OpBuilder builder = OpBuilder::atBlockBegin(&body);
    return copyAt(builder, value);
  };
  // Stacked values go to their slots as soon as they exist: a carried value may
  // be overwritten by its successor.
  for (unsigned i = carries; i < end->getNumOperands(); ++i) {
    Value value = end->getOperand(i);
    Operation *producer = value.getDefiningOp();
    if (!producer || producer->getBlock() != &body) {
      end->setOperand(i, atStart(value));
      continue;
    }
    OpBuilder builder(producer->getContext());
    builder.setInsertionPointAfter(producer);
    end->setOperand(i, copyAt(builder, value));
  }
  // Next carried values all at once: one that is another's old value is saved
  // before that is overwritten.
  for (unsigned i = 0; i < carries; ++i) {
    Value value = end->getOperand(i), source = viewed(value);
    auto argument = dyn_cast<BlockArgument>(source);
    bool isOther = argument && argument.getOwner() == &body &&
                   value != loop.getCarryArguments()[i] && argument.getArgNumber() <= carries;
    if (isOther) {
      Value saved = atStart(source);
      SmallVector<Operation *> views;
      for (Value v = value; v != source; v = v.getDefiningOp()->getOperand(0))
        views.push_back(v.getDefiningOp());
      OpBuilder builder(end);
      for (Operation *view : llvm::reverse(views)) {
        Operation *clone = builder.clone(*view);
        clone->setOperand(0, saved);
        saved = clone->getResult(0);
      }
      value = saved;
    }
    OpBuilder builder(end);
    end->setOperand(i, copyAt(builder, value));
  }
}

/// Whether what makes `value` can make it anywhere, as nothing else is to be there.
static bool canBeWrittenInPlace(Value value) {
  for (; value.hasOneUse(); value = value.getDefiningOp()->getOperand(0)) {
    Operation *op = value.getDefiningOp();
    if (isa_and_nonnull<train::ReshapeOp>(op))
      continue;
    if (auto accumulating = dyn_cast_or_null<train::AccumulatingOpInterface>(op))
      if (!accumulating.getInitMutable().empty())
        return false;
    return isa_and_nonnull<train::ContractionOpInterface, LaunchOp>(op);
  }
  return false;
}

void meshwright::exec::insertCopies(func::FuncOp function) {
  Block &top = function.getBody().front();
  copyOldValues(top);
  function.walk([](LoopOp loop) { copyAroundLoop(loop); });
  function.walk([](train::AccumulatingOpInterface op) {
    OpBuilder builder(op);
    for (OpOperand &init : op.getInitMutable())
      init.set(copyAt(builder, init.get()));
  });
  function.walk([](dist::ExchangeOp op) {
    OpBuilder builder(op);
    for (OpOperand &x : op.getXsMutable())
      x.set(copyAt(builder, x.get()));
  });
  function.walk([](dist::ConcatOp op) {
    OpBuilder builder(op);
    for (OpOperand &x : op.getXsMutable())
      if (!canBeWrittenInPlace(x.get()))
        x.set(copyAt(builder, x.get()));
  });
  function.walk([](func::CallOp call) {
    OpBuilder builder(call);
    for (int64_t operand : inPlaceAliasesOf(call))
      if (operand >= 0)
        call->setOperand(operand, copyAt(builder, call->getOperand(operand)));
  });
  for (auto set : top.getOps<train::SetOp>()) {
    OpBuilder builder(set);
    set.getValueMutable().set(copyAt(builder, set.getValue()));
  }
  OpBuilder builder(top.getTerminator());
  for (OpOperand &operand : top.getTerminator()->getOpOperands())
    operand.set(copyAt(builder, operand.get()));
}
