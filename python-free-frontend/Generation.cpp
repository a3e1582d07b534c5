//===- Generation.cpp - how targets begin and end when they are generated -----===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Like transformers' `generate`: the file generation_config.json says all, if there is one beside the
// configuration; without it, the configuration does.
//
//===----------------------------------------------------------------------===//
#include "Model.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace meshwright::frontend;

namespace json = llvm::json;

/// Settings that change what is generated and that the runtime does not follow, with their values that
/// change nothing. Those that flags of the executable replace are not among them.
static ArrayRef<FixedKey> otherSettings() {
  static const FixedKey keys[] = {
      {"min_length", {"0"}, ""},
      {"min_new_tokens", {"0"}, ""},
      {"no_repeat_ngram_size", {"0"}, ""},
      {"encoder_no_repeat_ngram_size", {"0"}, ""},
      {"repetition_penalty", {"1.0"}, ""},
      {"encoder_repetition_penalty", {"1.0"}, ""},
      {"exponential_decay_length_penalty", {}, ""},
      {"begin_suppress_tokens", {"[]"}, ""},
      {"forced_decoder_ids", {"[]"}, ""},
      {"sequence_bias", {}, ""},
      {"num_beam_groups", {"1"}, ""},
      {"diversity_penalty", {"0.0"}, ""},
      {"guidance_scale", {"1.0"}, ""}};
  return keys;
}

static bool isNull(const json::Value *value) {
  return !value || value->kind() == json::Value::Null;
}

/// The tokens that `key` has, one or an array of them; nothing where it is absent or null.
static std::vector<int64_t> tokensOf(Config &config, StringRef key, int64_t vocabulary) {
  const json::Value *value = config.json(key);
  if (isNull(value))
    return {};
  std::vector<int64_t> tokens;
  auto take = [&](const json::Value &one) {
    tokens.push_back(one.getAsInteger().value_or(-1));
    return tokens.back() >= 0 && tokens.back() < vocabulary;
  };
  const json::Array *array = value->getAsArray();
  if (!(array ? llvm::all_of(*array, take) : take(*value)))
    config.error(key) << "\"" << key << "\" must be a token of the vocabulary, below " << vocabulary
                      << ", or an array of some";
  return tokens;
}

/// The tokens that are never generated: those of "suppress_tokens", and of "bad_words_ids" the words of one
/// token. That there are longer words goes to `unread`.
static std::vector<int64_t> suppressedTokens(Config &config, int64_t vocabulary,
                                             SmallVectorImpl<std::string> &unread) {
  std::vector<int64_t> tokens = tokensOf(config, "suppress_tokens", vocabulary);
  const json::Value *words = config.json("bad_words_ids");
  if (isNull(words))
    return tokens;
  bool isLonger = false;
  auto take = [&](const json::Value &word) {
    const json::Array *ids = word.getAsArray();
    if (!ids || ids->empty())
      return false;
    isLonger |= ids->size() > 1;
    if (ids->size() == 1)
      tokens.push_back(ids->front().getAsInteger().value_or(-1));
    return ids->size() > 1 || (tokens.back() >= 0 && tokens.back() < vocabulary);
  };
  const json::Array *list = words->getAsArray();
  if (!list || !llvm::all_of(*list, take))
    config.error("bad_words_ids")
        << "\"bad_words_ids\" must be an array of arrays of tokens of the vocabulary, below "
        << vocabulary;
  if (isLonger)
    unread.push_back("bad_words_ids of several tokens");
  return tokens;
}

/// `isOwnFile`: `config` is a generation_config.json, which says everything itself; a configuration has the
/// defaults of its class.
static FailureOr<std::string> readFrom(Config &config, const Model &m, bool isOwnFile) {
  SmallVector<std::string> unread;
  for (const FixedKey &key : otherSettings()) {
    const json::Value *value = config.json(key.key);
    bool changes = !isNull(value) && llvm::none_of(key.allowed, [&](StringRef text) {
      return llvm::cantFail(json::parse(text)) == *value;
    });
    if (changes)
      unread.push_back(llvm::formatv("{0} {1}", key.key, *value).str());
  }
  json::Object said;
  auto tokens = [&](StringRef key, std::optional<int64_t> otherwise) {
    std::vector<int64_t> found = tokensOf(config, key, m.vocabulary);
    if (!config.json(key) && otherwise && *otherwise < m.vocabulary)
      found = {*otherwise};
    said[key] = json::Array(found);
  };
  std::optional<int64_t> end = isOwnFile ? std::nullopt : m.family.endToken;
  tokens("eos_token_id", end);
  tokens("forced_bos_token_id", {});
  tokens("forced_eos_token_id", m.family.forcesEnd ? end : std::nullopt);
  std::vector<int64_t> start = tokensOf(config, "decoder_start_token_id", m.vocabulary);
  if (start.size() > 1)
    config.error("decoder_start_token_id") << "\"decoder_start_token_id\" must be one token";
  said["decoder_start_token_id"] = start.empty() ? m.startToken : start.front();
  said["suppress_tokens"] = json::Array(suppressedTokens(config, m.vocabulary, unread));
  const json::Value *renormalize = config.json("renormalize_logits");
  said["renormalize_logits"] = renormalize && renormalize->getAsBoolean().value_or(false);
  said["unread"] = llvm::join(unread, ", ");
  if (config.failed())
    return failure();
  return llvm::formatv("{0}", json::Value(std::move(said))).str();
}

FailureOr<std::string> meshwright::frontend::readGeneration(Config &config, StringRef path,
                                                            const Model &model) {
  SmallString<128> file(llvm::sys::path::parent_path(path));
  llvm::sys::path::append(file, "generation_config.json");
  if (!llvm::sys::fs::exists(file))
    return readFrom(config, model, /*isOwnFile=*/false);
  FailureOr<Config> own = Config::read(file, config.location("").getContext());
  if (failed(own))
    return failure();
  return readFrom(*own, model, /*isOwnFile=*/true);
}
