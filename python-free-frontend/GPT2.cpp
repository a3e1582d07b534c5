//===- GPT2.cpp - gpt2 ---------------------------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// After transformers' modeling_gpt2.py. Its Conv1D stores weights as [in, out] and
// q, k and v in one tensor; here they are three variables [out, in], so that each
// can be divided by heads.
//
//===----------------------------------------------------------------------===//
#include "Families.h"
#include "Graph.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::frontend;

namespace {
struct GPT2 {
  int64_t vocabulary, positions, hidden, layers, heads, inner;
  std::string activation;
  double attentionDropout, embeddingDropout, residualDropout, eps, std;
  bool scaled, scaledByLayer, tied;
};
} // namespace

static GPT2 readGPT2(Config &config, ModelOptions &options) {
  for (auto [key, alias] : {std::pair<StringRef, StringRef>{"n_embd", "hidden_size"},
                            {"n_positions", "max_position_embeddings"},
                            {"n_head", "num_attention_heads"},
                            {"n_layer", "num_hidden_layers"}})
    config.alias(key, alias);
  GPT2 m;
  m.vocabulary = config.size("vocab_size", 50257);
  m.positions = config.size("n_positions", 1024);
  useDefaultSequence(options, m.positions);
  m.hidden = config.size("n_embd", 768);
  m.layers = readLayers(config, "n_layer", 12, options);
  m.heads = config.size("n_head", 12);
  m.inner = config.optionalSize("n_inner").value_or(4 * m.hidden);
  m.activation = readActivation(config, "activation_function", "gelu_new");
  m.attentionDropout = options.dropout.value_or(config.probability("attn_pdrop", 0.1));
  m.embeddingDropout = options.dropout.value_or(config.probability("embd_pdrop", 0.1));
  m.residualDropout = options.dropout.value_or(config.probability("resid_pdrop", 0.1));
  m.eps = config.positive("layer_norm_epsilon", 1e-5);
  m.std = config.positive("initializer_range", 0.02);
  m.scaled = config.flag("scale_attn_weights", true);
  m.scaledByLayer = config.flag("scale_attn_by_inverse_layer_idx", false);
  m.tied = config.flag("tie_word_embeddings", true);

  SmallVector<StringRef> ignored(commonIgnoredKeys());
  // n_ctx repeats n_positions; the summary_* keys describe a classification head;
  // reorder_and_upcast_attn changes rounding in half precision only.
  llvm::append_range(ignored,
                     ArrayRef<StringRef>{"n_ctx", "n_special", "predict_special_tokens",
                                         "summary_type", "summary_use_proj", "summary_activation",
                                         "summary_proj_to_labels", "summary_first_dropout",
                                         "reorder_and_upcast_attn", "pad_token_id"});
  SmallVector<FixedKey> fixed(commonFixedKeys());
  config.finish("gpt2", ignored, fixed);
  if (!config.failed() && m.hidden % m.heads)
    config.error("n_head") << "n_embd = " << m.hidden
                           << " cannot be divided among n_head = " << m.heads
                           << " heads; change one of them";
  return m;
}

/// One transformer block, its attention scores times `scale`.
static Value buildBlock(LayerGraph &g, const GPT2 &m, int64_t rows, int64_t sequence,
                        double scale) {
  int64_t d = m.hidden, inner = m.inner;
  double projectionStd = m.std / std::sqrt(2.0 * double(m.layers));
  auto norm = [&](StringRef name, Value x) {
    std::string weight = (name + ".weight").str(), bias = (name + ".bias").str();
    g.part(name);
    Value w = g.weight({weight, {d}, 0, 1.0});
    return g.layerNorm(x, w, g.weight({bias, {d}}), m.eps);
  };
  // A Conv1D, or the columns of one from `begin` of `full`.
  auto conv = [&](StringRef name, Value x, StringRef tensor, int64_t in, int64_t out, double std,
                  int64_t begin = 0, int64_t full = 0) {
    std::string weight = (name + ".weight").str(), bias = (name + ".bias").str();
    g.part(name);
    Value w = g.weight({weight, {out, in}, std, 0, (tensor + ".weight").str(), true, begin, full});
    Value b = g.weight({bias, {out}, 0, 0, (tensor + ".bias").str(), false, begin, full});
    return g.linear(x, w, b);
  };

  Value x = g.input();
  Value h = norm("ln_1", x);
  SmallVector<Value, 3> qkv;
  for (auto [i, name] : llvm::enumerate(ArrayRef<StringRef>{"attn.q", "attn.k", "attn.v"})) {
    Value y = conv(name, h, "attn.c_attn", d, d, m.std, int64_t(i) * d, 3 * d);
    qkv.push_back(g.reshape(y, {rows, sequence, m.heads, d / m.heads}));
  }
  g.part("attn");
  Value a = g.attention(qkv[0], qkv[1], qkv[2], scale, /*window=*/0, m.attentionDropout);
  a = g.reshape(a, {rows, sequence, d});
  a = conv("attn.c_proj", a, "attn.c_proj", d, d, projectionStd);
  x = g.add(x, g.dropout(a, m.residualDropout));

  h = norm("ln_2", x);
  h = conv("mlp.c_fc", h, "mlp.c_fc", d, inner, m.std);
  g.part("mlp.act");
  h = g.activation(m.activation, h);
  h = conv("mlp.c_proj", h, "mlp.c_proj", inner, d, projectionStd);
  return g.add(x, g.dropout(h, m.residualDropout));
}

ImportedModule meshwright::frontend::importGPT2(Config &config, ModelOptions options,
                                                MLIRContext &context) {
  GPT2 m = readGPT2(config, options);
  if (config.failed() ||
      failed(checkSizes(config, options, m.vocabulary, std::max(3 * m.hidden, m.inner), m.layers,
                        m.positions, "n_positions")) ||
      failed(checkRuns(config, m.scaledByLayer ? m.layers : 1, "n_layer")))
    return failure();

  bool drops = m.attentionDropout > 0 || m.embeddingDropout > 0 || m.residualDropout > 0;
  ModelGraph g(context, "gpt2", options, drops, "h", "transformer.h.{layer}");
  g.part("wte");
  Value wte =
      g.weight({"wte.weight", {m.vocabulary, m.hidden}, m.std, 0, "transformer.wte.weight"});
  Value x = g.embedding(wte, g.tokens);
  g.part("wpe");
  Value wpe = g.weight({"wpe.weight", {m.positions, m.hidden}, m.std, 0, "transformer.wpe.weight"});
  x = g.dropout(g.add(x, g.firstRows(wpe, g.sequence)), m.embeddingDropout);

  // A layer with a scale of its own needs a function of its own.
  double scale = m.scaled ? 1.0 / std::sqrt(double(m.hidden / m.heads)) : 1.0;
  int64_t step = m.scaledByLayer ? 1 : m.layers;
  for (int64_t first = 0; first < m.layers; first += step)
    x = g.layers(x, {first, step}, step == m.layers, [&](LayerGraph &layer) {
      return buildBlock(layer, m, g.rows, g.sequence, scale / (m.scaledByLayer ? first + 1 : 1));
    });

  g.part("ln_f");
  Value weight = g.weight({"ln_f.weight", {m.hidden}, 0, 1.0, "transformer.ln_f.weight"});
  Value bias = g.weight({"ln_f.bias", {m.hidden}, 0, 0, "transformer.ln_f.bias"});
  x = g.layerNorm(x, weight, bias, m.eps);
  g.part("lm_head");
  Value head = m.tied ? wte : g.weight({"lm_head.weight", {m.vocabulary, m.hidden}, m.std});
  g.finish(g.linear(x, head), "gpt2", config.contents(), m.vocabulary, m.positions);
  return std::move(g.module);
}
