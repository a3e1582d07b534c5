//===- inject.cpp - makes one call of the system fail ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Loaded before the C library (LD_PRELOAD). Of the calls of the class FAULT_CALL the one with the
// number FAULT_AT, from 1, is changed as FAULT_KIND says: `fail`, `short` (half of the bytes are
// read or written) or `delay` (by FAULT_MS milliseconds). FAULT_COUNT=FILE writes how many calls
// of each class there were, one a line, when the process ends normally. The class `uring` is requests that are
// given to io_uring one by one, of which one that fails has EBADF as its result.
//
// What a folder is like: FAULT_URING=off lets the kernel refuse io_uring, FAULT_MAGIC=0x6969 is the number of its file system,
// FAULT_ROOM=BYTES what it has available, and FAULT_READ_ONLY=on lets no file be made with a name of its own.
//
//===----------------------------------------------------------------------===//
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace {
enum Class { Allocate, Open, Read, Write, Sync, Rename, Connect, Send, Uring, Classes };
constexpr const char *names[Classes] = {"allocate", "open", "read", "write", "sync", "rename", "connect", "send", "uring"};
std::atomic<long> counts[Classes];
enum Kind { None, Fail, Short, Delay };
Class wanted = Classes;
Kind wantedKind = None;
long wantedCall = 0, milliseconds = 50;
std::atomic<bool> ready{false};

__attribute__((constructor)) void start() {
  const char *call = getenv("FAULT_CALL"), *kind = getenv("FAULT_KIND"), *at = getenv("FAULT_AT"), *ms = getenv("FAULT_MS");
  for (int i = 0; call && i < Classes; ++i)
    if (strcmp(call, names[i]) == 0)
      wanted = Class(i);
  if (kind)
    wantedKind = kind[0] == 'f' ? Fail : kind[0] == 's' ? Short : Delay;
  wantedCall = at ? atol(at) : 0;
  milliseconds = ms ? atol(ms) : milliseconds;
  ready = true;
}

__attribute__((destructor)) void finish() {
  ready = false;
  const char *path = getenv("FAULT_COUNT");
  FILE *file = path ? fopen(path, "w") : nullptr;
  for (int i = 0; file && i < Classes; ++i)
    fprintf(file, "%s %ld\n", names[i], counts[i].load());
  if (file)
    fclose(file);
}

/// What is to become of this call.
Kind next(Class which) {
  if (!ready)
    return None;
  long number = ++counts[which];
  if (which != wanted || number != wantedCall)
    return None;
  if (wantedKind == Delay)
    usleep(useconds_t(milliseconds * 1000));
  return wantedKind;
}

template <typename F> F *original(F *&kept, const char *name) {
  if (!kept)
    kept = reinterpret_cast<F *>(dlsym(RTLD_NEXT, name));
  return kept;
}

/// Sets errno and returns -1 if the call is to fail.
bool fails(Kind kind, int code) {
  if (kind != Fail)
    return false;
  errno = code;
  return true;
}

/// A ring of io_uring, and what is mapped of it.
struct Ring {
  int file;
  io_sqring_offsets offsets;
  char *requests, *entries, *results;
};
Ring rings[64];
int ringCount = 0; // All are made by one thread, or before the others use theirs.

Ring *ringOf(int file) {
  for (int i = 0; i < ringCount; ++i)
    if (rings[i].file == file)
      return &rings[i];
  return nullptr;
}

/// Changes the request that the kernel is to be given next.
void change(Ring *ring, Kind kind) {
  if (!ring || (kind != Fail && kind != Short))
    return;
  auto at = [&](unsigned offset) { return *reinterpret_cast<unsigned *>(ring->requests + offset); };
  auto &entry = reinterpret_cast<io_uring_sqe *>(ring->entries)[(at(ring->offsets.tail) - 1) & at(ring->offsets.ring_mask)];
  if (kind == Fail)
    entry.fd = -1;
  else
    entry.len /= 2;
}

size_t lengthOf(Kind kind, size_t bytes) { return kind == Short && bytes > 1 ? bytes / 2 : bytes; }
} // namespace

// dlsym may allocate, so that the C library's own names are called here.
extern "C" {
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

void *malloc(size_t bytes) { return fails(next(Allocate), ENOMEM) ? nullptr : __libc_malloc(bytes); }
void *calloc(size_t count, size_t bytes) { return fails(next(Allocate), ENOMEM) ? nullptr : __libc_calloc(count, bytes); }
void *realloc(void *old, size_t bytes) { return fails(next(Allocate), ENOMEM) ? nullptr : __libc_realloc(old, bytes); }
void *aligned_alloc(size_t alignment, size_t bytes) {
  return fails(next(Allocate), ENOMEM) ? nullptr : __libc_memalign(alignment, bytes);
}
int posix_memalign(void **to, size_t alignment, size_t bytes) {
  if (next(Allocate) == Fail)
    return ENOMEM;
  *to = __libc_memalign(alignment, bytes);
  return *to ? 0 : ENOMEM;
}
void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  static void *(*kept)(void *, size_t, int, int, int, off_t);
  if (fails(next(Allocate), ENOMEM))
    return MAP_FAILED;
  void *mapped = original(kept, "mmap")(at, bytes, protection, flags, file, offset);
  if (Ring *ring = ringOf(file))
    (offset == IORING_OFF_SQES ? ring->entries : offset == IORING_OFF_SQ_RING ? ring->requests : ring->results) =
        static_cast<char *>(mapped);
  return mapped;
}

long syscall(long number, ...) noexcept {
  static long (*kept)(long, ...);
  va_list more;
  va_start(more, number);
  long a[6];
  for (long &argument : a)
    argument = va_arg(more, long);
  va_end(more);
  if (number == SYS_io_uring_setup && getenv("FAULT_URING")) {
    errno = EPERM;
    return -1;
  }
  if (number == SYS_io_uring_enter && a[1] == 1)
    change(ringOf(int(a[0])), next(Uring));
  long result = original(kept, "syscall")(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  if (number == SYS_io_uring_setup && result >= 0 && ringCount < int(sizeof(rings) / sizeof(*rings)))
    rings[ringCount++] = {int(result), reinterpret_cast<io_uring_params *>(a[1])->sq_off, nullptr, nullptr, nullptr};
  return result;
}

int statfs(const char *path, struct statfs *to) noexcept {
  static int (*kept)(const char *, struct statfs *);
  int result = original(kept, "statfs")(path, to);
  if (const char *magic = getenv("FAULT_MAGIC"))
    to->f_type = strtol(magic, nullptr, 0);
  return result;
}
int fstatvfs(int file, struct statvfs *to) noexcept {
  static int (*kept)(int, struct statvfs *);
  int result = original(kept, "fstatvfs")(file, to);
  if (const char *room = getenv("FAULT_ROOM"))
    to->f_bavail = fsblkcnt_t(atol(room)) / to->f_frsize;
  return result;
}
int mkostemp(char *path, int flags) {
  static int (*kept)(char *, int);
  return fails(getenv("FAULT_READ_ONLY") ? Fail : None, EROFS) ? -1 : original(kept, "mkostemp")(path, flags);
}

int open(const char *path, int flags, ...) {
  static int (*kept)(const char *, int, ...);
  va_list more;
  va_start(more, flags);
  mode_t mode = va_arg(more, mode_t);
  va_end(more);
  return fails(next(Open), EMFILE) ? -1 : original(kept, "open")(path, flags, mode);
}

ssize_t read(int file, void *to, size_t bytes) {
  static ssize_t (*kept)(int, void *, size_t);
  Kind kind = next(Read);
  return fails(kind, EIO) ? -1 : original(kept, "read")(file, to, lengthOf(kind, bytes));
}
ssize_t pread(int file, void *to, size_t bytes, off_t offset) {
  static ssize_t (*kept)(int, void *, size_t, off_t);
  Kind kind = next(Read);
  return fails(kind, EIO) ? -1 : original(kept, "pread")(file, to, lengthOf(kind, bytes), offset);
}

ssize_t write(int file, const void *from, size_t bytes) {
  static ssize_t (*kept)(int, const void *, size_t);
  Kind kind = next(Write);
  return fails(kind, ENOSPC) ? -1 : original(kept, "write")(file, from, lengthOf(kind, bytes));
}
ssize_t pwrite(int file, const void *from, size_t bytes, off_t offset) {
  static ssize_t (*kept)(int, const void *, size_t, off_t);
  Kind kind = next(Write);
  return fails(kind, ENOSPC) ? -1 : original(kept, "pwrite")(file, from, lengthOf(kind, bytes), offset);
}
ssize_t writev(int file, const iovec *parts, int count) {
  static ssize_t (*kept)(int, const iovec *, int);
  return fails(next(Write), ENOSPC) ? -1 : original(kept, "writev")(file, parts, count);
}

int fsync(int file) {
  static int (*kept)(int);
  return fails(next(Sync), EIO) ? -1 : original(kept, "fsync")(file);
}

int rename(const char *from, const char *to) noexcept {
  static int (*kept)(const char *, const char *);
  return fails(next(Rename), EIO) ? -1 : original(kept, "rename")(from, to);
}
int renameat2(int fromFolder, const char *from, int toFolder, const char *to, unsigned flags) noexcept {
  static int (*kept)(int, const char *, int, const char *, unsigned);
  return fails(next(Rename), EIO) ? -1 : original(kept, "renameat2")(fromFolder, from, toFolder, to, flags);
}
int symlink(const char *target, const char *path) noexcept {
  static int (*kept)(const char *, const char *);
  return fails(next(Rename), EIO) ? -1 : original(kept, "symlink")(target, path);
}

int connect(int file, const sockaddr *address, socklen_t length) {
  static int (*kept)(int, const sockaddr *, socklen_t);
  return fails(next(Connect), ECONNREFUSED) ? -1 : original(kept, "connect")(file, address, length);
}
ssize_t send(int file, const void *from, size_t bytes, int flags) {
  static ssize_t (*kept)(int, const void *, size_t, int);
  Kind kind = next(Send);
  return fails(kind, ECONNRESET) ? -1 : original(kept, "send")(file, from, lengthOf(kind, bytes), flags);
}
}
