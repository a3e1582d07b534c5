//===- LlamaFamilies.cpp - families with a gated MLP -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// After the configuration classes and modeling files of transformers. Each family starts
// from the one that it is a variation of.
//
//===----------------------------------------------------------------------===//
#include "Family.h"

using namespace meshwright::frontend;

Family meshwright::frontend::llama() {
  Family f;
  f.name = "llama";
  f.qkvBias = f.outputBias = {"attention_bias", false};
  f.mlpBias = {"mlp_bias", false};
  // pretraining_tp splits matrices without changing their product.
  f.ignored = {"pretraining_tp", "max_sequence_length", "is_llama_config"};
  return f;
}

Family meshwright::frontend::mistral() {
  Family f = llama();
  f.name = "mistral";
  f.positions.otherwise = 131072;
  f.kvHeads.otherwise = 8;
  f.inner.otherwise = 14336;
  f.qkvBias = f.outputBias = f.mlpBias = {};
  f.kinds.window = {"sliding_window", 4096};
  return f;
}

static Family ministral() {
  Family f = mistral();
  f.name = "ministral";
  f.kinds.listed = true;
  return f;
}

Family meshwright::frontend::qwen2() {
  Family f = mistral();
  f.name = "qwen2";
  f.vocabulary.otherwise = 151936;
  f.positions.otherwise = 32768;
  f.kvHeads.otherwise = 32;
  f.inner.otherwise = 22016;
  f.qkvBias = {{}, true};
  f.kinds.use = "use_sliding_window";
  f.kinds.fullLayers = {"max_window_layers", 28};
  f.kinds.listed = true;
  return f;
}

Family meshwright::frontend::qwen3() {
  Family f = qwen2();
  f.name = "qwen3";
  f.headDim.otherwise = 128;
  f.qkvBias = f.outputBias = {"attention_bias", false};
  f.headNorm = HeadNorm::Each;
  return f;
}

Family meshwright::frontend::phi3() {
  Family f = mistral();
  f.name = "phi3";
  f.vocabulary.otherwise = 32064;
  f.positions.otherwise = 4096;
  f.hidden.otherwise = 3072;
  f.kvHeads.otherwise = std::nullopt;
  f.inner.otherwise = 8192;
  f.padding.otherwise = 32000;
  f.residualDropout = {"resid_pdrop", 0.0};
  f.eps.otherwise = 1e-5;
  f.qkv = QKVStorage::Thirds;
  f.rotary.part = {"partial_rotary_factor", 1.0};
  f.rotary.original = {"original_max_position_embeddings", 4096};
  f.rotary.onlyLong = true;
  f.kinds.window.otherwise = std::nullopt;
  f.names.qkv = "self_attn.qkv_proj";
  f.names.gateUp = "mlp.gate_up_proj";
  f.names.activation = "mlp.activation_fn";
  // transformers drops no embeddings, whatever embd_pdrop says.
  f.ignored = {"embd_pdrop"};
  f.fixed = {{"interpolate_factor", {"1"}, "positions are interpolated"},
             {"full_attn_mod", {"1"}, "some layers have windows"},
             {"lm_head_bias", {"false"}, "the head has a bias"}};
  return f;
}

//===--- OLMo ---------------------------------------------------------------===//

static Family olmo() {
  Family f = llama();
  f.name = "olmo";
  f.vocabulary.otherwise = 50304;
  f.padding.otherwise = 1;
  f.norm = NormKind::Layer;
  f.eps = {{}, 1e-5};
  f.normWeight = false;
  f.mlpBias = {};
  f.clip = {"clip_qkv", std::nullopt};
  return f;
}

/// Norms after attention and MLP, and of all queries and keys.
Family meshwright::frontend::olmo2() {
  Family f = olmo();
  f.name = "olmo2";
  f.clip = {};
  f.ignored.push_back("clip_qkv"); // transformers clips nothing from here on
  f.norm = NormKind::RMS;
  f.eps = {"rms_norm_eps", 1e-5};
  f.normWeight = true;
  f.headNorm = HeadNorm::Whole;
  f.names.attentionNorm = f.names.mlpNorm = {};
  f.names.attentionPostNorm = "post_attention_layernorm";
  f.names.mlpPostNorm = "post_feedforward_layernorm";
  return f;
}

Family meshwright::frontend::olmo3() {
  Family f = olmo2();
  f.name = "olmo3";
  f.rotary.theta.otherwise = 500000.0;
  f.rotary.windowTheta = {{}, 500000.0};
  f.rotary.byLayerType = true;
  f.kinds.window = {"sliding_window", 4096};
  f.kinds.fullEvery = {{}, 4};
  f.kinds.listed = true;
  return f;
}

Family meshwright::frontend::exaone4() {
  Family f = olmo2();
  f.name = "exaone4";
  f.vocabulary.otherwise = 102400;
  f.kvHeads.otherwise = 32;
  f.inner.otherwise = 16384;
  f.padding.otherwise = std::nullopt;
  f.qkvBias = f.outputBias = {};
  f.headNorm = HeadNorm::Each;
  f.rotary.turns = Turns::WindowsIfAny;
  f.kinds.window = {"sliding_window", 4096};
  f.kinds.fullEvery = {"sliding_window_pattern", 4};
  f.kinds.listed = true;
  f.fixed = {};
  return f;
}

//===--- others -------------------------------------------------------------===//

Family meshwright::frontend::granite() {
  Family f = llama();
  f.name = "granite";
  f.scoreFactor = {"attention_multiplier", 1.0};
  f.embeddingFactor = {"embedding_multiplier", 1.0};
  f.residualFactor = {"residual_multiplier", 1.0};
  f.logitDivisor = {"logits_scaling", 1.0};
  return f;
}

/// After the code that OpenBMB publishes with its models.
static Family minicpm() {
  Family f = llama();
  f.name = "minicpm";
  f.judge = "a granite of transformers that computes the same";
  f.headDim = {};
  f.mlpBias = {};
  f.embeddingFactor = {"scale_emb", 1.0};
  f.depthFactor = {"scale_depth", 1.0};
  f.logitWidth = {"dim_model_base", 1};
  f.tied.otherwise = true;
  f.ignored.push_back("mup_denominator"); // of other models that draft tokens
  f.fixed = {{"sparse_config", {"null"}, "attention is sparse"}};
  return f;
}

static Family smollm3() {
  Family f = llama();
  f.name = "smollm3";
  f.vocabulary.otherwise = 128256;
  f.positions.otherwise = 32768;
  f.hidden.otherwise = 2048;
  f.layers.otherwise = 36;
  f.heads.otherwise = 16;
  f.kvHeads.otherwise = 4;
  f.padding.otherwise = 128004;
  f.rotary.theta.otherwise = 2000000.0;
  f.rotary.layers = "no_rope_layers"; // 1 where there are rotary positions
  f.rotary.unturnedEvery = {"no_rope_layer_interval", 4};
  f.kinds.window = {"sliding_window", std::nullopt};
  f.kinds.use = "use_sliding_window";
  f.kinds.listed = f.kinds.unturned = true;
  f.tied.otherwise = true;
  f.ignored.push_back("max_window_layers"); // transformers does not read it
  return f;
}

static Family stablelm() {
  Family f = llama();
  f.name = "stablelm";
  f.vocabulary.otherwise = 50304;
  f.positions.otherwise = 4096;
  f.hidden.otherwise = 2560;
  f.kvHeads.otherwise = 32;
  f.headDim = {};
  f.inner.otherwise = 6912;
  f.norm = NormKind::Layer;
  f.eps = {"layer_norm_eps", 1e-5};
  f.normBias = true;
  f.qkvBias = {"use_qkv_bias", false};
  f.outputBias = f.mlpBias = {};
  f.rotary.part = {"partial_rotary_factor", 0.25};
  f.parallel = {"use_parallel_residual", false};
  f.parallelShares = true;
  f.headNorm = HeadNorm::Apart;
  f.useHeadNorm = {"qk_layernorm", false};
  f.names.qNorm = "self_attn.q_layernorm.norms.{head}";
  f.names.kNorm = "self_attn.k_layernorm.norms.{head}";
  f.fixed = {{"hidden_dropout", {"0.0", "0"}, "what the MLP gives drops elements"}};
  return f;
}

Family meshwright::frontend::glm() {
  Family f = llama();
  f.name = "glm";
  f.vocabulary.otherwise = 151552;
  f.positions.otherwise = 131072;
  f.layers.otherwise = 40;
  f.kvHeads.otherwise = 2;
  f.headDim.otherwise = 128;
  f.inner.otherwise = 13696;
  f.padding.otherwise = 151329;
  f.eps.otherwise = 1.5625e-07;
  f.qkvBias = {"attention_bias", true};
  f.outputBias = f.mlpBias = {};
  f.rotary.part = {"partial_rotary_factor", 0.5};
  f.rotary.interleaved = true;
  f.names.gateUp = "mlp.gate_up_proj";
  f.names.activation = "mlp.activation_fn";
  return f;
}

static Family glm4() {
  Family f = glm();
  f.name = "glm4";
  f.names.attentionPostNorm = "post_self_attn_layernorm";
  f.names.mlpPostNorm = "post_mlp_layernorm";
  return f;
}

static Family cohere() {
  Family f = llama();
  f.name = "cohere";
  f.vocabulary.otherwise = 256000;
  f.positions.otherwise = 8192;
  f.hidden.otherwise = 8192;
  f.layers.otherwise = 40;
  f.heads.otherwise = 64;
  f.inner.otherwise = 22528;
  f.padding.otherwise = 0;
  f.norm = NormKind::Layer;
  f.eps = {"layer_norm_eps", 1e-5};
  f.parallel = {{}, true};
  f.mlpBias = {};
  f.headNorm = HeadNorm::Apart;
  f.useHeadNorm = {"use_qk_norm", false};
  f.rotary.theta.otherwise = 500000.0;
  f.rotary.interleaved = true;
  f.logitFactor = {"logit_scale", 0.0625};
  f.tied.otherwise = true;
  f.names.mlpNorm = {};
  f.ignored.push_back("model_max_length"); // the tokenizer's
  return f;
}

Family meshwright::frontend::cohere2() {
  Family f = cohere();
  f.name = "cohere2";
  f.headNorm = HeadNorm::None;
  f.useHeadNorm = {{}, true};
  f.rotary.theta.otherwise = 10000.0;
  f.rotary.turns = Turns::Windows;
  f.kinds.window = {"sliding_window", 4096};
  f.kinds.fullEvery = {"sliding_window_pattern", 4};
  f.kinds.listed = true;
  // What transformers assumes whatever they say.
  f.fixed = {
      {"use_qk_norm", {"false"}, "heads are normalized"},
      {"layer_switch", {"4"}, "other layers have no window"},
      {"order_of_interleaved_layers", {"\"local_attn_first\""}, "layers are ordered otherwise"},
      {"position_embedding_type", {"\"rope_gptj\""}, "positions are other ones"},
      {"rotary_pct", {"1.0"}, "only a part of each head turns"},
      {"use_embedding_sharing", {"true"}, "the head has weights of its own"},
      {"use_gated_activation", {"true"}, "the MLP is another one"},
      {"use_parallel_block", {"true"}, "the MLP reads what attention gives"},
      {"use_parallel_embedding", {"false"}, "the embedding is another one"}};
  return f;
}

static Family helium() {
  Family f = llama();
  f.name = "helium";
  f.vocabulary.otherwise = 48000;
  f.positions.otherwise = 4096;
  f.hidden.otherwise = 2560;
  f.layers.otherwise = 24;
  f.heads.otherwise = 20;
  f.kvHeads.otherwise = 20;
  f.headDim.otherwise = 128;
  f.inner.otherwise = 7040;
  f.padding.otherwise = 3;
  f.eps.otherwise = 1e-8;
  f.outputBias = {};
  f.rotary.theta.otherwise = 100000.0;
  f.rotary.interleaved = true;
  return f;
}

static Family seedOss() {
  Family f = llama();
  f.name = "seed_oss";
  f.vocabulary.otherwise = 155136;
  f.positions.otherwise = 524288;
  f.layers.otherwise = 64;
  f.heads.otherwise = 80;
  f.kvHeads.otherwise = 8;
  f.headDim.otherwise = 128;
  f.inner.otherwise = 27648;
  f.padding.otherwise = 1;
  f.attentionDropout.otherwise = 0.1;
  f.residualDropout = {"residual_dropout", 0.1};
  f.qkvBias = {"attention_bias", true};
  f.outputBias = {"attention_out_bias", false};
  return f;
}

static Family arcee() {
  Family f = llama();
  f.name = "arcee";
  f.positions.otherwise = 4096;
  f.hidden.otherwise = 2560;
  f.inner.otherwise = 18432;
  f.activation.otherwise = "relu2";
  f.eps.otherwise = 1e-5;
  f.gated = false;
  return f;
}

Family meshwright::frontend::ernie45() {
  Family f = llama();
  f.name = "ernie4_5";
  f.attentionDropout = {};
  f.ignored.push_back("attention_dropout"); // transformers drops nothing, whatever it says
  f.vocabulary.otherwise = 103424;
  f.positions.otherwise = 131072;
  f.hidden.otherwise = 1024;
  f.layers.otherwise = 18;
  f.heads.otherwise = 16;
  f.kvHeads.otherwise = 2;
  f.headDim.otherwise = 128;
  f.inner.otherwise = 3072;
  f.padding.otherwise = 0;
  f.eps.otherwise = 1e-5;
  f.qkvBias = f.outputBias = f.mlpBias = {"use_bias", false};
  f.rotary.theta.otherwise = 500000.0;
  f.rotary.interleaved = true;
  f.tied.otherwise = true;
  return f;
}

/// Ministral 3, whose queries are scaled by their positions.
static Family ministral3() {
  Family f = mistral();
  f.name = "ministral3";
  f.vocabulary.otherwise = 131072;
  f.positions.otherwise = 262144;
  f.layers.otherwise = 34;
  f.headDim.otherwise = 128;
  f.padding.otherwise = 11;
  f.eps.otherwise = 1e-5;
  f.kinds.window.otherwise = std::nullopt;
  f.rotary.scalingRequired = true;
  f.temperature.ofRotary = "llama_4_scaling_beta";
  return f;
}

/// Queries and keys are normalized after the rotary embedding.
Family meshwright::frontend::hunyuan() {
  Family f = llama();
  f.name = "hunyuan_v1_dense";
  f.vocabulary.otherwise = 290943;
  f.padding.otherwise = 0;
  f.eps.otherwise = 1e-5;
  f.mlpBias = {};
  f.headNorm = HeadNorm::After;
  f.rotary.alpha = true;
  f.names.qNorm = "self_attn.query_layernorm";
  f.names.kNorm = "self_attn.key_layernorm";
  // Other parts of the family, tokens, and sizes of what is not there: transformers reads none of them.
  f.ignored = {"pretraining_tp", "add_classification_head", "anyres_pooling_size", "anyres_vit_max_image_size",
               "anyres_vit_two_views", "attention_head_dim", "capacity_factor", "cla_share_factor", "class_num",
               "dense_list", "enable_lm_head_fp32", "eod_token_id", "group_limited_greedy", "im_end_id", "im_newline_id",
               "im_start_id", "image_token_id", "kv_lora_rank", "mask_init_id", "max_image_size", "moe_drop_tokens",
               "moe_intermediate_size", "moe_layer_num_skipped", "moe_random_routing_dropped_token", "moe_topk", "num_experts",
               "num_media_embeds",
               "num_shared_expert", "org_vocab_size", "pad_id", "pool_type", "q_lora_rank", "qk_nope_head_dim",
               "qk_rope_head_dim", "routed_scaling_factor", "skip_cls_token", "text_end_id", "text_start_id",
               "use_mixed_mlp_moe", "v_head_dim", "video_end_id", "video_start_id", "vit_add_patchemb_bias",
               "vit_input_resolution", "vit_mapping_type", "vit_norm_type", "vit_patch", "vit_path", "vit_remove_prenorm",
               "vit_token", "vit_type", "vit_used_rms_norm", "xdrope_section"};
  f.fixed = {{"norm_topk_prob", {"true"}, "weights of experts are not normalized"},
             {"norm_type", {"\"rms\"", "\"hf_rms\""}, "norms are other ones"},
             {"position_embedding_xdrope", {"false"}, "positions have several axes"},
             {"use_cla", {"false"}, "layers share keys and values"},
             {"use_mla", {"false"}, "attention is latent"},
             {"use_rotary_pos_emb", {"true"}, "positions are not rotary"}};
  return f;
}

/// MiMo: a qwen2, beside layers that predict further tokens.
static Family mimo() {
  Family f = qwen2();
  f.name = "mimo";
  f.ignored.push_back("num_nextn_predict_layers");
  f.fixed.push_back({"attention_bias", {"true"}, "queries, keys and values have no biases"});
  return f;
}

/// An activation that is trained.
static Family apertus() {
  Family f = llama();
  f.name = "apertus";
  f.vocabulary.otherwise = 131072;
  f.positions.otherwise = 65536;
  f.inner.otherwise = 14336;
  f.padding.otherwise = 3;
  f.activation.otherwise = xieluName;
  f.mayBeXielu = true;
  f.eps.otherwise = 1e-5;
  f.mlpBias = {};
  f.headNorm = HeadNorm::Each;
  f.rotary.theta.otherwise = 12000000.0;
  f.rotary.scalingRequired = true;
  f.gated = false;
  f.names.attentionNorm = "attention_layernorm";
  f.names.mlpNorm = "feedforward_layernorm";
  f.fixed = {{"hidden_dropout", {"0.0", "0"}, "what layers give drops elements"},
             {"post_norm", {"false"}, "norms follow attention and the MLP"}};
  return f;
}

/// Every fourth layer, from the first, has no window.
static Family cwm() {
  Family f = llama();
  f.name = "cwm";
  f.vocabulary.otherwise = 128256;
  f.positions.otherwise = 131072;
  f.hidden.otherwise = 6144;
  f.layers.otherwise = 64;
  f.heads.otherwise = 48;
  f.kvHeads.otherwise = 8;
  f.headDim.otherwise = 128;
  f.inner.otherwise = 21504;
  f.eps.otherwise = 1e-5;
  f.rotary.theta.otherwise = 1e6;
  f.qkvBias = f.outputBias = {};
  f.kinds.window = {"sliding_window", 8192};
  f.kinds.fullEvery = {{}, 4};
  f.kinds.fullFrom = 0;
  f.kinds.listed = true;
  return f;
}

static Family internlm3() {
  Family f = llama();
  f.name = "internlm3";
  f.vocabulary.otherwise = 128512;
  f.positions.otherwise = 32768;
  f.layers.otherwise = 48;
  f.kvHeads.otherwise = 2;
  f.headDim.otherwise = 128;
  f.inner.otherwise = 10240;
  f.padding.otherwise = 2;
  f.eps.otherwise = 1e-5;
  f.qkvBias.alias = f.outputBias.alias = "qkv_bias";
  f.mlpBias.alias = "bias";
  return f;
}

static Family iquestcoder() {
  Family f = llama();
  f.name = "iquestcoder";
  f.vocabulary.otherwise = 76800;
  f.positions.otherwise = 131072;
  f.hidden.otherwise = 5120;
  f.layers.otherwise = 80;
  f.heads.otherwise = 40;
  f.kvHeads.otherwise = 8;
  f.headDim.otherwise = 128;
  f.inner.otherwise = 27648;
  f.eps.otherwise = 1e-5;
  f.fixed.push_back({"clip_qkv", {"null"}, "queries, keys and values are clipped"});
  f.fixed.push_back({"use_sliding_window", {"false"}, "layers have windows"});
  return f;
}

static Family jais2() {
  Family f = llama();
  f.name = "jais2";
  f.vocabulary.otherwise = 150272;
  f.positions.otherwise = 8192;
  f.hidden.otherwise = 3328;
  f.heads.otherwise = 26;
  f.inner.otherwise = 26624;
  f.activation.otherwise = "relu2";
  f.norm = NormKind::Layer;
  f.normBias = true;
  f.eps = {"layer_norm_eps", 1e-5};
  f.gated = false;
  f.qkvBias.otherwise = f.outputBias.otherwise = f.mlpBias.otherwise = true;
  return f;
}

/// Granite's factors, but logits are multiplied by theirs. `postNorm`: what attention and the MLP give is normalized too.
static Family hyperclovax(bool postNorm) {
  Family f = granite();
  f.name = "hyperclovax";
  f.variant = {"use_post_norm", true, postNorm};
  f.scoreFactor.otherwise = std::nullopt;
  f.logitFactor = {"logits_scaling", 1.0};
  f.logitDivisor = {};
  if (postNorm) {
    f.names.attentionPostNorm = "post_norm1";
    f.names.mlpPostNorm = "post_norm2";
  }
  return f;
}

/// Norms have no weights, embeddings are normalized, and heads turn backwards and are normalized then.
static Family nanochat() {
  Family f = llama();
  f.name = "nanochat";
  f.vocabulary.otherwise = 50304;
  f.hidden.otherwise = 768;
  f.layers.otherwise = 12;
  f.heads.otherwise = 6;
  f.inner.otherwise = 8192;
  f.padding.otherwise = 1;
  f.activation.otherwise = "relu2";
  f.normWeight = false;
  f.mlpBias = {};
  f.headNorm = HeadNorm::After;
  f.rotary.backwards = true;
  f.logitCap = {"final_logit_softcapping", 15.0};
  f.gated = false;
  f.embeddingNorm = "embedding_norm";
  f.names.up = "mlp.fc1";
  f.names.down = "mlp.fc2";
  f.names.activation = "mlp.activation_fn";
  return f;
}

/// Granite with windows and sinks, whose layers have angles of their own.
Family meshwright::frontend::withSinksAndWindows(Family f) {
  f.sinks = "self_attn.sinks";
  f.kinds.window = {"sliding_window", 128};
  f.kinds.fullEvery = {{}, 4};
  f.kinds.fullFrom = 0;
  f.kinds.listed = true;
  f.rotary.thetas = "layer_rope_theta";
  return f;
}

static Family graniteSwa() {
  Family f = withSinksAndWindows(granite());
  f.name = "granite_swa";
  f.vocabulary.otherwise = 100352;
  f.positions.otherwise = 8192;
  f.hidden.otherwise = 2560;
  f.layers.otherwise = 24;
  f.heads.otherwise = 20;
  f.kvHeads.otherwise = 4;
  f.inner.otherwise = 8192;
  f.eps.otherwise = 1e-5;
  f.tied.otherwise = true;
  return f;
}

/// Attention is the difference of two (Ye et al. 2024, arXiv 2410.05258).
static Family diffLlama() {
  Family f = llama();
  f.name = "diffllama";
  f.hidden.otherwise = 2048;
  f.layers.otherwise = 16;
  f.inner.otherwise = 8192;
  f.attentionDropout = {};
  f.eps.otherwise = 1e-5;
  f.mlpBias = {};
  f.differential.used = true;
  f.differential.std = {"lambda_std_dev", 0.1};
  f.fixed = {{"attention_dropout", {"0.0", "0", "null"}, "transformers computes no dropout of a difference"}};
  return f;
}

std::vector<Family> meshwright::frontend::llamaFamilies() {
  return {llama(),  mistral(), ministral(), qwen2(),   qwen3(),   phi3(),     olmo(), olmo2(),
          olmo3(),  exaone4(), granite(),   minicpm(), smollm3(), stablelm(), glm(),  glm4(),
          cohere(), cohere2(), helium(),    seedOss(), arcee(),   ernie45(), apertus(), ministral3(), hunyuan(), mimo(),
          cwm(),    internlm3(), iquestcoder(), jais2(), nanochat(), diffLlama(), graniteSwa(), hyperclovax(true), hyperclovax(false)};
}
