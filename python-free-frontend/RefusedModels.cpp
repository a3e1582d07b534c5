//===- RefusedModels.cpp - model types that are known and not supported ----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Family.h"

using namespace meshwright::frontend;

llvm::ArrayRef<Refusal> meshwright::frontend::refusals() {
  static constexpr Refusal table[] = {
      {"dbrx", "experts lie one below the other in tensors of two dimensions"},
      {"deepseek_v4", "the residual stream has several lanes (hyper-connections), and attention sees compressed keys"},
      {"gemma3n_text", "the residual stream has several lanes (AltUp)"},
      {"mimo_v2_flash", "values are narrower than keys and scaled, and heads differ by layer"},
      {"minimax_m3_vl_text", "an indexer selects blocks of keys"},
      {"nemotron-nas", "each layer has sizes of its own, and some have no attention or no MLP"},
      {"phi3small", "attention is block-sparse"},
      {"step3p5", "the number of heads differs by layer, and heads are gated"},
      {"step3p7", "the number of heads differs by layer, and heads are gated"},
  };
  return table;
}

StringRef meshwright::frontend::whyRefused(StringRef model) {
  for (const Refusal &refusal : refusals())
    if (refusal.model == model)
      return refusal.why;
  return "";
}
