//===- RefusedModels.cpp - model types that are known and not supported ----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Family.h"

using namespace meshwright::frontend;

llvm::ArrayRef<Refusal> meshwright::frontend::refusals() {
  static constexpr Refusal table[] = {
      {"albert", "all layers share one set of weights"},
      {"axk2", "norms are gated by products with the stream"},
      {"dbrx", "experts lie one below the other in tensors of two dimensions"},
      {"deberta", "scores have terms of positions apart from those of tokens"},
      {"deberta-v2", "scores have terms of positions apart from those of tokens"},
      {"deepseek_v4", "the residual stream has several lanes (hyper-connections), and attention sees compressed keys"},
      {"diffllama", "attention is the difference of two"},
      {"doge", "values make a mask of scores, and residuals are scaled by weights"},
      {"dory", "some layers are passed several times"},
      {"gemma3n_text", "the residual stream has several lanes (AltUp)"},
      {"gpt_neox_japanese", "attention of the last layer alone has a bias"},
      {"hy_v4", "the residual stream has several lanes (hyper-connections)"},
      {"jetmoe", "attention has experts"},
      {"longcat_flash", "layers have two attentions each, and some experts give what they read"},
      {"longformer", "tokens see windows and some global tokens"},
      {"minimax_m3_vl_text", "an indexer selects blocks of keys"},
      {"nemotron-nas", "each layer has sizes of its own, and some have no attention or no MLP"},
      {"phi3small", "attention is block-sparse"},
      {"qwen4_exp_text", "the residual stream is gated, and n-grams of tokens have embeddings"},
      {"rwkv", "layers are RWKV's recurrences"},
      {"step3p5", "experts are clamped by limits that differ by layer"},
      {"step3p7", "experts are clamped by limits that differ by layer"},
      {"umt5", "each layer has a table of relative positions of its own"},
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
