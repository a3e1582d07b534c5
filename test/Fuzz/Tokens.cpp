//===- Tokens.cpp - any bytes as a file of tokens ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The first byte says what the others are: a whole file, the beginning of the header of a file of `meshwright tokenize` and
// what follows it, with the checksums that it would have been written with, or the same of llm.c's.
//
//===----------------------------------------------------------------------===//
#include "Scratch.h"

#include "common/data/Documents.h"
#include "common/data/TokenFile.h"
#include "common/monitor/Error.h"
#include "meshwright/runtime/TokenShard.h"

#include <algorithm>
#include <cstring>
#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace meshwright;

static constexpr size_t fieldBytes = offsetof(TokenShardHeader, unused), headerBytes = TokenShardHeader::bytes;

/// The file whose header begins with `bytes`.
static std::string withHeader(const std::string &bytes) {
  std::string file = bytes.substr(0, fieldBytes);
  file.resize(headerBytes);
  return file + (bytes.size() > fieldBytes ? bytes.substr(fieldBytes) : "");
}

static std::string sealed(std::string file) {
  TokenShardHeader header;
  std::memcpy(&header, file.data(), sizeof(header));
  header.magic = TokenShardHeader::itsMagic;
  header.version = TokenShardHeader::itsVersion;
  header.checksum = 0;
  std::memcpy(file.data(), &header, sizeof(header));
  uint64_t begin = header.tokens < file.size() && header.documents < file.size() ? header.documentsBegin() : 0;
  std::string summed = file.substr(0, headerBytes);
  if (begin >= headerBytes && begin < file.size())
    summed += file.substr(begin);
  header.checksum = XXH3_64bits(summed.data(), summed.size());
  std::memcpy(file.data(), &header, sizeof(header));
  return file;
}

template <typename Read> static void attempt(Read read) {
  try {
    read();
  } catch (const Error &) {
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const fuzz::Scratch scratch;
  if (size == 0)
    return 0;
  std::string bytes(reinterpret_cast<const char *>(data) + 1, size - 1);
  if (data[0] % 4 == 1)
    bytes = withHeader(bytes);
  else if (data[0] % 4 >= 2)
    bytes = sealed(withHeader(bytes));
  std::string path = scratch.write("tokens.bin", bytes);
  const char *type = data[0] & 16 ? "u8" : data[0] & 32 ? "u32" : "u16";
  attempt([&] {
    TokenFile tokens(path, "--data", type);
    attempt([&] { tokens.checkFormat(257); });
    attempt([&] { tokens.checkTokens(257, 0, 1, 1); });
    attempt([&] { tokens.tokenizer(); });
    constexpr int64_t length = 5;
    int32_t inputs[length], targets[length], positions[length];
    attempt([&] {
      for (int64_t i = 0, count = std::min<int64_t>(tokens.sequences(length), 8); i < count; ++i)
        tokens.read(i, length, 65536, inputs, targets);
    });
    attempt([&] {
      if (tokens.documents() == 0)
        return;
      Documents documents(tokens, "--data");
      documents.check(0, 1);
      for (int64_t i = 0; i < std::min<int64_t>(documents.count(), 8); ++i)
        documents.range(i);
      for (int64_t i = 0, count = std::min<int64_t>(tokens.sequences(length), 8); i < count; ++i)
        documents.apply(i, length, inputs, positions, targets);
    });
    // The same bytes as an index of documents.
    attempt([&] {
      Documents documents(path, "--documents", tokens, 257);
      documents.check(0, 1);
    });
  });
  return 0;
}
