//===- MpiTransport.h - messages by OpenMPI -------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CPU_MPITRANSPORT_H
#define MESHWRIGHT_RUNTIME_CPU_MPITRANSPORT_H

#include "cpu/Transport.h"

namespace meshwright {

/// Loads and starts MPI, which must find `processes` processes. All calls must come
/// from the calling thread, save for abort().
std::shared_ptr<Transport> openMpiTransport(int processes);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_CPU_MPITRANSPORT_H
