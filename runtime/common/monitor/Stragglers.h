//===- Stragglers.h - ranks that compute slower than others ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Ranks wait for each other, so that their steps take equally long and hide which of them is slow. What tells them apart
// is the time of their kernels alone. Ranks with the same program and the same share of attention do the same work, but for
// what data decides (routed tokens, lengths of documents): one whose kernels take longer over many steps is slow itself,
// because of its clock, its cooling, or other processes on its machine.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_STRAGGLERS_H
#define MESHWRIGHT_RUNTIME_COMMON_STRAGGLERS_H

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace meshwright {

class RankGroup;

/// The statistics: medians of each rank's last measured steps, beside those of the ranks that do the same work.
class RankTimes {
public:
  /// A rank is told to be slow if its median is this much that of its fellows, and until it is below `over` of it.
  static constexpr double slow = 1.2, over = 1.1;
  /// How many steps a median is over; of fewer nothing is said.
  static constexpr size_t window = 5;

  /// Ranks with the same number do the same work.
  explicit RankTimes(std::vector<int32_t> work);

  /// Takes the seconds of each rank's kernels in one step. Returns the ranks that have become slow.
  std::vector<size_t> add(const std::vector<float> &seconds);

  /// A rank's median over its window, and the median of those of the other ranks with its work; 0 where it has none.
  double median(size_t rank) const { return medians[rank]; }
  double fellows(size_t rank) const;
  /// The rank with the largest ratio of the two, and this ratio: 1 where no rank has fellows.
  std::pair<size_t, double> slowest() const;

private:
  std::vector<int32_t> work;
  std::vector<std::deque<float>> last;
  std::vector<double> medians;
  std::map<int32_t, std::vector<double>> sorted; ///< the medians of the ranks of each work
  std::vector<bool> told;
};

class Stragglers {
public:
  /// Ranks with the same number `work` do the same work. Collective.
  Stragglers(RankGroup &world, int32_t work);

  /// Takes the seconds of this rank's kernels in a step. Returns what is worth a word, on rank 0. Collective.
  std::vector<std::string> note(double seconds);

  std::pair<size_t, double> slowest() const { return times.slowest(); }

private:
  RankGroup &world;
  std::vector<std::string> hosts;
  RankTimes times;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_STRAGGLERS_H
