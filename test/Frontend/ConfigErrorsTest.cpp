//===- ConfigErrorsTest.cpp - one mistake, one message -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Puts a wrong value into each key of a model description in turn. One message
// names that key; no other key is called unknown, or wrong, because of it.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Frontend.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace llvm;
using namespace meshwright;

static constexpr StringLiteral models[] = {
    R"({"model_type": "gpt2", "vocab_size": 100, "n_positions": 32, "n_embd": 24, "n_layer": 2, "n_head": 3,
        "n_inner": 48, "activation_function": "gelu_new", "attn_pdrop": 0.1, "embd_pdrop": 0.1, "resid_pdrop": 0.1,
        "layer_norm_epsilon": 1e-5, "initializer_range": 0.02, "scale_attn_weights": true,
        "scale_attn_by_inverse_layer_idx": false, "tie_word_embeddings": true, "add_cross_attention": false})",
    R"({"model_type": "llama", "vocab_size": 40000, "pad_token_id": 39999, "max_position_embeddings": 32,
        "hidden_size": 60, "num_hidden_layers": 2, "num_attention_heads": 5, "num_key_value_heads": 5,
        "intermediate_size": 48, "hidden_act": "silu", "attention_dropout": 0.0, "rms_norm_eps": 1e-6,
        "initializer_range": 0.02, "tie_word_embeddings": false, "attention_bias": false, "mlp_bias": false,
        "rope_theta": 10000.0, "sliding_window": null, "rope_scaling": {"rope_type": "llama3", "type": "llama3",
        "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}})",
    R"({"model_type": "mistral", "vocab_size": 100, "max_position_embeddings": 32, "hidden_size": 24, "head_dim": 8,
        "num_hidden_layers": 2, "num_attention_heads": 3, "num_key_value_heads": 1, "intermediate_size": 48,
        "sliding_window": 8, "rope_theta": 10000.0, "rope_scaling": {"type": "linear", "factor": 2.0}})",
    R"({"model_type": "qwen2", "vocab_size": 100, "max_position_embeddings": 32, "hidden_size": 24,
        "num_hidden_layers": 2, "num_attention_heads": 3, "num_key_value_heads": 3, "intermediate_size": 48,
        "use_sliding_window": true, "sliding_window": 8, "max_window_layers": 1,
        "layer_types": ["full_attention", "sliding_attention"], "rope_parameters": {"rope_theta": 10000.0}})",
    R"({"model_type": "qwen3", "vocab_size": 100, "max_position_embeddings": 32, "hidden_size": 24,
        "num_hidden_layers": 2, "num_attention_heads": 3, "num_key_value_heads": 1, "intermediate_size": 48,
        "head_dim": 8, "attention_bias": false, "use_sliding_window": false, "rope_theta": 10000.0})",
    R"({"model_type": "gemma3_text", "vocab_size": 100, "max_position_embeddings": 32, "hidden_size": 24,
        "num_hidden_layers": 2, "num_attention_heads": 3, "num_key_value_heads": 1, "intermediate_size": 48,
        "head_dim": 8, "sliding_window": 8, "query_pre_attn_scalar": 8,
        "final_logit_softcapping": 30.0, "hidden_activation": "gelu_pytorch_tanh", "pad_token_id": 3,
        "layer_types": ["full_attention", "sliding_attention"], "rope_parameters": {"full_attention":
        {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 16, "mscale": 1.0,
        "mscale_all_dim": 2.0, "beta_fast": 32, "beta_slow": 1, "truncate": true},
        "sliding_attention": {"rope_theta": 10000.0}}})",
    R"({"model_type": "phi3", "vocab_size": 100, "max_position_embeddings": 32, "hidden_size": 24,
        "num_hidden_layers": 2, "num_attention_heads": 3, "num_key_value_heads": 1, "intermediate_size": 48,
        "pad_token_id": 3, "sliding_window": 8, "partial_rotary_factor": 1.0, "original_max_position_embeddings": 16,
        "resid_pdrop": 0.1, "rope_scaling": {"type": "longrope", "short_factor": [1, 2, 3, 4],
        "long_factor": [1, 2, 3, 4.5]}})",
    R"({"model_type": "gpt_neox", "vocab_size": 100, "max_position_embeddings": 32, "hidden_size": 24,
        "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 48, "hidden_act": "gelu",
        "rotary_pct": 0.5, "rotary_emb_base": 10000, "use_parallel_residual": false, "layer_norm_eps": 1e-5,
        "attention_bias": true, "hidden_dropout": 0.1})",
    R"({"model_type": "smollm3", "vocab_size": 100, "max_position_embeddings": 32, "hidden_size": 24,
        "num_hidden_layers": 2, "num_attention_heads": 3, "num_key_value_heads": 1, "intermediate_size": 48,
        "pad_token_id": 3, "no_rope_layers": [1, 0], "no_rope_layer_interval": 4,
        "rope_parameters": {"rope_type": "dynamic", "factor": 2.0}})",
    R"({"model_type": "granite", "vocab_size": 100, "max_position_embeddings": 32, "hidden_size": 24,
        "num_hidden_layers": 2, "num_attention_heads": 3, "num_key_value_heads": 1, "intermediate_size": 48,
        "embedding_multiplier": 2.0, "logits_scaling": 2.0, "residual_multiplier": 0.5,
        "attention_multiplier": 0.5})",
    R"({"model_type": "falcon", "vocab_size": 100, "max_position_embeddings": 32, "hidden_size": 24,
        "num_hidden_layers": 2, "num_attention_heads": 3, "num_kv_heads": 1, "ffn_hidden_size": 48,
        "new_decoder_architecture": true, "bias": true})",
    R"({"model_type": "gemma2", "vocab_size": 100, "max_position_embeddings": 32, "hidden_size": 24,
        "num_hidden_layers": 2, "num_attention_heads": 3, "num_key_value_heads": 1, "intermediate_size": 48,
        "head_dim": 8, "attn_logit_softcapping": 50.0})",
    R"({"model_type": "opt", "vocab_size": 100, "max_position_embeddings": 32, "hidden_size": 24,
        "num_hidden_layers": 2, "num_attention_heads": 3, "ffn_dim": 48, "word_embed_proj_dim": 12,
        "do_layer_norm_before": false, "enable_bias": true, "layer_norm_elementwise_affine": true,
        "init_std": 0.02, "dropout": 0.1, "layerdrop": 0.0})",
    R"({"model_type": "qwen2_moe", "vocab_size": 100, "max_position_embeddings": 32, "hidden_size": 24,
        "num_hidden_layers": 2, "num_attention_heads": 3, "num_key_value_heads": 1, "intermediate_size": 48,
        "qkv_bias": true, "use_sliding_window": true, "sliding_window": 8, "max_window_layers": 1,
        "num_experts": 4, "mlp_only_layers": [0, 1], "decoder_sparse_step": 1})",
    R"({"model_type": "glm4_moe", "vocab_size": 100, "max_position_embeddings": 32, "hidden_size": 24,
        "num_hidden_layers": 2, "num_attention_heads": 3, "num_key_value_heads": 1, "intermediate_size": 48,
        "head_dim": 8, "use_qk_norm": true, "first_k_dense_replace": 2})",
    R"({"model_type": "ernie4_5_moe", "vocab_size": 100, "max_position_embeddings": 32, "hidden_size": 24,
        "num_hidden_layers": 2, "num_attention_heads": 3, "num_key_value_heads": 1, "intermediate_size": 48,
        "use_bias": true, "moe_num_experts": 4, "moe_k": 2, "moe_intermediate_size": 8, "moe_num_shared_experts": 1,
        "moe_layer_start_index": 1, "moe_layer_end_index": -1, "moe_layer_interval": 1, "moe_norm_min": 1e-3})",
    R"({"model_type": "minicpm", "vocab_size": 100, "max_position_embeddings": 32, "hidden_size": 24,
        "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 48, "scale_emb": 12,
        "scale_depth": 1.4, "dim_model_base": 8})"};

namespace {
class ConfigErrors : public testing::Test {
protected:
  ConfigErrors() { EXPECT_FALSE(sys::fs::createTemporaryFile("config", "json", path)); }
  ~ConfigErrors() override { sys::fs::remove(path); }

  /// What importing the model says.
  std::vector<std::string> errorsOf(const json::Object &model) {
    std::error_code error;
    {
      raw_fd_ostream file(path, error);
      file << json::Value(json::Object(model));
    }
    EXPECT_FALSE(error);
    std::vector<std::string> errors;
    mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
        errors.push_back(diagnostic.str());
      return mlir::success();
    });
    ModelOptions options;
    options.sequence = 16;
    bool imported = succeeded(importHuggingFace(path, options, context));
    EXPECT_EQ(imported, errors.empty());
    return errors;
  }

  /// Puts wrong values into each key of `members`, which is part of `model`.
  void spoil(json::Object &model, json::Object &members) {
    const json::Value wrong[] = {
        "nonsense", -1, 0, 2.5, 7, true, json::Array{1}, json::Object{{"a", 1}}, nullptr};
    SmallVector<std::string> keys;
    for (auto &member : members)
      if (member.first.str() != "model_type")
        keys.push_back(member.first.str());
    for (const std::string &key : keys) {
      json::Value good = members[key];
      if (json::Object *nested = members.getObject(key))
        spoil(model, *nested);
      for (const json::Value &value : wrong) {
        members[key] = value;
        std::vector<std::string> errors = errorsOf(model);
        std::string text;
        raw_string_ostream(text) << *model.getString("model_type") << ", " << key << " = " << value;
        EXPECT_LE(errors.size(), 1u) << text << ": " << testing::PrintToString(errors);
        for (const std::string &error : errors) {
          // 7 may only be wrong beside another key's value.
          EXPECT_TRUE(value == json::Value(7) || StringRef(error).contains(key))
              << text << ": " << error;
          EXPECT_FALSE(StringRef(error).contains(path)) << "the file is named with the line";
        }
        EXPECT_TRUE(value != json::Value("nonsense") || errors.size() == 1) << text;
      }
      members[key] = std::move(good);
    }
  }

  mlir::MLIRContext context;
  SmallString<128> path;
};
} // namespace

TEST_F(ConfigErrors, OneForEachMistake) {
  for (StringRef text : models) {
    json::Object model = *cantFail(json::parse(text)).getAsObject();
    EXPECT_THAT(errorsOf(model), testing::IsEmpty());
    spoil(model, model);
  }
}
