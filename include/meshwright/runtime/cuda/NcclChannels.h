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

/// Channels of a group whose collectives run beside computation: enough for NVLink, and an eighth
/// of a large GPU.
constexpr int64_t ncclGroupChannels = 16;
/// Channels of other groups, which NCCL chooses: 32 at most unless NCCL_MAX_CTAS says otherwise.
constexpr int64_t ncclFreeChannels = 32;
/// Channels for messages between two ranks; a rank may have many such communicators.
constexpr int64_t ncclMessageChannels = 4;

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_CUDA_NCCLCHANNELS_H
