//===- Preferences.cpp - what pairs say of a model's preferences ------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/train/Preferences.h"

#include <algorithm>
#include <cmath>

using namespace meshwright;

void Preferences::add(const float *logProbs, const float *reference, int64_t sequences) {
  for (int64_t i = 0; i + 1 < sequences; i += 2) {
    double chosen = beta * (double(logProbs[i]) - double(reference[i]));
    double rejected = beta * (double(logProbs[i + 1]) - double(reference[i + 1]));
    double margin = chosen - rejected;
    // log(1 + exp(-margin)), which does not overflow.
    lossSum += std::max(-margin, 0.0) + std::log1p(std::exp(-std::abs(margin)));
    chosenSum += chosen;
    rejectedSum += rejected;
    chosenLogProbs += double(logProbs[i]);
    rejectedLogProbs += double(logProbs[i + 1]);
    for (int64_t each : {i, i + 1}) {
      differenceSum += std::abs(double(logProbs[each]) - double(reference[each]));
      sizeSum += std::abs(double(reference[each]));
    }
    preferred += chosen > rejected;
    ++count;
  }
}

Rewards Preferences::rewards() const {
  return {mean(chosenSum),      mean(rejectedSum),    mean(double(preferred)),
          mean(chosenSum - rejectedSum), mean(chosenLogProbs), mean(rejectedLogProbs)};
}
