//===- Normalizer.h - what changes text before it is divided -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TOKENIZER_CORE_NORMALIZER_H
#define MESHWRIGHT_TOKENIZER_CORE_NORMALIZER_H

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace meshwright::tokenizer {

class Normalizer {
public:
  virtual ~Normalizer() = default;

  /// `text`, which is UTF-8, as it is to be divided: itself, or what is then in `storage`, which it
  /// must not lie in.
  virtual std::string_view apply(std::string_view text, std::string &storage) const = 0;

  /// Whether the text's lines can be normalized one by one.
  virtual bool mayCutLines() const { return false; }
};

/// That of a tokenizer.json; null for none. An Error naming a kind that is not supported.
std::unique_ptr<Normalizer> makeNormalizer(const nlohmann::json &spec);

} // namespace meshwright::tokenizer

#endif // MESHWRIGHT_TOKENIZER_CORE_NORMALIZER_H
