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

static Family distilBert() {
  Family f = bert();
  f.name = "distilbert";
  f.hidden = {"dim", 768, "hidden_size"};
  f.layers = {"n_layers", 6, "num_hidden_layers"};
  f.heads = {"n_heads", 12, "num_attention_heads"};
  f.inner = {"hidden_dim", 3072};
  f.activation = {"activation", "gelu"};
  f.attentionDropout = {"attention_dropout", 0.1};
  f.embeddingDropout = f.residualDropout = {"dropout", 0.1};
  f.dropsAttention = false;
  f.eps = {{}, 1e-12};
  f.base = "distilbert.";
  f.layerPrefix = "transformer.layer";
  f.typeTable = {};
  f.types = {};
  f.transform.dense = "vocab_transform";
  f.transform.function = "activation";
  f.transform.norm = "vocab_layer_norm";
  f.transform.activation = {"activation", "gelu"};
  f.head = "vocab_projector";
  f.names.attention = "attention";
  f.names.q = "attention.q_lin";
  f.names.k = "attention.k_lin";
  f.names.v = "attention.v_lin";
  f.names.o = "attention.out_lin";
  f.names.attentionNorm = "sa_layer_norm";
  f.names.up = "ffn.lin1";
  f.names.activation = "ffn.activation";
  f.names.down = "ffn.lin2";
  f.names.mlpNorm = "output_layer_norm";
  // What heads for whole sequences drop, and how the table of positions begins.
  f.ignored = {"qa_dropout", "seq_classif_dropout", "sinusoidal_pos_embds", "tie_weights_", "output_past"};
  f.fixed = {{"tie_word_embeddings", {"true"}, "the head has a matrix of its own"}};
  return f;
}

/// The generator. Embeddings are narrower than layers.
static Family electra() {
  Family f = bert();
  f.name = "electra";
  f.hidden.otherwise = 256;
  f.heads.otherwise = 4;
  f.inner.otherwise = 1024;
  f.embeddingWidth = {"embedding_size", 128};
  f.projectsLast = true;
  f.projectIn = "embeddings_project";
  f.base = "electra.";
  f.transform.dense = "generator_predictions.dense";
  f.transform.function = "generator_predictions.activation";
  f.transform.norm = "generator_predictions.LayerNorm";
  f.transform.activation = {{}, "gelu"};
  f.head = "generator_lm_head";
  f.ignored = {"summary_type", "summary_use_proj", "summary_activation", "summary_last_dropout"};
  return f;
}

/// Layers are one, and embeddings are narrower.
static Family albert() {
  Family f = bert();
  f.name = "albert";
  f.vocabulary.otherwise = 30000;
  f.positions.otherwise = 512;
  f.hidden.otherwise = 4096;
  f.heads.otherwise = 64;
  f.inner.otherwise = 16384;
  f.activation.otherwise = "gelu_new";
  f.attentionDropout.otherwise = f.embeddingDropout.otherwise = f.residualDropout.otherwise = 0.0;
  f.dropsMlp = false;
  f.sharesLayers = true;
  f.embeddingWidth = {"embedding_size", 128};
  f.projectsLast = f.projectsAlways = true;
  f.projectIn = "encoder.embedding_hidden_mapping_in";
  f.base = "albert.";
  f.layerPrefix = "encoder.albert_layer_groups.0.albert_layers.0";
  f.transform.dense = "predictions.dense";
  f.transform.function = "predictions.activation";
  f.transform.norm = "predictions.LayerNorm";
  f.transform.activation = {"hidden_act", "gelu_new"};
  f.head = "predictions";
  f.names.attention = "attention";
  f.names.q = "attention.query";
  f.names.k = "attention.key";
  f.names.v = "attention.value";
  f.names.o = "attention.dense";
  f.names.attentionNorm = "attention.LayerNorm";
  f.names.up = "ffn";
  f.names.activation = "activation";
  f.names.down = "ffn_output";
  f.names.mlpNorm = "full_layer_layer_norm";
  // Heads for whole sequences, and what no version has read.
  f.ignored = {"classifier_dropout_prob", "down_scale_factor", "gap_size", "net_structure_type", "num_memory_blocks"};
  f.fixed.push_back({"num_hidden_groups", {"1"}, "some layers differ"});
  f.fixed.push_back({"inner_group_num", {"1"}, "a layer is several"});
  return f;
}

static Family ernie() {
  Family f = bert();
  f.name = "ernie";
  f.base = "ernie.";
  f.fixed.push_back({"use_task_id", {"false"}, "embeddings of tasks are added"});
  f.ignored.push_back("task_type_vocab_size");
  return f;
}

/// Relative positions beside a table of positions.
static Family mpnet() {
  Family f = roberta();
  f.name = "mpnet";
  f.vocabulary.otherwise = 30527;
  f.typeTable = {};
  f.types = {};
  f.base = "mpnet.";
  f.relative.table = "encoder.relative_attention_bias";
  f.relative.buckets = {{}, 32};
  f.relative.maxDistance = {{}, 128};
  f.names.attention = "attention.attn";
  f.names.q = "attention.attn.q";
  f.names.k = "attention.attn.k";
  f.names.v = "attention.attn.v";
  f.names.o = "attention.attn.o";
  f.names.attentionNorm = "attention.LayerNorm";
  f.fixed.push_back({"relative_attention_num_buckets", {"32"}, "transformers computes 32 buckets of distances, whatever it says"});
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
  return {bert(), roberta(), likeRoberta("xlm-roberta"), likeRoberta("camembert"), distilBert(), electra(), albert(), ernie(), mpnet(), modernBert()};
}
