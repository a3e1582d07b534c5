//===- LatentAttention.cpp - multi-head latent attention -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// DeepSeek-V2's attention (DeepSeek-AI 2024). Keys and values of all heads are products with one
// short vector of each token, its latent, and queries may be, too. A part of each key turns, which
// is the same for all heads. What files hold in one matrix has variables of its own: the latent
// and the shared part of keys, the keys of all heads and their values.
//
// A head of a query or key begins, in each of its halves, with what turns there, as rope has it:
// queries are permuted when they are read, and keys are put together in that order.
//
//===----------------------------------------------------------------------===//
#include "Graph.h"
#include "Model.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::frontend;

LatentSizes meshwright::frontend::readLatent(Config &config, const Model &m, int64_t sequence) {
  const Latent &keys = m.family.latent;
  LatentSizes sizes;
  auto even = [&](const Key<int64_t> &key) {
    int64_t size = config.size(key.name, key.otherwise);
    if (size % 2)
      config.error(key.name) << "\"" << key.name
                             << "\": rotary positions turn pairs of a head's two halves, so its "
                                "parts must be even, found "
                             << size;
    return size;
  };
  sizes.queryRank = config.optionalSize(keys.queryRank.name, keys.queryRank.otherwise).value_or(0);
  sizes.keyRank = config.size(keys.keyRank.name, keys.keyRank.otherwise);
  sizes.plainDim = even(keys.plainDim);
  sizes.turnedDim = even(keys.turnedDim);
  sizes.valueDim = config.optionalSize(keys.valueDim.name, keys.valueDim.otherwise)
                       .value_or(std::max<int64_t>(m.hidden / m.heads, 1));
  auto flag = [&](const Key<bool> &key) {
    return key.name.empty() ? key.otherwise : config.flag(key.name, key.otherwise);
  };
  sizes.bias = flag(keys.bias);
  sizes.interleaved = flag(keys.interleaved);
  const Indexer &indexer = keys.indexer;
  if (indexer.topk.name.empty())
    return sizes;
  sizes.indexHeads = config.size(indexer.heads.name, indexer.heads.otherwise);
  sizes.indexDim = config.size(indexer.headDim.name, indexer.headDim.otherwise);
  int64_t topk = config.size(indexer.topk.name, indexer.topk.otherwise);
  if (!config.failed() && sequence > topk)
    config.error(indexer.topk.name) << "\"" << indexer.topk.name << "\": sparse attention selects " << topk
                                    << " keys of the " << sequence
                                    << " of a sequence, which is not supported; use --seq " << topk
                                    << " or less, where it selects all";
  if (!config.failed() && !sizes.queryRank)
    config.error(keys.queryRank.name) << "\"" << keys.queryRank.name
                                      << "\" is null, but sparse attention selects keys by the latent of queries; "
                                         "give its size";
  return sizes;
}

void meshwright::frontend::readIndexers(Config &config, Model &m, int64_t listed) {
  const Indexer &keys = m.family.latent.indexer;
  std::vector<bool> has(listed, true);
  auto fill = [&](StringRef key, ArrayRef<std::string> types) {
    if (int64_t(types.size()) != listed) {
      config.error(key) << "\"" << key << "\" lists " << types.size() << " layers, but " << m.family.layers.name
                        << " is " << listed;
      return;
    }
    for (int64_t i = 0; i < listed; ++i) {
      has[i] = types[i] == "full" || types[i] == "F";
      if (!has[i] && types[i] != "shared" && types[i] != "S")
        config.error(key) << "\"" << key << "\": \"" << types[i] << "\" is not known; full and shared are";
    }
    if (!config.failed() && !has[0])
      config.error(key) << "\"" << key << "\": the first layer has nothing before it to share; it must be full";
  };
  if (!keys.every.name.empty()) {
    int64_t every = std::max<int64_t>(config.count(keys.every.name, keys.every.otherwise), 1);
    int64_t offset = config.count(keys.offset.name, keys.offset.otherwise);
    for (int64_t i = 0; i < listed; ++i)
      has[i] = std::max<int64_t>(i - offset + 1, 0) % every == 0;
  }
  if (!keys.pattern.empty() && config.has(keys.pattern)) {
    std::vector<std::string> types;
    if (config.json(keys.pattern)->getAsString())
      for (char letter : config.text(keys.pattern, ""))
        types.emplace_back(1, letter);
    else if (auto list = config.texts(keys.pattern))
      types = *list;
    fill(keys.pattern, types);
  }
  if (!keys.types.empty())
    if (auto list = config.texts(keys.types))
      fill(keys.types, *list);
  for (int64_t i = 0; i < m.layers; ++i)
    m.kinds[i].indexed = has[i % listed];
}

//===--- where parts lie in files -------------------------------------------===//

/// Appends one half of what turns of a head, which is at `base`.
static void addTurned(SmallVectorImpl<int64_t> &runs, const LatentSizes &l, int64_t base,
                      int64_t half) {
  int64_t pairs = l.turnedDim / 2;
  runs.append({base + (l.interleaved ? half : half * pairs), pairs, l.interleaved ? 2 : 1});
}

/// Rows of each head of queries.
static FileRows queryRows(const Model &m) {
  const LatentSizes &l = m.latent;
  FileRows rows{0, m.heads * m.headDim, m.headDim};
  for (int64_t half : {0, 1}) {
    addTurned(rows.runs, l, l.plainDim, half);
    rows.runs.append({half * l.plainDim / 2, l.plainDim / 2, 1});
  }
  return rows;
}

/// Rows of the part of keys that heads share, behind the latent.
static FileRows sharedKeyRows(const LatentSizes &l) {
  int64_t all = l.keyRank + l.turnedDim;
  FileRows rows{l.keyRank, all, all};
  for (int64_t half : {0, 1})
    addTurned(rows.runs, l, 0, half);
  return rows;
}

/// Of each head's key and value, the rows from `begin` on.
static FileRows headRows(const Model &m, int64_t begin, int64_t count) {
  int64_t both = m.latent.plainDim + m.latent.valueDim;
  return {begin, m.heads * both, both, {0, count, 1}};
}

//===--- attention ----------------------------------------------------------===//

namespace {
struct LatentBuilder {
  LayerGraph &g;
  const Model &m;
  const LatentSizes &l = m.latent;
  int64_t rows, sequence;

  /// The name of a part.
  std::string own(StringRef part) { return (m.family.names.attention + "." + part).str(); }
  /// x times the weight of `name`, which is read from `tensor`, with a bias if it has one.
  Value linear(StringRef name, Value x, int64_t in, int64_t out, StringRef tensor, bool biased,
               const FileRows &rows = {}, std::optional<double> std = std::nullopt) {
    g.part(name);
    std::string weight = (name + ".weight").str(), bias = (name + ".bias").str();
    Value w = g.weight(
        {weight, {out, in}, std.value_or(m.std), 0, (tensor + ".weight").str(), false, rows});
    Value b;
    if (biased)
      b = g.weight({bias, {out}, 0, 0, (tensor + ".bias").str(), false, rows});
    return g.linear(x, w, b);
  }
  /// Latents are normalized with this epsilon whatever the configuration says of others.
  Value norm(StringRef name, Value x, int64_t size) {
    g.part(name);
    std::string weight = (name + ".weight").str();
    return g.norm(NormKind::RMS, x, g.weight({weight, {size}, 0, 1.0}), {}, 1e-6, false);
  }

  /// 0 for each element of x, made of parameters that would select keys: so they are read, decayed and saved.
  Value unused(Value x) {
    auto weight = [&](StringRef name, ArrayRef<int64_t> shape, double std, double value) {
      std::string whole = own(("indexer." + name).str());
      g.part(whole);
      return g.weight({whole, SmallVector<int64_t>(shape), std, value});
    };
    Value parts[] = {weight("wq_b.weight", {l.indexHeads * l.indexDim, l.queryRank}, m.std, 0),
                     weight("wk.weight", {l.indexDim, m.hidden}, m.std, 0),
                     weight("k_norm.weight", {l.indexDim}, 0, 1), weight("k_norm.bias", {l.indexDim}, 0, 0),
                     weight("weights_proj.weight", {l.indexHeads, m.hidden}, m.std, 0)};
    g.part(own("indexer"));
    Value none;
    for (Value part : parts) {
      Value row = g.scale(g.sum(g.firstRows(part, 1)), 0);
      none = none ? g.add(none, row) : row;
    }
    return g.broadcast(none, cast<RankedTensorType>(x.getType()).getShape(), {0, 1, 2});
  }

  Value queries(Value h) {
    int64_t all = m.heads * m.headDim;
    Value q;
    if (l.queryRank) {
      std::string first = own("q_a_proj");
      Value latent = linear(first, h, m.hidden, l.queryRank, first, l.bias);
      latent = norm(own("q_a_layernorm"), latent, l.queryRank);
      q = linear(own("q_b_proj"), latent, l.queryRank, all, own("q_b_proj"), false,
                 queryRows(m));
    } else {
      q = linear(own("q_proj"), h, m.hidden, all, own("q_proj"), false, queryRows(m));
    }
    return g.reshape(q, {rows, sequence, m.heads, m.headDim});
  }

  /// A head's own part and the part that heads share, half by half. Both halves of both are of
  /// pieces of one size, so that rows of memory are moved whole.
  Value keys(Value own, Value shared) {
    int64_t plain = l.plainDim / 2, turned = l.turnedDim / 2, piece = std::gcd(plain, turned);
    int64_t pieces = (plain + turned) / piece;
    g.part(this->own("keys"));
    own = g.reshape(own, {rows, sequence, m.heads, 2, plain / piece, piece});
    own = g.pad(own, 4, turned / piece, pieces);
    shared = g.reshape(shared, {rows, sequence, 2, turned / piece, piece});
    shared = g.pad(shared, 3, 0, pieces);
    shared = g.broadcast(shared, {rows, sequence, m.heads, 2, pieces, piece}, {2});
    return g.reshape(g.add(own, shared), {rows, sequence, m.heads, m.headDim});
  }
};
} // namespace

Value meshwright::frontend::buildLatentAttention(LayerGraph &g, const Model &m,
                                                 const LayerKind &kind, Value h, Value cos,
                                                 Value sin) {
  const LatentSizes &l = m.latent;
  ArrayRef<int64_t> shape = cast<RankedTensorType>(h.getType()).getShape();
  LatentBuilder b{g, m, m.latent, shape[0], shape[1]};
  Value q = b.queries(h);
  std::string first = b.own("kv_a_proj_with_mqa"), second = b.own("kv_b_proj");
  Value shared =
      b.linear(b.own("k_rope_proj"), h, m.hidden, l.turnedDim, first, l.bias, sharedKeyRows(l));
  Value latent = b.linear(b.own("kv_a_proj"), h, m.hidden, l.keyRank, first, l.bias,
                          {0, l.keyRank + l.turnedDim});
  latent = b.norm(b.own("kv_a_layernorm"), latent, l.keyRank);
  if (m.family.latent.scaled)
    latent = g.scale(latent, std::sqrt(double(m.hidden) / double(l.keyRank)));
  Value k = b.linear(b.own("k_b_proj"), latent, l.keyRank, m.heads * l.plainDim, second, false,
                     headRows(m, 0, l.plainDim));
  Value v = b.linear(b.own("v_b_proj"), latent, l.keyRank, m.heads * l.valueDim, second, false,
                     headRows(m, l.plainDim, l.valueDim));
  v = g.reshape(v, {b.rows, b.sequence, m.heads, l.valueDim});
  g.part(m.family.names.rotary);
  shared = g.reshape(shared, {b.rows, b.sequence, 1, l.turnedDim});
  if (kind.table >= 0) {
    q = g.rope(q, cos, sin);
    // What turns has the first frequencies.
    shared =
        g.rope(shared, g.firstColumns(cos, l.turnedDim / 2), g.firstColumns(sin, l.turnedDim / 2));
  }
  k = b.keys(k, shared);
  g.part(m.family.names.attention);
  Value a = g.attention(q, k, v, {}, specOf(m, kind));
  if (m.gatesHeads) {
    StringRef part = m.family.headGate.part;
    Value gate = b.linear(part, h, m.hidden, m.heads, part, false);
    gate = train::SigmoidOp::create(g.builder, g.where(), gate);
    a = g.mul(a, g.broadcast(gate, {b.rows, b.sequence, m.heads, l.valueDim}, {3}));
  }
  a = g.reshape(a, {b.rows, b.sequence, m.heads * l.valueDim});
  StringRef o = m.family.names.o;
  if (kind.indexed)
    a = g.add(a, b.unused(a));
  return b.linear(o, a, m.heads * l.valueDim, m.hidden, o, l.bias, {}, m.projectionStd);
}
