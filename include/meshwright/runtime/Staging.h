//===- Staging.h - memory that copies of spaces without addresses go through --===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The host's arena ends with it, page-aligned, so that devices and drives may access it directly. Its bytes are
// in the plan like all others.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_STAGING_H
#define MESHWRIGHT_RUNTIME_STAGING_H

#include "meshwright/runtime/MemorySpace.h"

namespace meshwright {

inline constexpr int64_t stagingAlignment = 4096;

/// Bytes of it where arenas have so many bytes, of which the host's need not be known.
constexpr int64_t stagingBytes(const BySpace<int64_t> &arenas) {
  int64_t bytes = 0;
  for (MemorySpace space : offloadSpaces)
    bytes += arenas[space] > 0 ? spaceRow(space).staging : 0;
  return bytes;
}

/// Where in the host's arena that of a copy engine begins: each has half of its space's.
constexpr int64_t stagingOffset(CopyEngine engine, const BySpace<int64_t> &arenas) {
  int64_t offset = arenas[MemorySpace::Host] - stagingBytes(arenas);
  for (MemorySpace space : offloadSpaces) {
    if (space == engine.space)
      break;
    offset += arenas[space] > 0 ? spaceRow(space).staging : 0;
  }
  return offset + (engine.stores ? spaceRow(engine.space).staging / 2 : 0);
}

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_STAGING_H
