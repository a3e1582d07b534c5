//===- AttentionEmitter.cpp - one kernel of attention -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CUDA/AttentionEmitter.h"
#include "meshwright/runtime/AttentionMask.h"
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
      tiles(fitsTensorCores(sizes, shape.aligned) ? createMmaTiles(*this, shape.element)
                                                  : createFmaTiles(*this)) {}

// What the kernels have at a time.
static TileNeeds forwardNeeds(const MwAttention &s) {
  return {s.queries, 1, 0, {s.valueDim}, {s.headDim}, {s.headDim, s.valueDim}};
}
static TileNeeds queryNeeds(const MwAttention &s) {
  return {s.queries, 2, 0, {s.headDim}, {s.headDim, s.valueDim}, {s.headDim, s.valueDim}};
}
static TileNeeds bothNeeds(const MwAttention &s) {
  return {s.keys, 2, 1, {s.valueDim, s.headDim}, {s.headDim, s.valueDim}, {s.headDim, s.valueDim}};
}
static TileNeeds keyNeeds(const MwAttention &s) {
  return {s.keys, 2, 1, {s.headDim}, {s.headDim, s.valueDim}, {s.headDim, s.valueDim}};
}
static TileNeeds valueNeeds(const MwAttention &s) {
  return {s.keys, 1, 1, {s.valueDim}, {s.headDim}, {s.headDim, s.valueDim}};
}

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
  if (shape.queryOffset)
    take(o.queryOffset);
  if (shape.keyOffset)
    take(o.keyOffset);
  if (shape.positions)
    take(o.positions);
  if (shape.lengths)
    take(o.lengths);
  if (shape.slopes)
    take(o.slopes);
  if (shape.sinks)
    take(o.sinks);
  if (shape.distances)
    take(o.distances);
  if (shape.before)
    take(o.before), take(o.beforeLse);
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
  if (shape.queryOffset)
    take(o.queryOffset);
  if (shape.keyOffset)
    take(o.keyOffset);
  if (shape.positions)
    take(o.positions);
  if (shape.lengths)
    take(o.lengths);
  if (shape.slopes)
    take(o.slopes);
  if (shape.sinks)
    take(o.sinks);
  if (shape.distances)
    take(o.distances);
  take(o.dq), take(o.dk), take(o.dv);
  if (shape.sinks)
    take(o.dsinks);
  take(o.delta);
  return o;
}

AttentionEmitter::Operands AttentionEmitter::beginGradient(const std::string &name,
                                                           int64_t blocks) {
  begin(name, 10 + optional() + shape.sinks, blocks);
  return gradientOperands();
}

Rows AttentionEmitter::rowsOf(Value pointer, int64_t dim, int64_t length, int64_t heads,
                              Value batch, Value head, Value first, Type type) {
  if (!type)
    type = shape.element;
  Value row = add(mul(batch, constant(length)), first);
  Value offset = add(mul(row, constant(heads * dim)), mul(head, constant(dim)));
  return {at(pointer, type, offset),
          type,
          heads * dim,
          dim,
          shape.aligned,
          first,
          length};
}

Rows AttentionEmitter::queries(Value pointer, int64_t dim, Value batch, Value head, Value first,
                               Type type) {
  return rowsOf(pointer, dim, sizes.queries, sizes.heads, batch, head, first, type);
}

Rows AttentionEmitter::keys(Value pointer, int64_t dim, Value batch, Value kvHead, Value first,
                            Type type) {
  return rowsOf(pointer, dim, sizes.keys, sizes.kvHeads, batch, kvHead, first, type);
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
  loadScalars(operands);

  // What is merged with nothing stays as it is.
  auto [low, high] = visibleKeys(of);
  Value works;
  if (shape.before)
    works = either(less(low, high), either(differ(operands.before, operands.out),
                                           differ(operands.beforeLse, operands.lse)));
  guarded(works, [&, low = low, high = high] { emitForward(operands, of, kvHead, low, high); });
  end();
  return {name};
}

void AttentionEmitter::emitForward(const Operands &operands, const TileSizes &of, Value kvHead,
                                   Value low, Value high) {
  tiles->start(of, forwardNeeds(sizes));
  Tile &q = tiles->allocate(/*walked=*/false, sizes.headDim),
       &k = tiles->allocate(/*walked=*/true, sizes.headDim),
       &v = tiles->allocate(/*walked=*/true, sizes.valueDim);
  tiles->load(q, queries(operands.q, sizes.headDim, batch, head, first));
  double factor = scoreFactor(/*forward=*/true);

  // Of each row the largest score, this thread's part of the sum, and the sums of values. A sink
  // is as a first key whose value is 0.
  int64_t rows = tiles->rowCount(), columns = tiles->columnCount();
  Value largest = number(-infinity), part = number(0);
  if (shape.sinks) {
    largest = loadOne(at(operands.sinks, b.getF32Type(), head), b.getF32Type());
    part = select(tiles->isFirst(), number(1), number(0));
  }
  Values start(rows, largest);
  start.append(rows, part);
  start.append(tiles->zeros(sizes.valueDim));
  auto fetch = [&](Value step) {
    Value key = mul(step, constant(of.columns));
    tiles->load(k, keys(operands.k, sizes.headDim, batch, kvHead, key));
    tiles->load(v, keys(operands.v, sizes.valueDim, batch, kvHead, key));
  };
  Values ends = tiles->walk(low, high, start, fetch, [&](Value step, ValueRange in) {
    Value key = mul(step, constant(of.columns));
    Values scores = tiles->product(q, k);
    if (sizes.cap)
      cap(scores);
    if (factor == 1)
      scaleScores(scores, operands, head, key, /*rowsAreKeys=*/false);
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

  Values factors, lses;
  for (int64_t r = 0; r < rows; ++r) {
    Value sum = tiles->rowSum(ends[rows + r]), empty = equal(sum, number(0));
    Value kept = number(shape.dropout ? 1.0f / (1.0f - sizes.dropout) : 1.0f);
    Value inverse = arith::DivFOp::create(b, loc, kept, select(empty, number(1), sum));
    factors.push_back(inverse);
    Value shift = select(empty, number(0), mul(ends[r], number(factor)));
    Value lse = add(shift, math::LogOp::create(b, loc, select(empty, number(1), sum)));
    lses.push_back(select(empty, number(-infinity), lse));
  }
  MutableArrayRef<Value> sums = MutableArrayRef<Value>(ends).drop_front(2 * rows);
  if (shape.before)
    merge(operands, sums, factors, lses);
  for (int64_t r = 0; r < rows; ++r) {
    Value query = add(first, tiles->rowOf(r));
    guarded(both(tiles->isFirst(), less(query, constant(sizes.queries))), [&] {
      store(lses[r], at(operands.lse, b.getF32Type(), add(termsOf(batch, head), query)));
    });
  }
  tiles->write(queries(operands.out, sizes.valueDim, batch, head, first, sumType()), sums, factors);
}

/// What is before counts as one more key: with the score `beforeLse`, and `before` as its value.
void AttentionEmitter::merge(const Operands &operands, MutableArrayRef<Value> sums,
                             MutableArrayRef<Value> factors, MutableArrayRef<Value> lses) {
  Type f32 = b.getF32Type();
  Values others;
  for (auto [r, lse] : llvm::enumerate(lses)) {
    Value query = add(first, tiles->rowOf(r)), exists = less(query, constant(sizes.queries));
    Value other =
        loadOne(at(operands.beforeLse, f32, add(termsOf(batch, head), query)), f32, exists);
    Value largest = larger(lse, other), empty = equal(largest, number(-infinity));
    largest = select(empty, number(0), largest);
    Value own = math::ExpOp::create(b, loc, sub(lse, largest));
    other = math::ExpOp::create(b, loc, sub(other, largest));
    Value all = select(empty, number(1), add(own, other));
    lse = select(empty, number(-infinity), add(largest, math::LogOp::create(b, loc, all)));
    factors[r] = mul(factors[r], arith::DivFOp::create(b, loc, own, all));
    others.push_back(arith::DivFOp::create(b, loc, other, all));
  }
  tiles->scale(sums, factors);
  tiles->add(queries(operands.before, sizes.valueDim, batch, head, first, f32), others, sums);
  llvm::fill(factors, number(1));
  // Results may be written where these were.
  warpBarrier();
}

std::vector<std::string> AttentionEmitter::emitBackward(const std::string &name) {
  std::vector<std::string> names = {name, name + "$keys"};
  emitQueryGradient(name);
  if (tiles->sizesFor(bothNeeds(sizes))) {
    emitKeyGradients(names.back(), bothNeeds(sizes), /*ofKeys=*/true, /*ofValues=*/true);
  } else {
    // Sums of two tensors are too many for a thread.
    emitKeyGradients(names.back(), keyNeeds(sizes), /*ofKeys=*/true, /*ofValues=*/false);
    names.push_back(name + "$values");
    emitKeyGradients(names.back(), valueNeeds(sizes), /*ofKeys=*/false, /*ofValues=*/true);
  }
  if (shape.sinks) {
    names.push_back(name + "$sinks");
    emitSinkGradients(names.back());
  }
  return names;
}

/// A block for each head: the sum of -exp(sink - lse) delta, which the kernel of queries has left.
void AttentionEmitter::emitSinkGradients(const std::string &name) {
  Operands operands = beginGradient(name, sizes.heads);
  Type f32 = b.getF32Type();
  int64_t count = sizes.batch * sizes.queries;
  Value sink = loadOne(at(operands.sinks, f32, block), f32), shared = allocate(warps * 4);
  Value steps = constant(llvm::divideCeil(count, threads));
  Values sums = loop(constant(0), steps, {number(0)}, [&](Value step, ValueRange in) {
    Value row = add(mul(step, constant(threads)), thread), exists = less(row, constant(count));
    Value term = add(termsOf(divide(row, sizes.queries), block), remainder(row, sizes.queries));
    Value lse = loadOne(at(operands.lse, f32, term), f32, exists);
    Value delta = loadOne(at(operands.delta, f32, term), f32, exists);
    Value weight = math::ExpOp::create(b, loc, sub(sink, lse));
    return Values{sub(in[0], select(exists, mul(weight, delta), number(0)))};
  });
  Value ofWarp = sumOf(warpSize, sums[0]);
  guarded(equal(remainder(thread, warpSize), constant(0)),
          [&] { store(ofWarp, at(shared, f32, divide(thread, warpSize))); });
  barrier();
  guarded(equal(thread, constant(0)), [&] {
    Value sum = number(0);
    for (int64_t warp = 0; warp < warps; ++warp)
      sum = add(sum, load(at(shared, f32, constant(warp)), f32));
    store(sum, at(operands.dsinks, f32, block));
  });
  end();
}

void AttentionEmitter::emitQueryGradient(const std::string &name) {
  TileSizes of = *tiles->sizesFor(queryNeeds(sizes));
  int64_t count = llvm::divideCeil(sizes.queries, of.rows);
  Operands operands = beginGradient(name, sizes.batch * sizes.heads * count);
  decomposeBlock(count, sizes.heads);
  beginQueries(count, of.rows);
  Value kvHead = divide(head, sizes.heads / sizes.kvHeads);
  loadScalars(operands);

  tiles->start(of, queryNeeds(sizes));
  Tile &q = tiles->allocate(/*walked=*/false, sizes.headDim),
       &dout = tiles->allocate(/*walked=*/false, sizes.valueDim),
       &k = tiles->allocate(/*walked=*/true, sizes.headDim),
       &v = tiles->allocate(/*walked=*/true, sizes.valueDim);
  tiles->load(q, queries(operands.q, sizes.headDim, batch, head, first));
  tiles->load(dout, queries(operands.dout, sizes.valueDim, batch, head, first));
  tiles->settle();

  // delta = sum(dout * out) of each row, for the kernel of keys too.
  int64_t rows = tiles->rowCount(), columns = tiles->columnCount();
  Values lses;
  Values deltas = tiles->dot(dout, queries(operands.out, sizes.valueDim, batch, head, first));
  for (int64_t r = 0; r < rows; ++r) {
    Value query = add(first, tiles->rowOf(r)), exists = less(query, constant(sizes.queries));
    Value offset = add(termsOf(batch, head), query);
    lses.push_back(loadOne(at(operands.lse, b.getF32Type(), offset), b.getF32Type(), exists));
    guarded(both(tiles->isFirst(), exists),
            [&] { store(deltas[r], at(operands.delta, b.getF32Type(), offset)); });
  }

  double factor = scoreFactor(/*forward=*/false);
  auto [low, high] = visibleKeys(of);
  auto fetch = [&](Value step) {
    Value key = mul(step, constant(of.columns));
    tiles->load(k, keys(operands.k, sizes.headDim, batch, kvHead, key));
    tiles->load(v, keys(operands.v, sizes.valueDim, batch, kvHead, key));
  };
  Values start = tiles->zeros(sizes.headDim);
  Values sums = tiles->walk(low, high, start, fetch, [&](Value step, ValueRange in) {
    Value key = mul(step, constant(of.columns));
    Values slopes = tiles->product(q, k), gradients = tiles->product(dout, v), bends;
    if (sizes.cap)
      bends = cap(slopes);
    if (factor == 1)
      scaleScores(slopes, operands, head, key, /*rowsAreKeys=*/false);
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
  tiles->write(queries(operands.dq, sizes.headDim, batch, head, first, sumType()), sums,
               Values(rows, number(sizes.scale)));
  end();
}

void AttentionEmitter::emitKeyGradients(const std::string &name, const TileNeeds &needs,
                                        bool ofKeys, bool ofValues) {
  TileSizes of = *tiles->sizesFor(needs);
  int64_t count = llvm::divideCeil(sizes.keys, of.rows);
  Operands operands = beginGradient(name, sizes.batch * sizes.kvHeads * count);
  decomposeBlock(count, sizes.kvHeads);
  first = mul(first, constant(of.rows));
  loadScalars(operands);
  Value kvHead = head;
  int64_t groupHeads = sizes.heads / sizes.kvHeads;

  // Keys are rows here, so that their gradients are sums of rows.
  tiles->start(of, needs);
  Tile &k = tiles->allocate(/*walked=*/false, sizes.headDim),
       &q = tiles->allocate(/*walked=*/true, sizes.headDim),
       &dout = tiles->allocate(/*walked=*/true, sizes.valueDim);
  tiles->load(k, keys(operands.k, sizes.headDim, batch, kvHead, first));
  Tile *v = nullptr; // Weights alone make the gradient of values.
  if (ofKeys) {
    v = &tiles->allocate(/*walked=*/false, sizes.valueDim);
    tiles->load(*v, keys(operands.v, sizes.valueDim, batch, kvHead, first));
  }

  // The queries that see any of the keys, for one head after the other.
  // Counted in positions from that of the first query, then in queries.
  Value begin = shift ? sub(placeOf(first), shift) : placeOf(first);
  Value low = sizes.causal ? begin : constant(0), high = constant(sizes.queries);
  if (isTwoSided())
    low = larger(low, sub(begin, constant(sizes.window - 1)));
  else if (sizes.causal && shift)
    low = larger(constant(0), low);
  low = divide(low, of.columns * sizes.queryStride);
  int64_t reach = attentionMaskOf(sizes).reach();
  if (reach) {
    Value past = add(begin, constant((of.rows - 1) * sizes.keyStride + reach));
    if (sizes.queryStride != 1)
      past = divide(add(larger(past, constant(0)), constant(sizes.queryStride - 1)), sizes.queryStride);
    high = smaller(high, past);
  }
  if (reach && shift)
    high = larger(high, constant(0));
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
  double factor = scoreFactor(/*forward=*/false);
  // Those of values first.
  Values start = ofValues ? tiles->zeros(sizes.valueDim) : Values();
  size_t values = start.size();
  if (ofKeys)
    start.append(tiles->zeros(sizes.headDim));
  auto fetch = [&](Value step) {
    auto [head, query] = turn(step);
    tiles->load(q, queries(operands.q, sizes.headDim, batch, head, query));
    tiles->load(dout, queries(operands.dout, sizes.valueDim, batch, head, query));
  };
  Value all = mul(turns, constant(groupHeads));
  Values ends = tiles->walk(constant(0), all, start, fetch, [&](Value step, ValueRange in) {
    Value head, query;
    std::tie(head, query) = turn(step);
    Values lses = ofColumns(operands.lse, head, query, of.columns);
    Values weights = tiles->product(k, q), slopes, deltas, gradients, bends;
    if (sizes.cap)
      bends = cap(weights);
    if (factor == 1)
      scaleScores(weights, operands, head, query, /*rowsAreKeys=*/true);
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
      next = tiles->accumulate(weights, dout, in.take_front(values));
    if (ofKeys)
      next.append(tiles->accumulate(slopes, q, in.drop_front(values)));
    return next;
  });
  double kept = shape.dropout ? 1.0f / (1.0f - sizes.dropout) : 1.0f;
  if (ofValues)
    tiles->write(keys(operands.dv, sizes.valueDim, batch, kvHead, first, sumType()),
                 ValueRange(ends).take_front(values), Values(rows, number(kept)));
  if (ofKeys)
    tiles->write(keys(operands.dk, sizes.headDim, batch, kvHead, first, sumType()),
                 ValueRange(ends).drop_front(values), Values(rows, number(sizes.scale)));
  end();
}
