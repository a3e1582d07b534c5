//===- RoundsEmitter.cpp - rows of experts in several rounds ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Rows fill the first slots of their block, so where they end is found by bisection. A round's
// rows are a part of each block; what they are is copied, and choices learn their places in it.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CUDA/BlockEmitter.h"
#include "Codegen/CUDA/Experts.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;
using namespace meshwright::codegen::cuda;

namespace {
class RoundsEmitter : BlockEmitter {
public:
  using BlockEmitter::BlockEmitter;
  void emitRounds(const std::string &name, exec::RoundsOp op);
  void emitRowsOfRound(const std::string &name, exec::RowsOfRoundOp op);

private:
  static ArrayRef<int64_t> shapeOf(Value memory) {
    return cast<MemRefType>(memory.getType()).getShape();
  }
  /// The end of the rows in the slots [begin, begin + size) of `choices`, counted from `begin`.
  Value endOfRows(Value choices, Value begin, Value size, int64_t most);
};
} // namespace

Value RoundsEmitter::endOfRows(Value choices, Value begin, Value size, int64_t most) {
  // It is in [low, high].
  Value turns = constant(llvm::Log2_64_Ceil(uint64_t(most + 1))), one = constant(1);
  return loop(constant(0), turns, {constant(0), size}, [&](Value, ValueRange between) {
    Value low = between[0], high = between[1], middle = divide(add(low, high), 2);
    return changed(less(low, high), between, [&] {
      Value isRow = less(constant(-1), getInt(choices, add(begin, middle)));
      return Values{select(isRow, add(middle, one), low), select(isRow, high, middle)};
    });
  })[0];
}

void RoundsEmitter::emitRounds(const std::string &name, exec::RoundsOp op) {
  ArrayRef<int64_t> shape = shapeOf(op.getChoices());
  int64_t blocks = shape[0], slots = shape[1] * shape[2], ofRound = shape[1] * int64_t(op.getSlots());
  begin(name, 2, 1);
  Value choices = function.getArgument(0), rounds = function.getArgument(1);
  Value found = allocate(threads * 4), zero = constant(0);
  int64_t perThread = llvm::divideCeil(blocks, threads);
  Value most = loop(zero, constant(perThread), {zero}, [&](Value i, ValueRange in) {
    Value of = add(times(i, threads), thread), begin = times(of, slots);
    // A thread without a block has no slots.
    Value size = select(less(of, constant(blocks)), constant(slots), zero);
    return Values{larger(in[0], endOfRows(choices, begin, size, slots))};
  })[0];
  putInt(most, found, thread);
  barrier();
  guarded(equal(thread, zero), [&] {
    Value all = loop(zero, constant(threads), {zero}, [&](Value i, ValueRange in) {
      return Values{larger(in[0], getInt(found, i))};
    })[0];
    putInt(divide(add(all, constant(ofRound - 1)), ofRound), rounds, zero);
  });
  end();
}

void RoundsEmitter::emitRowsOfRound(const std::string &name, exec::RowsOfRoundOp op) {
  ArrayRef<int64_t> all = shapeOf(op.getChoices()), own = shapeOf(op.getOwnChoices());
  int64_t blocks = all[0], slots = all[1] * all[2], ofPart = own[1] * own[2];
  int64_t part = op.getPart(), parts = op.getParts(), ofRound = parts * ofPart;
  int64_t count = cast<MemRefType>(op.getRows().getType()).getNumElements();
  begin(name, op->getNumOperands(), llvm::divideCeil(std::max(count, blocks * ofPart), threads));
  unsigned first = op.getRound() ? 1 : 0;
  auto argument = [&](unsigned i) { return function.getArgument(first + i); };
  Value rows = argument(0), choices = argument(1), experts = argument(2), ownRows = argument(3),
        ownChoices = argument(4), ownExperts = argument(5);
  Value zero = constant(0), none = constant(-1), before = zero;
  if (op.getRound())
    before = times(getInt(function.getArgument(0), zero), ofRound);
  // The slots that block `of` has in this part: from the first to before the second.
  auto slotsOf = [&](Value of) -> std::pair<Value, Value> {
    Value rows = parts == 1 ? constant(slots)
                            : endOfRows(choices, times(of, slots), constant(slots), slots);
    Value there = smaller(larger(sub(rows, before), zero), constant(ofRound));
    Value share = divide(add(there, constant(parts - 1)), parts);
    Value from = add(before, times(share, part));
    return {from, smaller(add(from, share), add(before, there))};
  };
  Value index = add(times(block, threads), thread);
  guarded(less(index, constant(count)), [&] {
    Value row = getInt(rows, index), there = larger(row, zero), of = divide(there, slots);
    auto [from, to] = slotsOf(of);
    Value slot = remainder(there, slots), place = sub(slot, from);
    Value isOwn = both(less(none, row), both(less(none, place), less(slot, to)));
    putInt(select(isOwn, add(times(of, ofPart), place), none), ownRows, index);
  });
  guarded(less(index, constant(blocks * ofPart)), [&] {
    Value of = divide(index, ofPart);
    auto [from, to] = slotsOf(of);
    Value slot = add(from, remainder(index, ofPart)), isThere = less(slot, to);
    Value source = add(times(of, slots), smaller(slot, constant(slots - 1)));
    putInt(select(isThere, getInt(choices, source), none), ownChoices, index);
    putInt(select(isThere, getInt(experts, source), none), ownExperts, index);
  });
  end();
}

std::vector<std::string> cuda::emitRounds(exec::RoundsOp op, const std::string &name,
                                          gpu::GPUModuleOp target) {
  RoundsEmitter(target, op.getLoc()).emitRounds(name, op);
  return {name};
}

std::vector<std::string> cuda::emitRounds(exec::RowsOfRoundOp op, const std::string &name,
                                          gpu::GPUModuleOp target) {
  RoundsEmitter(target, op.getLoc()).emitRowsOfRound(name, op);
  return {name};
}
