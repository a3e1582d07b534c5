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
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace meshwright {

/// Means over pairs of direct preference optimization, see Preferences.
struct Rewards {
  double chosen = 0, rejected = 0; ///< of completions
  double accuracy = 0;             ///< the share of pairs whose chosen completion has the larger reward
  double margin = 0;               ///< of the chosen completion's reward over the other's
  double chosenLogProbs = 0, rejectedLogProbs = 0;

  /// Calls `take` with the name of each, as TRL has them, and its value.
  template <typename Take> void each(Take &&take) const {
    take("rewards/chosen", chosen);
    take("rewards/rejected", rejected);
    take("rewards/accuracies", accuracy);
    take("rewards/margins", margin);
    take("logps/chosen", chosenLogProbs);
    take("logps/rejected", rejectedLogProbs);
  }
};

/// The mean loss over the tokens of a set of --eval-data, the same for every batch size and mesh: without the
/// routers' part, which is no mean over tokens.
struct Evaluation {
  std::string name; ///< of the set; empty where there is one without
  double loss = 0;
  int64_t targets = 0; ///< that counted
  /// What the loss is for a byte of text, where files say how many bytes their tokens are and all
  /// tokens count.
  std::optional<double> bitsPerByte;
  std::optional<Rewards> rewards; ///< of pairs, over which the loss is a mean then

  /// "eval_loss" as `key`: that of a set with a name is "eval_loss/NAME".
  std::string key(const char *key) const { return name.empty() ? key : std::string(key) + "/" + name; }
};

struct StepMetrics {
  int64_t tokens = 0; ///< that the run has been trained on until now, over all its epochs
  std::optional<double> mfu; ///< model FLOPs utilization: the step's share of the peak that --peak-flops says
  int64_t step = 0; ///< counted from 0; with `evaluatedOnly`, how many steps the weights have had
  double loss = 0, gradNorm = 0, lr = 0, stepMs = 0;
  double tokensPerSecond = 0;
  std::optional<int64_t> batch;  ///< the step's sequences, in every step of a run that begins within a ramp
  std::optional<double> auxLoss; ///< the routers' part of the loss
  std::optional<Rewards> rewards; ///< with --loss dpo
  std::optional<int32_t> expertRounds; ///< the most rounds, over all ranks, in which rows went to their experts
  std::optional<double> attentionImbalance; ///< of ranks that divide documents: the most of one over the mean
  /// The rank whose kernels take longest beside those of ranks with the same work, and how many times as long.
  std::optional<std::pair<size_t, double>> slowest;
  /// Of weights and states after this step, by their names in checkpoints, where asked for.
  std::vector<std::pair<std::string, double>> norms;
  std::vector<Evaluation> evaluations; ///< of all sets, after this step
  std::optional<double> lossScale; ///< in fp16
  bool skipped = false;            ///< the gradient was not finite, nothing was updated
  std::optional<LayerTokens> failedRouter; ///< the first one whose logits were not finite
  std::vector<LayerTokens> expertTokens;   ///< of all layers, where asked for
  bool evaluatedOnly = false;      ///< no step was made: `evaluations` are all there is
};

/// The file of --metrics: one line a step, on the disk's side of the process as soon as the step is done. An
/// object of JSON, or, where the file's name ends in ".csv", a row of a table, whose columns the first line names.
class MetricsFile {
public:
  /// The first step of a run that makes none, and drops no line of others.
  static constexpr int64_t noStep = INT64_MAX - 1;

  /// Starts the file, or goes on with it: a run resumed at `firstStep` > 0 keeps the
  /// lines of earlier steps and drops those it is about to repeat. The shortened file
  /// takes the old one's place in one step, so that no kill can lose lines. `columns` are those of a table,
  /// which come after those that the file has.
  MetricsFile(const std::string &path, int64_t firstStep, std::vector<std::string> columns = {});
  void write(const StepMetrics &metrics);
  /// The columns of a table whose rows say what `metrics` does.
  static std::vector<std::string> columnsOf(const StepMetrics &metrics);
  /// Drops the lines of steps from `step` on, which the run is about to repeat; what went through a pipe stays.
  void goBackTo(int64_t step);
  /// A line of another file that goes on in the same way: an object that says its "step".
  void writeLine(const std::string &line) { file->write(line + "\n"); }
  /// Closes the file; an Error if what was written is not there.
  void close() { file->close(); }

private:
  void open(int64_t firstStep);
  std::string header() const;

  std::string path;
  bool isTable;
  std::vector<std::string> columns; ///< of a table
  std::unique_ptr<OutputFile> file;
};

/// Progress on standard output: one line that is redrawn on a terminal, elsewhere
/// about twenty plain lines a run, and one every ten seconds, or one after `every` steps. "step 99 (100/300)" is the step
/// that --metrics numbers 99, the hundredth of 300.
class Progress {
public:
  Progress(int64_t firstStep, int64_t steps, int64_t every);
  void show(const StepMetrics &metrics);
  /// Ends the redrawn line, so that other output can follow.
  void endLine();

private:
  using Clock = std::chrono::steady_clock;
  int64_t firstStep, steps, every;
  bool terminal, lineOpen = false;
  Clock::time_point begin, shown;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_METRICS_H
