//===- Shards.h - which part of a checkpoint a rank writes ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// With --save-format sharded each rank writes files of its own, into a folder in place of each file of a merged
// checkpoint: boxes of tensors that it holds, so that nothing is sent. The boxes of all ranks tile each tensor. Where
// several ranks hold the same part, one of them writes it, each of them about as many bytes.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_SHARDS_H
#define MESHWRIGHT_RUNTIME_COMMON_SHARDS_H

#include "common/checkpoint/Gather.h"

#include <cstdint>
#include <string>
#include <vector>

namespace meshwright {

/// The files that `rank` writes of `tensors`: a file has one box of a tensor, further ones are in further files. Rank 0
/// writes at least one, which may be without tensors.
std::vector<std::vector<FileTensor>> shardsOf(const Plan &plan, const std::vector<FileTensor> &tensors, int64_t rank);

/// The name in that folder of file `number` of `count` of `rank`, as PyTorch's HuggingFaceStorageWriter calls it.
std::string shardName(int64_t rank, size_t number, size_t count);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_SHARDS_H
