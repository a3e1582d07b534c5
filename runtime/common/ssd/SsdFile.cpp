//===- SsdFile.cpp - a rank's tensors on an SSD ------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/ssd/SsdFile.h"

#include "common/monitor/Error.h"
#include "common/train/Context.h"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

using namespace meshwright;

/// File systems that are no local disk. linux/magic.h has some of them, and kernels the others.
static constexpr struct {
  uint32_t magic;
  const char *name;
  bool isMemory;
} unsuitable[] = {
    {0x01021994, "tmpfs", true}, {0x858458F6, "ramfs", true},  {0x958458F6, "hugetlbfs", true}, {0x6969, "NFS", false},
    {0xFF534D42, "CIFS", false}, {0xFE534D42, "SMB", false},   {0x517B, "SMB", false},          {0x01021997, "9P", false},
    {0x65735546, "FUSE", false}, {0x00C36400, "Ceph", false},  {0x0BD00BD0, "Lustre", false},   {0x47504653, "GPFS", false},
    {0x5346414F, "AFS", false},  {0x19830326, "BeeGFS", false}};

static constexpr char anotherFolder[] = ": name a folder of a local SSD";

SsdFile::SsdFile(const std::string &folder, int rank, int64_t size, char *staging, int64_t stagingBytes)
    : bytes((size + SsdTransfers::blockBytes - 1) / SsdTransfers::blockBytes * SsdTransfers::blockBytes) {
  open(folder, rank);
  allocate(folder);
  void *memory = mmap(nullptr, size_t(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED)
    fail("--ssd ", folder, ": cannot map ", grouped(uint64_t(bytes)), " bytes of a file there: ", errnoText(errno),
         ": raise the limit on address space (ulimit -v)");
  mapped = static_cast<char *>(memory);
  watch.emplace(mapped, bytes, path + ": reading at offset ",
                ": Input/output error (errno 5): go on from the last checkpoint, with another folder of --ssd");
  fetches = std::make_unique<SsdTransfers>(path, openQueue(), staging, stagingBytes / 2);
  stores = std::make_unique<SsdTransfers>(path, openQueue(), staging + stagingBytes / 2, stagingBytes / 2);
}

SsdFile::~SsdFile() {
  fetches.reset();
  stores.reset();
  watch.reset();
  if (mapped)
    munmap(mapped, size_t(bytes));
  if (file >= 0)
    close(file);
}

void SsdFile::open(const std::string &folder, int rank) {
  struct statfs system = {};
  if (statfs(folder.c_str(), &system) != 0)
    fail("--ssd ", folder, ": ", errnoText(errno), anotherFolder);
  for (auto &entry : unsuitable)
    if (uint32_t(system.f_type) == entry.magic)
      fail("--ssd ", folder, ": the folder is ",
           entry.isMemory ? text("in memory (", entry.name, "), from which nothing is gained")
                          : text("on a network file system (", entry.name, "), which other machines may change or lose"),
           anotherFolder, entry.isMemory ? ", or compile with --offload optimizer, which keeps states in memory" : "");
  path = text(folder, "/meshwright-ssd-rank", rank, "-XXXXXX");
  file = mkostemp(path.data(), O_DIRECT | O_CLOEXEC);
  if (file < 0 && errno == EINVAL)
    fail("--ssd ", folder, ": its file system cannot read and write past the page cache (O_DIRECT)", anotherFolder,
         " with ext4 or XFS");
  if (file < 0)
    fail("--ssd ", folder, ": cannot create a file there: ", errnoText(errno), anotherFolder, " that may be written");
  unlink(path.c_str());
}

void SsdFile::allocate(const std::string &folder) {
  struct statvfs system = {};
  uint64_t available = 0;
  if (fstatvfs(file, &system) == 0)
    available = uint64_t(system.f_bavail) * system.f_frsize;
  int error = available < uint64_t(bytes) ? ENOSPC : 0;
  // Some file systems cannot allocate; a full disk is an error of a write there.
  if (!error && fallocate(file, 0, 0, bytes) != 0)
    error = errno == EOPNOTSUPP ? ftruncate(file, bytes) ? errno : 0 : errno;
  if (error == ENOSPC || error == EDQUOT)
    fail("--ssd ", folder, ": has ", grouped(available), " bytes available, but each rank needs ",
         grouped(uint64_t(bytes)), " there, as the plan says (ssd_bytes)", anotherFolder, " with more room");
  if (error)
    fail("--ssd ", folder, ": cannot allocate ", grouped(uint64_t(bytes)), " bytes there: ", errnoText(error),
         anotherFolder);
}

std::unique_ptr<IoQueue> SsdFile::openQueue() {
  int error = 0;
  if (auto queue = openUring(file, SsdTransfers::depth, error))
    return queue;
  refusal = text("--ssd: the kernel refuses io_uring (", errnoText(error), "): ", SsdTransfers::depth,
                 " threads in each direction read and write instead");
  return openBlockingIo(file, SsdTransfers::depth);
}

void SsdFile::copy(void *to, const void *from, int64_t count, bool isStored) {
  if (isStored)
    stores->write(static_cast<const char *>(from), static_cast<char *>(to) - mapped, count);
  else
    fetches->read(static_cast<char *>(to), static_cast<const char *>(from) - mapped, count);
}

void SsdFile::settle() {
  if (msync(mapped, size_t(bytes), MS_SYNC) != 0) {
    int error = errno;
    fail(path, ": writing what the host has changed, from offset 0 on: ", errnoText(error), " (errno ", error,
         "): go on from the last checkpoint, with another folder of --ssd");
  }
  madvise(mapped, size_t(bytes), MADV_DONTNEED);
  posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
}

std::unique_ptr<OffloadMemory> meshwright::allocateSsd(const MwContext &context, int64_t bytes, char *staging) {
  return std::make_unique<SsdFile>(context.ssd, context.rank(), bytes, staging, spaceRow(MemorySpace::Ssd).staging);
}
