//===- TokenFile.cpp - a stream of tokens on disk -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/data/TokenFile.h"

#include "common/monitor/Error.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>
#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace meshwright;

namespace {
/// What llm.c writes for a kind of model (HEADERS_INFO in its dev/data/data_common.py).
struct HeaderKind {
  int32_t magic, version;
  const char *type;
};
} // namespace

static constexpr HeaderKind headerKinds[] = {{20240520, 1, "u16"}, {20240801, 7, "u32"}};

namespace {
struct Format {
  std::string_view magic;
  const char *what, *remedy;
};
} // namespace

/// Files that some would give for tokens, by their first bytes.
static constexpr const char *toText = "write its text as JSONL and make tokens of that with 'meshwright tokenize'";
static constexpr const char *unpackFirst = "unpack it first";
static constexpr Format formats[] = {
    {"PAR1", "a Parquet file", toText},
    {"ARROW1", "an Arrow file", toText},
    {std::string_view("\xff\xff\xff\xff\x10\0\0\0", 8), "an Arrow stream", toText},
    {"SQLite format 3", "a SQLite database", toText},
    {"MMIDIDX", "an index of Megatron-LM", "name the .bin beside it, with --tokens as its data type"},
    {"PK\3\4", "a zip archive, such as numpy's .npz and PyTorch's files are",
     "write the tokens alone, e.g. numpy.asarray(tokens, \"<u2\").tofile(\"tokens.bin\")"},
    {"\x89HDF", "an HDF5 file",
     "write the tokens alone, e.g. numpy.asarray(tokens, \"<u2\").tofile(\"tokens.bin\")"},
    {"\x28\xb5\x2f\xfd", "compressed with zstd", unpackFirst},
    {"\x1f\x8b\x08", "compressed with gzip", unpackFirst},
    {"\xfd" "7zXZ", "compressed with xz", unpackFirst},
    {"BZh91AY&SY", "compressed with bzip2", unpackFirst},
    {"%PDF-", "a PDF", toText},
};

void TokenFile::checkMagic() const {
  std::string_view content(reinterpret_cast<const char *>(file.data()), size_t(file.size()));
  for (const Format &format : formats)
    if (content.substr(0, format.magic.size()) == format.magic)
      fail(prefix, "is ", format.what, ", not tokens: ", format.remedy);
  constexpr std::string_view numpy = "\x93NUMPY";
  if (file.size() >= int64_t(numpy.size()) &&
      std::memcmp(file.data(), numpy.data(), numpy.size()) == 0)
    fail(prefix,
         "is a .npy file of numpy, whose header would be read as tokens: write the tokens "
         "alone, e.g. numpy.load(\"",
         file.path(), "\").astype(\"<u", width, "\").tofile(\"tokens.bin\")");
}

TokenFile::TokenFile(const std::string &path, const std::string &flag, const std::string &type)
    : file(path, flag), prefix(flag + " " + path + ": "), type(type), width(type == "u8"    ? 1
                                                                            : type == "u16" ? 2
                                                                                            : 4) {
  int32_t magic = 0;
  if (file.size() >= 4)
    std::memcpy(&magic, file.data(), 4);
  if (magic == TokenShardHeader::itsMagic) {
    readShard();
    return;
  }
  for (const HeaderKind &kind : headerKinds)
    if (magic == kind.magic) {
      readHeader(kind.version, kind.type);
      return;
    }
  checkMagic();
  if (file.size() % width != 0)
    fail(prefix, file.size(), " bytes are not a whole number of ", type,
         " tokens: the file is truncated, or --tokens should name another type");
  count = file.size() / width;
}

void TokenFile::readHeader(int32_t version, const std::string &itsType) {
  if (file.size() < headerBytes)
    fail(prefix, "has the magic number of a llm.c file but ", file.size(),
         " bytes, less than its header's ", headerBytes, ": the file is truncated");
  int32_t header[3];
  std::memcpy(header, file.data(), sizeof(header));
  if (header[1] != version)
    fail(prefix, "its llm.c header has version ", header[1],
         ", but with its magic number only version ", version, " (", itsType,
         " tokens) is read: convert the file");
  if (type != itsType)
    fail(prefix, "its llm.c header of version ", version, " says ", itsType,
         " tokens, but --tokens says ", type, ": give --tokens ", itsType);
  start = headerBytes;
  count = header[2];
  if (count < 0 || file.size() != start + count * width)
    fail(prefix, "its llm.c header announces ", header[2], " tokens, ",
         start + int64_t(header[2]) * width, " bytes with the header, but the file has ",
         file.size(), ": it is truncated or damaged; write it again");
}

void TokenFile::readShard() {
  constexpr const char *remedy = ": it is truncated or damaged; make it again with 'meshwright tokenize'";
  if (file.size() < TokenShardHeader::bytes)
    fail(prefix, "has the magic number of a file of 'meshwright tokenize' but ", file.size(),
         " bytes, less than its header's ", TokenShardHeader::bytes, remedy);
  TokenShardHeader header;
  std::memcpy(&header, file.data(), sizeof(header));
  if (header.version != TokenShardHeader::itsVersion)
    fail(prefix, "its header has version ", header.version, ", but version ",
         TokenShardHeader::itsVersion, " is read: make it again with this version's 'meshwright tokenize'");
  // No sum of sizes below overflows.
  auto size = uint64_t(file.size());
  bool fits = header.tokens <= size && header.documents <= size &&
              (header.tokenBytes == 1 || header.tokenBytes == 2 || header.tokenBytes == 4);
  if (!fits || header.fileBytes() != size)
    fail(prefix, "its header announces ", header.tokens, " tokens of ", header.tokenBytes, " bytes and ",
         header.documents, " documents, but the file has ", size, " bytes", remedy);
  std::string summed(size_t(TokenShardHeader::bytes), 0);
  TokenShardHeader withoutSum = header;
  withoutSum.checksum = 0;
  std::memcpy(summed.data(), &withoutSum, sizeof(withoutSum));
  summed.append(reinterpret_cast<const char *>(file.data()) + header.documentsBegin(),
                size - header.documentsBegin());
  if (XXH3_64bits(summed.data(), summed.size()) != header.checksum)
    fail(prefix, "its header or its document boundaries do not match their checksum", remedy);
  shard = header;
  width = header.tokenBytes;
  type = text("u", 8 * width);
  start = TokenShardHeader::bytes;
  count = int64_t(header.tokens);
}

bool TokenFile::hasDocuments(const std::string &path) {
  TokenShardHeader header;
  std::ifstream file(path, std::ios::binary);
  return file.read(reinterpret_cast<char *>(&header), sizeof(header)) &&
         header.magic == TokenShardHeader::itsMagic && header.documents > 0;
}

std::optional<int64_t> TokenFile::textBytes() const {
  if (shard)
    return shard->textBytes ? std::optional(int64_t(shard->textBytes)) : std::nullopt;
  return type == "u8" ? std::optional(count) : std::nullopt; // Each byte is a token.
}

std::string TokenFile::tokenizer() const {
  if (!shard || !shard->tokenizer)
    return "";
  std::filesystem::path folder = std::filesystem::path(file.path()).parent_path();
  for (const char *name : {"tokenizer.json", "tokenizer.model"}) {
    std::string path = (folder / name).string();
    std::ifstream stream(path, std::ios::binary);
    std::string contents((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
    if (XXH3_64bits(contents.data(), contents.size()) == shard->tokenizer)
      return path;
  }
  fail(prefix, "the tokenizer that it was made with is not in its folder, so checkpoints cannot include it: "
       "copy it from where 'meshwright tokenize' wrote the file");
}

uint64_t TokenFile::documentStart(int64_t number) const {
  uint64_t value = 0;
  // Not from the mapping, which the file's end may have left.
  file.read(int64_t(shard->documentsBegin()) + number * int64_t(sizeof(value)), &value, sizeof(value));
  return value;
}

uint64_t TokenFile::blockSum(int64_t number) const {
  uint64_t value = 0;
  std::memcpy(&value, file.data() + shard->blocksBegin() + uint64_t(number) * sizeof(value), sizeof(value));
  return value;
}

int64_t TokenFile::sequences(int64_t length, int64_t batch) const {
  int64_t result = count > 0 ? (count - 1) / length : 0;
  if (result == 0)
    fail(prefix, "has ", count, " tokens, but one sequence of ", length, " with its targets needs ",
         length + 1, ": name a longer file, or compile with a smaller --seq");
  if (result < batch)
    fail(prefix, "has ", count, " tokens, ", result, " sequences of ", length, ", but a batch has ",
         batch, " and needs ", batch * length + 1,
         " tokens: name a longer file, or compile with a smaller --batch");
  return result;
}

/// Whether `bytes` are UTF-8 without other control characters than those of text. What is cut
/// off at the end is no matter.
static bool isText(const unsigned char *bytes, int64_t size) {
  for (int64_t i = 0; i < size; ++i) {
    unsigned char c = bytes[i];
    if ((c < ' ' && !strchr("\t\n\r\f", c)) || c == 0x7f || c == 0)
      return false;
    int more = c < 0x80 ? 0 : c >= 0xf0 && c < 0xf5 ? 3 : c >= 0xe0 ? 2 : c >= 0xc2 ? 1 : -1;
    if (more < 0 || c >= 0xf5)
      return false;
    for (; more > 0 && i + 1 < size; --more)
      if ((bytes[++i] & 0xc0) != 0x80)
        return false;
  }
  return true;
}

/// Whether the first integers of `width` bytes are below `limit` and not all zero.
static bool areBelow(const unsigned char *bytes, int64_t size, int64_t width, uint64_t limit) {
  constexpr int64_t least = 32, most = 4096; // Fewer might be so by chance.
  if (size % width != 0 || size / width < least)
    return false;
  bool any = false;
  for (int64_t i = 0; i < std::min(size / width, most); ++i) {
    uint64_t value = 0;
    std::memcpy(&value, bytes + i * width, size_t(width));
    if (value >= limit)
      return false;
    any |= value != 0;
  }
  return any;
}

void TokenFile::checkFormat(int64_t vocabulary) const {
  if (shard)
    return;
  const unsigned char *tokens = file.data() + start;
  int64_t size = count * width;
  constexpr int64_t leastText = 32, mostText = 4096;
  if (width > 1 && size >= leastText && isText(tokens, std::min(size, mostText)))
    fail(prefix, "is ", *tokens == '{' || *tokens == '[' ? "text (JSON, it seems)" : "text",
         ", not ", type,
         " tokens: make tokens of it with 'meshwright tokenize' and the model's tokenizer, or train on its bytes with "
         "--tokens u8");
  for (int64_t wider = 8; wider > width; wider /= 2) {
    // Bytes in pairs are anything; only zeros between them say what they are.
    int64_t limit = width == 1 && wider == 2 ? 256 : vocabulary;
    if (areBelow(tokens, size, wider, uint64_t(limit)))
      fail(prefix, "holds integers of ", wider, " bytes, it seems, every other ", type,
           " being 0 or near it: ",
           wider == 8 ? text("write them as u32, e.g. numpy.fromfile(\"", file.path(),
                             "\", \"<u8\").astype(\"<u4\").tofile(\"tokens.bin\")")
                      : text("give --tokens u", wider * 8));
  }
}

/// The largest of some tokens, at the speed of memory.
template <typename T> static uint32_t largestOf(const unsigned char *bytes, int64_t tokens) {
  T largest = 0;
  for (int64_t i = 0; i < tokens; ++i) {
    T value;
    std::memcpy(&value, bytes + i * int64_t(sizeof(T)), sizeof(T));
    largest = std::max(largest, value);
  }
  return largest;
}

void TokenFile::checkTokens(int64_t vocabulary, int64_t part, int64_t parts, int threads,
                            const std::function<void(int64_t bytes)> &done) const {
  if (!shard && width < 4 && vocabulary >= int64_t(1) << (8 * width))
    return;
  constexpr int64_t block = TokenShardHeader::blockTokens, atOnce = 64;
  int64_t blocks = (count + block - 1) / block, end = blocks * (part + 1) / parts;
  for (int64_t first = blocks * part / parts; first < end; first += atOnce) {
    int64_t last = std::min(end, first + atOnce), bad = last, damaged = last;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(min : bad, damaged)
    for (int64_t b = first; b < last; ++b) {
      const unsigned char *at = file.data() + start + b * block * width;
      int64_t tokens = std::min(block, count - b * block);
      uint32_t largest = width == 1   ? largestOf<uint8_t>(at, tokens)
                         : width == 2 ? largestOf<uint16_t>(at, tokens)
                                      : largestOf<uint32_t>(at, tokens);
      if (largest >= vocabulary)
        bad = std::min(bad, b);
      if (shard && XXH3_64bits(at, size_t(tokens * width)) != blockSum(b))
        damaged = std::min(damaged, b);
    }
    if (damaged < last)
      fail(prefix, "tokens ", damaged * block, " to ", std::min(count, (damaged + 1) * block) - 1,
           " do not match their checksum: the file is damaged; make it again with 'meshwright "
           "tokenize'");
    for (int64_t i = bad * block; bad < last && i < count; ++i)
      if (int64_t value = decode(file.data() + start + i * width); value >= vocabulary)
        failToken(i, value, vocabulary);
    if (done)
      done((std::min(last * block, count) - first * block) * width);
  }
}

bool TokenFile::has(int64_t token, int64_t most) const {
  for (int64_t i = 0; i < std::min(most, count); ++i)
    if (decode(file.data() + start + i * width) == token)
      return true;
  return false;
}

void TokenFile::failToken(int64_t position, int64_t value, int64_t vocabulary) const {
  fail(prefix, "token ", position, " (at byte ", start + position * width, ") is ", value,
       ", but the model's vocabulary has ", vocabulary,
       shard ? text(": the file was made with a tokenizer of ", shard->vocabulary,
                    " tokens; use this model's tokenizer")
             : text(": check that the file was made with this model's tokenizer and that --tokens ", type,
                    " is right"));
}

int64_t TokenFile::decode(const unsigned char *at) const {
  uint32_t value = 0;
  std::memcpy(&value, at, size_t(width));
  return value;
}

void TokenFile::read(int64_t index, int64_t length, int64_t vocabulary, int32_t *inputs,
                     int32_t *targets) const {
  std::vector<int32_t> tokens(size_t(length + 1));
  readTokens(index * length, length + 1, vocabulary, tokens.data());
  std::copy(tokens.begin(), tokens.end() - 1, inputs);
  std::copy(tokens.begin() + 1, tokens.end(), targets);
}

void TokenFile::readTokens(int64_t first, int64_t count, int64_t vocabulary, int32_t *to) const {
  // Not from the mapping, which the file's end may have left.
  std::vector<unsigned char> bytes(size_t(count * width));
  file.read(start + first * width, bytes.data(), int64_t(bytes.size()));
  for (int64_t i = 0; i < count; ++i) {
    int64_t value = decode(bytes.data() + i * width);
    if (value >= vocabulary) // The file may have changed since the start.
      failToken(first + i, value, vocabulary);
    to[i] = int32_t(value);
  }
}
