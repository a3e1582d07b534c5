//===- Batches.h - what a run reads ---------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_BATCHES_H
#define MESHWRIGHT_RUNTIME_COMMON_BATCHES_H

#include "common/data/DataOrder.h"
#include "common/data/LogProbs.h"
#include "common/data/TokenData.h"
#include "common/data/TokenMask.h"
#include "common/monitor/AttentionShares.h"
#include "common/train/Run.h"

#include <limits>
#include <memory>
#include <optional>

namespace meshwright {

/// Fills the inputs of programs with sequences of --data and --eval-data.
class Batches {
public:
  /// Opens the files.
  explicit Batches(Run &run);

  /// Finds what may not be in them. Collective.
  void check();
  /// After the run has its state, which says in which order the data comes.
  void start();

  const TokenData &training() const { return data; }
  /// The file and the number there of each sequence of the batch at `position`, for all ranks.
  std::vector<std::pair<int64_t, int64_t>> samples(int64_t position) const;
  /// How the sources of a mixture are read, in words: "70.0% a/ and 30.0% b/"; empty with one source.
  std::string mixtureText() const;
  /// The share of each source in what was read of it until now, and its epochs; empty with one source.
  std::string readText() const;
  /// Data that is evaluated on its own.
  struct EvaluationSet {
    std::string name; ///< empty where there is one without
    std::unique_ptr<TokenData> data;
    int64_t sequences = 0; ///< of the data, how many an evaluation takes
    std::optional<LogProbs> reference; ///< of all sequences, where they are pairs
    bool saidNoTargets = false;
  };
  std::vector<EvaluationSet> &evaluationSets() { return evaluation; }

  /// The batch of `step`, which the run comes to next, unless it is there already.
  void fill(int64_t step);
  /// That of the step after the one that a device is at.
  void fillAhead(int64_t step);
  /// The next batch is read again, where a run goes back.
  void forgetFilled() { filled = -1; }
  /// The batch of `set` that begins with its sequence `first`.
  void fillEvaluation(EvaluationSet &set, int64_t first);

  /// Of the batch that was filled in last: the targets that count, over all ranks, and the
  /// operations of this rank's attention in a step.
  int64_t countedTargets() const { return counted; }
  /// The log-probabilities of all its sequences under the reference model, where they are pairs.
  const std::vector<float> &reference() const { return referenceOfBatch; }
  double attentionFlops() const { return flops; }
  /// Where ranks divide documents: the most of one rank's `flops` over the mean. Collective.
  std::optional<double> attentionImbalance(double flops) const;

private:
  void requirePairFiles(const Options::EvaluationSet &given) const;
  EvaluationSet opened(const Options::EvaluationSet &given) const;
  void noteRepeats();
  void readAhead(int64_t position) const;
  void checkTokens();
  void noteTokenizers(const std::vector<const TokenData *> &sources) const;
  void noteLonger(const TokenData &source, int64_t part, int64_t parts);
  void checkPairs(const TokenData &source, int64_t part, int64_t parts);
  void checkTargets(const TokenData &source, int64_t sequences);
  /// The batch of `step`, which begins at `position`.
  void fillStep(int64_t position, int64_t step);
  /// `step` numbers the choice of masked tokens; without it they are those of an evaluation. `saidNoTargets` is of
  /// the source.
  void fill(const TokenData &source, const DataOrder &order, int64_t position, int64_t batch,
            std::optional<int64_t> step, bool &saidNoTargets, const std::optional<LogProbs> &reference,
            int64_t end = std::numeric_limits<int64_t>::max());
  int64_t sequenceAt(int64_t place, int64_t batch) const;
  void fillReference(const std::optional<LogProbs> &reference, const DataOrder &order, int64_t position, int64_t batch,
                     bool isStep, int64_t end);
  void noteNoTargets(const TokenData &source, std::optional<int64_t> step) const;

  Run &run;
  const Plan &plan;
  const Options &options;
  TokenData data;
  std::optional<LogProbs> dataReference; ///< of `data`, where it is pairs
  std::unique_ptr<DataOrder> order;
  std::optional<TokenMask> trainingMask, evaluationMask; ///< of encoders
  std::vector<EvaluationSet> evaluation;
  std::optional<AttentionShares> shares; ///< where ranks divide documents
  bool saidNoTargets = false; ///< of `data`
  int64_t counted = 0;
  std::vector<float> referenceOfBatch;
  double flops = 0;
  int64_t filled = -1; ///< the position whose tokens the host has in the program's inputs
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_BATCHES_H
