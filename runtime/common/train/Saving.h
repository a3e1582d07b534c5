//===- Saving.h - what a run leaves, however it ends ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_SAVING_H
#define MESHWRIGHT_RUNTIME_COMMON_SAVING_H

#include "common/checkpoint/Buddy.h"
#include "common/checkpoint/SaveFolder.h"
#include "common/checkpoint/SnapshotWriter.h"
#include "common/data/TokenData.h"
#include "common/monitor/Error.h"
#include "common/train/Run.h"

#include <memory>
#include <string>

namespace meshwright {

/// Whether each rank of a run of this plan writes its own part of checkpoints.
bool writesShards(const Options &options, const Plan &plan);

/// The checkpoints of a run, and what ranks agree on so that all of them save after the same step.
class Saving {
public:
  explicit Saving(Run &run);

  /// Takes the folders of --save on rank 0, and the memory of --async-save on the ranks that write. Checkpoints get a copy
  /// of the tokenizer of `data`. Collective.
  void open(const TokenData &data);

  /// Saves the state into the folders whose turn it is after this step; with --async-save it may
  /// still be under way afterwards. Returns whether there are any. Collective.
  bool saveDue();
  /// Whether some folder's turn it is after this step.
  bool isDue() const;
  /// Saves the state into all folders that do not have it. Collective.
  void save();
  /// With --buddy, keeps the state in the memory of machines. Collective.
  void keepInMemory();
  /// Removes what --buddy has kept: the run has saved all there is, or its state is not to be trusted. Collective.
  void forgetMemory();
  /// Saves the state of a run that goes on from memory, which keeps it for a step or two only. Collective.
  void saveResumedFromMemory();
  /// What --buddy takes of machines; null without it.
  const Buddy *memory() const { return buddy.get(); }
  /// Waits for the checkpoint that is being written. Collective.
  void finishWriting();
  /// Writes what --save-merged asks for. Collective.
  void saveMerged();
  /// How many steps the last checkpoint of this run has, or -1.
  int64_t savedStep() const;
  /// The last checkpoint of this run, or the one that it goes on from, and its step; empty and -1 if there is none.
  std::string lastCheckpoint() const;
  int64_t lastStep() const;
  /// Fails with `message` after saving the state, which is whole, if this run has made a step. Collective.
  [[noreturn]] void failSaved(const std::string &message);

  /// Does what can fail on one rank alone, between steps. With --save an error waits until
  /// `agree`.
  template <typename Work> void attempt(Work work) {
    if (run.options.save.empty()) {
      work();
      return;
    }
    try {
      work();
    } catch (const Error &error) {
      if (failed.empty())
        failed = error.what();
    }
  }
  /// If an attempt has failed on any rank, saves the state, which is whole, and fails on all
  /// of them. Else returns the signal that asks the run to stop, or 0. Collective.
  int agree();
  /// Whether a signal to stop waits for the end of a step: where the run leaves something then.
  bool stopsLater() const { return !run.options.save.empty() || !run.options.trace.empty(); }

private:
  /// A folder of --save.
  struct Tier {
    std::string path;
    int64_t every;
    std::unique_ptr<SaveFolder> folder = {}; ///< on rank 0
    int64_t saved = -1, position = -1; ///< the step and the place in the data of its last checkpoint
    bool isResumed = false; ///< that is the checkpoint from which the run goes on
  };
  /// A checkpoint that ranks write beside training, into as many folders as tiers.
  struct Snapshot {
    std::vector<Tier *> tiers;
    TrainingState state;
    std::vector<CheckpointFile> files;
    std::vector<std::string> partials; ///< where its files are written
    std::filesystem::file_time_type time = std::filesystem::file_time_type::clock::now(); ///< of the state
    std::vector<FileIds> ids = {};     ///< of this rank's files in each
  };
  const Tier *lastTier() const;
  /// Whether the checkpoint from which the run goes on is in `folder`.
  bool goesOnFrom(const std::string &folder) const;
  void openFolders(const TokenData &data);
  void takeResumed();
  void publishSnapshot();
  void saveInto(const std::vector<Tier *> &due);
  void saveNow(const std::vector<Tier *> &due);
  void saveBeside(const std::vector<Tier *> &due);
  void rethrow();

  Run &run;
  std::vector<Tier> tiers;
  bool isSharded = false; ///< each rank writes its own files
  bool isWriting = false; ///< a checkpoint is under way beside training
  /// What is written beside training: of shards, until all ranks have written theirs and rank 0 publishes them.
  std::unique_ptr<Snapshot> snapshot;
  std::unique_ptr<SnapshotWriter> writer; ///< on ranks that write, with --async-save; ends before what it writes
  std::unique_ptr<Buddy> buddy;           ///< with --buddy
  std::string failed; ///< what an attempt on this rank failed with
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_SAVING_H
