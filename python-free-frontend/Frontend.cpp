//===- Frontend.cpp - model descriptions to floor 1 --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Frontend.h"

#include "MaximalUpdate.h"
#include "Miniature.h"
#include "Train/Train.h"
#include "meshwright/runtime/NonFinite.h"
#include "meshwright/runtime/Suggestion.h"

#include "mlir/IR/Verifier.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::frontend;
using meshwright::train::TrainDialect;

ArrayRef<StringRef> meshwright::frontend::commonIgnoredKeys() {
  static const StringRef keys[] = {
      // Where the file comes from.
      "_name_or_path",
      "name_or_path",
      "_commit_hash",
      "transformers_version",
      "transformers.js_config",
      "architectures",
      "auto_map",            // the Python code of a family that is known
      "quantization_config", // shapes do not depend on it
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
      {"per_layer_config", {"null", "{}"}, "layers differ"},
      {"partial_rotary_factor", {"1.0", "null"}, "only a part of each head turns"},
      {"rope_interleaved", {"false"}, "rotary positions pair neighbours"},
      {"use_mrope", {"false"}, "positions have several axes"},
      {"sliding_window", {"null"}, "attention sees a window only"},
      {"use_sliding_window", {"false"}, "attention sees a window only"},
      {"attention_bias", {"false"}, "the family's biases are other ones"},
      {"mlp_bias", {"false"}, "the MLP has biases"},
      {"loss_type",
       {"null", "\"ForCausalLM\"", "\"ForCausalLMLoss\""},
       "the loss is not next-token cross-entropy"},
  };
  return keys;
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
  if (int64_t pairs = 2 * options.microbatches; options.dpoBeta && options.batch % pairs) {
    return error() << "--batch " << options.batch << " does not divide into pairs of --loss dpo in --microbatches "
                   << options.microbatches << "; use a batch that is a multiple of " << pairs << ", such as "
                   << llvm::alignTo(options.batch, pairs);
  }
  if (options.dropout && !(*options.dropout >= 0 && *options.dropout < 1))
    return error() << "--dropout must be a probability in [0, 1), found " << *options.dropout;
  return success();
}

ArrayRef<Family> meshwright::frontend::families() {
  static const std::vector<Family> tables = [] {
    std::vector<Family> all = gptFamilies();
    llvm::append_range(all, llamaFamilies());
    llvm::append_range(all, gemmaFamilies());
    llvm::append_range(all, sparseFamilies());
    llvm::append_range(all, derivedSparseFamilies());
    llvm::append_range(all, otherSparseFamilies());
    llvm::append_range(all, multimodalFamilies());
    llvm::append_range(all, remoteCodeFamilies());
    llvm::append_range(all, recurrentFamilies());
    llvm::append_range(all, encoderFamilies());
    llvm::append_range(all, encoderDecoderFamilies());
    return all;
  }();
  return tables;
}

/// A query of an encoder would see the documents after its own, too.
static LogicalResult checkPacked(Config &config, const Family &family,
                                 const ModelOptions &options) {
  if (!options.packed || !family.encoder)
    return success();
  return config.error("model_type")
         << "model_type \"" << family.name
         << "\" is an encoder, and --packed is for decoders, whose attention is causal; leave it out, "
            "and give sequences of one document";
}

/// Encoders predict masked tokens, and decoders do not.
static LogicalResult checkMasked(Config &config, const Family &family,
                                 const ModelOptions &options) {
  auto error = [&] {
    return config.error("model_type") << "model_type \"" << family.name << "\" ";
  };
  const std::optional<MaskedTokens> &masked = options.masked;
  if (family.encoder && !masked)
    return error() << "is an encoder, which is trained to predict masked tokens; give --mlm P, the "
                      "share of tokens that are masked, e.g. 0.15, and --mask-id N, the token that "
                      "masks them";
  if (!masked)
    return success();
  if (!family.encoder) {
    SmallVector<StringRef> encoders;
    for (const Family &known : families())
      if (known.encoder)
        encoders.push_back(known.name);
    return error() << "is a decoder, which predicts the next token; leave out --mlm, which is for "
                   << llvm::join(encoders, ", ");
  }
  if (!(masked->share > 0 && masked->share < 1))
    return error() << "needs --mlm P above 0 and below 1, found " << masked->share
                   << "; 0.15 is usual";
  if (masked->token < 0)
    return error() << "with --mlm needs --mask-id N, the token that masks others";
  return success();
}

/// Sources are for models with an encoder and a decoder.
static LogicalResult checkSource(Config &config, const Family &family, const ModelOptions &options) {
  auto error = [&] {
    return config.error("model_type") << "model_type \"" << family.name << "\" ";
  };
  if (!family.source && options.sourceSequence)
    return error() << "has no encoder that reads a source; leave out --source-seq";
  // A program that reads a part of a sequence takes the positions of its tokens.
  if (family.source && options.packed && !options.tokens)
    return error() << "is an encoder-decoder model, and --packed is for decoders alone; leave it out: "
                      "shorter pairs are padded";
  return success();
}

/// Preferences are of completions, which decoders write.
static LogicalResult checkPreferences(Config &config, const Family &family, const ModelOptions &options) {
  if (!options.dpoBeta)
    return success();
  auto error = [&] {
    return config.error("model_type") << "model_type \"" << family.name << "\" ";
  };
  if (family.encoder || options.masked)
    return error() << "is an encoder, which writes no completions, so --loss dpo cannot compare them; leave it out";
  if (family.source)
    return error() << "is an encoder-decoder model, and --loss dpo is for decoders alone; leave it out";
  if (options.packed)
    return error() << "with --loss dpo reads one completion in each sequence; leave out --packed";
  return success();
}

/// The table for `config` among those of `family`; null if there is none.
static const Family *findTable(Config &config, StringRef family) {
  // Its publisher's code reads Kimi K2 as a DeepSeek-V3.
  if (family == "kimi_k2")
    family = "deepseek_v3";
  for (const Family &known : families())
    if (known.name == family && llvm::all_of(known.present, [&](StringRef key) { return config.has(key); }) &&
        llvm::none_of(known.absent, [&](StringRef key) { return config.has(key); }) &&
        (known.variant.name.empty() ||
         config.flag(known.variant.name, known.variant.otherwise) == known.variant.value))
      return &known;
  return nullptr;
}

/// Makes `config`, of a model of more than text, that of its language model, and returns its table;
/// null without one that is known.
static const Family *takeText(Config &config) {
  std::optional<Config> part = config.object("text_config");
  if (!part)
    return nullptr;
  std::string whole = config.text("model_type", "");
  StringRef text = textFamilyOf(whole);
  // The files of some releases hold other tensors than those of their text parts alone.
  std::string family = part->text("model_type", text);
  if (text == whole)
    family = whole;
  const Family *table = findTable(*part, family);
  if (!table || part->failed())
    return nullptr;
  // The head belongs to the whole, so the whole may say whether it is tied, too.
  if (const Key<bool> &tied = table->tied; config.has("tie_word_embeddings") && !tied.name.empty()) {
    bool whole = config.flag("tie_word_embeddings", tied.otherwise);
    if (!part->has(tied.name)) {
      part->assume(tied.name, whole);
    } else if (bool its = part->flag(tied.name, tied.otherwise); its != whole) {
      config.error("tie_word_embeddings")
          << "\"tie_word_embeddings\" is " << (whole ? "true" : "false") << ", but \"text_config\" says "
          << (its ? "true" : "false") << "; write there what holds";
      return nullptr;
    }
  }
  config = std::move(*part);
  return table;
}

namespace {
/// A configuration, and the table that it is read by.
struct Described {
  Config config;
  const Family *table;
  std::string whole; ///< the family of a model of more than text
};
} // namespace

/// Opens the configuration in the file `path`.
static FailureOr<Described> describe(StringRef path, MLIRContext &context) {
  FailureOr<Config> config = Config::read(path, &context);
  if (failed(config))
    return failure();
  std::string family = config->text("model_type", "");
  if (config->failed())
    return failure();
  const Family *table = takeText(*config);
  std::string whole = table ? family : "";
  if (config->failed())
    return failure();
  if (!table)
    table = findTable(*config, family);
  if (config->failed())
    return failure();
  if (!table) {
    auto diagnostic = config->error("model_type");
    std::optional<Config> part = config->object("text_config");
    std::string text = part ? part->text("model_type", "") : "";
    for (StringRef refused : {StringRef(text), StringRef(family)})
      if (StringRef why = whyRefused(refused); !why.empty()) {
        diagnostic << "model_type \"" << refused << "\" is not supported: " << why
                   << "; 'meshwright models' lists those that are";
        return failure();
      }
    if (family.empty())
      diagnostic << "the file has no \"model_type\"; write one of ";
    else
      diagnostic << "model_type \"" << family << "\" is not known; known are ";
    std::vector<StringRef> names;
    for (const Family &known : families())
      if (names.empty() || names.back() != known.name)
        names.push_back(known.name);
    diagnostic << llvm::join(names, ", ");
    std::vector<std::string> texts(names.begin(), names.end());
    if (std::string near = nearestModel(family, texts); !family.empty() && !near.empty())
      diagnostic << "; \"" << near << "\" is nearest";
    diagnostic << ". Any other model can be written as an .mlir file (see examples/)";
    return failure();
  }
  return Described{std::move(*config), table, whole};
}

FailureOr<Miniature> meshwright::makeMiniature(StringRef path, int64_t multiple, MLIRContext &context) {
  FailureOr<Described> described = describe(path, context);
  if (failed(described))
    return failure();
  llvm::json::Value json = llvm::cantFail(llvm::json::parse(withoutNonFinite(described->config.contents().str())));
  // Of a model of more than text the part that is trained.
  llvm::json::Object *object = json.getAsObject();
  if (llvm::json::Object *text = described->whole.empty() ? nullptr : object->getObject("text_config"))
    object = text;
  auto size = [&](const Key<int64_t> &key) {
    std::optional<int64_t> found = object->getInteger(key.name);
    if (!found && !key.alias.empty())
      found = object->getInteger(key.alias);
    return found.value_or(key.otherwise);
  };
  const Family &table = *described->table;
  Miniature result;
  result.layers = size(table.layers);
  result.fullHidden = size(table.hidden);
  makeSmall(*object, table, multiple);
  result.hidden = size(table.hidden);
  result.positions = size(table.positions);
  llvm::raw_string_ostream(result.config) << llvm::formatv("{0:2}", json) << "\n";
  return result;
}

FailureOr<LeastParts> meshwright::leastParts(StringRef path, int64_t sequence, MLIRContext &context) {
  FailureOr<Described> described = describe(path, context);
  if (failed(described))
    return failure();
  ModelOptions options;
  options.sequence = sequence;
  Model model = readModel(described->config, *described->table, options);
  if (described->config.failed())
    return failure();
  LeastParts least{0, sequence};
  for (size_t i = 0; i < model.kinds.size(); ++i)
    if (!llvm::is_contained(ArrayRef(model.kinds).take_front(i), model.kinds[i]))
      least.layers = int64_t(i) + 1;
  // Two chunks of a recurrence, of which the second is not whole.
  if (int64_t chunk = model.recurrence.chunk)
    least.sequence = std::max(least.sequence, chunk + chunk / 4);
  return least;
}

/// The base model of muP, as deep as `model`, and its module.
static FailureOr<std::pair<Model, OwningOpRef<ModuleOp>>>
readBase(const Model &model, const ModelOptions &options, MLIRContext &context) {
  FailureOr<Described> described = describe(options.mupBase, context);
  if (failed(described))
    return failure();
  Config &config = described->config;
  if (described->table != &model.family) {
    config.error("model_type") << "--mup-base: the base model is of family " << described->table->name
                               << ", the model of family " << model.family.name
                               << (described->table->name == model.family.name ? " in another form" : "")
                               << "; muP compares widths of one architecture";
    return failure();
  }
  // Lengths of sequences change no parameter. An encoder and a decoder are each as deep as they say.
  ModelOptions chosen = options;
  chosen.mupBase.clear();
  chosen.width = chosen.sequence = chosen.sourceSequence = chosen.tokens = 0;
  chosen.layers = model.source ? options.layers : model.layers;
  Model base = readModel(config, model.family, chosen);
  if (config.failed())
    return failure();
  checkBase(config, model, base);
  if (config.failed())
    return failure();
  ImportedModule module = buildModel(base, config.contents(), chosen, context);
  if (failed(module))
    return failure();
  return std::pair<Model, OwningOpRef<ModuleOp>>(std::move(base), std::move(*module));
}

/// Says what the forward of muP multiplies by and config.json does not say.
static void remarkFactors(StringRef path, const Model &scaled, const Model &own, MLIRContext &context) {
  std::string factors;
  auto add = [&](StringRef what, double now, double before) {
    if (now != before)
      llvm::raw_string_ostream(factors) << (factors.empty() ? "" : ", ") << what << " by "
                                        << llvm::format("%.6g", now / before);
  };
  add("embeddings", scaled.embeddingFactor, own.embeddingFactor);
  add("residuals", scaled.residualFactor, own.residualFactor);
  add("scores", scaled.kinds[0].scoreScale, own.kinds[0].scoreScale);
  add("logits", scaled.logitFactor, own.logitFactor);
  if (!factors.empty())
    emitRemark(FileLineColLoc::get(&context, path, 0, 0))
        << "note: --mup-base multiplies " << factors
        << ", which config.json does not say: other programs need these factors to read checkpoints";
}

FailureOr<OwningOpRef<ModuleOp>>
meshwright::importHuggingFace(StringRef path, const ModelOptions &options, MLIRContext &context) {
  context.loadDialect<TrainDialect, func::FuncDialect>();
  FailureOr<Described> described = describe(path, context);
  if (failed(described) || failed(checkOptions(path, options, context)))
    return failure();
  Config &config = described->config;
  const Family &table = *described->table;
  if (!described->whole.empty())
    emitRemark(FileLineColLoc::get(&context, path, 0, 0))
        << "note: '" << path << "' is a " << described->whole << ", a model of more than text: its "
        << "\"text_config\", a " << table.name << ", is what is trained";
  if (failed(checkPacked(config, table, options)) || failed(checkMasked(config, table, options)) ||
      failed(checkSource(config, table, options)) || failed(checkPreferences(config, table, options)))
    return failure();
  ModelOptions chosen = options;
  Model model = readModel(config, table, chosen);
  if (config.failed())
    return failure();
  if (config.has("quantization_config"))
    emitRemark(FileLineColLoc::get(&context, path, 0, 0))
        << "note: '" << path
        << "' has a \"quantization_config\", which is ignored: training is in --precision, and "
           "--init "
           "reads files that are not quantized";
  // A file without its sizes is more likely cut than a model of the family's defaults.
  std::pair<StringRef, int64_t> sizes[] = {{table.vocabulary.name, model.vocabulary}, {table.hidden.name, model.listedHidden}};
  for (auto [key, size] : sizes)
    if (!config.has(key))
      emitRemark(FileLineColLoc::get(&context, path, 0, 0))
          << "note: '" << path << "' has no \"" << key << "\": it is " << size << ", the default of " << table.name << " in transformers";
  OwningOpRef<ModuleOp> base;
  if (!options.mupBase.empty()) {
    auto read = readBase(model, chosen, context);
    if (failed(read))
      return failure();
    Model own = model;
    scaleForward(model, read->first);
    remarkFactors(path, model, own, context);
    base = std::move(read->second);
  }
  // As transformers 5 writes the text part of a larger model, which for Step-3.7 is as it writes a model of text alone.
  // Files in other spellings are read and written by theirs.
  if (!described->whole.empty() && described->whole != "step3p7" && model.base == "model.")
    model.base = "model.language_model.";
  ImportedModule module = buildModel(model, config.contents(), chosen, context);
  if (failed(module))
    return failure();
  if (base && failed(scaleParameters(**module, *base, model, options.mupBase)))
    return failure();
  if (failed(verify(**module)))
    return failure();
  if (model.source && options.tokens) {
    FailureOr<std::string> generation = readGeneration(config, path, model);
    if (failed(generation))
      return failure();
    (**module)->setAttr(train::configAttr, StringAttr::get(&context, *generation));
  }
  return module;
}
