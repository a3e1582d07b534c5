//===- MemorySpace.h - the rows of MemorySpaces.def --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_MEMORYSPACE_H
#define MESHWRIGHT_RUNTIME_MEMORYSPACE_H

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace meshwright {

/// Where a tensor is.
enum class MemorySpace : uint8_t {
#define MW_MEMORY_SPACE(Space, ...) Space,
#include "meshwright/runtime/MemorySpaces.def"
};

inline constexpr MemorySpace memorySpaces[] = {
#define MW_MEMORY_SPACE(Space, ...) MemorySpace::Space,
#include "meshwright/runtime/MemorySpaces.def"
};
/// All but the device's.
inline constexpr MemorySpace offloadSpaces[] = {
#define MW_OFFLOAD_SPACE(Space, ...) MemorySpace::Space,
#include "meshwright/runtime/MemorySpaces.def"
};
static_assert(memorySpaces[0] == MemorySpace::Device &&
              std::size(offloadSpaces) == std::size(memorySpaces) - 1);

/// A T for each memory space.
template <typename T> struct BySpace {
  T values[std::size(memorySpaces)];

  constexpr T &operator[](MemorySpace space) { return values[size_t(space)]; }
  constexpr const T &operator[](MemorySpace space) const { return values[size_t(space)]; }
};

/// The columns of a row that are text or numbers. Those of offload spaces alone are empty for the device.
struct MemorySpaceRow {
  const char *name, *text, *bytes, *live, *memory, *budgetFlag;
  const char *variable, *fetched, *stored, *option;
  bool isMachineMemory;
  int64_t alignment, staging;

  /// Whether kernels may read and write there.
  constexpr bool hasAddresses() const { return staging == 0; }
};
inline constexpr BySpace<MemorySpaceRow> memorySpaceRows = {{
#define MW_MEMORY_SPACE(Space, name, text, bytes, live, memory, budget, budgetFlag)                \
  {#name, text, bytes, live, memory, budgetFlag, "", "", "", "", false, 64, 0},
#define MW_OFFLOAD_SPACE(Space, name, text, bytes, memory, budget, budgetFlag, variable, fetched,  \
                         stored, link, option, isMachineMemory, alignment, staging)                \
  {#name,   text,   bytes,  "",              memory,    budgetFlag, variable, fetched,             \
   stored,  option, isMachineMemory, alignment, staging},
#include "meshwright/runtime/MemorySpaces.def"
}};
constexpr const MemorySpaceRow &spaceRow(MemorySpace space) { return memorySpaceRows[space]; }

constexpr bool isOffload(MemorySpace space) { return space != MemorySpace::Device; }

/// What copies between the arena and memory of another space in one direction, in the order in which
/// copies are started.
struct CopyEngine {
  MemorySpace space;
  bool stores; ///< copies from the arena to `space`

  /// Its number in mw_transfer: 0 from the host, 1 to the host, and so on.
  constexpr int32_t number() const { return 2 * (int32_t(space) - 1) + stores; }
  static constexpr CopyEngine numbered(int32_t number) {
    return {MemorySpace(1 + number / 2), number % 2 == 1};
  }
  /// The plan's key of the bytes that it copies.
  constexpr const char *key() const { return stores ? spaceRow(space).stored : spaceRow(space).fetched; }
  constexpr bool operator==(CopyEngine other) const { return number() == other.number(); }
};
constexpr int32_t copyEngines = 2 * int32_t(std::size(offloadSpaces));

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_MEMORYSPACE_H
