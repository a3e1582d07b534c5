//===- FakeNccl.cpp - an NCCL whose ranks are threads of one process ------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// FakeGpu.cpp says what is checked. It is of version FAKE_NCCL_VERSION. Where it has a window, tensors of
// collectives lie at the same places of all members' memory. FAKE_NCCL_REFUSES has what it does not
// register: "windows", which it says by an error, "null-windows", which it says by none, "a-window", of rank 1
// alone, "buffers" or "all".
//
//===----------------------------------------------------------------------===//
#include "FakeCompute.h"
#include "FakeFault.h"
#include "FakeStreams.h"
#include "nccl.h"

#include <algorithm>
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

thread_local int fake::rankHere = 0;
static thread_local long communicated = 0;

const Fault &fake::fault() {
  static const Fault parsed = [] {
    Fault result;
    const char *text = getenv("FAKE_GPU_FAULT");
    char kind[16] = {};
    if (text && sscanf(text, "%15[a-z]:%d:%ld", kind, &result.rank, &result.at) == 3)
      result.kind = kind;
    return result;
  }();
  return parsed;
}

namespace {
/// One communicator, for all of its members.
struct Shared {
  int size;
  std::string name;
  std::vector<std::string> calls;
  struct Split {
    std::map<int, std::pair<int, int>> wishes; ///< of a member: color and key
    std::map<int, std::shared_ptr<Shared>> made; ///< by color
  };
  std::vector<Split> splits;
  std::shared_ptr<Members> members = std::make_shared<Members>(size);
  /// Which ends of a way from one member to another have made a call for it.
  std::map<std::pair<int, int>, std::set<bool>> connected = {};
};
std::mutex meeting;
std::condition_variable arrived;
std::shared_ptr<Shared> worldOfAll;
} // namespace
struct ncclComm {
  std::shared_ptr<Shared> shared;
  int rank;
  size_t calls = 0, splits = 0;
  bool failed = false, working = false;
  std::set<std::pair<int, int>> ways = {}; ///< that are connected
  const char *window = nullptr; ///< memory of which all members have as much
};
/// The calls between ncclGroupStart and ncclGroupEnd, numbered.
static thread_local uint64_t group = 0, groups = 0;

/// The first message between two members connects them: the calls of both return when both have
/// come, and memory is allocated.
static void connect(ncclComm_t comm, int from, int to, bool sends) {
  // In a group all its ways are connected at once. Processes do not know of each other here.
  if (group || getenv("FAKE_GPU_MEETING") || !comm->ways.insert({from, to}).second)
    return;
  checkNoCapture("the first message between two ranks");
  std::unique_lock<std::mutex> lock(meeting);
  auto &ends = comm->shared->connected[{from, to}];
  ends.insert(sends);
  arrived.notify_all();
  if (!arrived.wait_for(lock, std::chrono::seconds(60), [&] { return ends.size() == 2; }))
    wrong("the first message of %s from %d to %d: only the %s has come", comm->shared->name.c_str(),
          from, to, sends ? "sender" : "receiver");
}

/// Memory that NCCL was told of.
static std::map<CUdeviceptr, int> known;
void fake::checkUnregistered(CUdeviceptr address) {
  if (known[address])
    wrong("cuMemUnmap: %llx is registered with NCCL", (unsigned long long)address);
}

/// Bytes of an element.
static size_t widthOf(ncclDataType_t type) {
  return type == ncclUint8 ? 1 : type == ncclFloat32 || type == ncclInt32 ? 4 : 2;
}
static void checkData(const char *what, const void *data, size_t count, ncclDataType_t type) {
  checkRange(what, CUdeviceptr(data), count * widthOf(type));
}

/// Of a process that meets others in a folder: a file there, named by its number, as long as it lives or when
/// it was killed.
struct Presence {
  ~Presence() {
    if (!folder.empty())
      std::filesystem::remove(path(getpid()));
  }
  std::string path(int process) const { return folder + "/alive-" + std::to_string(process); }
  void begin(const char *where) {
    folder = where;
    fclose(fopen(path(getpid()).c_str(), "w"));
  }
  bool somebodyWasKilled() const {
    if (folder.empty())
      return false;
    for (const auto &entry : std::filesystem::directory_iterator(folder)) {
      int process = 0;
      if (sscanf(entry.path().filename().c_str(), "alive-%d", &process) == 1 && kill(process, 0) != 0)
        return true;
    }
    return false;
  }
  std::string folder;
} presence;

/// What a stream does of NCCL's: `body`, unless something is to go wrong here.
static bool communicate(ncclComm_t comm, const std::function<void()> &body) {
  const Fault &planned = fault();
  bool here = rankHere == planned.rank || planned.rank < 0;
  // Of a rank that is gone the others wait for ever.
  bool waits = planned.kind == "kill" && !here;
  if ((planned.kind == "stall" || planned.kind == "error" || planned.kind == "kill") &&
      (here || waits) && ++communicated == planned.at) {
    // The others are there first, as on GPUs they would be before long.
    const char *folder = getenv("FAKE_GPU_MEETING");
    std::string arrived = std::string(folder ? folder : ".") + "/arrived";
    if (waits)
      fclose(fopen(arrived.c_str(), "w"));
    if (planned.kind == "kill" && here) {
      for (int tries = 0; tries < 4000 && access(arrived.c_str(), F_OK) != 0; ++tries)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      raise(SIGKILL);
    }
    comm->failed = planned.kind == "error";
    comm->working = true;
    return false;
  }
  if (presence.somebodyWasKilled()) {
    comm->working = true;
    return false;
  }
  body();
  return true;
}

/// Compares a member's next call with what the others called there.
static void meet(ncclComm_t comm, const char *what, size_t count, ncclDataType_t type, int other,
                 cudaStream_t stream, std::vector<Access> accesses,
                 const std::function<void(Members &)> &compute, std::vector<const void *> tensors = {}) {
  communicates = true;
  char words[200];
  snprintf(words, sizeof(words), "%s of %zu elements of type %d, %d", what, count, int(type), other);
  for (const void *tensor : tensors)
    if (comm->window)
      snprintf(words + strlen(words), sizeof(words) - strlen(words), ", at %td of the window",
               static_cast<const char *>(tensor) - comm->window);
  for (Access &access : accesses)
    access.bytes = access.bytes * count * widthOf(type);
  std::string text = words;
  submit(CUstream(stream), {what, accesses, [=] {
    return communicate(comm, [&] {
      std::unique_lock<std::recursive_mutex> lock(mutex);
      auto &calls = comm->shared->calls;
      if (comm->calls == calls.size())
        calls.push_back(text);
      else if (calls[comm->calls] != text)
        wrong("communicator %s, call %zu: member %d calls %s, another %s",
              comm->shared->name.c_str(), comm->calls, comm->rank, text.c_str(),
              calls[comm->calls].c_str());
      ++comm->calls;
      lock.unlock();
      if (computes())
        compute(*comm->shared->members);
    });
  }});
}
/// Memory of `times` times a call's count of elements.
static Access reading(const void *data, size_t times = 1) {
  return {Access::Read, CUdeviceptr(data), times};
}
static Access writing(const void *data, size_t times = 1) {
  return {Access::Write, CUdeviceptr(data), times};
}

static Type kindOf(ncclDataType_t type) {
  return type == ncclFloat32 ? Type::F32 : type == ncclBfloat16 ? Type::Bf16
       : type == ncclFloat16 ? Type::F16 : type == ncclUint8 ? Type::U8 : Type::I32;
}
/// What the last member to come does.
static std::function<void(Members &)> together(ncclComm_t comm, Members::Kind kind, const void *from,
                                               void *to, size_t count, ncclDataType_t type,
                                               ncclRedOp_t op, int root) {
  return [=, rank = comm->rank](Members &members) {
    members.collective(rank, kind, from, to, count, kindOf(type), op == ncclMax, root);
  };
}

/// Compares what members of a communicator call outside of streams.
static void meetNow(ncclComm_t comm, const std::string &text) {
  Lock lock(mutex);
  auto &calls = comm->shared->calls;
  if (comm->calls == calls.size())
    calls.push_back(text);
  else if (calls[comm->calls] != text)
    wrong("communicator %s, call %zu: member %d calls %s, another %s", comm->shared->name.c_str(), comm->calls,
          comm->rank, text.c_str(), calls[comm->calls].c_str());
  ++comm->calls;
}

extern "C" {
ncclResult_t ncclGetVersion(int *version) {
  const char *text = getenv("FAKE_NCCL_VERSION");
  return *version = text ? atoi(text) : 22809, ncclSuccess;
}
static bool refuses(const char *what) {
  const char *text = getenv("FAKE_NCCL_REFUSES");
  return text && (strcmp(text, what) == 0 || strcmp(text, "all") == 0);
}
static void know(const void *memory, int change) {
  Lock lock(mutex);
  known[CUdeviceptr(memory)] += change;
}
ncclResult_t ncclCommRegister(ncclComm_t comm, void *memory, size_t bytes, void **handle) {
  checkContext("ncclCommRegister");
  checkNoCapture("ncclCommRegister");
  (void)isShared(CUdeviceptr(memory), bytes);
  *handle = nullptr;
  if (refuses("buffers"))
    return ncclInvalidUsage;
  (void)comm;
  countRegistered("buffers");
  know(*handle = memory, 1);
  return ncclSuccess;
}
ncclResult_t ncclCommDeregister(ncclComm_t, void *handle) { return know(handle, -1), ncclSuccess; }
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *memory, size_t bytes, ncclWindow_t *window, int flags) {
  checkContext("ncclCommWindowRegister");
  checkNoCapture("ncclCommWindowRegister");
  int version = 0;
  ncclGetVersion(&version);
  if (version < 22700)
    wrong("ncclCommWindowRegister: NCCL %d has none", version);
  if (flags != NCCL_WIN_COLL_SYMMETRIC)
    wrong("ncclCommWindowRegister: collectives make nothing of the window");
  if (!isShared(CUdeviceptr(memory), bytes))
    wrong("ncclCommWindowRegister: other processes cannot have the memory");
  *window = nullptr;
  // All members register as much.
  meetNow(comm, "ncclCommWindowRegister of " + std::to_string(bytes));
  if (refuses("windows") || (refuses("a-window") && rankHere == 1))
    return ncclSystemError;
  if (refuses("null-windows"))
    return ncclSuccess;
  countRegistered("windows");
  comm->window = static_cast<const char *>(memory);
  know(memory, 1);
  return *window = ncclWindow_t(comm), ncclSuccess;
}
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
  if (!comm->window || window != ncclWindow_t(comm))
    wrong("ncclCommWindowDeregister: no window of the communicator's");
  know(comm->window, -1);
  return comm->window = nullptr, ncclSuccess;
}
const char *ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited or there was a network error" : "error";
}
const char *ncclGetLastError(ncclComm_t) { return "error"; }
ncclResult_t ncclGetUniqueId(ncclUniqueId *id) { return memset(id, 7, sizeof(*id)), ncclSuccess; }
ncclResult_t ncclCommInitRank(ncclComm_t *comm, int size, ncclUniqueId id, int rank) {
  if (id.internal[0] != 7)
    wrong("ncclCommInitRank: the id is not the one of rank 0");
  rankHere = rank;
  while (fault().kind == "init" && fault().rank == rank)
    pause();
  std::unique_lock<std::mutex> lock(meeting);
  if (!worldOfAll) {
    worldOfAll = std::make_shared<Shared>(Shared{size, "world", {}, {}});
    if (const char *folder = getenv("FAKE_GPU_MEETING"))
      presence.begin(folder);
  }
  return *comm = new ncclComm{worldOfAll, rank}, ncclSuccess;
}
/// Reads from files what the members that are other processes wish.
static void meetInFolder(const std::string &folder, const ncclComm &comm, size_t number, int color,
                         int key) {
  auto path = [&](int rank) {
    std::string name = comm.shared->name + "-" + std::to_string(number) + "-" + std::to_string(rank);
    std::replace(name.begin(), name.end(), '/', '_');
    return folder + "/" + name;
  };
  FILE *mine = fopen((path(comm.rank) + ".new").c_str(), "w");
  fprintf(mine, "%d %d", color, key);
  fclose(mine);
  rename((path(comm.rank) + ".new").c_str(), path(comm.rank).c_str());
  auto &splits = comm.shared->splits;
  splits.resize(std::max(splits.size(), number + 1));
  for (int rank = 0; rank < comm.shared->size; ++rank) {
    FILE *file = nullptr;
    while (!(file = fopen(path(rank).c_str(), "r")))
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    auto &[itsColor, itsKey] = splits[number].wishes[rank];
    if (fscanf(file, "%d %d", &itsColor, &itsKey) != 2)
      wrong("%s: no wish of rank %d", path(rank).c_str(), rank);
    fclose(file);
  }
}
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *made,
                           ncclConfig_t *config) {
  countChannels(config->maxCTAs);
  std::unique_lock<std::mutex> lock(meeting);
  Shared &shared = *comm->shared;
  size_t number = comm->splits++;
  if (const char *folder = getenv("FAKE_GPU_MEETING"))
    meetInFolder(folder, *comm, number, color, key);
  if (shared.splits.size() <= number)
    shared.splits.resize(number + 1);
  shared.splits[number].wishes[comm->rank] = {color, key};
  arrived.notify_all();
  if (!arrived.wait_for(lock, std::chrono::seconds(60), [&] {
        return int(shared.splits[number].wishes.size()) == shared.size;
      }))
    wrong("split %zu of %s: %zu of %d members came", number, shared.name.c_str(),
          shared.splits[number].wishes.size(), shared.size);
  *made = nullptr;
  if (color == NCCL_SPLIT_NOCOLOR)
    return ncclSuccess;
  int rank = 0, size = 0;
  for (auto &[member, wish] : shared.splits[number].wishes)
    if (wish.first == color) {
      ++size;
      rank += std::make_pair(wish.second, member) < std::make_pair(key, comm->rank);
    }
  auto &together = shared.splits[number].made[color];
  if (!together)
    together = std::make_shared<Shared>(
        Shared{size, shared.name + "/" + std::to_string(number) + "." + std::to_string(color), {}, {}});
  return *made = new ncclComm{together, rank}, ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
  return *error = comm->failed ? ncclRemoteError : ncclSuccess, ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t) {
  // The first would wait for kernels of the others.
  static thread_local int alone = 0;
  if (!group && ++alone > 1)
    wrong("ncclCommAbort of several communicators, one after the other");
  // Once, however many there are.
  static bool said = (fputs("fake GPU: ncclCommAbort\n", stderr), true);
  return (void)said, ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (comm->working)
    wrong("ncclCommDestroy waits for a call that never ends");
  return ncclSuccess;
}
ncclResult_t ncclGroupStart() {
  if (group)
    wrong("ncclGroupStart inside of a group");
  return group = ++groups, ncclSuccess;
}
ncclResult_t ncclGroupEnd() { return group = 0, ncclSuccess; }
ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  checkData("ncclAllReduce", from, count, type);
  checkData("ncclAllReduce", to, count, type);
  meet(comm, "ncclAllReduce", count, type, op, stream, {reading(from), writing(to)},
       together(comm, Members::Kind::AllReduce, from, to, count, type, op, 0), {from, to});
  return ncclSuccess;
}
ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  checkData("ncclAllGather", from, count, type);
  checkData("ncclAllGather", to, count * size_t(comm->shared->size), type);
  meet(comm, "ncclAllGather", count, type, 0, stream,
       {reading(from), writing(to, size_t(comm->shared->size))},
       together(comm, Members::Kind::AllGather, from, to, count, type, ncclSum, 0), {to});
  return ncclSuccess;
}
ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  checkData("ncclReduceScatter", from, count * size_t(comm->shared->size), type);
  checkData("ncclReduceScatter", to, count, type);
  meet(comm, "ncclReduceScatter", count, type, op, stream,
       {reading(from, size_t(comm->shared->size)), writing(to)},
       together(comm, Members::Kind::ReduceScatter, from, to, count, type, op, 0), {from});
  return ncclSuccess;
}
ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  checkData("ncclBroadcast", to, count, type);
  std::vector<Access> accesses{writing(to)};
  if (comm->rank == root) {
    checkData("ncclBroadcast", from, count, type);
    accesses.push_back(reading(from));
  }
  meet(comm, "ncclBroadcast", count, type, root, stream, accesses,
       together(comm, Members::Kind::Broadcast, from, to, count, type, ncclSum, root), {to});
  return ncclSuccess;
}
ncclResult_t ncclReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                        int root, ncclComm_t comm, cudaStream_t stream) {
  checkData("ncclReduce", from, count, type);
  std::vector<Access> accesses{reading(from)};
  if (comm->rank == root) {
    checkData("ncclReduce", to, count, type);
    accesses.push_back(writing(to));
  }
  meet(comm, "ncclReduce", count, type, root, stream, accesses,
       together(comm, Members::Kind::Reduce, from, to, count, type, op, root), {from});
  return ncclSuccess;
}
static ncclResult_t message(const char *what, ncclComm_t comm, int from, int to, size_t count,
                            Access access, long change, cudaStream_t stream) {
  if (from >= comm->shared->size || to >= comm->shared->size)
    wrong("%s: member %d or %d of %d", what, from, to, comm->shared->size);
  std::string channel = comm->shared->name + " from " + std::to_string(from) + " to " +
                        std::to_string(to) + " of " + std::to_string(count);
  connect(comm, from, to, change > 0);
  auto taken = change > 0 && computes() ? std::make_shared<Flag>() : nullptr;
  Work work{what, {access}, [=] {
              return communicate(comm, [&] {
                countMessage(channel, change);
                auto data = (void *)access.begin;
                if (computes() && change > 0)
                  comm->shared->members->send(from, to, data, access.bytes, *taken);
                else if (computes())
                  comm->shared->members->receive(from, to, data, access.bytes);
              });
            }};
  work.sends = taken;
  work.group = group;
  submit(CUstream(stream), std::move(work));
  return ncclSuccess;
}
ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  checkData("ncclSend", from, count, type);
  communicates |= count > 1; // One word connects two ranks.
  return message("ncclSend", comm, comm->rank, peer, count, {Access::Read, CUdeviceptr(from), count * widthOf(type)},
                 1, stream);
}
ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  checkData("ncclRecv", to, count, type);
  return message("ncclRecv", comm, peer, comm->rank, count, {Access::Write, CUdeviceptr(to), count * widthOf(type)},
                 -1, stream);
}
} // extern "C"
