//===- ElementRecurrences.cpp - recurrences of single elements ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// h_t = a_t h_(t-1) + x_t, where each element has decays of its own: RG-LRU, with one state for each channel, and
// Mamba-1's selective scan, with some for each. Nothing of it is a product of matrices, so it is computed as Blelloch's
// scan of pairs (1990): two positions that follow each other are one, with the decay of both, until there is one. What
// comes before a position is then the state at the end of the pair before its own. So there are about twice as many
// decays and states as positions, in as many ops as the number of positions has digits. Decays are multiplied, never
// divided, and no logarithm is a difference of sums: a decay may be 0, as where a document begins.
//
//===----------------------------------------------------------------------===//
#include "Recurrence.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::frontend;
using namespace meshwright::train;

//===--- the scan -----------------------------------------------------------===//

Value RecurrenceBuilder::linearScan(Value a, Value x) {
  constexpr int64_t dim = 1;
  SmallVector<int64_t> shape(shapeOf(x));
  int64_t count = shape[dim], pairs = llvm::divideCeil(count, 2);
  if (count == 1)
    return x;
  SmallVector<int64_t> apart(shape), alone(shape), joined(shape);
  joined[dim] = 2 * pairs;
  apart[dim] = alone[dim] = pairs;
  apart.insert(apart.begin() + dim + 1, 2);
  alone.insert(alone.begin() + dim + 1, 1);
  auto split = [&](Value value) {
    if (count % 2)
      value = g.pad(value, dim, 0, 2 * pairs);
    value = g.reshape(value, apart);
    return std::pair(row(value, dim + 1, 0), row(value, dim + 1, 1));
  };
  auto [a0, a1] = split(a);
  auto [x0, x1] = split(x);
  Value ofBoth = pairs > 1 ? g.mul(a0, a1) : Value();
  Value second = linearScan(ofBoth, g.add(g.mul(a1, x0), x1)), first = x0;
  if (pairs > 1) {
    Value before = g.pad(slice(second, dim, 0, pairs - 1), dim, 1, pairs);
    first = g.add(g.mul(a0, before), x0);
  }
  auto join = [&](Value value, int64_t at) { return g.pad(g.reshape(value, alone), dim + 1, at, 2); };
  return slice(g.reshape(g.add(join(first, 0), join(second, 1)), joined), dim, 0, count);
}

Value RecurrenceBuilder::linearScanOn(Value a, Value x, ArrayRef<int64_t> shape) {
  if (!valid)
    return linearScan(a, x);
  // The first position decays what is left; what pads the call leaves it as it is.
  Value left = g.state(name("state"), shape), first = slice(a, 1, 0, 1);
  Value decayed = g.mul(first, g.reshape(left, shapeOf(first)));
  Value y = linearScan(a, g.add(x, g.pad(decayed, 1, 0, sequence)));
  g.keep(g.reshape(slice(y, 1, sequence - 1, 1), shape));
  return y;
}

//===--- RG-LRU -------------------------------------------------------------===//

Value RecurrenceBuilder::realGated(Value h) {
  // After Griffin (De et al. 2024): gates are products of the heads' blocks with what passes through the recurrence.
  int64_t heads = s.heads, width = s.headDim, inner = heads * width;
  Value y = project("linear_y", "linear_y", h, {}, inner, s.bias);
  y = g.activation(m.activation, y);
  Value x = g.redistribute(project("linear_x", "linear_x", h, {}, inner, s.bias));
  x = convolve("conv_1d", "conv_1d", x, {});
  SmallVector<int64_t> all{rows, sequence, heads, width};
  x = g.reshape(x, all);
  auto gate = [&](StringRef part) {
    std::string weight = name("rg_lru." + part + "_weight"), bias = name("rg_lru." + part + "_bias");
    g.part(name("rg_lru." + part));
    Value y = contract("b s h i, h i o -> b s h o", x, g.weight({weight, {heads, width, width}, m.std}));
    return g.add(y, g.weight({bias, {heads, width}}));
  };
  Value inputs = gate("input_gate"), recurrent = gate("recurrent_gate");
  // Initially 0.98, of what transformers draws from 0.9 to 0.999.
  Value rate = parameter("rg_lru.recurrent_param", {inner}, std::log(1 / 0.98 - 1));
  g.part(name("steps"));
  FullPrecision full(g.builder);
  auto ofPositions = [&](Value factor) { return g.broadcast(factor, all, {2, 3}); };
  auto without = [&](Value flags) { return g.add(g.scale(flags, -1), g.fill(1, shapeOf(flags))); };
  Value log = g.scale(g.mul(make<SigmoidOp>(recurrent), g.reshape(softplus(rate), {heads, width})), -8);
  if (valid)
    log = g.mul(log, ofPositions(valid));
  Value a = exp(log);
  // sqrt(1 - a^2), where 1 - a^2 = tanh(-log) (1 + a^2): a is close to 1, so f32 would lose the digits of the difference.
  Value rest = g.mul(make<TanhOp>(g.scale(log, -1)), g.add(g.mul(a, a), g.fill(1, all)));
  Value root = g.mul(rest, make<InverseRootOp>(rest, g.builder.getF64FloatAttr(1e-20)));
  // Nothing comes before the first position, which is taken whole.
  root = g.add(g.mul(root, ofPositions(without(begins))), ofPositions(begins));
  x = g.mul(g.mul(x, make<SigmoidOp>(inputs)), root);
  if (valid)
    x = g.mul(x, ofPositions(valid));
  if (firsts)
    a = g.mul(a, ofPositions(without(firsts)));
  g.part(name("scan"));
  x = linearScanOn(a, x, {heads, width});
  full.end();
  x = g.redistribute(g.reshape(x, {rows, sequence, inner}));
  return output("linear_out", g.mul(x, y));
}

//===--- Mamba-1 ------------------------------------------------------------===//

Value RecurrenceBuilder::selective(Value h) {
  int64_t inner = s.heads, states = s.keyDim;
  Value x = project("in_proj_x", "in_proj", h, {0, 2 * inner}, inner, s.bias);
  Value z = project("in_proj_z", "in_proj", h, {inner, 2 * inner}, inner, s.bias);
  x = g.activation(s.activation, convolve("conv1d", "conv1d", g.redistribute(x), {}));
  // All channels have these in common.
  Value both = project("x_proj", "x_proj", x, {}, s.rank + 2 * states, false);
  auto part = [&](StringRef norm, int64_t begin, int64_t count) {
    Value y = slice(both, 2, begin, count);
    if (!keys.normsParts)
      return y;
    std::string whole = name(norm), weight = whole + ".weight";
    g.part(whole);
    return g.norm(NormKind::RMS, y, keys.partEps.name.empty() ? g.weight({weight, {count}, 0, 1}) : Value(), {}, s.partEps, false);
  };
  Value dt = part("dt_layernorm", 0, s.rank);
  Value b = part("b_layernorm", s.rank, states), c = part("c_layernorm", s.rank + states, states);
  dt = project("dt_proj", "dt_proj", dt, {}, inner, false);
  Value bias = parameter("dt_proj.bias", {inner}, std::log(std::expm1(keys.step)));
  Value log = parameter("A_log", {inner, states}, std::log((1 + double(states)) / 2)), skip = parameter("D", {inner}, 1);
  Value y;
  {
    g.part(name("steps"));
    FullPrecision full(g.builder);
    SmallVector<int64_t> all{rows, sequence, inner, states};
    Value step = ofTokens(softplus(g.add(dt, bias)));
    Value a = exp(g.mul(g.broadcast(step, all, {3}), g.broadcast(g.scale(exp(log), -1), all, {0, 1})));
    if (firsts)
      a = g.mul(a, g.broadcast(g.add(g.scale(firsts, -1), g.fill(1, shapeOf(firsts))), all, {2, 3}));
    g.part(name("scan"));
    Value added = g.mul(g.broadcast(g.mul(step, x), all, {3}), g.broadcast(b, all, {2}));
    Value state = linearScanOn(a, added, {inner, states});
    y = make<ReduceOp>(ReduceKind::Sum, g.mul(state, g.broadcast(c, all, {2})), ArrayRef<int64_t>{3});
  }
  y = g.redistribute(g.add(y, g.mul(x, skip)));
  return output("out_proj", g.mul(y, g.activation("silu", z)));
}
