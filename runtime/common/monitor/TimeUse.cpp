//===- TimeUse.cpp - where the time of a run goes -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/monitor/TimeUse.h"

#include <cstdio>
#include <numeric>
#include <utility>

using namespace meshwright;

const TimeUse::Clock::time_point TimeUse::begin = Clock::now();

void TimeUse::book(Kind kind) {
  Clock::time_point now = Clock::now();
  double passed = std::chrono::duration<double>(now - last).count();
  seconds[kind] += passed;
  if (kind == Steps)
    unsaved += passed;
  last = now;
}

void TimeUse::loseSteps() {
  seconds[Steps] -= unsaved;
  seconds[Lost] += unsaved;
  unsaved = 0;
}

std::string TimeUse::text() const {
  double all = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  char part[64];
  snprintf(part, sizeof(part), "%.1f s: steps %.1f%%", all, all > 0 ? 100 * seconds[Steps] / all : 0);
  std::string words = part;
  for (auto [name, kind] : {std::pair("start", Start), {"data", Data}, {"evaluation", Evaluation},
                            {"saving", Saving}, {"lost", Lost}, {"other", Other}}) {
    if (seconds[kind] < 0.0005 * all)
      continue;
    snprintf(part, sizeof(part), ", %s %.1f%%", name, 100 * seconds[kind] / all);
    words += part;
  }
  return words;
}
