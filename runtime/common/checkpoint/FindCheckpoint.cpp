//===- FindCheckpoint.cpp - which checkpoint a run resumes ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/checkpoint/FindCheckpoint.h"

#include "common/checkpoint/Checksum.h"
#include "common/checkpoint/Json.h"
#include "common/checkpoint/SafeTensors.h"
#include "common/data/MappedFile.h"
#include "common/monitor/Error.h"
#include "meshwright/runtime/LatestCheckpoint.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>

using namespace meshwright;
using Json = nlohmann::json;
namespace fs = std::filesystem;

std::string meshwright::missingCommit(const std::string &directory, const std::string &state) {
  Json json = Json::parse(state, nullptr, /*allow_exceptions=*/false);
  std::error_code error;
  // One that another run renamed into its place has none, and the mark once a run has begun to remove it.
  bool isMarked = fs::exists(directory + "/" + uncommittedFile, error);
  // State that is damaged is refused elsewhere.
  if (!isMarked && (!json.is_object() || json.value("commit", Json()) != "file"))
    return "";
  std::string path = directory + "/" + commitFile, sum;
  std::ifstream file(path);
  if (!std::getline(file, sum))
    return text(directory, " has no file ", commitFile, ", so the run that wrote it ended before it was complete");
  if (sum != checksumOf(state.data(), state.size()))
    return text(path, " does not have the checksum of state.json");
  return "";
}

std::string meshwright::contentsOf(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

bool meshwright::isUnfinished(const std::string &directory) {
  std::error_code error;
  if (!fs::exists(directory + "/" + uncommittedFile, error))
    return false;
  std::string state = contentsOf(directory + "/state.json");
  return state.empty() || !missingCommit(directory, state).empty();
}

std::string meshwright::findCheckpoint(const std::string &path) {
  std::error_code error;
  auto isCheckpoint = [&](const std::string &directory) {
    std::string file = directory + "/state.json";
    if (fs::is_directory(file, error))
      fail("--resume ", path, ": ", file,
           " is a folder, where a checkpoint has a file: name another checkpoint");
    return fs::exists(file, error);
  };
  if (isCheckpoint(path))
    return path;
  std::string latest = path + "/latest", target = latestIn(path);
  // What it names, so that a checkpoint written meanwhile does not mix in.
  bool isLink = !target.empty();
  if (!isLink)
    target = latest;
  if (isCheckpoint(target))
    return target;
  if (!fs::exists(path, error))
    fail("--resume ", path, ": there is no such folder: name one that --save wrote");
  if (isLink && !fs::exists(target, error))
    fail("--resume ", path, ": ", latest, " points to ", target,
         ", which does not exist: name another checkpoint in ", path);
  if (fs::exists(latest, error))
    fail("--resume ", path, ": ", target,
         " has no state.json, so it is no whole checkpoint: name another one in ", path);
  fail("--resume ", path, ": there is no checkpoint: neither ", path, "/state.json nor ", latest,
       " exists; name a folder that --save wrote");
}

namespace {
/// The names of checkpoints in a folder.
struct Names {
  /// Those to prefer first: what "latest" names, then the others by the time at which they were written.
  std::vector<std::string> own;
  std::string another; ///< what "latest" names, if ".others" lists it as another run's
};
} // namespace

static Names checkpointsIn(const std::string &folder) {
  std::error_code error;
  fs::file_status latest = fs::symlink_status(folder + "/latest", error);
  if (latest.type() == fs::file_type::none)
    fail("--resume auto: cannot look for ", folder, "/latest: ", error.message(),
         ": check the folder's permissions and the file system");
  std::string newest = latestIn(folder);
  if (!newest.empty())
    newest = fs::path(newest).lexically_relative(folder).string();
  std::set<std::string> others;
  std::ifstream list(folder + "/.others");
  for (std::string name; std::getline(list, name);)
    others.insert(name);
  std::vector<std::pair<fs::file_time_type, std::string>> rest;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder, error))
    if (std::string name = entry.path().filename();
        name.rfind("step-", 0) == 0 && name != newest && !others.count(name) && !isUnfinished(entry.path())) {
      std::error_code none;
      rest.emplace_back(fs::last_write_time(entry.path() / "state.json", none), name);
    }
  std::sort(rest.rbegin(), rest.rend());
  Names names;
  if (others.count(newest))
    names.another = newest;
  else if (!newest.empty())
    names.own.push_back(newest);
  for (const auto &[time, name] : rest)
    names.own.push_back(name);
  return names;
}

namespace {
/// A checkpoint that is not damaged.
struct Found {
  std::string directory, state;
  fs::file_time_type time; ///< at which it was written
  int64_t step;

  /// Whether it was written after `other`. Copies of one checkpoint in several folders are none of them later.
  bool isLaterThan(const Found &other) const {
    return state != other.state && std::pair(time, step) > std::pair(other.time, other.step);
  }
};
} // namespace

/// The checkpoint `directory`; an Error where it is damaged, as far as its state and the headers of
/// its files show.
static Found open(const std::string &directory) {
  std::string path = directory + "/state.json", flag = "--resume auto";
  std::error_code error;
  if (!fs::is_regular_file(path, error))
    fail(directory, " has no state.json");
  MappedFile file(path, flag.c_str());
  std::string content(reinterpret_cast<const char *>(file.data()), size_t(file.size()));
  Json json = parseJson(content, path, "");
  bool isComplete = json.is_object() && json.contains("step") && json["step"].is_number_unsigned();
  // Version 2 had no checksum.
  bool mayLack = isComplete && !json.contains("checksum") && json.contains("version") && json["version"] == 2;
  if (!isComplete || (!mayLack && !(json.contains("checksum") && json["checksum"].is_string() && isSealed(content, json["checksum"]))))
    fail(path, " does not have the checksum that it was written with");
  if (std::string missing = missingCommit(directory, content); !missing.empty())
    fail(missing);
  if (json.contains("files") && json["files"].is_object())
    for (const auto &[name, id] : json["files"].items())
      if (SafeTensorsReader reader(directory + "/" + name, flag); id != reader.id())
        fail(directory, "/", name, " is not the file that state.json names");
  return {directory, content, fs::last_write_time(path, error), json["step"].get<int64_t>()};
}

std::string meshwright::newestCheckpoint(const std::vector<std::string> &folders,
                                         const std::function<void(const std::string &)> &note) {
  std::vector<Names> names;
  for (const std::string &folder : folders)
    names.push_back(checkpointsIn(folder));
  // A run that goes on from none of its own goes on from the other run's.
  if (std::all_of(names.begin(), names.end(), [](const Names &inFolder) { return inFolder.own.empty(); }))
    for (Names &inFolder : names)
      if (!inFolder.another.empty())
        inFolder.own.push_back(inFolder.another);
  std::optional<Found> newest;
  std::string damaged;
  for (size_t i = 0; i < folders.size(); ++i)
    for (const std::string &name : names[i].own) {
      std::string directory = folders[i] + "/" + name;
      try {
        if (Found found = open(directory); !newest || found.isLaterThan(*newest))
          newest = std::move(found);
        break;
      } catch (const Error &error) {
        note(text("--resume auto passes over the checkpoint ", directory, ": ", error.what()));
        damaged = directory;
      }
    }
  if (!newest && !damaged.empty())
    fail("--resume auto: no checkpoint in ", folders.front(),
         folders.size() > 1 ? " and the other folders of --save" : "", " is whole, the last one seen is ",
         damaged, ": name a checkpoint elsewhere with --resume, or another folder with --save to begin anew");
  return newest ? newest->directory : "";
}
