//===- GemmaFamilies.cpp - Gemma and its variations ---------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// After the configuration classes and modeling files of transformers.
//
//===----------------------------------------------------------------------===//
#include "Family.h"

using namespace meshwright::frontend;

static Family gemma() {
  Family f = llama();
  f.name = "gemma";
  f.vocabulary.otherwise = 256000;
  f.positions.otherwise = 8192;
  f.hidden.otherwise = 3072;
  f.layers.otherwise = 28;
  f.heads.otherwise = 16;
  f.kvHeads.otherwise = 16;
  f.headDim.otherwise = 256;
  f.inner.otherwise = 24576;
  f.padding.otherwise = 0;
  f.activation = {"hidden_act", "gelu_pytorch_tanh"};
  f.geluIsTanh = true;
  f.normPlusOne = true;
  f.mlpBias = {};
  f.embeddingScaled = true;
  f.tied.otherwise = true;
  // transformers 4 reads hidden_activation, version 5 does not.
  f.fixed = {{"use_bidirectional_attention", {"null", "false"}, "tokens see what follows them"},
             {"hidden_activation",
              {"null", "\"gelu_pytorch_tanh\""},
              "transformers 5 takes the activation from \"hidden_act\""}};
  return f;
}

static Family gemma2() {
  Family f = gemma();
  f.name = "gemma2";
  f.geluIsTanh = false;
  f.fixed.pop_back();
  f.hidden.otherwise = 2304;
  f.layers.otherwise = 26;
  f.heads.otherwise = 8;
  f.kvHeads.otherwise = 4;
  f.inner.otherwise = 9216;
  f.activation = {"hidden_activation", "gelu_pytorch_tanh"};
  f.kinds.window = {"sliding_window", 4096};
  f.kinds.fullEvery = {{}, 2};
  f.kinds.listed = true;
  f.scoreScale = {"query_pre_attn_scalar", 256.0};
  f.scoreCap = {"attn_logit_softcapping", 50.0};
  f.logitCap = {"final_logit_softcapping", 30.0};
  f.names.attentionPostNorm = "post_attention_layernorm";
  f.names.mlpNorm = "pre_feedforward_layernorm";
  f.names.mlpPostNorm = "post_feedforward_layernorm";
  // transformers reads hidden_activation and sliding_window.
  f.ignored.insert(f.ignored.end(), {"hidden_act", "sliding_window_size"});
  return f;
}

/// gemma2 without norms after attention and MLP.
static Family vaultGemma() {
  Family f = gemma2();
  f.name = "vaultgemma";
  f.names.attentionPostNorm = f.names.mlpPostNorm = {};
  return f;
}

static Family gemma3() {
  Family f = gemma2();
  f.name = "gemma3_text";
  f.vocabulary.otherwise = 262208;
  f.positions.otherwise = 131072;
  f.headNorm = HeadNorm::Each;
  f.rotary.theta.otherwise = 1000000.0;
  f.rotary.windowTheta = {"rope_local_base_freq", 10000.0};
  f.rotary.byLayerType = true;
  f.kinds.fullEvery = {"sliding_window_pattern", 6};
  f.scoreCap = {};
  f.logitCap.otherwise = std::nullopt;
  // transformers caps no scores, whatever attn_logit_softcapping says.
  f.ignored.push_back("attn_logit_softcapping");
  f.ignored.push_back(
      "_sliding_window_pattern"); // it writes this beside layer_types, and reads only those
  return f;
}

/// Layers without a window have larger heads, of which a part turns; last layers may use keys and values of
/// earlier ones, and layers may add something of the token itself.
static Family gemma4() {
  Family f = gemma3();
  f.name = "gemma4_text";
  f.vocabulary.otherwise = 262144;
  f.layers.otherwise = 30;
  f.normPlusOne = false;
  f.normsValues = true;
  f.layerScale = "layer_scalar";
  f.kinds.window.otherwise = 512;
  f.kinds.fullEvery = {{}, 6};
  f.kinds.lastFull = true;
  f.scoreScale = {};
  f.scaled = {{}, false};
  f.rotary.windowTheta = {{}, 10000.0};
  f.rotary.scalingRequired = true;
  f.mixed.headDim = {"global_head_dim", 512};
  f.mixed.kvHeads = {"num_global_key_value_heads", std::nullopt};
  f.mixed.valuesAreKeys = {"attention_k_eq_v", false};
  f.mixed.sharing = {"num_kv_shared_layers", 0};
  f.mixed.wide = {"use_double_wide_mlp", false};
  f.inputs.width = {"hidden_size_per_layer_input", 256};
  f.inputs.vocabulary = {"vocab_size_per_layer_input", 262144};
  f.experts.used = {"enable_moe_block", false};
  f.experts.beside = true;
  f.experts.count = {"num_experts", 128};
  f.experts.chosen = {"top_k_experts", 8};
  f.experts.inner = {"moe_intermediate_size", std::nullopt};
  f.experts.router = "router.proj";
  f.experts.routerScale = "router.scale";
  f.experts.expertScale = "router.per_expert_scale";
  f.experts.gate = "experts.gate_proj";
  f.experts.up = "experts.up_proj";
  f.experts.down = "experts.down_proj";
  f.experts.storage = ExpertStorage::Halves;
  f.experts.gateUp = "experts.gate_up_proj";
  f.ignored = {};
  f.fixed = {{"use_bidirectional_attention", {"null", "false", "\"vision\""}, "tokens see what follows them"}};
  return f;
}

std::vector<Family> meshwright::frontend::gemmaFamilies() {
  return {gemma(), gemma2(), vaultGemma(), gemma3(), gemma4()};
}
