//===- GPTFamilies.cpp - families with LayerNorm and a plain MLP -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// After the configuration classes and modeling files of transformers. Each family starts
// from the one that it is a variation of.
//
//===----------------------------------------------------------------------===//
#include "Family.h"

using namespace meshwright::frontend;

Family meshwright::frontend::gpt2() {
  Family f;
  f.name = "gpt2";
  f.vocabulary.otherwise = 50257;
  f.positions = {"n_positions", 1024, "max_position_embeddings"};
  f.hidden = {"n_embd", 768, "hidden_size"};
  f.layers = {"n_layer", 12, "num_hidden_layers"};
  f.heads = {"n_head", 12, "num_attention_heads"};
  f.kvHeads = f.headDim = {};
  f.inner = {"n_inner", std::nullopt};
  f.padding = {};
  f.activation = {"activation_function", "gelu_new"};
  f.attentionDropout = {"attn_pdrop", 0.1};
  f.embeddingDropout = {"embd_pdrop", 0.1};
  f.residualDropout = {"resid_pdrop", 0.1};
  f.scaledProjections = true;
  f.norm = NormKind::Layer;
  f.eps = {"layer_norm_epsilon", 1e-5};
  f.normBias = true;
  f.qkv = QKVStorage::Thirds;
  f.transposed = true;
  f.qkvBias = f.outputBias = f.mlpBias = {{}, true};
  f.gated = false;
  f.rotary.used = false;
  f.scaled = {"scale_attn_weights", true};
  f.scaledByLayer = {"scale_attn_by_inverse_layer_idx", false};
  f.tied.otherwise = true;
  f.base = "transformer.";
  f.layerPrefix = "h";
  f.embedding = "wte";
  f.positionTable = "wpe";
  f.finalNorm = "ln_f";
  f.names.attentionNorm = "ln_1";
  f.names.mlpNorm = "ln_2";
  f.names.attention = "attn";
  f.names.q = "attn.q";
  f.names.k = "attn.k";
  f.names.v = "attn.v";
  f.names.qkv = "attn.c_attn";
  f.names.o = "attn.c_proj";
  f.names.up = "mlp.c_fc";
  f.names.down = "mlp.c_proj";
  f.names.activation = "mlp.act";
  // n_ctx repeats n_positions; the summary_* keys describe a classification head;
  // reorder_and_upcast_attn changes rounding in half precision only.
  f.ignored = {"n_ctx",
               "n_special",
               "predict_special_tokens",
               "summary_type",
               "summary_use_proj",
               "summary_activation",
               "summary_proj_to_labels",
               "summary_first_dropout",
               "reorder_and_upcast_attn",
               "pad_token_id"};
  return f;
}

/// GPT, whose norms follow attention and the MLP.
static Family openaiGpt() {
  Family f = gpt2();
  f.name = "openai-gpt";
  f.vocabulary.otherwise = 40478;
  f.positions.otherwise = 512;
  f.inner = {};
  f.activation = {"afn", "gelu"};
  f.geluIsTanh = true;
  f.scaledProjections = false;
  f.normFirst = {{}, false};
  f.scaled = {{}, true};
  f.scaledByLayer = {};
  f.embedding = "tokens_embed";
  f.positionTable = "positions_embed";
  f.fixed = {{"n_inner", {"null"}, "the MLP has another size"}};
  return f;
}

static Family opt() {
  Family f;
  f.name = "opt";
  f.vocabulary.otherwise = 50272;
  f.hidden.otherwise = 768;
  f.layers.otherwise = 12;
  f.heads.otherwise = 12;
  f.kvHeads = f.headDim = {};
  f.inner = {"ffn_dim", 3072};
  f.padding.otherwise = 1;
  f.activation = {"activation_function", "relu"};
  f.residualDropout = {"dropout", 0.1};
  f.std = {"init_std", 0.02};
  f.norm = NormKind::Layer;
  f.eps = {{}, 1e-5};
  f.normBias = true;
  f.normAffine = {"layer_norm_elementwise_affine", true};
  f.normFirst = {"do_layer_norm_before", true};
  f.qkvBias = f.outputBias = f.mlpBias = {"enable_bias", true};
  f.gated = false;
  f.rotary.used = false;
  f.embeddingWidth = {"word_embed_proj_dim", std::nullopt};
  f.tied.otherwise = true;
  f.base = "model.decoder.";
  f.positionTable = "embed_positions";
  f.positionOffset = 2;
  f.finalNorm = "final_layer_norm";
  f.names.attentionNorm = "self_attn_layer_norm";
  f.names.mlpNorm = "final_layer_norm";
  f.names.o = "self_attn.out_proj";
  f.names.up = "fc1";
  f.names.down = "fc2";
  f.names.activation = "activation_fn";
  // transformers drops nothing there, whatever it says.
  f.ignored = {"activation_dropout"};
  f.fixed = {{"layerdrop", {"0.0", "0"}, "whole layers are dropped"},
             {"_remove_final_layer_norm", {"false"}, "there is no last norm"}};
  return f;
}

static Family biogpt() {
  Family f = opt();
  f.name = "biogpt";
  f.vocabulary.otherwise = 42384;
  f.positions.otherwise = 1024;
  f.hidden.otherwise = 1024;
  f.layers.otherwise = 24;
  f.heads.otherwise = 16;
  f.inner = {"intermediate_size", 4096};
  f.activation = {"hidden_act", "gelu"};
  f.attentionDropout = {"attention_probs_dropout_prob", 0.1};
  f.embeddingDropout = f.residualDropout = {"hidden_dropout_prob", 0.1};
  f.std.name = "initializer_range";
  f.normAffine = f.normFirst = {{}, true};
  f.qkvBias = f.outputBias = f.mlpBias = {{}, true};
  f.embeddingScaled = true;
  f.embeddingWidth = {};
  f.base = "biogpt.";
  f.finalNorm = "layer_norm";
  f.head = "output_projection";
  f.ignored = {"layer_norm_eps"}; // it is 1e-5, whatever the file says
  f.fixed = {{"layerdrop", {"0.0", "0"}, "whole layers are dropped"},
             {"activation_dropout", {"0.0", "0"}, "the MLP drops elements"},
             {"scale_embedding", {"true"}, "embeddings are not scaled"}};
  return f;
}

/// GPT-2 with one head for keys and values, after StarCoder.
static Family gptBigcode() {
  Family f = gpt2();
  f.name = "gpt_bigcode";
  f.kvHeads = {{}, 1};
  f.activation.otherwise = "gelu_pytorch_tanh";
  f.transposed = false;
  f.scaledByLayer = {};
  // They change rounding in half precision only.
  f.ignored.insert(f.ignored.end(),
                   {"attention_softmax_in_fp32", "scale_attention_softmax_in_fp32",
                    "inference_runner", "validate_runner_input", "pre_allocate_kv_cache",
                    "max_sequence_length", "max_batch_size", "pad_key_length"});
  f.fixed = {{"multi_query", {"true"}, "each head has a key and a value of its own"},
             {"num_key_value_heads", {"1"}, "heads have several keys and values"}};
  return f;
}

static Family gptj() {
  Family f = gpt2();
  f.name = "gptj";
  f.vocabulary.otherwise = 50400;
  f.positions.otherwise = 2048;
  f.hidden.otherwise = 4096;
  f.layers.otherwise = 28;
  f.heads.otherwise = 16;
  f.attentionDropout.otherwise = f.embeddingDropout.otherwise = f.residualDropout.otherwise = 0;
  f.scaledProjections = false;
  f.parallel = {{}, true};
  f.qkv = QKVStorage::Apart;
  f.transposed = false;
  f.qkvBias = f.outputBias = {{}, false};
  f.headBias = {{}, true};
  f.rotary.used = true;
  f.rotary.theta = {{}, 10000.0};
  f.rotary.width = {"rotary_dim", 64};
  f.rotary.interleaved = true;
  f.scaled = {{}, true};
  f.scaledByLayer = {};
  f.tied.otherwise = false;
  f.positionTable = {};
  f.names.mlpNorm = {};
  f.names.rotary = "attn.rotary";
  f.names.q = "attn.q_proj";
  f.names.k = "attn.k_proj";
  f.names.v = "attn.v_proj";
  f.names.qkv = {};
  f.names.o = "attn.out_proj";
  f.names.up = "mlp.fc_in";
  f.names.down = "mlp.fc_out";
  f.fixed = {{"rotary", {"true"}, "positions are not rotary"},
             {"scale_attn_weights", {"true"}, "scores are not scaled"}};
  return f;
}

/// GPT-J whose queries, values and keys lie in four parts of one tensor.
static Family salesforceCodegen() {
  Family f = gptj();
  f.name = "codegen";
  f.qkv = QKVStorage::Shards;
  f.headBias = {{}, true};
  f.names.qkv = "attn.qkv_proj";
  f.fixed = {{"scale_attn_weights", {"true"}, "scores are not scaled"}};
  return f;
}

/// Scores are not scaled, and every second layer has a window.
static Family gptNeo() {
  Family f = gpt2();
  f.name = "gpt_neo";
  f.positions = {"max_position_embeddings", 2048};
  f.hidden = {"hidden_size", 2048};
  f.layers = {"num_layers", 24, "num_hidden_layers"};
  f.heads = {"num_heads", 16, "num_attention_heads"};
  f.inner = {"intermediate_size", std::nullopt};
  f.attentionDropout = {"attention_dropout", 0.0};
  f.embeddingDropout = {"embed_dropout", 0.0};
  f.residualDropout = {"resid_dropout", 0.0};
  f.scaledProjections = false;
  f.qkv = QKVStorage::Apart;
  f.transposed = false;
  f.qkvBias = {};
  f.scaled = {{}, false};
  f.scaledByLayer = {};
  f.kinds.window = {"window_size", 256};
  f.kinds.repeated = "attention_types";
  f.kinds.type = "local";
  f.kinds.fullType = "global";
  f.kinds.fullEvery = {{}, 2};
  f.kinds.fullFrom = 0;
  f.names.attention = "attn.attention";
  f.names.q = "attn.attention.q_proj";
  f.names.k = "attn.attention.k_proj";
  f.names.v = "attn.attention.v_proj";
  f.names.qkv = {};
  f.names.o = "attn.attention.out_proj";
  // "attention_layers" is "attention_types" written out; the others describe a classification head.
  f.ignored = {"attention_layers", "classifier_dropout", "pad_token_id", "summary_type", "summary_use_proj", "summary_activation",
               "summary_proj_to_labels", "summary_first_dropout", "gradient_checkpointing"};
  return f;
}

/// OPT with sines and cosines for positions.
static Family xglm() {
  Family f = opt();
  f.name = "xglm";
  f.vocabulary.otherwise = 256008;
  f.hidden = {"d_model", 1024, "hidden_size"};
  f.layers = {"num_layers", 24, "num_hidden_layers"};
  f.heads = {"attention_heads", 16, "num_attention_heads"};
  f.inner.otherwise = 4096;
  f.activation.otherwise = "gelu";
  f.attentionDropout.otherwise = 0.1;
  f.embeddingDropout = f.residualDropout = {"dropout", 0.1};
  f.innerDropout = {"activation_dropout", 0.0};
  f.normAffine = f.normFirst = {{}, true};
  f.qkvBias = f.outputBias = f.mlpBias = {{}, true};
  f.embeddingWidth = {};
  f.scaleEmbedding = {"scale_embedding", true};
  f.positionTable = {};
  f.positionOffset = 0;
  f.sinusoids = {true, true, 2};
  f.base = "model.";
  f.finalNorm = "layer_norm";
  f.ignored = {"decoder_start_token_id"};
  f.fixed = {{"layerdrop", {"0.0", "0"}, "whole layers are dropped"},
             {"add_cross_attention", {"false"}, "layers attend to an encoder"}};
  return f;
}

Family meshwright::frontend::gptNeoX() {
  Family f;
  f.name = "gpt_neox";
  f.vocabulary.otherwise = 50432;
  f.hidden.otherwise = 6144;
  f.layers.otherwise = 44;
  f.heads.otherwise = 64;
  f.kvHeads = f.headDim = {};
  f.inner.otherwise = 24576;
  f.padding = {};
  f.activation.otherwise = "gelu";
  f.embeddingDropout = f.residualDropout = {"hidden_dropout", 0.0};
  f.norm = NormKind::Layer;
  f.eps = {"layer_norm_eps", 1e-5};
  f.normBias = true;
  f.parallel = {"use_parallel_residual", true};
  f.qkv = QKVStorage::ByGroup;
  f.qkvBias = f.outputBias = {"attention_bias", true};
  f.mlpBias = {{}, true};
  f.gated = false;
  f.rotary.theta = {"rotary_emb_base", 10000.0};
  f.rotary.part = {"rotary_pct", 0.25};
  f.rotary.thetaAgain = "rope_theta";
  f.rotary.partAgain = "partial_rotary_factor";
  f.base = "gpt_neox.";
  f.embedding = "embed_in";
  f.finalNorm = "final_layer_norm";
  f.head = "embed_out";
  f.names.attention = "attention";
  f.names.rotary = "attention.rotary_emb";
  f.names.q = "attention.query";
  f.names.k = "attention.key";
  f.names.v = "attention.value";
  f.names.qkv = "attention.query_key_value";
  f.names.o = "attention.dense";
  f.names.up = "mlp.dense_h_to_4h";
  f.names.down = "mlp.dense_4h_to_h";
  f.names.activation = "mlp.act";
  f.ignored = {"pad_token_id", "classifier_dropout"};
  return f;
}

static Family gptNeoXJapanese() {
  Family f = gptNeoX();
  f.name = "gpt_neox_japanese";
  f.vocabulary.otherwise = 32000;
  f.hidden.otherwise = 2560;
  f.layers.otherwise = f.heads.otherwise = 32;
  f.inner = {};
  f.innerMultiple = {"intermediate_multiple_size", 4};
  f.attentionDropout.otherwise = 0.1;
  f.embeddingDropout = {};
  f.parallel = f.qkvBias = f.outputBias = f.mlpBias = {};
  f.rotary.part.otherwise = 1;
  f.tied.otherwise = true;
  f.base = "gpt_neox_japanese.";
  f.lastOutputBias = "attention.dense_bias";
  return f;
}

/// Falcon 7B: attention and MLP read one norm, and all heads share a key and a value.
static Family falcon() {
  Family f = gptNeoX();
  f.name = "falcon";
  f.variant = {"new_decoder_architecture", false, false};
  f.vocabulary.otherwise = 65024;
  f.hidden.otherwise = 4544;
  f.layers.otherwise = 32;
  f.heads.otherwise = 71;
  f.kvHeads = {{}, 1};
  f.inner = {"ffn_hidden_size", std::nullopt};
  f.activation = {"activation", "gelu"};
  f.attentionDropout = f.embeddingDropout = f.residualDropout = {};
  f.eps = {"layer_norm_epsilon", 1e-5};
  f.parallel = {{}, true};
  f.qkv = QKVStorage::Thirds;
  f.qkvBias = f.outputBias = f.mlpBias = {"bias", false};
  f.rotary.theta = {"rope_theta", 10000.0};
  f.rotary.part = {{}, 1.0};
  f.rotary.thetaAgain = f.rotary.partAgain = {};
  f.tied.otherwise = true;
  f.base = "transformer.";
  f.layerPrefix = "h";
  f.embedding = "word_embeddings";
  f.finalNorm = "ln_f";
  f.head = "lm_head";
  f.names.mlpNorm = {};
  f.names.attention = "self_attention";
  f.names.rotary = "self_attention.rotary_emb";
  f.names.q = "self_attention.query";
  f.names.k = "self_attention.key";
  f.names.v = "self_attention.value";
  f.names.qkv = "self_attention.query_key_value";
  f.names.o = "self_attention.dense";
  // transformers drops no attention, but in FlashAttention's kernel.
  f.ignored.insert(f.ignored.end(), {"num_kv_heads", "n_head_kv", "attention_dropout"});
  f.fixed = {
      {"multi_query", {"true"}, "each head has a key and a value of its own"},
      {"parallel_attn", {"true"}, "the MLP reads what attention gives"},
      {"alibi", {"false"}, "positions are biases of scores"},
      {"apply_residual_connection_post_layernorm", {"false"}, "the residual stream is another one"},
      {"num_ln_in_parallel_attn", {"null", "1"}, "there are two norms"},
      {"hidden_dropout", {"0.0", "0"}, "the sum of attention and MLP drops elements"}};
  return f;
}

/// Falcon 40B and later: a norm for each of both, and groups of heads.
static Family falconNew() {
  Family f = falcon();
  f.variant.value = true;
  f.kvHeads = {"num_kv_heads", std::nullopt};
  f.qkv = QKVStorage::ByGroup;
  f.names.attentionNorm = "ln_attn";
  f.names.mlpNorm = "ln_mlp";
  f.ignored = {"pad_token_id", "classifier_dropout", "multi_query", "attention_dropout"};
  f.fixed = {
      {"parallel_attn", {"true"}, "the MLP reads what attention gives"},
      {"alibi", {"false"}, "positions are biases of scores"},
      {"apply_residual_connection_post_layernorm", {"false"}, "the residual stream is another one"},
      {"num_ln_in_parallel_attn", {"null", "2"}, "there is one norm"},
      {"hidden_dropout", {"0.0", "0"}, "the sum of attention and MLP drops elements"}};
  return f;
}

static Family phi() {
  Family f;
  f.name = "phi";
  f.vocabulary.otherwise = 51200;
  f.hidden.otherwise = 2048;
  f.layers.otherwise = 24;
  f.inner.otherwise = 8192;
  f.activation.otherwise = "gelu_new";
  f.embeddingDropout = {"embd_pdrop", 0.0};
  f.residualDropout = {"resid_pdrop", 0.0};
  f.norm = NormKind::Layer;
  f.eps = {"layer_norm_eps", 1e-5};
  f.normBias = true;
  f.parallel = {{}, true};
  f.qkvBias = f.outputBias = f.mlpBias = f.headBias = {{}, true};
  f.gated = false;
  f.rotary.part = {"partial_rotary_factor", 0.5};
  f.finalNorm = "final_layernorm";
  f.names.mlpNorm = {};
  f.names.o = "self_attn.dense";
  f.names.up = "mlp.fc1";
  f.names.down = "mlp.fc2";
  f.headNorm = HeadNorm::Each;
  f.useHeadNorm = {"qk_layernorm", false};
  f.names.qNorm = "self_attn.q_layernorm";
  f.names.kNorm = "self_attn.k_layernorm";
  return f;
}

static Family persimmon() {
  Family f = phi();
  f.name = "persimmon";
  f.vocabulary.otherwise = 262144;
  f.positions.otherwise = 16384;
  f.hidden.otherwise = 4096;
  f.layers.otherwise = 36;
  f.heads.otherwise = 64;
  f.kvHeads = f.headDim = {};
  f.inner.otherwise = 16384;
  f.activation.otherwise = "relu2";
  f.embeddingDropout = f.residualDropout = {};
  f.parallel = {};
  f.qkv = QKVStorage::ByGroup;
  f.headBias = {};
  f.useHeadNorm.otherwise = true;
  f.names.mlpNorm = "post_attention_layernorm";
  f.names.qkv = "self_attn.query_key_value";
  f.names.up = "mlp.dense_h_to_4h";
  f.names.down = "mlp.dense_4h_to_h";
  f.fixed = {{"hidden_dropout", {"0.0", "0"}, "what the MLP gives drops elements"}};
  return f;
}

static Family starcoder2() {
  Family f;
  f.name = "starcoder2";
  f.vocabulary.otherwise = 49152;
  f.positions.otherwise = 4096;
  f.hidden.otherwise = 3072;
  f.layers.otherwise = 30;
  f.heads.otherwise = 24;
  f.kvHeads.otherwise = 2;
  f.inner.otherwise = 12288;
  f.activation.otherwise = "gelu_pytorch_tanh";
  f.embeddingDropout = {"embedding_dropout", 0.0};
  f.residualDropout = {"residual_dropout", 0.0};
  f.std.otherwise = 0.018042;
  f.norm = NormKind::Layer;
  f.eps = {"norm_epsilon", 1e-5};
  f.normBias = true;
  f.qkvBias = f.outputBias = f.mlpBias = {"use_bias", true};
  f.gated = false;
  f.kinds.window = {"sliding_window", std::nullopt};
  f.tied.otherwise = true;
  f.names.up = "mlp.c_fc";
  f.names.down = "mlp.c_proj";
  f.names.activation = "mlp.act";
  f.ignored = {"layer_norm_epsilon"}; // transformers reads norm_epsilon
  f.fixed = {{"mlp_type", {"\"default\""}, "the MLP is another one"},
             {"norm_type", {"\"layer_norm\""}, "norms are other ones"}};
  return f;
}

static Family nemotron() {
  Family f;
  f.name = "nemotron";
  f.vocabulary.otherwise = 256000;
  f.positions.otherwise = 4096;
  f.hidden.otherwise = 6144;
  f.heads.otherwise = 48;
  f.inner.otherwise = 24576;
  f.activation.otherwise = "relu2";
  f.std.otherwise = 0.0134;
  f.norm = NormKind::Layer;
  f.eps = {"norm_eps", 1e-5};
  f.normBias = f.normPlusOne = true;
  f.qkvBias = f.outputBias = {"attention_bias", false};
  f.mlpBias = {"mlp_bias", false};
  f.gated = false;
  f.rotary.part = {"partial_rotary_factor", 0.5};
  f.rotary.partAgain = "rope_percent";
  f.ignored = {"kv_channels"}; // transformers reads head_dim
  return f;
}

//===--- linear biases ------------------------------------------------------===//

static Family bloom() {
  Family f = gptNeoX();
  f.name = "bloom";
  f.vocabulary.otherwise = 250880;
  f.positions = {"seq_length", 2048};
  f.hidden = {"hidden_size", 64, "n_embed"};
  f.layers = {"n_layer", 2, "num_hidden_layers"};
  f.heads = {"n_head", 8, "num_attention_heads"};
  f.inner = {};
  f.activation = {{}, "gelu_pytorch_tanh"};
  f.embeddingDropout = {};
  f.residualDropout = {"hidden_dropout", 0.0};
  f.eps = {"layer_norm_epsilon", 1e-5};
  f.parallel = {};
  f.qkvBias = f.outputBias = f.mlpBias = {{}, true};
  f.rotary.used = false;
  f.alibi = 8;
  f.tied.otherwise = true;
  f.base = "transformer.";
  f.layerPrefix = "h";
  f.embedding = "word_embeddings";
  f.embeddingNorm = "word_embeddings_layernorm";
  f.finalNorm = "ln_f";
  f.head = "lm_head";
  f.names.attention = "self_attention";
  f.names.q = "self_attention.query";
  f.names.k = "self_attention.key";
  f.names.v = "self_attention.value";
  f.names.qkv = "self_attention.query_key_value";
  f.names.o = "self_attention.dense";
  f.names.activation = "mlp.gelu_impl";
  // How kernels of other programs were put together, and the order in which they add.
  f.ignored = {"pad_token_id",
               "pretraining_tp",
               "slow_but_exact",
               "offset_alibi",
               "bias_dropout_fusion",
               "masked_softmax_fusion",
               "attention_softmax_in_fp32",
               "skip_bias_add",
               "skip_bias_add_qkv"};
  f.fixed = {
      {"apply_residual_connection_post_layernorm", {"false"}, "the residual stream is another one"},
      {"n_inner", {"null"}, "the MLP has another size"}};
  return f;
}

static Family mpt() {
  Family f = bloom();
  f.name = "mpt";
  f.vocabulary.otherwise = 50368;
  f.positions = {"max_seq_len", 2048};
  f.hidden = {"d_model", 2048, "hidden_size"};
  f.layers = {"n_layers", 24, "num_hidden_layers"};
  f.heads = {"n_heads", 16, "num_attention_heads"};
  f.activation.otherwise = "gelu";
  f.attentionDropout = f.residualDropout = {"attn_config.attn_pdrop", 0.0};
  f.normBias = false;
  f.qkv = QKVStorage::Thirds;
  f.qkvBias = f.outputBias = f.mlpBias = {};
  f.scoreFactor = {"attn_config.softmax_scale", std::nullopt};
  f.clip = {"attn_config.clip_qkv", std::nullopt};
  f.layerPrefix = "blocks";
  f.embedding = "wte";
  f.embeddingNorm = {};
  f.finalNorm = "norm_f";
  f.names = {};
  f.names.attentionNorm = "norm_1";
  f.names.mlpNorm = "norm_2";
  f.names.attention = "attn";
  f.names.q = "attn.q";
  f.names.k = "attn.k";
  f.names.v = "attn.v";
  f.names.qkv = "attn.Wqkv";
  f.names.o = "attn.out_proj";
  f.names.up = "ffn.up_proj";
  f.names.down = "ffn.down_proj";
  f.names.activation = "ffn.act";
  // transformers has no learned positions and drops no more than attn_config says.
  f.ignored = {"pad_token_id", "learned_pos_emb", "emb_pdrop", "resid_pdrop", "init_config", "init_device",
               "verbose", "tokenizer_name", "attn_config.attn_impl", "attn_config.model_type"};
  f.fixed = {
      {"expansion_ratio", {"4"}, "the MLP has another size"},
      {"logit_scale", {"null"}, "logits are scaled"},
      {"no_bias", {"true"}, "layers have biases"},
      {"embedding_fraction", {"1.0", "1"}, "gradients of the embedding are scaled"},
      {"norm_type", {"\"low_precision_layernorm\"", "\"layernorm\""}, "norms are other ones"},
      {"attn_config.attn_type", {"\"multihead_attention\""}, "all heads share a key and a value"},
      {"attn_config.prefix_lm", {"false"}, "tokens see what follows them"},
      {"attn_config.qk_ln", {"false"}, "queries and keys are normalized"},
      {"attn_config.attn_uses_sequence_id", {"false"}, "tokens see their own sequence alone"},
      {"attn_config.alibi", {"true"}, "scores have no biases"},
      // transformers computes slopes with 8 whatever it says.
      {"attn_config.alibi_bias_max", {"8"}, "slopes are other ones"}};
  return f;
}

std::vector<Family> meshwright::frontend::gptFamilies() {
  return {gpt2(),   gptBigcode(), opt(), biogpt(),    gptj(),       gptNeoX(),
          falcon(), falconNew(),  phi(), persimmon(), starcoder2(), nemotron(),
          bloom(),  mpt(), openaiGpt(), salesforceCodegen(), gptNeo(), xglm(), gptNeoXJapanese()};
}
