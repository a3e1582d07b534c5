//===- Metrics.h - what a run reports while it trains ---------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_METRICS_H
#define MESHWRIGHT_RUNTIME_COMMON_METRICS_H

#include "common/checkpoint/OutputFile.h"
#include "common/monitor/ExpertTokens.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace meshwright {

struct StepMetrics {
  int64_t step = 0; ///< counted from 0; with `evaluatedOnly`, how many steps the weights have had
  double loss = 0, gradNorm = 0, lr = 0, stepMs = 0;
  double tokensPerSecond = 0;
  std::optional<double> auxLoss; ///< the routers' part of the loss
  std::optional<int32_t> expertRounds; ///< the most rounds, over all ranks, in which rows went to their experts
  std::optional<double> attentionImbalance; ///< of ranks that divide documents: the most of one over the mean
  std::optional<double> evalBitsPerByte; ///< where files say how many bytes their tokens are
  std::optional<double> evalLoss;
  std::optional<double> lossScale; ///< in fp16
  bool skipped = false;            ///< gradients overflowed or a router failed, nothing was updated
  std::optional<LayerTokens> failedRouter; ///< the first one whose logits were not finite
  std::vector<LayerTokens> expertTokens;   ///< of all layers, where asked for
  bool evaluatedOnly = false;      ///< no step was made: evalLoss is all there is
};

/// The JSON-lines file of --metrics: one object a step, on the disk's side of the
/// process as soon as the step is done.
class MetricsFile {
public:
  /// Starts the file, or goes on with it: a run resumed at `firstStep` > 0 keeps the
  /// lines of earlier steps and drops those it is about to repeat. The shortened file
  /// takes the old one's place in one step, so that no kill can lose lines.
  MetricsFile(const std::string &path, int64_t firstStep);
  void write(const StepMetrics &metrics);
  /// A line of another file that goes on in the same way: an object that says its "step".
  void writeLine(const std::string &line) { file->write(line + "\n"); }
  /// Closes the file; an Error if what was written is not there.
  void close() { file->close(); }

private:
  std::unique_ptr<OutputFile> file;
};

/// Progress on standard output: one line that is redrawn on a terminal, elsewhere
/// about twenty plain lines a run, and one every ten seconds. "step 99 (100/300)" is the step
/// that --metrics numbers 99, the hundredth of 300.
class Progress {
public:
  Progress(int64_t firstStep, int64_t steps);
  void show(const StepMetrics &metrics);
  /// Ends the redrawn line, so that other output can follow.
  void endLine();

private:
  using Clock = std::chrono::steady_clock;
  int64_t firstStep, steps;
  bool terminal, lineOpen = false;
  Clock::time_point begin, shown;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_METRICS_H
