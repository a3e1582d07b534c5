//===- StepReport.h - what a run says of its steps ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_STEPREPORT_H
#define MESHWRIGHT_RUNTIME_COMMON_STEPREPORT_H

#include "common/monitor/ExpertTokens.h"
#include "common/monitor/Metrics.h"
#include "common/monitor/SampleLog.h"
#include "common/monitor/TensorBoard.h"
#include "common/train/Batches.h"
#include "common/train/Preferences.h"
#include "common/train/Run.h"

#include <memory>
#include <optional>

namespace meshwright {

/// Reads what a step has computed, and writes --metrics, the progress line and --trace.
class StepReport {
public:
  explicit StepReport(Run &run);

  /// Finds out before the weights are read whether the run can write what it will.
  void check() const;
  /// Opens the files: last of all, so that a start that fails leaves them as they were. `evaluations` are as
  /// those of the run will be, without losses.
  void open(const std::vector<Evaluation> &evaluations, bool hasPeak);

  /// The results of the step that has run, which is `step`, skipped ones said to be so. `reference` are the
  /// log-probabilities that the step has read, if it has pairs. Collective.
  StepMetrics read(int64_t step, const std::vector<float> &reference);
  /// Counts a step that changed nothing, as bias corrections do not: in fp16 as an overflow, which also ends a row
  /// of good steps, unless a router failed.
  void noteSkipped(const StepMetrics &result);
  /// Whether `result` is logged: by --log-every, and the last step, skipped ones and those with an evaluation.
  bool isLogged(const StepMetrics &result) const;
  void write(const StepMetrics &result);
  /// Logs which sequences `step` has read, from `position` on, where that is asked for.
  void writeSamples(int64_t step, const Batches &batches, int64_t position);
  /// The progress line.
  void show(const StepMetrics &result);
  void endLine();
  /// Drops what was logged of steps from `step` on: the run makes them again.
  void goBackTo(int64_t step);
  /// Writes the trace and closes the metrics. Collective.
  void close();

private:
  std::optional<int32_t> mostRounds() const;
  std::vector<std::string> columns(const std::vector<Evaluation> &evaluations, bool hasPeak) const;
  void readExperts(StepMetrics &result);
  void readScale(StepMetrics &result);
  void readNorms(StepMetrics &result);
  void noteOtherReference(const Preferences &preferences) const;

  Run &run;
  std::unique_ptr<MetricsFile> metrics;
  std::optional<EventFile> events; ///< of rank 0, with --tensorboard
  std::optional<SampleLog> samples;      ///< of rank 0, with --log-samples
  std::unique_ptr<OutputFile> traceFile; ///< of rank 0, with --trace
  std::optional<Progress> progress;
  std::optional<ExpertTokens> experts;         ///< of models that have some
  int64_t failures = 0;                        ///< steps in a row that routers have failed in
  static constexpr int64_t failuresInARow = 3; ///< so many end the run
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_STEPREPORT_H
