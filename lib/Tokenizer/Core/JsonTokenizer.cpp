//===- JsonTokenizer.cpp - Hugging Face's tokenizer.json -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Tokenizer/Core/AddedTokens.h"
#include "Tokenizer/Core/Bpe.h"
#include "Tokenizer/Core/Normalizer.h"
#include "Tokenizer/Core/PreTokenizer.h"
#include "Tokenizer/Core/Spec.h"
#include "Tokenizer/Core/Tokenizer.h"
#include "Tokenizer/Core/Unicode.h"

#include <algorithm>

namespace meshwright::tokenizer {

static constexpr const char *wordMark = "\xe2\x96\x81"; // SentencePiece's, U+2581

namespace {

class JsonTokenizer : public Tokenizer {
public:
  explicit JsonTokenizer(const Json &spec);

  int64_t vocabulary() const override { return int64_t(texts.size()); }
  std::unique_ptr<Encoder> makeEncoder(bool specialAsText) const override;
  std::string decode(const std::vector<int32_t> &ids) const override;
  std::optional<int32_t> idOf(const std::string &token) const override {
    auto found = ids.find(token);
    return found == ids.end() ? std::nullopt : std::optional(found->second);
  }
  std::vector<int32_t> before() const override { return beforeText; }
  std::vector<int32_t> behind() const override { return behindText; }
  std::optional<int32_t> endToken() const override;
  size_t cut(std::string_view text, size_t from) const override;

private:
  class ItsEncoder;

  void addTokens(const Json &spec);
  void readTemplate(const Json &spec);
  void readDecoder(const Json &spec);

  std::unique_ptr<Normalizer> normalizer;     ///< null: none
  std::unique_ptr<PreTokenizer> preTokenizer; ///< null: none
  bool isByteLevel = false, dividesAtMarks = false, mayCutLines = false;
  std::unique_ptr<BpeModel> model;
  AddedTokens rawTokens, normalizedTokens;
  Vocabulary ids;
  std::vector<std::string> texts; ///< by id
  std::vector<bool> isMark;       ///< by id
  std::vector<std::string> marks; ///< their texts
  std::vector<int32_t> beforeText, behindText;
  std::string cannotDecode; ///< why, if it cannot
  bool decodesWordMarks = false, stripsBlank = false;
};

class JsonTokenizer::ItsEncoder : public Encoder {
public:
  ItsEncoder(const JsonTokenizer &owner, bool specialAsText)
      : owner(owner), specialAsText(specialAsText) {}

  void encode(std::string_view text, std::vector<int32_t> &ids, bool beginsText) override {
    std::string_view whole = repairUtf8(text, repaired);
    auto addToken = [&](int32_t id) { ids.push_back(id); };
    auto inNormalized = [&](std::string_view part, bool first) {
      if (owner.normalizer)
        part = owner.normalizer->apply(part, normalized);
      if (owner.normalizedTokens.empty())
        return encodePart(part, first, ids);
      const char *begin = part.data();
      owner.normalizedTokens.divide(
          part, specialAsText,
          [&](std::string_view piece) { encodePart(piece, first && piece.data() == begin, ids); },
          addToken);
    };
    if (owner.rawTokens.empty())
      return inNormalized(whole, beginsText);
    owner.rawTokens.divide(
        whole, specialAsText,
        [&](std::string_view part) {
          inNormalized(part, beginsText && part.data() == whole.data());
        },
        addToken);
  }

private:
  void encodePart(std::string_view part, bool beginsText, std::vector<int32_t> &ids) {
    if (part.empty())
      return;
    if (!owner.preTokenizer)
      return encodeWord(part, ids);
    pieces.reset(part, beginsText);
    owner.preTokenizer->split(pieces);
    for (std::string_view word : pieces.list)
      encodeWord(word, ids);
  }

  void encodeWord(std::string_view word, std::vector<int32_t> &ids) {
    if (!owner.dividesAtMarks)
      return owner.model->encode(word, cache, ids);
    // Before each word's mark, which may be several for several blanks.
    constexpr size_t size = std::char_traits<char>::length("\xe2\x96\x81");
    for (size_t begin = 0; begin < word.size();) {
      size_t end = begin;
      while (word.compare(end, size, wordMark) == 0)
        end += size;
      end = std::min(word.find(wordMark, end), word.size());
      owner.model->encode(word.substr(begin, end - begin), cache, ids);
      begin = end;
    }
  }

  const JsonTokenizer &owner;
  bool specialAsText;
  BpeModel::Cache cache;
  Pieces pieces;
  std::string repaired, normalized;
};

} // namespace

JsonTokenizer::JsonTokenizer(const Json &spec) {
  if (!spec.is_object() || !spec.contains("model"))
    fail(
        "is no tokenizer.json of Hugging Face's tokenizers, which is an object with a \"model\"; a "
        "vocab.json alone says too little");
  const Json &itsModel = spec["model"];
  if (!itsModel.is_object())
    fail("its model is ", itsModel.dump().substr(0, 80), ", which is no object");
  // Old files have no type; BPE's have merges.
  std::string kind =
      get(itsModel, "type", std::string(itsModel.contains("merges") ? "BPE" : "no type"));
  if (kind != "BPE")
    fail("its model is ", kind, ", which is not supported: BPE is",
         kind == "Unigram"
             ? ", and Unigram from SentencePiece's own file, so give its tokenizer.model"
             : "");
  normalizer = makeNormalizer(spec.value("normalizer", Json()));
  preTokenizer = makePreTokenizer(spec.value("pre_tokenizer", Json()), isByteLevel);
  model = std::make_unique<BpeModel>(itsModel, isByteLevel);
  for (const auto &[text, id] : itsModel["vocab"].items()) {
    ids.emplace(text, id.get<int32_t>());
  }
  addTokens(spec);
  int32_t largest = -1;
  for (const auto &[text, id] : ids)
    largest = std::max(largest, id);
  constexpr int32_t most = 1 << 24; // Models have less than a million.
  if (largest < 0 || largest >= most)
    fail("its largest id is ", largest, ", but ids are from 0 to ", most - 1);
  texts.resize(size_t(largest) + 1);
  isMark.resize(texts.size());
  for (const auto &[text, id] : ids)
    texts[size_t(id)] = text;
  for (const std::string &text : marks)
    isMark[size_t(ids[text])] = true;
  dividesAtMarks = !isByteLevel && !preTokenizer && model->keepsWordsApart(wordMark);
  mayCutLines = preTokenizer && preTokenizer->mayCutLines() &&
                (!normalizer || normalizer->mayCutLines()) && rawTokens.mayCutLines() &&
                normalizedTokens.mayCutLines();
  readTemplate(spec.value("post_processor", Json()));
  readDecoder(spec.value("decoder", Json()));
}

void JsonTokenizer::addTokens(const Json &spec) {
  auto found = spec.find("added_tokens");
  if (found == spec.end() || found->is_null())
    return;
  for (const Json &entry : arrayOf(spec, "added_tokens", "file")) {
    if (!entry.is_object() || !entry.contains("content") || !entry.contains("id"))
      fail("its added token ", entry.dump(), " has no \"content\" and \"id\"");
    AddedToken token;
    token.text = get(entry, "content", std::string());
    token.special = get(entry, "special", false);
    token.normalized = get(entry, "normalized", !token.special);
    token.singleWord = get(entry, "single_word", false);
    token.leftSpace = get(entry, "lstrip", false);
    token.rightSpace = get(entry, "rstrip", false);
    auto id = get<int64_t>(entry, "id", -1);
    auto [place, isNew] = ids.emplace(token.text, int32_t(id));
    if (id < 0 || id > INT32_MAX || place->second != id)
      fail("its added token ", Json(token.text).dump(), " has the id ", id,
           isNew ? ", which is no id"
                 : ", but in the vocab the id " + std::to_string(place->second));
    token.id = int32_t(id);
    if (token.special)
      marks.push_back(token.text);
    if (token.normalized) {
      std::string storage;
      if (normalizer)
        token.text = std::string(normalizer->apply(token.text, storage));
      normalizedTokens.add(token);
    } else {
      rawTokens.add(token);
    }
  }
}

/// What a post-processor adds to one text.
void JsonTokenizer::readTemplate(const Json &spec) {
  if (spec.is_null())
    return;
  std::string type = typeOf(spec, "post-processor");
  auto add = [&](std::vector<int32_t> &to, const std::string &token, const Json &id) {
    if (!id.is_number_integer() || id.get<double>() < 0 || id.get<double>() >= double(texts.size()))
      fail("its post-processor has the token ", Json(token).dump(), " with the id ", id.dump(),
           ", but ids are from 0 to ", texts.size() - 1);
    to.push_back(id.get<int32_t>());
  };
  if (type == "Sequence") {
    for (const Json &step : arrayOf(spec, "processors", "post-processor"))
      readTemplate(step);
  } else if (type == "TemplateProcessing") {
    Json tokens = spec.value("special_tokens", Json::object());
    if (!tokens.is_object())
      fail("its post-processor has the special_tokens ", tokens.dump().substr(0, 80), ", which are no object");
    bool behind = false;
    for (const Json &part : arrayOf(spec, "single", "post-processor")) {
      if (!part.is_object() || !part.contains("SpecialToken")) {
        behind = true;
        continue;
      }
      std::string name = get(part["SpecialToken"], "id", std::string());
      Json token = tokens.value(name, Json::object());
      for (const Json &id : arrayOf(token, "ids", "post-processor's special token"))
        add(behind ? behindText : beforeText, name, id);
    }
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    for (const char *key : {"cls", "sep"}) {
      const Json &pair = arrayOf(spec, key, "post-processor");
      if (pair.size() != 2 || !pair[0].is_string())
        fail("its post-processor has the ", key, " ", pair.dump(),
             ", which is no token and its id");
      add(key[0] == 'c' ? beforeText : behindText, pair[0], pair[1]);
    }
  } else if (type != "ByteLevel") { // That one changes offsets alone.
    fail("its post-processor ", type,
         " is not supported: TemplateProcessing, ByteLevel, "
         "BertProcessing, RobertaProcessing and Sequence are");
  }
}

void JsonTokenizer::readDecoder(const Json &spec) {
  if (isByteLevel)
    return;
  std::string type = spec.is_null() ? "null" : typeOf(spec, "decoder");
  if (type == "Metaspace") {
    decodesWordMarks = true;
    stripsBlank = get(spec, "prepend_scheme", std::string("always")) != "never" &&
                  get(spec, "add_prefix_space", true);
    return;
  }
  if (type != "Sequence") {
    cannotDecode = type;
    return;
  }
  for (const Json &step : arrayOf(spec, "decoders", "decoder")) {
    std::string name = typeOf(step, "decoder");
    if (name == "Replace")
      decodesWordMarks = true;
    else if (name == "Strip")
      stripsBlank = true;
    else if (name != "ByteFallback" && name != "Fuse")
      cannotDecode = name;
  }
}

/// Special tokens that end documents, by the names that models have for them. With several, such as
/// Qwen2's, the first of the list is the one.
std::optional<int32_t> JsonTokenizer::endToken() const {
  if (!behindText.empty())
    return behindText.back();
  for (const char *name : {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<|eos|>",
                           "<\xef\xbd\x9c"
                           "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>",
                           "[EOS]"})
    if (auto id = idOf(name); id && isMark[size_t(*id)])
      return id;
  return std::nullopt;
}

std::unique_ptr<Encoder> JsonTokenizer::makeEncoder(bool specialAsText) const {
  return std::make_unique<ItsEncoder>(*this, specialAsText);
}

std::string JsonTokenizer::decode(const std::vector<int32_t> &given) const {
  if (!cannotDecode.empty())
    fail("its decoder ", cannotDecode,
         " is not supported: ByteLevel, Metaspace and a Sequence of "
         "Replace, ByteFallback, Fuse and Strip are");
  std::string result, bytes;
  for (int32_t id : given) {
    if (id < 0 || size_t(id) >= texts.size())
      fail("has no token ", id, ": its ids are from 0 to ", texts.size() - 1);
    if (isMark[size_t(id)])
      continue;
    const std::string &text = texts[size_t(id)];
    if (isByteLevel) {
      result += bytesOfCharacters(text, bytes) ? bytes : text;
    } else if (unsigned byte = 0; model->hasByteFallback() && text.size() == 6 &&
                                  sscanf(text.c_str(), "<0x%2X>", &byte) == 1) {
      result += char(byte);
    } else {
      for (size_t at = 0; at < text.size();) {
        bool isMarkHere = decodesWordMarks && text.compare(at, 3, wordMark) == 0;
        result += isMarkHere ? ' ' : text[at];
        at += isMarkHere ? 3 : 1;
      }
    }
  }
  if (stripsBlank && !result.empty() && result[0] == ' ')
    result.erase(0, 1);
  return result;
}

size_t JsonTokenizer::cut(std::string_view text, size_t from) const {
  if (!mayCutLines)
    return text.size();
  auto isGraph = [](char c) { return c > ' ' && c < 0x7f; };
  auto isAlnum = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  for (size_t at = from; (at = text.find('\n', at)) != text.npos; ++at)
    if (at > 0 && at + 1 < text.size() && isGraph(text[at - 1]) && isAlnum(text[at + 1]))
      return at + 1;
  return text.size();
}

std::unique_ptr<Tokenizer> makeJsonTokenizer(const std::string &contents, const std::string &path) {
  Json spec = Json::parse(contents, nullptr, false);
  if (spec.is_discarded())
    fail("'", path,
         "' is no JSON: give a tokenizer.json, a SentencePiece tokenizer.model, or 'bytes'");
  try {
    return std::make_unique<JsonTokenizer>(spec);
  } catch (const Error &error) {
    fail("cannot use '", path, "': ", error.what());
  } catch (const Json::exception &error) { // A value of another type than expected.
    fail("cannot use '", path, "': ", error.what());
  }
}

} // namespace meshwright::tokenizer
