//===- TcpTransport.h - messages by TCP -----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// For ranks that were started with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT,
// without MPI. How they find each other is in Rendezvous.h, how they know each other
// in Handshake.h; what they send afterwards is neither encrypted nor signed.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CPU_TCPTRANSPORT_H
#define MESHWRIGHT_RUNTIME_CPU_TCPTRANSPORT_H

#include "cpu/Rendezvous.h"
#include "cpu/Transport.h"

namespace meshwright {

/// Connects rank `rank` of `processes` to the others.
std::shared_ptr<Transport> openTcpTransport(int rank, int processes, const TcpAddress &master);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_CPU_TCPTRANSPORT_H
