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
// The gated delta rule (Yang et al. 2024), S_t = d_t S_(t-1) + b_t k_t (v_t - d_t S_(t-1)^T k_t)^T, is the
// same with other values: those of a chunk are solutions of a triangular system, and the state of a chunk
// is needed to make the values of the next one.
//
//===----------------------------------------------------------------------===//
#include "Graph.h"
#include "Model.h"

#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::frontend;
using namespace meshwright::train;

//===--- configuration ------------------------------------------------------===//

namespace {
struct RecurrenceReader {
  Config &config;
  const Recurrence &keys;

  int64_t size(const Key<int64_t> &key, int64_t most = int64_t(1) << 40) {
    if (!key.alias.empty())
      config.alias(key.name, key.alias);
    return key.name.empty() ? key.otherwise : config.size(key.name, key.otherwise, most);
  }
  bool flag(const Key<bool> &key) {
    if (!key.alias.empty())
      config.alias(key.name, key.alias);
    return key.name.empty() ? key.otherwise : config.flag(key.name, key.otherwise);
  }

  /// What layers have, of which the file lists `listed`; an MLP beside it is not meant.
  std::vector<Mixer> mixers(const Model &m, int64_t listed, std::vector<bool> &sparse);
  RecurrenceSizes sizes(const Model &m);
};
} // namespace

std::vector<Mixer> RecurrenceReader::mixers(const Model &m, int64_t listed, std::vector<bool> &sparse) {
  std::vector<Mixer> mixers(listed, keys.mixer);
  auto set = [&](size_t i, StringRef type, StringRef key) {
    if (type == "linear_attention" || type == "mamba" || type == "conv" || type == "M")
      return;
    sparse[i] = sparse[i] && !keys.alone;
    bool windowed = type == m.family.kinds.type && m.family.kinds.listed;
    if (type == "full_attention" || type == "attention" || type == "*" || windowed) {
      mixers[i] = Mixer::Attention;
      return;
    }
    mixers[i] = Mixer::None;
    sparse[i] = type == "moe" || type == "E";
    if (!keys.alone || !(sparse[i] || type == "mlp" || type == "-"))
      config.error(key) << "layer type \"" << type << "\" is not known; "
                        << (keys.alone ? "mamba, attention, mlp and moe (in a pattern M, *, - and E)"
                                       : "linear_attention, mamba, conv, attention and full_attention")
                        << " are";
  };
  auto check = [&](StringRef key, size_t size) {
    if (int64_t(size) == listed)
      return true;
    config.error(key) << "\"" << key << "\" lists " << size << " layers, but the model has " << listed;
    return false;
  };
  if (keys.alone)
    sparse.assign(listed, false);
  if (!keys.listAlias.empty())
    config.alias(keys.list, keys.listAlias);
  if (auto types = keys.list.empty() ? std::nullopt : config.texts(keys.list)) {
    for (StringRef other : {keys.pattern, keys.attends, keys.every.name})
      if (!other.empty())
        config.ignore(other);
    for (size_t i = 0; check(keys.list, types->size()) && i < types->size(); ++i)
      set(i, (*types)[i], keys.list);
    return mixers;
  }
  if (keys.needsList)
    config.error(keys.list) << "the file has no \"" << keys.list << "\", which says what each layer has in place of attention; write it there";
  if (!keys.pattern.empty() && config.has(keys.pattern)) {
    std::string pattern = config.text(keys.pattern, "");
    for (size_t i = 0; check(keys.pattern, pattern.size()) && i < pattern.size(); ++i)
      set(i, StringRef(pattern).substr(i, 1), keys.pattern);
    return mixers;
  }
  if (!keys.attends.empty()) {
    auto numbers = config.counts(keys.attends);
    for (int64_t i = 0; i < listed; ++i)
      if (numbers ? llvm::is_contained(*numbers, i) : keys.allAttend)
        mixers[i] = Mixer::Attention;
  }
  if (keys.every.otherwise > 0)
    for (int64_t i = 0, every = size(keys.every); i < listed; ++i)
      if ((i + 1) % every == 0)
        mixers[i] = Mixer::Attention;
  return mixers;
}

RecurrenceSizes RecurrenceReader::sizes(const Model &m) {
  RecurrenceSizes s;
  s.kernel = size(keys.kernel, 64);
  s.convBias = flag(keys.convBias);
  s.bias = flag(keys.bias);
  s.outputBias = keys.outputBias.name.empty() ? s.bias : flag(keys.outputBias);
  s.normed = flag(keys.normed);
  s.normedFirst = flag(keys.normedFirst);
  s.gateFactor = flag(keys.negative) ? 2 : 1;
  s.activation = m.activation;
  if (!keys.activation.name.empty())
    s.activation = config.text(keys.activation.name, keys.activation.otherwise);
  if (s.activation != "silu" && s.activation != "swish" && keys.mixer != Mixer::Convolution)
    config.error(keys.activation.name.empty() ? m.family.activation.name : keys.activation.name)
        << "activation \"" << s.activation << "\" of a recurrence's convolution is not supported; \"silu\" is";
  if (keys.mixer == Mixer::Convolution) {
    s.outputStd = m.std;
    return s;
  }
  s.heads = size(keys.heads);
  int64_t inner = keys.expand.name.empty() ? 0 : size(keys.expand) * m.hidden;
  StringRef whole = keys.expand.name;
  if (std::optional<int64_t> given = keys.inner.name.empty() ? std::nullopt : config.optionalSize(keys.inner.name, keys.inner.otherwise)) {
    inner = *given;
    whole = keys.inner.name;
  }
  const llvm::json::Value *dim = config.json(keys.headDim.name);
  bool isAuto = dim ? dim->getAsString() == std::optional<StringRef>("auto") : keys.headDim.otherwise == 0;
  s.headDim = isAuto ? std::max<int64_t>(inner / s.heads, 1) : size(keys.headDim);
  s.keyHeads = size(keys.keyHeads);
  s.keyDim = size(keys.keyDim);
  s.chunk = size(keys.chunk);
  if (!keys.limit.empty()) {
    std::tie(s.leastStep, s.mostStep) = config.range(keys.limit, {0, INFINITY});
    if (s.leastStep == 0 && std::isinf(s.mostStep))
      s.mostStep = 0; // a softplus is above 0
  }
  if (!keys.leastStep.name.empty()) {
    config.alias(keys.leastStep.name, keys.leastStep.alias);
    s.leastStep = config.positive(keys.leastStep.name, keys.leastStep.otherwise);
    s.mostStep = INFINITY;
  }
  s.outputStd = m.std;
  if (!keys.scaledOutput.name.empty() && flag(keys.scaledOutput))
    s.outputStd /= std::sqrt(double(m.layers));
  if (config.failed())
    return s;
  if (s.heads % s.keyHeads)
    config.error(keys.keyHeads.name) << keys.heads.name << " = " << s.heads
                                     << " cannot be divided among " << keys.keyHeads.name << " = "
                                     << s.keyHeads << "; change one of them";
  else if (inner && s.heads * s.headDim != inner) {
    auto error = config.error(keys.headDim.name);
    error << s.heads << " heads (" << keys.heads.name << ") of " << s.headDim << " elements (" << keys.headDim.name
          << ") are not the " << inner << " of " << whole;
    if (whole == keys.expand.name)
      error << " times " << m.family.hidden.name;
    error << "; change one of them";
  }
  return s;
}

/// Reports options that recurrences do not support.
static void checkOptions(Config &config, const Model &m, const ModelOptions &options) {
  StringRef name = m.family.name;
  if (!options.mupBase.empty() || options.width)
    config.error("") << "--mup-base: no rule of muP is known for the recurrences and convolutions of "
                     << name << "; leave it out";
}

std::optional<int64_t> meshwright::frontend::listedLayers(Config &config, const Recurrence &keys) {
  if (!keys.listAlias.empty())
    config.alias(keys.list, keys.listAlias);
  if (auto types = keys.list.empty() ? std::nullopt : config.texts(keys.list))
    return int64_t(types->size());
  if (!keys.pattern.empty() && config.has(keys.pattern))
    return int64_t(config.text(keys.pattern, "").size());
  return {};
}

void meshwright::frontend::readRecurrence(Config &config, Model &m, int64_t listed,
                                          const ModelOptions &options) {
  const Recurrence &keys = m.family.recurrence;
  RecurrenceReader reader{config, keys};
  std::vector<bool> sparse(listed);
  for (int64_t i = 0; i < std::min(listed, m.layers); ++i)
    sparse[i] = m.kinds[i].sparse;
  std::vector<Mixer> mixers = reader.mixers(m, listed, sparse);
  m.recurrence = reader.sizes(m);
  for (int64_t i = 0; i < m.layers; ++i) {
    LayerKind &kind = m.kinds[i];
    kind.mixer = mixers[i % listed];
    kind.sparse = sparse[i % listed];
    kind.feedsForward = keys.feedsForward && !(keys.alone && kind.mixer != Mixer::None);
    if (kind.mixer == Mixer::Attention || keys.beside)
      continue;
    kind.table = -1;
    kind.scoreScale = 1;
  }
  bool recurs = llvm::any_of(m.kinds, [](const LayerKind &kind) {
    return kind.mixer != Mixer::Attention && kind.mixer != Mixer::None;
  });
  if (recurs && !config.failed())
    checkOptions(config, m, options);
}

//===--- ops ----------------------------------------------------------------===//

namespace {
struct RecurrenceBuilder {
  LayerGraph &g;
  const Model &m;
  int64_t rows, sequence; ///< sequences, and positions of each
  Value firsts;           ///< 1 where a document begins, else 0, [rows, sequence]; null where sequences are one
  Value valid;            ///< 1 for tokens, 0 for what pads a call, [rows, sequence]; null unless it goes on from calls before
  const Recurrence &keys = m.family.recurrence;
  const RecurrenceSizes &s = m.recurrence;
  int64_t perKey = s.keyHeads ? s.heads / s.keyHeads : 0; ///< heads that share a key
  int64_t chunk = 0, chunks = 0; ///< positions of a chunk, and how many a sequence has

  template <typename Op, typename... Args> Value make(Args &&...args) {
    return Op::create(g.builder, g.where(), std::forward<Args>(args)...);
  }
  static ArrayRef<int64_t> shapeOf(Value x) { return cast<RankedTensorType>(x.getType()).getShape(); }
  Value contract(StringRef rule, Value x, Value y) {
    return make<ContractOp>(g.builder.getStringAttr(rule), x, y, Value());
  }
  Value exp(Value x) { return make<ExpOp>(x); }
  Value decay(Value to, Value from, bool strict = false) { return make<DecayOp>(to, from, strict); }
  /// x, [heads, ..], times `factor`, which has no heads.
  Value ofAll(Value x, Value factor) {
    SmallVector<int64_t> dims{0};
    return factor ? g.mul(x, g.broadcast(factor, shapeOf(x), dims)) : x;
  }
  /// log(1 + exp(x)).
  Value softplus(Value x) {
    // The logarithm of exp(x) + exp(0).
    SmallVector<int64_t> shape(shapeOf(x));
    shape.push_back(1);
    return make<LogSumExpOp>(g.pad(g.reshape(x, shape), int64_t(shape.size()) - 1, 0, 2));
  }
  /// x and y where x has no dimension `dim`.
  Value spread(Value x, Value like, int64_t dim) { return g.broadcast(x, shapeOf(like), {dim}); }
  Value slice(Value x, int64_t dim, int64_t from, int64_t count) {
    return shapeOf(x)[dim] == count ? x : make<SliceOp>(x, count, dim, from);
  }
  /// Row `at` of dimension `dim`, which the result does not have.
  Value row(Value x, int64_t dim, int64_t at) {
    SmallVector<int64_t> shape(shapeOf(x));
    shape.erase(shape.begin() + dim);
    return g.reshape(slice(x, dim, at, 1), shape);
  }
  /// x, [rows, sequence, heads, ..], chunk by chunk with heads first, as matrix products need them:
  /// [heads, rows, chunks, chunk, ..], zeros behind the sequence.
  Value chunked(Value x) {
    SmallVector<int64_t> shape(shapeOf(x));
    if (chunk * chunks != sequence)
      x = g.pad(x, 1, 0, chunk * chunks);
    int64_t heads = shape[2], size = shape.size() > 3 ? shape[3] : 1;
    x = make<TransposeBlocksOp>(g.reshape(x, {rows * chunk * chunks, heads, size}));
    SmallVector<int64_t> to{heads, rows, chunks, chunk};
    to.append(shape.begin() + 3, shape.end());
    return g.reshape(x, to);
  }
  /// The inverse of `chunked`.
  Value whole(Value x) {
    int64_t heads = shapeOf(x).front(), size = shapeOf(x).back();
    x = make<TransposeBlocksOp>(g.reshape(x, {heads, rows * chunk * chunks, size}));
    return slice(g.reshape(x, {rows, chunk * chunks, heads, size}), 1, 0, sequence);
  }
  /// x, whose first dimension counts heads of keys, for each head of values.
  Value perHead(Value x) {
    SmallVector<int64_t> shape(shapeOf(x));
    shape.insert(shape.begin() + 1, perKey);
    x = g.broadcast(x, shape, {1});
    shape.erase(shape.begin());
    shape.front() = s.heads;
    return g.reshape(x, shape);
  }
  void setChunk(int64_t size) {
    chunk = size;
    chunks = llvm::divideCeil(sequence, chunk);
  }

  std::string name(const Twine &part) { return (keys.part + "." + part).str(); }
  /// A parameter of each head.
  Value ofHeads(StringRef part, double value) {
    std::string whole = name(part);
    g.part(whole);
    Weight w{whole, {s.heads}, 0, value};
    w.full = true;
    return g.weight(w);
  }
  /// The product of h with rows of the tensor `tensor`, called `part`.
  Value project(StringRef part, StringRef tensor, Value h, const FileRows &where, int64_t count,
                bool biased) {
    std::string base = name(part), file = name(tensor), weight = base + ".weight", bias = base + ".bias";
    g.part(base);
    Value w = g.weight({weight, {count, m.hidden}, m.std, 0, file + ".weight", false, where});
    return g.linear(h, w, biased ? g.weight({bias, {count}, 0, 0, file + ".bias", false, where}) : Value());
  }
  /// The last product.
  Value output(StringRef part, Value x) {
    std::string base = name(part), weight = base + ".weight", bias = base + ".bias";
    g.part(base);
    int64_t width = shapeOf(x).back();
    Value w = g.weight({weight, {m.hidden, width}, s.outputStd});
    return g.linear(x, w, s.outputBias ? g.weight({bias, {m.hidden}}) : Value());
  }
  /// A causal convolution of each of the last dimension's channels over positions: output t sees the
  /// `kernel` inputs up to t. Its weights are rows of the tensor `tensor`.
  Value convolve(StringRef part, StringRef tensor, Value x, const FileRows &where);

  /// x, [rows, sequence, ..], with zeros for what pads a call.
  Value ofTokens(Value x) {
    SmallVector<int64_t> dims;
    for (int64_t d = 2; d < int64_t(shapeOf(x).size()); ++d)
      dims.push_back(d);
    return valid ? g.mul(x, g.broadcast(valid, shapeOf(x), dims)) : x;
  }
  /// The inputs of the convolution `name`, behind those of the calls before that it sees.
  Value behindTail(StringRef name, Value x);

  /// Sums of x, [heads, rows, chunks, chunk], up to and with each position of a chunk.
  Value sums(Value x) { return contract("h b n u, t u -> h b n t", x, triangle(chunk)); }
  /// And behind it.
  Value behind(Value x) { return contract("h b n u, u t -> h b n t", x, triangle(chunk, true)); }
  /// What of a state is retained within a document, and nothing across the beginning of one: factors of decays. A document
  /// that begins is a log decay of -1024, whose exponential is 0; sums of them are exact, and apart from those of other decays,
  /// which would lose digits beside them. All are null where sequences are one document.
  struct Documents {
    Value inside; ///< [rows, chunks, chunk, chunk], from a position to a later one of its chunk, which is the last dimension
    Value toEnd, fromStart;     ///< [rows, chunks, chunk], to the end of a chunk, and from before its beginning
    Value across, between;      ///< [rows, chunks], of a whole chunk; [rows, chunks, chunks], as `between` in `scan`
  };
  Documents documents();
  /// What the beginning of each chunk retains of the end of each, from products that are those of ends, in dimension `dim`.
  Value delayed(Value x, int64_t dim) { return g.pad(slice(x, dim, 0, chunks - 1), dim, 1, chunks); }
  /// The products of decays after u up to t, [.., u, t], 0 where u > t, of log decays x, [heads, rows, chunks, positions].
  Value products(Value x);
  /// x times a factor of each position.
  Value weigh(Value x, Value factor) { return g.mul(x, g.broadcast(factor, shapeOf(x), {4})); }
  /// The recurrence S_t = exp(a_t) S_(t-1) + k_t v_t^T, whose outputs are S_t^T q_t, all `chunked`: q and
  /// k have a head for each key head.
  Value scan(Value q, Value k, Value v, Value a);
  /// That of the gated delta rule; beta as a.
  Value deltaScan(Value q, Value k, Value v, Value a, Value beta);
  /// The inverse of 1 + x, where x is 0 on and below the diagonal of its last two dimensions.
  Value invert(Value x);
  /// A triangle of ones, [size, size], with or without the diagonal.
  Value triangle(int64_t size, bool strict = false) {
    Value zeros = g.fill(0, {size});
    return decay(zeros, zeros, strict);
  }

  /// Its transpose.
  Value upper(int64_t size, bool strict = false) {
    return g.add(g.fill(1, {size, size}), g.scale(triangle(size, !strict), -1));
  }

  Value stateSpace(Value h);
  Value delta(Value h);
  Value convolution(Value h);
};
} // namespace

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

Value RecurrenceBuilder::convolution(Value h) {
  int64_t width = m.hidden;
  Value b = project("in_proj_B", "in_proj", h, {0, 3 * width}, width, s.bias);
  Value c = project("in_proj_C", "in_proj", h, {width, 3 * width}, width, s.bias);
  Value x = project("in_proj_x", "in_proj", h, {2 * width, 3 * width}, width, s.bias);
  x = g.redistribute(convolve("conv", "conv", g.redistribute(g.mul(b, x)), {}));
  return output("out_proj", g.mul(c, x));
}

//===--- the gated delta rule -----------------------------------------------===//

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

Value RecurrenceBuilder::deltaScan(Value q, Value k, Value v, Value a, Value beta) {
  FullPrecision full(g.builder);
  Documents own = documents();
  Value sum = sums(a), last = row(sum, 3, chunk - 1);
  Value decays = ofAll(products(a), own.inside), earlier = g.mul(decays, upper(chunk, true));
  Value toEnd = ofAll(exp(behind(a)), own.toEnd);
  Value fromStart = ofAll(exp(sum), own.fromStart), retained = ofAll(exp(last), own.across);
  // The values that each position adds: without the state before the chunk, and what they lose of it.
  Value alike = perHead(contract("g b n u k, g b n t k -> g b n u t", k, k));
  Value system = g.mul(g.mul(alike, earlier), spread(beta, earlier, 3));
  Value inverse = chunk > 1 ? invert(system) : g.add(system, g.fill(1, shapeOf(system)));
  Value scores = perHead(contract("g b n u k, g b n t k -> g b n u t", k, q));
  scores = g.mul(scores, decays);
  q = perHead(q);
  k = perHead(k);
  Value added = contract("h b n u t, h b n u v -> h b n t v", inverse, weigh(v, beta));
  Value lost = contract("h b n u t, h b n u k -> h b n t k", inverse, weigh(k, g.mul(beta, fromStart)));
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
    state = state ? g.add(g.mul(state, g.broadcast(of(retained), shapeOf(state), {2, 3})), gained) : gained;
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
  Value z = apart ? project("in_proj_z", "in_proj_z", h, {}, inner, false)
                  : projected(nameOf(parts.z, "in_proj_z"), 2 * s.keyDim + own, own);
  auto gate = [&](StringRef part, int64_t begin) {
    FileRows where{begin, 2 * s.heads, 2 * perKey, {0, perKey, 1}};
    bool whole = apart || alone;
    return project(part, whole ? part : "in_proj_ba", h, whole ? FileRows{} : where, s.heads, false);
  };
  Value beta = g.redistribute(gate(nameOf(parts.b, "in_proj_b"), 0));
  Value dt = g.redistribute(gate(nameOf(parts.a, "in_proj_a"), perKey));
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
    Value bias = ofHeads("dt_bias", 1), log = ofHeads("A_log", std::log(8.0));
    g.part(name("steps"));
    FullPrecision full(g.builder);
    a = chunked(ofTokens(g.mul(softplus(g.add(dt, bias)), g.scale(exp(log), -1))));
    beta = chunked(ofTokens(g.scale(make<SigmoidOp>(beta), s.gateFactor)));
  }
  g.part(name("scan"));
  Value y = g.redistribute(whole(deltaScan(chunked(q), chunked(k), chunked(v), a, beta)));
  // Normalized head by head, and then gated.
  std::string norm = name(nameOf(parts.norm, "norm")), weight = norm + ".weight";
  g.part(norm);
  Value w = g.weight({weight, {s.headDim}, 0, 1.0});
  y = g.norm(NormKind::RMS, y, w, {}, this->keys.normEps > 0 ? this->keys.normEps : m.eps, false);
  y = g.mul(g.reshape(y, {rows, sequence, inner}), g.activation("silu", z));
  return output(nameOf(parts.o, "out_proj"), y);
}

Value meshwright::frontend::buildRecurrence(LayerGraph &g, const Model &m, const LayerKind &kind, Value h, Value firsts, Value valid) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(h.getType()).getShape();
  RecurrenceBuilder b{g, m, shape[0], shape[1], firsts, valid};
  switch (kind.mixer) {
  case Mixer::StateSpace:
    return b.stateSpace(h);
  case Mixer::Delta:
    return b.delta(h);
  case Mixer::Convolution:
    return b.convolution(h);
  case Mixer::Attention:
  case Mixer::None:
    break;
  }
  llvm_unreachable("no recurrence");
}
