//===- SentencePiece.cpp - models of SentencePiece -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Tokenizer/Core/Error.h"
#include "Tokenizer/Core/Tokenizer.h"
#include "Tokenizer/Core/Unicode.h"

#include <algorithm>
#include <sentencepiece_processor.h>

namespace meshwright::tokenizer {

namespace {
class SentencePieceTokenizer : public Tokenizer {
public:
  SentencePieceTokenizer(const std::string &contents, const std::string &path) {
    if (auto status = processor.LoadFromSerializedProto(contents); !status.ok())
      fail("cannot use '", path, "': SentencePiece says: ", status.message());
  }
  int64_t vocabulary() const override { return processor.GetPieceSize(); }
  std::unique_ptr<Encoder> makeEncoder(bool) const override {
    return std::make_unique<ItsEncoder>(processor);
  }
  std::string decode(const std::vector<int32_t> &ids) const override {
    for (int32_t id : ids)
      if (id < 0 || id >= processor.GetPieceSize())
        fail("has no token ", id, ": its ids are from 0 to ", processor.GetPieceSize() - 1);
    std::string text;
    check(processor.Decode(ids, &text));
    return text;
  }
  std::vector<std::string> marksNotFound() const override {
    std::vector<std::string> marks;
    for (int id = 0; id < processor.GetPieceSize(); ++id)
      if (processor.IsControl(id))
        marks.push_back(processor.IdToPiece(id));
    return marks;
  }
  std::optional<int32_t> idOf(const std::string &token) const override {
    int id = processor.PieceToId(token);
    bool isIt = processor.IdToPiece(id) == token; // What is unknown has an id too.
    return isIt ? std::optional<int32_t>(id) : std::nullopt;
  }
  std::vector<int32_t> before() const override {
    return processor.bos_id() < 0 ? std::vector<int32_t>()
                                  : std::vector<int32_t>{processor.bos_id()};
  }
  std::optional<int32_t> endToken() const override {
    return processor.eos_id() < 0 ? std::nullopt : std::optional<int32_t>(processor.eos_id());
  }

private:
  static void check(const sentencepiece::util::Status &status) {
    if (!status.ok())
      fail("SentencePiece says: ", status.message());
  }
  class ItsEncoder : public Encoder {
  public:
    ItsEncoder(const sentencepiece::SentencePieceProcessor &processor) : processor(processor) {}
    void encode(std::string_view text, std::vector<int32_t> &ids, bool) override {
      std::string_view whole = repairUtf8(text, repaired);
      check(processor.Encode(absl::string_view(whole.data(), whole.size()), &result));
      ids.insert(ids.end(), result.begin(), result.end());
    }

  private:
    const sentencepiece::SentencePieceProcessor &processor;
    std::string repaired;
    std::vector<int> result;
  };

  sentencepiece::SentencePieceProcessor processor;
};
} // namespace

std::unique_ptr<Tokenizer> makeSentencePieceTokenizer(const std::string &contents,
                                                      const std::string &path) {
  return std::make_unique<SentencePieceTokenizer>(contents, path);
}

} // namespace meshwright::tokenizer
