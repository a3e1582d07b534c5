//===- Cores.cpp - the cores that threads may run on ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/launch/Cores.h"

#include "common/monitor/Error.h"

#include <cstdlib>
#include <sched.h>
#include <vector>

using namespace meshwright;

/// More than any machine has.
static constexpr int mostCores = 1 << 14;

namespace {
/// A bit for each core, at first none.
struct Mask {
  // CPU_ALLOC would not say that there is no memory.
  std::vector<cpu_set_t> words = std::vector<cpu_set_t>((CPU_ALLOC_SIZE(mostCores) - 1) / sizeof(cpu_set_t) + 1);
  const size_t bytes = words.size() * sizeof(cpu_set_t);
  cpu_set_t *const set = words.data();
};
} // namespace

CoreList meshwright::allowedCores() {
  Mask mask;
  CoreList cores;
  if (sched_getaffinity(0, mask.bytes, mask.set) != 0)
    return cores;
  for (int core = 0; core < mostCores; ++core)
    if (CPU_ISSET_S(core, mask.bytes, mask.set))
      cores.push_back(core);
  return cores;
}

bool meshwright::runOn(const CoreList &cores) {
  Mask mask;
  for (int core : cores)
    if (core < mostCores)
      CPU_SET_S(core, mask.bytes, mask.set);
  return sched_setaffinity(0, mask.bytes, mask.set) == 0;
}

std::string meshwright::textOf(const CoreList &cores) {
  std::string result;
  for (size_t i = 0; i < cores.size();) {
    size_t end = i + 1;
    while (end < cores.size() && cores[end] == cores[end - 1] + 1)
      ++end;
    result += text(result.empty() ? "" : ",", cores[i]);
    if (end - i > 1)
      result += text("-", cores[end - 1]);
    i = end;
  }
  return result;
}

bool meshwright::mayBind() {
  const char *value = getenv("MESHWRIGHT_BIND");
  if (!value || std::string(value) == "on")
    return true;
  if (std::string(value) != "off")
    fail("MESHWRIGHT_BIND is \"", value, "\": it must be on or off");
  return false;
}
