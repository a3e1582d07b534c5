//===- Communication.cpp - the streams and communicators of a GPU ---------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "cuda/Communication.h"

#include "common/launch/Launch.h"
#include "common/monitor/Error.h"
#include "meshwright/runtime/cuda/NcclChannels.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace meshwright::cuda {

/// Goes before computation where both could go on: others wait for it.
static CUstream makeStream() {
  int least = 0, greatest = 0;
  CUstream stream = nullptr;
  MW_CUDA(cuCtxGetStreamPriorityRange, &least, &greatest);
  MW_CUDA(cuStreamCreateWithPriority, &stream, CU_STREAM_NON_BLOCKING, greatest);
  return stream;
}

Communication::Communication(const Plan &plan, RankGroup &worldCommunicator, RankStatus &status,
                             CUstream compute)
    : plan(plan), rank(worldCommunicator.rank()), compute(compute), groups(plan.groups.size()) {
  stream = makeStream();
  void *words = nullptr;
  MW_CUDA(cuMemHostAlloc, &words, 2 * sizeof(uint64_t), CU_MEMHOSTALLOC_DEVICEMAP);
  progress = static_cast<volatile uint64_t *>(words);
  progress[0] = progress[1] = 0;
  MW_CUDA(cuMemHostGetDevicePointer, &progressOnGpu, words, 0);
  if (plan.collectives.empty())
    return;
  ncclUniqueId id;
  std::memset(&id, 0, sizeof(id));
  if (rank == 0)
    MW_NCCL(ncclGetUniqueId, &id);
  static_assert(sizeof(id) % 4 == 0);
  worldCommunicator.broadcast(ElementType::I32, &id, sizeof(id) / 4, 0);
  std::vector<int> others;
  for (int other = 0; other < worldCommunicator.size(); ++other)
    if (other != rank)
      others.push_back(other);
  // From here on NCCL waits for the others, and does not say so.
  WaitScope wait(status, "the start of NCCL; ranks that print no such report are missing,",
                 std::move(others));
  MW_NCCL(ncclCommInitRank, &world, worldCommunicator.size(), id, rank);
  makeGroups(wait);
  makeEdges(wait);
}

// The process ends with the run: nothing here may fail any more.
Communication::~Communication() {
  for (auto &[key, edge] : edges) {
    if (edge.comm)
      Nccl::load().ncclCommDestroy(edge.comm);
    if (edge.stream)
      Driver::load().cuStreamDestroy(edge.stream);
  }
  for (ncclComm_t group : groups)
    if (group)
      Nccl::load().ncclCommDestroy(group);
  if (world)
    Nccl::load().ncclCommDestroy(world);
  Driver::load().cuMemFreeHost(const_cast<uint64_t *>(progress));
  Driver::load().cuStreamDestroy(stream);
}

bool Communication::hasMessages() const {
  return std::any_of(plan.collectives.begin(), plan.collectives.end(), isMessage);
}

/// A communicator with at most `channels` channels, or as many as NCCL likes for 0, split off the
/// world's.
static ncclComm_t split(ncclComm_t world, int color, int key, int64_t channels) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  if (channels)
    config.maxCTAs = int(channels);
  ncclComm_t made = nullptr;
  MW_NCCL(ncclCommSplit, world, color, key, &made, &config);
  return made;
}

/// Every rank splits its groups off in the plan's order.
void Communication::makeGroups(WaitScope &wait) {
  // Beside computation collectives leave it most of the GPU; where it waits they may have all.
  std::map<int64_t, bool> used; // and beside computation
  for (const CollectiveEntry &entry : plan.collectives)
    if (!isMessage(entry))
      used[entry.group] |= entry.started;
  for (auto [number, overlaps] : used) {
    std::vector<int> members = plan.groupMembers(plan.groups[size_t(number)], rank);
    auto groupRank = std::find(members.begin(), members.end(), rank) - members.begin();
    // The first member names the group; places in it are the keys.
    groups[size_t(number)] =
        split(world, members.front(), int(groupRank), overlaps ? ncclGroupChannels : 0);
    wait.progress();
  }
}

/// NCCL connects two ranks with the first message between them, for which both wait in their
/// calls. Here all do so in one order, which that of the program's first messages need not be.
void Communication::connect(const Edge &edge, CUdeviceptr word) const {
  auto memory = reinterpret_cast<void *>(word);
  CUstream used = edge.stream ? edge.stream : stream;
  if (edge.stream)
    MW_NCCL(ncclSend, memory, 1, ncclInt32, /*peer=*/1, edge.comm, used);
  else
    MW_NCCL(ncclRecv, memory, 1, ncclInt32, /*peer=*/0, edge.comm, used);
  MW_CUDA(cuStreamSynchronize, used);
}

/// Every rank takes part in the splits of all rounds, also where it is in none of their pairs.
void Communication::makeEdges(WaitScope &wait) {
  // As others set it who want streams to wait for each other.
  constexpr int leastQueues = 8;
  if (hasMessages() && environmentNumber("CUDA_DEVICE_MAX_CONNECTIONS", 1) < leastQueues)
    fail("CUDA_DEVICE_MAX_CONNECTIONS is ", getenv("CUDA_DEVICE_MAX_CONNECTIONS"),
         ": ranks that send messages need ", leastQueues, " or more, as messages would wait for "
         "each other for ever; unset it");
  CUdeviceptr word = 0;
  for (const std::vector<MessagePair> &round : roundsOf(messagePairs(plan))) {
    auto isMine = [this](const MessagePair &pair) { return pair.from == rank || pair.to == rank; };
    auto mine = std::find_if(round.begin(), round.end(), isMine);
    bool sends = mine != round.end() && mine->from == rank;
    ncclComm_t comm = split(world, mine == round.end() ? NCCL_SPLIT_NOCOLOR : mine->from,
                            sends ? 0 : 1, ncclMessageChannels);
    wait.progress();
    if (mine == round.end())
      continue;
    Edge &edge = edges[{mine->group, mine->from, mine->to}];
    edge.comm = comm;
    if (sends)
      edge.stream = makeStream();
    if (!word)
      MW_CUDA(cuMemAlloc, &word, sizeof(int32_t));
    connect(edge, word);
  }
  if (word)
    MW_CUDA(cuMemFree, word);
}

std::vector<ncclComm_t> Communication::pairs() const {
  std::vector<ncclComm_t> result;
  for (const auto &[pair, edge] : edges)
    result.push_back(edge.comm);
  return result;
}

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

void Communication::note(int64_t op) {
  ++noted;
  MW_CUDA(cuStreamWriteValue64, stream, progressOnGpu, noted << 32 | uint64_t(op + 1), 0);
}

void Communication::beginRun() {
  used = false;
  next = -1;
  for (auto &[start, event] : started)
    event.forget();
  for (auto &[key, edge] : edges)
    edge.sent.forget();
}

void Communication::endRun() {
  if (used) {
    communicated.record(stream);
    communicated.holdUp(compute);
  }
  finishSends();
}

void Communication::begin(int32_t op) {
  used = true;
  computed.record(compute);
  computed.holdUp(stream);
  note(op);
}

void Communication::end() {
  note(-1);
  if (next >= 0) {
    started[next].record(stream);
    next = -1;
    return;
  }
  communicated.record(stream);
  communicated.holdUp(compute);
}

void Communication::wait(int32_t start) {
  if (auto found = started.find(start); found != started.end())
    found->second.holdUp(compute);
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

int Communication::worldRank(int32_t group, int32_t groupRank) const {
  return plan.groupMembers(plan.groups.at(size_t(group)), rank).at(size_t(groupRank));
}

Communication::Edge &Communication::edge(int32_t group, int from, int to) {
  auto found = edges.find({group, from, to});
  if (found == edges.end())
    fail("the plan has no messages of group ", group, " from rank ", from, " to rank ", to);
  return found->second;
}

void Communication::send(int32_t group, int32_t peer, ncclDataType_t type, const void *input,
                         size_t count, size_t bytes, void *buffer, CUstream stream) {
  Edge &way = edge(group, rank, worldRank(group, peer));
  // The buffer is free when the message before has been taken.
  way.sent.holdUp(stream);
  MW_CUDA(cuMemcpyDtoDAsync, CUdeviceptr(buffer), CUdeviceptr(input), bytes, stream);
  way.copied.record(stream);
  way.copied.holdUp(way.stream);
  MW_NCCL(ncclSend, buffer, count, type, /*peer=*/1, way.comm, way.stream);
  way.sent.record(way.stream);
}

void Communication::receive(int32_t group, int32_t peer, ncclDataType_t type, void *output,
                            size_t count, CUstream stream) {
  Edge &way = edge(group, worldRank(group, peer), rank);
  MW_NCCL(ncclRecv, output, count, type, /*peer=*/0, way.comm, stream);
}

void Communication::finishSends() {
  CUdeviceptr finishing = progressOnGpu + sizeof(uint64_t);
  auto sends = [](const auto &entry) { return entry.second.stream != nullptr; };
  if (std::none_of(edges.begin(), edges.end(), sends))
    return;
  MW_CUDA(cuStreamWriteValue64, compute, finishing, 1, 0);
  for (auto &[key, edge] : edges)
    if (edge.stream)
      edge.sent.holdUp(compute);
  MW_CUDA(cuStreamWriteValue64, compute, finishing, 0, 0);
}

//===----------------------------------------------------------------------===//
// Watching
//===----------------------------------------------------------------------===//

void Communication::check() const {
  auto look = [](ncclComm_t comm, const std::string &whose) {
    ncclResult_t error = ncclSuccess;
    if (!comm)
      return;
    MW_NCCL(ncclCommGetAsyncError, comm, &error);
    if (error != ncclSuccess && error != ncclInProgress)
      cuda::check(error, ("NCCL's communication of " + whose).c_str());
  };
  for (size_t i = 0; i < groups.size(); ++i)
    look(groups[i], text("group ", i, " (", plan.axesText(plan.groups[i]), ")"));
  for (const auto &[key, edge] : edges)
    look(edge.comm, text("messages from rank ", key.from, " to rank ", key.to));
}

void Communication::abort() const {
  // All in one group: of several that hang, the end of one would wait for the others.
  Nccl::load().ncclGroupStart();
  for (const auto &[key, edge] : edges)
    if (edge.comm)
      Nccl::load().ncclCommAbort(edge.comm);
  for (ncclComm_t group : groups)
    if (group)
      Nccl::load().ncclCommAbort(group);
  if (world)
    Nccl::load().ncclCommAbort(world);
  Nccl::load().ncclGroupEnd();
}

bool Communication::report(RankStatus &status) {
  uint64_t now = *progress;
  int op = int(now & 0xFFFFFFFFu) - 1;
  if (now != seen)
    status.clearWaiting();
  seen = now;
  status.collective.store(op, std::memory_order_relaxed);
  std::vector<int> peers;
  if (op < 0 && progress[1]) {
    // A graph has streams of its own, so that all who are sent to may be missing.
    std::vector<int> all;
    for (const auto &[key, edge] : edges) {
      if (!edge.stream)
        continue;
      all.push_back(key.to);
      if (Driver::load().cuStreamQuery(edge.stream) == CUDA_ERROR_NOT_READY)
        peers.push_back(all.back());
    }
    if (peers.empty())
      peers = all;
    status.setWaiting(peers);
    return true;
  }
  if (op < 0 || op >= int(plan.collectives.size()))
    return false;
  const CollectiveEntry &entry = plan.collectives[size_t(op)];
  for (int member : plan.groupMembers(plan.groups[size_t(entry.group)], rank))
    if (member != rank)
      peers.push_back(member);
  if (isMessage(entry))
    peers = {worldRank(int32_t(entry.group), int32_t(entry.peer))};
  status.setWaiting(peers);
  return true;
}

} // namespace meshwright::cuda
