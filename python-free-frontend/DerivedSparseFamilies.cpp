//===- DerivedSparseFamilies.cpp - mixtures on the attention of other families --===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Each is a family of another file with experts, or one with experts whose attention differs.
//
//===----------------------------------------------------------------------===//
#include "Family.h"

using namespace meshwright::frontend;

/// OLMo 2 with experts.
static Family flexOlmo() {
  Family f = olmo2();
  f.name = "flex_olmo";
  f.vocabulary.otherwise = 100352;
  f.positions.otherwise = 4096;
  f.padding.otherwise = 100277;
  f.eps.otherwise = 1e-6;
  f.rotary.theta.otherwise = 500000.0;
  addExperts(f, 7, 5, 0);
  f.experts.inner = {};
  f.experts.balance.otherwise = 0.01;
  f.experts.dense = {};
  f.experts.every = {};
  return f;
}

/// Qwen3-MoE with windows, angles by type of layer, and a list of the layers that have experts.
static Family mellum() {
  Family f = qwen3Moe();
  f.name = "mellum";
  f.vocabulary.otherwise = 98304;
  f.positions.otherwise = 131072;
  f.hidden.otherwise = 2304;
  f.layers.otherwise = 28;
  f.heads.otherwise = 32;
  f.headDim.otherwise = 128;
  f.inner.otherwise = 7168;
  f.rotary.byLayerType = true;
  f.kinds = {};
  f.kinds.window = {"sliding_window", 1024};
  f.kinds.listed = true;
  f.experts.count = {"num_local_experts", 64, "num_experts"};
  f.experts.inner.otherwise = 896;
  f.experts.normalized.otherwise = true;
  f.experts.dense = {};
  f.experts.every = {};
  f.experts.kinds = "mlp_layer_types";
  // Layers that predict further tokens are not trained.
  f.ignored.insert(f.ignored.end(), {"num_nextn_predict_layers", "num_mtp_layers", "mtp_layer_types", "mtp_mlp_layer_types"});
  return f;
}

static Family dots1() {
  Family f = qwen3();
  f.name = "dots1";
  f.vocabulary.otherwise = 152064;
  f.positions.otherwise = 2048;
  f.hidden.otherwise = 4608;
  f.layers.otherwise = 62;
  f.inner.otherwise = 10944;
  f.headDim.otherwise = std::nullopt;
  f.kinds.use = {};
  f.kinds.fullLayers.otherwise = 62;
  addRoutedExperts(f, "\"sigmoid\"", 0, 0, 1408);
  f.experts.denseFirst.otherwise = 0;
  f.experts.groups.otherwise = f.experts.chosenGroups.otherwise = 1;
  f.experts.normalized.otherwise = false;
  f.experts.factor.otherwise = 1;
  return f;
}

static Family exaoneMoe() {
  Family f = exaone4();
  f.name = "exaone_moe";
  f.eps.otherwise = 1e-5;
  f.padding.otherwise = 0;
  f.names.attentionNorm = "input_layernorm";
  f.names.mlpNorm = "post_attention_layernorm";
  f.names.attentionPostNorm = f.names.mlpPostNorm = {};
  addRoutedExperts(f, "\"sigmoid\"", 64, 8, 1024);
  f.experts.count = {"num_experts", 64, "num_local_experts"};
  f.experts.sharedCount = {"num_shared_experts", 1};
  f.experts.denseFirst.otherwise = 1;
  f.experts.groups.otherwise = f.experts.chosenGroups.otherwise = 1;
  f.experts.kinds = "mlp_layer_types";
  f.experts.choiceBias = "mlp.e_score_correction_bias";
  return f;
}

static Family solarOpen() {
  Family f = llama();
  f.name = "solar_open";
  f.vocabulary.otherwise = 196608;
  f.positions.otherwise = 131072;
  f.layers.otherwise = 48;
  f.heads.otherwise = 64;
  f.kvHeads.otherwise = 8;
  f.headDim.otherwise = 128;
  f.eps.otherwise = 1e-5;
  f.outputBias = f.mlpBias = {};
  f.rotary.theta.otherwise = 1e6;
  f.rotary.part = {"partial_rotary_factor", 1.0};
  addRoutedExperts(f, "\"sigmoid\"", 128, 8, 1280);
  f.inner = {"moe_intermediate_size", 1280}; // no layer is dense
  f.experts.denseFirst = {};
  f.experts.groups.otherwise = f.experts.chosenGroups.otherwise = 1;
  f.experts.factor.otherwise = 1;
  f.ignored.push_back("intermediate_size");
  f.fixed.push_back({"first_k_dense_replace", {"0"}, "layers have no experts"});
  f.fixed.push_back({"use_qk_norm", {"false"}, "heads are normalized"});
  return f;
}

static Family hyV3() {
  Family f = llama();
  f.name = "hy_v3";
  f.vocabulary.otherwise = 120832;
  f.positions.otherwise = 131072;
  f.layers.otherwise = 80;
  f.heads.otherwise = 64;
  f.kvHeads.otherwise = 8;
  f.headDim.otherwise = 128;
  f.inner.otherwise = 13312;
  f.eps.otherwise = 1e-5;
  f.headNorm = HeadNorm::Each;
  f.rotary.theta.otherwise = 11158840.0;
  addRoutedExperts(f, "\"sigmoid\"", 192, 8, 1536);
  Experts &e = f.experts;
  e.count = {"num_experts", 192, "num_local_experts"};
  e.normalized = {{}, true};
  e.factor = {"router_scaling_factor", 2.826};
  e.groups = e.chosenGroups = {};
  e.denseFirst.otherwise = 1;
  e.kinds = "mlp_layer_types";
  e.sharedCount = {"num_shared_experts", 1};
  e.router = "mlp.router.gate";
  e.choiceBias = "mlp.expert_bias";
  e.shared = "mlp.shared_mlp";
  f.ignored.push_back("enable_moe_fp32_combine"); // sums are in f32 here
  return f;
}

/// GLM-4.7-Flash: DeepSeek's attention and GLM's experts.
static Family glm4MoeLite() {
  Family f = deepseekV3();
  f.name = "glm4_moe_lite";
  f.vocabulary.otherwise = 154880;
  f.positions.otherwise = 202752;
  f.hidden.otherwise = 2048;
  f.layers.otherwise = 47;
  f.heads.otherwise = 20;
  f.inner.otherwise = 10240;
  f.eps.otherwise = 1e-5;
  f.latent.queryRank.otherwise = 768;
  f.latent.plainDim.otherwise = 192;
  f.latent.valueDim.otherwise = 256;
  f.experts.count.otherwise = 64;
  f.experts.chosen.otherwise = 4;
  f.experts.inner.otherwise = 1536;
  f.experts.factor.otherwise = 1.8;
  f.experts.groups.otherwise = f.experts.chosenGroups.otherwise = 1;
  f.experts.denseFirst.otherwise = 1;
  f.experts.kinds = "mlp_layer_types";
  return f;
}

/// DeepSeek's attention without experts.
static Family youtu() {
  Family f = deepseekV3();
  f.name = "youtu";
  f.vocabulary.otherwise = 128256;
  f.positions.otherwise = 131072;
  f.hidden.otherwise = 2048;
  f.layers.otherwise = 32;
  f.heads.otherwise = 16;
  f.inner.otherwise = 6144;
  f.std.otherwise = 0.0198;
  f.tied.otherwise = true;
  f.experts = {};
  f.ignored = {"pretraining_tp", "head_dim", "qk_head_dim", "embedding_initializer_range"};
  f.fixed = {{"mlp_bias", {"false"}, "MLPs have biases"}};
  return f;
}

static Family graniteMoeSwa() {
  Family f = withSinksAndWindows(graniteMoeShared());
  f.name = "granitemoe_swa";
  f.experts.router = "block_sparse_moe.router";
  f.experts.gate = "block_sparse_moe.experts.gate_proj";
  f.experts.up = "block_sparse_moe.experts.up_proj";
  f.experts.down = "block_sparse_moe.experts.down_proj";
  f.experts.gateUp = "block_sparse_moe.experts.gate_up_proj";
  f.experts.suffix = {};
  return f;
}

/// Sarvam's 30B, which transformers computes as a GLM-4.5 whose heads turn whole.
static Family sarvamMoe() {
  Family f = glm4Moe();
  f.name = "sarvam_moe";
  f.vocabulary.otherwise = 262144;
  f.layers.otherwise = 19;
  f.heads.otherwise = 64;
  f.kvHeads.otherwise = 4;
  f.headDim.otherwise = 64;
  f.inner.otherwise = 8192;
  f.padding.otherwise = 0;
  f.eps.otherwise = 1e-6;
  f.std.otherwise = 0.006;
  f.qkvBias.alias = "use_qkv_bias";
  f.useHeadNorm.otherwise = true;
  f.rotary.theta.otherwise = 8e6;
  f.rotary.part.otherwise = 1;
  f.qkv = QKVStorage::Thirds;
  f.embedding = "word_embeddings";
  f.names.attention = "attention";
  f.names.rotary = "attention.rotary_emb";
  f.names.q = "attention.q_proj";
  f.names.k = "attention.k_proj";
  f.names.v = "attention.v_proj";
  f.names.qkv = "attention.query_key_value";
  f.names.o = "attention.dense";
  f.names.qNorm = "attention.query_layernorm";
  f.names.kNorm = "attention.key_layernorm";
  f.experts.inner.otherwise = 1024;
  f.experts.chosen.otherwise = 6;
  f.experts.count.alias = "num_experts";
  f.experts.sharedCount.alias = "num_shared_experts";
  f.experts.factor.otherwise = 2.5;
  f.experts.choiceBias = "mlp.gate.expert_bias";
  return f;
}

/// Sarvam's 105B, which transformers computes as a DeepSeek-V3.
static Family sarvamMla() {
  Family f = deepseekV3();
  f.name = "sarvam_mla";
  f.vocabulary.otherwise = 262144;
  f.hidden.otherwise = 4096;
  f.layers.otherwise = 32;
  f.heads.otherwise = 64;
  f.inner.otherwise = 16384;
  f.std.otherwise = 0.006;
  f.latent.queryRank.otherwise = std::nullopt;
  f.experts.count.otherwise = 128;
  f.experts.count.alias = "num_experts";
  f.experts.sharedCount.alias = "num_shared_experts";
  f.experts.groups.otherwise = f.experts.chosenGroups.otherwise = 1;
  f.experts.denseFirst.otherwise = 1;
  f.ignored.push_back("q_head_dim");
  return f;
}

/// DeepSeek-V3 whose experts are followed by a norm.
static Family axk1() {
  Family f = deepseekV3();
  f.name = "axk1";
  f.vocabulary.otherwise = 163840;
  f.positions.otherwise = 32768;
  f.heads.otherwise = 64;
  f.experts.count.otherwise = 192;
  f.experts.denseFirst.otherwise = 1;
  f.experts.kinds = "mlp_layer_types";
  f.experts.postNorm = "post_mlp_layernorm";
  return f;
}

/// Arcee's Trinity: what heads give is gated, and layers without a window do not turn.
static Family afmoe() {
  Family f = llama();
  f.name = "afmoe";
  f.vocabulary.otherwise = 200192;
  f.positions.otherwise = 16384;
  f.hidden.otherwise = 2048;
  f.heads.otherwise = 16;
  f.headDim.otherwise = 128;
  f.inner.otherwise = 6144;
  f.eps.otherwise = 1e-5;
  f.mlpBias = {};
  f.headNorm = HeadNorm::Each;
  f.headGate = {"self_attn.gate_proj", true};
  f.rotary.turns = Turns::Windows;
  f.kinds.window = {"sliding_window", 1024};
  f.kinds.fullEvery = {"global_attn_every_n_layers", 4};
  f.kinds.listed = true;
  f.scaleEmbedding = {"mup_enabled", false};
  f.names.attentionPostNorm = "post_attention_layernorm";
  f.names.mlpNorm = "pre_mlp_layernorm";
  f.names.mlpPostNorm = "post_mlp_layernorm";
  Experts &e = f.experts;
  e.count = {"num_experts", 64, "num_local_experts"};
  e.chosen = {"num_experts_per_tok", 6};
  e.inner = {"moe_intermediate_size", 1408};
  e.denseFirst = {"num_dense_layers", 1};
  e.factor = {"route_scale", 1.0};
  e.sigmoid = e.fullRouter = true;
  e.router = "mlp.router.gate";
  e.choiceBias = "mlp.expert_bias";
  e.sharedCount = {"num_shared_experts", 2};
  e.shared = "mlp.shared_experts";
  f.ignored.push_back("output_router_logits"); // no loss of transformers reads it
  f.fixed = {{"n_group", {"1"}, "experts are in groups"},
             {"topk_group", {"1"}, "experts are in groups"},
             {"route_norm", {"true"}, "weights of experts are not normalized"},
             {"score_func", {"\"sigmoid\""}, "scores are other ones"}};
  return f;
}

/// Poolside's Laguna: heads are gated by softplus, and their number may differ by layer.
static Family laguna() {
  Family f = llama();
  f.name = "laguna";
  f.vocabulary.otherwise = 100352;
  f.positions.otherwise = 131072;
  f.hidden.otherwise = 2048;
  f.layers.otherwise = 40;
  f.heads.otherwise = 48;
  f.kvHeads.otherwise = 8;
  f.headDim.otherwise = 128;
  f.inner.otherwise = 8192;
  f.mlpBias = {};
  f.headNorm = HeadNorm::Each;
  f.headGate = {"self_attn.g_proj", false, "gating", true};
  f.headsByLayer = "num_attention_heads_per_layer";
  f.rotary.theta.otherwise = 500000.0;
  f.rotary.windowTheta = {{}, 10000.0};
  f.rotary.byLayerType = true;
  f.rotary.part = {{}, 0.5};
  f.rotary.windowPart = f.rotary.partOfType = 1;
  f.kinds.window = {"sliding_window", 512};
  f.kinds.fullEvery = {{}, 1};
  f.kinds.listed = true;
  Experts &e = f.experts;
  e.count = {"num_experts", 256, "num_local_experts"};
  e.chosen = {"num_experts_per_tok", 8};
  e.inner = {"moe_intermediate_size", 512};
  e.denseFirst = {{}, 1};
  e.kinds = "mlp_layer_types";
  e.factor = {"moe_routed_scaling_factor", 1.0};
  e.sigmoid = e.fullRouter = true;
  e.choiceBias = "mlp.experts.e_score_correction_bias";
  e.sharedInner = {"shared_expert_intermediate_size", 512};
  e.shared = "mlp.shared_expert";
  f.ignored.push_back("router_aux_loss_coef");
  f.fixed = {{"output_router_logits", {"false"}, "the loss has a part of softmaxes, which routers lack"},
             {"moe_apply_router_weight_on_input", {"false"}, "inputs of experts are weighed"},
             {"moe_router_logit_softcapping", {"0.0", "0"}, "logits of routers are capped"}};
  return f;
}

/// Xiaomi's MiMo-V2: values are narrower than keys and scaled, and layers with a window have sinks and more heads of keys.
static Family mimoV2Flash() {
  Family f = llama();
  f.name = "mimo_v2_flash";
  f.vocabulary.otherwise = 152576;
  f.positions.otherwise = 131072;
  f.hidden.otherwise = 4096;
  f.layers.otherwise = 48;
  f.heads.otherwise = 64;
  f.kvHeads.otherwise = 4;
  f.headDim.otherwise = 192;
  f.valueDim = {"v_head_dim", 128};
  f.valueFactor = {"attention_value_scale", 0.707};
  f.inner.otherwise = 16384;
  f.eps = {"rms_norm_eps", 1e-5, "layernorm_epsilon"};
  f.outputBias = f.mlpBias = {};
  f.sinks = "self_attn.attention_sink_bias";
  f.sinksInWindows = true;
  f.windowedKvHeads = 2;
  f.windowedKvHeadsKey = "swa_num_key_value_heads";
  f.rotary.theta.otherwise = 5e6;
  f.rotary.windowTheta = {"swa_rope_theta", 10000.0};
  f.rotary.byLayerType = true;
  f.rotary.part = {"partial_rotary_factor", 0.334};
  f.rotary.windowPart = f.rotary.partOfType = 0.334;
  f.kinds.window = {"sliding_window", 129};
  f.kinds.before = "sliding_window_size";
  f.kinds.marks = "hybrid_layer_pattern";
  f.kinds.fullLayers = {{}, 1};
  f.kinds.fullEvery = {{}, 6};
  f.kinds.listed = true;
  addRoutedExperts(f, "\"sigmoid\"", 256, 8, 2048);
  Experts &e = f.experts;
  e.kinds = "mlp_layer_types";
  e.denseFirst = {{}, 1};
  e.marks = "moe_layer_freq";
  e.groups.otherwise = e.chosenGroups.otherwise = 1;
  e.factor.otherwise = 1;
  e.sharedCount = {};
  f.ignored.push_back("attention_chunk_size"); // of generation
  // The names of released files, which transformers does not read all.
  llvm::erase_if(f.fixed, [](const FixedKey &rule) { return rule.key == "moe_layer_freq"; });
  f.fixed.push_back({"topk_method", {"\"noaux_tc\""}, "experts are chosen otherwise"});
  f.fixed.push_back({"add_swa_attention_sink_bias", {"true"}, "layers with a window have no sinks"});
  f.fixed.push_back({"add_full_attention_sink_bias", {"false"}, "all layers have sinks"});
  f.repeats = {{"swa_num_attention_heads", "num_attention_heads"}, {"swa_head_dim", "head_dim"}, {"swa_v_head_dim", "v_head_dim"}};
  return f;
}

/// Cohere's Command A+: layers have experts, of which first ones have none. `rms`: norms are RMSNorms.
static Family cohere2Moe(bool rms) {
  Family f = cohere2();
  f.name = "cohere2_moe";
  f.headDim.otherwise = 128;
  if (rms) {
    f.present = {"rms_norm_eps"};
    f.norm = NormKind::RMS;
    f.eps = {"rms_norm_eps", 1e-5};
    f.ignored.push_back("layer_norm_eps");
  } else {
    f.absent = {"rms_norm_eps"};
  }
  f.kinds.first = {"first_k_dense_replace", 0};
  f.kinds.firstEvery = {"prefix_dense_sliding_window_pattern", 1};
  f.rotary.denseToo = "prefix_dense_sliding_window_pattern";
  Experts &e = f.experts;
  e.count = {"num_experts", 8, "num_local_experts"};
  e.chosen = {"num_experts_per_tok", 2};
  e.denseFirst = {"first_k_dense_replace", 0};
  e.denseInner = {"prefix_dense_intermediate_size", std::nullopt};
  e.kinds = "mlp_layer_types";
  e.scores = "expert_selection_fn";
  e.byLogits = true;
  e.normalized = {"norm_topk_prob", true};
  e.combination = "shared_expert_combination_strategy";
  e.sharedCount = {"num_shared_experts", 0};
  e.shared = "mlp.shared_experts";
  f.ignored.push_back("output_router_logits"); // no loss of transformers reads it
  return f;
}

std::vector<Family> meshwright::frontend::derivedSparseFamilies() {
  return {flexOlmo(), mellum(), dots1(), exaoneMoe(), solarOpen(), glm4MoeLite(), youtu(),
          hyV3(), graniteMoeSwa(), sarvamMoe(), sarvamMla(), axk1(), afmoe(), laguna(),
          mimoV2Flash(), cohere2Moe(true), cohere2Moe(false)};
}
