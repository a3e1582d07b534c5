//===- DataOrder.h - which sequence comes when ----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_DATAORDER_H
#define MESHWRIGHT_RUNTIME_COMMON_DATAORDER_H

#include <cstdint>
#include <vector>

namespace meshwright {

/// The order in which sequences are visited: as they come, again and again; or, shuffled, each epoch
/// in an order that is a function of (seed, epoch). Of a mixture, each source has an order and epochs
/// of its own, and of the first n sequences each source has its share of n, rounded: it is off by less
/// than half the number of sources. All of this is a function of the position, on every mesh, so a
/// run can be resumed anywhere.
class DataOrder {
public:
  /// Sequences `first` to before `first + sequences`.
  struct Source {
    int64_t first = 0, sequences = 0;
    double weight = 1; ///< relative to the others'
    int64_t taken = 0; ///< how many a run has read of it before the mixture began
  };

  DataOrder(int64_t sequences, bool shuffle, uint64_t seed)
      : DataOrder({{0, sequences}}, 0, shuffle, seed) {}
  /// A mixture that begins at position `start`. Each source has a sequence. `groupSize` sequences in a row stay
  /// so, as the two of a pair do; what sources have and had, and where the mixture begins, are multiples of it.
  DataOrder(std::vector<Source> sources, int64_t start, bool shuffle, uint64_t seed, int64_t groupSize = 1);

  /// The sequence at `position`, counted from the run's first step.
  int64_t at(int64_t position) const;
  /// How many sequences of each source a run has read before `position`.
  std::vector<int64_t> taken(int64_t position) const;

private:
  int64_t groupAt(int64_t position) const;

  std::vector<Source> sources; ///< in units of `groupSize`, as is `start`
  std::vector<uint64_t> shares; ///< of each among itself and those after it, in units of 2^-32
  int64_t start, groupSize;
  bool shuffle;
  uint64_t seed;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_DATAORDER_H
