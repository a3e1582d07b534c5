//===- OutputFile.h - files whose writes are checked ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_OUTPUTFILE_H
#define MESHWRIGHT_RUNTIME_COMMON_OUTPUTFILE_H

#include <cstdint>
#include <string>
#include <string_view>

namespace meshwright {

/// A file written from its beginning. Every failure, a full disk among them, is an
/// Error that names the file and how many bytes had been written.
class OutputFile {
public:
  enum Mode { Truncate, Append };
  explicit OutputFile(std::string path, Mode mode = Truncate);
  ~OutputFile();
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;

  void write(const void *data, int64_t bytes);
  void write(std::string_view text) { write(text.data(), int64_t(text.size())); }
  /// Writes `text` over what was written at byte `offset`.
  void rewrite(int64_t offset, std::string_view text);
  /// Gives the file the name `path`, which it takes from another in one step.
  void rename(const std::string &path);
  /// Hands the written bytes to the disk and waits until they are there.
  void sync();
  /// Closes the file; a write error that only shows now is reported too.
  void close();

private:
  [[noreturn]] void failWriting(int code) const;

  std::string path;
  int file = -1;
  int64_t written = 0;
};

/// Waits until the entries of `directory` are on the disk.
void syncDirectory(const std::string &directory);

/// An Error if a file at `path` could not be written; changes nothing.
void checkWritable(const std::string &path);

/// Makes `directory` and its parents, and tries to write in it; an Error naming
/// `flag` if that cannot be done.
void prepareDirectory(const std::string &directory, const char *flag);

/// An Error naming `what` if the file system of `directory` has not `bytes` free.
void checkSpace(const std::string &directory, int64_t bytes, const std::string &what);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_OUTPUTFILE_H
