//===- MultimodalFamilies.cpp - the text parts of models of more than text -----===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// After the configuration classes and modeling files of transformers. Text alone has one position on
// all axes of multimodal rotary embeddings, and no image that layers could attend to.
//
//===----------------------------------------------------------------------===//
#include "Family.h"

using namespace meshwright::frontend;

/// What a configuration says of the other parts where it says all in one object.
static void ignoreOtherParts(Family &f) {
  f.ignored.insert(f.ignored.end(), {"vision_config", "image_token_id", "video_token_id", "vision_start_token_id",
                                     "vision_end_token_id", "vision_token_id"});
}

static Family qwen2VlText() {
  Family f = qwen2();
  f.name = "qwen2_vl_text";
  f.vocabulary.otherwise = 152064;
  f.hidden.otherwise = 8192;
  f.layers.otherwise = 80;
  f.heads.otherwise = 64;
  f.kvHeads.otherwise = 8;
  f.headDim = {};
  f.inner.otherwise = 29568;
  f.eps.otherwise = 1e-5;
  f.rotary.theta.otherwise = 1e6;
  f.rotary.sections = true;
  f.kinds.fullLayers.otherwise = 80;
  return f;
}

static Family qwen25VlText() {
  Family f = qwen2VlText();
  f.name = "qwen2_5_vl_text";
  return f;
}

/// Released files have the keys of text and of the whole in one object.
static Family whole(Family f, StringRef name) {
  f.name = name;
  ignoreOtherParts(f);
  return f;
}

static Family qwen3VlText() {
  Family f = qwen3();
  f.name = "qwen3_vl_text";
  f.positions.otherwise = 128000;
  f.rotary.theta.otherwise = 500000.0;
  f.rotary.sections = true;
  f.kinds = {};
  return f;
}

/// Files hold the experts of a layer in two tensors of [experts, in, out].
static Family qwen3VlMoeText() {
  Family f = qwen3Moe();
  f.name = "qwen3_vl_moe_text";
  f.positions.otherwise = 128000;
  f.heads.otherwise = 16;
  f.kvHeads.otherwise = 16;
  f.inner.otherwise = 5632;
  f.tied.otherwise = true;
  f.rotary.theta.otherwise = 500000.0;
  f.rotary.sections = true;
  f.kinds = {};
  f.experts.count.otherwise = 60;
  f.experts.chosen.otherwise = 4;
  f.experts.inner.otherwise = 1408;
  f.experts.normalized = {{}, true};
  f.experts.gate = "mlp.experts.gate_proj";
  f.experts.up = "mlp.experts.up_proj";
  f.experts.down = "mlp.experts.down_proj";
  f.experts.storage = ExpertStorage::Halves;
  f.experts.gateUp = "mlp.experts.gate_up_proj";
  f.experts.transposed = true;
  f.fixed.push_back({"norm_topk_prob", {"true"}, "weights of experts are not normalized"});
  return f;
}

/// Layers that attend to images alone pass text by.
static Family mllamaText() {
  Family f = llama();
  f.name = "mllama_text_model";
  f.vocabulary.otherwise = 128256;
  f.moreRows = 8; // for images
  f.positions.otherwise = 131072;
  f.layers.otherwise = 40;
  f.kvHeads.otherwise = 8;
  f.headDim = {};
  f.inner.otherwise = 14336;
  f.padding.otherwise = 128004;
  f.attentionDropout = {};
  f.eps.otherwise = 1e-5;
  f.qkvBias = f.outputBias = f.mlpBias = {};
  f.rotary.theta.otherwise = 500000.0;
  f.skippedLayers = "cross_attention_layers";
  f.tied = {};
  f.fixed = {{"tie_word_embeddings", {"false"}, "the head would have rows for images"},
             {"dropout", {"0.0", "0"}, "attention drops elements"}};
  return f;
}

/// LLaVA as its authors publish it: a llama that says what its images are read by.
static Family llavaLlama(StringRef name) {
  Family f = llama();
  f.name = name;
  f.ignored.insert(f.ignored.end(),
                   {"freeze_mm_mlp_adapter", "freeze_mm_vision_resampler", "image_aspect_ratio", "image_crop_resolution",
                    "image_grid_pinpoints", "image_split_resolution", "mm_hidden_size", "mm_patch_merge_type",
                    "mm_projector_lr", "mm_projector_type", "mm_resampler_type", "mm_use_im_patch_token",
                    "mm_use_im_start_end", "mm_vision_select_feature", "mm_vision_select_layer", "mm_vision_tower",
                    "mm_vision_tower_lr", "pretrain_mm_mlp_adapter", "sep_image_conv_front", "tokenizer_model_max_length",
                    "tokenizer_padding_side", "tune_mm_mlp_adapter", "tune_mm_vision_resampler",
                    "unfreeze_mm_vision_tower", "use_mm_proj"});
  return f;
}

/// MoE-LLaVA (Lin et al. 2024), whose MLPs are mixtures of DeepSpeed in some layers: with numbers of experts of each layer, and
/// residual experts (Rajbhandari et al. 2022). How many tokens an expert takes is a flag here.
static Family moeLlava(Family f, StringRef name) {
  Family images = llavaLlama(name);
  f.name = name;
  f.ignored.insert(f.ignored.end(), images.ignored.begin(), images.ignored.end());
  f.ignored.insert(f.ignored.end(), {"moe.capacity_factor", "moe.ep_size", "moe.eval_capacity_factor", "moe.min_capacity", "moe.moe_mode",
                                     "moe.train_modules"});
  f.judge = "a model of PyTorch in float64 (test/Golden/remote.py)";
  f.mlpBias = {};
  f.fixed.push_back({"mlp_bias", {"false"}, "MLPs and experts have biases"});
  Experts &e = f.experts;
  e.used = {"moe.moe_enable", true};
  e.count = {"moe.num_experts", 4};
  e.listsSparse = true;
  e.sparse = "moe.moe_layers_idx";
  e.needsSparse = true;
  e.chosen = {"moe.top_k_experts", 2};
  e.normalizesSeveral = true;
  e.fullRouter = true;
  e.balanced = {{}, true};
  e.balance = {"moe.router_aux_loss_coef", 0.01};
  e.balanceOfLayers = true;
  e.router = "mlp.deepspeed_moe.gate.wg";
  e.gate = "mlp.deepspeed_moe.experts.deepspeed_experts.{expert}.gate_proj";
  e.up = "mlp.deepspeed_moe.experts.deepspeed_experts.{expert}.up_proj";
  e.down = "mlp.deepspeed_moe.experts.deepspeed_experts.{expert}.down_proj";
  e.residual = {"moe.use_residual", false};
  e.coefficient = "mlp.coefficient";
  e.shared = "mlp.mlp";
  return f;
}

/// Phi-3 with images.
static Family phi3v() {
  Family f = phi3();
  f.name = "phi3_v";
  f.ignored.insert(f.ignored.end(), {"img_processor", "embd_layer", "image_token_id"});
  return f;
}

std::vector<Family> meshwright::frontend::multimodalFamilies() {
  return {qwen2VlText(),
          whole(qwen2VlText(), "qwen2_vl"),
          qwen25VlText(),
          whole(qwen25VlText(), "qwen2_5_vl"),
          qwen3VlText(),
          qwen3VlMoeText(),
          mllamaText(),
          llavaLlama("llava"),
          llavaLlama("llava_llama"),
          moeLlava(llama(), "moe_llava_llama"),
          moeLlava(mistral(), "moe_llava_mistral"),
          phi3v()};
}

StringRef meshwright::frontend::textFamilyOf(StringRef whole) {
  static constexpr std::pair<StringRef, StringRef> parts[] = {
      {"gemma3", "gemma3_text"},         {"gemma4", "gemma4_text"},
      {"kimi_k25", "deepseek_v3"},
      {"llama4", "llama4_text"},         {"llava", "llama"},
      {"llava_next", "llama"},           {"mistral3", "mistral"},
      {"mllama", "mllama_text_model"},   {"paligemma", "gemma"},
      {"qwen2_5_vl", "qwen2_5_vl_text"}, {"qwen2_vl", "qwen2_vl_text"},
      {"qwen3_5", "qwen3_5_text"},       {"qwen3_5_moe", "qwen3_5_moe"},
      {"qwen3_vl", "qwen3_vl_text"},     {"qwen3_vl_moe", "qwen3_vl_moe_text"},
      {"step3p7", "step3p5"},
      {"video_llava", "llama"},          {"vipllava", "llama"},
      {"voxtral", "llama"}};
  for (auto [name, text] : parts)
    if (name == whole)
      return text;
  return "";
}
