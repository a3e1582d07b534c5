//===- FakeGpu.cpp - a driver without a GPU -------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// With FakeBlas.cpp and FakeNccl.cpp it stands for libcuda.so.1, libcublasLt.so.13 and
// libnccl.so.2 in tests of the host's side of executables for GPUs, whose ranks are threads of
// one process. Memory is the host's and copies are made. Where FAKE_GPU_COMPUTES is set kernels, products and
// communication run too (Ptx.h, FakeCompute.h), and executables train. Everything is checked
// that can be from outside, and the process ends with a message where it is wrong:
//   - addresses lie in memory that was allocated, products with all of their matrices
//   - kernels are entries of the PTX that was loaded, with its number of threads and no more
//     shared memory than they may have, and are loaded before they are launched
//   - streams and events exist, work on the same memory is ordered (FakeStreams.h), and
//     CUDA graphs are what they were captured from
//   - members of a communicator make the same calls in the same order
//   - ranks are connected outside of captures, by calls in which both wait, and nothing behind a
//     message on a stream is done before it is taken
//   - libraries have loaded their kernels, by a first launch of each, before ranks communicate
// FAKE_GPU_FAULT=KIND:RANK:N makes call N of a rank's NCCL ("stall", which does not end,
// "error", which it says on the side, and "kill", which ends the rank while the others wait
// for it) or its launch N go wrong ("cuda", an error, and "hang", which does not end; a stream
// that hangs takes FAKE_GPU_QUEUE more pieces of work, then calls wait); RANK -1 is all of them.
// Memory can be mapped unless FAKE_GPU_VMM is "none", or "refused", which cuMemCreate alone says.
// FAKE_GPU_FABRIC is "refused" where the GPU could share memory between machines, but nothing
// there does. What is mapped must be accessible, for network cards too, and is taken away when
// the host knows that nothing touches it, and NCCL does not know it any more.
// No more than FAKE_GPU_PINNED bytes of the host can be pinned. Ranks that are processes meet in
// the folder FAKE_GPU_MEETING; calls never end once one of them has been killed.
// At the end it writes the counts of launches by kernel, of messages that were sent but not
// received, of communicators by the channels they may have, of what NCCL was told of, and of bytes that were copied to the file that
// FAKE_GPU_LOG names.
//
//===----------------------------------------------------------------------===//
#include "FakeCompute.h"
#include "FakeFault.h"
#include "FakeStreams.h"
#include "PtxJudge.h"
#include "nccl.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace fake;

namespace {
struct Memory {
  size_t bytes;
  std::vector<char> owned;
  bool mapped = false, accessible = true, shared = false;
};
struct Entry {
  std::vector<bool> addresses; ///< which arguments are
  int threads = 0;
  int shared = 0; ///< bytes of shared memory that it declares
};
struct Function {
  std::string name;
  Entry entry;
  const ptx::Entry *code = nullptr; ///< where it is run
  int shared = 0; ///< bytes that a launch may ask for beside
  bool loaded = false;
};
struct Module {
  std::unique_ptr<ptx::Module> code;
  std::map<std::string, Entry> entries;
  std::map<std::string, Function> functions;
};

std::map<CUdeviceptr, Memory> memories;
std::map<std::string, long> launches;
std::map<std::string, long> pending; ///< messages by channel: sent minus received

std::map<std::string, long> bounded; ///< communicators by their most channels
std::map<std::string, long> registered; ///< with NCCL, by kind
std::map<CUdeviceptr, size_t> pinned; ///< memory of the host
/// Bytes copied from and to it.
std::atomic<long> copiedToDevice{0}, copiedToHost{0}; ///< with memory that is pinned
std::atomic<long> readByHost{0};                       ///< into memory that is not
thread_local long launched = 0;

/// Writes the log when the process ends.
struct Log {
  ~Log() {
    const char *path = getenv("FAKE_GPU_LOG");
    FILE *file = path ? fopen(path, "w") : nullptr;
    if (!file)
      return;
    for (auto &[name, count] : launches)
      fprintf(file, "launch %s %ld\n", name.c_str(), count);
    for (auto &[name, count] : pending)
      fprintf(file, "pending %s %ld\n", name.c_str(), count);
    for (auto &[most, count] : bounded)
      fprintf(file, "channels %s %ld\n", most.c_str(), count);
    for (auto &[kind, count] : registered)
      fprintf(file, "registered %s %ld\n", kind.c_str(), count);
    fprintf(file, "copied to_device %ld\ncopied to_host %ld\n", copiedToDevice.load(),
            copiedToHost.load());
    fprintf(file, "read bytes %ld\n", readByHost.load());
    fclose(file);
  }
} theLog;
} // namespace

void fake::checkRange(const char *what, CUdeviceptr address, size_t bytes) {
  Lock lock(mutex);
  auto after = memories.upper_bound(address);
  if (after == memories.begin())
    wrong("%s: address %llx was not allocated", what, (unsigned long long)address);
  auto &[begin, memory] = *--after;
  if (!memory.accessible)
    wrong("%s: address %llx is mapped, but may not be touched", what, (unsigned long long)address);
  if (address + bytes > begin + memory.bytes)
    wrong("%s: %zu bytes at %llx reach %llu bytes beyond their allocation", what, bytes,
          (unsigned long long)address, (unsigned long long)(address + bytes - begin - memory.bytes));
}
bool fake::isShared(CUdeviceptr address, size_t bytes) {
  Lock lock(mutex);
  auto found = memories.find(address);
  if (found == memories.end() || found->second.bytes != bytes)
    wrong("memory that NCCL is told of is no allocation's");
  return found->second.shared;
}
void fake::countMessage(const std::string &channel, long change) {
  Lock lock(mutex);
  pending[channel] += change;
}
void fake::countChannels(int most) {
  Lock lock(mutex);
  ++bounded[most == NCCL_CONFIG_UNDEF_INT ? "free" : std::to_string(most)];
}
void fake::countRegistered(const char *kind) {
  Lock lock(mutex);
  ++registered[kind];
}
void fake::countLaunch(const std::string &name) {
  Lock lock(mutex);
  ++launches[name];
}

extern "C" {
//===--- driver -------------------------------------------------------------===//

/// As of a machine without a GPU where FAKE_GPU_NONE is set.
CUresult cuInit(unsigned) {
  return getenv("FAKE_GPU_NONE") ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int *version) {
  const char *text = getenv("FAKE_GPU_DRIVER");
  return *version = text ? atoi(text) : 13000, CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult result, const char **name) {
  *name = result == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "error";
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult, const char **text) { return *text = "error", CUDA_SUCCESS; }
CUresult cuDeviceGetCount(int *count) {
  const char *text = getenv("FAKE_GPUS");
  return *count = text ? atoi(text) : 1, CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice *device, int number) { return *device = number, CUDA_SUCCESS; }
CUresult cuDeviceGetName(char *name, int size, CUdevice device) {
  snprintf(name, size_t(size), "fake %d", device);
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
  // Each rank has the GPU it sees to itself where FAKE_GPU_OWN is set. Of a machine's GPUs a process
  // sees those from FAKE_GPU_FIRST on.
  static int asked = 0;
  Lock lock(mutex);
  memset(uuid->bytes, 0, sizeof(uuid->bytes));
  const char *first = getenv("FAKE_GPU_FIRST");
  uuid->bytes[0] = char(getenv("FAKE_GPU_OWN") ? asked++ : device + (first ? atoi(first) : 0));
  return CUDA_SUCCESS;
}
static bool isSet(const char *name, const char *value) {
  const char *text = getenv(name);
  return text && strcmp(text, value) == 0;
}
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice) {
  // Of a generation for which there is no code, so that PTX is loaded.
  const char *text = getenv("FAKE_GPU_ARCH");
  int arch = text ? atoi(text) : 120;
  switch (attribute) {
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    return *value = arch / 10, CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    return *value = !isSet("FAKE_GPU_VMM", "none"), CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED:
  case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
    return *value = 1, CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED:
    return *value = getenv("FAKE_GPU_FABRIC") != nullptr, CUDA_SUCCESS;
  default: // The lower half of the architecture, or what is no matter here.
    return *value = arch % 10, CUDA_SUCCESS;
  }
}
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  *context = CUcontext(size_t(device) + 1);
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice) { return CUDA_SUCCESS; }
static size_t allBytes() {
  const char *text = getenv("FAKE_GPU_BYTES");
  return text ? size_t(atoll(text)) : size_t(1) << 34;
}
static size_t freeBytes() {
  size_t result = allBytes();
  for (auto &[address, memory] : memories)
    result -= std::min(result, memory.bytes);
  return result;
}
CUresult cuMemGetInfo(size_t *available, size_t *all) {
  Lock lock(mutex);
  return *all = allBytes(), *available = freeBytes(), CUDA_SUCCESS;
}
CUresult cuMemAlloc(CUdeviceptr *address, size_t bytes) {
  checkContext("cuMemAlloc");
  checkNoCapture("cuMemAlloc");
  Lock lock(mutex);
  Memory memory{bytes, std::vector<char>(bytes + 512)};
  if (bytes > freeBytes())
    return CUDA_ERROR_OUT_OF_MEMORY;
  *address = (CUdeviceptr(memory.owned.data()) + 255) / 256 * 256;
  memories[*address] = std::move(memory);
  return CUDA_SUCCESS;
}
CUresult cuMemFree(CUdeviceptr address) {
  checkNoCapture("cuMemFree");
  Lock lock(mutex);
  auto found = memories.find(address);
  if (found == memories.end())
    wrong("cuMemFree: %llx was not allocated", (unsigned long long)address);
  if (found->second.mapped)
    wrong("cuMemFree: %llx is mapped", (unsigned long long)address);
  forget(address, found->second.bytes);
  memories.erase(found);
  return CUDA_SUCCESS;
}

constexpr size_t page = size_t(2) << 20;
CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *,
                                       CUmemAllocationGranularity_flags) {
  return *bytes = page, CUDA_SUCCESS;
}
/// What a handle stands for: bytes, by its number.
static std::map<CUmemGenericAllocationHandle, size_t> created;
CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                     const CUmemAllocationProp *properties, unsigned long long flags) {
  checkContext("cuMemCreate");
  checkNoCapture("cuMemCreate");
  Lock lock(mutex);
  if (isSet("FAKE_GPU_VMM", "refused"))
    return CUDA_ERROR_NOT_SUPPORTED;
  int handles = properties->requestedHandleTypes;
  if ((handles & CU_MEM_HANDLE_TYPE_FABRIC) && isSet("FAKE_GPU_FABRIC", "refused"))
    return CUDA_ERROR_NOT_PERMITTED;
  if (bytes == 0 || bytes % page || flags || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
      properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    return CUDA_ERROR_INVALID_VALUE;
  if (!(handles & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) ||
      (getenv("FAKE_GPU_FABRIC") && !isSet("FAKE_GPU_FABRIC", "refused") && !(handles & CU_MEM_HANDLE_TYPE_FABRIC)))
    wrong("cuMemCreate: other processes cannot have the memory");
  if (!properties->allocFlags.gpuDirectRDMACapable)
    wrong("cuMemCreate: network cards cannot have the memory");
  if (bytes > freeBytes())
    return CUDA_ERROR_OUT_OF_MEMORY;
  static CUmemGenericAllocationHandle last = 0;
  created[*handle = ++last] = bytes;
  return CUDA_SUCCESS;
}
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  Lock lock(mutex);
  if (!created.erase(handle))
    wrong("cuMemRelease: no such memory");
  return CUDA_SUCCESS;
}
CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t, CUdeviceptr, unsigned long long) {
  Lock lock(mutex);
  if (bytes % page)
    return CUDA_ERROR_INVALID_VALUE;
  *address = CUdeviceptr(aligned_alloc(page, bytes));
  return CUDA_SUCCESS;
}
CUresult cuMemAddressFree(CUdeviceptr address, size_t) {
  Lock lock(mutex);
  if (memories.count(address))
    wrong("cuMemAddressFree: memory is mapped there");
  return free((void *)address), CUDA_SUCCESS;
}
CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  Lock lock(mutex);
  auto found = created.find(handle);
  if (found == created.end() || found->second != bytes || offset || flags)
    return CUDA_ERROR_INVALID_VALUE;
  Memory memory{bytes, {}};
  memory.mapped = memory.shared = true;
  memory.accessible = false;
  memories[address] = std::move(memory);
  return CUDA_SUCCESS;
}
CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t count) {
  Lock lock(mutex);
  auto found = memories.find(address);
  if (found == memories.end() || found->second.bytes != bytes || count != 1 ||
      access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
    return CUDA_ERROR_INVALID_VALUE;
  return found->second.accessible = true, CUDA_SUCCESS;
}
CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
  checkNoCapture("cuMemUnmap");
  Lock lock(mutex);
  auto found = memories.find(address);
  if (found == memories.end() || !found->second.mapped || found->second.bytes != bytes)
    wrong("cuMemUnmap: %llx is not mapped so", (unsigned long long)address);
  checkOver("cuMemUnmap", address, bytes);
  checkUnregistered(address);
  forget(address, bytes);
  memories.erase(found);
  return CUDA_SUCCESS;
}
CUresult cuMemHostAlloc(void **memory, size_t bytes, unsigned) {
  checkContext("cuMemHostAlloc");
  checkNoCapture("cuMemHostAlloc");
  Lock lock(mutex);
  if (const char *most = getenv("FAKE_GPU_PINNED")) {
    size_t sum = bytes;
    for (auto &[address, size] : pinned)
      sum += size;
    if (sum > size_t(atoll(most)))
      return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *memory = calloc(bytes, 1);
  pinned[CUdeviceptr(*memory)] = bytes;
  return CUDA_SUCCESS;
}
CUresult cuMemFreeHost(void *memory) {
  Lock lock(mutex);
  auto found = pinned.find(CUdeviceptr(memory));
  if (found == pinned.end())
    wrong("cuMemFreeHost: %p was not allocated", memory);
  forget(found->first, found->second);
  pinned.erase(found);
  return free(memory), CUDA_SUCCESS;
}
CUresult cuMemHostGetDevicePointer(CUdeviceptr *address, void *memory, unsigned) {
  return *address = CUdeviceptr(memory), CUDA_SUCCESS;
}
/// Whether memory of the host is pinned; then all of it must be.
static bool isPinned(const char *what, CUdeviceptr address, size_t bytes) {
  Lock lock(mutex);
  auto after = pinned.upper_bound(address);
  if (after == pinned.begin())
    return false;
  auto [begin, size] = *--after;
  if (address >= begin + size)
    return false;
  if (address + bytes > begin + size)
    wrong("%s: %zu bytes of the host reach beyond their allocation", what, bytes);
  return true;
}
static CUresult copy(const char *name, void *to, const void *from, size_t bytes, bool reads,
                     bool writes, CUstream stream) {
  if (sticky != CUDA_SUCCESS)
    return sticky;
  if (bytes == 0)
    wrong("%s of nothing", name);
  std::vector<Access> accesses;
  if (reads)
    accesses.push_back({Access::Read, CUdeviceptr(from), bytes});
  if (writes)
    accesses.push_back({Access::Write, CUdeviceptr(to), bytes});
  for (const Access &access : accesses)
    checkRange(name, access.begin, bytes);
  // What a program keeps on the host is in order too.
  if (!reads && isPinned(name, CUdeviceptr(from), bytes)) {
    accesses.push_back({Access::Read, CUdeviceptr(from), bytes});
  }
  if (!writes && isPinned(name, CUdeviceptr(to), bytes)) {
    accesses.push_back({Access::Write, CUdeviceptr(to), bytes});
  }
  std::atomic<long> *counted = nullptr;
  if (accesses.size() == 2 && !(reads && writes))
    counted = reads ? &copiedToHost : &copiedToDevice;
  // Memory that is not pinned is free again when the call returns.
  if (!reads && !counted) {
    auto staged = std::make_shared<std::vector<char>>((const char *)from, (const char *)from + bytes);
    submit(stream, {name, accesses, [=] { return memcpy(to, staged->data(), bytes), true; }});
    return CUDA_SUCCESS;
  }
  Work work{name, accesses, [=] {
              if (counted)
                *counted += long(bytes);
              return memcpy(to, from, bytes), true;
            }};
  // Whether such a copy has been made when the call returns is not said.
  if (!reads && !counted) {
    work.source = static_cast<const char *>(from);
    work.sourceBytes = bytes;
  }
  submit(stream, std::move(work));
  return CUDA_SUCCESS;
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
  return copy("cuMemcpyHtoDAsync", (void *)to, from, bytes, false, true, stream);
}
CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
  // To memory that is not pinned it returns when the copy has been made.
  if (sticky == CUDA_SUCCESS && !isPinned("cuMemcpyDtoHAsync", CUdeviceptr(to), bytes) &&
      cuStreamQuery(stream) == CUDA_ERROR_NOT_READY) {
    if (fault().kind == "hang")
      return cuStreamSynchronize(stream);
    wrong("cuMemcpyDtoHAsync waits for a stream that never ends");
  }
  if (!isPinned("cuMemcpyDtoHAsync", CUdeviceptr(to), bytes))
    readByHost += long(bytes);
  return copy("cuMemcpyDtoHAsync", to, (void *)from, bytes, true, false, stream);
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy("cuMemcpyDtoDAsync", (void *)to, (void *)from, bytes, true, true, stream);
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  if (count == 0)
    wrong("cuMemsetD8Async of nothing");
  checkRange("cuMemsetD8Async", to, count);
  submit(stream, {"cuMemsetD8Async",
                  {{Access::Write, to, count}},
                  [=] { return memset((void *)to, value, count), true; }});
  return CUDA_SUCCESS;
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
  if (!isPinned("cuMemsetD32Async", to, 4 * count))
    checkRange("cuMemsetD32Async", to, 4 * count);
  submit(stream, {"cuMemsetD32Async", {{Access::Write, to, 4 * count}}, [=] {
                    std::fill_n((unsigned *)to, count, value);
                    return true;
                  }});
  return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *result, const void *image) {
  checkContext("cuModuleLoadData");
  auto *module = new Module;
  *result = CUmodule(module);
  std::string text = static_cast<const char *>(image);
  if (text.compare(0, 4, "\177ELF") == 0)
    return CUDA_SUCCESS; // Code, which nothing is known of.
  for (size_t at = 0; (at = text.find(".entry ", at)) != std::string::npos;) {
    at += strlen(".entry ");
    size_t open = text.find('(', at), body = text.find('{', open);
    std::string name = text.substr(at, open - at), head = text.substr(open, body - open);
    Entry entry;
    for (size_t i = 0; (i = head.find(".param", i)) != std::string::npos; ++i)
      entry.addresses.push_back(head.compare(i, strlen(".param .u64 .ptr"), ".param .u64 .ptr") == 0);
    for (const char *word : {".reqntid ", ".maxntid "})
      if (size_t i = head.find(word); i != std::string::npos)
        entry.threads = atoi(head.c_str() + i + strlen(word));
    std::string inside = text.substr(body, text.find(".entry ", body) - body);
    for (size_t i = 0; (i = inside.find("\t.shared ", i)) != std::string::npos; ++i)
      entry.shared += atoi(inside.c_str() + inside.find('[', i) + 1);
    module->entries[name] = entry;
  }
  if (!computes())
    return CUDA_SUCCESS;
  try {
    module->code = std::make_unique<ptx::Module>(text);
  } catch (const std::exception &error) {
    wrong("cuModuleLoadData: %s", error.what());
  }
  Lock lock(mutex);
  for (auto &[name, bytes] : module->code->constants())
    memories[CUdeviceptr(bytes.data())] = Memory{bytes.size(), {}};
  return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule) { return CUDA_SUCCESS; }
CUresult cuModuleGetFunction(CUfunction *function, CUmodule handle, const char *name) {
  auto *module = (Module *)handle;
  auto entry = module->entries.find(name);
  if (entry == module->entries.end())
    wrong("cuModuleGetFunction: the module has no entry %s", name);
  const ptx::Entry *code = module->code ? &module->code->entries().at(name) : nullptr;
  // Without being asked for, all of a block's is 48 KiB.
  *function = CUfunction(&(module->functions[name] = {name, entry->second, code,
                                                      48 * 1024 - entry->second.shared}));
  return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute, int value) {
  auto &function = *(Function *)handle;
  // As much as GPUs of all architectures from sm_80 on have.
  if (value + function.entry.shared > 99 * 1024)
    return CUDA_ERROR_INVALID_VALUE;
  return function.shared = value, CUDA_SUCCESS;
}
CUresult cuFuncLoad(CUfunction function) {
  checkNoCapture("cuFuncLoad");
  return ((Function *)function)->loaded = true, CUDA_SUCCESS;
}
/// Memory for kernels that run.
struct Allocations : ptx::Memories {
  std::pair<uint64_t, uint64_t> around(uint64_t address) override {
    Lock lock(mutex);
    auto after = memories.upper_bound(address);
    if (after != memories.begin())
      if (auto &[begin, memory] = *--after; address < begin + memory.bytes)
        return {begin, begin + memory.bytes};
    // With unified addressing, kernels read and write pinned memory of the host at its own address.
    auto behind = pinned.upper_bound(address);
    if (behind != pinned.begin())
      if (auto &[begin, bytes] = *--behind; address < begin + bytes)
        return {begin, begin + bytes};
    throw std::runtime_error("address " + std::to_string(address) + " was not allocated");
  }
};
/// Later launches of a kernel do the same with other numbers, and are not judged: that takes long.
static bool isFirst(const Function &function) {
  static std::set<const ptx::Entry *> judged;
  Lock lock(mutex);
  return judged.insert(function.code).second;
}
static void compute(const Function &function, unsigned blocks, unsigned threads, unsigned shared,
                    const std::vector<uint64_t> &parameters, std::vector<Access> &found) {
  try {
    Allocations allocations;
    auto judge = isFirst(function) ? std::make_unique<ptx::Judge>() : nullptr;
    found.clear();
    for (const ptx::Touched &touched :
         ptx::run(*function.code, int(blocks), int(threads), shared, parameters, allocations,
                  judge.get()))
      found.push_back({touched.written ? Access::Write : Access::Read, touched.begin,
                       touched.end - touched.begin});
  } catch (const std::exception &error) {
    wrong("%s", error.what());
  }
}
CUresult cuLaunchKernel(CUfunction handle, unsigned x, unsigned y, unsigned z, unsigned threads,
                        unsigned, unsigned, unsigned shared, CUstream stream, void **arguments,
                        void **) {
  auto &function = *(Function *)handle;
  const char *name = function.name.c_str();
  checkStream(name, stream);
  if (x == 0 || y != 1 || z != 1 || int(threads) != function.entry.threads)
    wrong("%s: launched with %u threads, not %d", name, threads, function.entry.threads);
  if (int(shared) > function.shared)
    wrong("%s: asks for %u bytes of shared memory", name, shared);
  if (!function.loaded)
    wrong("%s: is loaded with its first launch, which may wait for all that the GPU is doing", name);
  if (sticky != CUDA_SUCCESS)
    return sticky;
  std::vector<Access> accesses;
  std::vector<uint64_t> parameters;
  for (size_t i = 0; i < function.entry.addresses.size(); ++i) {
    parameters.push_back(*(uint64_t *)arguments[i]);
    if (!function.entry.addresses[i])
      continue;
    auto address = *(CUdeviceptr *)arguments[i];
    if (!isPinned(name, address, 2))
      checkRange(name, address, 2);
    if (!function.code)
      accesses.push_back({Access::Use, address, 2});
  }
  auto found = function.code ? std::make_shared<std::vector<Access>>() : nullptr;
  submit(stream, {name, accesses, [&function, x, threads, shared, parameters, found] {
                    if (found)
                      compute(function, x, threads, shared, parameters, *found);
                    bool goesWrong = rankHere == fault().rank && ++launched == fault().at;
                    if (goesWrong && fault().kind == "cuda")
                      sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
                    if (goesWrong && fault().kind == "hang")
                      return false;
                    Lock lock(mutex);
                    return ++launches[function.name], true;
                  }, found});
  return CUDA_SUCCESS;
}

// What the real cuDNN does with the kernels it has compiled (CudnnPlanTest).
CUresult cuLibraryLoadData(CUlibrary *library, const void *, CUjit_option *, void **, unsigned,
                           CUlibraryOption *, void **, unsigned) {
  return *library = CUlibrary(size_t(1)), CUDA_SUCCESS;
}
CUresult cuLibraryUnload(CUlibrary) { return CUDA_SUCCESS; }
CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary, const char *) {
  return *kernel = CUkernel(size_t(1)), CUDA_SUCCESS;
}
CUresult cuKernelGetFunction(CUfunction *function, CUkernel) {
  return *function = CUfunction(size_t(1)), CUDA_SUCCESS;
}
CUresult cuFuncGetAttribute(int *value, CUfunction_attribute, CUfunction) {
  return *value = 0, CUDA_SUCCESS;
}
CUresult cuKernelGetAttribute(int *value, CUfunction_attribute, CUkernel, CUdevice) {
  return *value = 0, CUDA_SUCCESS;
}
CUresult cuKernelSetAttribute(CUfunction_attribute, int, CUkernel, CUdevice) { return CUDA_SUCCESS; }

} // extern "C"
