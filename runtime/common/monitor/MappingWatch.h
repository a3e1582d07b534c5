//===- MappingWatch.h - errors of mapped files ----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_MAPPINGWATCH_H
#define MESHWRIGHT_RUNTIME_COMMON_MAPPINGWATCH_H

#include <cstdint>
#include <string>

namespace meshwright {

/// While it lives, touching memory of a mapped file that the system cannot read any more, because the file got shorter
/// or a disk failed, ends all ranks with an error instead of SIGBUS: `before`, the byte's offset in the file, `after`.
class MappingWatch {
public:
  MappingWatch(const void *start, int64_t bytes, std::string before, std::string after);
  ~MappingWatch();
  MappingWatch(const MappingWatch &) = delete;
  MappingWatch &operator=(const MappingWatch &) = delete;

private:
  const char *start;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_MAPPINGWATCH_H
