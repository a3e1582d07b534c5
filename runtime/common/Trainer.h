//===- Trainer.h - one rank's training run --------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_TRAINER_H
#define MESHWRIGHT_RUNTIME_COMMON_TRAINER_H

#include "common/Arena.h"
#include "common/Checkpoint.h"
#include "common/Context.h"
#include "common/DataOrder.h"
#include "common/LossScaler.h"
#include "common/Metrics.h"
#include "common/Options.h"
#include "common/TokenFile.h"

#include <limits>
#include <memory>
#include <optional>

namespace meshwright {

class Trainer {
public:
  /// Opens files, allocates the arena and fills the variables. Collective. Files that
  /// the run writes are opened last: a start that fails leaves them as they were.
  Trainer(MwContext &context, const Options &options);

  /// Runs the steps. Collective.
  void run();

private:
  void checkTokens();
  void checkOutputs() const;
  void checkDump() const;
  void resumeState();
  void loadWeights();
  void note(const std::string &message) const;
  void fillTokens(const TokenFile &file, const DataOrder &order, int64_t position,
                  int64_t end = std::numeric_limits<int64_t>::max());
  void fillScalars(int64_t step);
  void startLossScaling();
  template <typename T> T *input(const char *name) const;
  float output(const char *name) const;
  StepMetrics trainStep(int64_t step);
  /// Reads the next step's tokens while a device is still at this one.
  void readAhead(int64_t step);
  void openEvalData();
  double evaluate();
  /// What a run does that has no step to make.
  void evaluateOnly();
  void save();
  void upload(ArenaRange range) { arena->upload(range.begin, range.end); }
  void download(ArenaRange range) { arena->download(range.begin, range.end); }

  bool isRoot() const { return context.rank() == 0; }

  MwContext &context;
  const Plan &plan;
  const Options &options;
  TrainingState state;
  std::string checkpoint; ///< the one to go on from, or empty
  TokenFile data;
  std::unique_ptr<DataOrder> order;
  std::unique_ptr<TokenFile> evalData;
  int64_t evalSequences = 0; ///< of evalData, how many an evaluation takes
  std::unique_ptr<MetricsFile> metrics;
  std::unique_ptr<OutputFile> traceFile; ///< of rank 0, with --trace
  std::unique_ptr<Arena> arena;
  std::optional<LossScaler> scaler; ///< in fp16
  int64_t savedStep = -1;
  int64_t filled = -1; ///< the position whose tokens the host has in the program's inputs
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_TRAINER_H
