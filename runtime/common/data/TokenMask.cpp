//===- TokenMask.cpp - which tokens a model is to predict -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/data/TokenMask.h"

#include "meshwright/runtime/Philox.h"

using namespace meshwright;

// Those of dropout are small numbers.
static constexpr uint32_t trainingStream = 0x3A5CEDu, evaluationStream = 0x3A5CEEu;

static constexpr double words = 4294967296.0;

TokenMask::TokenMask(double share, int64_t maskToken, int64_t vocabulary, bool evaluates)
    : below(uint64_t(share * words)), maskToken(int32_t(maskToken)), vocabulary(uint64_t(vocabulary)),
      stream(evaluates ? evaluationStream : trainingStream) {}

std::array<uint32_t, 4> TokenMask::wordsOf(std::array<uint32_t, 2> key, int64_t number) const {
  auto element = uint64_t(number);
  return philox({uint32_t(element), uint32_t(element >> 32), stream, 0}, key);
}

void TokenMask::apply(std::array<uint32_t, 2> key, int64_t sequence, int64_t length,
                      int32_t *tokens, int32_t *targets) const {
  for (int64_t i = 0; i < length; ++i) {
    auto [choice, kind, token, unused] = wordsOf(key, sequence * length + i);
    targets[i] = noTarget;
    if (choice >= below)
      continue;
    targets[i] = tokens[i];
    if (kind < uint32_t(0.8 * words))
      tokens[i] = maskToken;
    else if (kind < uint32_t(0.9 * words))
      tokens[i] = int32_t(token * vocabulary >> 32);
  }
}

int64_t TokenMask::count(std::array<uint32_t, 2> key, int64_t first, int64_t sequences,
                         int64_t length) const {
  int64_t chosen = 0;
  for (int64_t i = first * length; i < (first + sequences) * length; ++i)
    chosen += wordsOf(key, i)[0] < below;
  return chosen;
}
