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
  f.hidden = {"d_model", 512, "hidden_size"};
  f.layers = {"num_layers", 6, "num_hidden_layers"};
  f.heads = {"num_heads", 8, "num_attention_heads"};
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
  f.endToken = 1;
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
  f.ignored = {"n_positions", "dense_act_fn", "is_gated_act", "pad_token_id", "classifier_dropout"};

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

/// Each layer has a table of relative positions.
static Family umt5() {
  Family f = mt5();
  Family encoder = *f.source;
  for (Family *part : {&f, &encoder}) {
    part->name = "umt5";
    part->relative.table = "layer.0.SelfAttention.relative_attention_bias";
    part->relative.ofLayers = true;
  }
  f.source = std::make_shared<Family>(encoder);
  f.scaledLogits = "scale_decoder_outputs";
  return f;
}

/// What both stacks of BART and its relatives have in common. `stack` is "encoder" or "decoder".
static Family bartStack(StringRef name, bool isEncoder) {
  Family f;
  f.name = name;
  f.encoder = isEncoder;
  f.vocabulary.otherwise = 50265;
  f.positions.otherwise = 1024;
  f.hidden = {"d_model", 1024, "hidden_size"};
  f.layers = {isEncoder ? "encoder_layers" : "decoder_layers", 12,
              isEncoder ? "num_hidden_layers" : ""};
  f.heads = {isEncoder ? "encoder_attention_heads" : "decoder_attention_heads", 16,
             isEncoder ? "num_attention_heads" : ""};
  f.kvHeads = f.headDim = {};
  f.inner = {isEncoder ? "encoder_ffn_dim" : "decoder_ffn_dim", 4096};
  f.padding.otherwise = 1;
  f.activation = {"activation_function", "gelu"};
  f.attentionDropout = {"attention_dropout", 0.0};
  f.embeddingDropout = f.residualDropout = {"dropout", 0.1};
  f.innerDropout = {"activation_dropout", 0.0};
  f.std = {"init_std", 0.02};
  f.norm = NormKind::Layer;
  f.eps = {{}, 1e-5};
  f.normBias = true;
  f.qkvBias = f.outputBias = f.mlpBias = {{}, true};
  f.gated = false;
  f.rotary.used = false;
  f.scaleEmbedding = {"scale_embedding", false};
  f.tied = {{}, true};
  f.base = isEncoder ? "model.encoder." : "model.decoder.";
  f.embedding = "model.shared";
  f.finalNorm = "layer_norm";
  f.logitBias = "final_logits_bias";
  f.names.attentionNorm = "self_attn_layer_norm";
  f.names.mlpNorm = "final_layer_norm";
  f.names.o = "self_attn.out_proj";
  f.names.up = "fc1";
  f.names.down = "fc2";
  f.names.activation = "activation_fn";
  f.names.cross = "encoder_attn";
  f.names.crossNorm = "encoder_attn_layer_norm";
  f.names.crossQ = "encoder_attn.q_proj";
  f.names.crossK = "encoder_attn.k_proj";
  f.names.crossV = "encoder_attn.v_proj";
  f.names.crossO = "encoder_attn.out_proj";
  return f;
}

/// A family of two such stacks, which `change` makes its own. Targets begin with `start` and end with `end`.
static Family bartLike(StringRef name, int64_t start, int64_t end,
                       void (*change)(Family &stack, bool isEncoder)) {
  Family encoder = bartStack(name, true), f = bartStack(name, false);
  change(encoder, true);
  change(f, false);
  f.source = std::make_shared<Family>(encoder);
  f.startToken = {"decoder_start_token_id", start};
  f.endToken = end;
  f.forcesEnd = true;
  // Sizes of both stacks under names of one; what older files say of the class that reads them; what
  // targets begin with when they are generated.
  f.ignored = {"normalize_before",     "add_final_layer_norm",
               "normalize_embedding", "add_bias_logits",      "static_position_embeddings",
               "extra_pos_embeddings", "extra_layer_norm",    "layernorm_variant",
               "variant",             "do_blenderbot_90_layernorm", "force_bos_token_to_be_generated",
               "classif_dropout",     "classifier_dropout",
               "save_step",            "unk_token",
               "forced_decoder_ids",  "decoder"};
  static const char drops[] = "layers are left out at random";
  f.fixed = {{"is_encoder_decoder", {"true"}, "there is an encoder alone"},
             {"tie_word_embeddings", {"true"}, "sources, targets and logits have tables of their own"},
             {"encoder_layerdrop", {"0.0", "0"}, drops},
             {"decoder_layerdrop", {"0.0", "0"}, drops}};
  return f;
}

static Family bart() {
  return bartLike("bart", 2, 2, [](Family &f, bool) {
    f.normFirst = {{}, false};
    f.positionTable = "embed_positions";
    f.positionOffset = 2;
    f.embeddingNorm = "layernorm_embedding";
  });
}

/// What precedes a target is its last token, the code of its language, for transformers; here it is the token that
/// "decoder_start_token_id" says, which is the same where all targets are of one language.
static Family mbart() {
  Family f = bartLike("mbart", 2, 2, [](Family &f, bool) {
    f.positionTable = "embed_positions";
    f.positionOffset = 2;
    f.embeddingNorm = "layernorm_embedding";
  });
  f.startToken.otherwise = std::nullopt;
  return f;
}

static Family plbart() {
  Family f = bartLike("plbart", 2, 2, [](Family &f, bool) {
    f.vocabulary.otherwise = 50005;
    f.hidden.otherwise = 768;
    f.layers.otherwise = 6;
    f.heads.otherwise = 12;
    f.inner.otherwise = 3072;
    f.attentionDropout.otherwise = 0.1;
    f.normFirst = {{}, false};
    f.scaleEmbedding.otherwise = true;
    f.positionTable = "embed_positions";
    f.positionOffset = 2;
    f.embeddingNorm = "layernorm_embedding";
  });
  f.startToken.otherwise = std::nullopt;
  return f;
}

static Family blenderbotSmall() {
  return bartLike("blenderbot-small", 1, 2, [](Family &f, bool isEncoder) {
    f.positions.otherwise = 512;
    f.hidden.otherwise = 512;
    f.layers.otherwise = 8;
    f.inner.otherwise = 2048;
    f.padding.otherwise = 0;
    f.normFirst = {{}, false};
    f.positionTable = "embed_positions";
    f.embeddingNorm = "layernorm_embedding";
    f.embeddingNormFirst = !isEncoder;
  });
}

/// M2M-100 and NLLB.
static Family m2m100() {
  Family f = bartLike("m2m_100", 2, 2, [](Family &f, bool) {
    f.vocabulary.otherwise = 128112;
    f.activation.otherwise = "relu";
    f.attentionDropout.otherwise = 0.1;
    f.scaleEmbedding.otherwise = true;
    f.sinusoids = {true, true, 0, true};
    f.logitBias = {};
  });
  f.forcesEnd = false;
  return f;
}

static Family blenderbot() {
  return bartLike("blenderbot", 1, 2, [](Family &f, bool isEncoder) {
    f.vocabulary.otherwise = 8008;
    f.positions.otherwise = 128;
    f.hidden.otherwise = 2560;
    f.layers.otherwise = isEncoder ? 2 : 24;
    f.heads.otherwise = 32;
    f.inner.otherwise = 10240;
    f.padding.otherwise = 0;
    f.positionTable = "embed_positions";
  });
}

static Family marian() {
  Family f = bartLike("marian", 58100, 0, [](Family &f, bool) {
    f.vocabulary.otherwise = 58101;
    f.padding.otherwise = 58100;
    f.normFirst = {{}, false};
    f.sinusoids.used = true;
  });
  f.targetVocabulary = "decoder_vocab_size";
  f.fixed.push_back({"share_encoder_decoder_embeddings", {"true"}, "targets have tokens of their own"});
  return f;
}

static Family pegasus() {
  return bartLike("pegasus", 0, 1, [](Family &f, bool) {
    f.padding.otherwise = 0;
    f.sinusoids.used = true;
  });
}

std::vector<Family> meshwright::frontend::encoderDecoderFamilies() {
  return {t5(), mt5(), umt5(), bart(), blenderbot(), marian(), pegasus(), mbart(), plbart(), blenderbotSmall(), m2m100()};
}
