//===- Philox.h - counter-based random numbers ----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
// SC 2011). Randomness in Meshwright is a function of (key, stream, global
// index), so it is the same on every mesh and in every recomputation. Shared by
// the runtime and the interpreter; generated code repeats it in IR.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_PHILOX_H
#define MESHWRIGHT_RUNTIME_PHILOX_H

#include <array>
#include <cstdint>

namespace meshwright {

/// The four output words for a counter and a key.
inline std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter,
                                      std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = uint64_t(0xD2511F53u) * counter[0];
    uint64_t p1 = uint64_t(0xCD9E8D57u) * counter[2];
    counter = {uint32_t(p1 >> 32) ^ counter[1] ^ key[0], uint32_t(p1),
               uint32_t(p0 >> 32) ^ counter[3] ^ key[1], uint32_t(p0)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

/// The 32 random bits of element `index` in stream `stream`.
inline uint32_t randomBits(std::array<uint32_t, 2> key, uint32_t stream, uint64_t index) {
  return philox({uint32_t(index), uint32_t(index >> 32), stream, 0}, key)[0];
}

/// The key of iteration `index` of a repeated body, from the key outside it.
inline std::array<uint32_t, 2> foldIn(std::array<uint32_t, 2> key, uint32_t index) {
  auto words = philox({index, 0, 0xF01Du, 1}, key);
  return {words[0], words[1]};
}

/// Whether dropout with probability `rate` keeps the element with these bits.
inline bool keeps(uint32_t bits, float rate) {
  return bits >= uint32_t(double(rate) * 4294967296.0);
}

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_PHILOX_H
