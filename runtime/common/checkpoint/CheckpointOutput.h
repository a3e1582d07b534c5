//===- CheckpointOutput.h - writing a checkpoint --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A checkpoint's tensors come together on rank 0 in the order in which its files hold them:
// straight into the files, or into memory, from which a thread writes them later
// (SnapshotWriter.h). Either way the files have the same bits. Of a sharded checkpoint each rank writes its own files
// (Shards.h).
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_CHECKPOINTOUTPUT_H
#define MESHWRIGHT_RUNTIME_COMMON_CHECKPOINTOUTPUT_H

#include "common/checkpoint/Checkpoint.h"
#include "common/checkpoint/Gather.h"
#include "common/checkpoint/SafeTensors.h"
#include "common/communication/RankGroup.h"

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

struct MwContext;

namespace meshwright {

class SaveFolder;

/// A file of a checkpoint with tensors, and how it is called there.
struct CheckpointFile {
  std::string path;
  std::vector<FileTensor> tensors;
  bool isShard = false; ///< of a folder of shards

  int64_t bytes() const; ///< of its tensors
};

/// The files of a checkpoint that hold tensors, under the names by which they are saved, in the order in which they are
/// written: all on rank 0, or each rank's own.
std::vector<CheckpointFile> checkpointFiles(const MwContext &context, bool isSharded);

/// Makes the folder in which the checkpoint after `step` steps is to be written, of which the folder's file system gets
/// `bytes`. Nothing is seen of it before `publishCheckpoint`.
std::string beginCheckpoint(const Plan &plan, SaveFolder &folder, int64_t step, int64_t bytes);

/// Ids of files, by their paths within the checkpoint.
using FileIds = std::map<std::string, std::string>;

/// What state.json has of a checkpoint of `state`, whose files with tensors have these ids.
std::string stateText(const Plan &plan, const TrainingState &state, const FileIds &ids, bool isCommitted);

/// Writes what is no tensor, `state` as state.json, and gives the checkpoint after `step` steps its name. Keeps `keep` of
/// them. `time` is when the run had that state, which may be long before now: by that time --resume auto finds the newest.
void publishCheckpoint(const Plan &plan, SaveFolder &folder, int64_t step, const std::string &state,
                       std::filesystem::file_time_type time, int64_t keep);

/// The ids of all ranks together. Collective.
FileIds gatherIds(RankGroup &world, const FileIds &ids);

/// Writes files with tensors of one checkpoint.
class CheckpointOutput {
public:
  /// Into `partial`, the folder of `beginCheckpoint`.
  CheckpointOutput(const Plan &plan, std::string partial) : plan(plan), partial(std::move(partial)) {}

  /// All of the tensors of `file` follow, in one or several calls of `write`, then `endFile`.
  void beginFile(const CheckpointFile &file);
  void write(const float *elements, int64_t count);
  void endFile();
  /// Of the files that are written.
  const FileIds &ids() const { return written; }

private:
  const Plan &plan;
  std::string partial;
  std::string path; ///< of the file that is being written, within the checkpoint
  std::unique_ptr<SafeTensorsWriter> writer;
  int64_t waiting = 0; ///< bytes that may not be on the disk yet
  FileIds written;
};

/// Checks that all values are finite, on every rank. Collective.
void checkState(MwContext &context, const VariableAddresses &addresses);

/// Writes a checkpoint into `folder`, which rank 0 has, after every rank has found all its
/// values finite; keeps `keep` of them, or all if that is 0. Collective; tensors pass
/// through rank 0 part by part, unless each rank writes its own.
void saveCheckpoint(MwContext &context, const VariableAddresses &addresses, SaveFolder *folder,
                    int64_t keep, const TrainingState &state, bool isSharded);

/// Writes all tensors of `files` into `output`, which rank 0 has, or each rank for its own. Collective.
void writeTensors(MwContext &context, const VariableAddresses &addresses, const std::vector<CheckpointFile> &files,
                  CheckpointOutput *output);

/// Copies all tensors of `files` to `memory`, one file after the other, which rank 0 has, or each rank for its own.
/// Collective.
void copyTensors(MwContext &context, const VariableAddresses &addresses,
                 const std::vector<CheckpointFile> &files, float *memory);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_CHECKPOINTOUTPUT_H
