//===- DataOrder.cpp - which sequence comes when --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/data/DataOrder.h"

#include "meshwright/runtime/Philox.h"

#include <cassert>
#include <cmath>

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

DataOrder::DataOrder(std::vector<Source> given, int64_t start, bool shuffle, uint64_t seed, int64_t groupSize)
    : sources(std::move(given)), shares(sources.size()), start(start / groupSize), groupSize(groupSize),
      shuffle(shuffle), seed(seed) {
  assert(start % groupSize == 0);
  for (Source &source : sources)
    for (int64_t *number : {&source.first, &source.sequences, &source.taken}) {
      assert(*number % groupSize == 0);
      *number /= groupSize;
    }
  double left = 0;
  for (size_t i = sources.size(); i-- > 0;) {
    left += sources[i].weight;
    shares[i] = uint64_t(std::round(sources[i].weight / left * 0x1p32));
  }
}

/// `count` times a share, rounded. It grows with `count` by 0 or 1, because integers do not round twice.
static int64_t part(int64_t count, uint64_t share) {
  return int64_t((static_cast<unsigned __int128>(count) * share + (uint64_t(1) << 31)) >> 32);
}

// The first source takes its share, the second one its share of what is left, and so on; the last one has
// all that is left.
int64_t DataOrder::groupAt(int64_t position) const {
  int64_t count = position - start;
  for (size_t i = 0;; ++i) {
    int64_t before = part(count, shares[i]);
    if (part(count + 1, shares[i]) == before) {
      count -= before;
      continue;
    }
    const Source &source = sources[i];
    int64_t own = source.taken + before, index = own % source.sequences;
    if (shuffle) // Of sources as long as each other, each has an order of its own.
      index = int64_t(permuted(uint64_t(index), uint64_t(source.sequences), seed | uint64_t(i) << 32,
                               uint64_t(own / source.sequences)));
    return source.first + index;
  }
}

int64_t DataOrder::at(int64_t position) const {
  return groupAt(position / groupSize) * groupSize + position % groupSize;
}

std::vector<int64_t> DataOrder::taken(int64_t position) const {
  int64_t count = position / groupSize - start;
  std::vector<int64_t> result;
  for (size_t i = 0; i < sources.size(); ++i) {
    int64_t own = part(count, shares[i]);
    result.push_back((sources[i].taken + own) * groupSize);
    count -= own;
  }
  return result;
}
