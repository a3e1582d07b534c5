//===- Rendezvous.h - how ranks with GPUs meet without MPI ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Rank 0 listens at MASTER_ADDR and MASTER_PORT, as torchrun gives them, and every other
// rank keeps one connection to it. Over these ranks compare flags, learn NCCL's id and
// bring checkpoints together on rank 0; what the program sends is NCCL's. There is no
// secret: whoever can connect and knows the plan's hash can take the place of a rank that
// has not come yet, as with PyTorch's store and NCCL's own connections, so the network
// must be trusted.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CUDA_RENDEZVOUS_H
#define MESHWRIGHT_RUNTIME_CUDA_RENDEZVOUS_H

#include "common/launch/Device.h"

#include <string>

namespace meshwright::cuda {

/// Where rank 0 is.
struct MasterAddress {
  std::string host;
  int port = 0;

  /// MASTER_ADDR and MASTER_PORT; the port after it where torchrun's own store has taken that one
  /// (TORCHELASTIC_USE_AGENT_STORE).
  static MasterAddress fromEnvironment();
};

/// What a rank says of itself when it connects, in the byte order of x86-64 and Arm.
struct Hello {
  static constexpr uint64_t expectedMagic = 0x3554454D57534D4D; // Changes with these messages.
  uint64_t magic = expectedMagic;
  uint32_t rank = 0, size = 0;
  char plan[32] = {}; ///< the hash of its executable's plan: other jobs have another
};

/// Meets the other ranks of the executable whose plan has the hash `plan`. Waits are noted in
/// `status`, where WaitMonitor finds them.
Meeting meetAt(const MasterAddress &master, const std::string &plan, int rank, int size,
               RankStatus &status);

/// The same at the address of the environment.
Meeting meetAtMaster(const Plan &plan, int rank, int size, RankStatus &status);

} // namespace meshwright::cuda

#endif // MESHWRIGHT_RUNTIME_CUDA_RENDEZVOUS_H
