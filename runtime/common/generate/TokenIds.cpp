//===- TokenIds.cpp - text that is numbers of tokens ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/generate/TokenIds.h"

#include "common/monitor/Error.h"

#include <charconv>
#include <sstream>

using namespace meshwright;

namespace {
class IdEncoder : public tokenizer::Encoder {
public:
  void encode(std::string_view text, std::vector<int32_t> &ids, bool) override {
    std::istringstream words{std::string(text)};
    for (std::string word; words >> word;) {
      int32_t id = -1;
      const char *end = word.data() + word.size();
      auto [stop, error] = std::from_chars(word.data(), end, id);
      if (stop != end || error != std::errc() || id < 0)
        fail("--tokenizer ids: \"", word, "\" is no token's id: give numbers with spaces between them");
      ids.push_back(id);
    }
  }
};

class IdTokenizer : public tokenizer::Tokenizer {
public:
  explicit IdTokenizer(int64_t count) : count(count) {}
  int64_t vocabulary() const override { return count; }
  std::unique_ptr<tokenizer::Encoder> makeEncoder(bool) const override {
    return std::make_unique<IdEncoder>();
  }
  std::string decode(const std::vector<int32_t> &ids) const override {
    std::string text;
    for (int32_t id : ids)
      text += (text.empty() ? "" : " ") + std::to_string(id);
    return text;
  }
  std::optional<int32_t> idOf(const std::string &) const override { return std::nullopt; }

private:
  int64_t count;
};
} // namespace

std::unique_ptr<tokenizer::Tokenizer> meshwright::makeIdTokenizer(int64_t vocabulary) {
  return std::make_unique<IdTokenizer>(vocabulary);
}
