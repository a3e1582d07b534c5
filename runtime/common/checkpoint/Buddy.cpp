//===- Buddy.cpp - the state after each step in the memory of machines ------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/checkpoint/Buddy.h"

#include "common/checkpoint/OutputFile.h"
#include "common/communication/RankText.h"
#include "common/monitor/Error.h"

#include "common/train/Context.h"
#include "meshwright/runtime/LatestCheckpoint.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <unistd.h>

using namespace meshwright;
namespace fs = std::filesystem;

Buddy::Buddy(MwContext &context, const std::string &path, const std::vector<std::string> &saved, const std::string &resumed)
    : context(context), path(path) {
  prepareMemoryFolder(path, "--buddy");
  all = machinesOf(gatherText(*context.world, folderIdentity(path)));
  if (machines() > 1)
    peersOf(*context.world);
  if (!resumed.empty())
    kept.push_back(fs::path(resumed).filename());
  if (all.isLeader(context.rank())) {
    folder = std::make_unique<SaveFolder>(path, resumed, /*isOfRun=*/true, SaveFolder::ByRename, "--buddy");
    checkOwner(path, saved);
    std::error_code ignored;
    std::vector<std::string> others;
    for (const fs::directory_entry &entry : fs::directory_iterator(path, ignored))
      if (std::string name = entry.path().filename(); name.rfind("step-", 0) == 0 && (kept.empty() || name != kept.front()))
        others.push_back(name);
    for (const std::string &name : others)
      remove(name);
    writeOwner(path, saved.front());
    // One state is there already.
    int64_t bytes = bytesOn(size_t(all.of[size_t(context.rank())]));
    checkSpace(path, kept.empty() ? bytes : bytes / 2, "--buddy: the state after two steps");
  }
  context.world->barrier();
}

int64_t Buddy::bytesOn(size_t machine) const {
  int64_t bytes = 0;
  for (int rank = 0; rank < int(all.of.size()); ++rank) {
    int buddy = all.buddy(rank);
    int64_t holders = (all.of[size_t(rank)] == int(machine)) + (buddy >= 0 && all.of[size_t(buddy)] == int(machine));
    bytes += 2 * holders * shardBytes(context.plan, rank);
  }
  return bytes;
}

int64_t Buddy::mostBytes() const {
  int64_t most = 0;
  for (size_t machine = 0; machine < machines(); ++machine)
    most = std::max(most, bytesOn(machine));
  return most;
}

/// Sends each rank's files in `partial` to its buddy.
void Buddy::copyToBuddies(const std::string &partial, const std::vector<CheckpointFile> &files) {
  Communicator &world = peersOf(*context.world);
  std::string mine;
  for (const CheckpointFile &file : files)
    mine += file.path + '\n';
  std::vector<std::string> names = gatherText(world, mine);
  for (int from : all.sendingOrder()) {
    int to = all.buddy(from);
    if (world.rank() != from && world.rank() != to)
      continue;
    std::istringstream stream(names[size_t(from)]);
    stream.exceptions(std::ios::badbit); // Or a lack of memory would look like the end.
    for (std::string name; std::getline(stream, name);)
      if (world.rank() == from)
        sendFile(world, partial + "/" + name, to);
      else
        receiveFile(world, partial + "/" + name, from);
  }
}

void Buddy::keep(const VariableAddresses &addresses, const TrainingState &state) {
  ActivityScope activity(context.status, "keeping the state in memory");
  TraceScope span(context.trace.get(), "keep in memory", "io");
  RankGroup &world = *context.world;
  const Plan &plan = context.plan;
  try {
    checkState(context, addresses);
    // All machines have the one after it.
    if (kept.size() > 1) {
      if (folder)
        remove(kept.front());
      kept.pop_front();
    }
    int64_t bytes = folder ? bytesOn(size_t(all.of[size_t(context.rank())])) / 2 : 0;
    std::string begun = folder ? beginCheckpoint(plan, *folder, state.step, bytes) : "";
    std::string partial = gatherText(world, begun)[size_t(all.leader(all.of[size_t(context.rank())]))];
    std::vector<CheckpointFile> files = checkpointFiles(context, /*isSharded=*/true);
    CheckpointOutput output(plan, partial);
    writeTensors(context, addresses, files, &output);
    if (machines() > 1)
      copyToBuddies(partial, files);
    FileIds ids = gatherIds(world, output.ids());
    // Rank 0 knows what the run reads and computes, and when.
    int64_t now = fs::file_time_type::clock::now().time_since_epoch().count();
    std::string said = context.rank() == 0 ? std::to_string(now) + '\0' + stateText(plan, state, ids, /*isCommitted=*/false) : "";
    said = broadcastText(world, said, 0);
    fs::file_time_type time{fs::file_time_type::duration(std::strtoll(said.c_str(), nullptr, 10))};
    if (folder)
      publishCheckpoint(plan, *folder, state.step, said.substr(said.find('\0') + 1), time, /*keep=*/0);
  } catch (const Error &error) {
    std::string left = kept.empty() ? "" : text("; the state before that step is in ", path, "/", kept.back());
    fail("--buddy: keeping the state after step ", state.step - 1, " in memory: ", error.what(), left);
  }
  world.barrier();
  std::string name = checkpointName(state.step);
  kept.erase(std::remove(kept.begin(), kept.end(), name), kept.end()); // A step that is made again.
  kept.push_back(name);
}

Buddy::~Buddy() {
  if (folder && kept.empty())
    removeOwner(path);
}

void Buddy::remove(const std::string &name) {
  if (std::error_code error = folder->remove(name))
    fail("cannot remove ", path, "/", name, ": ", error.message());
}

void Buddy::clear() {
  context.world->barrier(); // What the run has instead is there.
  if (folder) {
    for (const std::string &name : kept)
      if (std::error_code error = folder->remove(name))
        fprintf(stderr, "note: --buddy: cannot remove %s/%s: %s\n", path.c_str(), name.c_str(), error.message().c_str());
    unlink((path + "/" + latestName).c_str());
  }
  kept.clear();
}
