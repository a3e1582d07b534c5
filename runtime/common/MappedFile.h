//===- MappedFile.h - a file as memory ------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_MAPPEDFILE_H
#define MESHWRIGHT_RUNTIME_COMMON_MAPPEDFILE_H

#include <cstdint>
#include <string>

namespace meshwright {

/// A file mapped for reading. Only the pages that are touched are read.
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

private:
  std::string name;
  const unsigned char *start = nullptr;
  int64_t bytes = 0;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_MAPPEDFILE_H
