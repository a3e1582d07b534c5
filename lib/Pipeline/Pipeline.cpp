//===- Pipeline.cpp - the order of the passes --------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Pipeline.h"
#include "Dist/Programs.h"
#include "Exec/Passes.h"
#include "meshwright/Strategy.h"

#include "Planner/PipelineSchedule.h"
#include "Planner/RematPolicy.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;
using llvm::Error;
using llvm::Expected;

namespace meshwright {

std::optional<Stage> stageNamed(StringRef name) {
  for (auto [i, stage] : llvm::enumerate(stageNames))
    if (name == stage)
      return Stage(i);
  return std::nullopt;
}

StringRef nameOf(Stage stage) { return stageNames[unsigned(stage)]; }

Expected<Stage> stageOf(ModuleOp module) {
  auto attr = module->getAttrOfType<StringAttr>(stageAttr);
  if (!attr)
    return Stage::train;
  if (auto stage = stageNamed(attr.getValue()))
    return *stage;
  return llvm::createStringError("attribute " + stageAttr + " is '" + attr.getValue() +
                                 "'; expected one of " +
                                 llvm::join(llvm::ArrayRef(stageNames), ", "));
}

namespace {
/// Marks the module as having reached a stage, so that printed IR can be read
/// back and taken up where it was left.
struct StagePass : PassWrapper<StagePass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(StagePass)
  explicit StagePass(Stage stage) : stage(stage) {}
  StringRef getName() const override { return "meshwright-stage"; }
  StringRef getArgument() const override { return "meshwright-stage"; }
  void runOnOperation() override {
    getOperation()->setAttr(stageAttr, StringAttr::get(&getContext(), nameOf(stage)));
  }
  Stage stage;
};

/// Runs passes on the module, or on each of its programs where devices run different
/// ones; MLIR compiles those in parallel.
struct ProgramsPass : PassWrapper<ProgramsPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ProgramsPass)
  explicit ProgramsPass(OpPassManager passes) : passes(std::move(passes)) {}
  StringRef getName() const override { return "meshwright-programs"; }
  StringRef getArgument() const override { return "meshwright-programs"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    passes.getDependentDialects(registry);
  }
  void runOnOperation() override {
    if (failed(dist::verifyPrograms(getOperation())))
      return signalPassFailure();
    OpPassManager manager(ModuleOp::getOperationName());
    if (dist::hasPrograms(getOperation()))
      manager.nest<ModuleOp>() = passes;
    else
      manager = passes;
    if (failed(runPipeline(manager, getOperation())))
      signalPassFailure();
  }
  OpPassManager passes;
};

/// The passes that lead to one stage from the one before, as pipeline text.
struct Step {
  Stage to;
  std::string passes;
  std::string closing = {}; ///< of stage exec, what follows on the whole module
};
} // namespace

/// A pass option's value that may hold blanks and commas.
static std::string quoted(const std::string &value) { return "\"" + value + "\""; }

/// The stages of the pipeline; 1 without an axis for them.
static int64_t pipelineStages(const dist::Mesh &mesh) { return mesh.size(mesh.named("pipe")); }

/// Policies of the pipeline's stages as one for each chunk, where they differ.
static Expected<std::vector<RematPolicy>> rematOfChunks(StringRef text, planner::ScheduleKind kind,
                                                        int64_t stages) {
  Expected<std::vector<RematPolicy>> policies = parsePolicies(text);
  if (!policies || policies->size() == 1)
    return policies;
  if (int64_t(policies->size()) != stages)
    return llvm::createStringError("--remat '" + text + "' has " + llvm::Twine(policies->size()) +
                                   " policies; give one, or one for each of the " +
                                   llvm::Twine(stages) + " pipeline stages");
  std::vector<RematPolicy> chunks;
  for (int64_t stage : placeChunks(kind, stages))
    chunks.push_back((*policies)[stage]);
  return chunks;
}

static std::vector<Step> staircase(const PipelineOptions &o, int64_t chunks,
                                   llvm::ArrayRef<RematPolicy> remat) {
  std::string mesh = o.mesh.empty() ? "" : "mesh=" + quoted(o.mesh) + " ";
  std::string strategy = mesh + "zero=" + std::to_string(o.zero) +
                         " sequence-parallel=" + (o.sequenceParallel ? "true" : "false") +
                         " tensor-2d=" + (o.tensor2d ? "true" : "false") +
                         " data-sync=" + o.dataSync;
  std::string propagate = "dist-propagate";
  if (!o.explainSharding.empty())
    propagate += "{explain=" + quoted(o.explainSharding) + "}";
  std::string cutLayers;
  bool groups = llvm::any_of(remat, [](const RematPolicy &policy) { return policy.every != 1; });
  if (chunks > 1 || groups)
    cutLayers = "train-cut-layers{chunks=" + std::to_string(chunks) +
                (o.cuts.empty() ? "" : " cuts=" + quoted(o.cuts)) + " every=" +
                quoted(llvm::join(llvm::map_range(remat,
                                                  [](const RematPolicy &policy) {
                                                    return std::to_string(policy.every);
                                                  }),
                                  ",")) +
                "},";
  std::string schedule = "{schedule=" + o.schedule + "}";
  llvm::SmallVector<StringRef> offloaded;
  StringRef(o.offload).split(offloaded, ',', -1, /*KeepEmpty=*/false);
  bool states = llvm::is_contained(offloaded, "optimizer");
  bool activations = llvm::is_contained(offloaded, "activations");
  std::string sliceUpdates =
      states ? "exec-slice-updates{part-bytes=" + std::to_string(o.offloadBytes) + "}," : "";
  std::string offload =
      offloaded.empty() ? "" : "exec-offload{optimizer=" + std::string(states ? "true" : "false") +
                                   " activations=" + (activations ? "true" : "false") + "},";
  // Before buckets, but after collectives of sums have become one.
  std::string loops = o.collectiveMatmul == "on"
                          ? "dist-optimize-collectives{bucket-bytes=0},dist-loop-collectives,"
                          : "";
  int64_t rowBytes = exec::getTargetOrDefault(o.target).getRowAlignment();
  std::string pad = rowBytes > 1 ? "dist-pad{row-bytes=" + std::to_string(rowBytes) + "}," : "dist-pad,";
  return {
      {Stage::step,
       cutLayers + "train-mixed-precision{precision=" + o.precision + " grad-dtype=" + o.gradDtype +
           "},train-autodiff,train-accumulate,train-build-optimizer{optimizer=" + o.optimizer +
           "},canonicalize,train-verify,symbol-dce"},
      {Stage::dist, "dist-apply-strategy{" + strategy + "},dist-split-reductions," + pad + propagate + ",dist-verify"},
      {Stage::local, "dist-partition,canonicalize"},
      {Stage::stages, "dist-rematerialize{policy=" + quoted(textOf(remat)) + "},dist-split-stages" + schedule +
                          ",dist-split-servers"},
      {Stage::schedule,
       "dist-schedule" + schedule + "," + loops +
           "dist-optimize-collectives,dist-decompose-collectives{algorithm=" +
           o.collectiveAlgorithm + "},dist-verify-communication"},
      {Stage::exec,
       "exec-slice-collectives,exec-contiguous-collectives,exec-fuse-accumulate,exec-fuse-epilogues," +
           sliceUpdates +
           "exec-form-kernels,exec-decompose-kernels,exec-merge-launches,exec-schedule-kernels,"
           "exec-inline-repeats,exec-order," +
           (o.replay ? "exec-number-values," : "") + "exec-choose-libraries,exec-bufferize," + offload +
           (o.overlap == "on" ? "exec-overlap-collectives," : "") +
           "exec-plan-memory",
       "exec-number-collectives,exec-verify"},
  };
}

/// What closes a stage. IR that comes in from a file at that stage is checked by
/// it first: somebody may have edited it.
static StringRef verifierOf(Stage stage) {
  switch (stage) {
  case Stage::step:
    return "train-verify";
  case Stage::dist:
    return "dist-verify";
  case Stage::schedule:
    return "dist-verify-communication";
  case Stage::exec:
    return "exec-verify";
  default:
    return "";
  }
}

/// Refuses flags for a pipeline where there is none.
static Error checkPipelineFlags(const PipelineOptions &options, int64_t stages, Stage from) {
  auto refuse = [](const llvm::Twine &flag) {
    return llvm::createStringError(flag +
                                   ": there are no pipeline stages; --mesh pipe=2 makes two");
  };
  if (from < Stage::dist && stages == 1 && !options.cuts.empty())
    return refuse("--cuts " + options.cuts);
  if (from < Stage::dist && stages == 1 && options.schedule != PipelineOptions().schedule)
    return refuse("--schedule " + options.schedule);
  if (from > Stage::train && !options.cuts.empty())
    return llvm::createStringError("--cuts " + options.cuts +
                                   ": the input is past stage train, where layers are cut");
  return Error::success();
}

/// Appends the passes of a text. Those of floor 3 concern one program at a time.
static LogicalResult append(OpPassManager &manager, StringRef passes, bool ofPrograms,
                            raw_ostream &errors) {
  if (!ofPrograms)
    return parsePassPipeline(passes, manager, errors);
  OpPassManager nested(ModuleOp::getOperationName());
  if (failed(parsePassPipeline(passes, nested, errors)))
    return failure();
  manager.addPass(std::make_unique<ProgramsPass>(std::move(nested)));
  return success();
}

Error buildPipeline(OpPassManager &manager, const PipelineOptions &options, Stage from, Stage to) {
  // What is no mesh or schedule could be anything else in the text of a pipeline.
  Expected<dist::Mesh> mesh = dist::parseMesh(options.mesh);
  if (!mesh)
    return mesh.takeError();
  Expected<planner::ScheduleKind> kind = planner::ScheduleKind::parse(options.schedule);
  if (!kind)
    return kind.takeError();
  if (!options.target.empty() && !exec::findTarget(options.target))
    return llvm::createStringError("--target " + options.target + " is unknown; there are " +
                                   exec::targetNames());
  int64_t stages = pipelineStages(*mesh);
  if (Error error = checkPipelineFlags(options, stages, from))
    return error;
  if (StringRef verifier = verifierOf(from); !verifier.empty())
    if (failed(append(manager, verifier, /*ofPrograms=*/false, llvm::errs())))
      return llvm::createStringError("no pass " + verifier);
  int64_t chunks = stages > 1 ? stages * kind->chunksPerStage : 1;
  Expected<std::vector<RematPolicy>> remat = rematOfChunks(options.remat, *kind, stages);
  if (!remat)
    return remat.takeError();
  for (const Step &step : staircase(options, chunks, *remat)) {
    if (step.to <= from || step.to > to)
      continue;
    if (step.to == Stage::exec)
      manager.addPass(exec::createAssignTarget(
          exec::getTargetOrDefault(options.target).getName(), options.targetFlags));
    std::string errors;
    llvm::raw_string_ostream os(errors);
    if ((!step.passes.empty() && failed(append(manager, step.passes, step.to == Stage::exec, os))) ||
        (!step.closing.empty() && failed(append(manager, step.closing, /*ofPrograms=*/false, os))))
      return llvm::createStringError("the pipeline to stage " + nameOf(step.to) +
                                     " is not well formed: " + errors);
    manager.addPass(std::make_unique<StagePass>(step.to));
  }
  return Error::success();
}

namespace {
struct PipelineFlags : PassPipelineOptions<PipelineFlags> {
  Option<std::string> mesh{*this, "mesh", llvm::cl::desc("device mesh, as for `compile --mesh`")};
  Option<std::string> optimizer{*this, "optimizer", llvm::cl::desc("sgd or adamw"),
                                llvm::cl::init("adamw")};
  Option<int64_t> zero{*this, "zero", llvm::cl::desc("ZeRO stage"), llvm::cl::init(0)};
  Option<bool> sequenceParallel{*this, "sequence-parallel",
                                llvm::cl::desc("as for `compile --sequence-parallel`"),
                                llvm::cl::init(false)};
  Option<bool> tensor2d{*this, "tensor-2d", llvm::cl::desc("as for `compile --tensor-2d`"),
                        llvm::cl::init(false)};
  Option<std::string> precision{*this, "precision", llvm::cl::desc("f32, bf16 or fp16"),
                                llvm::cl::init("f32")};
  Option<std::string> gradDtype{*this, "grad-dtype", llvm::cl::desc("f32 or bf16"),
                                llvm::cl::init("f32")};
  Option<std::string> schedule{*this, "schedule", llvm::cl::desc("as for `compile --schedule`"),
                               llvm::cl::init("1f1b")};
  Option<std::string> cuts{*this, "cuts", llvm::cl::desc("as for `compile --cuts`")};
  Option<std::string> dataSync{*this, "data-sync", llvm::cl::desc("as for `compile --data-sync`"),
                               llvm::cl::init("all-reduce")};
  Option<std::string> target{*this, "target", llvm::cl::desc("as for `compile --target`")};
  ListOption<std::string> targetFlags{
      *this, "target-flags", llvm::cl::desc("the target's flags, each as flag=value")};
  Option<std::string> collectiveAlgorithm{*this, "collective-algorithm",
                                          llvm::cl::desc("as for `compile --collective-algorithm`"),
                                          llvm::cl::init("native")};
  Option<std::string> collectiveMatmul{*this, "collective-matmul",
                                       llvm::cl::desc("as for `compile --collective-matmul`"),
                                       llvm::cl::init("off")};
  Option<std::string> overlap{*this, "overlap", llvm::cl::desc("as for `compile --overlap`"),
                              llvm::cl::init("off")};
  Option<bool> replay{*this, "replay", llvm::cl::desc("as for `compile --replay`"),
                      llvm::cl::init(false)};
  Option<std::string> offload{*this, "offload", llvm::cl::desc("as for `compile --offload`")};
  Option<int64_t> offloadBytes{*this, "offload-bytes",
                               llvm::cl::desc("as for `compile --offload-buffer`"),
                               llvm::cl::init(32 << 20)};
  Option<std::string> remat{*this, "remat", llvm::cl::desc("as for `compile --remat`, not auto"),
                            llvm::cl::init("none")};
  Option<std::string> from{*this, "from", llvm::cl::desc("the stage the input is at"),
                           llvm::cl::init("train")};
  Option<std::string> to{*this, "to", llvm::cl::desc("the last stage"), llvm::cl::init("exec")};
};
} // namespace

void registerPipeline() {
  auto build = [](OpPassManager &manager, StringRef text,
                  llvm::function_ref<LogicalResult(const llvm::Twine &)> report) {
    PipelineFlags flags;
    if (failed(flags.parseFromString(text)))
      return failure();
    auto from = stageNamed(flags.from), to = stageNamed(flags.to);
    if (!from || !to)
      return report("'" + (from ? flags.to : flags.from) + "' is no stage; stages are " +
                    llvm::join(llvm::ArrayRef(stageNames), ", "));
    if (*from > *to)
      return report("stage " + flags.from + " comes after stage " + flags.to);
    PipelineOptions options;
    options.mesh = flags.mesh;
    options.optimizer = flags.optimizer;
    options.zero = flags.zero;
    options.sequenceParallel = flags.sequenceParallel;
    options.tensor2d = flags.tensor2d;
    options.precision = flags.precision;
    options.gradDtype = flags.gradDtype;
    options.schedule = flags.schedule;
    options.cuts = flags.cuts;
    options.dataSync = flags.dataSync;
    options.target = flags.target;
    options.collectiveAlgorithm = flags.collectiveAlgorithm;
    options.collectiveMatmul = flags.collectiveMatmul;
    options.overlap = flags.overlap;
    options.remat = flags.remat;
    options.replay = flags.replay;
    options.offload = flags.offload;
    options.offloadBytes = flags.offloadBytes;
    for (const std::string &entry : flags.targetFlags) {
      auto [name, value] = StringRef(entry).split('=');
      options.targetFlags[name.str()] = value.str();
    }
    if (Error error = buildPipeline(manager, options, *from, *to))
      return report(toString(std::move(error)));
    return success();
  };
  registerPassPipeline("meshwright-pipeline", "The passes from one stage to another", build,
                       [](auto handler) { handler(PipelineFlags()); });
}

/// 7 as "07": files sort in the order of the passes.
static std::string numbered(unsigned n) { return (n < 10 ? "0" : "") + std::to_string(n); }

namespace {
class Dump : public PassInstrumentation {
public:
  explicit Dump(StringRef directory) : directory(directory) {}

  void runAfterPass(Pass *pass, Operation *op) override {
    StringRef name = pass->getArgument();
    if (name.empty() || name.starts_with("meshwright-") || !isa<ModuleOp>(op))
      return; // of what only marks stages, or runs other passes
    // Programs count for themselves from where the module was, and it goes on after all.
    std::string program;
    unsigned number;
    if (op->getParentOp()) {
      program = "." + cast<ModuleOp>(op).getSymName().value_or("").str();
      number = count + ofProgram[op]++;
    } else {
      unsigned most = 0;
      for (auto &[nested, passes] : ofProgram)
        most = std::max(most, passes);
      ofProgram.clear();
      number = count += most;
      ++count;
    }
    std::string path =
        llvm::formatv("{0}/{1}-{2}{3}.mlir", directory, numbered(number), name, program);
    std::error_code error;
    llvm::raw_fd_ostream os(path, error);
    if (!error) {
      // Printing a program looks at the whole module, which other threads are changing: a copy is
      // alone.
      OwningOpRef<Operation *> copy = op->getParentOp() ? op->clone() : nullptr;
      (copy ? *copy : op)->print(os, OpPrintingFlags().elideLargeElementsAttrs());
    }
    os.flush();
    if (!error)
      error = os.error();
    os.clear_error();
    // The next would fail as the first does.
    if (error && !failed)
      op->emitError("cannot write '") << path << "': " << error.message();
    failed |= bool(error);
  }

private:
  std::string directory;
  unsigned count = 1;
  bool failed = false; ///< to write a file
  llvm::DenseMap<Operation *, unsigned> ofProgram;
};
} // namespace

Error dumpIrTo(PassManager &manager, StringRef directory) {
  if (std::error_code error = llvm::sys::fs::create_directories(directory))
    return llvm::createStringError("cannot make directory '" + directory + "': " + error.message());
  manager.addInstrumentation(std::make_unique<Dump>(directory));
  return Error::success();
}

} // namespace meshwright
