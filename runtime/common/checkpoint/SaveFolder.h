//===- SaveFolder.h - the folder of a run's checkpoints -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A checkpoint is written under another name and gets its own in one atomic rename,
// after all of it is on the disk: a checkpoint that can be seen is whole. "latest" is a
// symbolic link to the newest, replaced atomically afterwards. One run at a time writes
// there: it holds a lock on the file ".lock", which says who it is. The system gives the
// lock free when that process ends, in whatever way; over NFS too.
//
// Stores of objects that are mounted as file systems cannot rename a folder in one step, and have no links. There
// (--save-commit file) a checkpoint is written under its own name, and the file "commit", written when all else is on the
// disk, completes it; "latest" is a file with the name of the newest.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_SAVEFOLDER_H
#define MESHWRIGHT_RUNTIME_COMMON_SAVEFOLDER_H

#include <cstdint>
#include <set>
#include <string>
#include <system_error>

namespace meshwright {

class SaveFolder {
public:
  /// Locks `directory`, which exists, until this is destroyed, and removes what a run that
  /// was killed while saving has left there. An Error that names the run that holds the lock.
  /// `resumed` is the checkpoint from which the run goes on, or empty. If it is one of the
  /// folder's, so are those that its run wrote; all others are another run's, which the file
  /// ".others" keeps for the next start. If `isOfRun`, the run that it goes on from saved here too. `flag` names the folder in
  /// errors.
  enum Commit { ByRename, ByFile };
  SaveFolder(std::string directory, const std::string &resumed, bool isOfRun = false, Commit commit = ByRename,
             const char *flag = "--save");
  ~SaveFolder();
  SaveFolder(const SaveFolder &) = delete;
  SaveFolder &operator=(const SaveFolder &) = delete;

  const std::string &path() const { return directory; }
  bool commitsByFile() const { return commit == ByFile; }
  /// Puts a copy of the file at `path` into each checkpoint from now on.
  void accompany(const std::string &path);

  /// Makes the directory in which the checkpoint `name` is to be written.
  std::string begin(const std::string &name);
  /// Gives that directory its name, or its file "commit", points "latest" to it, and then removes all but the
  /// `keep` checkpoints of the run that were written last; none if `keep` is 0. What others have put there meanwhile is
  /// theirs, also for later starts.
  void publish(const std::string &name, int64_t keep);
  /// Removes the checkpoint `name`, which goes under another name before it goes, so that a kill leaves none that is seen and
  /// not whole. Returns why it stays, if it does.
  std::error_code remove(const std::string &name);
  /// Points "latest" to the checkpoint `name`, which is there already.
  void keepLatest(const std::string &name) const;
  /// Where the checkpoint `name` is written before it is published.
  std::string partialName(const std::string &name) const;
  /// The checkpoints of other runs that are there.
  const std::set<std::string> &others() const { return othersHere; }

private:
  void lock();
  void findOthers(const std::string &resumed, bool isOfRun);
  void writeOthers() const;
  void pointLatest(const std::string &name) const;
  void removeOld(int64_t keep);
  void removeLeftOvers() const;

  std::string directory;
  const char *flag;
  Commit commit;
  std::string suffix; ///< of this run's partial names
  std::set<std::string> othersHere, ours; ///< names of checkpoints
  std::string copyName, copyText; ///< of the file that accompanies checkpoints
  int file = -1;
  bool isLocked = false;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_SAVEFOLDER_H
