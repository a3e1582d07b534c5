//===- RecurrentFamilies.cpp - families with linear recurrences -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// After the configuration classes and modeling files of transformers.
//
//===----------------------------------------------------------------------===//
#include "Family.h"

using namespace meshwright::frontend;

static Family mamba2() {
  Family f;
  f.name = "mamba2";
  f.vocabulary.otherwise = 32768;
  f.positions = {{}, int64_t(1) << 30}; // a recurrence has no end
  f.layers.otherwise = 64;
  f.heads = {{}, 1};
  f.kvHeads = f.headDim = f.inner = {};
  f.padding = {};
  f.attentionDropout = {};
  f.std.otherwise = 0.1;
  f.eps = {"layer_norm_epsilon", 1e-5};
  f.rotary.used = false;
  Recurrence &r = f.recurrence;
  r.mixer = Mixer::StateSpace;
  r.heads = {"num_heads", 128};
  r.headDim = {"head_dim", 64};
  r.keyHeads = {"n_groups", 8};
  r.keyDim = {"state_size", 128};
  r.kernel = {"conv_kernel", 4};
  r.chunk = {"chunk_size", 256};
  r.expand = {"expand", 2};
  r.bias = {"use_bias", false};
  r.convBias = {"use_conv_bias", true};
  r.limit = "time_step_limit";
  r.scaledOutput = {"rescale_prenorm_residual", false};
  r.feedsForward = false;
  f.base = "backbone.";
  f.embedding = "embeddings";
  f.finalNorm = "norm_f";
  f.names.attentionNorm = "norm";
  // What transformers does not read, and how initial steps are drawn.
  f.ignored = {"pad_token_id", "intermediate_size", "norm_before_gate", "residual_in_fp32", "time_step_rank",
               "time_step_min", "time_step_max", "time_step_floor", "time_step_init_scheme",
               "time_step_scale"};
  f.fixed = {{"rms_norm", {"true"}, "gated values are not normalized"}};
  return f;
}

/// Granite 4: some layers attend.
static Family graniteMoeHybrid() {
  Family f = graniteMoeShared();
  f.name = "granitemoehybrid";
  f.inner = {"shared_intermediate_size", 1024};
  f.experts.inner = {"intermediate_size", 11008};
  f.experts.sharedInner = {"shared_intermediate_size", 1024};
  f.experts.mayLack = true;
  f.rotary.type = "position_embedding_type";
  Recurrence &r = f.recurrence;
  r.mixer = Mixer::StateSpace;
  r.heads = {"mamba_n_heads", 128};
  r.headDim = {"mamba_d_head", 0};
  r.keyHeads = {"mamba_n_groups", 1};
  r.keyDim = {"mamba_d_state", 256};
  r.kernel = {"mamba_d_conv", 4};
  r.chunk = {"mamba_chunk_size", 256};
  r.expand = {"mamba_expand", 2};
  r.bias = {"mamba_proj_bias", false};
  r.convBias = {"mamba_conv_bias", true};
  r.limit = "time_step_limit";
  r.step = 0;
  r.part = "mamba";
  r.list = "layer_types";
  r.listAlias = "layers_block_type";
  f.names.gateUp = "shared_mlp.input_linear";
  f.names.gate = "shared_mlp.gate_proj";
  f.names.up = "shared_mlp.up_proj";
  f.names.down = "shared_mlp.output_linear";
  f.names.activation = "shared_mlp.activation";
  f.fixed.push_back({"normalization_function", {"\"rmsnorm\""}, "norms are other ones"});
  return f;
}

/// Layers are a recurrence, attention, an MLP or experts.
static Family nemotronH() {
  Family f = mamba2();
  f.name = "nemotron_h";
  f.vocabulary.otherwise = 131072;
  f.positions = {"max_position_embeddings", 4096};
  f.layers.otherwise = 4;
  f.heads = {"num_attention_heads", 32};
  f.kvHeads = {"num_key_value_heads", 8};
  f.headDim = {"head_dim", 128};
  f.inner = {"intermediate_size", 21504};
  f.activation = {"mlp_hidden_act", "relu2"};
  f.gated = false;
  f.mlpBias = {"mlp_bias", false};
  f.attentionDropout = {"attention_dropout", 0.0};
  f.std.otherwise = 0.02;
  Recurrence &r = f.recurrence;
  r.heads = {"mamba_num_heads", 128};
  r.headDim = {"mamba_head_dim", 64};
  r.keyHeads = {"n_groups", 8, "mamba_n_groups"};
  r.keyDim = {"ssm_state_size", 128};
  r.kernel = {"conv_kernel", 4, "mamba_d_conv"};
  r.chunk = {"chunk_size", 128, "mamba_chunk_size"};
  r.expand = {};
  r.convBias = {"use_conv_bias", true, "mamba_conv_bias"};
  r.activation = {"mamba_hidden_act", "silu"};
  r.limit = {};
  r.leastStep = {"time_step_min", 0.001, "mamba_dt_min"};
  r.scaledOutput.otherwise = true;
  r.list = "layers_block_type";
  r.listAlias = "layer_types";
  r.pattern = "hybrid_override_pattern";
  r.alone = r.feedsForward = true;
  Experts &e = f.experts;
  e.count = {"n_routed_experts", 8};
  e.mayLack = true;
  e.chosen = {"num_experts_per_tok", 2};
  e.inner = {"moe_intermediate_size", 7688};
  e.groups = {"n_group", 1};
  e.chosenGroups = {"topk_group", 1};
  e.normalized = {"norm_topk_prob", true};
  e.factor = {"routed_scaling_factor", 1.0};
  e.sigmoid = e.fullRouter = true;
  e.choiceBias = "mixer.gate.e_score_correction_bias";
  e.sharedInner = {"moe_shared_expert_intermediate_size", 7688};
  e.router = "mixer.gate";
  e.up = "mixer.experts.{expert}.up_proj";
  e.down = "mixer.experts.{expert}.down_proj";
  e.shared = "mixer.shared_experts";
  f.names.attention = "mixer";
  f.names.q = "mixer.q_proj";
  f.names.k = "mixer.k_proj";
  f.names.v = "mixer.v_proj";
  f.names.o = "mixer.o_proj";
  f.names.up = "mixer.up_proj";
  f.names.down = "mixer.down_proj";
  f.names.activation = "mixer.act_fn";
  f.names.gate = {};
  // transformers' attention of this family has no rotary positions and no window.
  f.ignored = {"pad_token_id", "norm_before_gate", "residual_in_fp32", "time_step_rank", "time_step_limit", "mamba_dt_limit",
               "time_step_max", "time_step_floor", "mamba_dt_max", "mamba_dt_init_floor", "expand",
               "mamba_expand", "rope_theta", "rope_parameters", "partial_rotary_factor", "rope_scaling",
               "sliding_window", "n_shared_experts", "num_logits_to_keep", "use_mamba_kernels",
               "mamba_ssm_cache_dtype", "moe_shared_expert_overlap", "norm_eps", "output_router_logits",
               "num_nextn_predict_layers", "mtp_layers_block_type", "mtp_hybrid_override_pattern", "attention_bias"};
  f.tied = {};
  f.fixed = {{"tie_word_embeddings", {"false"}, "the head is the embedding, which transformers does not make it"},
             {"mamba_proj_bias", {"false"}, "products of recurrences have biases, which transformers reads from use_bias"},
             {"moe_latent_size", {"null"}, "experts read a projection of the stream"},
             {"hidden_dropout", {"0.0", "0"}, "residuals are dropped"}};
  return f;
}

/// Layers without attention have a short convolution between two gates.
static Family lfm2() {
  Family f = llama();
  f.name = "lfm2";
  f.vocabulary.otherwise = 65536;
  f.positions.otherwise = 128000;
  f.hidden.otherwise = 2560;
  f.kvHeads.otherwise = 8;
  f.inner = {"intermediate_size", 12288, "block_ff_dim"};
  f.adjustedInner = {{"block_auto_adjust_ff_dim", true},
                     {"block_ffn_dim_multiplier", 1.0},
                     {"block_multiple_of", 256}};
  f.padding.otherwise = 0;
  f.activation = {{}, "silu"};
  f.attentionDropout = {};
  f.qkvBias = f.outputBias = f.mlpBias = {};
  f.eps = {"norm_eps", 1e-5};
  f.headNorm = HeadNorm::Each;
  f.rotary.theta.otherwise = 1000000.0;
  f.tied = {"tie_word_embeddings", true, "tie_embedding"};
  Recurrence &r = f.recurrence;
  r.mixer = Mixer::Convolution;
  r.kernel = {"conv_L_cache", 3};
  r.bias = r.convBias = {"conv_bias", false};
  r.part = "conv";
  r.list = "layer_types";
  r.attends = "full_attn_idxs";
  f.finalNorm = "embedding_norm";
  f.names.attentionNorm = "operator_norm";
  f.names.mlpNorm = "ffn_norm";
  f.names.qNorm = "self_attn.q_layernorm";
  f.names.kNorm = "self_attn.k_layernorm";
  f.names.o = "self_attn.out_proj";
  f.names.gate = "feed_forward.w1";
  f.names.up = "feed_forward.w3";
  f.names.down = "feed_forward.w2";
  f.names.activation = "feed_forward.silu";
  // What transformers does not read.
  f.ignored = {"block_dim", "block_mlp_init_scale", "block_norm_eps", "block_out_init_scale",
               "block_use_xavier_init", "conv_dim", "conv_dim_out", "conv_use_xavier_init", "num_heads",
               "use_pos_enc", "eos_token_id"};
  f.fixed = {{"block_use_swiglu", {"true"}, "the MLP has no gate"}};
  return f;
}

/// LFM2 with windows, gates of heads, and norms behind layers' parts.
static Family lfm3() {
  Family f = lfm2();
  f.name = "lfm3";
  f.vocabulary.otherwise = 128000;
  f.hidden.otherwise = 2048;
  f.layers.otherwise = 24;
  f.heads.otherwise = 16;
  f.kvHeads.otherwise = 4;
  f.headDim.otherwise = 128;
  f.inner = {"intermediate_size", 7680};
  f.adjustedInner = {};
  f.padding.otherwise = 124893;
  f.attentionDropout = {"attention_dropout", 0.0};
  f.qkvBias = f.outputBias = {"attention_bias", false};
  f.headGate.part = "self_attn.gate_proj";
  f.headGate.used = {"use_attention_gate", true};
  f.usePostNorms = {"use_sandwich_norm", true};
  f.kinds.window = {"sliding_window", 256};
  f.kinds.listed = true;
  f.rotary.byLayerType = f.rotary.scalingRequired = true;
  f.recurrence.kernel.otherwise = 7;
  f.recurrence.attends = {};
  f.recurrence.needsList = true;
  f.names.attentionPostNorm = "post_operator_norm";
  f.names.mlpPostNorm = "post_ffn_norm";
  f.names.qNorm = "self_attn.q_norm";
  f.names.kNorm = "self_attn.k_norm";
  f.names.o = "self_attn.o_proj";
  return f;
}

static Family qwen3Next() {
  Family f = qwen3Moe();
  f.name = "qwen3_next";
  f.positions.otherwise = 32768;
  f.layers.otherwise = 48;
  f.heads.otherwise = 16;
  f.kvHeads.otherwise = 2;
  f.headDim = {"head_dim", 256};
  f.inner.otherwise = 5632;
  f.normPlusOne = f.gatedAttention = true;
  f.kinds = {};
  f.rotary.part = {"partial_rotary_factor", 0.25};
  f.experts.count.otherwise = 512;
  f.experts.chosen.otherwise = 10;
  f.experts.inner.otherwise = 512;
  f.experts.normalized.otherwise = true;
  f.experts.sharedInner = {"shared_expert_intermediate_size", 512};
  f.experts.shared = "mlp.shared_expert";
  f.experts.sharedGate = "mlp.shared_expert_gate";
  Recurrence &r = f.recurrence;
  r.mixer = Mixer::Delta;
  r.heads = {"linear_num_value_heads", 32};
  r.headDim = {"linear_value_head_dim", 128};
  r.keyHeads = {"linear_num_key_heads", 16};
  r.keyDim = {"linear_key_head_dim", 128};
  r.kernel = {"linear_conv_kernel_dim", 4};
  r.chunk = {{}, 64};
  r.part = "linear_attn";
  r.list = "layer_types";
  r.every = {"full_attention_interval", 4};
  return f;
}

/// What Qwen3.5 changes; files may say more of heads that predict further tokens, which are not trained.
static Family qwen35(Family f) {
  f.vocabulary.otherwise = 248320;
  f.rotary.sections = true;
  f.recurrence.apart = true;
  f.ignored.insert(f.ignored.end(), {"mamba_ssm_dtype", "mtp_num_hidden_layers", "mtp_use_dedicated_embeddings"});
  f.fixed.push_back({"attn_output_gate", {"true"}, "attention has no gate"});
  return f;
}

static Family qwen35Text() {
  Family f = qwen35(qwen3Next());
  f.name = "qwen3_5_text";
  f.hidden.otherwise = 4096;
  f.layers.otherwise = 32;
  f.kvHeads.otherwise = 4;
  f.inner.otherwise = 12288;
  f.experts = {};
  return f;
}

static Family qwen35MoeText() {
  Family f = qwen35(qwen3Next());
  f.name = "qwen3_5_moe_text";
  f.layers.otherwise = 40;
  f.inner = {"moe_intermediate_size", 512}; // no layer is dense
  f.experts.count.otherwise = 256;
  f.experts.chosen.otherwise = 8;
  f.experts.normalized = {{}, true};
  f.experts.dense = {};
  f.experts.every = {};
  f.fixed.push_back({"norm_topk_prob", {"true"}, "weights of experts are not normalized"});
  f.fixed.push_back({"mlp_only_layers", {"[]"}, "layers have no experts"});
  return f;
}

/// The text part of a multimodal release, whose files hold the experts of a layer in two tensors.
static Family qwen35Moe() {
  Family f = qwen35MoeText();
  f.name = "qwen3_5_moe";
  f.experts.gate = "mlp.experts.gate_proj";
  f.experts.up = "mlp.experts.up_proj";
  f.experts.down = "mlp.experts.down_proj";
  f.experts.storage = ExpertStorage::Halves;
  f.experts.gateUp = "mlp.experts.gate_up_proj";
  return f;
}

/// OLMo 3 of which most layers have the gated delta rule, and norms before it.
static Family olmoHybrid() {
  Family f = olmo3();
  f.name = "olmo_hybrid";
  f.vocabulary.otherwise = 100352;
  f.positions.otherwise = 65536;
  f.hidden.otherwise = 3840;
  f.heads.otherwise = 30;
  f.padding.otherwise = 100277;
  f.eps.otherwise = 1e-6;
  f.kinds = {};
  f.rotary = {};
  f.rotary.optional = true;
  Recurrence &r = f.recurrence;
  r.mixer = Mixer::Delta;
  r.heads = {"linear_num_value_heads", 30};
  r.headDim = {"linear_value_head_dim", 192};
  r.keyHeads = {"linear_num_key_heads", 30};
  r.keyDim = {"linear_key_head_dim", 96};
  r.kernel = {"linear_conv_kernel_dim", 4};
  r.chunk = {{}, 64};
  r.negative = {"linear_allow_neg_eigval", true};
  r.normEps = 1e-5;
  r.part = "linear_attn";
  r.parts = {"q_proj", "k_proj", "v_proj", "g_proj", "b_proj", "a_proj", "q_conv1d", "k_conv1d", "v_conv1d", "o_norm", "o_proj"};
  r.norms = {"attention_layer_norm", "feedforward_layer_norm"};
  r.list = "layer_types";
  r.every = {{}, 4};
  // How initial steps and decays are drawn.
  f.ignored.insert(f.ignored.end(), {"linear_a_log_min", "linear_a_log_max", "linear_dt_min", "linear_dt_max", "linear_dt_init_floor"});
  return f;
}

static Family lfm2Moe() {
  Family f = lfm2();
  f.name = "lfm2_moe";
  f.hidden.otherwise = 2048;
  f.inner = {"intermediate_size", 7168};
  f.adjustedInner = {};
  Experts &e = f.experts;
  e.count = {"num_experts", 32};
  e.chosen = {"num_experts_per_tok", 4};
  e.inner = {"moe_intermediate_size", 1792};
  e.denseFirst = {"num_dense_layers", 2};
  e.normalized = {"norm_topk_prob", true};
  e.addedToSum = 1e-6;
  e.factor = {"routed_scaling_factor", 1.0};
  e.sigmoid = true;
  e.choiceBias = "feed_forward.expert_bias";
  e.router = "feed_forward.gate";
  e.gate = "feed_forward.experts.{expert}.w1";
  e.up = "feed_forward.experts.{expert}.w3";
  e.down = "feed_forward.experts.{expert}.w2";
  f.ignored.push_back("output_router_logits"); // no loss of transformers reads it
  f.fixed.push_back({"use_expert_bias", {"true"}, "no bias chooses experts"});
  return f;
}

/// Mamba-2 with some layers of attention, as IBM publishes it.
static Family bamba() {
  Family f = graniteMoeHybrid();
  Recurrence r = f.recurrence;
  f = llama();
  f.name = "bamba";
  f.vocabulary.otherwise = 128000;
  f.positions.otherwise = 262144;
  f.kvHeads.otherwise = 8;
  f.inner.otherwise = 14336;
  f.padding.otherwise = 0;
  f.eps.otherwise = 1e-5;
  f.rotary.part = {"partial_rotary_factor", 0.5};
  f.recurrence = r;
  f.recurrence.list = f.recurrence.listAlias = {};
  f.recurrence.attends = "attn_layer_indices";
  f.recurrence.allAttend = false;
  f.finalNorm = "final_layernorm";
  f.names.mlpNorm = "pre_ff_layernorm";
  f.names.gate = "feed_forward.gate_proj";
  f.names.up = "feed_forward.up_proj";
  f.names.down = "feed_forward.down_proj";
  f.names.activation = "feed_forward.act_fn";
  f.ignored.insert(f.ignored.end(), {"num_logits_to_keep", "attn_rotary_emb", "residual_in_fp32", "fused_add_norm", "norm_before_gate"});
  f.fixed.push_back({"z_loss_coefficient", {"0.0", "0"}, "the loss has a part that --z-loss adds"});
  return f;
}

/// Every layer has both Mamba-2 and attention, with factors of muP.
static Family falconH1() {
  Family f = bamba();
  f.name = "falcon_h1";
  f.positions.otherwise = 8192;
  f.rotary.part = {{}, 1.0};
  f.logitFactor = {"lm_head_multiplier", 1.0};
  f.embeddingFactor = {"embedding_multiplier", 1.0};
  f.factors.attentionInput = {"attention_in_multiplier", 1.0};
  f.factors.keys = {"key_multiplier", 1.0};
  f.factors.attentionOutput = {"attention_out_multiplier", 1.0};
  f.factors.mixerInput = {"ssm_in_multiplier", 1.0};
  f.factors.mixerOutput = {"ssm_out_multiplier", 1.0};
  f.factors.mixer = "ssm_multipliers";
  f.factors.mlp = "mlp_multipliers";
  Recurrence &r = f.recurrence;
  r.attends = {};
  r.beside = true;
  r.inner = {"mamba_d_ssm", 1024};
  r.outputBias = {"projectors_bias", false};
  r.normed = {"mamba_rms_norm", false};
  r.normedFirst = {"mamba_norm_before_gate", true};
  // Layers are all alike, whatever list says so.
  f.ignored = {"num_logits_to_keep", "mamba_use_mlp", "mlp_expansion_factor", "attn_layer_indices", "layers_block_type",
               "time_step_min", "time_step_max", "time_step_floor", "time_step_rank"};
  f.fixed.pop_back();
  return f;
}

/// Some layers have RG-LRU, others attention to a window.
static Family recurrentGemma() {
  Family f;
  f.name = "recurrent_gemma";
  f.vocabulary.otherwise = 256000;
  f.positions = {{}, int64_t(1) << 30}; // a recurrence has no end, nor have windows
  f.hidden.otherwise = 2560;
  f.layers.otherwise = 26;
  f.heads.otherwise = 10;
  f.headDim = {};
  f.inner = {"intermediate_size", 7680};
  f.innerIsOfBoth = true;
  f.padding.otherwise = 0;
  f.activation = {"hidden_activation", "gelu_pytorch_tanh"};
  f.std = {{}, 0.05};
  f.normPlusOne = true;
  f.qkvBias = {"attention_bias", false};
  f.outputBias = f.mlpBias = {{}, true};
  f.rotary.part = {"partial_rotary_factor", 0.5};
  f.kinds.window = {"attention_window_size", 2048};
  f.logitCap = {"logits_soft_cap", 30.0};
  f.embeddingScaled = f.embeddingScaleIsBF16 = true;
  f.tied.otherwise = true;
  Recurrence &r = f.recurrence;
  r.mixer = Mixer::RealGated;
  r.inner = {"lru_width", std::nullopt};
  r.kernel = {"conv1d_width", 4};
  r.bias = r.convBias = {{}, true};
  r.part = "temporal_block";
  r.cycle = "block_types";
  f.finalNorm = "final_norm";
  f.names.attentionNorm = "temporal_pre_norm";
  f.names.mlpNorm = "channel_pre_norm";
  f.names.attention = "temporal_block";
  f.names.rotary = "temporal_block.rotary_emb";
  f.names.q = "temporal_block.q_proj";
  f.names.k = "temporal_block.k_proj";
  f.names.v = "temporal_block.v_proj";
  f.names.o = "temporal_block.o_proj";
  f.names.gate = "mlp_block.gate_proj";
  f.names.up = "mlp_block.up_proj";
  f.names.down = "mlp_block.down_proj";
  f.names.activation = "mlp_block.act_fn";
  // How initial values are drawn, and what transformers does not read: heads divide the hidden size, and embeddings are scaled.
  f.ignored = {"w_init_variance_scale", "final_w_init_variance_scale", "head_dim", "embeddings_scale_by_sqrt_dim"};
  return f;
}

/// Mamba-1: each channel has decays of its own.
static Family mamba() {
  Family f = mamba2();
  f.name = "mamba";
  f.tied.otherwise = true;
  f.vocabulary.otherwise = 50280;
  f.hidden.otherwise = 768;
  f.layers.otherwise = 32;
  Recurrence &r = f.recurrence;
  r.mixer = Mixer::Selective;
  r.heads = r.headDim = r.keyHeads = r.chunk = {};
  r.keyDim = {"state_size", 16};
  r.rank = {"time_step_rank", 0};
  r.limit = {};
  // What transformers does not read, how initial steps are drawn, and how PyTorch computes the scan.
  f.ignored = {"pad_token_id", "intermediate_size", "residual_in_fp32", "time_step_min", "time_step_max", "time_step_floor",
               "time_step_init_scheme", "time_step_scale", "use_mambapy", "use_falcon_mambapy", "use_associative_scan", "d_inner", "d_model", "n_layer", "ssm_cfg",
               "fused_add_norm", "pad_vocab_size_multiple"};
  f.fixed = {{"rms_norm", {"true"}, "norms are other ones"}};
  return f;
}

/// What makes steps, B and C is normalized.
static Family falconMamba() {
  Family f = mamba();
  f.name = "falcon_mamba";
  f.recurrence.normsParts = true;
  f.recurrence.partEps = {"mixer_rms_eps", 1e-6};
  return f;
}

/// Mamba-1 with some layers of attention, which has no positions, and some of experts.
static Family jamba() {
  Family f = llama();
  f.name = "jamba";
  f.vocabulary.otherwise = 65536;
  f.positions.otherwise = 262144;
  f.kvHeads.otherwise = 8;
  f.inner.otherwise = 14336;
  f.padding.otherwise = 0;
  f.qkvBias = f.outputBias = f.mlpBias = {};
  f.rotary.used = false;
  Recurrence &r = f.recurrence;
  r.mixer = Mixer::Selective;
  r.keyDim = {"mamba_d_state", 16};
  r.kernel = {"mamba_d_conv", 4};
  r.expand = {"mamba_expand", 2};
  r.rank = {"mamba_dt_rank", 0};
  r.bias = {"mamba_proj_bias", false};
  r.convBias = {"mamba_conv_bias", true};
  r.normsParts = true;
  r.part = "mamba";
  r.every = {"attn_layer_period", 8};
  r.offset = {"attn_layer_offset", 4};
  Experts &e = f.experts;
  e.count = {"num_experts", 16, "num_local_experts"};
  e.oneIsNone = true;
  e.chosen = {"num_experts_per_tok", 2};
  e.every = {"expert_layer_period", 2};
  e.offset = {"expert_layer_offset", 1};
  e.normalized = {{}, false};
  e.balanced = {"output_router_logits", false};
  e.balance = {"router_aux_loss_coef", 0.001};
  e.router = "feed_forward.router";
  e.gate = "feed_forward.experts.{expert}.gate_proj";
  e.up = "feed_forward.experts.{expert}.up_proj";
  e.down = "feed_forward.experts.{expert}.down_proj";
  f.finalNorm = "final_layernorm";
  f.names.mlpNorm = "pre_ff_layernorm";
  f.names.gate = "feed_forward.gate_proj";
  f.names.up = "feed_forward.up_proj";
  f.names.down = "feed_forward.down_proj";
  f.names.activation = "feed_forward.act_fn";
  // How PyTorch computes the scan, and what transformers does not read: it normalizes in any case, and has no windows.
  f.ignored = {"use_mamba_kernels", "use_mambapy", "use_associative_scan", "mamba_inner_layernorms", "sliding_window", "n_ctx", "num_logits_to_keep",
               "calc_logits_for_entire_prompt"};
  return f;
}

/// Kimi Delta Attention, with some layers of latent attention, which has no positions, and experts as DeepSeek's.
static Family kimiLinear() {
  Family f = deepseekV3();
  f.name = "kimi_linear";
  f.vocabulary.otherwise = 163840;
  f.positions = {"model_max_length", 1048576, "max_position_embeddings"};
  f.hidden.otherwise = 2304;
  f.layers.otherwise = 27;
  f.heads.otherwise = 32;
  f.inner.otherwise = 9216;
  f.padding.otherwise = 163839;
  f.eps.otherwise = 1e-5;
  f.rotary = {};
  f.rotary.used = false;
  f.latent.queryRank.otherwise = std::nullopt;
  f.latent.interleaved = {{}, false};
  Recurrence &r = f.recurrence;
  r.mixer = Mixer::ElementDelta;
  r.heads = {"linear_num_heads", 32};
  r.headDim = {"linear_head_dim", 128};
  r.kernel = {"linear_conv_kernel_dim", 4};
  r.chunk = {{}, 64};
  r.part = "self_attn";
  r.parts = {"q_proj", "k_proj", "v_proj", "g_b_proj", "b_proj", "f_b_proj", "q_conv1d", "k_conv1d", "v_conv1d", "o_norm", "o_proj", "g_a_proj", "f_a_proj", true};
  r.object = "linear_attn_config";
  r.list = "layer_types";
  r.needsList = true;
  Experts &e = f.experts;
  e.count = {"num_experts", 256, "num_local_experts"};
  e.chosen = {"num_experts_per_token", 8, "num_experts_per_tok"};
  e.inner.otherwise = 1024;
  e.normalized = {"moe_renormalize", true, "norm_topk_prob"};
  e.factor.otherwise = 2.446;
  e.groups = {"num_expert_group", 1, "n_group"};
  e.chosenGroups.otherwise = 1;
  e.denseFirst.otherwise = 1;
  e.kinds = "mlp_layer_types";
  e.sharedCount = {"num_shared_experts", 1, "n_shared_experts"};
  e.router = "block_sparse_moe.gate";
  e.choiceBias = "block_sparse_moe.gate.e_score_correction_bias";
  e.gate = "block_sparse_moe.experts.{expert}.w1";
  e.up = "block_sparse_moe.experts.{expert}.w3";
  e.down = "block_sparse_moe.experts.{expert}.w2";
  e.shared = "block_sparse_moe.shared_experts";
  // Groups are used where there are several, and attention does not turn.
  f.ignored.insert(f.ignored.end(), {"use_grouped_topk", "rope_theta", "rope_scaling", "rope_parameters", "qk_head_dim"});
  f.fixed = {{"moe_router_activation_func", {"\"sigmoid\""}, "scores are other ones"},
             {"moe_layer_freq", {"1"}, "some layers have no experts"},
             {"mla_use_nope", {"true"}, "positions turn"}};
  return f;
}

/// Lightning attention and softmax attention, with experts, between norms that the stream goes on from.
static Family minimax() {
  Family f = mixtral();
  f.name = "minimax";
  f.hidden.otherwise = 4096;
  f.headDim = {"head_dim", std::nullopt};
  f.normedResiduals = {true, {"full_attn_alpha_factor", 1}, {"full_attn_beta_factor", 1}, {"linear_attn_alpha_factor", 1}, {"linear_attn_beta_factor", 1},
                       {"mlp_alpha_factor", 1}, {"mlp_beta_factor", 1}};
  f.experts.count.alias = "num_experts";
  Recurrence &r = f.recurrence;
  r.mixer = Mixer::Lightning;
  r.chunk = {"block_size", 256};
  r.normEps = 1e-6;
  r.part = "self_attn";
  r.list = "layer_types";
  r.needsList = true;
  return f;
}

/// Kimi Delta Attention with bounded decays, and latent attention with gates of heads, as in Ling 3.
static Family bailingHybrid() {
  Family f = kimiLinear();
  f.name = "bailing_hybrid";
  f.vocabulary.otherwise = 157184;
  f.positions = {"max_position_embeddings", 262144, "model_max_length"};
  f.hidden.otherwise = 2560;
  f.layers.otherwise = 42;
  f.inner.otherwise = 6144;
  f.padding.otherwise = 156892;
  f.eps.otherwise = 1e-6;
  f.rotary = {};
  f.rotary.theta.otherwise = 6e6;
  f.rotary.width = f.latent.turnedDim;
  f.latent.interleaved = {{}, true};
  f.headGate.part = "attention.g_proj";
  Recurrence &r = f.recurrence;
  r.heads = {};
  r.headDim = {"head_dim", 128};
  r.kernel = {"short_conv_kernel_size", 4};
  r.saved = {"linear_num_heads", "linear_head_dim", "linear_conv_kernel_dim"};
  r.bounded = {"kda_safe_gate", true};
  r.bound = {"kda_lower_bound", -5.0};
  r.part = "attention";
  r.parts = {"q_proj", "k_proj", "v_proj", "g_proj", "b_proj", "f_proj", "q_conv1d", "k_conv1d", "v_conv1d", "o_norm", "dense"};
  r.object = {};
  r.needsList = false;
  r.every = {"layer_group_size", 6};
  Experts &e = f.experts;
  e.count.otherwise = 512;
  e.chosen = {"num_experts_per_tok", 8, "num_experts_per_token"};
  e.inner.otherwise = 768;
  e.normalized = {"norm_topk_prob", true, "moe_renormalize"};
  e.factor.otherwise = 2.5;
  e.groups = {"n_group", 8, "num_expert_group"};
  e.chosenGroups.otherwise = 4;
  e.denseFirst.otherwise = 2;
  e.sharedCount = {"num_shared_experts", 1, "n_shared_experts"};
  e.router = "mlp.gate";
  e.choiceBias = "mlp.gate.expert_bias";
  e.gate = "mlp.experts.{expert}.gate_proj";
  e.up = "mlp.experts.{expert}.up_proj";
  e.down = "mlp.experts.{expert}.down_proj";
  e.shared = "mlp.shared_experts";
  f.embedding = "word_embeddings";
  f.names.attention = "attention";
  f.names.rotary = "attention.rotary_emb";
  f.names.o = "attention.dense";
  // Layers that predict further tokens, and their loss, are beside the model.
  f.ignored = {"num_nextn_predict_layers", "num_mtp_layers", "mtp_loss_scaling_factor", "output_router_logits", "pretraining_tp", "qk_head_dim"};
  f.fixed = {};
  return f;
}

std::vector<Family> meshwright::frontend::recurrentFamilies() {
  return {mamba2(),     graniteMoeHybrid(), nemotronH(), qwen3Next(), qwen35Text(),
          qwen35MoeText(), qwen35Moe(), lfm2(),      lfm2Moe(),   bamba(),     falconH1(), olmoHybrid(), lfm3(),
          recurrentGemma(), mamba(),       falconMamba(), jamba(),     kimiLinear(), bailingHybrid(), minimax()};
}
