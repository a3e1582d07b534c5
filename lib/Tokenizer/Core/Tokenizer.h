//===- Tokenizer.h - text to tokens and back -----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// This folder depends on the standard library, nlohmann's JSON, utf8proc, PCRE2, xxHash and
// SentencePiece alone, so that executables can link it too.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TOKENIZER_CORE_TOKENIZER_H
#define MESHWRIGHT_TOKENIZER_CORE_TOKENIZER_H

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright::tokenizer {

/// What one thread encodes with.
class Encoder {
public:
  virtual ~Encoder() = default;
  /// Appends the ids of `text`, of which bytes that are no UTF-8 count as U+FFFD. `beginsText`: it
  /// is not the rest of a text that was cut where Tokenizer::cut says.
  virtual void encode(std::string_view text, std::vector<int32_t> &ids, bool beginsText = true) = 0;
};

class Tokenizer {
public:
  virtual ~Tokenizer() = default;

  /// How many ids there are, from 0 on.
  virtual int64_t vocabulary() const = 0;
  /// Tokens in text that are marks, such as <|endoftext|>, are found unless `specialAsText`.
  virtual std::unique_ptr<Encoder> makeEncoder(bool specialAsText = false) const = 0;
  /// The text of tokens, without those that are marks.
  virtual std::string decode(const std::vector<int32_t> &ids) const = 0;
  /// Marks that `makeEncoder` never finds in text, which then has their characters.
  virtual std::vector<std::string> marksNotFound() const { return {}; }
  /// The id of a token by its text in the tokenizer's file.
  virtual std::optional<int32_t> idOf(const std::string &token) const = 0;

  /// What the tokenizer puts before and behind a text for a model that reads it.
  virtual std::vector<int32_t> before() const { return {}; }
  virtual std::vector<int32_t> behind() const { return {}; }
  /// The token that ends a document, if the tokenizer has one and says which.
  virtual std::optional<int32_t> endToken() const { return std::nullopt; }

  /// The first place from `from` on where `text` may be cut and its parts encoded one by one; its
  /// size if there is none.
  virtual size_t cut(std::string_view text, size_t /*from*/) const { return text.size(); }
};

/// The tokenizer in a file, a tokenizer.json or a SentencePiece model, or the one called "bytes".
/// An Error saying why that is none.
std::unique_ptr<Tokenizer> loadTokenizer(const std::string &path);

/// Of the contents of a tokenizer.json, which came from `path`.
std::unique_ptr<Tokenizer> makeJsonTokenizer(const std::string &contents, const std::string &path);
std::unique_ptr<Tokenizer> makeSentencePieceTokenizer(const std::string &contents,
                                                      const std::string &path);
std::unique_ptr<Tokenizer> makeByteTokenizer();

} // namespace meshwright::tokenizer

#endif // MESHWRIGHT_TOKENIZER_CORE_TOKENIZER_H
