//===- Arena.cpp - the memory of all of a rank's tensors ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/plan/Arena.h"

#include "common/launch/Device.h"
#include "common/monitor/Error.h"
#include "common/plan/Plan.h"
#include "common/train/Context.h"
#include "meshwright/runtime/Staging.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <sys/mman.h>
#include <unistd.h>

using namespace meshwright;

/// The number in a file that holds nothing else, or -1.
static int64_t numberIn(const std::string &path) {
  std::ifstream file(path);
  int64_t number = -1;
  return file >> number ? number : -1;
}

int64_t meshwright::availableMemory() {
  int64_t available = std::numeric_limits<int64_t>::max();
  std::ifstream file("/proc/meminfo");
  for (std::string key, unit; file >> key;) {
    int64_t kilobytes;
    if (key == "MemAvailable:" && file >> kilobytes) {
      available = kilobytes * 1024;
      break;
    }
    std::getline(file, unit);
  }
  // Control groups, version 2 and 1. File cache counts as used there although it
  // would be given back, so it is not held against us.
  for (auto [directory, limitFile, usedFile] :
       {std::array<const char *, 3>{"/sys/fs/cgroup/", "memory.max", "memory.current"},
        {"/sys/fs/cgroup/memory/", "memory.limit_in_bytes", "memory.usage_in_bytes"}}) {
    int64_t limit = numberIn(std::string(directory) + limitFile);
    int64_t used = numberIn(std::string(directory) + usedFile);
    if (limit < 0 || used < 0)
      continue;
    std::ifstream statistics(std::string(directory) + "memory.stat");
    int64_t cache = 0, value = 0;
    for (std::string key; statistics >> key >> value;)
      if (key == "inactive_file" || key == "active_file")
        cache += value;
    available = std::min(available, limit - std::max<int64_t>(0, used - cache));
  }
  return available;
}

void meshwright::checkMemory(const Plan &plan, int64_t ranksHere, int64_t snapshotBytes) {
  // A device's memory is looked at where it is taken.
  auto isHere = [computes = hostComputes()](MemorySpace space) {
    return space == MemorySpace::Device ? computes : spaceRow(space).isMachineMemory;
  };
  auto bytesOf = [&](const Program &program) {
    int64_t bytes = 0;
    for (MemorySpace space : memorySpaces)
      bytes += isHere(space) ? program.spaces[space].bytes : 0;
    return bytes;
  };
  int64_t available = availableMemory();
  // The largest program's of each rank, unless all ranks are here.
  const Program &largest = *std::max_element(
      plan.programs.begin(), plan.programs.end(),
      [&](const Program &a, const Program &b) { return bytesOf(a) < bytesOf(b); });
  int64_t needed = snapshotBytes;
  for (int64_t rank = 0; rank < ranksHere; ++rank)
    needed += bytesOf(ranksHere == plan.ranks() ? plan.programs[plan.programOf(rank)] : largest);
  if (needed <= available)
    return;
  std::string parts, remedy = " or --remat";
  for (MemorySpace space : memorySpaces) {
    const Program::Arena &arena = largest.spaces[space];
    if (!isHere(space) || arena.bytes == 0)
      continue;
    std::string where;
    if (space != MemorySpace::Device) {
      where = std::string(" kept on ") + spaceRow(space).text;
      remedy = std::string(", --remat or without ") + spaceRow(space).option;
    }
    for (const MemoryLine &line : arena.memory)
      parts += (parts.empty() ? "" : ", ") + line.category + where + " " +
               grouped(uint64_t(line.bytes));
  }
  fail("this machine has ", grouped(uint64_t(std::max<int64_t>(0, available))),
       " bytes of memory available, but the plan needs ", grouped(uint64_t(bytesOf(largest))),
       " a rank (", parts, ") and ", ranksHere, ranksHere == 1 ? " rank runs" : " ranks run", " here",
       snapshotBytes ? text(", and copies of the state (--async-save, --buddy) ", grouped(uint64_t(snapshotBytes))) : "",
       ": use fewer ranks a machine, or compile with a smaller --batch, more --microbatches",
       remedy);
}

BySpace<char *> Arena::arenas() const {
  BySpace<char *> arenas = {{host}};
  for (MemorySpace space : offloadSpaces)
    arenas[space] = offloaded[space] ? offloaded[space]->data() : nullptr;
  return arenas;
}

BySpace<OffloadMemory *> Arena::offloadMemory() const {
  BySpace<OffloadMemory *> memory = {};
  for (MemorySpace space : offloadSpaces)
    memory[space] = offloaded[space].get();
  return memory;
}

void Arena::settle() const {
  for (MemorySpace space : offloadSpaces)
    if (offloaded[space])
      offloaded[space]->settle();
}

void OffloadMemory::copy(void *to, const void *from, int64_t bytes, bool) { std::memcpy(to, from, size_t(bytes)); }

void Arena::allocateOffloaded(const MwContext &context) {
  BySpace<int64_t> bytes = {};
  for (MemorySpace space : memorySpaces)
    bytes[space] = context.plan.spaces[space].bytes;
  // The host's memory is the first one, and has that which others copy through.
  auto stagingOf = [&](MemorySpace space) {
    const auto &host = offloaded[MemorySpace::Host];
    return spaceRow(space).staging ? host->data() + stagingOffset({space, false}, bytes) : nullptr;
  };
#define MW_OFFLOAD_SPACE(Space, ...)                                                               \
  if (bytes[MemorySpace::Space])                                                                   \
    offloaded[MemorySpace::Space] =                                                                \
        allocate##Space(context, bytes[MemorySpace::Space], stagingOf(MemorySpace::Space));
#include "meshwright/runtime/MemorySpaces.def"
}

Pages::Pages(int64_t bytes, Kind kind) : bytes(bytes) {
  if (bytes == 0)
    return;
  void *memory =
      mmap(nullptr, size_t(bytes), PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | (kind == Sparse ? MAP_NORESERVE : 0), -1, 0);
  if (memory == MAP_FAILED)
    fail("cannot allocate the arena of ", grouped(uint64_t(bytes)), " bytes: ", errnoText(errno),
         ": free memory, use more machines, or raise the limit on address space (ulimit -v)");
  start = static_cast<char *>(memory);
  // Only advice: without huge pages everything works, a little slower.
  madvise(start, size_t(bytes), MADV_HUGEPAGE);
}

void Pages::discard(int64_t begin, int64_t end) {
  int64_t page = sysconf(_SC_PAGESIZE);
  begin = (begin + page - 1) / page * page;
  end = end / page * page;
  if (begin < end)
    madvise(start + begin, size_t(end - begin), MADV_DONTNEED);
}

Pages::~Pages() {
  if (start)
    munmap(start, size_t(bytes));
}
