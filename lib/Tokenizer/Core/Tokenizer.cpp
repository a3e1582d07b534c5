//===- Tokenizer.cpp - bytes as tokens, and which tokenizer a file has ---------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Tokenizer/Core/Tokenizer.h"

#include "Tokenizer/Core/Error.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace meshwright::tokenizer {

namespace {
class ByteTokenizer : public Tokenizer {
public:
  int64_t vocabulary() const override { return 256; }
  std::unique_ptr<Encoder> makeEncoder(bool) const override {
    struct Bytes : Encoder {
      void encode(std::string_view text, std::vector<int32_t> &ids, bool) override {
        for (char byte : text)
          ids.push_back(uint8_t(byte));
      }
    };
    return std::make_unique<Bytes>();
  }
  std::string decode(const std::vector<int32_t> &ids) const override {
    std::string text;
    for (int32_t id : ids) {
      if (id < 0 || id > 255)
        fail("there is no byte ", id);
      text += char(id);
    }
    return text;
  }
  std::optional<int32_t> idOf(const std::string &token) const override {
    return token.size() == 1 ? std::optional<int32_t>(uint8_t(token[0])) : std::nullopt;
  }
  size_t cut(std::string_view text, size_t from) const override {
    return std::min(from, text.size());
  }
};
} // namespace

std::unique_ptr<Tokenizer> makeByteTokenizer() { return std::make_unique<ByteTokenizer>(); }

std::unique_ptr<Tokenizer> loadTokenizer(const std::string &path) {
  namespace fs = std::filesystem;
  if (path == "bytes")
    return makeByteTokenizer();
  std::error_code error;
  fs::file_status status = fs::status(path, error);
  if (!fs::exists(status))
    fail("cannot read '", path,
         "': there is no such file; give a tokenizer.json, a SentencePiece "
         "tokenizer.model, or 'bytes'");
  if (fs::is_directory(status)) {
    for (const char *name : {"tokenizer.json", "tokenizer.model"})
      if (fs::is_regular_file(fs::path(path) / name, error))
        return loadTokenizer((fs::path(path) / name).string());
    fail("'", path, "' is a folder without a tokenizer.json or a tokenizer.model");
  }
  if (!fs::is_regular_file(status))
    fail("'", path, "' is a pipe or a device; name a regular file");
  constexpr uintmax_t most = uintmax_t(1) << 30;
  if (uintmax_t size = fs::file_size(path, error); error || size >= most)
    fail("'", path, "' has ", size, " bytes, but tokenizers have less than ", most);
  std::ifstream file(path, std::ios::binary);
  std::string contents((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (file.bad() || contents.empty())
    fail("'", path, contents.empty() ? "' is empty" : "' cannot be read");
  // Models of SentencePiece begin with a field of protocol buffers.
  if (contents[0] == '\n' && contents.size() > 1 && uint8_t(contents[1]) < 0x80 &&
      contents[1] != '{' && contents.find('\0') != contents.npos)
    return makeSentencePieceTokenizer(contents, path);
  return makeJsonTokenizer(contents, path);
}

} // namespace meshwright::tokenizer
