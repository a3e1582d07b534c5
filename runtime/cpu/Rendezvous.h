//===- Rendezvous.h - how ranks find each other by TCP --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Rank 0 listens at the master address; the others call it, and then, with the
// addresses that it hands out, each other: a rank calls those below it and is
// called by those above. All connections are served at the same time, with one
// deadline, which counts anew with each rank that comes; one that is no rank's of
// this job is dropped with a note, and delays nobody. A rank that has been met and
// goes ends the others.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CPU_RENDEZVOUS_H
#define MESHWRIGHT_RUNTIME_CPU_RENDEZVOUS_H

#include "common/monitor/WaitMonitor.h"
#include "cpu/Socket.h"

#include <string>
#include <vector>

namespace meshwright {

struct TcpAddress {
  std::string host;
  int port = 0;
  /// Seconds to wait for the next rank to appear, and after how many to say who is missing.
  double timeout = waitTimeout(), noteAfter = 5;
  /// What all ranks know and strangers do not (MESHWRIGHT_SECRET); empty: none.
  std::string secret = {};
  /// Whether the launcher says that all ranks are on one machine.
  bool oneMachine = false;
  /// The hash of the executable's plan: ranks of other jobs have another.
  std::string plan = {};

  /// MASTER_ADDR and MASTER_PORT; the port after it where torchrun's own store has
  /// taken that one (TORCHELASTIC_USE_AGENT_STORE).
  static TcpAddress fromEnvironment();
};

/// Where a rank finds another whom rank 0 has met at `seen`, if it has met rank 0 at `master`:
/// what rank 0's machine calls itself means another machine elsewhere.
SocketAddress reachable(const SocketAddress &seen, int port, const SocketAddress &master);

/// Whether `master`, which rank 0's machine looks up as `addresses`, names that machine to itself
/// alone (Debian's machines find their own names at 127.0.1.1): others look up an address of which
/// this machine knows nothing.
bool isOtherElsewhere(const TcpAddress &master, const std::vector<SocketAddress> &addresses);

/// The connections of rank `rank` to the others, by rank.
std::vector<Socket> meetRanks(int rank, int processes, const TcpAddress &master);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_CPU_RENDEZVOUS_H
