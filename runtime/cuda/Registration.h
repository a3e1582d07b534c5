//===- Registration.h - the arena, known to NCCL ------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// NCCL reads and writes memory in place that it knows beforehand, and copies the rest through
// buffers of its own. It knows it best as a window of a communicator: then tensors must lie at
// the same place on all of its ranks, as those of one program do. The ranks of other groups,
// and pairs with messages, tell NCCL of their memory each for itself.
//
// All of it only makes runs faster: what NCCL refuses is left, and a note says so.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CUDA_REGISTRATION_H
#define MESHWRIGHT_RUNTIME_CUDA_REGISTRATION_H

#include "common/train/Context.h"
#include "cuda/ArenaMemory.h"
#include "cuda/Communication.h"

#include <string>
#include <vector>

namespace meshwright::cuda {

class Registration {
public:
  /// Of the arena of the rank of `context`. Collective.
  Registration(MwContext &context, const Communication &communication, const ArenaMemory &memory);
  ~Registration();
  Registration(const Registration &) = delete;
  Registration &operator=(const Registration &) = delete;

  /// How many communicators know the arena, in words; empty where there are none.
  std::string describe() const;

private:
  struct Entry {
    ncclComm_t comm;
    ncclWindow_t window; ///< or null
    void *buffer;        ///< or null
  };

  /// As a window of all ranks of group `number`; false where one of them is refused.
  bool addWindow(MwContext &context, size_t number, ncclComm_t comm, bool may);
  /// By this rank alone.
  void addBuffer(ncclComm_t comm);
  void refuse(const std::string &call, ncclResult_t result);
  void sayRefusals(RankGroup &world) const;

  void *begin;
  size_t bytes;
  int version = 0;
  std::vector<Entry> entries;
  size_t communicators = 0;
  std::string refusal; ///< the first
};

} // namespace meshwright::cuda

#endif // MESHWRIGHT_RUNTIME_CUDA_REGISTRATION_H
