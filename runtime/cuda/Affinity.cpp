//===- Affinity.cpp - the cores near a GPU ------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cuda/Affinity.h"

#include "common/launch/Cores.h"
#include "common/monitor/Error.h"
#include "cuda/Nvml.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace meshwright::cuda {

/// Empty where NVML does not know them.
static CoreList coresNear(const CUuuid &name) {
  const Nvml *nvml = Nvml::load();
  CoreList cores;
  if (!nvml || !nvml->cpuAffinity || nvml->init() != 0)
    return cores;
  constexpr size_t bits = 8 * sizeof(unsigned long), words = (1 << 14) / bits;
  std::vector<unsigned long> set(words);
  nvmlDevice_t device = nvml->find(name), whole = nullptr;
  // Parts of a GPU (MIG) are where it is.
  if (device && nvml->wholeOfPart && nvml->wholeOfPart(device, &whole) == 0)
    device = whole;
  if (device && nvml->cpuAffinity(device, unsigned(words), set.data()) == 0)
    for (size_t i = 0; i < words * bits; ++i)
      if (set[i / bits] >> i % bits & 1)
        cores.push_back(int(i));
  nvml->shutdown();
  return cores;
}

std::string runNear(const CUuuid &name) {
  CoreList near = mayBind() ? coresNear(name) : CoreList(), allowed = allowedCores(), both;
  if (near.empty() || allowed.empty())
    return "";
  std::set_intersection(near.begin(), near.end(), allowed.begin(), allowed.end(),
                        std::back_inserter(both));
  if (both.empty())
    return text("this rank may run on cores ", textOf(allowed), " alone, and near the GPU are cores ",
                textOf(near));
  if (both == allowed || !runOn(both))
    return "";
  return text("the host's threads on cores ", textOf(both), " near the GPU");
}

} // namespace meshwright::cuda
