//===- Programs.cpp - what is trained to measure a machine --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Programs.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace meshwright::calibrate;
namespace json = llvm::json;

namespace {
/// What calls depend on: the model's width and what it sees at once.
struct Shape {
  int64_t layers, width, heads, vocabulary, batch, sequence; ///< batch: of a rank
};
} // namespace

static std::string text(json::Object config) {
  return llvm::formatv("{0:2}", json::Value(std::move(config))).str();
}

/// What families of Llama's kind have in common.
static json::Object llamaLike(const char *family, const Shape &shape, int64_t inner,
                              int64_t keyHeads) {
  return json::Object{{"model_type", family},
          {"hidden_size", shape.width},
          {"intermediate_size", inner},
          {"num_hidden_layers", shape.layers},
          {"num_attention_heads", shape.heads},
          {"num_key_value_heads", keyHeads},
          {"vocab_size", shape.vocabulary},
          {"max_position_embeddings", shape.sequence}};
}

static std::string llama(const Shape &shape) {
  json::Object config =
      llamaLike("llama", shape, shape.width * 11 / 4, (shape.heads + 1) / 2);
  config["tie_word_embeddings"] = false;
  return text(std::move(config));
}

static std::string gpt2(const Shape &shape) {
  return text(json::Object{{"model_type", "gpt2"},
                           {"activation_function", shape.sequence > 1024 ? "gelu" : "gelu_new"},
                           {"n_embd", shape.width},
                           {"n_layer", shape.layers},
                           {"n_head", shape.heads},
                           {"vocab_size", shape.vocabulary},
                           {"n_positions", shape.sequence},
                           {"attn_pdrop", 0.0},
                           {"embd_pdrop", 0.0},
                           {"resid_pdrop", 0.0}});
}

static std::string gemma2(const Shape &shape) {
  json::Object config = llamaLike("gemma2", shape, shape.width * 2, shape.heads);
  config["head_dim"] = shape.width / shape.heads;
  return text(std::move(config));
}

static std::string mixtral(const Shape &shape) {
  json::Object config = llamaLike("mixtral", shape, shape.width * 2, shape.heads);
  config["num_local_experts"] = 8;
  config["num_experts_per_tok"] = 2;
  config["tie_word_embeddings"] = false;
  return text(std::move(config));
}

std::vector<Program> meshwright::calibrate::programsFor(int64_t ranks, bool quick) {
  std::vector<Program> programs;
  auto add = [&](std::string (*model)(const Shape &), const Shape &shape, int64_t steps,
                 llvm::ArrayRef<std::string> flags) {
    if (quick && (shape.width > 256 || shape.sequence > 128))
      return;
    Program program{model(shape),
                    {"--seq", std::to_string(shape.sequence), "--batch",
                     std::to_string(shape.batch * ranks)},
                    steps};
    program.flags.insert(program.flags.end(), flags.begin(), flags.end());
    programs.push_back(std::move(program));
  };
  auto mesh = [&](const char *axis) {
    return ranks == 1 ? std::vector<std::string>()
                      : std::vector<std::string>{"--mesh", llvm::formatv("{0}={1}", axis, ranks)};
  };
  auto with = [](std::vector<std::string> flags, std::vector<std::string> more) {
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  };
  std::vector<std::string> data = mesh("data"), sharded = with(data, {"--zero", "3"});
  if (ranks == 1)
    sharded.clear();
  // Small and large, wide and long; by the rank's own batch, so that all ranks are as busy.
  const Shape tiny{2, 64, 2, 512, 2, 64}, small{2, 128, 4, 1024, 2, 128},
      middle{2, 256, 4, 2048, 4, 128}, wide{2, 512, 8, 4096, 2, 256}, large{1, 1024, 16, 8192, 2, 256},
      few{2, 512, 8, 2048, 1, 64}, longer{2, 256, 4, 1024, 1, 1024}, longest{1, 128, 4, 1024, 1, 4096};
  // Functions that kernels of some models spend their time on: dropout's random bits, caps of
  // attention scores and logits, GELU by the error function (see gpt2).
  add(gpt2, middle, 12, with(data, {"--dropout", "0.1"}));
  add(gemma2, middle, 8, data);
  add(llama, tiny, 40, data);
  add(gpt2, tiny, 40, data);
  add(llama, small, 30, sharded);
  add(gpt2, middle, 12, data);
  add(llama, middle, 12, sharded);
  add(gpt2, wide, 6, data);
  add(llama, wide, 6, sharded);
  add(llama, large, 4, data);
  // Few rows beside wide matrices.
  add(llama, few, 20, data);
  add(gpt2, few, 20, with(data, {"--precision", "bf16"}));
  add(mixtral, few, 10, data);
  add(llama, longer, 6, data);
  add(gpt2, longest, 4, data);
  std::vector<std::string> narrow{"--precision", "bf16"};
  add(llama, small, 30, with(data, narrow));
  add(gpt2, middle, 12, with(sharded, narrow));
  add(llama, wide, 6, with(data, narrow));
  add(llama, large, 4, with(sharded, narrow));
  add(gpt2, longer, 6, with(data, narrow));
  add(mixtral, middle, 8, data);
  add(mixtral, wide, 6, with(data, narrow));
  if (ranks > 1) {
    add(mixtral, middle, 8, mesh("expert"));
    add(llama, small, 30, with(mesh("tensor"), {"--sequence-parallel"}));
    add(gpt2, wide, 6, mesh("tensor"));
    Shape stages = middle;
    stages.layers = ranks;
    stages.batch = 2;
    add(llama, stages, 8, with(mesh("pipe"), {"--microbatches", std::to_string(2 * ranks)}));
    add(llama, quick ? middle : longer, 6, mesh("context"));
    for (auto overlap : {Program::On, Program::Off}) {
      add(gpt2, quick ? middle : wide, 6, with(sharded, {"--overlap", overlap == Program::On ? "on" : "off"}));
      programs.back().overlap = overlap;
    }
  }
  return programs;
}
