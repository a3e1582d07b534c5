//===- RefusedModels.cpp - model types that are known and not supported ----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Family.h"

using namespace meshwright::frontend;

llvm::ArrayRef<Refusal> meshwright::frontend::refusals() {
  static constexpr Refusal table[] = {
      {"axk2", "norms are gated by products with the stream"},
      {"deberta", "scores have terms of positions apart from those of tokens"},
      {"deberta-v2", "scores have terms of positions apart from those of tokens"},
      {"deepseek_v4", "the residual stream has several lanes (hyper-connections), and attention sees compressed keys"},
      {"doge", "values make a mask of scores, and residuals are scaled by weights"},
      {"dory", "some layers are passed several times"},
      {"gemma3n_text", "the residual stream has several lanes (AltUp)"},
      {"hy_v4", "the residual stream has several lanes (hyper-connections)"},
      {"jetmoe", "attention has experts"},
      {"longformer", "tokens see windows and some global tokens"},
      {"minimax_m3_vl_text", "an indexer selects blocks of keys"},
      {"qwen4_exp_text", "the residual stream is gated, and n-grams of tokens have embeddings"},
      {"moe_llava_phi", "experts in tensors of their own have biases"},
      {"moe_llava_qwen", "experts have the names of the first Qwen's MLPs"},
      {"moe_llava_stablelm", "the configuration is of StableLM's code before transformers had it"},
      {"rwkv", "layers are RWKV's recurrences"},
      {"xlnet", "tokens are predicted in random orders"},
      {"xlstm", "layers are recurrences of xLSTM"},
      {"zamba2", "some layers share one block of attention"},
      {"zaya", "queries and keys pass through convolutions, and routers are MLPs"},
  };
  return table;
}

StringRef meshwright::frontend::whyRefused(StringRef model) {
  for (const Refusal &refusal : refusals())
    if (refusal.model == model)
      return refusal.why;
  return "";
}
