//===- MachineMemory.cpp - what machines keep of a run's state in memory ----===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/checkpoint/MachineMemory.h"

#include "common/checkpoint/Checksum.h"
#include "common/checkpoint/FindCheckpoint.h"
#include "common/checkpoint/Json.h"
#include "common/checkpoint/OutputFile.h"
#include "common/checkpoint/SaveFolder.h"
#include "common/communication/RankText.h"
#include "common/monitor/Error.h"
#include "meshwright/runtime/FileArguments.h"
#include "meshwright/runtime/LatestCheckpoint.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <linux/magic.h>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <tuple>
#include <unistd.h>

using namespace meshwright;
using Json = nlohmann::json;
namespace fs = std::filesystem;

static constexpr char stateFile[] = "state.json";
/// In the folder: where the run saves whose states are there.
static constexpr char ownerFile[] = ".run";
/// Bytes of a file that are sent at once.
static constexpr int64_t pieceBytes = int64_t(16) << 20;

//===--- machines ----------------------------------------------------------------===//

int Machines::buddy(int rank) const {
  if (ranks.size() < 2)
    return -1;
  size_t machine = size_t(of[size_t(rank)]);
  const std::vector<int> &mine = ranks[machine], &next = ranks[(machine + 1) % ranks.size()];
  auto place = size_t(std::find(mine.begin(), mine.end(), rank) - mine.begin());
  return next[place % next.size()];
}

std::vector<int> Machines::sendingOrder() const {
  // Machines send by turns, those with even numbers first. Of an odd number of machines the last one sends to the first,
  // which has an even number too, so it has a turn of its own.
  size_t count = ranks.size();
  auto turn = [&](size_t machine) { return count % 2 && machine + 1 == count ? 2 : machine % 2; };
  std::vector<int> order;
  for (size_t now = 0; now < 3; ++now)
    for (size_t machine = 0; machine < count; ++machine)
      if (turn(machine) == now)
        order.insert(order.end(), ranks[machine].begin(), ranks[machine].end());
  return order;
}

Machines meshwright::machinesOf(const std::vector<std::string> &identities) {
  Machines machines;
  std::map<std::string, int> known;
  for (size_t rank = 0; rank < identities.size(); ++rank) {
    auto [found, isNew] = known.emplace(identities[rank], int(machines.ranks.size()));
    if (isNew)
      machines.ranks.emplace_back();
    machines.ranks[size_t(found->second)].push_back(int(rank));
    machines.of.push_back(found->second);
  }
  return machines;
}

std::string meshwright::folderIdentity(const std::string &folder) {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  struct stat status = {};
  if (stat(folder.c_str(), &status) != 0)
    fail("--buddy ", folder, ": cannot look at the folder: ", errnoText(errno), ": name another one");
  // Hosts may have the same name, and a first tmpfs each.
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  return text(name, " ", boot, " ", uint64_t(status.st_dev), " ", uint64_t(status.st_ino));
}

void meshwright::prepareMemoryFolder(const std::string &folder, const char *flag) {
  prepareDirectory(folder, flag);
  struct statfs system = {};
  if (statfs(folder.c_str(), &system) != 0)
    fail(flag, " ", folder, ": cannot look at its file system: ", errnoText(errno), ": name another folder");
  if (system.f_type != TMPFS_MAGIC && system.f_type != RAMFS_MAGIC)
    fail(flag, " ", folder, ": the folder is not in memory, and after every step the state is written there: name one in ",
         "/dev/shm or on another tmpfs");
}

Communicator &meshwright::peersOf(RankGroup &world) {
  auto *peers = dynamic_cast<Communicator *>(&world);
  if (!peers)
    fail("--buddy: ranks of several machines that meet without MPI can send to rank 0 alone: start them under mpirun, or "
         "give --save DIR:K with a small K");
  return *peers;
}

//===--- whose states these are ---------------------------------------------------===//

static bool isState(const fs::directory_entry &entry) { return entry.path().filename().string().rfind("step-", 0) == 0; }

void meshwright::checkOwner(const std::string &folder, const std::vector<std::string> &saved) {
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  if (error || std::none_of(fs::begin(entries), fs::end(entries), isState))
    return;
  std::string owner;
  if (!std::getline(std::ifstream(folder + "/" + ownerFile), owner))
    fail("--buddy ", folder, ": the checkpoints there are not --buddy's: name a folder of its own");
  auto isOwner = [&](const std::string &path) { return canonicalPath(path) == owner; };
  if (std::none_of(saved.begin(), saved.end(), isOwner))
    fail("--buddy ", folder, ": a state is there of the run that saves in ", owner, ": name another folder, or go on with that run, or ",
         "remove the folder");
}

void meshwright::writeOwner(const std::string &folder, const std::string &saved) {
  std::string path = folder + "/" + ownerFile;
  OutputFile file(path + ".part");
  file.write(canonicalPath(saved).string() + "\n");
  file.rename(path);
  file.close();
}

void meshwright::removeOwner(const std::string &folder) { unlink((folder + "/" + ownerFile).c_str()); }

MemoryTaken meshwright::takenIn(const std::string &folder, const std::string &resumed) {
  MemoryTaken taken;
  std::error_code error;
  for (const fs::directory_entry &state : fs::directory_iterator(folder, error)) {
    if (state.is_symlink(error) || !state.is_directory(error))
      continue;
    for (const fs::directory_entry &file : fs::recursive_directory_iterator(state.path(), error))
      if (file.is_regular_file(error))
        (!resumed.empty() && isSameFile(state.path(), resumed) ? taken.resumed : taken.others) += int64_t(file.file_size(error));
  }
  return taken;
}

//===--- files -------------------------------------------------------------------===//

void meshwright::sendFile(Communicator &world, const std::string &path, int to) {
  std::ifstream file(path, std::ios::binary);
  std::error_code error;
  auto bytes = int64_t(fs::file_size(path, error));
  if (!file || error)
    fail("--buddy: cannot read ", path, ": ", error ? error.message() : errnoText(errno));
  int32_t length[2] = {int32_t(bytes >> 31), int32_t(bytes & INT32_MAX)};
  world.send(ElementType::I32, length, 2, to);
  std::vector<char> piece(size_t(std::min(pieceBytes, bytes) + 3) / 4 * 4);
  for (int64_t left = bytes; left > 0; left -= pieceBytes) {
    int64_t now = std::min(left, pieceBytes);
    if (!file.read(piece.data(), now))
      fail("--buddy: cannot read ", path, ": it ends after ", grouped(uint64_t(bytes - left)), " bytes of ", grouped(uint64_t(bytes)));
    world.send(ElementType::I32, piece.data(), (now + 3) / 4, to);
  }
}

void meshwright::receiveFile(Communicator &world, const std::string &path, int from) {
  int32_t length[2];
  world.receive(ElementType::I32, length, 2, from);
  int64_t bytes = (int64_t(length[0]) << 31) + length[1];
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  if (error)
    fail("--buddy: cannot make the folder of ", path, ": ", error.message());
  OutputFile file(path);
  std::vector<char> piece(size_t(std::min(pieceBytes, bytes) + 3) / 4 * 4);
  for (int64_t left = bytes; left > 0; left -= pieceBytes) {
    int64_t now = std::min(left, pieceBytes);
    world.receive(ElementType::I32, piece.data(), (now + 3) / 4, from);
    file.write(piece.data(), now);
  }
  file.close();
}

//===--- what was left -----------------------------------------------------------===//

namespace {
/// The state after a step, as a machine has it.
struct Left {
  std::string name;            ///< "step-00000012"
  std::string state;           ///< the checksum of state.json
  int64_t time = 0;            ///< at which the run had it, in nanoseconds; the same on all machines
  std::set<std::string> files; ///< their paths within it
};

/// A state of which machines have parts.
struct StateCopies {
  std::vector<const Left *> on; ///< by machine; null where there is nothing of it
  std::set<std::string> files;  ///< of all machines

  /// What the first machine has that has anything.
  int first() const {
    return int(std::find_if(on.begin(), on.end(), [](const Left *here) { return here; }) - on.begin());
  }
  const Left &any() const { return *on[size_t(first())]; }
};
} // namespace

/// The state of `text`, where it is whole.
static std::optional<Json> wholeState(const std::string &text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("checksum") || !json["checksum"].is_string() || !json.contains("files") ||
      !json["files"].is_object() || !isSealed(text, json["checksum"]))
    return std::nullopt;
  return json;
}

static std::vector<Left> leftIn(const std::string &folder) {
  std::vector<Left> all;
  std::error_code error;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder, error)) {
    if (!isState(entry))
      continue;
    std::string name = entry.path().filename();
    Left left{name, "", 0, {}};
    std::string state = contentsOf(entry.path() / stateFile);
    if (!wholeState(state))
      continue;
    left.state = checksumOf(state.data(), state.size());
    left.time = fs::last_write_time(entry.path() / stateFile, error).time_since_epoch().count();
    for (const fs::directory_entry &file : fs::recursive_directory_iterator(entry.path(), error))
      if (file.is_regular_file(error))
        left.files.insert(file.path().lexically_relative(entry.path()).string());
    all.push_back(std::move(left));
  }
  return all;
}

// Neither names of files nor checksums have zeros.
static std::string packStates(const std::vector<Left> &all) {
  std::string words;
  for (const Left &left : all) {
    words += left.name + '\0' + left.state + '\0' + std::to_string(left.time) + '\0';
    for (const std::string &file : left.files)
      words += file + '\0';
    words += '\0';
  }
  return words;
}

static std::vector<Left> unpackStates(const std::string &words) {
  std::vector<Left> all;
  std::istringstream stream(words);
  stream.exceptions(std::ios::badbit); // Or a lack of memory would look like the end.
  std::string time;
  for (Left left; std::getline(stream, left.name, '\0') && std::getline(stream, left.state, '\0') && std::getline(stream, time, '\0');
       left = {}) {
    left.time = std::strtoll(time.c_str(), nullptr, 10);
    for (std::string file; std::getline(stream, file, '\0') && !file.empty();)
      left.files.insert(file);
    all.push_back(std::move(left));
  }
  return all;
}

/// The newest state of which machines have all parts, as its state.json on a machine that has one says, together; null if
/// there is none.
static std::optional<StateCopies> newestWhole(RankGroup &world, const Machines &machines, const std::string &folder,
                                        const std::vector<std::vector<Left>> &left) {
  // The last one first. After a run has gone back, and of other runs, steps say nothing.
  std::map<std::tuple<int64_t, std::string, std::string>, StateCopies, std::greater<>> states;
  for (size_t machine = 0; machine < left.size(); ++machine)
    for (const Left &here : left[machine]) {
      StateCopies &found = states[{here.time, here.name, here.state}];
      found.on.resize(left.size());
      found.on[machine] = &here;
      found.files.insert(here.files.begin(), here.files.end());
    }
  for (const auto &[key, found] : states) {
    int reader = machines.leader(found.first());
    std::string path = folder + "/" + found.any().name + "/" + stateFile;
    std::string text = broadcastText(world, world.rank() == reader ? contentsOf(path) : "", reader);
    std::optional<Json> json = wholeState(text);
    if (!json)
      continue;
    bool isWhole = true;
    for (const auto &[file, id] : (*json)["files"].items())
      isWhole &= found.files.count(file) > 0;
    if (isWhole)
      return found;
  }
  return std::nullopt;
}

/// Gives every machine the files of `found` that it lacks. Returns how many that were. Collective.
static int64_t complete(Communicator &world, const Machines &machines, const std::string &folder, const StateCopies &found) {
  const Left &any = found.any();
  auto has = [&](size_t machine, const std::string &file) { return found.on[machine] && found.on[machine]->files.count(file); };
  // state.json comes last: without it there is no state.
  std::vector<std::string> files(found.files.begin(), found.files.end());
  std::stable_partition(files.begin(), files.end(), [](const std::string &file) { return file != stateFile; });
  int64_t sent = 0;
  for (const std::string &file : files) {
    size_t holder = 0;
    while (!has(holder, file))
      ++holder;
    for (size_t machine = 0; machine < found.on.size(); ++machine) {
      if (has(machine, file))
        continue;
      ++sent;
      int from = machines.leader(int(holder)), to = machines.leader(int(machine));
      std::string path = folder + "/" + any.name + "/" + file, part = path + ".part";
      if (world.rank() == from)
        sendFile(world, path, to);
      if (world.rank() == to) {
        receiveFile(world, part, from);
        fs::rename(part, path);
      }
      world.barrier(); // A wait is for one file, not for all.
    }
  }
  // All machines find the same checkpoint the newest.
  if (machines.isLeader(world.rank()))
    fs::last_write_time(folder + "/" + any.name + "/" + stateFile,
                        fs::file_time_type(fs::file_time_type::duration(any.time)));
  return sent;
}

void meshwright::mergeMemory(RankGroup &world, const std::string &folder, const std::string &saved,
                             const std::function<void(const std::string &)> &note) {
  if (!folder.empty())
    prepareMemoryFolder(folder, "--buddy");
  std::vector<std::string> identities = gatherText(world, folder.empty() ? "" : folderIdentity(folder));
  auto isAbsent = [](const std::string &identity) { return identity.empty(); };
  auto without = std::find_if(identities.begin(), identities.end(), isAbsent);
  if (std::all_of(identities.begin(), identities.end(), isAbsent))
    return;
  if (without != identities.end())
    fail("--buddy with --resume auto is given to some ranks, but not to rank ", without - identities.begin(),
         ": start every rank with the same flags");
  Machines machines = machinesOf(identities);
  if (machines.ranks.size() < 2)
    return;
  Communicator &peers = peersOf(world);
  bool leads = machines.isLeader(world.rank());
  // No other run may be writing there.
  std::optional<SaveFolder> locked;
  if (leads) {
    locked.emplace(folder, "", /*isOfRun=*/true, SaveFolder::ByRename, "--buddy");
    writeOwner(folder, saved);
  }
  std::vector<std::string> said = gatherText(world, leads ? packStates(leftIn(folder)) : "");
  std::vector<std::vector<Left>> left;
  for (const std::vector<int> &ranks : machines.ranks)
    left.push_back(unpackStates(said[size_t(ranks.front())]));
  std::optional<StateCopies> found = newestWhole(world, machines, folder, left);
  std::string name = found ? found->any().name : "";
  for (const std::vector<Left> &here : left)
    for (const Left &state : here)
      if (!found)
        name = std::max(name, state.name);
  auto removeWhere = [&](auto isRemoved) {
    for (const Left &here : left[size_t(machines.of[size_t(world.rank())])])
      if (isRemoved(here))
        if (std::error_code error = locked->remove(here.name))
          fail("--buddy: cannot remove ", folder, "/", here.name, ": ", error.message());
  };
  // Another state after as many steps is in the place of what this machine gets.
  if (leads && found)
    removeWhere([&](const Left &here) { return here.name == name && here.state != found->any().state; });
  if (int64_t sent = found ? complete(peers, machines, folder, *found) : 0)
    note(text("--buddy: machines got ", sent, " files of ", name, " from each other's memory"));
  else if (!found && !name.empty())
    note(text("--buddy: the machines do not have all parts of ", name, " in memory, since more than one was lost"));
  world.barrier();
  if (!leads)
    return;
  removeWhere([&](const Left &here) { return !found || here.name != name; });
  if (found)
    locked->keepLatest(name);
  else
    unlink((folder + "/" + latestName).c_str());
}
