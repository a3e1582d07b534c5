//===- MappedFile.cpp - a file as memory ----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/MappedFile.h"

#include "common/Error.h"

#include <cerrno>
#include <fcntl.h>
#include <mutex>
#include <set>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace meshwright;

/// Device and number of each file that was mapped.
static std::set<std::pair<dev_t, ino_t>> filesRead;
static std::mutex filesReadMutex;

bool MappedFile::hasRead(const std::string &path) {
  struct stat status;
  std::lock_guard<std::mutex> lock(filesReadMutex);
  return stat(path.c_str(), &status) == 0 && filesRead.count({status.st_dev, status.st_ino});
}

MappedFile::MappedFile(const std::string &path, const std::string &flag) : name(path) {
  std::string prefix = flag + " " + path + ": ";
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
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
  int code = errno;
  close(file);
  if (memory == MAP_FAILED)
    fail(prefix, "cannot map its ", bytes, " bytes: ", errnoText(code),
         ": copy it to a local file system");
  start = static_cast<const unsigned char *>(memory);
}

MappedFile::~MappedFile() {
  if (start)
    munmap(const_cast<unsigned char *>(start), size_t(bytes));
}
