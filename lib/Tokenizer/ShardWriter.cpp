//===- ShardWriter.cpp - files of tokens --------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Tokenizer/ShardWriter.h"

#include "Tokenizer/Core/Error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace meshwright::tokenizer {

ShardWriter::ShardWriter(Options given) : options(std::move(given)) {}

ShardWriter::~ShardWriter() {
  // What an error left half written has no name that anybody reads.
  for (auto [each, ending] : {std::pair(file, ".bin"), std::pair(maskFile, ".mask")})
    if (each) {
      fclose(each);
      unlink((pathOf(ending) + ".tmp").c_str());
    }
}

std::string ShardWriter::pathOf(std::string_view ending) const {
  char name[32];
  snprintf(name, sizeof(name), "/tokens-%05d", number);
  return options.folder + name + std::string(ending);
}

void ShardWriter::write(FILE *to, const void *bytes, size_t size) {
  if (size && fwrite(bytes, 1, size, to) != size)
    fail("cannot write '", pathOf(to == file ? ".bin" : ".mask"), "': ", strerror(errno));
}

void ShardWriter::open() {
  auto create = [&](const char *ending) {
    FILE *made = fopen((pathOf(ending) + ".tmp").c_str(), "wb");
    if (!made)
      fail("cannot write '", pathOf(ending), "': ", strerror(errno));
    return made;
  };
  file = create(".bin");
  if (options.mask)
    maskFile = create(".mask");
  header = options.header;
  starts.clear();
  blocks.clear();
  block.clear();
  write(file, &header, sizeof(header)); // Its place; `close` writes it again.
}

void ShardWriter::add(const int32_t *ids, const uint8_t *mask, size_t count,
                      uint64_t textBytes) {
  if (count == 0)
    return;
  if (!file)
    open();
  if (!inDocument)
    starts.push_back(header.tokens);
  inDocument = true;
  header.textBytes += textBytes;
  auto width = size_t(header.tokenBytes);
  while (count > 0) {
    uint64_t inBlock = header.tokens % uint64_t(TokenShardHeader::blockTokens);
    auto part = std::min<size_t>(count, size_t(TokenShardHeader::blockTokens) - inBlock);
    size_t begin = block.size();
    block.resize(begin + part * width);
    for (size_t i = 0; i < part; ++i)
      std::memcpy(block.data() + begin + i * width, &ids[i], width);
    write(file, block.data() + begin, part * width);
    if (maskFile)
      write(maskFile, mask, part);
    header.tokens += part;
    if (header.tokens % uint64_t(TokenShardHeader::blockTokens) == 0) {
      blocks.push_back(XXH3_64bits(block.data(), block.size()));
      block.clear();
    }
    ids += part;
    mask += maskFile ? part : 0;
    count -= part;
  }
}

void ShardWriter::endDocument() {
  if (!inDocument)
    return;
  inDocument = false;
  ++allDocuments;
  if (header.tokens >= options.shardTokens && starts.size() % options.together == 0)
    close();
}

void ShardWriter::close() {
  if (!block.empty())
    blocks.push_back(XXH3_64bits(block.data(), block.size()));
  header.documents = options.documents ? starts.size() : 0;
  starts.resize(header.documents);
  std::string summed(reinterpret_cast<const char *>(&header), sizeof(header));
  summed.append(reinterpret_cast<const char *>(starts.data()), 8 * starts.size());
  summed.append(reinterpret_cast<const char *>(blocks.data()), 8 * blocks.size());
  header.checksum = XXH3_64bits(summed.data(), summed.size());

  constexpr char zeros[8] = {};
  write(file, zeros, header.documentsBegin() - header.tokensEnd());
  write(file, starts.data(), 8 * starts.size());
  write(file, blocks.data(), 8 * blocks.size());
  if (fseek(file, 0, SEEK_SET) != 0)
    fail("cannot write '", pathOf(".bin"), "': ", strerror(errno));
  write(file, &header, sizeof(header));
  // The mask first: whoever sees the tokens finds it beside them.
  for (auto [each, ending] : {std::pair(&maskFile, ".mask"), std::pair(&file, ".bin")}) {
    if (!*each)
      continue;
    bool failed = fflush(*each) != 0 || fsync(fileno(*each)) != 0;
    failed |= fclose(*each) != 0;
    *each = nullptr;
    std::string path = pathOf(ending);
    if (failed || rename((path + ".tmp").c_str(), path.c_str()) != 0)
      fail("cannot write '", path, "': ", strerror(errno));
  }
  allTokens += header.tokens;
  allTextBytes += header.textBytes;
  ++number;
}

void ShardWriter::finish() {
  endDocument();
  if (file)
    close();
}

} // namespace meshwright::tokenizer
