//===- RemoteCodeFamilies.cpp - families that transformers lacks ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// After the Python code that publishers keep beside their models ("auto_map"). Each is a variation of
// a family that transformers has, under other names.
//
//===----------------------------------------------------------------------===//
#include "Family.h"

using namespace meshwright::frontend;

static Family internlm2() {
  Family f = llama();
  f.name = "internlm2";
  f.vocabulary.otherwise = 103168;
  f.headDim = {};
  f.padding.otherwise = 2;
  f.attentionDropout = {};
  f.qkvBias = f.outputBias = {"bias", true};
  f.mlpBias = {};
  f.qkv = QKVStorage::ByGroup;
  f.embedding = "tok_embeddings";
  f.head = "output";
  f.names.attentionNorm = "attention_norm";
  f.names.mlpNorm = "ffn_norm";
  f.names.attention = "attention";
  f.names.rotary = "attention.rotary_emb";
  f.names.q = "attention.wq";
  f.names.k = "attention.wk";
  f.names.v = "attention.wv";
  f.names.qkv = "attention.wqkv";
  f.names.o = "attention.wo";
  f.names.gate = "feed_forward.w1";
  f.names.up = "feed_forward.w3";
  f.names.down = "feed_forward.w2";
  f.names.activation = "feed_forward.act_fn";
  return f;
}

static Family exaone() {
  Family f = llama();
  f.name = "exaone";
  f.vocabulary.otherwise = 102400;
  f.layers = {"num_layers", 32, "num_hidden_layers"};
  f.inner = {"intermediate_size", std::nullopt};
  f.padding.otherwise = std::nullopt;
  f.activation = {"activation_function", "silu", "hidden_act"};
  f.embeddingDropout = {"embed_dropout", 0.0};
  f.eps = {"layer_norm_epsilon", 1e-5, "rms_norm_eps"};
  f.qkvBias = f.outputBias = f.mlpBias = {};
  f.base = "transformer.";
  f.layerPrefix = "h";
  f.embedding = "wte";
  f.finalNorm = "ln_f";
  f.names.attentionNorm = "ln_1";
  f.names.mlpNorm = "ln_2";
  f.names.attention = "attn.attention";
  f.names.rotary = "attn.attention.rotary";
  f.names.q = "attn.attention.q_proj";
  f.names.k = "attn.attention.k_proj";
  f.names.v = "attn.attention.v_proj";
  f.names.o = "attn.attention.out_proj";
  f.names.gate = "mlp.c_fc_0";
  f.names.up = "mlp.c_fc_1";
  f.names.down = "mlp.c_proj";
  f.names.activation = "mlp.act";
  return f;
}

static Family xverse() {
  Family f = llama();
  f.name = "xverse";
  f.vocabulary.otherwise = 100278;
  f.hidden.otherwise = 5120;
  f.inner.otherwise = 13824;
  f.layers.otherwise = 40;
  f.heads.otherwise = 40;
  f.headDim = {};
  f.padding.otherwise = std::nullopt;
  f.attentionDropout = {};
  f.qkvBias = f.outputBias = f.mlpBias = {};
  f.ignored.push_back("max_tokenizer_truncation");
  return f;
}

/// Qwen of the first generation. What is done beyond the positions of training is not done in training.
static Family qwen() {
  Family f = llama();
  f.name = "qwen";
  f.vocabulary.otherwise = 151936;
  f.positions.otherwise = 8192;
  f.kvHeads = {};
  f.headDim = {"kv_channels", 128};
  f.inner.otherwise = 22016;
  f.innerIsOfBoth = true;
  f.padding = {};
  f.activation = {{}, "silu"};
  f.attentionDropout = {"attn_dropout_prob", 0.0};
  f.embeddingDropout = {"emb_dropout_prob", 0.0};
  f.eps = {"layer_norm_epsilon", 1e-6};
  f.qkv = QKVStorage::Thirds;
  f.qkvBias = {{}, true};
  f.outputBias = f.mlpBias = {};
  f.rotary.theta = {"rotary_emb_base", 10000.0};
  f.rotary.part = {"rotary_pct", 1.0};
  f.base = "transformer.";
  f.layerPrefix = "h";
  f.embedding = "wte";
  f.finalNorm = "ln_f";
  f.names.attentionNorm = "ln_1";
  f.names.mlpNorm = "ln_2";
  f.names.attention = "attn";
  f.names.rotary = "rotary_emb";
  f.names.q = "attn.q";
  f.names.k = "attn.k";
  f.names.v = "attn.v";
  f.names.qkv = "attn.c_attn";
  f.names.o = "attn.c_proj";
  f.names.gate = "mlp.w2";
  f.names.up = "mlp.w1";
  f.names.down = "mlp.c_proj";
  f.ignored = {"pad_token_id", "bf16", "fp16", "fp32", "onnx_safe", "seq_length", "softmax_in_fp32", "use_flash_attn",
               "use_cache_kernel", "use_cache_quantization", "use_dynamic_ntk", "use_logn_attn"};
  f.fixed = {{"no_bias", {"true"}, "layers have more biases"},
             {"scale_attn_weights", {"true"}, "scores are not scaled"}};
  return f;
}

/// ChatGLM2, ChatGLM3 and GLM-4 as they were first published.
static Family chatglm() {
  Family f = glm();
  f.name = "chatglm";
  f.vocabulary = {"padded_vocab_size", 65024, "vocab_size"};
  f.positions = {"seq_length", 2048};
  f.layers = {"num_layers", 28, "num_hidden_layers"};
  f.kvHeads = {"multi_query_group_num", 1};
  f.headDim = {"kv_channels", 128};
  f.inner = {"ffn_hidden_size", 13696};
  f.padding = {};
  f.activation = {{}, "silu"};
  f.residualDropout = {"hidden_dropout", 0.0};
  f.eps = {"layernorm_epsilon", 1e-5};
  f.std = {{}, 0.02};
  f.qkv = QKVStorage::Thirds;
  f.qkvBias = {"add_qkv_bias", false};
  f.rotary.theta = {{}, 10000.0};
  f.rotary.part = {{}, 0.5};
  f.rotary.ratio = {"rope_ratio", 1.0};
  f.base = "transformer.";
  f.layerPrefix = "encoder.layers";
  f.embedding = "embedding.word_embeddings";
  f.finalNorm = "encoder.final_layernorm";
  f.head = "transformer.output_layer";
  f.names.attention = "self_attention";
  f.names.rotary = "rotary_pos_emb";
  f.names.q = "self_attention.query";
  f.names.k = "self_attention.key";
  f.names.v = "self_attention.value";
  f.names.qkv = "self_attention.query_key_value";
  f.names.o = "self_attention.dense";
  f.names.gateUp = "mlp.dense_h_to_4h";
  f.names.down = "mlp.dense_4h_to_h";
  // Scores are divided by the layer's number and multiplied by it again; others say how sums are rounded.
  f.ignored = {"pad_token_id", "apply_query_key_layer_scaling", "attention_softmax_in_fp32", "bias_dropout_fusion",
               "fp32_residual_connection", "initializer_range", "prefix_projection", "quantization_bit"};
  f.fixed = {{"add_bias_linear", {"false"}, "layers have more biases"},
             {"apply_residual_connection_post_layernorm", {"false"}, "the residual stream is another one"},
             {"interleaved_qkv", {"false"}, "queries, keys and values lie otherwise"},
             {"multi_query_attention", {"true"}, "each head has a key and a value of its own"},
             {"original_rope", {"true"}, "rotary positions are other ones"},
             {"post_layer_norm", {"true"}, "there is no last norm"},
             {"pre_seq_len", {"null", "0"}, "prompts are trained"},
             {"rmsnorm", {"true"}, "norms are other ones"}};
  return f;
}

/// Phi-3-small, whose layers are those of muP, for sequences of which block-sparse attention sees all.
static Family phi3Small() {
  Family f = llama();
  f.name = "phi3small";
  f.vocabulary.otherwise = 100352;
  f.positions.otherwise = 8192;
  f.kvHeads.otherwise = 8;
  f.headDim = {};
  f.inner = {"ff_intermediate_size", 14336, "intermediate_size"};
  f.activation = {{}, "silu"};
  f.attentionDropout = {"attention_dropout_prob", 0.0};
  f.embeddingDropout = {"embedding_dropout_prob", 0.1};
  f.residualDropout = {"ffn_dropout_prob", 0.1};
  f.dropsAttention = false;
  f.norm = NormKind::Layer;
  f.eps = {"layer_norm_epsilon", 1e-5};
  f.normBias = true;
  f.qkv = QKVStorage::ByGroup;
  f.qkvBias = f.outputBias = f.mlpBias = {{}, true};
  f.gateUpInTurns = true;
  f.gateLimit = {"gegelu_limit", 20.0};
  f.gateGain = 1.702;
  f.scoreByWidth = {"mup_use_scaling", true};
  f.scoreMultiplier = {"mup_attn_multiplier", 1.0};
  f.embeddingFactor = {"mup_embedding_multiplier", 10.0};
  f.logitDivisor = {"mup_width_multiplier", 8.0};
  f.rotary.theta = {"rope_embedding_base", 1e6};
  f.rotary.onlyLong = f.rotary.mscales = true;
  f.blockSparse.block = {"blocksparse_block_size", 64};
  f.blockSparse.local = {"blocksparse_num_local_blocks", 16};
  f.blockSparse.denseEvery = {"dense_attention_every_n_layers", 2};
  f.tied.otherwise = true;
  f.finalNorm = "final_layernorm";
  f.names.q = "self_attn.query";
  f.names.k = "self_attn.key";
  f.names.v = "self_attn.value";
  f.names.qkv = "self_attn.query_key_value";
  f.names.o = "self_attn.dense";
  f.names.gateUp = "mlp.up_proj";
  f.names.gate = "mlp.gate";
  f.names.up = "mlp.up";
  // Keys of other blocks than those that all sequences see; tokens that are never predicted.
  f.ignored = {"blocksparse_homo_head_pattern", "blocksparse_vert_stride", "blocksparse_triton_kernel_block_size", "dummy_token_indices",
               "gegelu_pad_to_256", "pad_sequence_to_multiple_of_64", "reorder_and_upcast_attn"};
  f.fixed = {{"hidden_act", {"\"gegelu\""}, "MLPs have another activation"},
             {"attention_bias", {"false"}, "queries, keys and values have biases of their own"},
             {"ff_dim_multiplier", {"null"}, "the MLP's size is made of another"},
             {"rope_position_scale", {"1.0", "1"}, "positions are scaled"}};
  return f;
}

/// NVIDIA's Puzzle models (Bercovich et al. 2024): llamas of which each layer has what a search has left of it.
static Family nemotronNas() {
  Family f = llama();
  f.name = "nemotron-nas";
  f.vocabulary.otherwise = 128256;
  f.positions.otherwise = 131072;
  f.kvHeads = {};
  f.headDim = {};
  f.inner = {};
  f.eps.otherwise = 1e-5;
  f.rotary.theta.otherwise = 500000.0;
  f.blocks = "block_configs";
  // null in all files, since blocks say both.
  f.fixed = {{"num_key_value_heads", {"null"}, "blocks say it"}, {"intermediate_size", {"null"}, "blocks say it"}};
  return f;
}

//===--- Baichuan -----------------------------------------------------------===//

/// What tells the four apart: only the small ones say how many positions there are, and only the second
/// generation says how much of a loss of logits there is. `second` has a head of rows of length 1.
static Family baichuan(bool large, bool second) {
  Family f = llama();
  f.name = "baichuan";
  (large ? f.absent : f.present).push_back("max_position_embeddings");
  (second ? f.present : f.absent).push_back("z_loss_weight");
  f.vocabulary.otherwise = second ? 125696 : 64000;
  f.positions = {large ? "model_max_length" : "max_position_embeddings", 4096};
  f.hidden.otherwise = large ? 5120 : 4096;
  f.inner.otherwise = large ? 13696 : 11008;
  f.layers.otherwise = f.heads.otherwise = large ? 40 : 32;
  f.kvHeads = f.headDim = {};
  f.padding.otherwise = 0;
  f.attentionDropout = {};
  f.qkv = QKVStorage::Thirds;
  f.qkvBias = f.outputBias = f.mlpBias = {};
  f.rotary.used = !large;
  f.rotary.theta = {{}, 10000.0};
  f.alibi = large ? 8 : 0;
  f.normalizedHead = second;
  f.names.qkv = "self_attn.W_pack";
  f.ignored = {"_from_model_config"};
  if (!large)
    f.ignored.push_back("model_max_length");
  f.fixed = {{"z_loss_weight", {"0", "0.0"}, "the loss has a part of logits"}};
  return f;
}

std::vector<Family> meshwright::frontend::remoteCodeFamilies() {
  std::vector<Family> all = {internlm2(),           exaone(),
                             xverse(),              qwen(),
                             phi3Small(),           nemotronNas(),
                             chatglm(),             baichuan(false, false),
                             baichuan(false, true), baichuan(true, false),
                             baichuan(true, true)};
  for (Family &family : all)
    family.judge = "a model of transformers that computes the same (test/Golden/remote.py)";
  return all;
}
