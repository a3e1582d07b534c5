//===- Checksum.cpp - how damage is found ---------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/checkpoint/Checksum.h"

// The library as a header: executables link nothing for it.
#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace meshwright;

const std::string meshwright::noChecksum(32, '0');

static std::string digitsOf(XXH128_hash_t hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  std::string digits;
  for (unsigned char byte : canonical.digest) {
    digits += "0123456789abcdef"[byte >> 4];
    digits += "0123456789abcdef"[byte & 15];
  }
  return digits;
}

std::string meshwright::checksumOf(const void *data, size_t bytes) {
  return digitsOf(XXH3_128bits(data, bytes));
}

struct RunningChecksum::State {
  XXH3_state_t xxh;
};

RunningChecksum::RunningChecksum() : state(std::make_unique<State>()) {
  XXH3_128bits_reset(&state->xxh);
}
RunningChecksum::~RunningChecksum() = default;

void RunningChecksum::add(const void *data, size_t bytes) {
  XXH3_128bits_update(&state->xxh, data, bytes);
}

std::string RunningChecksum::take() {
  std::string digits = digitsOf(XXH3_128bits_digest(&state->xxh));
  XXH3_128bits_reset(&state->xxh);
  return digits;
}

std::string meshwright::seal(std::string &text) {
  std::string checksum = checksumOf(text.data(), text.size());
  text.replace(text.find(noChecksum), noChecksum.size(), checksum);
  return checksum;
}

bool meshwright::isSealed(std::string text, const std::string &checksum) {
  size_t position = text.find(checksum);
  if (checksum.size() != noChecksum.size() || position == std::string::npos)
    return false;
  text.replace(position, checksum.size(), noChecksum);
  return checksumOf(text.data(), text.size()) == checksum;
}
