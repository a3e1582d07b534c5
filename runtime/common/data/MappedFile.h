//===- MappedFile.h - a file as memory ------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_MAPPEDFILE_H
#define MESHWRIGHT_RUNTIME_COMMON_MAPPEDFILE_H

#include "common/monitor/MappingWatch.h"

#include <cstdint>
#include <optional>
#include <string>

namespace meshwright {

/// A file mapped for reading. Only the pages that are touched are read. If it gets shorter
/// meanwhile, or a disk fails, touching what is gone ends the run with an error that names it.
class MappedFile {
public:
  /// Maps `path`; an Error naming it, and `flag` it came from, if it cannot be.
  MappedFile(const std::string &path, const std::string &flag);
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  /// Whether this process has mapped the file at `path`, under whatever name.
  static bool hasRead(const std::string &path);

  const unsigned char *data() const { return start; }
  int64_t size() const { return bytes; }
  const std::string &path() const { return name; }
  /// Copies `count` bytes from byte `offset`; an Error if they are not there (any more). For
  /// what is read while a run lasts, whose end should not cost the state.
  void read(int64_t offset, void *to, int64_t count) const;
  /// Asks the system to read `count` bytes from byte `offset` into its cache, without waiting for it.
  void readAhead(int64_t offset, int64_t count) const;

private:
  std::string name, prefix; ///< "--data corpus.bin: "
  int file = -1;
  const unsigned char *start = nullptr;
  int64_t bytes = 0;
  std::optional<MappingWatch> watch;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_MAPPEDFILE_H
