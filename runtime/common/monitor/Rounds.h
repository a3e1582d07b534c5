//===- Rounds.h - long work that ranks do apart ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A rank that waits for others ends all of them at the deadline (WaitMonitor.h), so it
// must hear that they get on. Ranks that read or write for long meet after each part of
// the work: the deadline is for a part, and whoever stops is missed then.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_ROUNDS_H
#define MESHWRIGHT_RUNTIME_COMMON_ROUNDS_H

#include "common/communication/RankGroup.h"

namespace meshwright {

class Rounds {
public:
  /// Bytes of work between two meetings.
  static constexpr int64_t part = int64_t(256) << 20;

  /// As many rounds as the rank of `world` needs that has the most work. Collective.
  Rounds(RankGroup &world, int64_t bytes) : world(world) {
    auto mine = int32_t((bytes + part - 1) / part);
    world.allReduce(ElementType::I32, Reduction::Max, &mine, &left, 1);
  }

  /// `bytes` more are done.
  void done(int64_t bytes) {
    for (open += bytes; open >= part && left > 0; open -= part)
      meet();
  }

  /// All is done: waits for the others.
  void finish() {
    while (left > 0)
      meet();
  }

private:
  void meet() {
    --left;
    world.barrier();
  }

  RankGroup &world;
  int32_t left = 0;
  int64_t open = 0;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_ROUNDS_H
