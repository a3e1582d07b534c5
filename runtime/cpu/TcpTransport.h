//===- TcpTransport.h - messages by TCP -----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// For ranks that were started with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT,
// without MPI. Rank 0 listens at the master address; the others connect to it, and
// then, with the addresses that it hands out, to each other.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CPU_TCPTRANSPORT_H
#define MESHWRIGHT_RUNTIME_CPU_TCPTRANSPORT_H

#include "cpu/Socket.h"
#include "cpu/Transport.h"

#include <string>

namespace meshwright {

struct TcpAddress {
  std::string host;
  int port = 0;
  /// Seconds to wait for all ranks to appear.
  double timeout = 60;

  /// MASTER_ADDR and MASTER_PORT; the port after it where torchrun's own store has
  /// taken that one (TORCHELASTIC_USE_AGENT_STORE).
  static TcpAddress fromEnvironment();
};

/// Where a rank finds another whom rank 0 has met at `seen`, if it has met rank 0 at `master`:
/// what rank 0's machine calls itself means another machine elsewhere.
SocketAddress reachable(const SocketAddress &seen, int port, const SocketAddress &master);

/// Connects rank `rank` of `processes` to the others.
std::shared_ptr<Transport> openTcpTransport(int rank, int processes, const TcpAddress &master);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_CPU_TCPTRANSPORT_H
