//===- MappedFile.cpp - a file as memory ----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/data/MappedFile.h"

#include "common/monitor/Error.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <mutex>
#include <set>
#include <string_view>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace meshwright;

/// What git has in the place of a large file until git-LFS fetches it: some short lines of text.
static constexpr std::string_view pointerStart = "version https://git-lfs.github.com/spec/v1\n";
static constexpr int64_t mostPointerBytes = 1024;

/// Device and number of each file that was mapped.
static std::set<std::pair<dev_t, ino_t>> filesRead;
static std::mutex filesReadMutex;

bool MappedFile::hasRead(const std::string &path) {
  struct stat status;
  std::lock_guard<std::mutex> lock(filesReadMutex);
  return stat(path.c_str(), &status) == 0 && filesRead.count({status.st_dev, status.st_ino});
}

/// Thousands of shards are more files than a process may have open by default, though it may ask for more.
static bool raiseFileLimit() {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max)
    return false;
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

MappedFile::MappedFile(const std::string &path, const std::string &flag)
    : name(path), prefix(flag + " " + path + ": ") {
  // Opening a pipe would wait for who writes into it.
  auto openFile = [&] { return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); };
  file = openFile();
  if (file < 0 && errno == EMFILE && raiseFileLimit())
    file = openFile();
  if (file < 0 && errno == EMFILE)
    fail(prefix, "is one file more than this process may have open: raise the limit (ulimit -n), or make fewer, "
                 "larger files");
  if (file < 0)
    fail(prefix, "cannot open it: ", errnoText(errno), ": check the path and its permissions");
  struct stat status;
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(file);
    fail(prefix, "is not a regular file: name a file");
  }
  {
    std::lock_guard<std::mutex> lock(filesReadMutex);
    filesRead.insert({status.st_dev, status.st_ino});
  }
  bytes = status.st_size;
  void *memory = bytes ? mmap(nullptr, size_t(bytes), PROT_READ, MAP_SHARED, file, 0) : nullptr;
  if (memory == MAP_FAILED) {
    int code = errno;
    close(file);
    fail(prefix, "cannot map its ", bytes, " bytes: ", errnoText(code),
         ": copy it to a local file system, or raise the limit on memory (ulimit -v)");
  }
  start = static_cast<const unsigned char *>(memory);
  if (!start)
    return;
  if (std::string_view content(reinterpret_cast<const char *>(start),
                               size_t(std::min<int64_t>(bytes, mostPointerBytes)));
      content.substr(0, pointerStart.size()) == pointerStart) {
    size_t size = content.find("\nsize ");
    std::string wanted;
    if (size != content.npos)
      wanted = content.substr(size + 6, content.find('\n', size + 6) - size - 6);
    munmap(memory, size_t(bytes));
    close(file);
    fail(prefix, "is a pointer of git-LFS to a file",
         wanted.empty() ? "" : " of " + wanted + " bytes",
         ", not that file: fetch it with 'git lfs pull', or download it");
  }
  watch.emplace(start, bytes, prefix + "its byte ",
                text(" cannot be read any more: it had ", bytes,
                     " bytes when it was opened; leave it alone while a run reads it, and check the device that it is on"));
}

void MappedFile::read(int64_t offset, void *to, int64_t count) const {
  auto *next = static_cast<char *>(to);
  while (count > 0) {
    ssize_t got = pread(file, next, size_t(count), offset);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      fail(prefix, "cannot read byte ", offset, ": ", errnoText(errno),
           ": check the device that it is on");
    if (got == 0) {
      struct stat now = {};
      fstat(file, &now);
      fail(prefix, "has ", now.st_size, " bytes, but had ", bytes,
           " when it was opened: leave it alone while a run reads it");
    }
    next += got;
    offset += got;
    count -= got;
  }
}

void MappedFile::readAhead(int64_t offset, int64_t count) const {
  // Without effect where a file system cannot: whoever reads then waits for the disk.
  (void)posix_fadvise(file, offset, count, POSIX_FADV_WILLNEED);
}

MappedFile::~MappedFile() {
  watch.reset();
  if (start)
    munmap(const_cast<unsigned char *>(start), size_t(bytes));
  if (file >= 0)
    close(file);
}
