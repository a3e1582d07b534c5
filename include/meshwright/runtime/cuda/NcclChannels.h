//===- NcclChannels.h - how much of NCCL a communicator may have ------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Each channel takes a multiprocessor while it works, and memory for its buffers. The
// runtime bounds them where something is computed meanwhile, and the plan's allowances are for
// as many.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_CUDA_NCCLCHANNELS_H
#define MESHWRIGHT_RUNTIME_CUDA_NCCLCHANNELS_H

#include <cstdint>

namespace meshwright {

/// Of a group's communicator whose collectives run beside computation: enough for NVLink, and an
/// eighth of a large GPU.
constexpr int64_t ncclGroupChannels = 16;
/// Of others NCCL chooses itself, 32 at most unless NCCL_MAX_CTAS says otherwise.
constexpr int64_t ncclFreeChannels = 32;
/// Of one for messages between two ranks, of which a rank may have many.
constexpr int64_t ncclMessageChannels = 4;

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_CUDA_NCCLCHANNELS_H
