//===- EncoderDecoderFamilies.cpp - families that map a source to a target ----===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// After the configuration classes and modeling files of transformers, whose ...ForConditionalGeneration
// these are. A family's table is its decoder's; `source` is that of its encoder.
//
//===----------------------------------------------------------------------===//
#include "Family.h"

using namespace meshwright::frontend;

/// What both stacks of a T5 have in common.
static Family t5Stack() {
  Family f;
  f.name = "t5";
  f.vocabulary.otherwise = 32128;
  f.padding = {}; // Its row is trained, as the one before targets is.
  f.positions = {{}, 1 << 20}; // Any, since distances are what counts.
  f.hidden = {"d_model", 512};
  f.layers = {"num_layers", 6};
  f.heads = {"num_heads", 8};
  f.kvHeads = {};
  f.headDim = {"d_kv", 64};
  f.inner = {"d_ff", 2048};
  f.feedForward = "feed_forward_proj";
  f.gated = false;
  f.attentionDropout = f.embeddingDropout = f.residualDropout = f.innerDropout = {"dropout_rate", 0.1};
  f.dropsOutput = true;
  f.std = {"initializer_factor", 1.0};
  f.scaledByInputs = true;
  f.eps = {"layer_norm_epsilon", 1e-6};
  f.rotary.used = false;
  f.scaled = {{}, false};
  f.tied.otherwise = true;
  f.embedding = "shared";
  f.layerPrefix = "block";
  f.finalNorm = "final_layer_norm";
  f.relative.table = "block.0.layer.0.SelfAttention.relative_attention_bias";
  f.relative.buckets = {"relative_attention_num_buckets", 32};
  f.relative.maxDistance = {"relative_attention_max_distance", 128};
  f.names.attention = "layer.0.SelfAttention";
  f.names.q = "layer.0.SelfAttention.q";
  f.names.k = "layer.0.SelfAttention.k";
  f.names.v = "layer.0.SelfAttention.v";
  f.names.o = "layer.0.SelfAttention.o";
  f.names.attentionNorm = "layer.0.layer_norm";
  return f;
}

static void nameFeedForward(Family &f, int layer) {
  static const StringRef names[2][6] = {
      {"layer.1.DenseReluDense.wi_0", "layer.1.DenseReluDense.wi_1", "layer.1.DenseReluDense.wi",
       "layer.1.DenseReluDense.wo", "layer.1.DenseReluDense.act", "layer.1.layer_norm"},
      {"layer.2.DenseReluDense.wi_0", "layer.2.DenseReluDense.wi_1", "layer.2.DenseReluDense.wi",
       "layer.2.DenseReluDense.wo", "layer.2.DenseReluDense.act", "layer.2.layer_norm"}};
  const StringRef(&of)[6] = names[layer - 1];
  f.names.gate = of[0];
  f.names.up = of[1];
  f.names.plainUp = of[2];
  f.names.down = of[3];
  f.names.activation = of[4];
  f.names.mlpNorm = of[5];
}

static Family t5() {
  Family encoder = t5Stack();
  encoder.encoder = true;
  encoder.base = "encoder.";
  nameFeedForward(encoder, 1);

  Family f = t5Stack();
  f.source = std::make_shared<Family>(encoder);
  f.startToken = {"decoder_start_token_id", std::nullopt};
  f.layers = {"num_decoder_layers", 6};
  f.base = "decoder.";
  nameFeedForward(f, 2);
  f.names.cross = "layer.1.EncDecAttention";
  f.names.crossNorm = "layer.1.layer_norm";
  f.names.crossQ = "layer.1.EncDecAttention.q";
  f.names.crossK = "layer.1.EncDecAttention.k";
  f.names.crossV = "layer.1.EncDecAttention.v";
  f.names.crossO = "layer.1.EncDecAttention.o";
  f.scaledLogits = "scale_decoder_outputs";
  // n_positions was for sequences of absolute positions; dense_act_fn and is_gated_act repeat
  // feed_forward_proj. Padding is left out by its place, not by the token.
  f.ignored = {"n_positions", "dense_act_fn", "is_gated_act", "pad_token_id", "classifier_dropout",
               "num_hidden_layers", "hidden_size", "num_attention_heads", "head_dim"};
  f.fixed = {{"is_encoder_decoder", {"true"}, "there is an encoder alone"}};
  return f;
}

static Family mt5() {
  Family f = t5();
  Family encoder = *f.source;
  for (Family *part : {&f, &encoder}) {
    part->name = "mt5";
    part->vocabulary.otherwise = 250112;
    part->inner.otherwise = 1024;
    part->heads.otherwise = 6;
    part->gated = true;
  }
  encoder.layers.otherwise = 8;
  f.source = std::make_shared<Family>(encoder);
  f.startToken.otherwise = 0;
  f.scaledLogits = {};
  return f;
}

std::vector<Family> meshwright::frontend::encoderDecoderFamilies() { return {t5(), mt5()}; }
