//===- Process.h - running executables in tests ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TEST_RUNTIME_PROCESS_H
#define MESHWRIGHT_TEST_RUNTIME_PROCESS_H

#include <string>
#include <sys/types.h>
#include <vector>

namespace testing_process {

/// What a finished command left behind.
struct Result {
  int code = -1;      ///< exit code, or 128 + signal
  std::string output; ///< standard output and error
  double seconds = 0;
};

/// A directory that goes away with the object.
class TemporaryDirectory {
public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  std::string path(const std::string &name) const { return directory + "/" + name; }
  const std::string directory;
};

/// A shell command under way.
class Command {
public:
  explicit Command(const std::string &shellText);
  /// Kills what still runs.
  ~Command();
  pid_t pid() const { return child; }
  /// Waits for the end, at most `limit` seconds, then kills it (code 124).
  Result wait(double limit = 60);
  /// What it has written so far.
  std::string output() const;

private:
  TemporaryDirectory scratch;
  pid_t child;
  double begin;
  bool finished = false;
};

Result run(const std::string &shellText, double limit = 60);

std::string readFile(const std::string &path);
void writeFile(const std::string &path, const std::string &content);
/// How often `part` occurs in `text`.
int occurrences(const std::string &text, const std::string &part);

} // namespace testing_process

#endif // MESHWRIGHT_TEST_RUNTIME_PROCESS_H
