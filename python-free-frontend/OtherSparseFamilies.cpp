//===- OtherSparseFamilies.cpp - mixtures whose layers or files are built otherwise --===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// After the configuration classes and modeling files of transformers, and the keys of released files
// that those read.
//
//===----------------------------------------------------------------------===//
#include "Family.h"

using namespace meshwright::frontend;

/// Files hold the matrices of a layer's experts one below the other, and keys lie in two objects.
static Family dbrx() {
  Family f;
  f.name = "dbrx";
  f.positions = {"max_seq_len", 2048, "max_position_embeddings"};
  f.hidden = {"d_model", 2048, "hidden_size"};
  f.layers = {"n_layers", 24, "num_hidden_layers"};
  f.heads = {"n_heads", 16, "num_attention_heads"};
  f.kvHeads = {"attn_config.kv_n_heads", 1, "num_key_value_heads"};
  f.headDim = {};
  f.inner = {"ffn_config.ffn_hidden_size", 3584};
  f.activation = {"ffn_config.ffn_act_fn.name", "silu"};
  f.attentionDropout = {"attn_config.attn_pdrop", 0.0};
  f.residualDropout = {"resid_pdrop", 0.0};
  f.clip = {"attn_config.clip_qkv", std::nullopt};
  f.norm = NormKind::Layer;
  f.eps = {{}, 1e-5};
  f.qkv = QKVStorage::Thirds;
  f.rotary.theta = {"rope_theta", 10000.0, "attn_config.rope_theta"};
  f.tied = {};
  f.base = "transformer.";
  f.layerPrefix = "blocks";
  f.embedding = "wte";
  f.finalNorm = "norm_f";
  f.names.attentionNorm = "norm_attn_norm.norm_1";
  f.names.mlpNorm = "norm_attn_norm.norm_2";
  f.names.attention = "norm_attn_norm.attn";
  f.names.rotary = "rotary_emb";
  f.names.q = "norm_attn_norm.attn.q";
  f.names.k = "norm_attn_norm.attn.k";
  f.names.v = "norm_attn_norm.attn.v";
  f.names.qkv = "norm_attn_norm.attn.Wqkv";
  f.names.o = "norm_attn_norm.attn.out_proj";
  Experts &e = f.experts;
  e.count = {"ffn_config.moe_num_experts", 4};
  e.chosen = {"ffn_config.moe_top_k", 1};
  e.normOrder = "ffn_config.moe_normalize_expert_weights";
  e.balanced = {"output_router_logits", false};
  e.balance = {"ffn_config.moe_loss_weight", 0.01};
  e.storage = ExpertStorage::Below;
  e.router = "ffn.router.layer";
  e.gate = "ffn.experts.mlp.w1";
  e.up = "ffn.experts.mlp.v1";
  e.down = "ffn.experts.mlp.w2";
  // transformers has no dropout of embeddings, gives the experts the model's hidden size, and takes the weight of the
  // routers' loss from the inner object.
  f.ignored = {"emb_pdrop", "router_aux_loss_coef", "ffn_config.hidden_size", "attn_config.model_type", "ffn_config.model_type"};
  f.fixed = {{"tie_word_embeddings", {"false"}, "the head is the embedding"},
             {"ffn_config.moe_jitter_eps", {"null", "0", "0.0"}, "routers add noise"}};
  return f;
}

/// Step-3.5-Flash and the text part of Step-3.7. Layers with a window have other heads, and experts of last layers are bounded.
static Family step3p5() {
  Family f = llama();
  f.name = "step3p5";
  f.vocabulary.otherwise = 128815;
  f.positions.otherwise = 128000;
  f.layers.otherwise = 45;
  f.heads.otherwise = 64;
  f.kvHeads = {"num_key_value_heads", 8, "num_attention_groups"};
  f.headDim.otherwise = 128;
  f.inner.otherwise = 11264;
  f.padding.otherwise = 1;
  f.eps.otherwise = 1e-5;
  f.normPlusOne = true;
  f.headNorm = HeadNorm::Each;
  f.headGate = {"self_attn.g_proj"};
  f.scoreScale = {"query_pre_attn_scalar", std::nullopt};
  f.windowedHeads = {"num_sliding_attention_heads", "attention_other_setting.num_attention_heads"};
  f.rotary.windowTheta = {{}, 10000.0};
  f.rotary.byLayerType = f.rotary.thetaByLayer = true;
  f.rotary.parts = "partial_rotary_factors";
  f.rotary.windowPart = f.rotary.partOfType = 1;
  f.kinds.window = {"sliding_window", std::nullopt};
  f.kinds.fullEvery = {{}, 1};
  f.kinds.listed = true;
  f.kinds.further = "num_nextn_predict_layers";
  Experts &e = f.experts;
  e.count = {"n_routed_experts", 288, "moe_num_experts"};
  e.chosen = {"num_experts_per_tok", 8, "moe_top_k"};
  e.inner = {"moe_intermediate_size", 1280};
  e.denseFirst = {{}, 3};
  e.sparse = "moe_layers_enum";
  e.kinds = "mlp_layer_types";
  e.factor = {"moe_router_scaling_factor", 1.0};
  e.sigmoid = e.fullRouter = true;
  e.limits = "swiglu_limits";
  e.mlpLimits = "swiglu_limits_shared";
  e.sharedInner = {"share_expert_dim", 1280, "share_expert_dims"};
  e.storage = ExpertStorage::Stacked;
  e.router = "moe.gate";
  e.choiceBias = "moe.router_bias";
  e.gate = "moe.gate_proj";
  e.up = "moe.up_proj";
  e.down = "moe.down_proj";
  e.suffix = ".weight";
  e.shared = "share_expert";
  // Layers that predict further tokens are not trained. Scores of routers are in f32 in any case.
  f.ignored = {"mtp_layer_types", "mtp_mlp_layer_types", "num_mtp_layers", "max_seq_len", "need_fp32_gate", "output_router_logits"};
  f.fixed = {{"use_moe", {"true"}, "layers have no experts"},
             {"moe_layer_offset", {"0"}, "other layers have experts"},
             {"moe_every_n_layer", {"1"}, "other layers have experts"},
             {"norm_expert_weight", {"true"}, "weights of experts are not normalized"},
             {"moe_router_activation", {"\"sigmoid\""}, "scores are other ones"},
             {"use_moe_router_bias", {"true"}, "experts are chosen without a bias"},
             {"use_head_wise_attn_gate", {"true"}, "heads are not gated"},
             {"gating", {"true", "\"per-head\""}, "elements of heads are gated"},
             {"use_bidirectional_attention", {"false"}, "tokens see what follows them"},
             {"att_impl_type", {"\"GQA\""}, "attention is another one"},
             {"zero_centered", {"true"}, "norms are other ones"},
             {"yarn_only_types", {"[\"full_attention\"]"}, "other layers have other angles"},
             {"attention_other_setting.attention_type", {"\"sliding_attention\""}, "other layers have other heads"}};
  f.repeats = {{"attention_other_setting.num_attention_groups", "num_attention_groups"},
               {"attention_other_setting.head_dim", "head_dim"},
               {"attention_other_setting.true_head_dim", "head_dim"}};
  return f;
}

/// Layers have two attentions and two MLPs, and zero-computation experts, which return their input, among the others.
static Family longcatFlash() {
  Family f = deepseekV3();
  f.name = "longcat_flash";
  f.vocabulary.otherwise = 131072;
  f.positions.otherwise = 131072;
  f.hidden.otherwise = 6144;
  f.layers = {"num_layers", 28};
  f.heads.otherwise = 64;
  f.inner = {"ffn_hidden_size", 12288, "intermediate_size"};
  f.eps.otherwise = 1e-5;
  f.rotary.theta.otherwise = 1e7;
  f.twice = true;
  f.attentions = "num_hidden_layers";
  f.names.gate = "mlps.gate_proj";
  f.names.up = "mlps.up_proj";
  f.names.down = "mlps.down_proj";
  f.names.activation = "mlps.act_fn";
  f.latent.interleaved = {{}, true};
  f.latent.scaled = true;
  Experts e;
  e.count = {"n_routed_experts", 512, "num_local_experts"};
  e.chosen = {"moe_topk", 12, "num_experts_per_tok"};
  e.inner = {"expert_ffn_hidden_size", 2048, "moe_intermediate_size"};
  e.identities = {"zero_expert_num", 256};
  e.normalized = {{}, false};
  e.factor = {"routed_scaling_factor", 6.0};
  e.fullRouter = true;
  e.router = "mlp.router.classifier";
  e.choiceBias = "mlp.router.e_score_correction_bias";
  f.experts = e;
  // A part of heads that turns.
  f.ignored = {"head_dim", "qk_head_dim", "output_router_logits", "num_nextn_predict_layers", "num_mtp_layers"};
  f.fixed = {{"zero_expert_type", {"\"identity\""}, "experts without matrices give something else"},
             {"attention_method", {"\"MLA\""}, "attention is another one"},
             {"mla_scale_q_lora", {"true"}, "latents of queries are not multiplied"},
             {"mla_scale_kv_lora", {"true"}, "latents of keys are not multiplied"},
             {"router_bias", {"false"}, "routers have biases"},
             {"norm_topk_prob", {"false"}, "weights of experts are normalized"}};
  return f;
}

std::vector<Family> meshwright::frontend::otherSparseFamilies() { return {dbrx(), step3p5(), longcatFlash()}; }
