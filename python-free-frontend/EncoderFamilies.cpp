//===- EncoderFamilies.cpp - families that predict masked tokens ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// After the configuration classes and modeling files of transformers, whose ...ForMaskedLM
// these are.
//
//===----------------------------------------------------------------------===//
#include "Family.h"

using namespace meshwright::frontend;

static Family bert() {
  Family f;
  f.name = "bert";
  f.encoder = true;
  f.vocabulary.otherwise = 30522;
  f.positions.otherwise = 512;
  f.hidden.otherwise = 768;
  f.layers.otherwise = 12;
  f.heads.otherwise = 12;
  f.kvHeads = f.headDim = {};
  f.inner.otherwise = 3072;
  f.padding.otherwise = 0;
  f.activation.otherwise = "gelu";
  f.attentionDropout = {"attention_probs_dropout_prob", 0.1};
  f.embeddingDropout = f.residualDropout = {"hidden_dropout_prob", 0.1};
  f.norm = NormKind::Layer;
  f.eps = {"layer_norm_eps", 1e-12};
  f.normBias = true;
  f.normFirst = {{}, false};
  f.qkvBias = f.outputBias = f.mlpBias = f.headBias = {{}, true};
  f.gated = false;
  f.rotary.used = false;
  f.tied = {{}, true};
  f.base = "bert.";
  f.layerPrefix = "encoder.layer";
  f.embedding = "embeddings.word_embeddings";
  f.positionTable = "embeddings.position_embeddings";
  f.typeTable = "embeddings.token_type_embeddings";
  f.types = {"type_vocab_size", 2};
  f.embeddingNorm = "embeddings.LayerNorm";
  f.transform.dense = "cls.predictions.transform.dense";
  f.transform.function = "cls.predictions.transform.transform_act_fn";
  f.transform.norm = "cls.predictions.transform.LayerNorm";
  f.transform.activation = {"hidden_act", "gelu"};
  f.head = "cls.predictions";
  f.names.attention = "attention.self";
  f.names.q = "attention.self.query";
  f.names.k = "attention.self.key";
  f.names.v = "attention.self.value";
  f.names.o = "attention.output.dense";
  f.names.attentionNorm = "attention.output.LayerNorm";
  f.names.up = "intermediate.dense";
  f.names.activation = "intermediate.intermediate_act_fn";
  f.names.down = "output.dense";
  f.names.mlpNorm = "output.LayerNorm";
  // The pooler_* keys describe a head for whole sequences, directionality nothing.
  f.ignored = {"pooler_fc_size",       "pooler_num_attention_heads",
               "pooler_num_fc_layers", "pooler_size_per_head",
               "pooler_type",          "directionality"};
  f.fixed = {{"tie_word_embeddings", {"true"}, "the head has a matrix of its own"},
             {"is_decoder", {"false"}, "tokens see only those before them"},
             {"position_embedding_type", {"\"absolute\""}, "scores depend on distances"}};
  return f;
}

static Family roberta() {
  Family f = bert();
  f.name = "roberta";
  f.vocabulary.otherwise = 50265;
  f.padding.otherwise = 1;
  f.positionsAfterPadding = true;
  f.base = "roberta.";
  f.transform.dense = "lm_head.dense";
  f.transform.function = "lm_head.gelu";
  f.transform.norm = "lm_head.layer_norm";
  f.transform.activation = {{}, "gelu"};
  f.head = "lm_head";
  f.ignored = {};
  return f;
}

/// RoBERTa of another vocabulary.
static Family likeRoberta(StringRef name) {
  Family f = roberta();
  f.name = name;
  f.vocabulary.otherwise = 30522;
  return f;
}

static Family modernBert() {
  Family f;
  f.name = "modernbert";
  f.encoder = true;
  f.vocabulary.otherwise = 50368;
  f.positions.otherwise = 8192;
  f.hidden.otherwise = 768;
  f.layers.otherwise = 22;
  f.heads.otherwise = 12;
  f.kvHeads = f.headDim = {};
  f.inner.otherwise = 1152;
  f.padding.otherwise = 50283;
  f.activation = {"hidden_activation", "gelu"};
  f.attentionDropout = f.residualDropout = {"attention_dropout", 0.0};
  f.dropsMlp = false;
  f.innerDropout = {"mlp_dropout", 0.0};
  f.embeddingDropout = {"embedding_dropout", 0.0};
  f.scaledProjections = true;
  f.norm = NormKind::Layer;
  f.eps = {"norm_eps", 1e-5};
  f.normBias = true;
  f.useNormBias = {"norm_bias", false};
  f.normsFirstLayer = false;
  f.qkv = QKVStorage::Thirds;
  f.qkvBias = f.outputBias = {"attention_bias", false};
  f.mlpBias = {"mlp_bias", false};
  f.headBias = {"decoder_bias", true};
  f.rotary.theta = {"global_rope_theta", 160000.0};
  f.rotary.windowTheta = {"local_rope_theta", 10000.0};
  f.rotary.byLayerType = true;
  f.rotary.scalesWindows = true;
  f.kinds.window = {"local_attention", 128};
  f.kinds.acrossBoth = true;
  f.kinds.fullEvery = {"global_attn_every_n_layers", 3};
  f.kinds.fullFrom = 0;
  f.kinds.listed = true;
  f.tied.otherwise = true;
  f.embedding = "embeddings.tok_embeddings";
  f.embeddingNorm = "embeddings.norm";
  f.finalNorm = "final_norm";
  f.transform.dense = "head.dense";
  f.transform.function = "head.act";
  f.transform.norm = "head.norm";
  f.transform.activation = {"classifier_activation", "gelu"};
  f.transform.bias = {"classifier_bias", false};
  f.head = "decoder";
  f.names.attentionNorm = "attn_norm";
  f.names.mlpNorm = "mlp_norm";
  f.names.attention = "attn";
  f.names.rotary = "attn.rotary_emb";
  f.names.q = "attn.q";
  f.names.k = "attn.k";
  f.names.v = "attn.v";
  f.names.qkv = "attn.Wqkv";
  f.names.o = "attn.Wo";
  f.names.gate = "mlp.input";
  f.names.up = "mlp.gate";
  f.names.gateUp = "mlp.Wi";
  f.names.down = "mlp.Wo";
  f.names.activation = "mlp.act";
  // classifier_pooling and classifier_dropout describe heads for whole sequences;
  // sparse_prediction leaves logits out that count for nothing; initial weights are not cut off.
  f.ignored = {"classifier_pooling",        "sparse_prediction", "sparse_pred_ignore_index",
               "deterministic_flash_attn",  "reference_compile", "repad_logits_with_grad",
               "initializer_cutoff_factor", "layer_norm_eps"};
  f.fixed = {{"position_embedding_type", {"\"absolute\"", "\"rope\""}, "positions are not rotary"}};
  return f;
}

std::vector<Family> meshwright::frontend::encoderFamilies() {
  return {bert(), roberta(), likeRoberta("xlm-roberta"), likeRoberta("camembert"), modernBert()};
}
