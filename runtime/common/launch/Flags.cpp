//===- Flags.cpp - the flags of an executable -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "common/launch/Flags.h"

#include "common/data/BatchRamp.h"
#include "common/data/LearningRate.h"
#include "common/data/TokenData.h"
#include "common/launch/Device.h"
#include "common/monitor/Error.h"
#include "common/monitor/ExpertTokens.h"
#include "common/train/ExpertCopies.h"
#include "common/plan/Plan.h"

#include <algorithm>
#include <string_view>

using namespace meshwright;

//===--- where flags have an effect -------------------------------------------===//

static std::string unlessRateFalls(const Options &options, const Plan &) {
  return fallsToMinimum(options.lrSchedule) || options.minLr == 0
             ? ""
             : text("has an effect with --lr-schedule cosine, linear, wsd and inverse-sqrt only, but "
                    "this run's schedule is ",
                    options.lrSchedule, ": leave it out, or choose one of the four");
}

/// For flags of one schedule.
static std::string unlessScheduleIs(const char *name, const Options &options) {
  return options.lrSchedule == name
             ? ""
             : text("is for --lr-schedule ", name, ", but this run's schedule is ",
                    options.lrSchedule, ": leave it out, or choose that schedule");
}

static std::string unlessResumed(const Options &options, const Plan &) {
  return options.resume.empty() ? "moves the end of a checkpoint's schedule, and this run begins anew: "
                                  "leave it out, or add --resume"
                                : "";
}

static std::string unlessWsd(const Options &options, const Plan &) {
  return unlessScheduleIs("wsd", options);
}

static std::string unlessMultiStep(const Options &options, const Plan &) {
  return unlessScheduleIs("multi-step", options);
}

static std::string unlessRamped(const Options &options, const Plan &plan) {
  if (options.batchRamp == noBatchRamp)
    return options.resume.empty() ? "none ends the ramp of a run that is resumed, and this run begins anew: leave it out" : "";
  if (options.batchRamp.empty())
    return "is not given";
  if (plan.inputNames.count(microbatchesInput))
    return "";
  return plan.microbatches > 1
             ? "is for executables whose steps may have fewer microbatches: compile with --batch-ramp, or leave it out"
             : "is for executables whose steps may have fewer microbatches, but this one's batch is a single one: compile "
               "with --batch-ramp and --microbatches M, or leave it out";
}

static std::string unlessClipped(const Options &, const Plan &plan) {
  return plan.inputs.count("grad_clip") ? "" : "is for gradients, and of those of matrices this executable has signs alone "
                                               "(--grad-compression onebit), so that it clips none: leave it out";
}

static std::string unlessVariance(const Options &options, const Plan &plan) {
  for (const plan::BiasCorrection &correction : plan.biasCorrections)
    if (correction.of == secondDecay && !correction.power.value_or(false))
      return "";
  return text("is for optimizers with a second moment, such as adamw, this executable has ", options.optimizer, ": leave it out");
}

static std::string unlessFp16(const Options &, const Plan &plan) {
  return plan.inputs.count("loss_scale")
             ? ""
             : text("is for executables compiled with --precision fp16, this one computes in ",
                    plan.precision, ": leave it out");
}

static std::string unlessTargetsCount(const Options &, const Plan &plan) {
  if (plan.startToken)
    return "is for decoder-only models, but this executable's is an encoder-decoder model, for "
           "which all target tokens count towards the loss: leave it out";
  if (plan.maskedShare)
    return "is for decoder-only models, but in this executable, compiled with --mlm, only masked "
           "tokens count towards the loss: leave it out";
  return plan.inputNames.count("target_weight") || plan.dpoBeta
             ? ""
             : "needs a program whose loss is normalized by the number of counted targets, but "
               "this one averages over all targets: compile it from its config.json, or give its "
               "@loss the input \"target_weight\" (docs/models.md)";
}

static std::string unlessSources(const Options &, const Plan &plan) {
  return plan.startToken ? ""
                         : "is for encoder-decoder models such as T5, but this executable's model "
                           "has no encoder input: leave it out, or compile such a model";
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
  return plan.inputNames.count("positions") || plan.startToken || plan.dpoBeta
             ? ""
             : "is for executables compiled with --packed, but this one's attention crosses "
               "document boundaries: compile with --packed, or leave it out";
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
  return options.evalOnly ? "" : whenUndivided(options.data, plan); // Else --eval-documents is.
}

static std::string whenPackedEval(const Options &options, const Plan &plan) {
  return options.evalData.empty() ? "" : whenUndivided(options.evalData, plan);
}

/// What pairs need besides tokens, and where it comes from.
static constexpr const char *whyMask =
    "is needed by this executable, compiled with --loss dpo: without it the tokens of prompts would "
    "count; 'meshwright tokenize --preferences' writes one beside the tokens";
static constexpr const char *whyReference =
    "is needed by this executable, compiled with --loss dpo: evaluate the reference model on the "
    "same data with --eval-only --log-probs FILE, and give that file";

static std::string whenPairs(const Options &options, const Plan &plan) {
  return plan.dpoBeta && !options.evalOnly ? whyMask : "";
}

static std::string whenEvalPairs(const Options &options, const Plan &plan) {
  return plan.dpoBeta && !options.evalData.empty() ? whyMask : "";
}

static std::string whenReference(const Options &options, const Plan &plan) {
  return plan.dpoBeta && options.steps > 0 ? whyReference : "";
}

static std::string whenEvalReference(const Options &options, const Plan &plan) {
  return plan.dpoBeta && !options.evalData.empty() && options.logProbs.empty() ? whyReference : "";
}

static std::string unlessPreferences(const Options &, const Plan &plan) {
  return plan.dpoBeta ? "" : "is for executables compiled with --loss dpo, which this one was not: leave it out";
}

static std::string unlessReferenceRead(const Options &options, const Plan &plan) {
  return options.logProbs.empty() ? unlessPreferences(options, plan)
                                  : "changes nothing with --log-probs, whose weights are the reference themselves: "
                                    "leave one of them out";
}

static std::string unlessPartWritten(const Options &options, const Plan &) {
  return options.logProbs.empty() || options.evalBatches == 0
             ? ""
             : "would leave sequences out of --log-probs, which is of all of --eval-data: leave one of them out";
}

/// For files that say how an evaluation went.
static std::string unlessLogProbsWritten(const Options &options, const Plan &) {
  return options.logProbs.empty() ? ""
                                  : "would say nothing with --log-probs, whose weights are the reference themselves, "
                                    "so that nothing is preferred: leave it out";
}

static std::string unlessGpu(const Options &, const Plan &) {
  return !hostComputes()
             ? ""
             : "is for GPUs, but this executable runs on CPUs: leave it out, or compile with "
               "--target cuda";
}

static std::string unlessCaptured(const Options &options, const Plan &plan) {
  if (std::string why = unlessGpu(options, plan); !why.empty())
    return why;
  return options.cudaGraphs == "on" && plan.inputNames.count(microbatchesInput) && !options.evalOnly && options.steps > 0
             ? "on is not possible: the host reads how many microbatches a step has, so that none can be captured as a CUDA "
               "graph; compile without --batch-ramp, or leave it out"
             : "";
}

static std::string unlessExperts(const Options &, const Plan &plan) {
  return ExpertTokens::isCounted(plan)
             ? ""
             : "is for mixture-of-experts models, but this executable's model has no experts: "
               "leave it out";
}

static std::string unlessCopies(const Options &, const Plan &plan) {
  return ExpertCopies::arePossible(plan) ? ""
                                         : "is for executables with slots for copies of experts: compile with "
                                           "--redundant-experts, or leave it out";
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
             : "measure is for CPUs: give the peak FLOP/s in the GPU's data sheet, e.g. 989e12 "
               "for an H100 in bf16";
}

static std::string unlessSeveralRanks(const Options &options, const Plan &plan) {
  bool areSeveral = std::any_of(plan.mesh.begin(), plan.mesh.end(), [](const plan::MeshAxis &axis) { return axis.size > 1; });
  return areSeveral || options.checkReplicas == 0
             ? ""
             : "compares what several ranks hold, but this executable has one rank: leave it out";
}

static std::string unlessFellows(const Options &options, const Plan &plan) {
  if (options.stragglers == 0)
    return "";
  size_t fellows = 1;
  for (const plan::MeshAxis &axis : plan.mesh)
    fellows *= hasUnevenWork(plan, axis) ? 1 : size_t(axis.size);
  // Each program is that of one position along the axis pipe.
  if (fellows <= plan.programs.size())
    return "compares ranks that do the same work, but no two ranks of this executable do: leave it out";
  return options.stragglers <= options.steps || options.steps == 0
             ? ""
             : text("measures step ", options.stragglers, " first, but the run has ", options.steps, " steps: choose fewer");
}

static std::string unlessInterval(const Options &options, const Plan &) {
  // A folder that is given no interval has this one's.
  bool isUsed = options.saveEvery == 0 ||
                std::any_of(options.saveTiers.begin(), options.saveTiers.end(),
                            [](const Options::SaveTier &tier) { return tier.byFlag; });
  return isUsed ? "" : "changes nothing, since each --save has an interval of its own: leave it out";
}

/// Whether some rank has tensors on an SSD.
static bool usesSsd(const Plan &plan) {
  return std::any_of(plan.programs.begin(), plan.programs.end(),
                     [](const Program &program) { return program.spaces[MemorySpace::Ssd].bytes > 0; });
}

static std::string unlessOnSsd(const Options &, const Plan &plan) {
  return usesSsd(plan) ? "" : "is for what --offload optimizer=ssd keeps on an SSD, and this executable keeps nothing there: leave it out";
}

static std::string whenOnSsd(const Options &, const Plan &plan) {
  return usesSsd(plan) ? "is needed by this executable, which keeps tensors in a file on an SSD (--offload): name a folder of a local disk" : "";
}

static std::string unlessOfItsOwn(const Options &options, const Plan &) {
  for (const std::string &folder : options.save)
    if (isSameFile(folder, options.buddy))
      return text(options.buddy, " is a folder of --save too, whose checkpoints stay: name another one");
  return "";
}

static std::string unlessCheckpoints(const Options &options, const Plan &) {
  if (options.onNan != "rollback" ||
      std::any_of(options.saveTiers.begin(), options.saveTiers.end(),
                  [](const Options::SaveTier &tier) { return tier.every > 0; }))
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
         "training data: files of 'meshwright tokenize', little-endian token ids (as nanoGPT "
         "writes them), or an llm.c file with its header. May be repeated, and may be a folder "
         "(its *.bin) or a pattern such as 'tokens/*.bin'. Sequences do not cross files. With "
         "weights, each --data is one source of a data mixture (blend) and supplies that share of "
         "the sequences: --data a/:0.7 --data 'b/*.bin:0.3'"}
        .file(FileUse::Input)
        .onRanks(AcrossRanks::SameFile),
    RunFlag{"--tokens", "TYPE", &Options::tokens,
         "integer type of the tokens in --data and --eval-data, for files without a header that "
         "says it; u8: each byte is a token. With --generate: number of tokens to generate (128)"}
        .evaluating()
        .oneOf("u8|u16|u32")
        .generating(),
    RunFlag{
        "--loss-mask", "FILE|DIR|GLOB", &Options::lossMask,
        "loss mask: one byte per token of --data, 1 if the token counts as a target, 0 if the loss "
        "ignores it; one file for each of --data"}
        .file(FileUse::Input)
        .unless(unlessTargetsCount)
        .neededBy(whenPairs)
        .onRanks(AcrossRanks::SameFile),
    RunFlag{"--documents", "ID|FILE|DIR|GLOB", &Options::documents,
         "document boundaries of packed sequences (--packed): the id of the end-of-document token "
         "in --data, or one file for each of --data with the indices of the documents' first "
         "tokens, ascending u64; default: the boundaries that 'meshwright tokenize --documents' "
         "stored in the files"}
        .file(FileUse::Input)
        .unless(unlessPacked)
        .neededBy(whenPacked)
        .onRanks(AcrossRanks::SameDocuments),
    RunFlag{"--source", "FILE|DIR|GLOB", &Options::source,
         "source sequences (encoder input) of an encoder-decoder model, in the formats of --data, "
         "which then holds the target sequences: document N of --source belongs to document N of "
         "--data. Without document boundaries, each source has --source-seq tokens and each "
         "target --seq tokens"}
        .file(FileUse::Input)
        .unless(unlessSources)
        .neededBy(whenSources)
        .onRanks(AcrossRanks::SameFile),
    RunFlag{"--source-documents", "FILE|DIR|GLOB", &Options::sourceDocuments,
         "document boundaries of --source: one file for each with the indices of the sources' "
         "first tokens, ascending u64; default: the boundaries that 'meshwright tokenize "
         "--documents' stored in the files"}
        .file(FileUse::Input)
        .with("--source")
        .unless(unlessSources)
        .onRanks(AcrossRanks::SameFile),
    RunFlag{"--reference-log-probs", "FILE", &Options::referenceLogProbs,
         "reference log-probabilities of --loss dpo: a little-endian f32 for each sequence of --data, the sum of the "
         "log-probabilities that the reference model gives its targets, as --log-probs writes them"}
        .file(FileUse::Input)
        .unless(unlessPreferences)
        .neededBy(whenReference)
        .onRanks(AcrossRanks::SameFile),
    RunFlag{"--steps", "N", &Options::steps,
         "total number of optimizer steps (training iterations), including those before --resume; "
         "cosine, linear and wsd schedules end there; 0: only evaluate. Required without --resume"}
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
         "wsd schedule: fraction of --steps, at the end of the run, over which the learning rate "
         "decays to --min-lr"}
        .from(0, 1)
        .unless(unlessWsd)
        .kept(),
    RunFlag{"--decay-shape", "NAME", &Options::decayShape, "wsd schedule: the curve of the decay"}
        .oneOf("linear|cosine|1-sqrt|exponential")
        .unless(unlessWsd)
        .kept(),
    RunFlag{"--lr-milestones", "K1,K2,..", &Options::lrMilestones,
         "multi-step schedule: steps at which the learning rate is multiplied by --lr-gamma"}
        .unless(unlessMultiStep)
        .kept(),
    RunFlag{"--lr-gamma", "X", &Options::lrGamma,
         "multi-step schedule: factor of the rate at each of --lr-milestones"}
        .from(0, 1)
        .unless(unlessMultiStep)
        .kept(),
    RunFlag{"--batch-ramp", "START+INC:SAMPLES", &Options::batchRamp,
         "batch size ramp-up of executables compiled with --batch-ramp: begin with a batch of START sequences, and "
         "grow it by INC in equal intervals until it is whole, after SAMPLES sequences; none: resume with the whole "
         "batch"}
        .unless(unlessRamped)
        .kept(),
    RunFlag{"--reschedule", nullptr, &Options::reschedule,
         "let a resumed run end its cosine, linear or wsd schedule at other --steps than its checkpoint's"}
        .unless(unlessResumed),
    RunFlag{"--seed", "N", &Options::seed, "random seed for initial weights, --shuffle, dropout and --generate"}
        .evaluating()
        .from(0, largestSeed)
        .generating(),
    {"--shuffle", nullptr, &Options::shuffle,
     "shuffle the sequences, in a new random order in each epoch: the default, unless --data "
     "names a single file"},
    {"--no-shuffle", nullptr, &Options::noShuffle,
     "read the sequences in file order; files of a folder or pattern are sorted by name"},
    RunFlag{"--grad-clip", "X", &Options::gradClip,
         "gradient clipping: maximum global gradient norm; 0: no clipping"}
        .from(0).unless(unlessClipped).kept(),
    RunFlag{"--freeze-variance", "N", &Options::freezeVariance,
         "leave the optimizer's second moment as it is after N updates, as 1-bit Adam does when its warmup ends; 0: never"}
        .from(0).unless(unlessVariance).kept(),
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
         "the newest in the folders of --save that is not damaged, or start a new run if there is none, "
         "so that the same command starts and resumes a run. A checkpoint can be loaded on another mesh or "
         "number of ranks (resharding). --steps and the optimizer's flags default to the "
         "checkpoint's values"}
        .evaluating()
        .file(FileUse::InputFolder)
        .generating()
        .onRanks(AcrossRanks::SameCheckpoint),
    RunFlag{"--init", "FILE|DIR", &Options::init,
         "initial weights, for fine-tuning: a safetensors file, the index of a sharded one, or a "
         "folder with one of these, or with the shards of a distributed checkpoint (PyTorch's "
         "HuggingFaceStorageWriter)"}
        .evaluating()
        .file(FileUse::Input)
        .generating()
        .onRanks(AcrossRanks::SameWeights),
    RunFlag{"--adapter", "FILE|DIR", &Options::adapter,
         "initial adapters of --lora: a folder of PEFT's or a checkpoint, with adapter_model.safetensors and "
         "adapter_config.json"}
        .evaluating()
        .file(FileUse::Input)
        .generating()
        .unless(unlessAdapters)
        .onRanks(AcrossRanks::SameWeights),
    RunFlag{"--save", "DIR[:K]", &Options::save,
         "write checkpoints (weights, optimizer states, position in the data) into this folder: "
         "one at the end of the run, also after SIGTERM or SIGINT, and with :K one after every K "
         "steps. Repeat it for several tiers, such as --save /nvme/run:10 --save /shared/run:500. "
         "--save-format says whether they are consolidated safetensors files or shards"}
        .file(FileUse::OutputFolder, ".lock .others latest step-*"),
    RunFlag{"--save-every", "K", &Options::saveEvery,
         "checkpoint interval: also write a checkpoint after every K steps; 0: only at the end. "
         "For folders of --save that do not say it themselves"}
        .from(0)
        .with("--save")
        .unless(unlessInterval),
    RunFlag{"--keep", "N", &Options::keep,
         "keep the last N checkpoints and delete older ones, in each folder of --save; 0: keep all"}
        .from(0)
        .with("--save"),
    RunFlag{"--save-format", "FORMAT", &Options::saveFormat,
         "merged: one safetensors file of weights and one of optimizer states, written by rank 0. sharded: "
         "every rank writes its own part, as safetensors files in the layout of PyTorch's distributed "
         "checkpoints (torch.distributed.checkpoint, HuggingFaceStorageReader), into a folder that all "
         "machines share. auto: sharded if there are several ranks and a checkpoint has 10 GB or more. "
         "Both are resumed on any mesh"}
        .oneOf("auto|merged|sharded")
        .with("--save"),
    RunFlag{"--save-commit", "HOW", &Options::saveCommit,
         "how a complete checkpoint becomes visible. rename: its folder is renamed in one step. file: its folder has "
         "its name from the beginning, and a file 'commit', written last, completes it; for object stores that are "
         "mounted as file systems, which have no atomic rename and no symbolic links"}
        .oneOf("rename|file")
        .with("--save"),
    RunFlag{"--async-save", nullptr, &Options::asyncSave,
         "asynchronous checkpoints: copy the state between two steps and write the copy while "
         "training goes on. Rank 0 needs memory for the copy, 4 bytes per trained parameter and per "
         "element of the optimizer's states, or with --save-format sharded each rank for its part; a "
         "checkpoint waits for the one before it"}
        .with("--save"),
    RunFlag{"--buddy", "DIR", &Options::buddy,
         "keep the state after each step in memory: every rank writes its part into DIR, a folder in the memory of its "
         "machine (/dev/shm), and a rank of the next machine gets a copy. --resume auto goes on from there after a "
         "rank or a machine is lost, so that one step is lost at most. Takes the bytes of two checkpoints on all machines "
         "together, or of four if there are several"}
        .file(FileUse::OutputFolder, ".lock .others .run latest step-*")
        .with("--save")
        .unless(unlessOfItsOwn)
        .onRanks(AcrossRanks::Given),
    RunFlag{"--ssd", "DIR", &Options::ssd,
         "folder of a local SSD in which each rank has a file for what --offload keeps there (NVMe offload). The file has no "
         "name and is gone when the run ends; the plan says its bytes (ssd_bytes)"}
        .file(FileUse::OutputFolder, "meshwright-ssd-rank*")
        .evaluating()
        .unless(unlessOnSsd)
        .neededBy(whenOnSsd)
        .onRanks(AcrossRanks::Given),
    RunFlag{"--save-merged", "DIR", &Options::saveMerged,
         "at the end of the run, merge the adapters into the weights and write the merged model "
         "into this folder, in Hugging Face's format"}
        .evaluating()
        .file(FileUse::OutputFolder, "config.json model.mlir model.safetensors")
        .unless(unlessAdapters),
    RunFlag{"--on-nan", "WHAT", &Options::onNan,
         "what to do if the loss or the gradient of a step is NaN or infinite: stop (with --save, "
         "after saving the state before that step); skip the batch; or rollback: return to the "
         "last checkpoint and continue with the data after that batch"}
        .oneOf("stop|skip|rollback")
        .unless(unlessCheckpoints),
    RunFlag{"--check-replicas", "K", &Options::checkReplicas,
         "silent data corruption: after every K steps, and before each checkpoint, compare checksums of "
         "all weights and optimizer states that several ranks hold, and end the run with the name of "
         "the tensor and the rank where they differ; 0: never"}
        .from(0)
        .unless(unlessSeveralRanks),
    RunFlag{"--stragglers", "K", &Options::stragglers,
         "measure the kernels of one step of every K, and name ranks whose kernels take 1.2 times as long "
         "as those of ranks with the same work, in the median of five such steps; 0: never"}
        .from(0)
        .unless(unlessFellows),
    RunFlag{"--metrics", "FILE", &Options::metrics,
         "log metrics: one line of JSON per step with loss, learning rate, time and so on; CSV if "
         "FILE ends in .csv"}
        .evaluating()
        .file(FileUse::Output)
        .unless(unlessLogProbsWritten)
        .onRanks(AcrossRanks::Free),
    RunFlag{"--log-every", "N", &Options::logEvery,
         "logging interval: log every N-th step to --metrics, --tensorboard and standard output; "
         "the last step, skipped steps and evaluations are always logged. 0: every step, but only "
         "about twenty lines on standard output"}
        .from(0)
        .onRanks(AcrossRanks::Free),
    RunFlag{"--log-norms", "N", &Options::logNorms,
         "after every N steps, also log the L2 norm of each weight and optimizer state to "
         "--metrics and --tensorboard, by its name in checkpoints; costs as much as gathering a "
         "checkpoint; 0: never"}
        .from(0),
    RunFlag{"--peak-flops", "X|measure", &Options::peakRate,
         "peak FLOP/s of a rank, e.g. 989e12 for an H100 in bf16, to log the model FLOPs "
         "utilization (MFU) of each step; measure: determine the peak of this CPU by timing "
         "matrix products at the start"}
        .unless(unlessMeasurable)
        .onRanks(AcrossRanks::Given),
    RunFlag{"--tensorboard", "DIR", &Options::tensorboard,
         "also log the scalars of --metrics as TensorBoard events into this folder"}
        .evaluating()
        .file(FileUse::OutputFolder, "events.out.tfevents.*")
        .unless(unlessLogProbsWritten)
        .onRanks(AcrossRanks::Free),
    RunFlag{"--log-samples", "FILE", &Options::logSamples,
         "log the samples of each step: one line of JSON per step with the file and the index in "
         "it of each sequence of the global batch"}
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
    RunFlag{"--expert-loads", "FILE", &Options::expertLoads,
         "give popular experts copies by the loads in this file, which a run with --metrics and --expert-tokens-every has "
         "written: those of its last step that has some; default: those of the checkpoint of --resume, or no copies"}
        .evaluating()
        .file(FileUse::Input)
        .unless(unlessCopies)
        .onRanks(AcrossRanks::SameFile),
    RunFlag{"--place-experts-every", "K", &Options::placeExpertsEvery,
         "after every K steps, give popular experts copies by the loads of the last one; 0: never"}
        .from(0)
        .unless(unlessCopies),
    RunFlag{"--eval-data", "[NAME=]FILE|DIR|GLOB", &Options::evalData,
         "evaluation (validation) data: the loss over all its tokens is computed at the end of "
         "the run; files as for --data. Named sets are evaluated separately: --eval-data wiki=a/ "
         "--eval-data code=b/"}
        .evaluating()
        .file(FileUse::Input)
        .onRanks(AcrossRanks::SameFile),
    RunFlag{"--eval-only", nullptr, &Options::evalOnly,
         "evaluate the weights of --resume or --init on --eval-data and train nothing; needs "
         "neither --data nor --steps"}
        .evaluating()
        .with("--eval-data")
        .onRanks(AcrossRanks::Free), // which have other --steps where one of them trains
    RunFlag{"--eval-loss-mask", "[NAME=]FILE|DIR|GLOB", &Options::evalLossMask,
         "loss mask for --eval-data, in the format of --loss-mask"}
        .evaluating()
        .file(FileUse::Input)
        .with("--eval-data")
        .unless(unlessTargetsCount)
        .neededBy(whenEvalPairs)
        .onRanks(AcrossRanks::SameFile),
    RunFlag{"--eval-documents", "[NAME=]ID|FILE|DIR|GLOB", &Options::evalDocuments,
         "document boundaries of --eval-data, in the format of --documents"}
        .evaluating()
        .file(FileUse::Input)
        .with("--eval-data")
        .unless(unlessPacked)
        .neededBy(whenPackedEval)
        .onRanks(AcrossRanks::SameDocuments),
    RunFlag{"--eval-source", "[NAME=]FILE|DIR|GLOB", &Options::evalSource,
         "source sequences (encoder input) for --eval-data, in the formats of --source"}
        .evaluating()
        .file(FileUse::Input)
        .with("--eval-data")
        .unless(unlessSources)
        .neededBy(whenEvalSources)
        .onRanks(AcrossRanks::SameFile),
    RunFlag{"--eval-source-documents", "[NAME=]FILE|DIR|GLOB", &Options::evalSourceDocuments,
         "document boundaries of --eval-source, in the format of --source-documents"}
        .evaluating()
        .file(FileUse::Input)
        .with("--eval-source")
        .unless(unlessSources)
        .onRanks(AcrossRanks::SameFile),
    RunFlag{"--eval-reference-log-probs", "[NAME=]FILE", &Options::evalReferenceLogProbs,
         "reference log-probabilities for --eval-data, in the format of --reference-log-probs"}
        .evaluating()
        .file(FileUse::Input)
        .with("--eval-data")
        .unless(unlessReferenceRead)
        .neededBy(whenEvalReference)
        .onRanks(AcrossRanks::SameFile),
    RunFlag{"--log-probs", "FILE", &Options::logProbs,
         "write the log-probability of each sequence of --eval-data under the weights, for --reference-log-probs: with "
         "the weights that training starts from, these are the reference model's"}
        .evaluating()
        .file(FileUse::Output)
        .with("--eval-only")
        .unless(unlessPreferences)
        .onRanks(AcrossRanks::Given),
    RunFlag{"--eval-every", "K", &Options::evalEvery,
         "evaluation interval: also evaluate after every K steps; 0: only at the end"}
        .from(0)
        .with("--eval-data"),
    RunFlag{"--eval-batches", "N", &Options::evalBatches,
         "evaluate at most the first N batches; 0: all"}
        .evaluating()
        .from(0)
        .with("--eval-data")
        .unless(unlessPartWritten),
    RunFlag{"--trace", "FILE", &Options::trace,
         "profile: write a timeline of each rank for Perfetto or chrome://tracing; at most "
         "1048576 spans per rank"}
        .evaluating()
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
         "run each step on the GPU as a CUDA graph; auto: if the step can be captured and has no "
         "point-to-point messages, such as those between pipeline stages"}
        .evaluating()
        .oneOf("on|off|auto")
        .unless(unlessCaptured),
    RunFlag{"--tune", "FILE", &Options::tune,
         "autotune: use the fastest cuBLASLt and cuDNN algorithms for matrix products and "
         "attention. They are read from FILE, or timed at the start and written there; cache: a "
         "file in the user's cache directory for this GPU model, driver and library versions, "
         "shared by all executables"}
        .evaluating()
        .file(FileUse::Output)
        .unless(unlessGpu)
        .onRanks(AcrossRanks::Given),
    RunFlag{"--generate", "PROMPT|FILE", &Options::generate,
         "generate text with the weights of --resume or --init instead of training: continue this "
         "prompt, or the text of a file; of an encoder-decoder model, make the target of this source; "
         "on one rank"}
        .file(FileUse::Input)
        .generating()
        .onRanks(AcrossRanks::Free),
    RunFlag{"--tokenizer", "FILE|DIR", &Options::tokenizer,
         "tokenizer for --generate: a tokenizer.json, bytes, or ids, with which texts are numbers of tokens; default: the one beside the weights"}
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
    RunFlag{"--beams", "N", &Options::beams,
         "beam search: keep the N likeliest sequences instead of sampling one, and print the best"}
        .from(1)
        .with("--generate")
        .generating()
        .onRanks(AcrossRanks::Free),
    RunFlag{"--length-penalty", "P", &Options::lengthPenalty,
         "of beam search: a finished sequence is as good as the logarithm of its probability over its "
         "number of tokens ^ P; above 0 favors longer ones"}
        .with("--beams")
        .generating()
        .onRanks(AcrossRanks::Free),
    RunFlag{"--early-stopping", "WHEN", &Options::earlyStopping,
         "when beam search ends that has N finished sequences; on: at once; off: when the best beam, were "
         "it finished at its length, would not be among them; never: when it could not be at any length"}
        .oneOf("on|off|never")
        .with("--beams")
        .generating()
        .onRanks(AcrossRanks::Free),
    RunFlag{"--lines", nullptr, &Options::lines,
         "each line of the file that --generate names is a prompt of its own; print a line for each"}
        .with("--generate")
        .generating()
        .onRanks(AcrossRanks::Free),
    RunFlag{"--stop", "TEXT", &Options::stop,
         "stop sequence: end --generate before this text; may be repeated"}
        .with("--generate")
        .generating()
        .onRanks(AcrossRanks::Free),
    RunFlag{"--ranks", "N", &Options::ranks,
         "run N ranks as threads of this process (without MPI or torchrun)"}
        .evaluating()
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
