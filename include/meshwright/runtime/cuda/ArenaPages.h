//===- ArenaPages.h - in what an arena is taken from a GPU ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CUDA_ARENAPAGES_H
#define MESHWRIGHT_RUNTIME_CUDA_ARENAPAGES_H

#include <cstdint>

namespace meshwright {

/// Bytes of a page of a GPU's memory, the granularity of the driver's allocations on all of them
/// so far. The plan has an allowance for the rest of an arena's last page.
constexpr int64_t arenaPageBytes = int64_t(2) << 20;

/// What an arena leaves of its last page.
constexpr int64_t restOfLastPage(int64_t arenaBytes) {
  return (arenaPageBytes - arenaBytes % arenaPageBytes) % arenaPageBytes;
}

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_CUDA_ARENAPAGES_H
