//===- FakeDisk.cpp - records what goes to the disk, in order --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// With FAKE_DISK_LOG=FILE each fsync, rename and link of fake_program is a line of
// FILE: what a crash of the machine may undo shows in no other way. With FAKE_SYNC_MS=N an
// fsync takes N milliseconds more.
//
//===----------------------------------------------------------------------===//
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <string>
#include <unistd.h>

/// The function that is replaced.
template <typename F> static F *original(F *, const char *name) {
  return reinterpret_cast<F *>(dlsym(RTLD_NEXT, name));
}

static void note(const std::string &line) {
  const char *path = getenv("FAKE_DISK_LOG");
  FILE *log = path ? fopen(path, "a") : nullptr;
  if (!log)
    return;
  fprintf(log, "%s\n", line.c_str());
  fclose(log);
}

extern "C" {
int fsync(int file) {
  char path[PATH_MAX + 1] = {};
  if (readlink(("/proc/self/fd/" + std::to_string(file)).c_str(), path, PATH_MAX) > 0)
    note("sync " + std::string(path));
  if (const char *milliseconds = getenv("FAKE_SYNC_MS"))
    usleep(useconds_t(atoi(milliseconds)) * 1000);
  return original(fsync, "fsync")(file);
}

int rename(const char *from, const char *to) noexcept {
  note("rename " + std::string(from) + " " + to);
  return original(rename, "rename")(from, to);
}

int renameat2(int fromFolder, const char *from, int toFolder, const char *to,
              unsigned flags) noexcept {
  note("rename " + std::string(from) + " " + to);
  return original(renameat2, "renameat2")(fromFolder, from, toFolder, to, flags);
}
}
