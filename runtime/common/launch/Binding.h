//===- Binding.h - which cores a rank computes on ------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Ranks that have a machine to themselves divide its cores, so that each has cores near each
// other and memory near them: pages are where they are first written to, and a rank's own
// threads, which cannot leave its cores any more, write to its arena first. A rank has all
// cores of its share within the memory that it needs, not one for each thread, so that the
// system may still move threads and has room for those that communicate.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_BINDING_H
#define MESHWRIGHT_RUNTIME_COMMON_BINDING_H

#include "common/launch/Cores.h"

namespace meshwright {

/// A core of the machine.
struct Core {
  CoreList threads; ///< hardware threads
  int node = 0;     ///< the memory (NUMA node) that is nearest
  int package = 0;
};

/// The cores that this machine lets the process use, in hwloc's order, in which neighbours share
/// caches and memory; empty where hwloc is missing, fails or knows nothing.
std::vector<Core> coresOfMachine();

/// What rank `number` of `ranks` with `threads` each gets of `cores`; empty where there is no
/// choice to make.
CoreList shareOf(const std::vector<Core> &cores, int number, int ranks, int threads);

/// The same of this machine, for ranks that may run on `allowed` alone; empty too where
/// somebody else has chosen: a launcher, taskset, OpenMP's variables, MESHWRIGHT_BIND=off.
std::vector<CoreList> sharesOfMachine(const CoreList &allowed, int ranks, int threads);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_BINDING_H
