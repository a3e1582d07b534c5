//===- Arena.h - the memory of all of a rank's tensors --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_ARENA_H
#define MESHWRIGHT_RUNTIME_COMMON_ARENA_H

#include <cstdint>

namespace meshwright {

struct Plan;

/// Memory this process may still take, in bytes: what the machine has available
/// and what its control group allows.
int64_t availableMemory();

/// An Error with the plan's numbers if `ranksHere` arenas do not fit into this
/// machine's available memory.
void checkMemory(const Plan &plan, int64_t ranksHere);

/// One zeroed allocation of exactly `bytes` bytes, in huge pages where the system
/// has them.
class Arena {
public:
  explicit Arena(int64_t bytes);
  ~Arena();
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;

  char *data() const { return start; }
  template <typename T> T *at(int64_t offset) const {
    return reinterpret_cast<T *>(start + offset);
  }

private:
  char *start = nullptr;
  int64_t bytes;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_ARENA_H
