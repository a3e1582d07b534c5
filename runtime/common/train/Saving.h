//===- Saving.h - what a run leaves, however it ends ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_SAVING_H
#define MESHWRIGHT_RUNTIME_COMMON_SAVING_H

#include "common/checkpoint/SaveFolder.h"
#include "common/data/TokenData.h"
#include "common/monitor/Error.h"
#include "common/train/Run.h"

#include <memory>
#include <string>

namespace meshwright {

/// The checkpoints of a run, and what ranks agree on so that all of them save after the same step.
class Saving {
public:
  explicit Saving(Run &run) : run(run) {}

  /// Takes the folder of --save, on rank 0. Checkpoints get a copy of the tokenizer of `data`.
  void open(const TokenData &data);

  /// Saves the state, unless it is saved. Collective.
  void save();
  /// How many steps the last checkpoint of this run has, or -1.
  int64_t savedStep() const { return saved; }

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
  Run &run;
  std::unique_ptr<SaveFolder> folder; ///< on rank 0
  int64_t saved = -1;
  std::string failed; ///< what an attempt on this rank failed with
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_SAVING_H
