//===- TimeUse.h - where the time of a run goes ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_TIMEUSE_H
#define MESHWRIGHT_RUNTIME_COMMON_TIMEUSE_H

#include <array>
#include <chrono>
#include <string>

namespace meshwright {

/// Adds up the wall-clock time of a run by what it was for. The share of the steps that count is the run's
/// goodput.
class TimeUse {
public:
  using Clock = std::chrono::steady_clock;
  /// Start: from the process's first instruction to the first step. Data: waits for it, before steps.
  /// Lost: steps that changed nothing, or that the run has made again, and the way back.
  enum Kind { Start, Data, Steps, Evaluation, Saving, Lost, Other };

  /// Books the time since the last call, or since the process began.
  void book(Kind kind);
  /// Books the steps since the last checkpoint, whose results the run has dropped, as lost.
  void loseSteps();
  void keepSteps() { unsaved = 0; }

  /// "12.3 s: 1.2 start, 10.0 steps (81.3%), .."
  std::string text() const;

private:
  Clock::time_point last = begin;
  std::array<double, Other + 1> seconds = {};
  double unsaved = 0; ///< of `Steps`, those since the last checkpoint
  static const Clock::time_point begin;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_TIMEUSE_H
