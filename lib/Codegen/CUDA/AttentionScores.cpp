//===- AttentionScores.cpp - what becomes of products in attention ----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CUDA/AttentionEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;
using namespace meshwright::codegen::cuda;

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

std::pair<Value, Value> AttentionEmitter::visibleKeys(const TileSizes &of) {
  Value low = constant(0), high = keyCount, query = aheadOfKeys(first);
  int64_t toLast = (of.rows - 1) * sizes.queryStride;
  if (sizes.causal)
    high = smaller(high, keysBefore(add(query, constant(toLast + 1))));
  if (sizes.window)
    low = larger(low, sub(query, constant(sizes.window - 1)));
  if (hasBegins())
    low = larger(low, beginOf(first));
  low = keysBefore(low);
  if (isTwoSided())
    high = smaller(high, keysBefore(add(query, constant(toLast + sizes.window))));
  if (shape.keyOffset)
    high = larger(high, constant(0));
  return {divide(low, of.columns), divide(add(high, constant(of.columns - 1)), of.columns)};
}

Values AttentionEmitter::hide(Values scores, double hidden, Value column, const TileSizes &of,
                              bool rowsAreKeys) {
  Value query = first, key = column, length = keyCount;
  int64_t queries = of.rows, keys = of.columns;
  int64_t toLastQuery = (queries - 1) * sizes.queryStride, toLastKey = (keys - 1) * sizes.keyStride;
  bool divides = !shape.keyOffset && !shape.lengths && sizes.keys % of.columns == 0;
  if (rowsAreKeys) {
    std::swap(query, key), std::swap(queries, keys);
    toLastQuery = (queries - 1) * sizes.queryStride, toLastKey = (keys - 1) * sizes.keyStride;
    length = constant(sizes.queries);
    divides = sizes.queries % of.columns == 0;
  }
  // Documents and chunks follow each other, so the last query's hides most.
  Value last = hasBegins() ? beginOf(add(query, constant(queries - 1))) : Value();
  query = aheadOfKeys(query), key = placeOf(key);
  // Most tiles hide nothing. Rows that are not there are not written, and need not be hidden; those of
  // keys behind the last of all are.
  Value some;
  if (!divides)
    some = less(length, add(column, constant(of.columns)));
  bool padded = rowsAreKeys && (shape.keyOffset || shape.lengths);
  if (padded)
    some = either(some, less(keyCount, add(first, constant(of.rows))));
  if (sizes.causal)
    some = either(some, less(query, add(key, constant(toLastKey))));
  if (sizes.window)
    some =
        either(some, less(add(key, constant(sizes.window - 1)), add(query, constant(toLastQuery))));
  if (isTwoSided())
    some = either(some, less(add(query, constant(sizes.window - 1)), add(key, constant(toLastKey))));

  if (hasBegins())
    some = either(some, less(key, last));

  return changed(some, scores, [&] {
    // How far the thread's first query is beyond its first key, and how many columns there are from
    // its first one on. Each score is a comparison of these with a constant, in 32 bits: positions
    // of each row, known before the walk, would take registers throughout it.
    Value ahead = aheadOf(column, rowsAreKeys);
    Value left = narrow(sub(length, add(column, tiles->columnOf(0)))), rowsLeft;
    if (padded)
      rowsLeft = narrow(sub(keyCount, add(first, tiles->rowOf(0))));
    // A window wider than there are queries, or behind them keys, hides nothing.
    int64_t window = std::min(sizes.window, sizes.globalQueries);
    int64_t behind = std::min(sizes.window, sizes.globalKeys);
    // Of each query how far the first key of its document or chunk is beyond the thread's first one.
    Values begins;
    if (hasBegins()) {
      Value query = rowsAreKeys ? column : first, key = rowsAreKeys ? first : column;
      int64_t count = rowsAreKeys ? tiles->columnCount() : tiles->rowCount();
      for (int64_t i = 0; i < count; ++i) {
        Value of = rowsAreKeys ? tiles->columnOf(i) : tiles->rowOf(i);
        Value begin = rowsAreKeys ? tiles->rowOf(0) : tiles->columnOf(0);
        begins.push_back(narrow(sub(beginOf(add(query, of)), placeOf(add(key, begin)))));
      }
    }
    Values shown(scores);
    for (auto [i, score] : llvm::enumerate(shown)) {
      int64_t c = tiles->columnOffset(i % tiles->columnCount());
      int64_t further =
          furtherOf(i, rowsAreKeys); // Its query is beyond its key by ahead + further.
      Value seen;
      if (!divides)
        seen = less(word(uint32_t(c)), left);
      if (padded)
        seen = both(seen, less(word(uint32_t(tiles->rowOffset(i / tiles->columnCount()))), rowsLeft));
      if (sizes.causal)
        seen = both(seen, less(word(uint32_t(-1 - further)), ahead));
      if (sizes.window)
        seen = both(seen, less(ahead, word(uint32_t(window - further))));
      if (isTwoSided())
        seen = both(seen, less(word(uint32_t(-behind - further)), ahead));
      if (hasBegins()) {
        int64_t row = i / tiles->columnCount(), column = i % tiles->columnCount();
        int64_t key = rowsAreKeys ? tiles->rowOffset(row) : tiles->columnOffset(column);
        seen = both(seen, less(begins[rowsAreKeys ? column : row],
                               word(uint32_t(key * sizes.keyStride + 1))));
      }
      score = select(seen, score, number(hidden));
    }
    return shown;
  });
}

/// The slope of a capped score is 1 - tanh^2.
Values AttentionEmitter::cap(MutableArrayRef<Value> products) {
  Values slopes;
  for (Value &product : products) {
    Value tangent =
        math::TanhOp::create(b, loc, mul(product, number(double(sizes.scale) / sizes.cap)));
    product = mul(tangent, number(sizes.cap));
    slopes.push_back(sub(number(1), mul(tangent, tangent)));
  }
  return slopes;
}

Value AttentionEmitter::positionOf(Value query) {
  query = times(query, sizes.queryStride);
  return queryOffset ? add(query, queryOffset) : query;
}

Value AttentionEmitter::aheadOfKeys(Value query) {
  query = times(query, sizes.queryStride);
  return shift ? add(query, shift) : query;
}

Value AttentionEmitter::placeOf(Value key) { return times(key, sizes.keyStride); }

Value AttentionEmitter::keysBefore(Value place) {
  if (sizes.keyStride == 1)
    return place;
  return divide(add(larger(place, constant(0)), constant(sizes.keyStride - 1)), sizes.keyStride);
}

Value AttentionEmitter::beginOf(Value query) {
  Type i32 = b.getI32Type();
  Value place = positionOf(query), begin = constant(0);
  if (shape.positions) {
    Value last = smaller(place, constant(sizes.globalKeys - 1));
    begin = sub(last, widen(loadOne(at(positions, i32, last), i32)));
  }
  if (sizes.chunk) {
    Value inDocument = sub(place, begin);
    Value chunks = mul(divide(inDocument, sizes.chunk), constant(sizes.chunk));
    begin = add(begin, chunks);
  }
  return keyOffset ? sub(begin, keyOffset) : begin;
}

Value AttentionEmitter::aheadOf(Value column, bool rowsAreKeys) {
  Value row = add(first, tiles->rowOf(0)), begin = add(column, tiles->columnOf(0));
  return narrow(rowsAreKeys ? sub(aheadOfKeys(begin), placeOf(row))
                            : sub(aheadOfKeys(row), placeOf(begin)));
}

int64_t AttentionEmitter::furtherOf(int64_t i, bool rowsAreKeys) const {
  int64_t r = tiles->rowOffset(i / tiles->columnCount());
  int64_t c = tiles->columnOffset(i % tiles->columnCount());
  return rowsAreKeys ? c * sizes.queryStride - r * sizes.keyStride
                     : r * sizes.queryStride - c * sizes.keyStride;
}

/// Forward, the largest product has the largest score unless the scale turns that around, or
/// something is added to it.
double AttentionEmitter::scoreFactor(bool forward) const {
  bool scores = sizes.cap || shape.slopes || shape.distances || (forward && (shape.sinks || sizes.scale <= 0));
  return scores ? 1 : double(sizes.scale);
}

void AttentionEmitter::scaleScores(MutableArrayRef<Value> products, const Operands &operands,
                                   Value head, Value column, bool rowsAreKeys) {
  if (!sizes.cap)
    for (Value &product : products)
      product = mul(product, number(sizes.scale));
  if (shape.distances)
    for (auto [i, score] : llvm::enumerate(products)) {
      // Rows that are not there belong to padding.
      Value row = add(widen(aheadOf(column, rowsAreKeys)), constant(furtherOf(i, rowsAreKeys)));
      row = sub(constant(sizes.globalQueries - 1), row);
      row = larger(constant(0), smaller(row, constant(sizes.distanceCount - 1)));
      Value place = add(mul(row, constant(sizes.heads)), head);
      score = add(score, loadOne(at(operands.distances, b.getF32Type(), place), b.getF32Type()));
    }
  if (!shape.slopes)
    return;
  Value slope = loadOne(at(operands.slopes, b.getF32Type(), head), b.getF32Type());
  Value behind = arith::SIToFPOp::create(b, loc, b.getF32Type(), aheadOf(column, rowsAreKeys));
  behind = arith::NegFOp::create(b, loc, behind);
  for (auto [i, score] : llvm::enumerate(products)) {
    Value distance = sub(behind, number(double(furtherOf(i, rowsAreKeys))));
    score = fma(slope, distance, score);
  }
}

Values AttentionEmitter::ofColumns(Value pointer, Value head, Value query, int64_t queries) {
  Type f32 = b.getF32Type();
  Value column = add(query, tiles->columnOf(0));
  Value base = at(pointer, f32, add(termsOf(batch, head), column));
  // Beyond the last query its number stands for those that are not there.
  Value last;
  if (sizes.queries % queries)
    last = narrow(sub(constant(sizes.queries - 1), column));
  Values values;
  for (int64_t c = 0; c < tiles->columnCount(); ++c) {
    Value offset = constant(tiles->columnOffset(c));
    if (last)
      offset = widen(smaller(narrow(offset), last));
    values.push_back(load(at(base, f32, offset), f32));
  }
  return values;
}

void AttentionEmitter::loadScalars(const Operands &operands) {
  Type i32 = b.getI32Type();
  if (shape.queryOffset)
    queryOffset = widen(loadOne(operands.queryOffset, i32));
  shift = queryOffset;
  keyCount = constant(sizes.keys);
  if (shape.keyOffset) {
    keyOffset = widen(loadOne(operands.keyOffset, i32));
    shift = sub(queryOffset ? queryOffset : constant(0), keyOffset);
    keyCount = smaller(keyCount, keysBefore(sub(constant(sizes.globalKeys), keyOffset)));
  }
  if (shape.lengths)
    keyCount = smaller(keyCount, widen(loadOne(at(operands.lengths, i32, batch), i32)));
  if (shape.positions)
    positions = at(operands.positions, i32, mul(batch, constant(sizes.globalKeys)));
  if (!shape.dropout)
    return;
  key0 = loadOne(operands.key, i32);
  key1 = loadOne(at(operands.key, i32, constant(1)), i32);
  Value id = loadOne(at(operands.ids, i32, batch), i32);
  firstHead = mul(widen(id), constant(sizes.globalHeads));
  if (shape.headOffset)
    firstHead = add(firstHead, widen(loadOne(operands.headOffset, i32)));
}

Value AttentionEmitter::weightRow(Value head, Value query) {
  if (!shape.dropout)
    return {};
  Value row = add(mul(add(firstHead, head), constant(sizes.globalQueries)), positionOf(query));
  row = mul(row, constant(sizes.globalKeys));
  return keyOffset ? add(row, keyOffset) : row;
}

/// Philox4x32-10's first word (Philox.h) against the threshold.
Value AttentionEmitter::keeps(Value rowIndex, Value key) {
  Value index = add(rowIndex, placeOf(key));
  auto wide = [&](Value x, uint32_t y) {
    auto product = arith::MulUIExtendedOp::create(b, loc, x, word(y));
    return std::pair<Value, Value>(product.getLow(), product.getHigh());
  };
  auto mix = [&](Value x, Value y, Value z) -> Value {
    return arith::XOrIOp::create(b, loc, arith::XOrIOp::create(b, loc, x, y), z);
  };
  Value c0 = narrow(index), c1 = narrow(arith::ShRUIOp::create(b, loc, index, constant(32)));
  Value c2 = word(uint32_t(sizes.stream)), c3 = word(0), k0 = key0, k1 = key1;
  for (int round = 0; round < 10; ++round) {
    auto [low0, high0] = wide(c0, 0xD2511F53u);
    auto [low1, high1] = wide(c2, 0xCD9E8D57u);
    c0 = mix(high1, c1, k0);
    c1 = low1;
    c2 = mix(high0, c3, k1);
    c3 = low0;
    k0 = add(k0, word(0x9E3779B9u));
    k1 = add(k1, word(0xBB67AE85u));
  }
  Value threshold = word(uint32_t(double(sizes.dropout) * 4294967296.0));
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, c0, threshold);
}

Value AttentionEmitter::quotient(Value x, Value y) {
  return arith::ExtUIOp::create(b, loc, b.getI64Type(),
                                arith::DivUIOp::create(b, loc, narrow(x), narrow(y)));
}
