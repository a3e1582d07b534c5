//===- BuildModel.cpp - the module of a model ---------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// One stack of layers for all families. What is computed is what transformers' modeling files
// compute. Weights are [out, in], and queries, keys and values have variables of their
// own, so that each can be divided by heads; where files hold them otherwise, their
// storage says so.
//
// Heads of which a part turns, or whose pairs are neighbours, are permuted when they are
// read: halves that turn together come first in the two halves of a head, and what does
// not turn has frequency 0. Queries and keys are permuted alike, so scores are the same.
//
//===----------------------------------------------------------------------===//
#include "AttentionRows.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::frontend;

//===--- one layer ----------------------------------------------------------===//

namespace {
/// What layers have in common; null where they have it not.
struct LayerValues {
  Value slopes = {}, distances = {};
  Value temperatures = {}; ///< of queries that do not turn
  Value lengths = {};      ///< of the sequences that an encoder reads
  Value states = {};       ///< that an encoder gives, for a decoder
  int64_t stateCount = 0;  ///< of a sequence
  Value keys = {}, values = {}; ///< of an earlier layer
  Value inputs = {};            ///< of each layer of a run, of the token itself
  Value starts = {};            ///< of each layer of a run, of the number that the second of two attentions is multiplied by
  Value firsts = {};            ///< 1 where a document begins, else 0, where sequences have several
  Value valid = {};             ///< 1 for tokens, 0 for what pads a call that generates
  Value rates = {};             ///< of heads with lightning attention, of each layer of a run
  Value begins = {};            ///< as `firsts`, for recurrences that ask for it, also where sequences are one document
};

/// Builds one layer.
struct LayerBuilder {
  LayerGraph &g;
  const Model &m;
  const LayerKind &kind;
  int64_t rows, sequence;
  LayerValues of;
  const LayerNames &names = m.family.names;
  /// Names of its norms.
  struct Norms {
    StringRef attention, attentionPost, mlp, mlpPost;
  };
  Norms norms() const {
    const auto &own = m.family.recurrence.norms;
    bool recurs = kind.mixer != Mixer::Attention && kind.mixer != Mixer::None;
    if (recurs && !own.attention.empty())
      return {own.attention, {}, own.mlp, {}};
    if (!m.postNorms)
      return {names.attentionNorm, {}, names.mlpNorm, {}};
    return {names.attentionNorm, names.attentionPostNorm, names.mlpNorm, names.mlpPostNorm};
  }

  /// A weight and bias of `name`, read from `tensor` if that is another one.
  Value linear(StringRef name, Value x, int64_t in, int64_t out, bool biased, double std,
               StringRef tensor = {}, const FileRows &rows = {}) {
    g.part(name);
    auto named = [&](StringRef part) {
      return tensor.empty() ? std::string() : (tensor + part).str();
    };
    std::string weight = (name + ".weight").str(), bias = (name + ".bias").str();
    if (m.family.scaledByInputs)
      std = m.std / std::sqrt(double(in) * double(name == names.q || name == names.crossQ ? m.headDim : 1));
    Value w = g.weight({weight, {out, in}, std, 0, named(".weight"), m.family.transposed, rows});
    return g.linear(x, w,
                    biased ? g.weight({bias, {out}, 0, 0, named(".bias"), false, rows}) : Value());
  }

  /// A part without a name is x itself.
  Value norm(StringRef name, Value x, int64_t size, const FileRows &rows = {}) {
    if (name.empty())
      return x;
    const Family &f = m.family;
    std::string weight = (name + ".weight").str(), bias = (name + ".bias").str();
    g.part(name);
    Value w, b;
    if (m.normWeight)
      w = g.weight({weight, {size}, 0, f.normPlusOne ? 0.0 : 1.0, {}, false, rows});
    if (m.normBias)
      b = g.weight({bias, {size}, 0, 0, {}, false, rows});
    return g.norm(f.norm, x, w, b, m.eps, f.normPlusOne);
  }

  /// Each head normalized, with a weight of its own.
  Value normApart(StringRef name, Value x, int64_t heads, const FileRows &rows) {
    // Files have one tensor, or one for each head.
    auto [before, after] = name.split(".{head}");
    g.part(before);
    std::string weight = (before + after + ".weight").str(), tensor = (name + ".weight").str();
    int64_t rowDim = before == name ? 1 : 0;
    Value w = g.weight({weight, {heads, m.headDim}, 0, 1.0, tensor, false, rows, rowDim});
    return g.mul(g.norm(m.family.norm, x, {}, {}, m.eps, false), w);
  }

  /// Where the `size` elements of a norm of queries or keys lie.
  FileRows normRows(int64_t size) {
    FileRows rows;
    if (!isPermuted(m))
      return rows;
    rows.full = size;
    rows.period = m.headDim;
    addHead(rows.runs, m, 0, true);
    return rows;
  }

  Value attention(Value h, Value cos, Value sin);
  /// What pairs of heads give, as one head of twice the width.
  Value difference(Value a);
  /// What heads give, [rows, sequence, heads, width], times a function of h.
  Value gateHeads(Value a, Value h);
  /// Attention of a decoder to what an encoder gives.
  Value crossAttention(Value h);
  /// xIELU of what the MLP's first product gives.
  Value xielu(Value x);
  /// Queries times the scales of their positions.
  Value temper(Value q);
  Value mlp(Value h);
  /// What a layer adds of the token itself to x, which decides how much.
  Value ofToken(Value x);
  /// x + h, where h is what attention or the MLP gives.
  Value residual(Value x, Value h, double dropout) {
    return g.add(x, g.dropout(g.scale(h, m.residualFactor), dropout));
  }
  Value build(Value cos, Value sin);
  /// A layer of two attentions and two MLPs, with experts beside the second of each.
  Value buildTwice(Value cos, Value sin);
};
} // namespace

Value LayerBuilder::attention(Value h, Value cos, Value sin) {
  if (kind.matrixAttends)
    return linear("self_attn.linear_attn", h, m.hidden, m.hidden, m.outputBias, m.projectionStd);
  if (m.family.latent.used)
    return buildLatentAttention(g, m, kind, h, cos, sin);
  int64_t d = m.headDim, dims[] = {d, d, m.valueDim}, queries = m.heads * m.valueDim;
  StringRef parts[] = {names.q, names.k, names.v}, norms[] = {names.qNorm, names.kNorm};
  int64_t counts[] = {m.heads, m.kvHeads, m.kvHeads};
  Value qkv[3];
  // Layers that use keys and values of others have queries alone.
  int own = kind.reuses ? 1 : 3, turning = std::min(own, 2);
  auto split = [&](int i) {
    g.part(parts[i]);
    qkv[i] = g.reshape(qkv[i], {rows, sequence, counts[i], dims[i]});
  };
  for (int i = 0; i < own; ++i) {
    if (i == 2 && kind.valuesAreKeys) {
      qkv[2] = qkv[1];
      continue;
    }
    qkv[i] =
        linear(parts[i], h, m.hidden, counts[i] * dims[i], m.qkvBias, m.std, names.qkv, rowsOf(m, i));
    if (i < 2 && m.headNorm == HeadNorm::Whole)
      qkv[i] = norm(norms[i], qkv[i], counts[i] * d, normRows(counts[i] * d));
    qkv[i] = g.clamp(qkv[i], m.clip);
    if (!names.qkv.empty())
      split(i);
  }
  for (int i = 0; i < own && names.qkv.empty(); ++i)
    split(i);
  for (int i = 0; i < turning; ++i) {
    if (m.headNorm == HeadNorm::Each)
      qkv[i] = norm(norms[i], qkv[i], d, normRows(d));
    if (m.headNorm == HeadNorm::Apart)
      qkv[i] = normApart(norms[i], qkv[i], counts[i], normRows(d));
  }
  if (kind.table >= 0) {
    g.part(names.rotary);
    for (int i = 0; i < turning; ++i)
      qkv[i] = g.rope(qkv[i], cos, sin);
    for (int i = 0; i < 2 && m.headNorm == HeadNorm::Turned; ++i) {
      g.part(norms[i]);
      qkv[i] = g.norm(m.family.norm, qkv[i], {}, {}, m.eps, false);
    }
  }
  for (int i = 0; i < 2 && m.headNorm == HeadNorm::After; ++i)
    qkv[i] = norm(norms[i], qkv[i], d, normRows(d));
  if (of.temperatures && (kind.table < 0 || m.tempersTurned))
    qkv[0] = temper(qkv[0]);
  if (kind.reuses) {
    qkv[1] = g.shared(of.keys, "keys");
    qkv[2] = g.shared(of.values, "values");
  } else if (m.family.normsValues) {
    g.part("self_attn.v_norm");
    qkv[2] = g.norm(m.family.norm, qkv[2], {}, {}, m.eps, false);
  }
  qkv[2] = g.scale(qkv[2], m.valueFactor);
  if (m.family.differential.used) {
    // Both attentions of a pair have the values of two heads.
    int64_t pairs = m.kvHeads / 2;
    g.part(names.v);
    qkv[2] = g.reshape(qkv[2], {rows, sequence, pairs, 2 * d});
    qkv[2] = g.broadcast(qkv[2], {rows, sequence, pairs, 2, 2 * d}, {3});
    qkv[2] = g.reshape(qkv[2], {rows, sequence, m.kvHeads, 2 * d});
  }
  if (kind.stores) {
    g.setLastSum(1, qkv[1]);
    g.setLastSum(0, qkv[2]);
  }
  g.part(names.attention);
  Value sinks;
  if (kind.sinks)
    sinks = g.weight({m.family.sinks, {m.heads}, m.std});
  Value a = g.attention(qkv[0], qkv[1], qkv[2],
                        {of.slopes, sinks, of.distances, of.states ? Value() : of.lengths},
                        specOf(m, kind));
  if (m.family.differential.used)
    a = difference(a);
  if (m.gatesHeads)
    a = gateHeads(a, h);
  a = g.reshape(a, {rows, sequence, queries});
  if (m.family.gatedAttention) {
    FileRows where{d, 2 * queries, 2 * d, {0, d, 1}};
    Value gate = linear(names.gateOfHeads, h, m.hidden, queries, m.qkvBias, m.std, names.q, where);
    a = g.mul(a, train::SigmoidOp::create(g.builder, g.where(), gate));
  }
  a = linear(names.o, a, queries, m.hidden, m.outputBias, m.projectionStd);
  return kind.lastBias ? g.add(a, g.weight({m.family.lastOutputBias, {m.hidden}})) : a;
}

Value LayerBuilder::difference(Value a) {
  // From [.., pairs of key heads, first or second attention, heads of a group, width].
  int64_t pairs = m.kvHeads / 2, group = m.heads / m.kvHeads, width = 2 * m.headDim;
  g.part("self_attn.lambda");
  a = g.reshape(a, {rows, sequence, pairs, 2, group * width});
  SmallVector<int64_t> shape{rows, sequence, pairs, 1, group * width};
  Value first = g.slice(a, 3, 0, 1), second = g.slice(a, 3, 1, 1);
  // The number is exp(q1 k1) - exp(q2 k2) + its start, which differs by layer.
  std::optional<FullPrecision> full(g.builder);
  auto vectors = [&](StringRef number) {
    auto vector = [&](StringRef name) {
      std::string weight = ("self_attn.lambda_" + name + number).str();
      return g.weight({weight, {m.headDim}, m.lambdaStd});
    };
    Value product = g.mul(vector("q"), vector("k"));
    return train::ExpOp::create(g.builder, g.where(), g.sum(product)).getResult();
  };
  Value one = vectors("1"), two = vectors("2"), start = g.reshape(g.each(of.starts, "lambda_init"), {});
  Value lambda = g.add(g.add(one, g.scale(two, -1)), start), rest = g.add(g.fill(1, {}), g.scale(start, -1));
  full.reset();
  SmallVector<int64_t> all{0, 1, 2, 3, 4};
  a = g.add(first, g.scale(g.mul(second, g.broadcast(lambda, shape, all)), -1));
  a = g.reshape(a, {rows, sequence, m.heads / 2, width});
  a = g.norm(NormKind::RMS, a, {}, {}, m.eps, false);
  return g.mul(a, g.broadcast(rest, {rows, sequence, m.heads / 2, width}, {0, 1, 2, 3}));
}

Value LayerBuilder::gateHeads(Value a, Value h) {
  const HeadGate &gate = m.family.headGate;
  ArrayRef<int64_t> shape = cast<RankedTensorType>(a.getType()).getShape();
  int64_t width = m.gatesElements ? shape[3] : 1;
  Value y = linear(gate.part, h, m.hidden, m.heads * width, false, m.std);
  if (gate.softplus) {
    // log(exp(y) + exp(0))
    FullPrecision full(g.builder);
    y = g.reshape(y, {rows, sequence, m.heads * width, 1});
    y = train::LogSumExpOp::create(g.builder, g.where(), g.pad(y, 3, 0, 2));
  } else {
    y = train::SigmoidOp::create(g.builder, g.where(), y);
  }
  return g.mul(a, m.gatesElements ? g.reshape(y, shape) : g.broadcast(y, shape, {3}));
}

Value LayerBuilder::crossAttention(Value h) {
  int64_t d = m.headDim, width = m.heads * d;
  StringRef parts[] = {names.crossQ, names.crossK, names.crossV};
  Value qkv[3];
  for (int i = 0; i < 3; ++i)
    qkv[i] = g.reshape(linear(parts[i], i == 0 ? h : of.states, m.hidden, width, m.qkvBias, m.std),
                       {rows, i == 0 ? sequence : of.stateCount, m.heads, d});
  g.part(names.cross);
  ScoreTerms terms;
  terms.lengths = of.lengths;
  train::AttentionSpec spec;
  spec.scale = kind.scoreScale;
  spec.dropout = m.attentionDropout;
  Value a = g.attention(qkv[0], qkv[1], qkv[2], terms, spec);
  a = g.reshape(a, {rows, sequence, width});
  return linear(names.crossO, a, width, m.hidden, m.outputBias, m.projectionStd);
}

Value LayerBuilder::temper(Value q) {
  g.part("self_attn.temperature");
  FullPrecision full(g.builder);
  SmallVector<int64_t> shape{rows, sequence, m.heads, m.headDim}, dims{2, 3};
  bool ofEachSequence = cast<RankedTensorType>(of.temperatures.getType()).getRank() == 2;
  if (!ofEachSequence)
    dims.insert(dims.begin(), 0);
  return g.mul(q, g.broadcast(of.temperatures, shape, dims));
}

Value LayerBuilder::xielu(Value x) {
  // After Huang and Schlag 2024 (arXiv 2411.13010): beta x + p x^2 where x > 0, else
  // beta x + n (exp(min(x, eps)) - 1 - x). exp(x) - 1 would lose its digits in less than f32.
  FullPrecision full(g.builder);
  SmallVector<int64_t> shape{rows, sequence, m.inner}, all{0, 1, 2};
  auto weight = [&](StringRef name, double value, bool frozen) {
    std::string whole = (names.activation + "." + name).str();
    Weight w{whole, {}, 0, value};
    if (!frozen)
      w.shape = {1};
    w.full = true;
    w.frozen = frozen;
    return g.weight(w);
  };
  auto spread = [&](Value scalar) { return g.broadcast(scalar, shape, all); };
  // log(exp(a) + exp(0)) is the positive number that a stands for.
  auto positive = [&](Value a) -> Value {
    return train::LogSumExpOp::create(g.builder, g.where(), g.pad(a, 0, 0, 2));
  };
  auto numberOf = [](double value) { return std::log(std::expm1(value)); };
  Value p = positive(weight("alpha_p", numberOf(0.8), false));
  Value n = positive(weight("alpha_n", numberOf(0.3), false));
  Value beta = weight("beta", 0.5, true), eps = weight("eps", -1e-6, true);
  n = g.add(beta, n);
  auto exp = [&](Value y) -> Value { return train::ExpOp::create(g.builder, g.where(), y); };
  Value above = g.activation("relu", x), below = g.scale(x, -1);
  below = g.activation("relu", below);
  // min(x, eps) = eps - max(eps - x, 0).
  Value least = g.add(spread(eps), g.scale(x, -1));
  least = g.add(spread(eps), g.scale(g.activation("relu", least), -1));
  // 1 where x > 0, else 0, with no gradient: relu has none at 0, and clamp none above 1.
  Builder &b = g.builder;
  Value isAbove = train::ClampOp::create(g.builder, g.where(), g.scale(above, 1e30),
                                         b.getF64FloatAttr(0), b.getF64FloatAttr(1));
  // exp(min(x, eps)) - 1 - min(x, 0) is exp(eps) - 1 where x > 0, which is taken away there.
  Value excess = g.scale(g.add(exp(eps), g.fill(-1, {})), -1);
  Value curve = g.add(g.add(exp(least), g.fill(-1, shape)), below);
  curve = g.add(curve, g.mul(spread(excess), isAbove));
  Value y = g.add(g.mul(spread(p), g.mul(above, above)), g.mul(spread(n), curve));
  return g.add(y, g.mul(spread(beta), x));
}

Value LayerBuilder::mlp(Value h) {
  if (kind.sparse && !m.family.experts.beside && !m.family.twice)
    return buildExperts(g, m, rows, sequence, h);
  if (kind.matrixFeeds)
    return linear("mlp.linear_mlp", h, m.hidden, m.hidden, false, m.projectionStd);
  int64_t inner = m.inner;
  if (!m.gated) {
    h = linear(names.plainUp.empty() ? names.up : names.plainUp, h, m.hidden, inner, m.mlpBias, m.std);
    g.part(names.activation);
    h = m.activation == xieluName ? xielu(h) : g.activation(m.activation, h);
  } else {
    bool fused = !names.gateUp.empty();
    FileRows first{0, fused ? 2 * inner : 0}, second{fused ? inner : 0, fused ? 2 * inner : 0};
    if (m.family.gateUpInTurns) {
      first = {0, 2 * inner, 2 * inner, {0, inner, 2}};
      second = {1, 2 * inner, 2 * inner, {0, inner, 2}};
    }
    Value gate = linear(names.gate, h, m.hidden, inner, m.mlpBias, m.std, names.gateUp, first);
    Value up = linear(names.up, h, m.hidden, inner, m.mlpBias, m.std, names.gateUp, second);
    g.part(names.activation);
    h = g.gated(m.activation, g.scale(gate, m.factors.mlp[0]), up, m.gate);
  }
  h = g.dropout(h, m.innerDropout);
  return g.scale(linear(names.down, h, inner, m.hidden, m.mlpBias, m.projectionStd), m.factors.mlp[1]);
}

Value LayerBuilder::build(Value cos, Value sin) {
  int64_t hidden = m.hidden;
  if (kind.table >= 0) {
    cos = g.shared(cos, "cos");
    sin = g.shared(sin, "sin");
  }
  auto share = [&](Value &value, StringRef name) {
    if (value)
      value = g.shared(value, name);
  };
  share(of.slopes, "slopes");
  share(of.distances, "distances");
  share(of.lengths, "source_lengths");
  share(of.states, "source_states");
  if (kind.table < 0 || m.tempersTurned)
    share(of.temperatures, "temperatures");
  if (m.family.relative.ofLayers) {
    std::string table = (m.family.relative.table + ".weight").str();
    g.part(m.family.relative.table);
    Value rows = g.weight({table, {m.buckets, m.heads}, m.std / std::sqrt(double(m.hidden))});
    of.distances = g.distances(rows, sequence, m.maxDistance, !m.family.encoder);
  }
  if (m.family.twice)
    return buildTwice(cos, sin);
  Value x = g.input();
  if (!m.normFirst) {
    x = residual(x, attention(x, cos, sin), m.residualDropout);
    x = norm(names.attentionNorm, x, hidden);
    if (of.states)
      x = norm(names.crossNorm, residual(x, crossAttention(x), m.residualDropout), hidden);
    return norm(names.mlpNorm, residual(x, mlp(x), m.mlpDropout), hidden);
  }
  Norms norms = this->norms();
  if (kind.mixer == Mixer::None && !m.family.recurrence.alone)
    return residual(x, mlp(norm(norms.mlp, x, hidden)), m.mlpDropout);
  Value h = kind.normed ? norm(norms.attention, x, hidden) : x;
  if (kind.mixer == Mixer::None)
    return residual(x, mlp(h), m.mlpDropout);
  bool recurs = kind.mixer != Mixer::Attention;
  if (recurs) {
    share(of.firsts, "document_starts");
    share(of.valid, "valid");
    share(of.begins, "sequence_starts");
  }
  RecurrenceInputs inputs{of.firsts, of.valid, of.begins};
  if (recurs && of.rates)
    inputs.rates = g.each(of.rates, "rates");
  Value a = recurs ? buildRecurrence(g, m, kind, h, inputs) : attention(h, cos, sin);
  if (recurs && m.family.recurrence.beside) {
    Value attended = attention(g.scale(h, m.factors.attentionInput), cos, sin);
    a = g.add(g.scale(a, m.factors.mixerOutput), g.scale(attended, m.factors.attentionOutput));
  }
  if (m.family.normedResiduals.used) {
    auto join = [&](Value stream, Value part, const std::array<double, 2> &factors) {
      return g.add(g.scale(stream, factors[0]), g.scale(part, factors[1]));
    };
    h = norm(norms.mlp, join(h, a, recurs ? m.residuals.mixer : m.residuals.attention), hidden);
    return join(h, mlp(h), m.residuals.mlp);
  }
  a = norm(norms.attentionPost, a, hidden);
  if (!kind.feedsForward)
    return residual(x, a, m.residualDropout);
  if (m.parallel) {
    // Without a norm of its own the MLP reads what attention reads.
    bool own = !names.mlpNorm.empty() && !m.family.parallelShares;
    Value shared = own ? norm(names.mlpNorm, x, hidden) : h;
    Value y = mlp(shared);
    return residual(residual(x, a, m.residualDropout), y, m.mlpDropout);
  }
  x = residual(x, a, m.residualDropout);
  if (of.states)
    x = residual(x, crossAttention(norm(names.crossNorm, x, hidden)), m.residualDropout);
  h = norm(norms.mlp, x, hidden);
  Value y = mlp(h);
  if (kind.sparse && m.family.experts.beside) {
    Value own = norm((names.mlpNorm + "_2").str(), x, hidden);
    Value ofExperts = buildExperts(g, m, rows, sequence, own, x);
    y = g.add(norm((names.mlpPostNorm + "_1").str(), y, hidden), norm((names.mlpPostNorm + "_2").str(), ofExperts, hidden));
  }
  x = residual(x, norm(norms.mlpPost, y, hidden), m.mlpDropout);
  if (of.inputs)
    x = g.add(x, ofToken(x));
  if (m.family.layerScale.empty())
    return x;
  g.part(m.family.layerScale);
  Weight scale{m.family.layerScale, {1}, 0, 1};
  scale.frozen = true;
  return g.mul(x, g.broadcast(g.reshape(g.weight(scale), {}), {rows, sequence, hidden}, {0, 1, 2}));
}

Value LayerBuilder::buildTwice(Value cos, Value sin) {
  Value x = g.input(), ofExperts;
  for (int64_t half : {0, 1}) {
    g.half = half;
    x = residual(x, attention(norm(names.attentionNorm, x, m.hidden), cos, sin), m.residualDropout);
    Value h = norm(names.mlpNorm, x, m.hidden);
    if (half == 0) {
      g.half = std::nullopt;
      ofExperts = buildExperts(g, m, rows, sequence, h);
      g.half = half;
    }
    x = residual(x, mlp(h), m.mlpDropout);
  }
  return g.add(x, ofExperts);
}

Value LayerBuilder::ofToken(Value x) {
  int64_t width = m.inputWidth;
  Value inputs = g.each(of.inputs, "inputs");
  Value h = linear("per_layer_input_gate", x, m.hidden, width, false, m.std);
  g.part("per_layer_input_gate");
  h = g.mul(g.activation(m.activation, h), inputs);
  h = linear("per_layer_projection", h, width, m.hidden, false, m.projectionStd);
  return norm("post_per_layer_input_norm", h, m.hidden);
}

//===--- the whole model ----------------------------------------------------===//

/// A norm outside of the layers. Its tensors' names begin with `base`.
static Value buildNorm(ModelGraph &g, const Model &m, StringRef base, StringRef name, Value x) {
  const Family &f = m.family;
  int64_t width = cast<RankedTensorType>(x.getType()).getShape().back();
  // Two stacks have norms of one name.
  std::string part = ((g.source ? base : "") + name).str();
  g.part(part);
  std::string weight = part + ".weight", bias = part + ".bias";
  Value w, b;
  if (m.normWeight)
    w = g.weight({weight, {width}, 0, f.normPlusOne ? 0.0 : 1.0, (base + name + ".weight").str()});
  if (m.normBias)
    b = g.weight({bias, {width}, 0, 0, (base + name + ".bias").str()});
  return g.norm(f.norm, x, w, b, m.eps, f.normPlusOne);
}

/// Rows of the token table for `ids`, and of the position table if there is one. `table`, of which there
/// may be one already, is that of tokens.
static Value buildEmbedding(ModelGraph &g, const Model &m, Value &table, Value ids,
                            int64_t sequence) {
  const Family &f = m.family;
  auto weight = [&](StringRef name, int64_t rows, int64_t width) {
    // Two stacks have the table of tokens in common, and no others.
    StringRef base = g.source && name == f.embedding ? StringRef() : StringRef(m.base);
    StringRef ofStack = g.source ? base : StringRef();
    std::string whole = (ofStack + name).str();
    g.part(whole);
    return g.weight({whole + ".weight", {rows, width}, m.std, 0, (base + name + ".weight").str()});
  };
  if (!table)
    table = weight(f.embedding, m.vocabulary + f.moreRows, m.embeddingWidth);
  Value x = g.scale(g.embedding(table, ids, m.padding), m.embeddingFactor);
  bool projected = m.embeddingWidth != m.hidden || f.projectsAlways;
  int64_t width = f.projectsLast ? m.embeddingWidth : m.hidden;
  if (projected && !f.projectsLast)
    x = g.linear(x, weight(f.projectIn, m.hidden, m.embeddingWidth));
  if (f.embeddingNormFirst)
    x = buildNorm(g, m, m.base, f.embeddingNorm, x);
  if (!f.typeTable.empty()) {
    // All tokens are of the first segment.
    Value types = weight(f.typeTable, m.types, width);
    x = g.add(x, g.reshape(g.firstRows(types, 1), {width}));
  }
  if (!f.positionTable.empty()) {
    // No position selects the first rows, but they are of the table that is trained.
    Value positions = weight(f.positionTable, m.positionOffset + m.positions, width);
    x = g.add(x, g.positionRows(positions, sequence, m.positionOffset));
  }
  if (f.sinusoids.used) {
    g.part(m.base + "embed_positions");
    int64_t first = f.sinusoids.afterPadding ? m.padding + 1 : f.sinusoids.first;
    x = g.add(x, g.sinusoids(sequence, m.hidden, first, f.sinusoids.toEnd));
  }
  if (!f.embeddingNorm.empty() && !f.embeddingNormFirst)
    x = buildNorm(g, m, m.base, f.embeddingNorm, x);
  x = g.dropout(x, m.embeddingDropout);
  if (!projected || !f.projectsLast)
    return x;
  std::string bias = (f.projectIn + ".bias").str();
  Value matrix = weight(f.projectIn, m.hidden, m.embeddingWidth);
  return g.linear(x, matrix, g.weight({bias, {m.hidden}, 0, 0, m.base + bias}));
}

/// What layers add of tokens: of all layers one after the other, [rows, sequence, layers * width].
static Value buildInputs(ModelGraph &g, const Model &m, Value ids, Value embedded) {
  int64_t width = m.inputWidth, all = m.layers * width;
  auto weight = [&](StringRef name, ArrayRef<int64_t> shape, double std, double value) {
    std::string variable = (name + ".weight").str();
    g.part(name);
    return g.weight({variable, SmallVector<int64_t>(shape), std, value, m.base + variable});
  };
  Value table = weight("embed_tokens_per_layer", {m.inputVocabulary, all}, m.std, 0);
  Value tokens = g.scale(g.embedding(table, ids, m.padding), std::sqrt(double(width)));
  Value project = weight("per_layer_model_projection", {all, m.hidden}, m.std, 0);
  Value context = g.scale(g.linear(embedded, project), 1 / std::sqrt(double(m.hidden)));
  SmallVector<int64_t> shape(cast<RankedTensorType>(context.getType()).getShape());
  Value apart = g.reshape(context, {shape[0], shape[1], m.layers, width});
  apart = g.norm(m.family.norm, apart, weight("per_layer_projection_norm", {width}, 0, 1), {}, m.eps, false);
  return g.scale(g.add(g.reshape(apart, shape), tokens), std::sqrt(0.5));
}

/// Those of the layers of `run`, [count, rows, sequence, width].
static Value inputsOf(ModelGraph &g, const Model &m, Value inputs, LayerRun run) {
  g.part("per_layer_inputs");
  ArrayRef<int64_t> shape = cast<RankedTensorType>(inputs.getType()).getShape();
  int64_t width = m.inputWidth;
  Value stack;
  for (int64_t i = 0; i < run.count; ++i) {
    Value one = g.slice(inputs, 2, (run.first + i) * width, width);
    one = g.reshape(one, {1, shape[0], shape[1], width});
    if (run.count > 1)
      one = g.pad(one, 0, i, run.count);
    stack = stack ? g.add(stack, one) : one;
  }
  return stack;
}

/// Where the number begins that the second of two attentions is multiplied by, of each layer of `run`, [count, 1].
static Value buildStarts(ModelGraph &g, LayerRun run) {
  g.part("lambda_init");
  FullPrecision full(g.builder);
  Value stack;
  for (int64_t i = 0; i < run.count; ++i) {
    Value one = g.pad(g.fill(0.8 - 0.6 * std::exp(-0.3 * double(run.first + i)), {1, 1}), 0, i, run.count);
    stack = stack ? g.add(stack, one) : one;
  }
  return stack;
}

/// The scale of queries at each position, [sequence] or [rows, sequence].
static Value buildTemperatures(ModelGraph &g, const Model &m) {
  g.part("temperatures");
  FullPrecision full(g.builder);
  int64_t every = m.everyPosition;
  Value table;
  for (int64_t n = 0; n * every <= g.positionCount(); ++n) {
    // The position whose number from 1 on is n * every is the first of this piece.
    int64_t before = m.tempersTurned ? 0 : 1;
    int64_t begin = std::max<int64_t>(n * every - before, 0);
    int64_t end = std::min((n + 1) * every - before, g.positionCount());
    if (begin == end)
      continue;
    Value piece = g.fill(1 + m.temperature * std::log1p(double(n)), {end - begin, 1});
    piece = g.pad(piece, 0, begin, g.positionCount());
    table = table ? g.add(table, piece) : piece;
  }
  Value scales = g.positionRows(table, g.sequence);
  SmallVector<int64_t> shape(cast<RankedTensorType>(scales.getType()).getShape().drop_back());
  return g.reshape(scales, shape);
}

/// 1 for the first token of each document, 0 for the others, [rows, sequence].
static Value buildFirsts(ModelGraph &g) {
  g.part("document_starts");
  FullPrecision full(g.builder);
  if (!g.positions)
    return g.redistribute(g.pad(g.fill(1, {g.rows, 1}), 1, 0, g.sequence));
  Value table = g.pad(g.fill(1, {1, 1}), 0, 0, g.positionCount());
  return g.redistribute(g.reshape(g.positionRows(table, g.sequence), {g.rows, g.sequence}));
}

/// 1 for each token that a call reads, 0 for what pads it, whose positions are behind the last, [rows, sequence].
static Value buildValid(ModelGraph &g) {
  g.part("valid");
  return g.reshape(g.positionRows(g.fill(1, {g.positionCount(), 1}), g.sequence), {g.rows, g.sequence});
}

/// What states of heads with lightning attention decay by in the layers of `run`, as logarithms, [count, heads]: as the slopes
/// of linear biases (Press et al. 2022) for any number of heads, and less in later layers.
static Value buildRates(ModelGraph &g, const Model &m, LayerRun run) {
  g.part("rates");
  FullPrecision full(g.builder);
  auto countedFromOne = [&](int64_t count) -> Value {
    Value zeros = g.fill(0, {count});
    Value triangle = train::DecayOp::create(g.builder, g.where(), zeros, zeros, /*strict=*/false);
    return train::ReduceOp::create(g.builder, g.where(), train::ReduceKind::Sum, triangle, ArrayRef<int64_t>{1});
  };
  int64_t heads = m.recurrence.heads;
  Value slopes = g.scale(countedFromOne(heads), -8 * std::log(2.0) / double(heads));
  slopes = train::ExpOp::create(g.builder, g.where(), slopes);
  double step = -1 / (double(m.layers - 1) + 1e-5);
  Value factors = g.add(g.scale(countedFromOne(run.count), step), g.fill(1 + 1e-5 + step * double(run.first - 1), {run.count}));
  return g.mul(g.broadcast(slopes, {run.count, heads}, {0}), g.broadcast(factors, {run.count, heads}, {1}));
}

/// What an encoder's logits are made of.
static Value buildTransform(ModelGraph &g, const Model &m, Value x) {
  const Transform &transform = m.family.transform;
  std::string weight = (transform.dense + ".weight").str(),
              bias = (transform.dense + ".bias").str();
  g.part(transform.dense);
  int64_t width = m.family.projectsLast ? m.embeddingWidth : m.hidden;
  Value w = g.weight({weight, {width, m.hidden}, m.projectionStd});
  x = g.linear(x, w, m.transformBias ? g.weight({bias, {width}}) : Value());
  g.part(transform.function);
  return buildNorm(g, m, "", transform.norm, g.activation(m.transformActivation, x));
}

/// Embeddings, layers and the last norm: of a decoder or an encoder, or of both parts of a model, of which
/// `of` has what the first gives the second.
static Value buildStack(ModelGraph &g, const Model &m, Value &table, Value ids, int64_t sequence,
                        LayerValues of, MutableArrayRef<Value> sums) {
  const Family &f = m.family;
  std::string tensor = (m.base + f.layerPrefix + (f.sharesLayers ? "" : ".{layer}")).str();
  g.sharesLayers = f.sharesLayers;
  if (g.source)
    g.beginStack(of.states ? "decoder" : "encoder", tensor,
                 of.states ? "decoder_layer" : "encoder_layer");
  else
    g.beginStack(f.layerPrefix, tensor);
  Value x = buildEmbedding(g, m, table, ids, sequence);
  SmallVector<std::pair<Value, Value>> angles;
  g.part("rotary_emb");
  for (const RopeTable &entry : m.tables)
    angles.push_back(g.ropeTable(entry.frequencies, entry.scale));
  if (f.alibi) {
    g.part("alibi");
    of.slopes = g.alibiSlopes(m.heads, f.alibi);
  }
  if (m.buckets && !f.relative.ofLayers) {
    g.part((m.base + f.relative.table).str());
    std::string name = (m.base + f.relative.table + ".weight").str();
    Weight rows{name, {m.buckets, m.heads}, m.std / std::sqrt(double(m.hidden))};
    of.distances = g.distances(g.weight(rows), sequence, m.maxDistance, !f.encoder);
  }
  if (m.everyPosition)
    of.temperatures = buildTemperatures(g, m);
  // A document that is generated is alone.
  if (g.generates() && f.recurrence.any())
    of.valid = buildValid(g);
  else if (g.positions && f.recurrence.any())
    of.firsts = buildFirsts(g);
  if (f.recurrence.mixer == Mixer::RealGated)
    of.begins = of.firsts ? of.firsts : buildFirsts(g);
  Value inputs;
  if (m.inputWidth)
    inputs = buildInputs(g, m, ids, x);
  SmallVector<std::pair<Value, Value>> stored(std::max<size_t>(angles.size(), 1)); ///< by kind of layer
  // Layers of one kind in a row share a function.
  for (int64_t first = 0; first < m.layers;) {
    int64_t end = first + 1;
    while (end < m.layers && m.kinds[end] == m.kinds[first])
      ++end;
    LayerRun run{first, end - first};
    first = end;
    const LayerKind &kind = m.kinds[run.first];
    if (kind.skipped)
      continue;
    auto [cos, sin] = kind.table < 0 ? std::pair<Value, Value>() : angles[size_t(kind.table)];
    // Some layers have other sizes.
    Model own = m;
    own.heads = kind.heads ? kind.heads : m.heads;
    own.kvHeads = kind.kvHeads ? kind.kvHeads : m.kvHeads;
    own.inner = kind.inner ? kind.inner : m.inner;
    if (kind.headDim)
      own.headDim = own.valueDim = kind.headDim;
    own.experts = m.expertsOf(kind);
    own.gate.limit = kind.mlpLimit ? kind.mlpLimit : m.gate.limit;
    if (kind.table >= 0)
      own.turned = m.tables[size_t(kind.table)].turned;
    if (inputs)
      of.inputs = inputsOf(g, m, inputs, run);
    of.rates = kind.mixer == Mixer::Lightning ? buildRates(g, m, run) : Value();
    if (f.differential.used)
      of.starts = buildStarts(g, run);
    auto &[keys, values] = stored[size_t(std::max(kind.table, 0))];
    if (kind.reuses)
      std::tie(of.keys, of.values) = std::pair(keys, values);
    SmallVector<Value> carried(sums);
    if (kind.stores) {
      g.part("layers");
      carried.append(2, g.fill(0, {g.rows, sequence, own.kvHeads, own.headDim}));
    }
    x = g.layers(x, run, run.count == m.layers, carried, [&, cos = cos, sin = sin](LayerGraph &layer) {
      return LayerBuilder{layer, own, kind, g.rows, sequence, of}.build(cos, sin);
    });
    llvm::copy(ArrayRef<Value>(carried).take_front(sums.size()), sums.begin());
    if (kind.stores)
      std::tie(keys, values) = std::pair(carried[sums.size()], carried[sums.size() + 1]);
  }
  if (m.normFirst)
    x = buildNorm(g, m, m.base, f.finalNorm, x);
  return f.dropsOutput ? g.dropout(x, m.residualDropout) : x;
}

ImportedModule meshwright::frontend::buildModel(const Model &m, StringRef config,
                                                const ModelOptions &options, MLIRContext &context) {
  const Family &f = m.family;
  bool drops = m.attentionDropout > 0 || m.embeddingDropout > 0 || m.residualDropout > 0 ||
               m.mlpDropout > 0 ||
               m.innerDropout > 0;
  ModelGraph g(context, f.name, options, drops, f.layerPrefix,
               (m.base + f.layerPrefix + ".{layer}").str());
  addExpertInputs(g, m);
  Value table;
  SmallVector<Value, 3> sums = routerSums(g, m);
  LayerValues source;
  if (m.source) {
    source.lengths = g.sourceLengths;
    Value positions = std::exchange(g.positions, Value()); // of the decoder's tokens
    source.states = buildStack(g, *m.source, table, g.source, g.sourceSequence(), source, sums);
    source.stateCount = g.sourceSequence();
    g.positions = positions;
  }
  Value x = buildStack(g, m, table, g.tokens, g.sequence, source, sums);
  if (m.embeddingWidth != m.hidden && !f.projectsLast) {
    std::string project = (f.projectOut + ".weight").str();
    g.part(f.projectOut);
    x = g.linear(
        x, g.weight({project, {m.embeddingWidth, m.hidden}, m.std, 0, m.base + project}));
  }
  if (!f.transform.dense.empty())
    x = buildTransform(g, m, x);
  g.part(f.head);
  Value head = table;
  std::string weight = (f.head + ".weight").str(), bias = (f.head + ".bias").str();
  if (!m.tied)
    head = g.weight({weight, {m.vocabulary, m.embeddingWidth}, m.std});
  if (f.normalizedHead)
    head = g.scale(g.norm(NormKind::RMS, head, {}, {}, 1e-24, false), 1 / std::sqrt(double(m.embeddingWidth)));
  Value logits = g.linear(x, head, m.headBias ? g.weight({bias, {m.vocabulary}}) : Value());
  if (!f.logitBias.empty()) {
    Weight rows{f.logitBias, {1, m.vocabulary}};
    rows.frozen = rows.optional = true;
    g.part(f.logitBias);
    logits = g.add(logits, g.reshape(g.weight(rows), {m.vocabulary}));
  }
  logits = g.softCap(g.scale(logits, m.logitFactor), m.logitCap);
  Value more = routerLoss(g, m, sums);
  g.finish(logits, more, f.name, config, m.vocabulary, m.positions, m.startToken);
  return std::move(g.module);
}
