//===- Llama.cpp - llama, mistral, qwen2, qwen3 ------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// After transformers' modeling_llama.py, modeling_mistral.py, modeling_qwen2.py and
// modeling_qwen3.py: a residual stream with RMSNorm before each half, rotary
// grouped-query attention and a gated MLP. The families differ in biases, sliding
// windows, norms of q and k, and defaults.
//
//===----------------------------------------------------------------------===//
#include "Families.h"
#include "Graph.h"
#include "Rope.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::frontend;

namespace {
struct Llama {
  int64_t vocabulary, padding, positions, hidden, layers, heads, kvHeads, headDim, inner;
  std::string activation;
  double attentionDropout, eps, std;
  bool qkvBias, outputBias, mlpBias, headNorm, tied;
  SmallVector<double> frequencies;
  SmallVector<int64_t> windows; ///< of each layer; 0: none
};

/// What the families' configuration classes say when a key is absent.
struct Defaults {
  StringRef family;
  int64_t vocabulary, inner, positions;
  std::optional<int64_t> kvHeads, headDim; ///< absent: heads, hidden/heads
};
} // namespace

static const Defaults defaults[] = {
    {"llama", 32000, 11008, 2048, std::nullopt, std::nullopt},
    {"mistral", 32000, 14336, 131072, 8, std::nullopt},
    {"qwen2", 151936, 22016, 32768, 32, std::nullopt},
    {"qwen3", 151936, 22016, 32768, 32, 128},
};

/// The sliding window of each of `layers`, 0 for none. A window that holds the whole
/// sequence is none. The config's own list has `listed` layers; more repeat it.
static SmallVector<int64_t> readWindows(Config &config, StringRef family, int64_t listed,
                                        int64_t layers, int64_t sequence) {
  SmallVector<int64_t> windows(layers, 0);
  if (family == "llama")
    return windows;
  std::optional<int64_t> window = config.optionalSize("sliding_window", 4096);
  std::vector<bool> sliding(layers, true);
  if (family != "mistral") {
    if (!config.flag("use_sliding_window", false))
      window = std::nullopt;
    int64_t fullLayers = config.count("max_window_layers", 28);
    for (int64_t i = 0; i < layers; ++i)
      sliding[i] = window && i >= fullLayers;
    // Written out, the list wins over max_window_layers.
    if (auto types = config.texts("layer_types")) {
      if (config.failed())
        return windows;
      if (int64_t(types->size()) != listed) {
        config.error("layer_types") << "\"layer_types\" lists " << types->size()
                                    << " layers, but num_hidden_layers is " << listed;
        return windows;
      }
      for (int64_t i = 0; i < layers; ++i) {
        StringRef type = (*types)[i % listed];
        if (type != "full_attention" && type != "sliding_attention")
          config.error("layer_types") << "layer type \"" << type << "\" is not known for " << family
                                      << "; full_attention and sliding_attention are";
        sliding[i] = type == "sliding_attention";
      }
      if (!window && llvm::is_contained(sliding, true))
        config.error("layer_types")
            << "\"layer_types\" asks for sliding attention, but "
               "\"use_sliding_window\" is false or \"sliding_window\" null; "
               "set both or list full_attention only";
    }
  }
  for (int64_t i = 0; i < layers; ++i)
    if (sliding[i] && window && *window < sequence)
      windows[i] = *window;
  return windows;
}

static Llama readLlama(Config &config, StringRef family, ModelOptions &options) {
  const Defaults &absent =
      *llvm::find_if(defaults, [&](const Defaults &d) { return d.family == family; });
  Llama m;
  m.vocabulary = config.size("vocab_size", absent.vocabulary);
  m.padding = config.token("pad_token_id", m.vocabulary);
  m.positions = config.size("max_position_embeddings", absent.positions);
  useDefaultSequence(options, m.positions);
  m.hidden = config.size("hidden_size", 4096);
  int64_t listed = 0;
  m.layers = readLayers(config, "num_hidden_layers", 32, options, &listed);
  m.heads = config.size("num_attention_heads", 32);
  m.kvHeads = config.optionalSize("num_key_value_heads", absent.kvHeads).value_or(m.heads);
  bool ownHeadDim = absent.headDim || config.has("head_dim");
  m.headDim = absent.headDim ? config.size("head_dim", *absent.headDim)
                             : config.optionalSize("head_dim").value_or(m.hidden / m.heads);
  m.inner = config.size("intermediate_size", absent.inner);
  m.activation = readActivation(config, "hidden_act", "silu");
  m.attentionDropout = options.dropout.value_or(config.probability("attention_dropout", 0.0));
  m.eps = config.positive("rms_norm_eps", 1e-6);
  m.std = config.positive("initializer_range", 0.02);
  m.tied = config.flag("tie_word_embeddings", false);
  bool bias = (family == "llama" || family == "qwen3") && config.flag("attention_bias", false);
  m.qkvBias = bias || family == "qwen2";
  m.outputBias = bias;
  m.mlpBias = family == "llama" && config.flag("mlp_bias", false);
  m.headNorm = family == "qwen3";
  m.windows = readWindows(config, family, listed, m.layers, options.sequence);
  if (!config.failed() && !ownHeadDim && m.hidden % m.heads)
    config.error("num_attention_heads")
        << "hidden_size = " << m.hidden
        << " cannot be divided among num_attention_heads = " << m.heads
        << " heads; change one of them or give \"head_dim\"";
  if (!config.failed() && m.heads % m.kvHeads)
    config.error("num_key_value_heads")
        << "num_attention_heads = " << m.heads
        << " cannot be divided among num_key_value_heads = " << m.kvHeads << "; change one of them";
  // Each pair of a head's elements has a frequency in the text of the program.
  if (constexpr int64_t most = 65536; !config.failed() && m.headDim > most)
    config.error(ownHeadDim ? "head_dim" : "num_attention_heads")
        << "heads of " << m.headDim << " elements are larger than the " << most
        << " that rotary positions are made for; use more heads or a smaller \"head_dim\"";
  // After an error too, for heads of any size, so that no key of it is called unknown.
  m.frequencies = readRopeFrequencies(config, family, config.failed() ? 2 : m.headDim);

  SmallVector<StringRef> ignored(commonIgnoredKeys());
  // pretraining_tp splits matrices without changing their product.
  llvm::append_range(
      ignored, ArrayRef<StringRef>{"pretraining_tp", "max_sequence_length", "is_llama_config"});
  SmallVector<FixedKey> fixed(commonFixedKeys());
  fixed.push_back({"partial_rotary_factor", {"1.0", "null"}, "only a part of each head turns"});
  fixed.push_back({"rope_interleaved", {"false"}, "rotary positions pair neighbours"});
  fixed.push_back({"use_mrope", {"false"}, "positions have several axes"});
  if (family == "llama")
    fixed.push_back({"sliding_window", {"null"}, "attention sees a window only"});
  if (family == "llama" || family == "mistral")
    fixed.push_back({"use_sliding_window", {"false"}, "attention sees a window only"});
  if (family == "mistral" || family == "qwen2")
    fixed.push_back({"attention_bias", {"false"}, "the family's biases are other ones"});
  if (family != "llama")
    fixed.push_back({"mlp_bias", {"false"}, "the MLP has biases"});
  config.finish(family, ignored, fixed);
  return m;
}

/// One decoder layer.
static Value buildLayer(LayerGraph &g, const Llama &m, int64_t rows, int64_t sequence,
                        int64_t window, Value cos, Value sin) {
  int64_t hidden = m.hidden, queries = m.heads * m.headDim, keys = m.kvHeads * m.headDim;
  auto norm = [&](StringRef name, Value x, int64_t size) {
    std::string weight = (name + ".weight").str();
    g.part(name);
    return g.rmsNorm(x, g.weight({weight, {size}, 0, 1.0}), m.eps);
  };
  auto linear = [&](StringRef name, Value x, int64_t in, int64_t out, bool biased) {
    std::string weight = (name + ".weight").str(), bias = (name + ".bias").str();
    g.part(name);
    Value w = g.weight({weight, {out, in}, m.std});
    return g.linear(x, w, biased ? g.weight({bias, {out}}) : Value());
  };
  cos = g.shared(cos, "cos");
  sin = g.shared(sin, "sin");

  Value x = g.input();
  Value h = norm("input_layernorm", x, hidden);
  Value q = linear("self_attn.q_proj", h, hidden, queries, m.qkvBias);
  Value k = linear("self_attn.k_proj", h, hidden, keys, m.qkvBias);
  Value v = linear("self_attn.v_proj", h, hidden, keys, m.qkvBias);
  auto heads = [&](StringRef name, Value x, int64_t count) {
    g.part(name);
    return g.reshape(x, {rows, sequence, count, m.headDim});
  };
  q = heads("self_attn.q_proj", q, m.heads);
  k = heads("self_attn.k_proj", k, m.kvHeads);
  v = heads("self_attn.v_proj", v, m.kvHeads);
  if (m.headNorm) {
    q = norm("self_attn.q_norm", q, m.headDim);
    k = norm("self_attn.k_norm", k, m.headDim);
  }
  g.part("self_attn.rotary_emb");
  q = g.rope(q, cos, sin);
  k = g.rope(k, cos, sin);
  g.part("self_attn");
  Value a = g.attention(q, k, v, 1.0 / std::sqrt(double(m.headDim)), window, m.attentionDropout);
  a = g.reshape(a, {rows, sequence, queries});
  x = g.add(x, linear("self_attn.o_proj", a, queries, hidden, m.outputBias));

  h = norm("post_attention_layernorm", x, hidden);
  Value gate = linear("mlp.gate_proj", h, hidden, m.inner, m.mlpBias);
  Value up = linear("mlp.up_proj", h, hidden, m.inner, m.mlpBias);
  g.part("mlp.act_fn");
  h = g.mul(g.activation(m.activation, gate), up);
  return g.add(x, linear("mlp.down_proj", h, m.inner, hidden, m.mlpBias));
}

ImportedModule meshwright::frontend::importLlama(Config &config, StringRef family,
                                                 ModelOptions options, MLIRContext &context) {
  Llama m = readLlama(config, family, options);
  if (config.failed() || failed(checkSizes(config, options, m.vocabulary,
                                           std::max({m.hidden, m.inner, m.heads * m.headDim}),
                                           m.layers, m.positions, "max_position_embeddings")))
    return failure();
  int64_t runs = 1;
  for (int64_t i = 1; i < m.layers; ++i)
    runs += m.windows[i] != m.windows[i - 1];
  if (failed(checkRuns(config, runs, "num_hidden_layers")))
    return failure();

  ModelGraph g(context, family, options, m.attentionDropout > 0, "layers", "model.layers.{layer}");
  g.part("embed_tokens");
  Value table = g.weight(
      {"embed_tokens.weight", {m.vocabulary, m.hidden}, m.std, 0, "model.embed_tokens.weight"});
  Value x = g.embedding(table, g.tokens, m.padding);
  g.part("rotary_emb");
  auto [cos, sin] = g.ropeTable(m.frequencies);
  // Layers with one window in a row share a function.
  for (int64_t first = 0; first < m.layers;) {
    int64_t end = first + 1;
    while (end < m.layers && m.windows[end] == m.windows[first])
      ++end;
    LayerRun run{first, end - first};
    x = g.layers(x, run, run.count == m.layers, [&, cos = cos, sin = sin](LayerGraph &layer) {
      return buildLayer(layer, m, g.rows, g.sequence, m.windows[run.first], cos, sin);
    });
    first = end;
  }

  g.part("norm");
  x = g.rmsNorm(x, g.weight({"norm.weight", {m.hidden}, 0, 1.0, "model.norm.weight"}), m.eps);
  g.part("lm_head");
  Value head = m.tied ? table : g.weight({"lm_head.weight", {m.vocabulary, m.hidden}, m.std});
  g.finish(g.linear(x, head), family, config.contents(), m.vocabulary, m.positions);
  return std::move(g.module);
}
