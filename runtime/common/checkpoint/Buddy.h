//===- Buddy.h - the state after each step in the memory of machines --------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// With --buddy a rank writes its part of the state after each step into a folder in the memory of its machine, where
// it outlives the rank, and a rank of the next machine, its buddy, gets a copy, which outlives the machine. Parts are those
// of sharded checkpoints (Shards.h). The state before is removed once all machines have the new one, so that a whole one is
// there at every moment.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_BUDDY_H
#define MESHWRIGHT_RUNTIME_COMMON_BUDDY_H

#include "common/checkpoint/CheckpointOutput.h"
#include "common/checkpoint/MachineMemory.h"
#include "common/checkpoint/SaveFolder.h"

#include <deque>
#include <memory>
#include <string>

namespace meshwright {

class Buddy {
public:
  /// Takes the folder `path` of each machine for the run that saves in `saved`. `resumed` is the state there from which the run
  /// goes on, or empty; others are removed. Collective.
  Buddy(MwContext &context, const std::string &path, const std::vector<std::string> &saved, const std::string &resumed);
  ~Buddy();

  /// Keeps `state` and all tensors, after every rank has found its values finite. Collective.
  void keep(const VariableAddresses &addresses, const TrainingState &state);
  /// Removes all that is kept. Collective.
  void clear();

  size_t machines() const { return all.ranks.size(); }
  /// The most bytes that a machine has of tensors, while the state after a step is written.
  int64_t mostBytes() const;

private:
  int64_t bytesOn(size_t machine) const;
  void remove(const std::string &name);
  void copyToBuddies(const std::string &partial, const std::vector<CheckpointFile> &files);

  MwContext &context;
  std::string path;
  Machines all;
  std::unique_ptr<SaveFolder> folder; ///< on the leader of each machine
  std::deque<std::string> kept;       ///< names of states, two at most between steps
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_BUDDY_H
