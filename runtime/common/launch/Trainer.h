//===- Trainer.h - one rank's training run --------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_TRAINER_H
#define MESHWRIGHT_RUNTIME_COMMON_TRAINER_H

#include "common/checkpoint/Checkpoint.h"
#include "common/checkpoint/SaveFolder.h"
#include "common/data/DataOrder.h"
#include "common/data/LossScaler.h"
#include "common/data/TokenData.h"
#include "common/data/TokenMask.h"
#include "common/launch/Options.h"
#include "common/monitor/AttentionShares.h"
#include "common/monitor/Metrics.h"
#include "common/plan/Arena.h"
#include "common/plan/Context.h"

#include <chrono>
#include <limits>
#include <memory>
#include <optional>

namespace meshwright {

class Trainer {
public:
  /// Opens files, allocates the arena and fills the variables. Collective. Files that
  /// the run writes are opened last: a start that fails leaves them as they were.
  Trainer(MwContext &context, const Options &options);

  /// Runs the steps. Collective. Returns the exit code: not 0 if a signal has ended the run
  /// before its last step.
  int run();

private:
  void checkTokens();
  void checkTargets(const TokenData &source, int64_t sequences);
  void checkOutputs();
  void checkDump() const;
  void resumeState();
  void loadWeights();
  void note(const std::string &message) const;
  /// `step` numbers the choice of masked tokens; without it they are those of an evaluation.
  void fillTokens(const TokenData &source, const DataOrder &order, int64_t position,
                  std::optional<int64_t> step,
                  int64_t end = std::numeric_limits<int64_t>::max());
  void noteNoTargets(std::optional<int64_t> step);
  void fillScalars(int64_t step);
  void startLossScaling();
  /// The memory of input `name`, or null if the program does not use it.
  template <typename T> T *input(const char *name) const {
    auto found = plan.inputs.find(name);
    return found == plan.inputs.end() ? nullptr : arena->at<T>(found->second.offset);
  }
  float output(const char *name) const;
  /// For metrics, the most rounds of a step over all ranks, whose stages have layers of their own.
  std::optional<int32_t> mostRounds();
  /// Takes note of what a step's routers did; a step that one of them failed in is skipped.
  void readExperts(StepMetrics &result);
  using Clock = std::chrono::steady_clock;

  /// Reads the data of `step`.
  void startStep(int64_t step);
  StepMetrics trainStep(int64_t step, Clock::time_point begin);
  /// Reads the next step's tokens while a device is still at this one.
  void readAhead(int64_t step);
  void openEvalData();
  double evaluate();
  /// What a run does that has no step to make.
  void evaluateOnly();
  void save();
  /// Whether a signal to stop waits for the end of a step: where the run leaves something then.
  bool stopsLater() const { return !options.save.empty() || !options.trace.empty(); }
  /// Does what can fail on one rank alone, between steps. With --save an error waits until
  /// `agree`.
  template <typename Work> void attempt(Work work);
  /// If an attempt has failed on any rank, saves the state, which is whole, and fails on all
  /// of them. Else returns the signal that asks the run to stop, or 0. Collective.
  int agree();
  void upload(ArenaRange range) { arena->upload(range.begin, range.end); }
  void download(ArenaRange range) { arena->download(range.begin, range.end); }

  bool isRoot() const { return context.rank() == 0; }

  MwContext &context;
  const Plan &plan;
  const Options &options;
  TrainingState state;
  std::string checkpoint; ///< the one to go on from, or empty
  TokenData data;
  std::unique_ptr<DataOrder> order;
  std::optional<TokenMask> trainingMask, evaluationMask; ///< of encoders
  std::unique_ptr<TokenData> evalData;
  std::optional<AttentionShares> attentionShares; ///< where ranks divide documents
  bool saidNoTargets = false, saidNoEvalTargets = false;
  int64_t evalSequences = 0; ///< of evalData, how many an evaluation takes
  int64_t evaluatedTargets = 0; ///< that counted in the last evaluation
  std::unique_ptr<MetricsFile> metrics;
  std::unique_ptr<OutputFile> traceFile; ///< of rank 0, with --trace
  std::unique_ptr<Arena> arena;
  std::optional<LossScaler> scaler; ///< in fp16
  std::optional<ExpertTokens> experts; ///< of models that have some
  int64_t failures = 0; ///< steps in a row that routers have failed in
  static constexpr int64_t failuresInARow = 3; ///< so many end the run
  std::unique_ptr<SaveFolder> folder; ///< on rank 0, with --save
  int64_t firstStep = 0, savedStep = -1;
  std::string failed; ///< what an attempt on this rank failed with
  int64_t countedTargets = 0; ///< of the batch that was filled in last, over all ranks
  double attentionFlops = 0;  ///< of this rank, in the step whose batch that is
  int64_t filled = -1; ///< the position whose tokens the host has in the program's inputs
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_TRAINER_H
