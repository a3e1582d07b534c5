//===- DeltaRule.cpp - the gated delta rule -----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//
// S_t = d_t S_(t-1) + b_t k_t (v_t - d_t S_(t-1)^T k_t)^T (Yang, Kautz and Hatamizadeh 2024) is computed as other
// recurrences are, with other values: those of a chunk are solutions of a triangular system, and the state of a
// chunk is needed to make the values of the next one.
//
// In Kimi Delta Attention (Kimi Team 2025) d_t is a vector: each element of keys decays by its own. Products of keys and
// queries then have decays inside their sums. They are made from blocks of 1 to the whole chunk: between two blocks that
// follow each other, keys decay to the end of the first and queries from there on, so that no decay is divided by one.
//
//===----------------------------------------------------------------------===//
#include "Recurrence.h"

#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::frontend;
using namespace meshwright::train;

Value RecurrenceBuilder::invert(Value x) {
  // Blocks of twice the size from blocks on the diagonal: the upper right one is -A (upper right of x) D,
  // where A and D are the inverses of the upper left and the lower right one. As substitution it
  // adds no power of x to another, whose sums would lose digits.
  Value inverse;
  for (int64_t size = 1; size < chunk; size *= 2) {
    Value corner = g.pad(g.pad(g.fill(1, {size, size}), 0, 0, 2 * size), 1, size, 2 * size);
    int64_t blocks = chunk / (2 * size);
    Value diagonal = g.add(triangle(blocks), g.scale(triangle(blocks, true), -1));
    SmallVector<int64_t> both{blocks, 2 * size, blocks, 2 * size};
    Value mask = g.mul(g.broadcast(diagonal, both, {1, 3}), g.broadcast(corner, both, {0, 2}));
    Value part = g.mul(x, g.reshape(mask, {chunk, chunk}));
    if (inverse)
      part = contract("h b n t w, h b n w u -> h b n t u",
                      contract("h b n t w, h b n w u -> h b n t u", inverse, part), inverse);
    part = g.scale(part, -1);
    if (!inverse) {
      Value one = g.add(triangle(chunk), g.scale(triangle(chunk, true), -1));
      inverse = g.add(part, one);
    } else {
      inverse = g.add(inverse, part);
    }
  }
  return inverse;
}

RecurrenceBuilder::ElementDecays RecurrenceBuilder::elementDecays(Value q, Value k, Value a) {
  SmallVector<int64_t> shape(shapeOf(k));
  int64_t keyDim = shape.back();
  auto with = [&](std::initializer_list<int64_t> last) {
    SmallVector<int64_t> result(ArrayRef<int64_t>(shape).take_front(3));
    result.append(last);
    return result;
  };
  ElementDecays d;
  d.upTo = a;
  d.behind = g.fill(0, shape);
  d.keys = g.fill(0, with({chunk, 1, 1}));
  d.queries = g.reshape(make<ReduceOp>(ReduceKind::Sum, g.mul(k, q), ArrayRef<int64_t>{4}), with({chunk, 1, 1}));
  for (int64_t size = 1; size < chunk; size *= 2) {
    int64_t blocks = chunk / (2 * size);
    auto halves = [&](Value value) {
      value = g.reshape(value, with({blocks, 2, size, keyDim}));
      return std::pair(row(value, 4, 0), row(value, 4, 1));
    };
    auto [upTo0, upTo1] = halves(d.upTo);
    auto [behind0, behind1] = halves(d.behind);
    auto [keys0, keys1] = halves(k);
    Value earlier = g.mul(keys0, exp(behind0)), queries1 = halves(q).second, later = exp(upTo1);
    auto join = [&](Value products, Value with1) {
      Value between = contract("h b n m u k, h b n m t k -> h b n m u t", earlier, g.mul(with1, later));
      auto place = [&](Value block, int64_t u, int64_t t) { return g.pad(g.pad(block, 4, u, 2 * size), 5, t, 2 * size); };
      Value own = g.reshape(products, with({blocks, 2, size, size}));
      return g.add(g.add(place(row(own, 4, 0), 0, 0), place(row(own, 4, 1), size, size)), place(between, 0, size));
    };
    d.keys = join(d.keys, keys1);
    d.queries = join(d.queries, queries1);
    auto joinSums = [&](Value first, Value second) {
      auto place = [&](Value half, int64_t at) { return g.pad(g.reshape(half, with({blocks, 1, size, keyDim})), 4, at, 2); };
      return g.add(place(first, 0), place(second, 1));
    };
    auto ofAllPositions = [&](Value sum) { return g.broadcast(row(sum, 4, size - 1), shapeOf(sum), {4}); };
    d.behind = joinSums(g.add(behind0, ofAllPositions(upTo1)), behind1);
    d.upTo = joinSums(upTo0, g.add(upTo1, ofAllPositions(upTo0)));
  }
  for (Value *products : {&d.keys, &d.queries})
    *products = g.reshape(*products, with({chunk, chunk}));
  for (Value *sums : {&d.upTo, &d.behind})
    *sums = g.reshape(*sums, shape);
  return d;
}

Value RecurrenceBuilder::deltaScan(Value q, Value k, Value v, Value a, Value beta) {
  FullPrecision full(g.builder);
  Documents own = documents();
  bool ofElements = shapeOf(a).size() > 4;
  // Products of keys with later ones and with queries, with the decays between them, and sums of log decays.
  Value alike, scores, sum, rest;
  if (ofElements) {
    q = perHead(q);
    k = perHead(k);
    ElementDecays d = elementDecays(q, k, a);
    std::tie(alike, scores, sum, rest) = std::tuple(ofAll(d.keys, own.inside), ofAll(d.queries, own.inside), d.upTo, d.behind);
  } else {
    Value decays = ofAll(products(a), own.inside);
    alike = perHead(contract("g b n u k, g b n t k -> g b n u t", k, k));
    alike = g.mul(alike, g.mul(decays, upper(chunk, true)));
    scores = g.mul(perHead(contract("g b n u k, g b n t k -> g b n u t", k, q)), decays);
    sum = sums(a);
    rest = behind(a);
    q = perHead(q);
    k = perHead(k);
  }
  Value toEnd = ofAll(exp(rest), own.toEnd), fromStart = ofAll(exp(sum), own.fromStart);
  Value retained = ofAll(exp(row(sum, 3, chunk - 1)), own.across);
  Value system = g.mul(alike, spread(beta, alike, 3));
  Value inverse = chunk > 1 ? invert(system) : g.add(system, g.fill(1, shapeOf(system)));
  Value added = contract("h b n u t, h b n u v -> h b n t v", inverse, weigh(v, beta));
  Value lost = contract("h b n u t, h b n u k -> h b n t k", inverse, weigh(weigh(k, beta), fromStart));
  Value queries = weigh(q, fromStart), keys = weigh(k, toEnd);
  Value state, y;
  if (valid)
    state = g.reshape(g.state(name("state"), {s.heads, s.keyDim, s.headDim}), {s.heads, rows, s.keyDim, s.headDim});
  for (int64_t n = 0; n < chunks; ++n) {
    auto of = [&](Value x) { return row(x, 2, n); };
    Value values = of(added), out;
    if (state) {
      values = g.add(values, g.scale(contract("h b t k, h b k v -> h b t v", of(lost), state), -1));
      out = contract("h b t k, h b k v -> h b t v", of(queries), state);
    }
    Value inside = contract("h b u t, h b u v -> h b t v", of(scores), values);
    out = out ? g.add(out, inside) : inside;
    SmallVector<int64_t> shape(shapeOf(out));
    shape.insert(shape.begin() + 2, 1);
    out = g.reshape(out, shape);
    if (chunks > 1)
      out = g.pad(out, 2, n, chunks);
    y = y ? g.add(y, out) : out;
    if (n + 1 == chunks && !valid)
      break;
    Value gained = contract("h b u k, h b u v -> h b k v", of(keys), values);
    if (!state) {
      state = gained;
      continue;
    }
    Value factor = ofElements ? spread(of(retained), state, 3) : g.broadcast(of(retained), shapeOf(state), {2, 3});
    state = g.add(g.mul(state, factor), gained);
  }
  if (valid)
    g.keep(g.reshape(state, {s.heads, s.keyDim, s.headDim}));
  return y;
}

Value RecurrenceBuilder::delta(Value h) {
  int64_t keyRows = s.keyHeads * s.keyDim, inner = s.heads * s.headDim, own = perKey * s.headDim;
  int64_t period = 2 * (s.keyDim + own), all = 2 * (keyRows + inner), convolved = 2 * keyRows + inner;
  // A power of two, of which a sequence has at most 32.
  int64_t least = llvm::divideCeil(sequence, 32), wanted = valid ? sequence : std::min(s.chunk, sequence);
  setChunk(int64_t(llvm::PowerOf2Ceil(uint64_t(std::max(least, wanted)))));
  bool apart = this->keys.apart;
  // Files hold all parts of a head of keys together, or queries, then keys, then values, or each in a tensor.
  const auto &parts = this->keys.parts;
  bool alone = !parts.q.empty();
  auto projected = [&](StringRef part, int64_t begin, int64_t count) {
    FileRows where{begin, all, period, {0, count, 1}};
    if (alone)
      return project(part, part, h, {}, s.keyHeads * count, false);
    if (apart)
      where = {s.keyHeads * begin, convolved};
    return project(part, apart ? "in_proj_qkv" : "in_proj_qkvz", h, where, s.keyHeads * count, false);
  };
  auto nameOf = [&](StringRef own, StringRef usual) { return alone ? own : usual; };
  Value q = projected(nameOf(parts.q, "in_proj_q"), 0, s.keyDim);
  Value k = projected(nameOf(parts.k, "in_proj_k"), s.keyDim, s.keyDim);
  Value v = projected(nameOf(parts.v, "in_proj_v"), 2 * s.keyDim, own);
  // A product, or two with a narrow one between.
  auto narrowed = [&](StringRef first, StringRef second, int64_t count) {
    Value between = first.empty() ? h : project(first, first, h, {}, s.headDim, false);
    return project(second, second, between, {}, count, false);
  };
  Value z = apart  ? project("in_proj_z", "in_proj_z", h, {}, inner, false)
            : alone ? narrowed(parts.zFirst, parts.z, inner)
                    : projected("in_proj_z", 2 * s.keyDim + own, own);
  auto gate = [&](StringRef part, int64_t begin) {
    FileRows where{begin, 2 * s.heads, 2 * perKey, {0, perKey, 1}};
    bool whole = apart || alone;
    return project(part, whole ? part : "in_proj_ba", h, whole ? FileRows{} : where, s.heads, false);
  };
  Value beta = g.redistribute(gate(nameOf(parts.b, "in_proj_b"), 0));
  bool ofElements = this->keys.mixer == Mixer::ElementDelta;
  Value dt = g.redistribute(ofElements ? narrowed(parts.aFirst, parts.a, keyRows) : gate(nameOf(parts.a, "in_proj_a"), perKey));
  q = g.redistribute(q);
  k = g.redistribute(k);
  v = g.redistribute(v);
  auto convolveOwn = [&](StringRef own, StringRef usual, Value x, int64_t begin) {
    bool joined = own.empty();
    Value y = convolve(joined ? usual : own, joined ? "conv1d" : own, x, joined ? FileRows{begin, convolved} : FileRows{});
    return g.activation(s.activation, y);
  };
  q = convolveOwn(parts.convolutionQ, "conv1d_q", q, 0);
  k = convolveOwn(parts.convolutionK, "conv1d_k", k, keyRows);
  v = convolveOwn(parts.convolutionV, "conv1d_v", v, 2 * keyRows);
  g.part(name("keys"));
  // Of length one: the root of a mean is that of a sum over the root of the size.
  double root = std::sqrt(double(s.keyDim));
  auto unit = [&](Value x, double factor) {
    x = g.reshape(x, {rows, sequence, s.keyHeads, s.keyDim});
    return g.scale(g.norm(NormKind::RMS, x, {}, {}, 1e-6 / double(s.keyDim), false), factor / root);
  };
  q = unit(q, 1 / root);
  k = unit(k, 1);
  v = g.reshape(v, {rows, sequence, s.heads, s.headDim});
  Value a;
  {
    int64_t each = ofElements ? s.keyDim : 1;
    Value bias = parameter("dt_bias", {s.heads * each}, ofElements ? std::log(std::expm1(0.01)) : 1);
    SmallVector<int64_t> ofLog{s.heads}, all{rows, sequence, s.heads};
    if (parts.logsAreRows)
      ofLog = {1, 1, s.heads, 1};
    Value log = parameter("A_log", ofLog, std::log(8.0));
    g.part(name("steps"));
    FullPrecision full(g.builder);
    Value rate = exp(g.reshape(log, {s.heads})), steps = g.add(dt, bias);
    if (ofElements) {
      all.push_back(each);
      steps = g.reshape(steps, all);
      rate = g.broadcast(rate, all, {0, 1, 3});
    }
    steps = s.decayBound < 0 ? g.scale(make<SigmoidOp>(g.mul(steps, rate)), s.decayBound) : g.mul(softplus(steps), g.scale(rate, -1));
    a = chunked(ofTokens(steps));
    beta = chunked(ofTokens(g.scale(make<SigmoidOp>(beta), s.gateFactor)));
  }
  g.part(name("scan"));
  Value y = g.redistribute(whole(deltaScan(chunked(q), chunked(k), chunked(v), a, beta)));
  // Normalized head by head, and then gated.
  std::string norm = name(nameOf(parts.norm, "norm")), weight = norm + ".weight";
  g.part(norm);
  Value w = g.weight({weight, {s.headDim}, 0, 1.0});
  y = g.norm(NormKind::RMS, y, w, {}, this->keys.normEps > 0 ? this->keys.normEps : m.eps, false);
  z = ofElements ? make<SigmoidOp>(z) : g.activation("silu", z);
  y = g.mul(g.reshape(y, {rows, sequence, inner}), z);
  return output(nameOf(parts.o, "out_proj"), y);
}
