//===- Recovery.h - what becomes of a step that is not finite -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A step whose gradient norm is not finite has changed no variable (train.guard), so the
// state before it is whole. --on-nan says how the run goes on: not at all, without that
// batch, or from its last checkpoint without the data since (as PaLM was trained,
// Chowdhery et al. 2022, section 5.1).
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_RECOVERY_H
#define MESHWRIGHT_RUNTIME_COMMON_RECOVERY_H

#include "common/monitor/LossSpikes.h"
#include "common/train/Batches.h"
#include "common/train/Run.h"
#include "common/train/Saving.h"
#include "common/train/StepReport.h"

namespace meshwright {

class Recovery {
public:
  Recovery(Run &run, Batches &batches, Saving &saving, StepReport &report)
      : run(run), batches(batches), saving(saving), report(report) {}

  /// Decides about the step that has run, by --on-nan if its loss or gradient is not finite and it was
  /// not skipped. Returns whether it counts as made, skipped or not; if not, the run is back at
  /// a checkpoint. An Error if the run ends here. Collective.
  bool settle(StepMetrics &result);

private:
  std::string trouble(const StepMetrics &result) const;
  void warn(const std::string &message);
  [[noreturn]] void stop(const StepMetrics &result, const std::string &why);
  void skip(StepMetrics &result);
  void goBack(const StepMetrics &result);

  Run &run;
  Batches &batches;
  Saving &saving;
  StepReport &report;
  LossSpikes spikes;
  int64_t skippedInARow = 0;
  int64_t returns = 0;      ///< to the checkpoint of step `returnedTo`
  int64_t returnedTo = -1;
  static constexpr int64_t mostSkipped = 10; ///< in a row; one more ends the run
  static constexpr int64_t mostReturns = 3;  ///< to one checkpoint; one more ends the run
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_RECOVERY_H
