//===- Checksum.h - how damage is found -----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// XXH3's 128 bits (the package libxxhash-dev), written as 32 hexadecimal digits. They
// find damage, not forgery. A text that is to hold its own checksum is made with
// `noChecksum` in its place; its checksum is that of this text.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_CHECKSUM_H
#define MESHWRIGHT_RUNTIME_COMMON_CHECKSUM_H

#include <cstddef>
#include <memory>
#include <string>

namespace meshwright {

extern const std::string noChecksum; ///< 32 zeros

std::string checksumOf(const void *data, size_t bytes);

/// The same of bytes that come in several parts.
class RunningChecksum {
public:
  RunningChecksum();
  ~RunningChecksum();
  void add(const void *data, size_t bytes);
  /// The checksum of all bytes since the last `take`, or since the beginning.
  std::string take();

private:
  struct State;
  std::unique_ptr<State> state;
};

/// Puts the checksum of `text` where its first `noChecksum` is, and returns it.
std::string seal(std::string &text);

/// Whether `text` is what `seal` made when it returned `checksum`.
bool isSealed(std::string text, const std::string &checksum);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_CHECKSUM_H
