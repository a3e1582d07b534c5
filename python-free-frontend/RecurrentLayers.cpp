//===- RecurrentLayers.cpp - linear recurrences in place of attention -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A recurrence S_t = d_t S_(t-1) + k_t v_t^T with outputs S_t^T q_t is computed chunk by chunk (Dao and Gu
// 2024): inside a chunk as masked products of queries and keys, between chunks by the states at their ends.
// All of it is products and element-wise ops, so gradients, shardings, kernels of all targets and the
// certificate are those of these ops. What they need beside is `train.decay`, the matrix of the products of
// decays from each position to each later one.
//
// The gated delta rule has other values (DeltaRule.cpp). Recurrences of single elements have no products and no
// chunks (ElementRecurrences.cpp).
//
//===----------------------------------------------------------------------===//
#include "Recurrence.h"

#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::frontend;
using namespace meshwright::train;

Value RecurrenceBuilder::convolve(StringRef part, StringRef tensor, Value x, const FileRows &where) {
  std::string base = name(part), file = name(tensor), weight = base + ".weight", bias = base + ".bias";
  g.part(base);
  int64_t width = shapeOf(x).back();
  // Initial values have the variance that PyTorch's uniform ones have.
  Value w = g.weight({weight, {width, 1, s.kernel}, 1 / std::sqrt(3.0 * double(s.kernel)), 0, file + ".weight",
                      false, where});
  w = g.reshape(w, {width, s.kernel});
  Value all = valid && s.kernel > 1 ? behindTail(base + ".tail", x) : Value();
  Value y, within; ///< whether a position and an earlier one are of one document
  for (int64_t back = 0; back < (all ? s.kernel : std::min(s.kernel, sequence)); ++back) {
    // What lay `back` positions before.
    Value earlier = !back ? x
                    : all ? slice(all, 1, s.kernel - 1 - back, sequence)
                          : g.pad(slice(x, 1, 0, sequence - back), 1, back, sequence);
    if (back && firsts) {
      // No document begins at the positions after it.
      Value begun = back == 1 ? firsts : g.pad(slice(firsts, 1, 0, sequence - back + 1), 1, back - 1, sequence);
      Value none = g.add(g.scale(begun, -1), g.fill(1, {rows, sequence}));
      within = within ? g.mul(within, none) : none;
      earlier = g.mul(earlier, spread(within, earlier, 2));
    }
    Value term = g.mul(earlier, row(w, 1, s.kernel - 1 - back));
    y = y ? g.add(y, term) : term;
  }
  if (s.convBias)
    y = g.add(y, g.weight({bias, {width}, 0, 0, file + ".bias", false, where}));
  return y;
}

Value RecurrenceBuilder::behindTail(StringRef name, Value x) {
  int64_t kept = s.kernel - 1, width = shapeOf(x).back(), count = kept + sequence;
  Value tail = g.reshape(g.state(name, {kept, width}), {1, kept, width});
  Value all = g.add(g.pad(tail, 1, 0, count), g.pad(x, 1, kept, count));
  // The next call sees the last of those that are tokens: row t of its tail is the t-th one behind so many.
  Value last = sequence == 1 ? valid : g.add(valid, g.scale(g.pad(slice(valid, 1, 1, sequence - 1), 1, 0, sequence), -1));
  Value rows;
  for (int64_t t = 0; t < kept; ++t) {
    Value row = g.pad(g.pad(last, 1, t + 1, count), 0, t, kept);
    rows = rows ? g.add(rows, row) : row;
  }
  g.keep(contract("t u, u c -> t c", rows, g.reshape(all, {count, width})));
  return all;
}

Value RecurrenceBuilder::products(Value x) {
  // Sums of x behind u up to t are not differences of sums from the beginning: f32 would lose digits of large sums, and of
  // gradients, which would be differences again. They have two parts: what is behind u in its block of
  // positions, and what is behind this block up to t; or one, where t is in that block too.
  constexpr int64_t most = 16;
  SmallVector<int64_t> shape(shapeOf(x));
  int64_t given = shape[3], size = given <= most ? given : llvm::alignTo(given, most);
  if (size != given)
    x = g.pad(x, 3, 0, size);
  int64_t block = std::min(size, most), blocks = size / block;
  auto with = [&](std::initializer_list<int64_t> last) {
    SmallVector<int64_t> result(ArrayRef<int64_t>(shape).take_front(3));
    result.append(last);
    return result;
  };
  Value parts = g.reshape(x, with({blocks, block}));
  Value sum = g.mul(g.broadcast(parts, with({blocks, block, block}), {4}), upper(block, true));
  sum = contract("h b n k u j, t j -> h b n k u t", sum, triangle(block));
  if (blocks > 1) {
    auto all = with({blocks, block, blocks, block});
    SmallVector<int64_t> pairs{blocks, block, blocks, block};
    Value later = upper(blocks, true), same = g.add(upper(blocks), g.scale(later, -1));
    Value behind = contract("h b n k j, j u -> h b n k u", parts, triangle(block, true));
    Value upTo = g.reshape(g.broadcast(later, {blocks, blocks, block}, {2}), {blocks, size});
    upTo = g.mul(g.broadcast(x, with({blocks, size}), {3}), upTo);
    upTo = contract("h b n k j, t j -> h b n k t", upTo, triangle(size));
    upTo = g.reshape(upTo, with({blocks, blocks, block}));
    sum = g.mul(g.broadcast(sum, all, {5}), g.broadcast(same, pairs, {1, 3}));
    sum = g.add(sum, g.mul(g.broadcast(behind, all, {5, 6}), g.broadcast(later, pairs, {1, 3})));
    sum = g.add(sum, g.broadcast(upTo, all, {4}));
  }
  Value result = g.mul(exp(g.reshape(sum, with({size, size}))), upper(size));
  return size == given ? result : slice(slice(result, 3, 0, given), 4, 0, given);
}

RecurrenceBuilder::Documents RecurrenceBuilder::documents() {
  if (!firsts)
    return {};
  Documents d;
  Value begun = g.scale(firsts, -1024);
  if (chunk * chunks != sequence)
    begun = g.pad(begun, 1, 0, chunk * chunks);
  begun = g.reshape(begun, {rows, chunks, chunk});
  Value sum = contract("b n u, t u -> b n t", begun, triangle(chunk));
  d.inside = g.reshape(products(g.reshape(begun, {1, rows, chunks, chunk})), {rows, chunks, chunk, chunk});
  if (chunks == 1)
    return d;
  Value last = row(sum, 2, chunk - 1);
  d.toEnd = exp(g.add(spread(last, sum, 2), g.scale(sum, -1)));
  d.fromStart = exp(sum);
  d.across = exp(last);
  d.between = delayed(g.reshape(products(g.reshape(last, {1, rows, 1, chunks})), {rows, chunks, chunks}), 2);
  return d;
}

Value RecurrenceBuilder::scan(Value q, Value k, Value v, Value a) {
  FullPrecision full(g.builder);
  Documents own = documents();
  Value decays = ofAll(products(a), own.inside);
  Value toEnd, fromStart, between;
  if (chunks > 1) {
    Value sum = sums(a);
    toEnd = ofAll(exp(behind(a)), own.toEnd);
    fromStart = ofAll(exp(sum), own.fromStart);
    // What the beginning of each chunk retains of the states that the chunks before it add.
    between = products(g.reshape(row(sum, 3, chunk - 1), {s.heads, rows, 1, chunks}));
    between = ofAll(delayed(g.reshape(between, {s.heads, rows, chunks, chunks}), 3), own.between);
  }
  full.end();
  Value scores = perHead(contract("g b n u k, g b n t k -> g b n u t", k, q));
  Value y = contract("h b n u t, h b n u v -> h b n t v", g.mul(scores, decays), v);
  if (valid) {
    Value sum = sums(a), state = g.reshape(g.state(name("state"), {s.heads, s.keyDim, s.headDim}), {s.heads, 1, 1, s.keyDim, s.headDim});
    y = g.add(y, weigh(contract("h b n t k, h b n k v -> h b n t v", perHead(q), state), exp(sum)));
    Value gained = contract("h b n u k, h b n u v -> h b n k v", perHead(k), weigh(v, exp(behind(a))));
    Value retained = g.broadcast(exp(row(sum, 3, chunk - 1)), shapeOf(state), {3, 4});
    g.keep(g.reshape(g.add(g.mul(state, retained), gained), {s.heads, s.keyDim, s.headDim}));
  }
  if (chunks == 1)
    return y;
  Value states = contract("h b n u k, h b n u v -> h b n k v", perHead(k), weigh(v, toEnd));
  states = contract("h b j m, h b j k v -> h b m k v", between, states);
  return g.add(y, weigh(contract("h b n t k, h b n k v -> h b n t v", perHead(q), states), fromStart));
}

Value RecurrenceBuilder::stateSpace(Value h) {
  int64_t inner = s.heads * s.headDim, keys = s.keyHeads * s.keyDim;
  int64_t all = 2 * (inner + keys) + s.heads, convolved = inner + 2 * keys;
  setChunk(valid ? sequence : std::min(s.chunk, sequence));
  StringRef in = "in_proj", conv = "conv1d";
  h = g.scale(h, m.factors.mixerInput);
  const std::array<double, 5> &factors = m.factors.mixer;
  Value z = g.scale(project("in_proj_z", in, h, {0, all}, inner, s.bias), factors[0]);
  Value x = g.scale(project("in_proj_x", in, h, {inner, all}, inner, s.bias), factors[1]);
  Value k, q;
  if (s.keyHeads > 1) {
    k = project("in_proj_B", in, h, {2 * inner, all}, keys, s.bias);
    q = project("in_proj_C", in, h, {2 * inner + keys, all}, keys, s.bias);
    k = g.redistribute(g.scale(k, factors[2]));
    q = g.redistribute(g.scale(q, factors[3]));
    k = convolve("conv1d_B", conv, k, {inner, convolved});
    q = convolve("conv1d_C", conv, q, {inner + keys, convolved});
  } else {
    // What all heads share is not divided among devices, as both halves of one vector are not.
    Value both = project("in_proj_BC", in, h, {2 * inner, all}, 2 * keys, s.bias);
    if (factors[2] == factors[3])
      both = g.scale(both, factors[2]);
    else
      both = g.mul(both, g.add(g.pad(g.fill(factors[2], {keys}), 0, 0, 2 * keys), g.pad(g.fill(factors[3], {keys}), 0, keys, 2 * keys)));
    both = convolve("conv1d_BC", conv, g.redistribute(both), {inner, convolved});
    k = slice(both, 2, 0, keys);
    q = slice(both, 2, keys, keys);
  }
  Value dt = project("in_proj_dt", in, h, {2 * (inner + keys), all}, s.heads, s.bias);
  dt = g.redistribute(g.scale(dt, factors[4]));
  x = g.activation(s.activation, convolve("conv1d_x", conv, g.redistribute(x), {0, convolved}));
  k = g.activation(s.activation, k);
  q = g.activation(s.activation, q);
  x = g.reshape(x, {rows, sequence, s.heads, s.headDim});
  k = g.reshape(k, {rows, sequence, s.keyHeads, s.keyDim});
  q = g.reshape(q, {rows, sequence, s.keyHeads, s.keyDim});
  Value a, step;
  {
    Value bias = ofHeads("dt_bias", this->keys.step > 0 ? std::log(std::expm1(this->keys.step)) : 1);
    Value log = ofHeads("A_log", std::log((1 + double(s.heads)) / 2));
    g.part(name("steps"));
    FullPrecision full(g.builder);
    step = softplus(g.add(dt, bias));
    if (s.leastStep > 0 || s.mostStep > 0)
      step = make<ClampOp>(step, g.builder.getF64FloatAttr(s.leastStep),
                           g.builder.getF64FloatAttr(s.mostStep));
    a = chunked(ofTokens(g.mul(step, g.scale(exp(log), -1))));
  }
  Value skip = ofHeads("D", 1);
  g.part(name("scan"));
  Value y = whole(scan(chunked(q), chunked(k), chunked(ofTokens(g.mul(x, spread(step, x, 3)))), a));
  y = g.add(y, g.mul(x, g.broadcast(skip, {s.heads, s.headDim}, {1})));
  y = g.redistribute(y);
  // Gated and normalized group by group.
  std::string norm = name("norm"), weight = norm + ".weight";
  g.part(norm);
  y = g.reshape(y, {rows, sequence, inner});
  auto gate = [&](Value y) { return g.mul(y, g.activation("silu", z)); };
  if (!s.normed)
    return output("out_proj", gate(y));
  if (!s.normedFirst)
    y = gate(y);
  y = g.norm(NormKind::RMS, g.reshape(y, {rows, sequence, s.keyHeads, inner / s.keyHeads}), {}, {}, m.eps,
             false);
  y = g.mul(g.reshape(y, {rows, sequence, inner}), g.weight({weight, {inner}, 0, 1.0}));
  return output("out_proj", s.normedFirst ? gate(y) : y);
}

Value RecurrenceBuilder::lightning(Value h, Value rates) {
  int64_t d = s.headDim, inner = s.heads * d;
  setChunk(valid ? sequence : std::min(s.chunk, sequence));
  auto projected = [&](StringRef part, int64_t which) {
    FileRows where{which * d, 3 * inner, 3 * d, {0, d, 1}};
    Value y = g.redistribute(project(part, "qkv_proj", h, where, inner, false));
    return g.reshape(g.activation(s.activation, y), {rows, sequence, s.heads, d});
  };
  Value q = projected("q_proj", 0), k = projected("k_proj", 1), v = projected("v_proj", 2), a;
  {
    g.part(name("rates"));
    FullPrecision full(g.builder);
    a = chunked(ofTokens(g.scale(g.broadcast(rates, {rows, sequence, s.heads}, {0, 1}), -1)));
  }
  g.part(name("scan"));
  Value y = g.redistribute(whole(scan(chunked(q), chunked(k), chunked(ofTokens(v)), a)));
  std::string norm = name("norm"), weight = norm + ".weight";
  g.part(norm);
  y = g.norm(NormKind::RMS, g.reshape(y, {rows, sequence, inner}), g.weight({weight, {inner}, 0, 1.0}), {}, keys.normEps, false);
  Value gate = project("output_gate", "output_gate", h, {}, inner, false);
  return output("out_proj", g.mul(y, make<SigmoidOp>(gate)));
}

Value RecurrenceBuilder::convolution(Value h) {
  int64_t width = m.hidden;
  Value b = project("in_proj_B", "in_proj", h, {0, 3 * width}, width, s.bias);
  Value c = project("in_proj_C", "in_proj", h, {width, 3 * width}, width, s.bias);
  Value x = project("in_proj_x", "in_proj", h, {2 * width, 3 * width}, width, s.bias);
  x = g.redistribute(convolve("conv", "conv", g.redistribute(g.mul(b, x)), {}));
  return output("out_proj", g.mul(c, x));
}

Value meshwright::frontend::buildRecurrence(LayerGraph &g, const Model &m, const LayerKind &kind, Value h,
                                            const RecurrenceInputs &inputs) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(h.getType()).getShape();
  RecurrenceBuilder b{g, m, shape[0], shape[1], inputs.firsts, inputs.valid, inputs.begins};
  switch (kind.mixer) {
  case Mixer::StateSpace:
    return b.stateSpace(h);
  case Mixer::Delta:
  case Mixer::ElementDelta:
    return b.delta(h);
  case Mixer::Convolution:
    return b.convolution(h);
  case Mixer::Lightning:
    return b.lightning(h, inputs.rates);
  case Mixer::RealGated:
    return b.realGated(h);
  case Mixer::Selective:
    return b.selective(h);
  case Mixer::Attention:
  case Mixer::None:
    break;
  }
  llvm_unreachable("no recurrence");
}
