//===- Topology.h - how the GPUs of a machine are linked ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_PIPELINE_TOPOLOGY_TOPOLOGY_H
#define MESHWRIGHT_LIB_PIPELINE_TOPOLOGY_TOPOLOGY_H

#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace meshwright::topology {

/// What two GPUs send each other through. Of these, the last is the slowest.
enum class Path { NVLink, Switch, Switches, HostBridge, Node, System };

struct Link {
  Path path = Path::System;
  int64_t nvlinks = 0;         ///< of Path::NVLink, how many
  double pcieBandwidth = 0;    ///< of other paths, bytes a second of the narrowest; 0: not known

  /// As `nvidia-smi topo -m` writes it: NV18, PIX, PXB, PHB, NODE, SYS.
  std::string str() const;
  bool isSlowerThan(const Link &other) const;
};

/// One machine.
struct Machine {
  int64_t gpus = 0;
  std::vector<Link> links;    ///< of GPUs a and b at a * gpus + b
  int64_t capability = 0;     ///< of the GPUs, 90 of an H100; 0: not known
  int64_t adapters = 0;       ///< of the network
  double adapterMegabits = 0; ///< of all of them a second; 0: not known
  const char *source = "";

  const Link &between(int64_t a, int64_t b) const { return links[a * gpus + b]; }
};

/// GPUs of a machine have numbers of at most this.
inline constexpr int64_t mostGpus = 1024;

/// Reads what `nvidia-smi topo -m` prints. Errors name the line of `file`.
llvm::Expected<Machine> readMatrix(llvm::StringRef text, llvm::StringRef file);

/// Reads a topology that NCCL reads (NCCL_TOPO_FILE) and writes (NCCL_TOPO_DUMP_FILE).
llvm::Expected<Machine> readNcclTopology(llvm::StringRef text, llvm::StringRef file);

} // namespace meshwright::topology

#endif // MESHWRIGHT_LIB_PIPELINE_TOPOLOGY_TOPOLOGY_H
