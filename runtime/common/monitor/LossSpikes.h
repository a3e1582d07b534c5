//===- LossSpikes.h - losses that stand out -------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_LOSSSPIKES_H
#define MESHWRIGHT_RUNTIME_COMMON_LOSSSPIKES_H

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <optional>
#include <vector>

namespace meshwright {

/// Compares each loss with those of the steps before it. Of the steps of one spike only the first is told.
class LossSpikes {
public:
  static constexpr size_t window = 128; ///< steps that a loss is compared with
  static constexpr size_t fewest = 32;  ///< before so many nothing is said
  static constexpr double most = 6;     ///< standard deviations that are no spike
  /// A deviation below this share of the mean counts as this share: losses of one batch, read again
  /// and again, hardly vary.
  static constexpr double leastDeviation = 0.01;

  struct Spike {
    double mean = 0, deviations = 0; ///< of the steps before; how many the loss is above
  };

  /// Takes note of a step's loss, which is finite.
  std::optional<Spike> note(double loss) {
    std::optional<Spike> spike;
    if (losses.size() >= fewest) {
      double count = double(losses.size());
      double mean = std::accumulate(losses.begin(), losses.end(), 0.0) / count, squares = 0;
      for (double other : losses)
        squares += (other - mean) * (other - mean);
      double deviation = std::max(std::sqrt(squares / count), leastDeviation * std::abs(mean));
      if (loss > mean + most * deviation) {
        if (!inSpike)
          spike = {mean, (loss - mean) / deviation};
        inSpike = true;
        return spike; // What stands out is no measure for what follows.
      }
    }
    inSpike = false;
    if (losses.size() < window)
      losses.push_back(loss);
    else
      losses[next] = loss;
    next = (next + 1) % window;
    return spike;
  }

private:
  std::vector<double> losses;
  size_t next = 0;
  bool inSpike = false;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_LOSSSPIKES_H
