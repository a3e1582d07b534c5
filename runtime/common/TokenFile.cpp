//===- TokenFile.cpp - a stream of tokens on disk -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/TokenFile.h"

#include "common/Error.h"

#include <cstring>
#include <vector>

using namespace meshwright;

TokenFile::TokenFile(const std::string &path, const std::string &flag, const std::string &type)
    : file(path, flag), prefix(flag + " " + path + ": "), type(type), width(type == "u8"    ? 1
                                                                            : type == "u16" ? 2
                                                                                            : 4) {
  int32_t magic = 0;
  if (file.size() >= 4)
    std::memcpy(&magic, file.data(), 4);
  if (magic == headerMagic) {
    readHeader();
    return;
  }
  if (file.size() % width != 0)
    fail(prefix, file.size(), " bytes are not a whole number of ", type,
         " tokens: the file is truncated, or --tokens should name another type");
  count = file.size() / width;
}

void TokenFile::readHeader() {
  if (file.size() < headerBytes)
    fail(prefix, "has the magic number of a llm.c file but ", file.size(),
         " bytes, less than its header's ", headerBytes, ": the file is truncated");
  int32_t header[3];
  std::memcpy(header, file.data(), sizeof(header));
  if (header[1] != 1)
    fail(prefix, "its llm.c header has version ", header[1],
         ", but version 1 (u16 tokens) is what is read: convert the file");
  if (type != "u16")
    fail(prefix, "its llm.c header of version 1 says u16 tokens, but --tokens says ", type,
         ": drop --tokens");
  start = headerBytes;
  count = header[2];
  if (count < 0 || file.size() != start + count * width)
    fail(prefix, "its llm.c header announces ", header[2], " tokens, ",
         start + int64_t(header[2]) * width, " bytes with the header, but the file has ",
         file.size(), ": it is truncated or damaged; write it again");
}

int64_t TokenFile::sequences(int64_t length) const {
  int64_t result = count > 0 ? (count - 1) / length : 0;
  if (result == 0)
    fail(prefix, "has ", count, " tokens, but one sequence of ", length, " with its targets needs ",
         length + 1, ": name a longer file, or compile with a smaller --seq");
  return result;
}

void TokenFile::read(int64_t index, int64_t length, int64_t vocabulary, int32_t *inputs,
                     int32_t *targets) const {
  int64_t first = index * length;
  // Not from the mapping, which the file's end may have left.
  std::vector<unsigned char> bytes(size_t((length + 1) * width));
  file.read(start + first * width, bytes.data(), int64_t(bytes.size()));
  for (int64_t i = 0; i <= length; ++i) {
    uint32_t value = 0;
    std::memcpy(&value, bytes.data() + i * width, size_t(width));
    if (value >= vocabulary)
      fail(prefix, "token ", first + i, " (at byte ", start + (first + i) * width, ") is ", value,
           ", but the model's vocabulary has ", vocabulary,
           ": check that the file was made with this model's tokenizer and that --tokens ", type,
           " is right");
    if (i < length)
      inputs[i] = int32_t(value);
    if (i > 0)
      targets[i - 1] = int32_t(value);
  }
}
