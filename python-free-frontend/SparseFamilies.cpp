//===- SparseFamilies.cpp - families with experts, or with latent attention ----===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// After the configuration classes and modeling files of transformers. Layers of these
// families may be dense; where all are, nothing of the experts is read.
//
//===----------------------------------------------------------------------===//
#include "Family.h"

using namespace meshwright::frontend;

Family meshwright::frontend::mixtral() {
  Family f = mistral();
  f.name = "mixtral";
  f.positions.otherwise = 131072;
  f.eps.otherwise = 1e-5;
  f.rotary.theta.otherwise = 1e6;
  f.kinds.window.otherwise = std::nullopt;
  f.experts.count = {"num_local_experts", 8};
  f.experts.chosen = {"num_experts_per_tok", 2};
  f.experts.balanced = {"output_router_logits", false};
  f.experts.balance = {"router_aux_loss_coef", 0.001};
  f.experts.router = "block_sparse_moe.gate";
  f.experts.gate = "block_sparse_moe.experts.{expert}.w1";
  f.experts.up = "block_sparse_moe.experts.{expert}.w3";
  f.experts.down = "block_sparse_moe.experts.{expert}.w2";
  f.fixed.push_back({"router_jitter_noise", {"0.0", "0"}, "routers add noise"});
  return f;
}

/// Experts as Qwen's families say them.
void meshwright::frontend::addExperts(Family &f, int64_t count, int64_t chosen, int64_t inner) {
  f.experts.count = {"num_experts", count, "num_local_experts"};
  f.experts.chosen = {"num_experts_per_tok", chosen};
  f.experts.inner = {"moe_intermediate_size", inner};
  f.experts.normalized = {"norm_topk_prob", false};
  f.experts.balanced = {"output_router_logits", false};
  f.experts.balance = {"router_aux_loss_coef", 0.001};
  f.experts.dense = "mlp_only_layers";
  f.experts.every = {"decoder_sparse_step", 1};
}

static Family qwen2Moe() {
  Family f = qwen2();
  f.name = "qwen2_moe";
  f.hidden.otherwise = 2048;
  f.layers.otherwise = 24;
  f.heads.otherwise = 16;
  f.kvHeads.otherwise = 16;
  f.inner.otherwise = 5632;
  f.qkvBias = {"qkv_bias", true};
  f.kinds.fullLayers = {};
  f.kinds.windowedLayers = {"max_window_layers", 28};
  f.kinds.fullEvery = {{}, 2};
  addExperts(f, 60, 4, 1408);
  f.experts.sharedInner = {"shared_expert_intermediate_size", 5632};
  f.experts.shared = "mlp.shared_expert";
  f.experts.sharedGate = "mlp.shared_expert_gate";
  return f;
}

Family meshwright::frontend::qwen3Moe() {
  Family f = qwen3();
  f.name = "qwen3_moe";
  f.hidden.otherwise = 2048;
  f.layers.otherwise = 24;
  f.kvHeads.otherwise = 4;
  f.inner.otherwise = 6144;
  f.headDim = {"head_dim", std::nullopt};
  f.kinds.fullLayers = {};
  f.kinds.listed = false;
  f.ignored.push_back("max_window_layers"); // all layers have a window, or none
  addExperts(f, 128, 8, 768);
  return f;
}

static Family olmoe() {
  Family f = llama();
  f.name = "olmoe";
  f.vocabulary.otherwise = 50304;
  f.positions.otherwise = 4096;
  f.hidden.otherwise = 2048;
  f.layers.otherwise = 16;
  f.heads.otherwise = 16;
  f.headDim = {};
  f.inner.otherwise = 2048;
  f.padding.otherwise = 1;
  f.eps.otherwise = 1e-5;
  f.mlpBias = {};
  f.headNorm = HeadNorm::Whole;
  addExperts(f, 64, 8, 0);
  f.experts.inner = {};
  f.experts.dense = {};
  f.experts.every = {};
  f.experts.balance.otherwise = 0.01;
  f.clip = {"clip_qkv", std::nullopt};
  return f;
}

static Family gptOss() {
  Family f = llama();
  f.name = "gpt_oss";
  f.vocabulary.otherwise = 201088;
  f.positions.otherwise = 131072;
  f.hidden.otherwise = 2880;
  f.layers.otherwise = 36;
  f.heads.otherwise = 64;
  f.kvHeads.otherwise = 8;
  f.headDim.otherwise = 64;
  f.inner.otherwise = 2880;
  f.eps.otherwise = 1e-5;
  f.qkvBias = f.outputBias = {"attention_bias", true};
  f.mlpBias = {};
  f.sinks = "self_attn.sinks";
  f.rotary.theta.otherwise = 150000;
  f.rotary.scalingRequired = true;
  f.kinds.window = {"sliding_window", 128};
  f.kinds.listed = true;
  f.kinds.fullEvery = {{}, 2};
  f.experts.count = {"num_local_experts", 128, "num_experts"};
  f.experts.chosen = {"num_experts_per_tok", 4};
  f.experts.balanced = {"output_router_logits", false};
  f.experts.balance = {"router_aux_loss_coef", 0.001};
  f.experts.limit = {"swiglu_limit", 7.0};
  f.experts.gain = {"swiglu_alpha", 1.702};
  f.experts.router = "mlp.router";
  f.experts.gate = "mlp.experts.gate_proj";
  f.experts.up = "mlp.experts.up_proj";
  f.experts.down = "mlp.experts.down_proj";
  f.experts.storage = ExpertStorage::InTurns;
  f.experts.gateUp = "mlp.experts.gate_up_proj";
  f.experts.transposed = true;
  f.experts.bias = f.experts.routerBias = true;
  f.ignored = {"experts_per_token", "initial_context_length"}; // repeat others
  return f;
}

static Family graniteMoe() {
  Family f = granite();
  f.name = "granitemoe";
  f.mlpBias = {};
  f.experts.count = {"num_local_experts", 8};
  f.experts.chosen = {"num_experts_per_tok", 2};
  f.experts.balanced = {"output_router_logits", false};
  f.experts.balance = {"router_aux_loss_coef", 0.001};
  f.experts.router = "block_sparse_moe.router.layer";
  f.experts.gate = "block_sparse_moe.gate_linear";
  f.experts.up = "block_sparse_moe.up_linear";
  f.experts.down = "block_sparse_moe.output_linear";
  f.experts.storage = ExpertStorage::Halves;
  f.experts.gateUp = "block_sparse_moe.input_linear";
  f.experts.suffix = ".weight";
  return f;
}

Family meshwright::frontend::graniteMoeShared() {
  Family f = graniteMoe();
  f.name = "granitemoeshared";
  f.experts.sharedInner = {"shared_intermediate_size", 0};
  f.experts.sharedMayLack = true;
  f.experts.shared = "shared_mlp";
  f.experts.sharedGateUp = "shared_mlp.input_linear";
  f.experts.sharedDown = "shared_mlp.output_linear";
  return f;
}

static Family llama4Text() {
  Family f = llama();
  f.name = "llama4_text";
  f.vocabulary.otherwise = 202048;
  f.positions.otherwise = 131072;
  f.hidden.otherwise = 5120;
  f.layers.otherwise = 48;
  f.heads.otherwise = 40;
  f.kvHeads.otherwise = 8;
  f.headDim.otherwise = 128;
  f.inner = {"intermediate_size_mlp", 16384};
  f.eps.otherwise = 1e-5;
  f.mlpBias = {};
  f.headNorm = HeadNorm::Turned;
  f.useHeadNorm = {"use_qk_norm", true};
  f.rotary.theta.otherwise = 500000.0;
  f.rotary.interleaved = true;
  f.rotary.layers = "no_rope_layers"; // 1 where there are rotary positions
  f.rotary.unturnedEvery = {"no_rope_layer_interval", 4};
  f.kinds.window = {"attention_chunk_size", 8192};
  f.kinds.type = "chunked_attention";
  f.kinds.chunks = f.kinds.turned = f.kinds.listed = true;
  f.temperature = {{"attn_temperature_tuning", true}, {"floor_scale", 8192}, {"attn_scale", 0.1}};
  f.names.qNorm = f.names.kNorm = "self_attn.qk_norm";
  f.names.gate = "feed_forward.gate_proj";
  f.names.up = "feed_forward.up_proj";
  f.names.down = "feed_forward.down_proj";
  f.names.activation = "feed_forward.activation_fn";
  f.experts.count = {"num_local_experts", 16};
  f.experts.chosen = {"num_experts_per_tok", 1};
  f.experts.inner = {"intermediate_size", 8192};
  f.experts.normalized.otherwise = false;
  f.experts.sigmoid = f.experts.byLogits = f.experts.weighsInput = true;
  f.experts.sparse = "moe_layers";
  f.experts.every = {"interleave_moe_layer_step", 1};
  f.experts.sharedCount.otherwise = 1;
  f.experts.shared = "feed_forward.shared_expert";
  f.experts.router = "feed_forward.router";
  f.experts.gate = "feed_forward.experts.gate_proj";
  f.experts.up = "feed_forward.experts.up_proj";
  f.experts.down = "feed_forward.experts.down_proj";
  f.experts.storage = ExpertStorage::Halves;
  f.experts.gateUp = "feed_forward.experts.gate_up_proj";
  f.experts.transposed = true;
  // The loss has no part of routers, whatever output_router_logits says.
  f.ignored = {"output_router_logits", "router_aux_loss_coef", "for_llm_compressor"};
  f.fixed = {{"router_jitter_noise", {"0.0", "0"}, "routers add noise"}};
  return f;
}

//===--- experts in groups, and beside shared ones ---------------------------===//

/// Experts as DeepSeek's third version has them, and the families after it.
void meshwright::frontend::addRoutedExperts(Family &f, StringRef score, int64_t count, int64_t chosen,
                             int64_t inner) {
  Experts e;
  e.count = {"n_routed_experts", count, "num_local_experts"};
  e.chosen = {"num_experts_per_tok", chosen};
  e.inner = {"moe_intermediate_size", inner};
  e.normalized = {"norm_topk_prob", true};
  e.factor = {"routed_scaling_factor", 2.5};
  e.sigmoid = score == "\"sigmoid\"";
  e.fullRouter = true;
  e.choiceBias = "mlp.gate.e_score_correction_bias";
  e.groups = {"n_group", 8};
  e.chosenGroups = {"topk_group", 4};
  e.groupBest = 2;
  e.denseFirst = {"first_k_dense_replace", 3};
  e.sharedCount = {"n_shared_experts", 1};
  e.shared = "mlp.shared_experts";
  f.experts = e;
  // Layers that predict further tokens are beside the model, as transformers loads it; and the loss
  // of DeepSeek's own training, which is not transformers'.
  f.ignored = {
      "num_nextn_predict_layers", "num_mtp_layers",      "ep_size", "seq_aux", "aux_loss_alpha",
      "router_aux_loss_coef",     "output_router_logits"};
  f.fixed = {{"scoring_func", {score}, "scores are other ones"},
             {"moe_layer_freq", {"1"}, "some layers have no experts"}};
}

Family meshwright::frontend::glm4Moe() {
  Family f = glm();
  f.name = "glm4_moe";
  f.layers.otherwise = 46;
  f.heads.otherwise = 96;
  f.kvHeads.otherwise = 8;
  f.headDim = {"head_dim", std::nullopt};
  f.inner.otherwise = 10944;
  f.padding.otherwise = std::nullopt;
  f.eps.otherwise = 1e-5;
  f.qkvBias = {"attention_bias", false};
  f.headNorm = HeadNorm::Each;
  f.useHeadNorm = {"use_qk_norm", false};
  f.rotary.interleaved = false;
  f.names.gateUp = {};
  f.names.activation = "mlp.act_fn";
  addRoutedExperts(f, "\"sigmoid\"", 128, 8, 1408);
  f.experts.denseFirst.otherwise = 1;
  f.experts.groups.otherwise = f.experts.chosenGroups.otherwise = 1;
  f.experts.factor.otherwise = 1;
  return f;
}

/// A bias chooses among softmaxes, and where layers have experts three keys say.
static Family ernie45Moe() {
  Family f = ernie45();
  f.name = "ernie4_5_moe";
  f.hidden.otherwise = 2560;
  f.layers.otherwise = 28;
  f.heads.otherwise = 20;
  f.kvHeads.otherwise = 4;
  f.headDim.otherwise = std::nullopt;
  f.inner.otherwise = 12288;
  f.headBias = {"use_bias", false};
  f.experts.count = {"moe_num_experts", 64, "num_experts"};
  f.experts.chosen = {"moe_k", 6, "num_experts_per_tok"};
  f.experts.inner = {"moe_intermediate_size", 1536};
  f.experts.denseFirst = {"moe_layer_start_index", 1};
  f.experts.last = {"moe_layer_end_index", -1};
  f.experts.every = {"moe_layer_interval", 1};
  f.experts.leastSum = {"moe_norm_min", 1e-12};
  f.experts.fullRouter = true;
  f.experts.choiceBias = "mlp.moe_statics.e_score_correction_bias";
  f.experts.choiceBiasIsRow = true;
  f.experts.balanced = {"output_router_logits", false};
  f.experts.balance = {"router_aux_loss_coef", 0.001};
  f.experts.sharedCount = {"moe_num_shared_experts", 2};
  f.experts.shared = "mlp.shared_experts";
  // Capacities and losses of Baidu's own training, which transformers does not have, and layers
  // that predict further tokens.
  f.ignored.insert(f.ignored.end(),
                   {"moe_capacity", "moe_aux_loss_lambda", "moe_orthogonal_loss_lambda",
                    "moe_z_loss_lambda", "moe_group", "moe_multimodal_dispatch_use_allgather",
                    "moe_all_to_all_dropout", "num_nextn_predict_layers"});
  f.fixed = {{"moe_gate", {"\"topk\""}, "experts are chosen otherwise"},
             {"moe_gate_act", {"\"softmax\""}, "scores are other ones"},
             {"moe_use_aux_free", {"true"}, "experts are chosen without a bias"},
             {"moe_dropout_prob", {"0.0", "0"}, "experts drop elements"}};
  return f;
}

static Family minimaxM2() {
  Family f = mixtral();
  f.name = "minimax_m2";
  f.vocabulary.otherwise = 200064;
  f.positions.otherwise = 196608;
  f.hidden.otherwise = 3072;
  f.layers.otherwise = 62;
  f.heads.otherwise = 48;
  f.kvHeads.otherwise = 8;
  f.headDim.otherwise = 128;
  f.inner.otherwise = 1536;
  f.eps.otherwise = 1e-6;
  f.headNorm = HeadNorm::Whole;
  f.kinds.window = {};
  f.rotary.theta.otherwise = 5e6;
  f.rotary.part = {"partial_rotary_factor", 1.0};
  f.rotary.width = {"rotary_dim"};
  f.experts.count = {"num_local_experts", 256, "num_experts"};
  f.experts.chosen.otherwise = 8;
  f.experts.sigmoid = true;
  f.experts.choiceBias = "block_sparse_moe.e_score_correction_bias";
  f.experts.balanced = {};
  f.experts.balance = {};
  // What transformers does not read: kinds of attention, of which there is one, sizes of what is
  // not there, and layers that predict further tokens.
  f.ignored.insert(f.ignored.end(),
                   {"attn_type_list", "mlp_intermediate_size", "shared_moe_mode", "use_mtp",
                    "num_mtp_modules", "mtp_transformer_layers", "router_aux_loss_coef"});
  f.fixed.insert(
      f.fixed.end(),
      {{"output_router_logits", {"false"}, "the loss has a part of softmaxes, which routers lack"},
       {"scoring_func", {"\"sigmoid\""}, "scores are other ones"},
       {"use_routing_bias", {"true"}, "experts are chosen without a bias"},
       {"shared_intermediate_size", {"0"}, "there is an MLP beside the experts"},
       {"qk_norm_type", {"\"per_layer\""}, "each head is normalized alone"},
       {"layernorm_full_attention_beta", {"1.0", "1"}, "residuals are scaled"},
       {"layernorm_linear_attention_beta", {"1.0", "1"}, "residuals are scaled"},
       {"layernorm_mlp_beta", {"1.0", "1"}, "residuals are scaled"}});
  return f;
}

//===--- latent attention ---------------------------------------------------===//

static Family deepseekV2() {
  Family f = llama();
  f.name = "deepseek_v2";
  f.vocabulary.otherwise = 102400;
  f.headDim = {};
  f.latent.used = true;
  f.rotary.width = f.latent.turnedDim;
  f.qkvBias = f.outputBias = {};
  addRoutedExperts(f, "\"softmax\"", 64, 0, 1407);
  f.experts.denseFirst.otherwise = 0;
  f.experts.sharedCount.otherwise = 2;
  f.experts.factor.otherwise = 1;
  f.experts.groups.otherwise = f.experts.chosenGroups.otherwise = std::nullopt;
  f.experts.groupBest = 1;
  f.experts.method = {"topk_method", "group_limited_greedy", "greedy"};
  f.experts.normalized = {{}, false};
  f.experts.count.alias = "num_experts";
  f.experts.choiceBias = {};
  // Numbers that follow from others.
  f.ignored.insert(f.ignored.end(), {"pretraining_tp", "head_dim", "qk_head_dim"});
  f.fixed.push_back({"norm_topk_prob", {"false"}, "weights of experts are normalized"});
  return f;
}

Family meshwright::frontend::deepseekV3() {
  Family f = deepseekV2();
  f.name = "deepseek_v3";
  f.vocabulary.otherwise = 129280;
  f.positions.otherwise = 4096;
  f.hidden.otherwise = 7168;
  f.layers.otherwise = 61;
  f.heads.otherwise = 128;
  f.inner.otherwise = 18432;
  f.mlpBias = {};
  f.latent.interleaved = {"rope_interleave", true};
  addRoutedExperts(f, "\"sigmoid\"", 256, 8, 2048);
  f.experts.method = {};
  f.ignored.insert(f.ignored.end(), {"pretraining_tp", "head_dim", "qk_head_dim"});
  f.fixed.push_back({"topk_method", {"\"noaux_tc\""}, "experts are chosen otherwise"});
  return f;
}

/// Each query selects keys by an indexer, of which there are so many that it selects all of a usual sequence.
static Family deepseekV32() {
  Family f = deepseekV3();
  f.name = "deepseek_v32";
  f.positions.otherwise = 163840;
  f.latent.interleaved = {{}, true};
  f.latent.indexer.topk = {"index_topk", 2048};
  f.latent.indexer.heads = {"index_n_heads", 64};
  f.latent.indexer.headDim = {"index_head_dim", 128};
  f.experts.kinds = "mlp_layer_types";
  // How the indexer turns, which selects all keys.
  f.ignored.insert(f.ignored.end(), {"indexer_rope_interleave", "layer_types"});
  f.fixed.push_back({"rope_interleave", {"true"}, "rotary positions pair halves"});
  return f;
}

/// Some layers use what an earlier one has selected.
static Family glmMoeDsa() {
  Family f = deepseekV32();
  f.name = "glm_moe_dsa";
  f.vocabulary.otherwise = 154880;
  f.positions.otherwise = 202752;
  f.hidden.otherwise = 6144;
  f.layers.otherwise = 78;
  f.heads.otherwise = 64;
  f.inner.otherwise = 12288;
  f.eps.otherwise = 1e-5;
  f.latent.queryRank.otherwise = 2048;
  f.latent.plainDim.otherwise = 192;
  f.latent.valueDim.otherwise = 256;
  f.latent.indexer.heads.otherwise = 32;
  f.latent.indexer.every = {"index_topk_freq", 1};
  f.latent.indexer.offset = {"index_skip_topk_offset", 2};
  f.latent.indexer.pattern = "index_topk_pattern";
  f.latent.indexer.types = "indexer_types";
  f.experts.groups.otherwise = f.experts.chosenGroups.otherwise = 1;
  return f;
}

/// Phi-3.5-MoE. transformers draws experts and noise where it trains; here is what it computes where it
/// evaluates, with the gradient of that.
static Family phimoe() {
  Family f = mixtral();
  f.name = "phimoe";
  f.vocabulary.otherwise = 32064;
  f.inner.otherwise = 6400;
  f.headDim = {};
  f.norm = NormKind::Layer;
  f.normBias = true;
  f.qkvBias = f.outputBias = {"attention_bias", false};
  f.headBias = {"lm_head_bias", false};
  f.rotary.original = {"original_max_position_embeddings", std::nullopt};
  f.rotary.onlyLong = f.rotary.mscales = true;
  f.experts.count.otherwise = 16;
  f.experts.jitter = {"router_jitter_noise", 0.01};
  f.ignored.insert(f.ignored.end(), {"input_jitter_noise"});
  f.fixed = {{"hidden_dropout", {"0.0", "0"}, "what layers give drops elements"}};
  return f;
}

static Family hunyuanMoe() {
  Family f = hunyuan();
  f.name = "hunyuan_v1_moe";
  f.experts.count = {"num_experts", 1, "num_local_experts"};
  f.experts.chosen = {"moe_topk", 1, "num_experts_per_tok"};
  f.experts.fullRouter = true;
  f.experts.router = "mlp.gate.wg";
  f.experts.sharedCount.otherwise = 1;
  f.experts.shared = "mlp.shared_mlp";
  return f;
}

static Family minicpm3() {
  Family f = deepseekV2();
  f.name = "minicpm3";
  f.vocabulary.otherwise = 73448;
  f.positions.otherwise = 32768;
  f.hidden.otherwise = 2560;
  f.layers.otherwise = 62;
  f.heads.otherwise = 40;
  f.inner.otherwise = 6400;
  f.std.otherwise = 0.1;
  f.eps.otherwise = 1e-5;
  f.latent.queryRank.otherwise = 768;
  f.latent.keyRank.otherwise = 256;
  f.latent.plainDim.otherwise = 64;
  f.latent.turnedDim.otherwise = 32;
  f.latent.valueDim.otherwise = std::nullopt;
  f.latent.interleaved = {{}, false};
  f.rotary.width = f.latent.turnedDim;
  f.embeddingFactor = {"scale_emb", 12.0};
  f.depthFactor = {"scale_depth", 1.4};
  f.logitWidth = {"dim_model_base", 256};
  f.tied.otherwise = true;
  f.experts = {};
  f.fixed = {};
  f.ignored = {"pretraining_tp", "head_dim", "qk_head_dim"};
  return f;
}

std::vector<Family> meshwright::frontend::sparseFamilies() {
  return {mixtral(),    qwen2Moe(),   qwen3Moe(), olmoe(),      gptOss(),     graniteMoe(),
          graniteMoeShared(), llama4Text(), glm4Moe(),  deepseekV2(), deepseekV3(), minicpm3(),
          ernie45Moe(), minimaxM2(), deepseekV32(), glmMoeDsa(), phimoe(), hunyuanMoe()};
}
