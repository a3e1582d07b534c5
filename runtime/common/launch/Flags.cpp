//===- Flags.cpp - the flags of an executable -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/launch/Flags.h"

#include "common/data/LearningRate.h"
#include "common/data/TokenData.h"
#include "common/launch/Device.h"
#include "common/monitor/Error.h"
#include "common/monitor/ExpertTokens.h"
#include "common/plan/Plan.h"

#include <string_view>

using namespace meshwright;

//===--- where flags have an effect -------------------------------------------===//

static std::string unlessRateFalls(const Options &options, const Plan &) {
  return fallsToMinimum(options.lrSchedule) || options.minLr == 0
             ? ""
             : text("is the rate to which --lr-schedule cosine, linear, wsd and inverse-sqrt fall; "
                    "this run's is ",
                    options.lrSchedule, ": leave it out, or choose one of the four");
}

/// For flags of one schedule.
static std::string unlessScheduleIs(const char *name, const Options &options) {
  return options.lrSchedule == name
             ? ""
             : text("is for --lr-schedule ", name, ", and this run's is ", options.lrSchedule,
                    ": leave it out, or choose that schedule");
}

static std::string unlessWsd(const Options &options, const Plan &) {
  return unlessScheduleIs("wsd", options);
}

static std::string unlessMultiStep(const Options &options, const Plan &) {
  return unlessScheduleIs("multi-step", options);
}

static std::string unlessFp16(const Options &, const Plan &plan) {
  return plan.inputs.count("loss_scale")
             ? ""
             : text("is for executables compiled with --precision fp16, this one computes in ",
                    plan.precision, ": leave it out");
}

static std::string unlessTargetsCount(const Options &, const Plan &plan) {
  if (plan.startToken)
    return "is for models that predict the next token, but in this executable the targets of pairs are "
           "those that count, all of them: leave it out";
  if (plan.maskedShare)
    return "is for models that predict the next token, but in this executable the tokens that "
           "--mlm masks are those that count: leave it out";
  return plan.inputNames.count("target_weight")
             ? ""
             : "needs a program that is told how many targets count, but this one divides by all: "
               "compile it from its config.json, or give its @loss the input \"target_weight\", as "
               "docs/models.md says";
}

static std::string unlessSources(const Options &, const Plan &plan) {
  return plan.startToken ? ""
                         : "is for encoder-decoder models, but this executable's reads one sequence of "
                           "tokens: leave it out, or compile a model such as T5";
}

static std::string whenSources(const Options &options, const Plan &plan) {
  return plan.startToken && !options.evalOnly
             ? "is needed by this executable, of an encoder-decoder model: give files of sources, as many "
               "as --data has targets"
             : "";
}

static std::string whenEvalSources(const Options &options, const Plan &plan) {
  return plan.startToken && !options.evalData.empty()
             ? "is needed by this executable, of an encoder-decoder model: give files of sources, as many "
               "as --eval-data has targets"
             : "";
}

static std::string unlessPacked(const Options &, const Plan &plan) {
  return plan.inputNames.count("positions") || plan.startToken
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

static std::string unlessAdapters(const Options &, const Plan &plan) {
  return plan.adapterConfig ? ""
                            : "is for executables compiled with --lora, which this one was not: leave it out";
}

static std::string unlessTraced(const Options &options, const Plan &) {
  return options.traceFrom < options.steps || options.steps == 0
             ? ""
             : text("begins the trace at step ", options.traceFrom,
                    ", but the run ends before step ", options.steps, ": name an earlier step");
}

static std::string unlessMeasurable(const Options &options, const Plan &) {
  return !options.measurePeak || hostComputes()
             ? ""
             : "measure is for processors: give the rate that the GPU's data sheet says, such as 989e12 of an H100 "
               "in bf16";
}

static std::string unlessCheckpoints(const Options &options, const Plan &) {
  if (options.onNan != "rollback" || (options.saveEvery && !options.save.empty()))
    return "";
  return options.save.empty()
             ? "rollback needs checkpoints to go back to: give --save DIR and --save-every K"
             : "rollback needs checkpoints to go back to: give --save-every K too";
}

//===--- the table -------------------------------------------------------------===//

// The key of dropout has 32 bits for the seed and 32 for the step.
static constexpr double largestSeed = 4294967295.0;

static constexpr RunFlag flags[] = {
    RunFlag{"--data", "FILE|DIR|GLOB[:WEIGHT]", &Options::data,
         "training data: files of 'meshwright tokenize', little-endian token ids (as nanoGPT writes "
         "them), or an llm.c file with its header. May be repeated, and may be a folder (its *.bin) or "
         "a pattern such as 'tokens/*.bin'. Sequences do not cross files. With weights each --data "
         "is a source of a mixture, from which that share of the sequences is taken: "
         "--data a/:0.7 --data 'b/*.bin:0.3'"}
        .file(FileUse::Input)
        .onRanks(AcrossRanks::SameFile),
    RunFlag{"--tokens", "TYPE", &Options::tokens,
         "integer type of the tokens in --data and --eval-data, unless a file says it; u8 reads each "
         "byte of a file as a token. With --generate: how many tokens to generate (128)"}
        .oneOf("u8|u16|u32")
        .generating(),
    RunFlag{
        "--loss-mask", "FILE|DIR|GLOB", &Options::lossMask,
        "loss mask: one byte per token of --data, 1 if the token counts as a target, 0 if the loss "
        "ignores it; one file for each of --data"}
        .file(FileUse::Input)
        .unless(unlessTargetsCount)
        .onRanks(AcrossRanks::SameFile),
    RunFlag{"--documents", "ID|FILE|DIR|GLOB", &Options::documents,
         "document boundaries of packed sequences (--packed): the id of the end-of-document token "
         "in --data, or one file for each of --data with the indices of the documents' first "
         "tokens, ascending u64; default: as files of 'meshwright tokenize --documents' say"}
        .file(FileUse::Input)
        .unless(unlessPacked)
        .neededBy(whenPacked)
        .onRanks(AcrossRanks::SameDocuments),
    RunFlag{"--source", "FILE|DIR|GLOB", &Options::source,
         "what the encoder of an encoder-decoder model reads, in the formats of --data, which has targets "
         "then: document N of --source goes with document N of --data. Without documents each source "
         "has as many tokens as --source-seq, each target as many as --seq"}
        .file(FileUse::Input)
        .unless(unlessSources)
        .neededBy(whenSources)
        .onRanks(AcrossRanks::SameFile),
    RunFlag{"--source-documents", "FILE|DIR|GLOB", &Options::sourceDocuments,
         "where the sources in --source begin: one file for each with the indices of their first tokens, "
         "ascending u64; default: as files of 'meshwright tokenize --documents' say"}
        .file(FileUse::Input)
        .with("--source")
        .unless(unlessSources)
        .onRanks(AcrossRanks::SameFile),
    RunFlag{"--steps", "N", &Options::steps,
         "total number of optimizer steps, including those before --resume; cosine, linear and "
         "wsd schedules end there; 0: only evaluate. Required without --resume"}
        .from(0)
        .kept(),
    RunFlag{"--lr", "RATE", &Options::lr, "peak learning rate"}.from(0).kept(),
    RunFlag{"--min-lr", "RATE", &Options::minLr,
         "minimum learning rate: the value to which the cosine, linear, wsd and inverse-sqrt "
         "schedules fall"}
        .from(0)
        .unless(unlessRateFalls)
        .kept(),
    RunFlag{"--warmup", "W", &Options::warmup,
         "learning-rate warm-up: steps t < W run at lr * (t + 1) / W"}
        .from(0)
        .kept(),
    RunFlag{"--lr-schedule", "NAME", &Options::lrSchedule,
         "learning-rate schedule (decay) after the warm-up; wsd: warm-up, stable, decay"}
        .oneOf("constant|cosine|linear|wsd|inverse-sqrt|multi-step")
        .kept(),
    RunFlag{"--decay-fraction", "X", &Options::decayFraction,
         "wsd schedule: the last part of --steps, in which the rate decays to --min-lr"}
        .from(0, 1)
        .unless(unlessWsd)
        .kept(),
    RunFlag{"--decay-shape", "NAME", &Options::decayShape, "wsd schedule: the curve of the decay"}
        .oneOf("linear|cosine|1-sqrt|exponential")
        .unless(unlessWsd)
        .kept(),
    RunFlag{"--lr-milestones", "K1,K2,..", &Options::lrMilestones,
         "multi-step schedule: steps from which on the rate is multiplied by --lr-gamma once more"}
        .unless(unlessMultiStep)
        .kept(),
    RunFlag{"--lr-gamma", "X", &Options::lrGamma,
         "multi-step schedule: factor of the rate at each of --lr-milestones"}
        .from(0, 1)
        .unless(unlessMultiStep)
        .kept(),
    RunFlag{"--seed", "N", &Options::seed, "random seed for initial weights, --shuffle, dropout and --generate"}
        .from(0, largestSeed)
        .generating(),
    {"--shuffle", nullptr, &Options::shuffle,
     "visit the sequences in a new random order in each epoch: the default, unless --data is one "
     "file that is named"},
    {"--no-shuffle", nullptr, &Options::noShuffle,
     "visit the sequences in the order of the files, by name, and in them"},
    RunFlag{"--grad-clip", "X", &Options::gradClip,
         "gradient clipping: maximum global gradient norm; 0: no clipping"}
        .from(0)
        .kept(),
    RunFlag{"--initial-loss-scale", "X", &Options::initialLossScale,
         "fp16 dynamic loss scaling: initial scale"}
        .from(1)
        .unless(unlessFp16),
    RunFlag{"--min-loss-scale", "X", &Options::minLossScale,
         "fp16 dynamic loss scaling: minimum scale"}
        .from(1)
        .unless(unlessFp16)
        .kept(),
    RunFlag{"--loss-scale-window", "N", &Options::lossScaleWindow,
         "fp16 dynamic loss scaling: consecutive steps without overflow after which the scale "
         "doubles"}
        .from(1)
        .unless(unlessFp16)
        .kept(),
    RunFlag{"--hysteresis", "N", &Options::hysteresis,
         "fp16 dynamic loss scaling: number of overflows after which the scale is halved"}
        .from(1)
        .unless(unlessFp16)
        .kept(),
    RunFlag{"--resume", "DIR|auto", &Options::resume,
         "resume from the latest checkpoint in DIR, or from the checkpoint DIR itself; auto: from "
         "the latest in the folder of --save, or start a new run if there is none, so that the "
         "same command starts and resumes a run. --steps and the optimizer's flags default to the "
         "checkpoint's values"}
        .file(FileUse::InputFolder)
        .generating()
        .onRanks(AcrossRanks::SameCheckpoint),
    RunFlag{"--init", "FILE|DIR", &Options::init,
         "initial weights, for fine-tuning: a safetensors file, the index of a sharded one, or a "
         "folder with one of these"}
        .file(FileUse::Input)
        .generating()
        .onRanks(AcrossRanks::SameWeights),
    RunFlag{"--adapter", "FILE|DIR", &Options::adapter,
         "initial adapters of --lora: a folder of PEFT's or a checkpoint, with adapter_model.safetensors and "
         "adapter_config.json"}
        .file(FileUse::Input)
        .generating()
        .unless(unlessAdapters)
        .onRanks(AcrossRanks::SameWeights),
    RunFlag{"--save", "DIR", &Options::save,
         "write checkpoints into this folder: one at the end of the run, also after SIGTERM or "
         "SIGINT"}
        .file(FileUse::OutputFolder, ".lock .others latest step-*"),
    RunFlag{"--save-every", "K", &Options::saveEvery,
         "also write a checkpoint after every K steps; 0: only at the end"}
        .from(0)
        .with("--save"),
    RunFlag{"--keep", "N", &Options::keep,
         "keep the last N checkpoints and delete older ones; 0: keep all"}
        .from(0)
        .with("--save"),
    RunFlag{"--save-merged", "DIR", &Options::saveMerged,
         "at the end of the run, write the model with its adapters merged into its weights into this "
         "folder: a model of Hugging Face's, without adapters"}
        .file(FileUse::OutputFolder, "config.json model.mlir model.safetensors")
        .unless(unlessAdapters),
    RunFlag{"--on-nan", "WHAT", &Options::onNan,
         "what to do about a step whose loss or gradient is not finite: stop, after saving the state "
         "before it (--save); skip that batch; or rollback: go back to the last checkpoint and on "
         "with the data after that batch"}
        .oneOf("stop|skip|rollback")
        .unless(unlessCheckpoints),
    RunFlag{"--metrics", "FILE", &Options::metrics,
         "log metrics: one line of JSON per step with loss, learning rate, time and so on; if FILE ends in .csv, a "
         "row of a table"}
        .file(FileUse::Output)
        .onRanks(AcrossRanks::Free),
    RunFlag{"--log-every", "N", &Options::logEvery,
         "log only every N-th step to --metrics, --tensorboard and standard output, and besides the last one, "
         "skipped ones and evaluations; 0: every step, and about twenty lines on standard output"}
        .from(0)
        .onRanks(AcrossRanks::Free),
    RunFlag{"--log-norms", "N", &Options::logNorms,
         "after every N steps, also log the Euclidean norm of each weight and of each state of the optimizer to "
         "--metrics and --tensorboard, by its name in checkpoints; takes as long as a checkpoint without the disk; 0: never"}
        .from(0),
    RunFlag{"--peak-flops", "X|measure", &Options::peakRate,
         "peak rate of a rank in FLOP/s, such as 989e12 of an H100 in bf16: the model FLOPs utilization (MFU) of "
         "each step is logged too. measure: time matrix products on this processor at the start"}
        .unless(unlessMeasurable)
        .onRanks(AcrossRanks::Given),
    RunFlag{"--tensorboard", "DIR", &Options::tensorboard,
         "also log the scalars of --metrics as TensorBoard events into this folder"}
        .file(FileUse::OutputFolder, "events.out.tfevents.*")
        .onRanks(AcrossRanks::Free),
    RunFlag{"--log-samples", "FILE", &Options::logSamples,
         "log which sequences each step has read: one line of JSON per step with the file and the number "
         "there of each sequence of the global batch"}
        .file(FileUse::Output)
        .onRanks(AcrossRanks::Free),
    RunFlag{"--expert-tokens-every", "N", &Options::expertTokensEvery,
         "after every N steps, also log the load of experts to --metrics: how many of the step's "
         "tokens were routed to each expert of each layer; 0: never"}
        .from(0)
        .with("--metrics")
        .unless(unlessExperts),
    RunFlag{"--idle-expert-steps", "K", &Options::idleExpertSteps,
         "warn about an expert to which no token was routed for K steps; 0: never"}
        .from(0)
        .unless(unlessExperts),
    RunFlag{"--eval-data", "[NAME=]FILE|DIR|GLOB", &Options::evalData,
         "evaluation (validation) data: the loss over all its tokens is computed at the end of "
         "the run; files as for --data. With names each is a set that is evaluated on its own: "
         "--eval-data wiki=a/ --eval-data code=b/"}
        .file(FileUse::Input)
        .onRanks(AcrossRanks::SameFile),
    RunFlag{"--eval-only", nullptr, &Options::evalOnly,
         "evaluate the weights of --resume or --init on --eval-data and train nothing; needs "
         "neither --data nor --steps"}
        .with("--eval-data")
        .onRanks(AcrossRanks::Free), // which have other --steps where one of them trains
    RunFlag{"--eval-loss-mask", "[NAME=]FILE|DIR|GLOB", &Options::evalLossMask,
         "loss mask for --eval-data, in the format of --loss-mask"}
        .file(FileUse::Input)
        .with("--eval-data")
        .unless(unlessTargetsCount)
        .onRanks(AcrossRanks::SameFile),
    RunFlag{"--eval-documents", "[NAME=]ID|FILE|DIR|GLOB", &Options::evalDocuments,
         "document boundaries of --eval-data, in the format of --documents"}
        .file(FileUse::Input)
        .with("--eval-data")
        .unless(unlessPacked)
        .neededBy(whenPackedEval)
        .onRanks(AcrossRanks::SameDocuments),
    RunFlag{"--eval-source", "[NAME=]FILE|DIR|GLOB", &Options::evalSource,
         "what the encoder reads with --eval-data, in the formats of --source"}
        .file(FileUse::Input)
        .with("--eval-data")
        .unless(unlessSources)
        .neededBy(whenEvalSources)
        .onRanks(AcrossRanks::SameFile),
    RunFlag{"--eval-source-documents", "[NAME=]FILE|DIR|GLOB", &Options::evalSourceDocuments,
         "where the sources in --eval-source begin, in the format of --source-documents"}
        .file(FileUse::Input)
        .with("--eval-source")
        .unless(unlessSources)
        .onRanks(AcrossRanks::SameFile),
    RunFlag{"--eval-every", "K", &Options::evalEvery,
         "also evaluate after every K steps; 0: only at the end"}
        .from(0)
        .with("--eval-data"),
    RunFlag{"--eval-batches", "N", &Options::evalBatches,
         "evaluate at most the first N batches; 0: all"}
        .from(0)
        .with("--eval-data"),
    RunFlag{"--trace", "FILE", &Options::trace,
         "profile: write a timeline of each rank for Perfetto or chrome://tracing; at most "
         "1048576 spans per rank"}
        .file(FileUse::Output),
    RunFlag{"--trace-from", "K", &Options::traceFrom, "first step to trace (steps count from 0)"}
        .from(0)
        .with("--trace")
        .unless(unlessTraced),
    RunFlag{"--trace-steps", "N", &Options::traceSteps, "number of steps to trace; 0: all"}
        .from(0)
        .with("--trace"),
    RunFlag{"--dump", "DIR", &Options::dump,
         "write all inputs and results of one step, for `meshwright replay DIR`"}
        .file(FileUse::OutputFolder, "rank-* program.mlir")
        .onRanks(AcrossRanks::Given),
    RunFlag{"--dump-step", "K", &Options::dumpStep, "step to dump (steps count from 0)"}.from(0).with(
        "--dump"),
    RunFlag{"--cuda-graphs", "MODE", &Options::cudaGraphs,
         "run each step on the GPU as a CUDA graph; auto: if it can be captured and has no "
         "point-to-point messages, as pipelines have"}
        .oneOf("on|off|auto")
        .unless(unlessGpu),
    RunFlag{"--tune", "FILE", &Options::tune,
         "autotune: use the fastest cuBLASLt and cuDNN algorithms for matrix products and "
         "attention. They are read from FILE, or timed now and written there; cache: a file in "
         "the user's cache for this kind of GPU, driver and libraries, which all executables "
         "share"}
        .file(FileUse::Output)
        .unless(unlessGpu)
        .onRanks(AcrossRanks::Given),
    RunFlag{"--generate", "PROMPT|FILE", &Options::generate,
         "sample text from the weights of --resume or --init instead of training: continue this "
         "prompt, or the text of a file; on one rank"}
        .file(FileUse::Input)
        .generating()
        .onRanks(AcrossRanks::Free),
    RunFlag{"--tokenizer", "FILE|DIR", &Options::tokenizer,
         "tokenizer for --generate: a tokenizer.json, or bytes; default: the one beside the weights"}
        .file(FileUse::Input)
        .with("--generate")
        .generating()
        .onRanks(AcrossRanks::Free),
    RunFlag{"--temperature", "T", &Options::temperature,
         "sampling temperature of --generate; 0: greedy, always the most likely token"}
        .from(0)
        .with("--generate")
        .generating()
        .onRanks(AcrossRanks::Free),
    RunFlag{"--top-k", "K", &Options::topK, "sample from the K most likely tokens; 0: from all"}
        .from(0)
        .with("--generate")
        .generating()
        .onRanks(AcrossRanks::Free),
    RunFlag{"--top-p", "P", &Options::topP,
         "nucleus sampling: from the most likely tokens whose probabilities add up to P"}
        .from(0x1p-24, 1)
        .with("--generate")
        .generating()
        .onRanks(AcrossRanks::Free),
    RunFlag{"--stop", "TEXT", &Options::stop,
         "end --generate before this text; may be repeated"}
        .with("--generate")
        .generating()
        .onRanks(AcrossRanks::Free),
    RunFlag{"--ranks", "N", &Options::ranks,
         "run N ranks as threads of this process (without MPI or torchrun)"}
        .from(1)
        .onRanks(AcrossRanks::Free),
};

/// Whether each flag whose value is a file or a folder says how the run uses it.
static constexpr bool knowsFiles() {
  for (const RunFlag &flag : flags) {
    std::string_view value = flag.value ? flag.value : "";
    bool named = value.find("FILE") != value.npos || value.find("DIR") != value.npos;
    if (named != (flag.use != FileUse::None))
      return false;
  }
  return true;
}
static_assert(knowsFiles(), "a flag of a FILE or a DIR says whether it is read or written");

/// Those of the optimizer stand before the clipping of its gradients.
std::vector<RunFlag> meshwright::flagTable(const Options &options) {
  std::vector<RunFlag> table;
  for (const RunFlag &flag : flags) {
    if (auto real = std::get_if<RunFlag::Real>(&flag.member); real && *real == &Options::gradClip)
      for (size_t i = 0; i < options.hyperparameters.size(); ++i) {
        const Options::Hyperparameter &number = options.hyperparameters[i];
        table.push_back(RunFlag{number.flag.c_str(), "X", RunFlag::Hyperparameter{i}, number.help.c_str()}
                            .from(0, number.most.value_or(unlimited))
                            .kept());
      }
    table.push_back(flag);
    // Checkpoints of adapters do not hold the weights that the run began with.
    if (auto text = std::get_if<RunFlag::Text>(&flag.member); text && *text == &Options::init)
      table.back().isKept = options.trainsAdapters;
  }
  return table;
}
