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
/// into this machine's available memory: their arenas where the host computes, and what
/// is kept on the host.
void checkMemory(const Plan &plan, int64_t ranksHere);

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
  /// The memory that the plan keeps on the host; null without any.
  char *onHost() const { return kept; }
  VariableAddresses variables() const { return {host, kept}; }
  template <typename T> T *at(int64_t offset) const { return reinterpret_cast<T *>(host + offset); }

  /// Gives the program's next run the bytes that the host wrote from `begin` to `end`.
  virtual void upload(int64_t begin, int64_t end) = 0;
  /// Gives the host the bytes that the program's last run left there.
  virtual void download(int64_t begin, int64_t end) = 0;
  /// The host does not look at these bytes before it downloads or writes them again.
  virtual void forget(int64_t, int64_t) {}

protected:
  Arena() = default;
  char *host = nullptr, *kept = nullptr;
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
