//===- OutputFile.cpp - files whose writes are checked --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/checkpoint/OutputFile.h"

#include "common/data/MappedFile.h"
#include "common/monitor/Error.h"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/statvfs.h>
#include <unistd.h>

using namespace meshwright;

[[noreturn]] static void failOpening(const std::string &path, int code) {
  fail("cannot write ", path, ": ", errnoText(code),
       ": name a file in a directory that exists and that you may write to");
}

/// What the command line does not name, such as the files that an index of weights lists, is
/// not overwritten either.
static void refuseInput(const std::string &path) {
  if (MappedFile::hasRead(path))
    fail("cannot write ", path, ": this run reads it: name another file");
}

OutputFile::OutputFile(std::string filePath, Mode mode) : path(std::move(filePath)) {
  refuseInput(path);
  file = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (mode == Append ? O_APPEND : O_TRUNC),
              0666);
  if (file < 0)
    failOpening(path, errno);
}

OutputFile::~OutputFile() {
  if (file >= 0)
    ::close(file);
}

void OutputFile::failWriting(int code) const {
  const char *remedy = code == ENOSPC || code == EDQUOT || code == EFBIG
                           ? ": free space there or name another path"
                           : ": check the device and its permissions";
  fail("cannot write ", path, " after ", grouped(uint64_t(written)), " bytes: ", errnoText(code),
       remedy);
}

void OutputFile::write(const void *data, int64_t bytes) {
  const char *next = static_cast<const char *>(data);
  while (bytes > 0) {
    ssize_t count = ::write(file, next, size_t(bytes));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      failWriting(errno);
    next += count;
    bytes -= count;
    written += count;
  }
}

void OutputFile::rewrite(int64_t offset, std::string_view text) {
  while (!text.empty()) {
    ssize_t count = pwrite(file, text.data(), text.size(), offset);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      failWriting(errno);
    text.remove_prefix(size_t(count));
    offset += count;
  }
}

void OutputFile::rename(const std::string &newPath) {
  refuseInput(newPath);
  if (::rename(path.c_str(), newPath.c_str()) != 0)
    failOpening(newPath, errno);
  path = newPath;
}

void OutputFile::sync() {
  // Devices and pipes have nothing to wait for and answer EINVAL.
  if (fsync(file) != 0 && errno != EINVAL)
    failWriting(errno);
}

void OutputFile::close() {
  int closing = file;
  file = -1;
  if (::close(closing) != 0)
    failWriting(errno);
}

void meshwright::syncDirectory(const std::string &directory) {
  int file = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0)
    fail("cannot open the directory ", directory, ": ", errnoText(errno));
  int result = fsync(file), code = errno;
  ::close(file);
  if (result != 0 && code != EINVAL)
    fail("cannot write the directory ", directory, ": ", errnoText(code),
         ": check the device it is on");
}

void meshwright::checkWritable(const std::string &path) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status))
    failOpening(path, EISDIR);
  if (fs::exists(status)) {
    if (access(path.c_str(), W_OK) != 0)
      failOpening(path, errno);
    return;
  }
  std::string directory = fs::path(path).parent_path();
  if (access(directory.empty() ? "." : (directory + "/.").c_str(), W_OK | X_OK) != 0)
    failOpening(path, errno);
}

void meshwright::prepareDirectory(const std::string &directory, const char *flag) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  // create_directories reports an existing link to a directory as success, and
  // anything else in the way as an error.
  if (error)
    fail(flag, " ", directory, ": cannot make the directory: ", error.message(),
         ": name a path that you may write to");
  std::string probe = directory + "/.write-test-" + std::to_string(getpid());
  int file = open(probe.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0)
    fail(flag, " ", directory, ": cannot write there: ", errnoText(errno),
         ": name a path that you may write to");
  ::close(file);
  unlink(probe.c_str());
}

void meshwright::checkSpace(const std::string &directory, int64_t bytes, const std::string &what) {
  struct statvfs system = {};
  // Some file systems do not say how large they are.
  if (statvfs(directory.c_str(), &system) != 0 || system.f_blocks == 0)
    return;
  uint64_t blocks = geteuid() == 0 ? system.f_bfree : system.f_bavail, left = blocks * system.f_frsize;
  if (left < uint64_t(bytes))
    fail(what, " takes ", grouped(uint64_t(bytes)), " bytes, but the file system of ", directory, " has ",
         grouped(left), " left: make room, or name another folder");
}
