//===- Flags.cpp - the flags of an executable -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/launch/Flags.h"

#include "common/data/TokenData.h"
#include "common/launch/Device.h"
#include "common/monitor/Error.h"
#include "common/monitor/ExpertTokens.h"
#include "common/plan/Plan.h"

#include <string_view>

using namespace meshwright;

//===--- where flags have an effect -------------------------------------------===//

static std::string unlessRateFalls(const Options &options, const Plan &) {
  return options.lrSchedule != "constant" || options.minLr == 0
             ? ""
             : "is the rate at which --lr-schedule cosine and linear end; this run's rate is "
               "constant: leave it out, or choose one of the two";
}

static std::string unlessFp16(const Options &, const Plan &plan) {
  return plan.inputs.count("loss_scale")
             ? ""
             : text("is for executables compiled with --precision fp16, this one computes in ",
                    plan.precision, ": leave it out");
}

static std::string unlessTargetsCount(const Options &, const Plan &plan) {
  if (plan.maskedShare)
    return "is for models that predict the next token, but in this executable the tokens that "
           "--mlm masks are those that count: leave it out";
  return plan.inputNames.count("target_weight")
             ? ""
             : "needs a program that is told how many targets count, but this one divides by all: "
               "compile it from its config.json, or give its @loss the input \"target_weight\", as "
               "docs/models.md says";
}

static std::string unlessPacked(const Options &, const Plan &plan) {
  return plan.inputNames.count("positions")
             ? ""
             : "is for executables compiled with --packed, but this one's attention goes across "
               "documents: compile with --packed, or leave it out";
}

/// Files of `meshwright tokenize --documents` say themselves where documents begin.
static std::string whenUndivided(const Options::Files &files, const Plan &plan) {
  return plan.inputNames.count("positions") && !haveDocuments(files)
             ? "is needed by this executable, compiled with --packed: give the token that ends "
               "documents, or a file with the numbers of their first tokens, or files of tokens by "
               "'meshwright tokenize --documents'; or compile without --packed"
             : "";
}

static std::string whenPacked(const Options &options, const Plan &plan) {
  return whenUndivided(options.data, plan);
}

static std::string whenPackedEval(const Options &options, const Plan &plan) {
  return options.evalData.empty() ? "" : whenUndivided(options.evalData, plan);
}

static std::string unlessGpu(const Options &, const Plan &) {
  return !hostComputes()
             ? ""
             : "is for GPUs, but this executable computes on processors: leave it out, or compile "
               "with --target cuda";
}

static std::string unlessExperts(const Options &, const Plan &plan) {
  return ExpertTokens::isCounted(plan)
             ? ""
             : "is for models with experts, which this executable's has none of: leave it out";
}

static std::string unlessTraced(const Options &options, const Plan &) {
  return options.traceFrom < options.steps || options.steps == 0
             ? ""
             : text("begins the trace at step ", options.traceFrom,
                    ", but the run ends before step ", options.steps, ": name an earlier step");
}

//===--- the table -------------------------------------------------------------===//

// The key of dropout has 32 bits for the seed and 32 for the step.
static constexpr double largestSeed = 4294967295.0;

static constexpr Flag flags[] = {
    Flag{"--data", "FILE|DIR|GLOB", &Options::data,
         "tokens to train on: files of 'meshwright tokenize', plain little-endian tokens, or a llm.c file; "
         "given several times, or of a folder (its *.bin) or a pattern such as 'tokens/*.bin', several files in order, those of a "
         "folder or pattern by name. Sequences do not cross files"}
        .file(FileUse::Input)
        .onRanks(AcrossRanks::SameFile),
    Flag{"--tokens", "TYPE", &Options::tokens, "type of the tokens in --data and --eval-data, unless the file says it"}
        .oneOf("u8|u16|u32"),
    Flag{"--loss-mask", "FILE|DIR|GLOB", &Options::lossMask,
         "a byte for each token of --data: 1 if it counts as a target, 0 if it does not; one file for "
         "each of --data"}
        .file(FileUse::Input)
        .unless(unlessTargetsCount)
        .onRanks(AcrossRanks::SameFile),
    Flag{
        "--documents", "ID|FILE|DIR|GLOB", &Options::documents,
        "of what was compiled with --packed: the token that ends documents in --data, or for each of "
        "its files one of the numbers of their first tokens, u64 that ascend; default: as files of "
        "'meshwright tokenize --documents' say"}
        .file(FileUse::Input)
        .unless(unlessPacked)
        .neededBy(whenPacked)
        .onRanks(AcrossRanks::SameDocuments),
    Flag{"--steps", "N", &Options::steps,
         "optimizer steps in all, those before --resume included; cosine and linear end there; 0: none, to "
         "evaluate alone. Required without --resume"}
        .from(0)
        .kept(),
    Flag{"--lr", "RATE", &Options::lr, "learning rate"}.from(0).kept(),
    Flag{"--min-lr", "RATE", &Options::minLr, "rate at which cosine and linear end"}
        .from(0)
        .unless(unlessRateFalls)
        .kept(),
    Flag{"--warmup", "W", &Options::warmup, "steps t < W run at lr * (t + 1) / W"}.from(0).kept(),
    Flag{"--lr-schedule", "NAME", &Options::lrSchedule, "how the rate goes on after the warm-up"}
        .oneOf("constant|cosine|linear")
        .kept(),
    Flag{"--seed", "N", &Options::seed, "seed of initial weights, --shuffle and dropout"}.from(
        0, largestSeed),
    {"--shuffle", nullptr, &Options::shuffle,
     "visit the sequences in a new random order each epoch"},
    Flag{"--grad-clip", "X", &Options::gradClip, "largest global gradient norm; 0: no clipping"}
        .from(0)
        .kept(),
    Flag{"--initial-loss-scale", "X", &Options::initialLossScale,
         "fp16: factor of the loss at the start"}
        .from(1)
        .unless(unlessFp16),
    Flag{"--min-loss-scale", "X", &Options::minLossScale, "fp16: least factor of the loss"}
        .from(1)
        .unless(unlessFp16)
        .kept(),
    Flag{"--loss-scale-window", "N", &Options::lossScaleWindow,
         "fp16: good steps in a row after which the factor doubles"}
        .from(1)
        .unless(unlessFp16)
        .kept(),
    Flag{"--hysteresis", "N", &Options::hysteresis,
         "fp16: overflows after which the factor is halved"}
        .from(1)
        .unless(unlessFp16)
        .kept(),
    Flag{"--resume", "DIR|auto", &Options::resume,
         "go on from the latest checkpoint in DIR, or from the checkpoint DIR; auto: from the "
         "latest in --save's folder, or as a new run where there is none, so that the same command "
         "starts "
         "a run and goes on with it. --steps and what says how the optimizer steps are the "
         "checkpoint's where they are not given"}
        .file(FileUse::InputFolder)
        .onRanks(AcrossRanks::SameCheckpoint),
    Flag{"--init", "FILE|DIR", &Options::init,
         "initial weights: a safetensors file, the index of several, or a folder with one of these"}
        .file(FileUse::Input)
        .onRanks(AcrossRanks::SameWeights),
    Flag{"--save", "DIR", &Options::save,
         "write checkpoints into this folder, one at the end of the run, also after SIGTERM or "
         "SIGINT"}
        .file(FileUse::OutputFolder, ".lock .others latest step-*"),
    Flag{"--save-every", "K", &Options::saveEvery,
         "also write one after every K steps; 0: only at the end"}
        .from(0)
        .with("--save"),
    Flag{"--keep", "N", &Options::keep,
         "keep the N checkpoints of the run that were written last, remove older ones; 0: all"}
        .from(0)
        .with("--save"),
    Flag{"--metrics", "FILE", &Options::metrics,
         "write a line of JSON for each step: loss, rate, time and so on"}
        .file(FileUse::Output)
        .onRanks(AcrossRanks::Free),
    Flag{"--expert-tokens-every", "N", &Options::expertTokensEvery,
         "after every N steps, --metrics also has how many of the step's tokens chose each expert "
         "of "
         "each layer; 0: never"}
        .from(0)
        .with("--metrics")
        .unless(unlessExperts),
    Flag{"--idle-expert-steps", "K", &Options::idleExpertSteps,
         "warn of an expert that no token has chosen for K steps; 0: never"}
        .from(0)
        .unless(unlessExperts),
    Flag{"--eval-data", "FILE|DIR|GLOB", &Options::evalData,
         "tokens to evaluate on, all of them, at the end of the run; several files as of --data"}
        .file(FileUse::Input)
        .onRanks(AcrossRanks::SameFile),
    Flag{"--eval-loss-mask", "FILE|DIR|GLOB", &Options::evalLossMask,
         "a byte for each token of --eval-data, as --loss-mask has them"}
        .file(FileUse::Input)
        .with("--eval-data")
        .unless(unlessTargetsCount)
        .onRanks(AcrossRanks::SameFile),
    Flag{"--eval-documents", "ID|FILE|DIR|GLOB", &Options::evalDocuments,
         "where the documents of --eval-data end or begin, as --documents has it"}
        .file(FileUse::Input)
        .with("--eval-data")
        .unless(unlessPacked)
        .neededBy(whenPackedEval)
        .onRanks(AcrossRanks::SameDocuments),
    Flag{"--eval-every", "K", &Options::evalEvery,
         "also evaluate after every K steps; 0: only at the end"}
        .from(0)
        .with("--eval-data"),
    Flag{"--eval-batches", "N", &Options::evalBatches,
         "evaluate on the first N batches at most; 0: on all"}
        .from(0)
        .with("--eval-data"),
    Flag{"--trace", "FILE", &Options::trace,
         "write what each rank did, for Perfetto or chrome://tracing; at most 1048576 spans a rank"}
        .file(FileUse::Output),
    Flag{"--trace-from", "K", &Options::traceFrom, "trace from step K on (the first step is 0)"}
        .from(0)
        .with("--trace")
        .unless(unlessTraced),
    Flag{"--trace-steps", "N", &Options::traceSteps, "trace N steps; 0: all"}.from(0).with(
        "--trace"),
    Flag{"--dump", "DIR", &Options::dump,
         "write all that one step reads and computes, for `meshwright replay DIR`"}
        .file(FileUse::OutputFolder, "rank-* program.mlir")
        .onRanks(AcrossRanks::Given),
    Flag{"--dump-step", "K", &Options::dumpStep, "dump step K (the first step is 0)"}.from(0).with(
        "--dump"),
    Flag{"--cuda-graphs", "MODE", &Options::cudaGraphs,
         "run the program on a GPU as a CUDA graph; auto: where it can be captured and has no "
         "messages, as pipelines do"}
        .oneOf("on|off|auto")
        .unless(unlessGpu),
    Flag{"--tune", "FILE", &Options::tune,
         "GPUs: use the fastest algorithms of products and attention. FILE has them, or they are "
         "timed now and written there; cache: a file for this kind of GPU, driver and libraries in "
         "the user's cache, which all executables share"}
        .file(FileUse::Output)
        .unless(unlessGpu)
        .onRanks(AcrossRanks::Given),
    Flag{"--ranks", "N", &Options::ranks, "run N ranks as threads of this process"}.from(1).onRanks(
        AcrossRanks::Free),
};

/// Whether each flag whose value is a file or a folder says how the run uses it.
static constexpr bool knowsFiles() {
  for (const Flag &flag : flags) {
    std::string_view value = flag.value ? flag.value : "";
    bool named = value.find("FILE") != value.npos || value.find("DIR") != value.npos;
    if (named != (flag.use != FileUse::None))
      return false;
  }
  return true;
}
static_assert(knowsFiles(), "a flag of a FILE or a DIR says whether it is read or written");

/// Those of the optimizer stand before the clipping of its gradients.
std::vector<Flag> meshwright::flagTable(const Options &options) {
  std::vector<Flag> table;
  for (const Flag &flag : flags) {
    if (auto real = std::get_if<Flag::Real>(&flag.member); real && *real == &Options::gradClip)
      for (size_t i = 0; i < options.hyperparameters.size(); ++i) {
        const Options::Hyperparameter &number = options.hyperparameters[i];
        table.push_back(Flag{number.flag.c_str(), "X", Flag::Hyperparameter{i}, number.help.c_str()}
                            .from(0, number.most.value_or(unlimited))
                            .kept());
      }
    table.push_back(flag);
  }
  return table;
}
