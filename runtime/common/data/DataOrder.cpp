//===- DataOrder.cpp - which sequence comes when --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/data/DataOrder.h"

#include "meshwright/runtime/Philox.h"

using namespace meshwright;

// A stream of its own, so that the order is unrelated to weights and dropout.
static constexpr uint32_t shuffleStream = 0x5A0FF1Eu;

/// A permutation of [0, size): a Feistel network over the smallest even number of
/// bits that holds `size`, applied again while the result is outside (Black and
/// Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002). The domain is
/// below 4 * size, so four rounds are expected at most.
static uint64_t permuted(uint64_t index, uint64_t size, uint64_t seed, uint64_t epoch) {
  int half = 1;
  while (half < 32 && (uint64_t(1) << (2 * half)) < size)
    ++half;
  uint64_t mask = (uint64_t(1) << half) - 1;
  do {
    uint64_t left = index >> half, right = index & mask;
    for (uint32_t round = 0; round < 6; ++round) {
      auto words = philox({uint32_t(right), round, uint32_t(epoch), uint32_t(epoch >> 32)},
                          {uint32_t(seed) ^ shuffleStream, uint32_t(seed >> 32)});
      uint64_t next = left ^ (words[0] & mask);
      left = right;
      right = next;
    }
    index = left << half | right;
  } while (index >= size);
  return index;
}

int64_t DataOrder::at(int64_t position) const {
  int64_t epoch = position / sequences, index = position % sequences;
  if (!shuffle)
    return index;
  return int64_t(permuted(uint64_t(index), uint64_t(sequences), seed, uint64_t(epoch)));
}
