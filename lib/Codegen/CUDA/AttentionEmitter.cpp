//===- AttentionEmitter.cpp - one kernel of attention -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CUDA/AttentionEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen::cuda;

/// Numbers that a thread keeps at most, so that none are spilled.
static constexpr int64_t mostNumbers = 112;

std::optional<TileSizes> AttentionEmitter::tilesFor(int64_t sums, int64_t scores,
                                                    int64_t rowTiles) const {
  for (auto [rows, columns] :
       {std::pair<int64_t, int64_t>{4, 4}, {2, 4}, {4, 2}, {2, 2}, {1, 4}, {1, 2}}) {
    Tile ofRows{rows * rowThreads, depth}, ofColumns{columns * columnThreads, depth},
        weights{ofRows.rows, ofColumns.rows};
    int64_t numbers = sums * rows * piecesOf(depth) * width + scores * rows * columns;
    if (numbers <= mostNumbers &&
        rowTiles * ofRows.bytes() + 2 * ofColumns.bytes() + weights.bytes() <= mostShared)
      return TileSizes{ofRows.rows, ofColumns.rows};
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

AttentionEmitter::Operands AttentionEmitter::forwardOperands() {
  Operands o;
  unsigned next = 0;
  auto take = [&](Value &operand) { operand = function.getArgument(next++); };
  take(o.q), take(o.k), take(o.v);
  if (shape.dropout)
    take(o.ids), take(o.key);
  if (shape.headBegin)
    take(o.headBegin);
  take(o.out), take(o.lse);
  return o;
}

AttentionEmitter::Operands AttentionEmitter::gradientOperands() {
  Operands o;
  unsigned next = 0;
  auto take = [&](Value &operand) { operand = function.getArgument(next++); };
  take(o.dout), take(o.q), take(o.k), take(o.v), take(o.out), take(o.lse);
  if (shape.dropout)
    take(o.ids), take(o.key);
  if (shape.headBegin)
    take(o.headBegin);
  take(o.dq), take(o.dk), take(o.dv), take(o.delta);
  return o;
}

AttentionEmitter::Rows AttentionEmitter::queries(Value pointer, Value batch, Value head,
                                                 Value first) {
  int64_t stride = sizes.heads * sizes.headDim;
  Value row = add(mul(batch, constant(sizes.queries)), first);
  Value place = add(mul(row, constant(stride)), mul(head, constant(sizes.headDim)));
  return {at(pointer, shape.element, place), shape.element, stride, sizes.headDim, shape.aligned,
          first, sizes.queries};
}

AttentionEmitter::Rows AttentionEmitter::keys(Value pointer, Value batch, Value kvHead,
                                              Value first) {
  int64_t stride = sizes.kvHeads * sizes.headDim;
  Value row = add(mul(batch, constant(sizes.keys)), first);
  Value place = add(mul(row, constant(stride)), mul(kvHead, constant(sizes.headDim)));
  return {at(pointer, shape.element, place), shape.element, stride, sizes.headDim, shape.aligned,
          first, sizes.keys};
}

Value AttentionEmitter::termsOf(Value batch, Value head) {
  return mul(add(mul(batch, constant(sizes.heads)), head), constant(sizes.queries));
}

void AttentionEmitter::decomposeBlock(int64_t tiles, int64_t heads) {
  Value index = divide(block, tiles);
  first = remainder(block, tiles);
  head = remainder(index, heads);
  batch = divide(index, heads);
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

std::pair<Value, Value> AttentionEmitter::visibleKeys(const TileSizes &tiles) {
  Value low = constant(0), high = constant(sizes.keys);
  if (sizes.causal)
    high = smaller(high, add(first, constant(tiles.rows)));
  if (sizes.window)
    low = larger(low, sub(first, constant(sizes.window - 1)));
  return {divide(low, tiles.columns), divide(add(high, constant(tiles.columns - 1)), tiles.columns)};
}

Value AttentionEmitter::visible(Value query, Value key) {
  Value seen = less(key, constant(sizes.keys));
  if (sizes.causal)
    seen = both(seen, less(key, add(query, constant(1))));
  if (sizes.window)
    seen = both(seen, less(query, add(key, constant(sizes.window))));
  return seen;
}

void AttentionEmitter::startDropout(const Operands &operands) {
  if (!shape.dropout)
    return;
  Type i32 = b.getI32Type(), i64 = b.getI64Type();
  key0 = loadOne(operands.key, i32);
  key1 = loadOne(at(operands.key, i32, constant(1)), i32);
  Value id = loadOne(at(operands.ids, i32, batch), i32);
  firstHead = mul(arith::ExtSIOp::create(b, loc, i64, id), constant(sizes.globalHeads));
  if (shape.headBegin)
    firstHead =
        add(firstHead, arith::ExtSIOp::create(b, loc, i64, loadOne(operands.headBegin, i32)));
}

Value AttentionEmitter::weightRow(Value head, Value query) {
  if (!shape.dropout)
    return {};
  Value row = add(mul(add(firstHead, head), constant(sizes.queries)), query);
  return mul(row, constant(sizes.keys));
}

/// Philox4x32-10's first word (Philox.h) against the threshold.
Value AttentionEmitter::keeps(Value rowIndex, Value key) {
  Value index = add(rowIndex, key);
  auto low = [&](Value x) -> Value { return arith::TruncIOp::create(b, loc, b.getI32Type(), x); };
  auto wide = [&](Value x, uint32_t y) {
    auto product = arith::MulUIExtendedOp::create(b, loc, x, word(y));
    return std::pair<Value, Value>(product.getLow(), product.getHigh());
  };
  auto mix = [&](Value x, Value y, Value z) -> Value {
    return arith::XOrIOp::create(b, loc, arith::XOrIOp::create(b, loc, x, y), z);
  };
  Value c0 = low(index), c1 = low(arith::ShRUIOp::create(b, loc, index, constant(32)));
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

Value AttentionEmitter::exponential(Value x) { return math::ExpOp::create(b, loc, x); }

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

static constexpr double infinity = std::numeric_limits<double>::infinity();

void AttentionEmitter::emitForward(StringRef name) {
  TileSizes tiles = *tilesFor(1, 1, 1);
  int64_t rows = tiles.rows / rowThreads, columns = tiles.columns / columnThreads;
  int64_t count = llvm::divideCeil(sizes.queries, tiles.rows);
  begin(name, 5 + optional(), sizes.batch * sizes.heads * count);
  Operands operands = forwardOperands();
  decomposeBlock(count, sizes.heads);
  first = mul(first, constant(tiles.rows));
  Value kvHead = divide(head, sizes.heads / sizes.kvHeads);
  startDropout(operands);

  Tile q{tiles.rows, depth}, k{tiles.columns, depth}, v{tiles.columns, depth};
  Tile weights{tiles.rows, tiles.columns};
  for (Tile *tile : {&q, &k, &v, &weights})
    place(*tile);
  load(q, queries(operands.q, batch, head, first));

  // Of each row the largest score, this thread's part of the sum, and the sums of values.
  int64_t pieces = piecesOf(depth);
  Values start(rows, number(-infinity));
  start.append(rows, number(0));
  start.append(rows * pieces, splat(number(0)));
  auto [low, high] = visibleKeys(tiles);
  Values ends = loop(low, high, start, [&](Value step, ValueRange in) {
    Value key = mul(step, constant(tiles.columns));
    barrier(); // Nobody reads the last tiles any more.
    load(k, keys(operands.k, batch, kvHead, key));
    load(v, keys(operands.v, batch, kvHead, key));
    barrier();
    Values scores = product(q, k), next(in);
    for (int64_t r = 0; r < rows; ++r) {
      Value query = add(first, rowOf(r)), largest = in[r];
      for (int64_t c = 0; c < columns; ++c) {
        Value &score = scores[r * columns + c];
        score = select(visible(query, add(key, columnOf(c))), mul(score, number(sizes.scale)),
                       number(-infinity));
        largest = larger(largest, score);
      }
      largest = rowMax(largest);
      // A row that has seen nothing yet stays at 0.
      Value shift = select(equal(largest, number(-infinity)), number(0), largest);
      Value shrink = exponential(sub(in[r], shift)), sum = mul(in[rows + r], shrink);
      Value index = weightRow(head, query);
      for (int64_t c = 0; c < columns; ++c) {
        Value &weight = scores[r * columns + c];
        weight = exponential(sub(weight, shift));
        sum = add(sum, weight);
        if (shape.dropout)
          weight = select(keeps(index, add(key, columnOf(c))), weight, number(0));
      }
      next[r] = largest;
      next[rows + r] = sum;
      for (int64_t p = 0; p < pieces; ++p) {
        Value &value = next[2 * rows + r * pieces + p];
        value = mul(value, splat(shrink));
      }
    }
    warpBarrier(); // The row's threads have read its last weights.
    store(weights, scores);
    warpBarrier();
    Values values = accumulate(weights, v, ValueRange(next).drop_front(2 * rows));
    llvm::copy(values, next.begin() + 2 * rows);
    return next;
  });

  Values factors;
  for (int64_t r = 0; r < rows; ++r) {
    Value sum = rowSum(ends[rows + r]), empty = equal(sum, number(0));
    Value kept = number(shape.dropout ? 1.0f / (1.0f - sizes.dropout) : 1.0f);
    Value inverse = arith::DivFOp::create(b, loc, kept, select(empty, number(1), sum));
    factors.push_back(inverse);
    Value shift = select(empty, number(0), ends[r]);
    Value lse = add(shift, math::LogOp::create(b, loc, select(empty, number(1), sum)));
    lse = select(empty, number(-infinity), lse);
    Value query = add(first, rowOf(r));
    guarded(both(equal(columnThread, constant(0)), less(query, constant(sizes.queries))), [&] {
      LLVM::StoreOp::create(b, loc, lse,
                            at(operands.lse, b.getF32Type(), add(termsOf(batch, head), query)), 4);
    });
  }
  write(queries(operands.out, batch, head, first), ValueRange(ends).drop_front(2 * rows), factors);
  end();
}

void AttentionEmitter::emitQueryGradient(StringRef name) {
  TileSizes tiles = *tilesFor(1, 2, 2);
  int64_t rows = tiles.rows / rowThreads, columns = tiles.columns / columnThreads;
  int64_t count = llvm::divideCeil(sizes.queries, tiles.rows), pieces = piecesOf(depth);
  begin(name, 10 + optional(), sizes.batch * sizes.heads * count);
  Operands operands = gradientOperands();
  decomposeBlock(count, sizes.heads);
  first = mul(first, constant(tiles.rows));
  Value kvHead = divide(head, sizes.heads / sizes.kvHeads);
  startDropout(operands);

  Tile q{tiles.rows, depth}, dout{tiles.rows, depth}, k{tiles.columns, depth},
      v{tiles.columns, depth}, slopes{tiles.rows, tiles.columns};
  for (Tile *tile : {&q, &dout, &k, &v, &slopes})
    place(*tile);
  load(q, queries(operands.q, batch, head, first));
  load(dout, queries(operands.dout, batch, head, first));
  barrier();

  // delta = sum(dout * out) of each row, for the kernel of keys too.
  Values lses, deltas;
  Rows out = queries(operands.out, batch, head, first);
  for (int64_t r = 0; r < rows; ++r) {
    Value query = add(first, rowOf(r)), exists = less(query, constant(sizes.queries));
    Value sum = number(0);
    for (int64_t p = 0; p < pieces; ++p) {
      Value x = loadShared(dout, rowOf(r), pieceOf(p)), y = loadPiece(out, rowOf(r), pieceOf(p));
      for (int64_t i = 0; i < width; ++i)
        sum = fma(element(x, i), element(y, i), sum);
    }
    deltas.push_back(rowSum(sum));
    Value place = add(termsOf(batch, head), query);
    lses.push_back(loadOne(at(operands.lse, b.getF32Type(), place), b.getF32Type(), exists));
    guarded(both(equal(columnThread, constant(0)), exists), [&] {
      LLVM::StoreOp::create(b, loc, deltas.back(), at(operands.delta, b.getF32Type(), place), 4);
    });
  }

  Values start(rows * pieces, splat(number(0)));
  auto [low, high] = visibleKeys(tiles);
  Values sums = loop(low, high, start, [&](Value step, ValueRange in) {
    Value key = mul(step, constant(tiles.columns));
    barrier();
    load(k, keys(operands.k, batch, kvHead, key));
    load(v, keys(operands.v, batch, kvHead, key));
    barrier();
    Values scores = product(q, k), gradients = product(dout, v);
    for (int64_t r = 0; r < rows; ++r) {
      Value query = add(first, rowOf(r)), index = weightRow(head, query);
      for (int64_t c = 0; c < columns; ++c) {
        Value &slope = scores[r * columns + c], gradient = gradients[r * columns + c];
        Value column = add(key, columnOf(c));
        Value weight = exponential(sub(mul(slope, number(sizes.scale)), lses[r]));
        weight = select(visible(query, column), weight, number(0));
        if (shape.dropout)
          gradient = select(keeps(index, column),
                            mul(gradient, number(1.0f / (1.0f - sizes.dropout))), number(0));
        slope = mul(weight, sub(gradient, deltas[r]));
      }
    }
    warpBarrier();
    store(slopes, scores);
    warpBarrier();
    return accumulate(slopes, k, in);
  });
  write(queries(operands.dq, batch, head, first), sums, Values(rows, number(sizes.scale)));
  end();
}

void AttentionEmitter::emitKeyGradients(StringRef name) {
  TileSizes tiles = *tilesFor(2, 2, 2);
  int64_t rows = tiles.rows / rowThreads, columns = tiles.columns / columnThreads;
  int64_t count = llvm::divideCeil(sizes.keys, tiles.rows), pieces = piecesOf(depth);
  begin(name, 10 + optional(), sizes.batch * sizes.kvHeads * count);
  Operands operands = gradientOperands();
  decomposeBlock(count, sizes.kvHeads);
  first = mul(first, constant(tiles.rows));
  startDropout(operands);
  Value kvHead = head;
  int64_t groupHeads = sizes.heads / sizes.kvHeads;

  // Keys are rows here, so that their gradients are sums of rows.
  Tile k{tiles.rows, depth}, v{tiles.rows, depth}, q{tiles.columns, depth},
      dout{tiles.columns, depth}, weights{tiles.rows, tiles.columns};
  for (Tile *tile : {&k, &v, &q, &dout, &weights})
    place(*tile);
  load(k, keys(operands.k, batch, kvHead, first));
  load(v, keys(operands.v, batch, kvHead, first));

  // The queries that see any of the keys, for one head after the other.
  Value low = sizes.causal ? divide(first, tiles.columns) : constant(0);
  Value high = constant(sizes.queries);
  if (sizes.window)
    high = smaller(high, add(first, constant(tiles.rows - 1 + sizes.window)));
  high = divide(add(high, constant(tiles.columns - 1)), tiles.columns);

  Values start(2 * rows * pieces, splat(number(0)));
  Values ends = loop(constant(0), constant(groupHeads), start, [&](Value member, ValueRange outer) {
    head = add(mul(kvHead, constant(groupHeads)), member);
    return loop(low, high, outer, [&](Value step, ValueRange in) {
      Value query = mul(step, constant(tiles.columns)), terms = termsOf(batch, head);
      barrier();
      load(q, queries(operands.q, batch, head, query));
      load(dout, queries(operands.dout, batch, head, query));
      barrier();
      Values scores = product(k, q), gradients = product(v, dout);
      for (int64_t c = 0; c < columns; ++c) {
        Value column = add(query, columnOf(c)), exists = less(column, constant(sizes.queries));
        Value place = add(terms, column), index = weightRow(head, column);
        Value lse = loadOne(at(operands.lse, b.getF32Type(), place), b.getF32Type(), exists);
        Value delta = loadOne(at(operands.delta, b.getF32Type(), place), b.getF32Type(), exists);
        for (int64_t r = 0; r < rows; ++r) {
          Value &score = scores[r * columns + c], &gradient = gradients[r * columns + c];
          Value key = add(first, rowOf(r));
          Value weight = exponential(sub(mul(score, number(sizes.scale)), lse));
          weight = select(both(exists, visible(column, key)), weight, number(0));
          score = weight;
          if (shape.dropout) {
            Value keep = keeps(index, key);
            score = select(keep, weight, number(0));
            gradient = select(keep, mul(gradient, number(1.0f / (1.0f - sizes.dropout))), number(0));
          }
          gradient = mul(weight, sub(gradient, delta));
        }
      }
      warpBarrier();
      store(weights, scores);
      warpBarrier();
      Values next = accumulate(weights, dout, in.take_front(rows * pieces));
      warpBarrier();
      store(weights, gradients);
      warpBarrier();
      next.append(accumulate(weights, q, in.drop_front(rows * pieces)));
      return next;
    });
  });
  double kept = shape.dropout ? 1.0f / (1.0f - sizes.dropout) : 1.0f;
  write(keys(operands.dv, batch, kvHead, first), ValueRange(ends).take_front(rows * pieces),
        Values(rows, number(kept)));
  write(keys(operands.dk, batch, kvHead, first), ValueRange(ends).drop_front(rows * pieces),
        Values(rows, number(sizes.scale)));
  end();
}
