//===- Experts.cpp - mixtures of experts as StableHLO -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Routers, dispatch and collect go by their decomposition for kernels. What is here are the order of
// rows, by stable sorts, and products: a loop over the experts of a block, in which each
// multiplies all rows and those of others are left out. That computes as many products as there are
// experts; StableHLO has none whose rows are divided by data.
//
//===----------------------------------------------------------------------===//
#include "Codegen/StableHLO/Export.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;
using stablehlo::HLOBuilder;
using stablehlo::plain;
using stablehlo::Results;

static Value numbers(HLOBuilder &b, ArrayRef<int64_t> shape, int64_t value) {
  return b.splat(RankedTensorType::get(shape, b.builder().getI32Type()), double(value));
}

//===----------------------------------------------------------------------===//
// The order of rows
//===----------------------------------------------------------------------===//

static Results route(train::RouteOp op, ValueRange x, HLOBuilder &b) {
  ArrayRef<int64_t> mask = b.typeOf(x[0]).getShape();
  int64_t tokens = mask[0] * mask[1], experts = mask[2], k = op.getK(), blocks = op.getBlocks();
  int64_t ofBlock = experts / blocks, slots = mask[0] * int64_t(op.getSlots()), all = k * tokens;

  // The first k experts of each token, those that it has not chosen behind all.
  Value ids = b.iota({tokens, experts}, 1), flat = b.reshape(x[0], {tokens, experts});
  Value hit = b.compare(flat, b.splat(b.typeOf(flat), 0), "NE", "FLOAT");
  SmallVector<Value> keys{b.select(hit, ids, numbers(b, {tokens, experts}, experts))};
  if (int64_t capacity = op.getCapacity()) {
    Value kept = b.convert(hit, b.builder().getI32Type());
    // How many tokens of the sequence, to this one, have chosen the expert: a sum over those before.
    Type f32 = b.builder().getF32Type();
    Value before = b.compare(b.iota({mask[1], mask[1]}, 0), b.iota({mask[1], mask[1]}, 1), "GE", "SIGNED");
    Value taken = b.dot(b.reshape(b.convert(kept, f32), mask), b.convert(before, f32), {}, {}, {1}, {1}, f32);
    taken = b.convert(b.reshape(b.transpose(taken, {0, 2, 1}), {tokens, experts}), b.builder().getI32Type());
    Value fits = b.compare(taken, numbers(b, {tokens, experts}, capacity), "LE", "SIGNED");
    keys.push_back(b.select(fits, kept, numbers(b, {tokens, experts}, 0)));
  }
  Results sorted = b.sort(keys, 1);
  auto ofChoices = [&](Value of) {
    return b.reshape(b.transpose(b.slice(of, {0, 0}, {tokens, k}), {1, 0}), {all});
  };
  Value chosen = ofChoices(sorted[0]), withRow = chosen;
  if (op.getCapacity()) {
    Value isKept = b.compare(ofChoices(sorted[1]), numbers(b, {all}, 0), "GT", "SIGNED");
    withRow = b.select(isKept, chosen, numbers(b, {all}, experts));
  }

  // Choices in the order of their experts, those without a row behind all, and where each block's
  // begin: behind all of smaller ones.
  Results order = b.sort({withRow, b.iota({all}, 0)}, 0);
  Value expert = order[0], choice = order[1];
  Value first = b.mul(b.iota({blocks + 1, all}, 0), numbers(b, {blocks + 1, all}, ofBlock));
  Value before = b.compare(b.broadcast(expert, {blocks + 1, all}, {1}), first, "LT", "SIGNED");
  Value begin = b.reduce(b.convert(before, b.builder().getI32Type()), {1}, /*max=*/false);

  // The row of each choice is its place in the block's slots.
  Value hasRow = b.compare(expert, numbers(b, {all}, experts), "LT", "SIGNED");
  Value block = b.op("divide", expert.getType(), {expert, numbers(b, {all}, ofBlock)});
  Value row = b.sub(b.iota({all}, 0), b.take(begin, block));
  row = b.add(row, b.mul(block, numbers(b, {all}, slots)));
  row = b.select(hasRow, row, numbers(b, {all}, -1));
  Value rows = b.sort({choice, row}, 0)[1];

  // The choice of each slot, while there are any of its block.
  Value from = b.broadcast(b.slice(begin, {0}, {blocks}), {blocks, slots}, {0});
  Value end = b.broadcast(b.slice(begin, {1}, {blocks + 1}), {blocks, slots}, {0});
  Value place = b.add(from, b.iota({blocks, slots}, 1));
  Value isFilled = b.compare(place, end, "LT", "SIGNED");
  place = b.select(isFilled, place, numbers(b, {blocks, slots}, 0));
  Value ofSlot = b.sub(b.take(expert, place),
                       b.mul(b.iota({blocks, slots}, 0), numbers(b, {blocks, slots}, ofBlock)));
  Value choices = b.select(isFilled, b.take(choice, place), numbers(b, {blocks, slots}, -1));
  Value numbersOfSlots = b.select(isFilled, ofSlot, numbers(b, {blocks, slots}, ofBlock));

  Results made{chosen, rows, choices, numbersOfSlots};
  for (auto [value, result] : llvm::zip_equal(made, op->getResults()))
    value = b.reshape(value, plain(result.getType()).getShape());
  return made;
}

/// How many rows the blocks of `choices`, [blocks, slots], have.
static Value rowsOfBlocks(Value choices, HLOBuilder &b) {
  Value isFilled = b.compare(choices, b.splat(b.typeOf(choices), 0), "GE", "SIGNED");
  return b.reduce(b.convert(isFilled, b.builder().getI32Type()), {1}, /*max=*/false);
}

static Results rounds(train::RoundsOp op, ValueRange x, HLOBuilder &b) {
  ArrayRef<int64_t> slots = b.typeOf(x[0]).getShape();
  Value rows = rowsOfBlocks(b.reshape(x[0], {slots[0], slots[1] * slots[2]}), b);
  Value most = b.reduce(rows, {0}, /*max=*/true);
  int64_t ofRound = slots[1] * int64_t(op.getSlots());
  return {b.op("divide", most.getType(),
               {b.add(most, numbers(b, {}, ofRound - 1)), numbers(b, {}, ofRound)})};
}

static Results rowsOfRound(train::RowsOfRoundOp op, ValueRange x, HLOBuilder &b) {
  Value round;
  if (op.getRound()) {
    round = x.front();
    x = x.drop_front();
  } else {
    round = numbers(b, {}, 0);
  }
  ArrayRef<int64_t> slots = b.typeOf(x[1]).getShape();
  int64_t blocks = slots[0], all = slots[1] * slots[2], ofPart = slots[1] * int64_t(op.getSlots());
  int64_t part = op.getPart(), parts = op.getParts();
  // The slots that each block has in this part: [from, to).
  auto ofBlocks = [&](int64_t number) { return numbers(b, {blocks}, number); };
  Value before = b.broadcast(b.mul(round, numbers(b, {}, parts * ofPart)), {blocks}, {});
  Value rows = parts == 1 ? ofBlocks(all) : rowsOfBlocks(b.reshape(x[1], {blocks, all}), b);
  RankedTensorType ofBlock = b.typeOf(before);
  Value there = b.op("maximum", ofBlock, {b.sub(rows, before), ofBlocks(0)});
  there = b.op("minimum", ofBlock, {there, ofBlocks(parts * ofPart)});
  Value share = b.op("divide", ofBlock, {b.add(there, ofBlocks(parts - 1)), ofBlocks(parts)});
  Value from = b.add(before, b.mul(share, ofBlocks(part)));
  Value to = b.op("minimum", ofBlock, {b.add(from, share), b.add(before, there)});

  RankedTensorType type = b.typeOf(x[0]);
  ArrayRef<int64_t> shape = type.getShape();
  auto ofRows = [&](int64_t number) { return numbers(b, shape, number); };
  // Rows that are -1 are looked up as 0.
  Value known = b.op("maximum", type, {x[0], ofRows(0)});
  Value block = b.op("divide", type, {known, ofRows(all)});
  Value slot = b.sub(known, b.mul(block, ofRows(all)));
  Value first = b.take(from, block), end = b.take(to, block), none = ofRows(-1);
  Value row = b.add(b.mul(block, ofRows(ofPart)), b.sub(slot, first));
  row = b.select(b.compare(slot, first, "GE", "SIGNED"), row, none);
  row = b.select(b.compare(slot, end, "LT", "SIGNED"), row, none);
  Results made{b.select(b.compare(x[0], ofRows(0), "GE", "SIGNED"), row, none)};

  SmallVector<int64_t> own{blocks, ofPart};
  auto ofSlots = [&](int64_t number) { return numbers(b, own, number); };
  Value place = b.add(b.broadcast(from, own, {0}), b.iota(own, 1));
  Value isThere = b.compare(place, b.broadcast(to, own, {0}), "LT", "SIGNED");
  Value source = b.add(b.mul(b.iota(own, 0), ofSlots(all)), place);
  source = b.select(isThere, source, ofSlots(0));
  for (Value of : {x[1], x[2]}) {
    Value taken = b.select(isThere, b.take(b.reshape(of, {blocks * all}), source), ofSlots(-1));
    made.push_back(b.reshape(taken, {blocks, slots[1], int64_t(op.getSlots())}));
  }
  return made;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// [x, b, m, h] as [x, rows, h], and numbers of experts as [x, rows].
static Value byBlock(Value x, unsigned behind, HLOBuilder &b) {
  RankedTensorType type = b.typeOf(x);
  SmallVector<int64_t> shape{type.getDimSize(0), type.getDimSize(1) * type.getDimSize(2)};
  llvm::append_range(shape, type.getShape().take_back(behind));
  return b.reshape(x, shape);
}

/// Whether each number of `like`, [x, rows, ..], is in a row of `expert`.
static Value isOf(Value expert, Value experts, Value like, HLOBuilder &b) {
  RankedTensorType type = b.typeOf(experts);
  Value same = b.compare(experts, b.broadcast(expert, type.getShape(), {}), "EQ", "SIGNED");
  return b.broadcast(same, b.typeOf(like).getShape(), {0, 1});
}

/// [x e, m, n] with room between for blocks: [x, e, m, n].
static SmallVector<int64_t> inBlocks(RankedTensorType matrices, int64_t blocks) {
  return {blocks, matrices.getDimSize(0) / blocks, matrices.getDimSize(1), matrices.getDimSize(2)};
}

static Results groupedLinear(train::GroupedLinearOp op, ValueRange operands, HLOBuilder &outer) {
  Value x = byBlock(operands[0], 1, outer), experts = byBlock(operands[2], 0, outer);
  RankedTensorType type = plain(op.getType());
  int64_t blocks = type.getDimSize(0), width = type.getDimSize(3);
  SmallVector<int64_t> shape = inBlocks(outer.typeOf(operands[1]), blocks);
  Value weight = outer.reshape(operands[1], shape);
  Value y = outer.splat(
      RankedTensorType::get({blocks, outer.typeOf(x).getDimSize(1), width}, type.getElementType()), 0);
  Results ends = outer.loop(shape[1], {y, x, weight, experts}, [&](Value i, ValueRange in, HLOBuilder &b) {
    Value zero = b.splat(b.typeOf(i), 0);
    Value matrix = b.reshape(b.dynamicSlice(in[2], {zero, i, zero, zero}, {blocks, 1, shape[2], shape[3]}),
                             {blocks, shape[2], shape[3]});
    Value product = b.dot(in[1], matrix, {0}, {0}, {2}, {op.getTransposed() ? 1 : 2},
                          train::atLeastF32(type.getElementType()));
    product = b.convert(product, type.getElementType());
    return Results{b.select(isOf(i, in[3], product, b), product, in[0]), in[1], in[2], in[3]};
  });
  return {outer.reshape(ends[0], type.getShape())};
}

static Results groupedLinearGrad(train::GroupedLinearGradOp op, ValueRange operands, HLOBuilder &outer) {
  Value dy = byBlock(operands[0], 1, outer), x = byBlock(operands[1], 1, outer),
        experts = byBlock(operands[2], 0, outer);
  RankedTensorType type = plain(op.getType());
  Type sums = train::atLeastF32(type.getElementType());
  int64_t blocks = outer.typeOf(dy).getDimSize(0);
  SmallVector<int64_t> shape = inBlocks(type, blocks);
  Value start = op.getInit() ? outer.reshape(operands[3], shape)
                             : outer.splat(RankedTensorType::get(shape, type.getElementType()), 0);
  Results ends = outer.loop(shape[1], {start, dy, x, experts}, [&](Value i, ValueRange in, HLOBuilder &b) {
    // Others' numbers are left out on both sides: zero times what is not finite would not be zero.
    auto own = [&](Value rows) {
      return b.select(isOf(i, in[3], rows, b), rows, b.splat(b.typeOf(rows), 0));
    };
    Value product = b.dot(own(in[1]), own(in[2]), {0}, {0}, {1}, {1}, sums);
    Value zero = b.splat(b.typeOf(i), 0);
    SmallVector<Value> at{zero, i, zero, zero};
    SmallVector<int64_t> one{blocks, 1, shape[2], shape[3]};
    Value before = b.convert(b.dynamicSlice(in[0], at, one), sums);
    Value after = b.convert(b.add(before, b.reshape(product, one)), type.getElementType());
    SmallVector<Value> update{in[0], after};
    llvm::append_range(update, at);
    return Results{b.op("dynamic_update_slice", in[0].getType(), update), in[1], in[2], in[3]};
  });
  return {outer.reshape(ends[0], type.getShape())};
}

FailureOr<Results> stablehlo::exportExperts(Operation *op, ValueRange x, HLOBuilder &b) {
  return llvm::TypeSwitch<Operation *, FailureOr<Results>>(op)
      .Case([&](train::RouteOp op) { return route(op, x, b); })
      .Case([&](train::RoundsOp op) { return rounds(op, x, b); })
      .Case([&](train::RowsOfRoundOp op) { return rowsOfRound(op, x, b); })
      .Case([&](train::GroupedLinearOp op) { return groupedLinear(op, x, b); })
      .Case([&](train::GroupedLinearGradOp op) { return groupedLinearGrad(op, x, b); })
      .Default([](Operation *) -> FailureOr<Results> { return failure(); });
}
