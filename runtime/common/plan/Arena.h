//===- Arena.h - the memory of all of a rank's tensors --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_ARENA_H
#define MESHWRIGHT_RUNTIME_COMMON_ARENA_H

#include "common/plan/Plan.h"

#include <cstdint>
#include <memory>

struct MwContext;

namespace meshwright {

/// Memory this process may still take, in bytes: what the machine has available
/// and what its control group allows.
int64_t availableMemory();

/// An Error with the plan's numbers if what `ranksHere` ranks need of the host does not fit
/// into this machine's available memory: their arenas where the host computes, those of
/// offload spaces that are machine memory, and `snapshotBytes` for a copy of the state.
void checkMemory(const Plan &plan, int64_t ranksHere, int64_t snapshotBytes = 0);

/// Memory of an offload space, zeroed at first, until the object ends.
class OffloadMemory {
public:
  virtual ~OffloadMemory() = default;
  /// As the host sees it between runs of programs.
  virtual char *data() const = 0;
  /// Copies between there and machine memory, of the program's run; `stores`: to there. Of each direction one thread copies at
  /// a time.
  virtual void copy(void *to, const void *from, int64_t bytes, bool stores);
  /// The host has read and written what it wants to until the next run of a program.
  virtual void settle() {}
  /// What a user should know of it at the start; empty: nothing.
  virtual std::string note() const { return ""; }
};

/// allocateHost: the allocator of the host's memory, which each target defines; and so on for each offload
/// space, with its staging memory or null.
#define MW_OFFLOAD_SPACE(Space, ...)                                                               \
  std::unique_ptr<OffloadMemory> allocate##Space(const MwContext &context, int64_t bytes, char *staging);
#include "meshwright/runtime/MemorySpaces.def"

/// The memory of all of a rank's tensors, zeroed at first, and what the host sees of
/// it. On the CPU they are the same memory. On a device the host has memory for what
/// outlives a step, the variables, inputs and outputs, with which the arena begins;
/// `upload` and `download` carry parts of it, and what is forgotten takes no memory.
class Arena {
public:
  virtual ~Arena() = default;
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;

  /// The address that the program is called with.
  virtual char *program() const = 0;
  /// The memory that the host reads and writes.
  char *data() const { return host; }
  /// The arena of each memory space as the host sees it; null where the plan has nothing there.
  BySpace<char *> arenas() const;
  /// What the plan has in offload spaces.
  BySpace<OffloadMemory *> offloadMemory() const;
  VariableAddresses variables() const { return arenas(); }
  template <typename T> T *at(int64_t offset) const { return reinterpret_cast<T *>(host + offset); }

  /// Gives the program's next run the bytes that the host wrote from `begin` to `end`.
  virtual void upload(int64_t begin, int64_t end) = 0;
  /// Gives the host the bytes that the program's last run left there.
  virtual void download(int64_t begin, int64_t end) = 0;
  /// The host does not look at these bytes before it downloads or writes them again.
  virtual void forget(int64_t, int64_t) {}
  /// The same of all offload spaces, and what the host has written is there.
  void settle() const;

protected:
  Arena() = default;
  /// Allocates what the plan has in offload spaces.
  void allocateOffloaded(const MwContext &context);

  char *host = nullptr;

private:
  BySpace<std::unique_ptr<OffloadMemory>> offloaded;
};

/// The arena of the rank of `context`.
std::unique_ptr<Arena> makeArena(MwContext &context);

/// Zeroed pages of exactly `bytes` bytes, huge where the system has them. Of sparse ones only
/// some are written at any time, so that there may be more than the machine has memory.
class Pages {
public:
  enum Kind { Whole, Sparse };
  explicit Pages(int64_t bytes, Kind kind = Whole);
  ~Pages();
  Pages(const Pages &) = delete;
  Pages &operator=(const Pages &) = delete;

  char *data() const { return start; }
  /// Gives whole pages between two bytes back to the system; they are zero again.
  void discard(int64_t begin, int64_t end);

private:
  char *start = nullptr;
  int64_t bytes;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_ARENA_H
