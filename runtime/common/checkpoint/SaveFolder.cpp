//===- SaveFolder.cpp - the folder of a run's checkpoints -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/checkpoint/SaveFolder.h"

#include "common/checkpoint/Checksum.h"
#include "common/checkpoint/FindCheckpoint.h"
#include "common/checkpoint/OutputFile.h"
#include "common/data/MappedFile.h"
#include "common/monitor/Error.h"
#include "common/monitor/Failure.h"
#include "meshwright/runtime/FileArguments.h"
#include "meshwright/runtime/LatestCheckpoint.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

using namespace meshwright;
namespace fs = std::filesystem;

static const char *partialPrefix = ".partial-";

static std::string hostName() {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return name;
}

static bool isCheckpoint(const fs::directory_entry &entry) {
  std::error_code error;
  return entry.path().filename().string().rfind("step-", 0) == 0 &&
         fs::exists(entry.path() / "state.json", error);
}

SaveFolder::SaveFolder(std::string path, const std::string &resumed, bool isOfRun, Commit commit, const char *flag)
    : directory(std::move(path)), flag(flag), commit(commit), suffix(text("-", hostName(), "-", getpid())) {
  lock();
  findOthers(resumed, isOfRun);
  // Without locks another run may be writing there.
  if (isLocked)
    removeLeftOvers();
}

void SaveFolder::removeLeftOvers() const {
  std::error_code ignored;
  for (const fs::directory_entry &entry : fs::directory_iterator(directory, ignored)) {
    std::string name = entry.path().filename(), path = entry.path();
    if (name.rfind(partialPrefix, 0) == 0 || (name.rfind("step-", 0) == 0 && isUnfinished(path)))
      fs::remove_all(entry.path(), ignored);
  }
}

void SaveFolder::findOthers(const std::string &resumed, bool isOfRun) {
  std::set<std::string> known;
  std::ifstream file(directory + "/.others");
  for (std::string name; std::getline(file, name);)
    known.insert(name);
  fs::path from = canonicalPath(resumed);
  bool isHere = !resumed.empty() && isSameFile(from.parent_path(), directory), goesOn = isHere || isOfRun;
  bool ofKnown = isHere && known.count(from.filename()); // It goes on with the run that was another's.
  std::error_code ignored;
  for (const fs::directory_entry &entry : fs::directory_iterator(directory, ignored))
    if (std::string name = entry.path().filename();
        isCheckpoint(entry) && (!goesOn || bool(known.count(name)) != ofKnown))
      othersHere.insert(name);
    else if (isCheckpoint(entry))
      ours.insert(name);
  writeOthers();
}

void SaveFolder::writeOthers() const {
  std::string path = directory + "/.others", names;
  for (const std::string &name : othersHere)
    names += name + "\n";
  if (names.empty()) {
    unlink(path.c_str());
    return;
  }
  OutputFile file(path);
  file.write(names);
  file.close();
}

SaveFolder::~SaveFolder() {
  // While it is locked: whoever opened it before finds that it is no longer there.
  if (isLocked)
    unlink((directory + "/.lock").c_str());
  if (isLocked)
    dropFailureCleanup(directory + "/.lock");
  if (file >= 0)
    close(file);
}

/// Whether `path` is the file that `file` is open on.
static bool isStillThere(int file, const std::string &path) {
  struct stat mine, there;
  return fstat(file, &mine) == 0 && stat(path.c_str(), &there) == 0 &&
         mine.st_ino == there.st_ino && mine.st_dev == there.st_dev;
}

void SaveFolder::lock() {
  std::string path = directory + "/.lock";
  do {
    if (file >= 0)
      close(file);
    file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
    if (file < 0)
      fail(flag, ": cannot open ", path, ": ", errnoText(errno),
           ": name a path that you may write to");
    if (flock(file, LOCK_EX | LOCK_NB) == 0)
      continue;
    if (int code = errno; code != EWOULDBLOCK) {
      fprintf(stderr,
              "note: %s %s: its file system has no locks (%s): start no other run "
              "that saves there\n",
              flag, directory.c_str(), errnoText(code).c_str());
      return;
    }
    char owner[512] = {};
    if (pread(file, owner, sizeof(owner) - 1, 0) <= 0)
      snprintf(owner, sizeof(owner), "another process");
    fail(flag, " ", directory, ": ", owner,
         " saves there: wait for its end, or name another folder");
  } while (!isStillThere(file, path));
  isLocked = true;
  addFailureCleanup(path);
  char date[32];
  time_t now = time(nullptr);
  strftime(date, sizeof(date), "%F %T", localtime(&now));
  std::string owner = text("process ", getpid(), " on ", hostName(), ", since ", date);
  if (ftruncate(file, 0) != 0 || pwrite(file, owner.data(), owner.size(), 0) < 0)
    fail(flag, ": cannot write ", path, ": ", errnoText(errno),
         ": free space there or name another path");
}

std::string SaveFolder::partialName(const std::string &name) const {
  return commitsByFile() ? directory + "/" + name : directory + "/" + partialPrefix + name + suffix;
}

static void writeWhole(const std::string &path, const std::string &content) {
  OutputFile file(path);
  file.write(content);
  file.sync();
  file.close();
}

/// Makes the checkpoint `directory` one that is not complete, which the next start removes if this run does not. Returns why
/// it stays as it is, if it does.
static std::error_code withdraw(const std::string &directory) {
  int file = open((directory + "/" + uncommittedFile).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0 || fsync(file) != 0) {
    std::error_code error(errno, std::generic_category());
    if (file >= 0)
      close(file);
    return error;
  }
  close(file);
  std::error_code error;
  fs::remove(directory + "/" + commitFile, error);
  return error;
}

std::string SaveFolder::begin(const std::string &name) {
  std::string partial = partialName(name);
  std::error_code error;
  if (commitsByFile() && fs::exists(partial, error)) {
    // An earlier one of this step.
    if (error = withdraw(partial); !error)
      fs::remove_all(partial, error);
    if (error)
      fail(flag, ": cannot remove ", partial, ", which an earlier run wrote: ", error.message(),
           ": remove it, or check the directory's permissions");
  }
  fs::create_directory(partial, error);
  if (error)
    fail(flag, ": cannot make the directory ", partial, ": ", error.message(),
         ": free space there or name another path");
  addFailureCleanup(partial);
  if (commitsByFile())
    writeWhole(partial + "/" + uncommittedFile, "");
  return partial;
}

/// Gives the finished directory `partial` its name. One of the same step, left by an
/// earlier run, is exchanged for it, so that there is a whole one at every moment.
static void renameInto(const char *flag, const std::string &partial, const std::string &path) {
  if (renameat2(AT_FDCWD, partial.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0)
    return;
  int code = errno;
  if (code == EEXIST) {
    if (renameat2(AT_FDCWD, partial.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0) {
      std::error_code ignored;
      fs::remove_all(partial, ignored);
      return;
    }
    code = errno;
  }
  // File systems without these flags (NFS among them) rename plainly, which works
  // if nothing is in the way.
  if (code == EINVAL) {
    if (rename(partial.c_str(), path.c_str()) == 0)
      return;
    code = errno;
  }
  fail(flag, ": cannot rename ", partial, " to ", path, ": ", errnoText(code),
       ": remove what is in its place, or check the directory's permissions");
}

void SaveFolder::pointLatest(const std::string &name) const {
  std::string link = directory + "/" + partialPrefix + latestName + suffix, latest = directory + "/" + latestName;
  std::error_code error;
  if (commitsByFile()) {
    OutputFile file(link);
    file.write(name + "\n");
    file.sync();
    file.rename(latest);
    file.close();
    return;
  }
  fs::remove(link, error);
  fs::create_symlink(name, link, error);
  if (error)
    fail(flag, ": cannot make the link ", link, ": ", error.message(),
         ": use a file system with symbolic links");
  if (rename(link.c_str(), latest.c_str()) != 0)
    fail(flag, ": cannot replace ", latest, ": ", errnoText(errno),
         ": remove what is in its place");
}

void SaveFolder::keepLatest(const std::string &name) const {
  if (fs::path(latestIn(directory)).filename() == name)
    return;
  pointLatest(name);
  syncDirectory(directory);
}

void SaveFolder::accompany(const std::string &path) {
  MappedFile file(path, "--data");
  copyName = fs::path(path).filename();
  copyText.assign(reinterpret_cast<const char *>(file.data()), size_t(file.size()));
}

void SaveFolder::publish(const std::string &name, int64_t keep) {
  std::string partial = partialName(name);
  std::vector<std::string> folders = {partial};
  for (const fs::directory_entry &entry : fs::recursive_directory_iterator(partial))
    if (entry.is_directory())
      folders.push_back(entry.path());
  for (const std::string &folder : folders) {
    // Of folders within, the averages' is a model's; others hold shards.
    bool isModel = folder == partial || folder == partial + "/ema";
    if (isModel && !copyName.empty()) {
      OutputFile copy(folder + "/" + copyName);
      copy.write(copyText);
      copy.sync();
      copy.close();
    }
    syncDirectory(folder);
  }
  if (commitsByFile()) {
    std::string state = contentsOf(partial + "/state.json");
    writeWhole(partial + "/" + commitFile, checksumOf(state.data(), state.size()) + "\n");
    syncDirectory(partial);
    dropFailureCleanup(partial);
    unlink((partial + "/" + uncommittedFile).c_str());
  } else {
    dropFailureCleanup(partial);
    try {
      renameInto(flag, partial, directory + "/" + name);
    } catch (const Error &) {
      addFailureCleanup(partial);
      throw;
    }
  }
  syncDirectory(directory);
  pointLatest(name);
  ours.insert(name);
  if (othersHere.erase(name))
    writeOthers();
  syncDirectory(directory);
  if (keep)
    removeOld(keep);
}

std::error_code SaveFolder::remove(const std::string &name) {
  std::error_code error;
  std::string going = partialName(name);
  if (commitsByFile())
    error = withdraw(going);
  else
    fs::rename(directory + "/" + name, going, error);
  if (!error)
    fs::remove_all(going, error);
  if (!error)
    ours.erase(name);
  return error;
}

/// What cannot be removed stays.
void SaveFolder::removeOld(int64_t keep) {
  std::error_code error;
  std::string latest = fs::path(latestIn(directory)).filename();
  std::vector<std::pair<fs::file_time_type, std::string>> found;
  bool appeared = false;
  for (const fs::directory_entry &entry : fs::directory_iterator(directory, error)) {
    std::string name = entry.path().filename();
    if (!isCheckpoint(entry) || name == latest || othersHere.count(name))
      continue;
    if (ours.count(name))
      found.emplace_back(fs::last_write_time(entry.path() / "state.json", error), name);
    else
      appeared |= othersHere.insert(name).second;
  }
  if (appeared)
    writeOthers();
  std::sort(found.begin(), found.end());
  // "latest" is one of those that stay.
  for (size_t i = 0; i + size_t(keep) <= found.size(); ++i)
    if (error = remove(found[i].second); error)
      fprintf(stderr, "note: --keep: cannot remove %s/%s: %s\n", directory.c_str(),
              found[i].second.c_str(), error.message().c_str());
}
