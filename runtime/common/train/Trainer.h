//===- Trainer.h - one rank's training run --------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_TRAINER_H
#define MESHWRIGHT_RUNTIME_COMMON_TRAINER_H

#include "common/train/Batches.h"
#include "common/train/Run.h"
#include "common/monitor/ReplicaCheck.h"
#include "common/monitor/Stragglers.h"
#include "common/monitor/TimeUse.h"
#include "common/train/Recovery.h"
#include "common/train/Saving.h"
#include "common/train/StepReport.h"

#include <chrono>
#include <optional>

namespace meshwright {

/// The steps of a run.
class Trainer {
public:
  /// Opens files, allocates the arena and fills the variables. Collective. Files that
  /// the run writes are opened last: a start that fails leaves them as they were.
  Trainer(MwContext &context, const Options &options);

  /// Runs the steps. Collective. Returns the exit code: not 0 if a signal has ended the run
  /// before its last step.
  int train();

private:
  using Clock = std::chrono::steady_clock;

  void checkDump() const;
  double peakOfAll() const;
  /// Fails where replicas of a value differ between ranks. Collective.
  void checkReplicas();
  /// Whether a step's kernels are measured for --stragglers.
  bool isMeasured(int64_t step) const { return stragglers && (step + 1) % options.stragglers == 0; }
  void sayHello() const;
  void evaluateOnly();
  /// Runs the steps until the last or a signal, which it returns, or 0.
  int runSteps();
  /// Reads the data of `step`.
  void startStep(int64_t step);
  void fillScalars(int64_t step);
  StepMetrics trainStep(int64_t step, Clock::time_point begin);

  Run run;
  MwContext &context;
  const Plan &plan;
  const Options &options;
  Batches batches;
  Saving saving;
  StepReport report;
  Recovery recovery;
  std::optional<ReplicaCheck> replicas; ///< with --check-replicas
  std::optional<Stragglers> stragglers; ///< with --stragglers
  int64_t comparedStep = -1;            ///< after which replicas were compared last
  TimeUse time;
  double peak = 0; ///< of all ranks, in FLOP/s; 0: not known
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_TRAINER_H
