//===- Run.h - what the parts of a training run share ---------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_RUN_H
#define MESHWRIGHT_RUNTIME_COMMON_RUN_H

#include "common/checkpoint/Checkpoint.h"
#include "common/data/BatchRamp.h"
#include "common/data/LossScaler.h"
#include "common/data/TokenData.h"
#include "common/launch/Options.h"
#include "common/plan/Arena.h"
#include "common/train/Context.h"
#include "common/train/ExpertCopies.h"

#include <memory>
#include <optional>
#include <string>

namespace meshwright {

/// A rank's run: what it was given, its tensors, and what a checkpoint keeps beside them.
struct Run {
  Run(MwContext &context, const Options &options)
      : context(context), plan(context.plan), options(options) {}

  bool isRoot() const { return context.rank() == 0; }
  /// Rank 0 says it.
  void note(const std::string &message) const;

  /// The memory of input `name`, or null if the program does not use it.
  template <typename T> T *input(const char *name) const {
    auto found = plan.inputs.find(name);
    return found == plan.inputs.end() ? nullptr : arena->at<T>(found->second.offset);
  }
  float output(const char *name) const { return *outputs(name); }
  /// All elements of an output.
  const float *outputs(const char *name) const { return arena->at<float>(plan.outputs.at(name).offset); }
  void upload(ArenaRange range) { arena->upload(range.begin, range.end); }
  void download(ArenaRange range) { arena->download(range.begin, range.end); }
  /// The host does not look at variables before it downloads them again.
  void forgetVariables() const;
  /// Runs a program on the inputs that the host has written.
  void start(EntryPoint program) {
    upload(Plan::rangeOf(plan.inputs));
    context.run(program, arena->program());
  }

  /// The sequences of the step that begins after `position` of them.
  int64_t batchAt(int64_t position) const { return ramp ? ramp->batchAt(position) : plan.batch; }
  /// Says of how many sequences the batch in the program's inputs is, and where experts have copies.
  void writeInputs(int64_t batch) const;

  /// Begins the state, from --resume or anew, for training on `data`.
  void startState(const TokenData &data);
  /// Allocates the arena and fills its variables. Collective.
  void loadWeights();
  /// Chooses copies of experts by `loads` from here on.
  void placeExperts(ExpertLoads loads, const std::string &source);
  /// Takes the tensors and the step of `checkpoint`, one of this run, and keeps its place in the data. Collective.
  void goBackTo(const std::string &checkpoint);

  MwContext &context;
  const Plan &plan;
  const Options &options;
  TrainingState state;
  std::string checkpoint;           ///< the one to go on from, or empty
  int64_t firstStep = 0;            ///< that this run makes
  int64_t lastBatch = 0;            ///< the sequences of the step made last
  std::optional<BatchRamp> ramp;    ///< where steps may have fewer sequences than the program is for
  bool reportsBatch = false;        ///< whether rows of metrics have the batch: of a ramp, also once it is over
  std::optional<LossScaler> scaler; ///< in fp16
  std::optional<ExpertCopies> copies; ///< where experts may have some
  std::unique_ptr<Arena> arena;

private:
  void resumeState(const TokenData &data);
  void checkGroups(const TrainingState &saved) const;
  void noteOtherData(const TrainingState &saved, bool isNoted) const;
  void resumeMixture(std::vector<TrainingState::Source> given);
  void checkGivenRamp() const;
  void startBatchRamp();
  void startLossScaling();
  void startRateWeights();
  void startExpertCopies();
  void takeLossScale(std::optional<LossScale> saved);
  void fillWeights(const std::string &from);
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_RUN_H
