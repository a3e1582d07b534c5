//===- Cores.h - the cores that threads may run on -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_CORES_H
#define MESHWRIGHT_RUNTIME_COMMON_CORES_H

#include <string>
#include <vector>

namespace meshwright {

/// Hardware threads by the system's numbers, in ascending order.
using CoreList = std::vector<int>;

/// Those that the calling thread may run on: what a launcher, taskset or a control group has left.
CoreList allowedCores();

/// The calling thread, and threads that it starts from now on, run on `cores` alone. False where
/// the system refuses.
bool runOn(const CoreList &cores);

/// As taskset writes them: "0-47,96".
std::string textOf(const CoreList &cores);

/// Whether ranks may be bound to cores: not where MESHWRIGHT_BIND is off.
bool mayBind();

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_CORES_H
