//===- Registration.cpp - the arena, known to NCCL ----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cuda/Registration.h"

#include "common/monitor/Error.h"

#include <algorithm>
#include <cstdio>
#include <exception>

namespace meshwright::cuda {

/// Versions of NCCL that have what is called here, and keep to what is said of it.
static constexpr int firstWithBuffers = 21900, firstWithWindows = 22700;

/// Whether tensors of all ranks with which `rank` is in a group along `axes` lie at the same places.
static bool haveOneProgram(const Plan &plan, const std::vector<int> &axes, int rank) {
  std::vector<int> members = plan.groupMembers(axes, rank);
  return std::all_of(members.begin(), members.end(), [&](int member) {
    return plan.programOf(member) == plan.programOf(rank);
  });
}

/// The greatest of all ranks' `value`.
static int32_t most(RankGroup &ranks, int32_t value) {
  int32_t result = 0;
  ranks.allReduce(ElementType::I32, Reduction::Max, &value, &result, 1);
  return result;
}

Registration::Registration(MwContext &context, const Communication &communication,
                           const ArenaMemory &memory)
    : begin(reinterpret_cast<void *>(memory.begin())), bytes(size_t(memory.mappedBytes())) {
  const Nccl &nccl = Nccl::load();
  std::vector<ncclComm_t> pairs = communication.pairs();
  const Plan &plan = context.plan;
  if (plan.collectives.empty())
    return;
  ActivityScope activity(context.status, "registering the arena with NCCL");
  EnqueueScope enqueues(context.status);
  MW_NCCL(ncclGetVersion, &version);
  // A window has memory that can be handed to others, on all of its ranks.
  bool windows = version >= firstWithWindows && nccl.ncclCommWindowRegister &&
                 nccl.ncclCommWindowDeregister;
  bool anyRefused = most(*context.world, memory.refusal().empty() ? 0 : 1);
  for (size_t number = 0; number < plan.groups.size(); ++number) {
    ncclComm_t comm = communication.group(int32_t(number));
    if (!comm || context.memberships[number].size == 1)
      continue;
    ++communicators;
    ++context.status.enqueued;
    bool may = windows && !anyRefused && haveOneProgram(plan, plan.groups[number], context.rank());
    if (!addWindow(context, number, comm, may))
      addBuffer(comm);
  }
  for (ncclComm_t pair : pairs) {
    ++communicators;
    addBuffer(pair);
  }
  if (!memory.refusal().empty() && refusal.empty())
    refusal = text("the arena is memory that only its own process can use: ", memory.refusal());
  sayRefusals(*context.world);
}

/// Makes a window if this rank's group `may` have one and all of its members can. Every rank of the
/// world calls it for the same group of the plan, because members have no communicator of their own
/// but NCCL's.
bool Registration::addWindow(MwContext &context, size_t number, ncclComm_t comm, bool may) {
  ncclWindow_t window = nullptr;
  ncclResult_t result = ncclSuccess;
  if (may)
    result = Nccl::load().ncclCommWindowRegister(comm, begin, bytes, &window,
                                                 NCCL_WIN_COLL_SYMMETRIC);
  // Where it has none for these GPUs it says so by a null window alone. NCCL 2.27 and 2.28 register
  // the buffer then and return that as a window, which is used and let go of as one.
  bool made = result == ncclSuccess && window;
  if (may && !made)
    refuse("ncclCommWindowRegister", result);
  // Each rank would choose its way by its own windows.
  const Plan &plan = context.plan;
  int32_t mine = made;
  std::vector<int32_t> all(size_t(context.world->size()));
  context.world->allGather(ElementType::I32, &mine, all.data(), 1);
  std::vector<int> members = plan.groupMembers(plan.groups[number], context.rank());
  if (std::all_of(members.begin(), members.end(), [&](int rank) { return all[size_t(rank)]; })) {
    entries.push_back({comm, window, nullptr});
    return true;
  }
  if (made)
    Nccl::load().ncclCommWindowDeregister(comm, window);
  return false;
}

void Registration::addBuffer(ncclComm_t comm) {
  const Nccl &nccl = Nccl::load();
  if (version < firstWithBuffers || !nccl.ncclCommRegister || !nccl.ncclCommDeregister)
    return;
  void *buffer = nullptr;
  ncclResult_t result = nccl.ncclCommRegister(comm, begin, bytes, &buffer);
  if (result == ncclSuccess && buffer)
    entries.push_back({comm, nullptr, buffer});
  else
    refuse("ncclCommRegister", result);
}

void Registration::refuse(const std::string &call, ncclResult_t result) {
  if (refusal.empty())
    refusal = result == ncclSuccess
                  ? text(call, " has none for these GPUs or settings")
                  : text(call, ": ", Nccl::load().ncclGetErrorString(result));
}

/// The first rank with one speaks for all.
void Registration::sayRefusals(RankGroup &world) const {
  int size = world.size();
  int32_t first = size - most(world, refusal.empty() ? 0 : size - world.rank());
  if (first == world.rank())
    fprintf(stderr,
            "note: NCCL %d.%d.%d knows the arena of rank %d in %s only, and copies the rest through buffers of "
            "its own: %s\n",
            version / 10000, version / 100 % 100, version % 100, int(first),
            describe().empty() ? "no communicator" : describe().c_str(), refusal.c_str());
}

std::string Registration::describe() const {
  if (!communicators)
    return "";
  auto windows = std::count_if(entries.begin(), entries.end(),
                               [](const Entry &entry) { return entry.window != nullptr; });
  return text(windows, windows == 1 ? " window and " : " windows and ", int64_t(entries.size()) - windows,
              " buffers of ", communicators, communicators == 1 ? " communicator" : " communicators");
}

// The process ends with the run: nothing here may fail any more.
Registration::~Registration() {
  if (std::uncaught_exceptions())
    return;
  for (const Entry &entry : entries)
    if (entry.window)
      Nccl::load().ncclCommWindowDeregister(entry.comm, entry.window);
    else
      Nccl::load().ncclCommDeregister(entry.comm, entry.buffer);
}

} // namespace meshwright::cuda
