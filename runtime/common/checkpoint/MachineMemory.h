//===- MachineMemory.h - what machines keep of a run's state in memory ------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// With --buddy each machine has a folder in memory, in which its ranks keep their parts of the state after the last step,
// and copies of the parts of another machine's ranks. The folder is left by processes that end in whatever way. Ranks that
// start bring together what machines have, so that each of them has a whole sharded checkpoint.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_MACHINEMEMORY_H
#define MESHWRIGHT_RUNTIME_COMMON_MACHINEMEMORY_H

#include "common/communication/Communicator.h"

#include <functional>
#include <string>
#include <vector>

namespace meshwright {

/// The machines of a run: ranks are on one if they see the same folder.
struct Machines {
  std::vector<std::vector<int>> ranks; ///< of each machine, ascending; the first one is its leader
  std::vector<int> of;                 ///< the machine of each rank

  int leader(int machine) const { return ranks[size_t(machine)].front(); }
  bool isLeader(int rank) const { return leader(of[size_t(rank)]) == rank; }
  /// The rank of the next machine that has copies of what `rank` keeps; -1 if there is no other machine.
  int buddy(int rank) const;
  /// The ranks in an order in which each can send to its buddy and receive before and after with no more than three waits,
  /// however many machines there are.
  std::vector<int> sendingOrder() const;
};

/// The machines, by what each rank says of its folder (`folderIdentity`).
Machines machinesOf(const std::vector<std::string> &identities);

/// What ranks that see the same `folder` say, and others do not.
std::string folderIdentity(const std::string &folder);

/// Makes `folder`, and refuses one that is not in memory. `flag` names it in errors.
void prepareMemoryFolder(const std::string &folder, const char *flag);

/// The members of `world` as ones that send to each other; an Error where they cannot.
Communicator &peersOf(RankGroup &world);

/// Refuses a `folder` with states that --buddy has not kept, or has for a run that saves in none of the folders `saved`: that run
/// may be started again.
void checkOwner(const std::string &folder, const std::vector<std::string> &saved);
/// Makes the run that saves in `saved` the one whose states are in `folder`.
void writeOwner(const std::string &folder, const std::string &saved);
/// Says that the states in `folder` are nobody's.
void removeOwner(const std::string &folder);

/// The bytes of the state at `resumed` if it is in `folder`, and of the other states there, which a start removes.
struct MemoryTaken {
  int64_t resumed = 0, others = 0;
};
MemoryTaken takenIn(const std::string &folder, const std::string &resumed);

/// Sends the file at `path` to `to`, which receives it as a file of its own.
void sendFile(Communicator &world, const std::string &path, int to);
void receiveFile(Communicator &world, const std::string &path, int from);

/// Completes the newest state of which the machines have all parts together, on each of them, and removes the others, where
/// machines have parts alone. `folder` is empty on ranks that do not resume from memory, which must be all or none; `saved` is
/// where the run saves. `note` gets a sentence that says what has been done. Collective.
void mergeMemory(RankGroup &world, const std::string &folder, const std::string &saved,
                 const std::function<void(const std::string &)> &note);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_MACHINEMEMORY_H
