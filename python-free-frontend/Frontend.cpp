//===- Frontend.cpp - model descriptions to floor 1 --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Frontend.h"

#include "Families.h"
#include "Train/Train.h"

#include "mlir/IR/Verifier.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::frontend;
using meshwright::train::TrainDialect;

static const StringRef families[] = {"gpt2", "llama", "mistral", "qwen2", "qwen3"};

ArrayRef<StringRef> meshwright::frontend::commonIgnoredKeys() {
  static const StringRef keys[] = {
      // Where the file comes from.
      "_name_or_path",
      "name_or_path",
      "_commit_hash",
      "transformers_version",
      "transformers.js_config",
      "architectures",
      "unsloth_version",
      "unsloth_fixed",
      // How other programs compute or store the same numbers; ours is --precision.
      "torch_dtype",
      "dtype",
      "use_bfloat16",
      "torchscript",
      "tf_legacy_loss",
      "attn_implementation",
      "_attn_implementation",
      "_attn_implementation_internal",
      "_attn_implementation_autoset",
      "_flash_attn_2_enabled",
      "_experts_implementation_internal",
      "experts_implementation",
      "gradient_checkpointing",
      "chunk_size_feed_forward",
      "low_cpu_mem_usage",
      "fuse_cross_entropy",
      "onnx_export",
      "xla_device",
      // What a call returns beside the loss.
      "return_dict",
      "output_hidden_states",
      "output_attentions",
      "output_past",
      "use_cache",
      "use_return_dict",
      "tie_last_hidden_states",
      "return_dict_in_generate",
      "output_scores",
      // Text generation.
      "max_length",
      "min_length",
      "max_new_tokens",
      "do_sample",
      "early_stopping",
      "num_beams",
      "num_beam_groups",
      "diversity_penalty",
      "temperature",
      "top_k",
      "top_p",
      "min_p",
      "typical_p",
      "repetition_penalty",
      "length_penalty",
      "no_repeat_ngram_size",
      "encoder_no_repeat_ngram_size",
      "encoder_repetition_penalty",
      "bad_words_ids",
      "num_return_sequences",
      "forced_bos_token_id",
      "forced_eos_token_id",
      "remove_invalid_values",
      "exponential_decay_length_penalty",
      "suppress_tokens",
      "begin_suppress_tokens",
      "epsilon_cutoff",
      "eta_cutoff",
      "num_assistant_tokens",
      "num_assistant_tokens_schedule",
      "assistant_confidence_threshold",
      "assistant_lookbehind",
      "target_lookbehind",
      "cache_implementation",
      "generation_config",
      // Special tokens and the tokenizer: training reads token streams.
      "bos_token_id",
      "eos_token_id",
      "sep_token_id",
      "cls_token_id",
      "mask_token_id",
      "unk_token_id",
      "decoder_start_token_id",
      "tokenizer_class",
      "prefix",
      // Heads other than the language model's.
      "id2label",
      "label2id",
      "num_labels",
      "_num_labels",
      "problem_type",
      "finetuning_task",
      "task_specific_params",
      "classifier_dropout",
      "is_decoder",
      "tie_encoder_decoder",
      "cross_attention_hidden_size",
  };
  return keys;
}

ArrayRef<FixedKey> meshwright::frontend::commonFixedKeys() {
  static const FixedKey keys[] = {
      {"is_encoder_decoder", {"false"}, "the model has an encoder"},
      {"add_cross_attention", {"false"}, "layers attend to an encoder"},
      {"pruned_heads", {"{}", "null"}, "layers have lost heads"},
      {"quantization_config", {"null"}, "weights are quantized"},
      {"per_layer_config", {"null", "{}"}, "layers differ"},
      {"auto_map", {"null", "{}"}, "the model is defined by Python code beside the file"},
      {"loss_type",
       {"null", "\"ForCausalLM\"", "\"ForCausalLMLoss\""},
       "the loss is not next-token cross-entropy"},
  };
  return keys;
}

std::string meshwright::frontend::readActivation(Config &config, StringRef key,
                                                 StringRef otherwise) {
  std::string name = config.text(key, otherwise);
  static const StringRef known[] = {"gelu", "gelu_new", "gelu_pytorch_tanh",
                                    "silu", "swish",    "relu"};
  if (!llvm::is_contained(known, name))
    config.error(key) << "\"" << key << "\": activation \"" << name << "\" is not known; "
                      << llvm::join(ArrayRef(known), ", ") << " are";
  return name;
}

void meshwright::frontend::useDefaultSequence(ModelOptions &options, int64_t positions) {
  if (options.sequence == 0)
    options.sequence = std::min<int64_t>(positions, 1024);
}

int64_t meshwright::frontend::readLayers(Config &config, StringRef key, int64_t otherwise,
                                         const ModelOptions &options, int64_t *listed) {
  constexpr int64_t most = 1 << 24;
  int64_t layers = config.size(key, otherwise, most);
  if (listed)
    *listed = layers;
  if (options.layers <= most)
    return options.layers ? options.layers : layers;
  config.error(key) << options.layers << " layers are more than the " << most
                    << " that a model may have";
  return layers;
}

LogicalResult meshwright::frontend::checkRuns(Config &config, int64_t runs, StringRef key) {
  constexpr int64_t most = 1024;
  if (runs <= most)
    return success();
  return config.error(key) << "the layers differ from their neighbours so often that they need "
                           << runs << " functions, more than the " << most
                           << " that are supported; use fewer layers or make them alike";
}

LogicalResult meshwright::frontend::checkSizes(Config &config, const ModelOptions &options,
                                               int64_t vocabulary, int64_t widest, int64_t layers,
                                               int64_t positions, StringRef positionsKey) {
  if (options.sequence > positions) {
    config.error(positionsKey) << "--seq " << options.sequence << " is longer than the "
                               << positions << " positions of the model (" << positionsKey
                               << "); use --seq " << positions << " or less";
    return failure();
  }
  // The largest tensors: stacked weights, the embedding, activations and logits.
  int64_t rows = options.batch / options.microbatches, elements = 0;
  // A program has some dozens of each, whose sum is to fit too.
  constexpr int64_t most = int64_t(1) << 55;
  auto overflows = [&](std::initializer_list<int64_t> sizes) {
    elements = 4;
    return llvm::any_of(sizes, [&](int64_t size) {
      return llvm::MulOverflow(elements, size, elements) || elements > most;
    });
  };
  if (overflows({layers, widest, widest}) || overflows({vocabulary, widest}) ||
      overflows({positions, widest}) ||
      overflows({rows, options.sequence, std::max(vocabulary, widest)}) ||
      overflows({layers, rows, options.sequence, widest})) {
    config.error(positionsKey) << "the model's tensors are too large to number the bytes of all "
                                  "in 64 bits; check its sizes, --batch and --seq";
    return failure();
  }
  return success();
}

static LogicalResult checkOptions(StringRef path, const ModelOptions &options,
                                  MLIRContext &context) {
  auto error = [&]() {
    return emitError(FileLineColLoc::get(&context, path, 0, 0)) << "'" << path << "': ";
  };
  int64_t largest = std::numeric_limits<int32_t>::max();
  for (auto [name, value] : {std::pair<StringRef, int64_t>{"--batch", options.batch},
                             {"--seq", options.sequence},
                             {"--microbatches", options.microbatches}})
    if (value < (name == "--seq" ? 0 : 1) || value > largest)
      return error() << name << " must be from 1 to " << largest << ", found " << value;
  if (int64_t rest = options.batch % options.microbatches) {
    int64_t below = options.batch - rest, above = below + options.microbatches;
    return error() << "--batch " << options.batch << " cannot be divided into --microbatches "
                   << options.microbatches << "; use a batch that is a multiple of it, "
                   << (below ? std::to_string(below) + " or " : "") << above;
  }
  if (options.dropout && !(*options.dropout >= 0 && *options.dropout < 1))
    return error() << "--dropout must be a probability in [0, 1), found " << *options.dropout;
  return success();
}

FailureOr<OwningOpRef<ModuleOp>>
meshwright::importHuggingFace(StringRef path, const ModelOptions &options, MLIRContext &context) {
  context.loadDialect<TrainDialect, func::FuncDialect>();
  FailureOr<Config> config = Config::read(path, &context);
  if (failed(config) || failed(checkOptions(path, options, context)))
    return failure();
  std::string family = config->text("model_type", "");
  if (config->failed())
    return failure();
  if (!llvm::is_contained(families, family)) {
    auto diagnostic = config->error("model_type");
    if (family.empty())
      diagnostic << "the file has no \"model_type\"; write one of ";
    else
      diagnostic << "model_type \"" << family << "\" is not known; known are ";
    return diagnostic << llvm::join(ArrayRef(families), ", ")
                      << ". Any other model can be written as an .mlir file (see examples/)";
  }
  ImportedModule module = family == "gpt2" ? importGPT2(*config, options, context)
                                           : importLlama(*config, family, options, context);
  if (failed(module) || failed(verify(**module)))
    return failure();
  return module;
}
