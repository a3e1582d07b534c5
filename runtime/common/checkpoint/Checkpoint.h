//===- Checkpoint.h - saving and resuming a run ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// DIR/step-<8 digits>/ holds model.safetensors, or of a run with adapters those alone
// (AdapterFiles.h), and optimizer.safetensors (global tensors, f32, so any mesh can go on), the model's config and state.json, which has a
// checksum of its own and the ids of all files, so that files of two checkpoints are not
// taken for one. A sharded checkpoint has a folder of shards in the place of each file (Shards.h). SaveFolder.h says how it gets there, CheckpointOutput.h how it is written and
// FindCheckpoint.h which one a run resumes.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_CHECKPOINT_H
#define MESHWRIGHT_RUNTIME_COMMON_CHECKPOINT_H

#include "common/checkpoint/FindCheckpoint.h"
#include "common/data/LossScaler.h"
#include "common/data/RateWeights.h"
#include "common/plan/Plan.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace meshwright {

/// The files of a checkpoint, besides state.json and those of adapters, and the version of its format.
inline constexpr char modelFile[] = "model.safetensors", optimizerFile[] = "optimizer.safetensors";
inline constexpr int64_t stateVersion = 3, shardedVersion = 4;

/// The path within a checkpoint of the model's description `config`.
const char *configName(const std::string &config);

/// What a run needs besides tensors to go on exactly.
struct TrainingState {
  int64_t step = 0;     ///< steps done, and the number of the next
  int64_t position = 0; ///< sequences taken from the data order
  int64_t seed = 0;
  bool shuffle = false;
  int64_t tokens = 0;                 ///< in the data files
  std::vector<int64_t> fileTokens = {}; ///< in each, if there are several
  int64_t batch = 0;                  ///< sequences a step
  /// Of --data: the name, the weight, and how many sequences were read before position `mixed`, where this
  /// mixture began. Empty in checkpoints of earlier versions, whose data is one source.
  struct Source {
    std::string name;
    double weight;
    int64_t taken;
  };
  std::vector<Source> sources = {};
  int64_t mixed = 0;
  /// Sizes and checksums of what it is trained on, by flags, on rank 0; none in checkpoints of earlier versions.
  std::map<std::string, std::string> data = {};
  std::optional<LossScale> lossScale; ///< of runs in fp16
  std::optional<RateWeights> rates;   ///< of optimizers that average parameters
  /// By which copies of experts are placed: by layer, the tokens of each expert; none where there are no copies.
  std::map<int64_t, std::vector<double>> expertLoads = {};
  int64_t skipped = 0; ///< steps that updated nothing because a router's logits were not finite
  /// The flags of the run that a resumed one need not be given, as text; none in checkpoints of
  /// earlier versions.
  std::map<std::string, std::string> flags;
  /// All that changes what the run computes (common/launch/Numbers.h), on rank 0; none in checkpoints of earlier
  /// versions.
  std::map<std::string, std::string> numbers = {};
};

/// The checksums of the headers of a checkpoint's files, or of its folders of shards; empty in those of earlier versions.
struct CheckpointIds {
  std::string model, optimizer;
};

/// The name of the checkpoint after `step` steps.
std::string checkpointName(int64_t step);

/// How many bytes a checkpoint's tensors take on the disk.
int64_t checkpointBytes(const Plan &plan);

/// How many bytes of these `rank` writes into a sharded checkpoint.
int64_t shardBytes(const Plan &plan, int64_t rank);

/// Where the tensors of the file `name` are in the checkpoint `directory`: in that file, or in a folder of shards.
std::string tensorsIn(const std::string &directory, const std::string &name);

/// Reads state.json of the checkpoint `directory`.
TrainingState readState(const std::string &directory);
CheckpointIds readIds(const std::string &directory);

/// An Error naming the first difference if the checkpoint `directory` is of another model or
/// vocabulary than `plan`, whose weights then compute something else, even if their shapes are the
/// same. `otherwise` comes behind its remedy.
void checkSameWeights(const Plan &plan, const std::string &directory,
                      const std::string &otherwise = "");

/// A note on what the config.json beside the file `weights` of --init and that of `plan` say
/// differently; empty if there is none or both agree.
std::string otherConfig(const Plan &plan, const std::string &weights);

/// An Error naming the first difference if the checkpoint `directory` is of another
/// model, optimizer, sequence length or vocabulary than `plan`. The mesh, the batch
/// and the microbatches may differ: files hold global tensors, the position in the
/// data counts sequences.
void checkSameModel(const Plan &plan, const std::string &directory);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_CHECKPOINT_H
