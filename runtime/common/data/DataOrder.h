//===- DataOrder.h - which sequence comes when ----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_DATAORDER_H
#define MESHWRIGHT_RUNTIME_COMMON_DATAORDER_H

#include <cstdint>

namespace meshwright {

/// The order in which a file's sequences are visited: as they come, again and
/// again; or, shuffled, each epoch in an order that is a function of (seed, epoch).
/// It needs no memory and can be entered anywhere, so a run can be resumed.
class DataOrder {
public:
  DataOrder(int64_t sequences, bool shuffle, uint64_t seed)
      : sequences(sequences), shuffle(shuffle), seed(seed) {}

  /// The sequence at `position`, counted from the run's first step.
  int64_t at(int64_t position) const;

private:
  int64_t sequences;
  bool shuffle;
  uint64_t seed;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_DATAORDER_H
