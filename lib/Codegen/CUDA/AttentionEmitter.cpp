//===- AttentionEmitter.cpp - one kernel of attention -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CUDA/AttentionEmitter.h"
#include "Codegen/CUDA/Attentions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <limits>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;
using namespace meshwright::codegen::cuda;

AttentionEmitter::AttentionEmitter(gpu::GPUModuleOp module, Location loc,
                                   const AttentionShape &shape)
    : BlockEmitter(module, loc), shape(shape), sizes(this->shape.sizes),
      tiles(fitsTensorCores(sizes, shape.aligned) ? createMmaTiles(*this, sizes.headDim, shape.element)
                                   : createFmaTiles(*this, sizes.headDim)) {}

// What the kernels have at a time.
static TileNeeds forwardNeeds(const MwAttention &sizes) { return {sizes.queries, 1, 1, 1, 0}; }
static TileNeeds queryNeeds(const MwAttention &sizes) { return {sizes.queries, 1, 2, 2, 0}; }
static TileNeeds bothNeeds(const MwAttention &sizes) { return {sizes.keys, 2, 2, 2, 1}; }
static TileNeeds keyNeeds(const MwAttention &sizes) { return {sizes.keys, 1, 2, 2, 1}; }
static TileNeeds valueNeeds(const MwAttention &sizes) { return {sizes.keys, 1, 1, 1, 1}; }

bool AttentionEmitter::fits() const {
  return llvm::all_of(ArrayRef<TileNeeds>{forwardNeeds(sizes), queryNeeds(sizes), keyNeeds(sizes),
                                          valueNeeds(sizes)},
                      [&](const TileNeeds &needs) { return tiles->sizesFor(needs).has_value(); });
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
  if (shape.headOffset)
    take(o.headOffset);
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
  if (shape.headOffset)
    take(o.headOffset);
  take(o.dq), take(o.dk), take(o.dv), take(o.delta);
  return o;
}

Rows AttentionEmitter::queries(Value pointer, Value batch, Value head,
                                                 Value first) {
  int64_t stride = sizes.heads * sizes.headDim;
  Value row = add(mul(batch, constant(sizes.queries)), first);
  Value offset = add(mul(row, constant(stride)), mul(head, constant(sizes.headDim)));
  return {at(pointer, shape.element, offset),
          shape.element,
          stride,
          sizes.headDim,
          shape.aligned,
          first,
          sizes.queries};
}

Rows AttentionEmitter::keys(Value pointer, Value batch, Value kvHead,
                                              Value first) {
  int64_t stride = sizes.kvHeads * sizes.headDim;
  Value row = add(mul(batch, constant(sizes.keys)), first);
  Value offset = add(mul(row, constant(stride)), mul(kvHead, constant(sizes.headDim)));
  return {at(pointer, shape.element, offset),
          shape.element,
          stride,
          sizes.headDim,
          shape.aligned,
          first,
          sizes.keys};
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

void AttentionEmitter::beginQueries(int64_t count, int64_t rows) {
  // The last ones see most keys; begun first, they do not end alone.
  if (sizes.causal)
    first = sub(constant(count - 1), first);
  first = mul(first, constant(rows));
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

std::pair<Value, Value> AttentionEmitter::visibleKeys(const TileSizes &of) {
  Value low = constant(0), high = constant(sizes.keys);
  if (sizes.causal)
    high = smaller(high, add(first, constant(of.rows)));
  if (sizes.window)
    low = larger(low, sub(first, constant(sizes.window - 1)));
  return {divide(low, of.columns), divide(add(high, constant(of.columns - 1)), of.columns)};
}

Values AttentionEmitter::hide(Values scores, double hidden, Value column, const TileSizes &of,
                              bool rowsAreKeys) {
  Value query = first, key = column;
  int64_t queries = of.rows, keys = of.columns, length = sizes.keys;
  if (rowsAreKeys) {
    std::swap(query, key), std::swap(queries, keys);
    length = sizes.queries;
  }
  // Most tiles hide nothing. Rows that are not there are not written, and need not be hidden.
  Value some;
  bool divides = length % of.columns == 0;
  if (!divides)
    some = less(constant(length), add(column, constant(of.columns)));
  if (sizes.causal)
    some = either(some, less(query, add(key, constant(keys - 1))));
  if (sizes.window)
    some = either(some, less(add(key, constant(sizes.window - 1)), add(query, constant(queries - 1))));

  return changed(some, scores, [&] {
    // How far the thread's first query is beyond its first key, and how many columns there are from
    // its first one on. Each score is a comparison of these with a constant, in 32 bits: positions of
    // each row, known before the walk, would take registers throughout it.
    Value row = add(first, tiles->rowOf(0)), begin = add(column, tiles->columnOf(0));
    Value ahead = narrow(rowsAreKeys ? sub(begin, row) : sub(row, begin));
    Value left = narrow(sub(constant(length), begin));
    // A window wider than there are queries hides nothing.
    int64_t window = std::min(sizes.window, sizes.queries);
    Values shown(scores);
    for (auto [i, score] : llvm::enumerate(shown)) {
      int64_t r = tiles->rowOffset(i / tiles->columnCount());
      int64_t c = tiles->columnOffset(i % tiles->columnCount());
      int64_t further = rowsAreKeys ? c - r : r - c; // Its query is beyond its key by ahead + further.
      Value seen;
      if (!divides)
        seen = less(word(uint32_t(c)), left);
      if (sizes.causal)
        seen = both(seen, less(word(uint32_t(-1 - further)), ahead));
      if (sizes.window)
        seen = both(seen, less(ahead, word(uint32_t(window - further))));
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

void AttentionEmitter::startDropout(const Operands &operands) {
  if (!shape.dropout)
    return;
  Type i32 = b.getI32Type();
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
  Value row = add(mul(add(firstHead, head), constant(sizes.queries)), query);
  return mul(row, constant(sizes.keys));
}

/// Philox4x32-10's first word (Philox.h) against the threshold.
Value AttentionEmitter::keeps(Value rowIndex, Value key) {
  Value index = add(rowIndex, key);
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

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

static constexpr double infinity = std::numeric_limits<double>::infinity();

std::vector<std::string> AttentionEmitter::emitForward(const std::string &name) {
  TileSizes of = *tiles->sizesFor(forwardNeeds(sizes));
  int64_t count = llvm::divideCeil(sizes.queries, of.rows);
  begin(name, 5 + optional(), sizes.batch * sizes.heads * count);
  Operands operands = forwardOperands();
  decomposeBlock(count, sizes.heads);
  beginQueries(count, of.rows);
  Value kvHead = divide(head, sizes.heads / sizes.kvHeads);
  startDropout(operands);

  tiles->start(of, forwardNeeds(sizes));
  Tile &q = tiles->allocate(/*walked=*/false), &k = tiles->allocate(/*walked=*/true),
       &v = tiles->allocate(/*walked=*/true);
  tiles->load(q, queries(operands.q, batch, head, first));

  // Products are scaled with the exponent, for the largest product has the largest score,
  // unless the scale turns that around.
  bool rising = sizes.scale > 0 || sizes.cap;
  double factor = rising && !sizes.cap ? sizes.scale : 1;

  // Of each row the largest score, this thread's part of the sum, and the sums of values.
  int64_t rows = tiles->rowCount(), columns = tiles->columnCount();
  Values start(rows, number(-infinity));
  start.append(rows, number(0));
  start.append(tiles->zeros());
  auto [low, high] = visibleKeys(of);
  auto fetch = [&](Value step) {
    Value key = mul(step, constant(of.columns));
    tiles->load(k, keys(operands.k, batch, kvHead, key));
    tiles->load(v, keys(operands.v, batch, kvHead, key));
  };
  Values ends = tiles->walk(low, high, start, fetch, [&](Value step, ValueRange in) {
    Value key = mul(step, constant(of.columns));
    Values scores = tiles->product(q, k);
    if (sizes.cap)
      cap(scores);
    if (!rising)
      for (Value &score : scores)
        score = mul(score, number(sizes.scale));
    scores = hide(scores, -infinity, key, of, /*rowsAreKeys=*/false);
    Values next(in), shrinks;
    for (int64_t r = 0; r < rows; ++r) {
      Value largest = in[r];
      for (int64_t c = 0; c < columns; ++c)
        largest = larger(largest, scores[r * columns + c]);
      largest = tiles->rowMax(largest);
      // A row that has seen nothing yet stays at 0.
      Value shift = select(equal(largest, number(-infinity)), number(0),
                           mul(largest, number(factor)));
      Value shrink = tiles->exponential(in[r], factor, shift), sum = mul(in[rows + r], shrink);
      Value index = weightRow(head, add(first, tiles->rowOf(r)));
      for (int64_t c = 0; c < columns; ++c) {
        Value &weight = scores[r * columns + c];
        weight = tiles->exponential(weight, factor, shift);
        sum = add(sum, weight);
        if (shape.dropout)
          weight = select(keeps(index, add(key, tiles->columnOf(c))), weight, number(0));
      }
      next[r] = largest;
      next[rows + r] = sum;
      shrinks.push_back(shrink);
    }
    MutableArrayRef<Value> values = MutableArrayRef<Value>(next).drop_front(2 * rows);
    tiles->scale(values, shrinks);
    llvm::copy(tiles->accumulate(scores, v, values), values.begin());
    return next;
  });

  Values factors;
  for (int64_t r = 0; r < rows; ++r) {
    Value sum = tiles->rowSum(ends[rows + r]), empty = equal(sum, number(0));
    Value kept = number(shape.dropout ? 1.0f / (1.0f - sizes.dropout) : 1.0f);
    Value inverse = arith::DivFOp::create(b, loc, kept, select(empty, number(1), sum));
    factors.push_back(inverse);
    Value shift = select(empty, number(0), mul(ends[r], number(factor)));
    Value lse = add(shift, math::LogOp::create(b, loc, select(empty, number(1), sum)));
    lse = select(empty, number(-infinity), lse);
    Value query = add(first, tiles->rowOf(r));
    guarded(both(tiles->isFirst(), less(query, constant(sizes.queries))), [&] {
      store(lse, at(operands.lse, b.getF32Type(), add(termsOf(batch, head), query)));
    });
  }
  tiles->write(queries(operands.out, batch, head, first), ValueRange(ends).drop_front(2 * rows),
               factors);
  end();
  return {name};
}

std::vector<std::string> AttentionEmitter::emitBackward(const std::string &name) {
  emitQueryGradient(name);
  if (tiles->sizesFor(bothNeeds(sizes))) {
    emitKeyGradients(name + "$keys", bothNeeds(sizes), /*ofKeys=*/true, /*ofValues=*/true);
    return {name, name + "$keys"};
  }
  // Sums of two tensors are too many for a thread.
  emitKeyGradients(name + "$keys", keyNeeds(sizes), /*ofKeys=*/true, /*ofValues=*/false);
  emitKeyGradients(name + "$values", valueNeeds(sizes), /*ofKeys=*/false, /*ofValues=*/true);
  return {name, name + "$keys", name + "$values"};
}

void AttentionEmitter::emitQueryGradient(const std::string &name) {
  TileSizes of = *tiles->sizesFor(queryNeeds(sizes));
  int64_t count = llvm::divideCeil(sizes.queries, of.rows);
  begin(name, 10 + optional(), sizes.batch * sizes.heads * count);
  Operands operands = gradientOperands();
  decomposeBlock(count, sizes.heads);
  beginQueries(count, of.rows);
  Value kvHead = divide(head, sizes.heads / sizes.kvHeads);
  startDropout(operands);

  tiles->start(of, queryNeeds(sizes));
  Tile &q = tiles->allocate(/*walked=*/false), &dout = tiles->allocate(/*walked=*/false),
       &k = tiles->allocate(/*walked=*/true), &v = tiles->allocate(/*walked=*/true);
  tiles->load(q, queries(operands.q, batch, head, first));
  tiles->load(dout, queries(operands.dout, batch, head, first));
  tiles->settle();

  // delta = sum(dout * out) of each row, for the kernel of keys too.
  int64_t rows = tiles->rowCount(), columns = tiles->columnCount();
  Values lses, deltas = tiles->dot(dout, queries(operands.out, batch, head, first));
  for (int64_t r = 0; r < rows; ++r) {
    Value query = add(first, tiles->rowOf(r)), exists = less(query, constant(sizes.queries));
    Value offset = add(termsOf(batch, head), query);
    lses.push_back(loadOne(at(operands.lse, b.getF32Type(), offset), b.getF32Type(), exists));
    guarded(both(tiles->isFirst(), exists),
            [&] { store(deltas[r], at(operands.delta, b.getF32Type(), offset)); });
  }

  double factor = sizes.cap ? 1 : sizes.scale;
  auto [low, high] = visibleKeys(of);
  auto fetch = [&](Value step) {
    Value key = mul(step, constant(of.columns));
    tiles->load(k, keys(operands.k, batch, kvHead, key));
    tiles->load(v, keys(operands.v, batch, kvHead, key));
  };
  Values sums = tiles->walk(low, high, tiles->zeros(), fetch, [&](Value step, ValueRange in) {
    Value key = mul(step, constant(of.columns));
    Values slopes = tiles->product(q, k), gradients = tiles->product(dout, v), bends;
    if (sizes.cap)
      bends = cap(slopes);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c) {
        Value &weight = slopes[r * columns + c];
        weight = tiles->exponential(weight, factor, lses[r]);
      }
    slopes = hide(slopes, 0, key, of, /*rowsAreKeys=*/false);
    for (int64_t r = 0; r < rows; ++r) {
      Value index = weightRow(head, add(first, tiles->rowOf(r)));
      for (int64_t c = 0; c < columns; ++c) {
        Value &slope = slopes[r * columns + c], gradient = gradients[r * columns + c];
        if (shape.dropout)
          gradient = select(keeps(index, add(key, tiles->columnOf(c))),
                            mul(gradient, number(1.0f / (1.0f - sizes.dropout))), number(0));
        slope = mul(slope, sub(gradient, deltas[r]));
        if (sizes.cap)
          slope = mul(slope, bends[r * columns + c]);
      }
    }
    return tiles->accumulate(slopes, k, in);
  });
  tiles->write(queries(operands.dq, batch, head, first), sums, Values(rows, number(sizes.scale)));
  end();
}

void AttentionEmitter::emitKeyGradients(const std::string &name, const TileNeeds &needs,
                                        bool ofKeys, bool ofValues) {
  TileSizes of = *tiles->sizesFor(needs);
  int64_t count = llvm::divideCeil(sizes.keys, of.rows);
  begin(name, 10 + optional(), sizes.batch * sizes.kvHeads * count);
  Operands operands = gradientOperands();
  decomposeBlock(count, sizes.kvHeads);
  first = mul(first, constant(of.rows));
  startDropout(operands);
  Value kvHead = head;
  int64_t groupHeads = sizes.heads / sizes.kvHeads;

  // Keys are rows here, so that their gradients are sums of rows.
  tiles->start(of, needs);
  Tile &k = tiles->allocate(/*walked=*/false), &q = tiles->allocate(/*walked=*/true),
       &dout = tiles->allocate(/*walked=*/true);
  tiles->load(k, keys(operands.k, batch, kvHead, first));
  Tile *v = nullptr; // Weights alone make the gradient of values.
  if (ofKeys) {
    v = &tiles->allocate(/*walked=*/false);
    tiles->load(*v, keys(operands.v, batch, kvHead, first));
  }

  // The queries that see any of the keys, for one head after the other.
  Value low = sizes.causal ? divide(first, of.columns) : constant(0);
  Value high = constant(sizes.queries);
  if (sizes.window)
    high = smaller(high, add(first, constant(of.rows - 1 + sizes.window)));
  high = divide(add(high, constant(of.columns - 1)), of.columns);
  Value turns = larger(sub(high, low), constant(0));
  /// The head of a turn and its first query.
  auto turn = [&](Value step) {
    if (groupHeads == 1)
      return std::pair(kvHead, mul(add(low, step), constant(of.columns)));
    Value member = quotient(step, turns), tile = add(low, sub(step, mul(member, turns)));
    return std::pair(add(mul(kvHead, constant(groupHeads)), member),
                     mul(tile, constant(of.columns)));
  };

  int64_t rows = tiles->rowCount(), columns = tiles->columnCount();
  double factor = sizes.cap ? 1 : sizes.scale;
  Values start = tiles->zeros();
  size_t half = start.size();
  if (ofKeys && ofValues)
    start.append(tiles->zeros());
  auto fetch = [&](Value step) {
    auto [head, query] = turn(step);
    tiles->load(q, queries(operands.q, batch, head, query));
    tiles->load(dout, queries(operands.dout, batch, head, query));
  };
  Value all = mul(turns, constant(groupHeads));
  Values ends = tiles->walk(constant(0), all, start, fetch, [&](Value step, ValueRange in) {
    Value head, query;
    std::tie(head, query) = turn(step);
    Values lses = ofColumns(operands.lse, head, query, of.columns);
    Values weights = tiles->product(k, q), slopes, deltas, gradients, bends;
    if (sizes.cap)
      bends = cap(weights);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c) {
        Value &weight = weights[r * columns + c];
        weight = tiles->exponential(weight, factor, lses[c]);
      }
    weights = hide(weights, 0, query, of, /*rowsAreKeys=*/true);
    if (ofKeys) {
      // Loaded late, for registers, and before a product, for time.
      deltas = ofColumns(operands.delta, head, query, of.columns);
      gradients = tiles->product(*v, dout);
      slopes = weights;
    }
    for (int64_t c = 0; c < columns; ++c) {
      Value index = weightRow(head, add(query, tiles->columnOf(c)));
      for (int64_t r = 0; r < rows; ++r) {
        int64_t i = r * columns + c;
        Value keep = shape.dropout ? keeps(index, add(first, tiles->rowOf(r))) : Value();
        if (ofKeys) {
          Value gradient = gradients[i];
          if (keep)
            gradient = select(keep, mul(gradient, number(1.0f / (1.0f - sizes.dropout))), number(0));
          slopes[i] = mul(weights[i], sub(gradient, deltas[c]));
          if (sizes.cap)
            slopes[i] = mul(slopes[i], bends[i]);
        }
        if (keep)
          weights[i] = select(keep, weights[i], number(0));
      }
    }
    Values next;
    if (ofValues)
      next = tiles->accumulate(weights, dout, in.take_front(half));
    if (ofKeys)
      next.append(tiles->accumulate(slopes, q, in.take_back(half)));
    return next;
  });
  double kept = shape.dropout ? 1.0f / (1.0f - sizes.dropout) : 1.0f;
  if (ofValues)
    tiles->write(keys(operands.dv, batch, kvHead, first), ValueRange(ends).take_front(half),
                 Values(rows, number(kept)));
  if (ofKeys)
    tiles->write(keys(operands.dk, batch, kvHead, first), ValueRange(ends).take_back(half),
                 Values(rows, number(sizes.scale)));
  end();
}
