//===- Options.h - the executable's command line --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_OPTIONS_H
#define MESHWRIGHT_RUNTIME_COMMON_OPTIONS_H

#include "meshwright/runtime/PlanSchema.h"

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace meshwright {
/// The hyperparameter that is the decay of the second moment.
inline constexpr char secondDecay[] = "beta2";

struct Plan;

struct Options {
  using Files = std::vector<std::string>; ///< each value of a flag that may be repeated
  Files data; ///< of all sources, one source after the other
  /// What --data mixes: files that are one source of sequences.
  struct Source {
    std::string name; ///< as it was given
    int64_t files = 0;
    double weight = 1; ///< relative to the others'
  };
  std::vector<Source> sources; ///< one unless weights were given
  std::string tokens = "u16";
  int64_t steps = 0;
  double lr = 3e-4, minLr = 0;
  int64_t warmup = 0;
  std::string lrSchedule = "constant";
  double decayFraction = 0.1;       ///< of --steps, which wsd ends with
  std::string decayShape = "linear"; ///< of wsd
  std::string lrMilestones;         ///< ascending steps of multi-step, with commas
  double lrGamma = 0.1;             ///< the rate's factor at each of them
  std::string batchRamp;            ///< how the batch grows; see BatchRamp
  bool reschedule = false;          ///< a resumed run may end its schedule at another step
  int64_t seed = 0;
  bool shuffle = false, noShuffle = false; ///< `shuffle` is set by default too
  double gradClip = 1.0;
  int64_t freezeVariance = 0; ///< 0: never
  /// Those of the executable's optimizer, with their flags and values.
  struct Hyperparameter : plan::Hyperparameter {
    std::string flag;
    double value;
  };
  std::string optimizer;
  bool trainsAdapters = false; ///< the executable's step changes adapters alone
  std::vector<Hyperparameter> hyperparameters;
  Files lossMask, evalData, evalLossMask;
  Files documents, evalDocuments; ///< or one token each
  /// What an encoder reads.
  Files source, sourceDocuments, evalSource, evalSourceDocuments;
  /// Log-probabilities of pairs under the reference model, to be read and to be written.
  std::string referenceLogProbs, logProbs;
  Files evalReferenceLogProbs; ///< one for each set
  /// What is evaluated on its own, of the files of --eval-data, --eval-loss-mask and --eval-documents.
  struct EvaluationSet {
    std::string name; ///< empty where the flag names none
    Files data, lossMask, documents, source, sourceDocuments, reference;
  };
  std::vector<EvaluationSet> evaluationSets;
  /// A folder of --save, and after how many steps each it gets a checkpoint; 0: at the end only.
  struct SaveTier {
    std::string folder;
    int64_t every = 0;
    bool byFlag = false; ///< `every` is that of --save-every
  };
  std::vector<SaveTier> saveTiers;
  Files save; ///< their folders
  std::string saveFormat = "auto", saveCommit = "rename";
  bool asyncSave = false;
  std::string buddy; ///< a folder in memory
  std::string ssd;   ///< a folder of a disk
  std::string init, adapter, saveMerged, resume, metrics, tensorboard, logSamples, trace, dump, tune;
  bool evalOnly = false;
  std::string onNan = "stop";
  int64_t logEvery = 0; ///< 0: not given
  int64_t logNorms = 0; ///< 0: never
  std::string peakRate;
  /// What `peakRate` says: FLOP/s of a rank, or that they are to be measured.
  double peakFlops = 0;
  bool measurePeak = false;
  int64_t traceFrom = 0, traceSteps = 0; ///< traceSteps 0: all
  int64_t dumpStep = 0;
  int64_t saveEvery = 0, keep = 0, evalEvery = 0; ///< keep 0: all
  int64_t evalBatches = 0;                        ///< 0: all
  double initialLossScale = 65536, minLossScale = 1;
  int64_t lossScaleWindow = 1000, hysteresis = 2;
  int64_t checkReplicas = 0, stragglers = 0; ///< 0: never
  int64_t expertTokensEvery = 0, idleExpertSteps = 100; ///< 0: never
  std::string expertLoads; ///< a file of metrics
  int64_t placeExpertsEvery = 0; ///< 0: never
  std::string cudaGraphs = "auto";
  std::string generate, tokenizer;
  Files stop;
  int64_t generateTokens = 128; ///< those of --tokens with --generate
  double temperature = 1, topP = 1;
  int64_t topK = 0;
  bool lines = false; ///< what --generate names has a prompt in each line
  int64_t beams = 1;  ///< 1: no beam search
  double lengthPenalty = 1;
  std::string earlyStopping = "off";
  int64_t ranks = 0; ///< 0: not given

  Options() = default;
  /// The flags of an executable whose plan begins so.
  explicit Options(const plan::Header &plan);
  double hyperparameter(const std::string &name) const;
  /// ... in the update with this number, from 1 on: a decay of 1 leaves the second moment as it is.
  double hyperparameter(const Hyperparameter &number, int64_t updates) const;
  /// Of the hyperparameter h 1 - h^updates, or updates^-h.
  double biasCorrection(const plan::BiasCorrection &correction, int64_t updates) const;
  /// Whether the average with the decay `name` stays as it is (--freeze-variance).
  bool isFrozen(const std::string &name, int64_t updates) const;

  /// Whether the flag `name` ("--seed") was on the command line.
  bool given(const std::string &name) const { return givenFlags.count(name) != 0; }
  std::set<std::string> givenFlags;
};

/// What a flag must have in common on ranks that are started apart from each other.
enum class AcrossRanks {
  Same,           ///< the value
  SameFile,       ///< the contents of a file, or of several in order
  SameDocuments,  ///< a number, or else the contents of files
  SameWeights,    ///< those of a safetensors file, or of all that an index names
  SameCheckpoint, ///< those of a checkpoint, and its step
  Given,          ///< only whether it is given
  Free            ///< nothing
};

struct FlagValue {
  std::string name;
  AcrossRanks across;
  std::string value; ///< as text that says it exactly; empty where a text is not given
  Options::Files files = {}; ///< of a file or several
  std::string sets = {}; ///< which sets these files are, in words; empty if they are one
};

/// Every flag that there is, with its value. Those whose value is a checkpoint's are not given.
std::vector<FlagValue> flagValues(const Options &options);

/// Values of flags as text, by their names.
using FlagTexts = std::map<std::string, std::string>;

/// The flags that a checkpoint has, so that a run that goes on from it need not be given them.
FlagTexts keptFlags(const Options &options);

/// Those of `options` that are not as in `saved`: "--lr 1e-04, was 3e-04; --steps 40, was 20".
std::string changedFlags(const Options &options, const FlagTexts &saved);

/// Those with an effect on a run of `plan` that neither a checkpoint with `saved` nor the command
/// line says, and their defaults.
std::string unsaidFlags(const Options &options, const Plan &plan, const FlagTexts &saved);

/// The options in the arguments, behind those that `options` has, or an Error naming the flag and what it takes.
/// With --help prints the help made from the flag table (if `printHelp`: one of
/// several processes does, and prints notes) and returns false, and so with --version what `version` says;
/// `options` is set if the result is true. `savedFlags` gives those of a checkpoint to resume from;
/// without it nothing is taken from there. `prepare` is called before --resume auto looks for a checkpoint.
bool parseOptions(int argc, const char *const *argv, Options &options, bool printHelp = true,
                  const std::function<std::string()> &version = {},
                  const std::function<FlagTexts(const std::string &resume)> &savedFlags = {},
                  const std::function<void(const Options &)> &prepare = {});

/// Refuses flags that would change nothing in a run of this plan's executable, and runs without a
/// flag that it needs.
void checkEffects(const Options &options, const Plan &plan);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_OPTIONS_H
