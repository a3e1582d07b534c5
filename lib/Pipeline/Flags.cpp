//===- Flags.cpp - the flags of `meshwright compile` --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "OptimizerGroups.h"
#include "meshwright/Options.h"
#include "meshwright/PhasePass.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace meshwright {

//===--- where flags have an effect -------------------------------------------===//

static std::string unlessStatesOnHost(const CompileOptions &o) {
  return o.offload.slicesUpdates()
             ? ""
             : "it applies to --offload optimizer and parameters, of which none is given";
}

static std::string unlessMoments(const CompileOptions &o) {
  bool areFull = o.optimizer->gradientOffset() && o.momentsDtype == MomentType::f32;
  if (o.optimizer->hasNarrowStates() || areFull)
    return "";
  if (o.optimizer->gradientOffset())
    return "--optimizer " + optionText(o.optimizer) +
           " adds up small changes in its states, which bf16 would round away; leave it out";
  if (o.optimizer->quantizesStates)
    return "--optimizer " + optionText(o.optimizer) + " stores its moments in 8 bits; leave it out";
  return "--optimizer " + optionText(o.optimizer) +
         (o.optimizer->means.empty() ? " keeps no moments; leave it out"
                                     : " keeps its averages in f32, which are small; leave it out");
}

static std::string unlessAveraging(const CompileOptions &o) {
  return !o.optimizer->gradientOffset() ? ""
                                        : "--optimizer " + optionText(o.optimizer) +
                                              " averages the parameters itself: checkpoints have "
                                              "the averages as the model; leave it out";
}

static std::string unlessAverages(const CompileOptions &o) {
  if (!o.ema)
    return "there are no averages to evaluate with; give --ema too";
  if (o.dataSync == DataSync::parameterServer)
    return "with --data-sync parameter-server ranks have averages of the parameters that they serve alone; leave one of "
           "both out";
  return !isOffload(o.offload.optimizer) ? ""
                                         : "--offload optimizer keeps averages off the device, where evaluations do not "
                                           "read them; leave one of both out";
}

static std::string unlessMuon(const CompileOptions &o) {
  return o.optimizer->orthogonalizes() ? ""
                                       : "--optimizer " + optionText(o.optimizer) +
                                             " orthogonalizes nothing; --optimizer muon does";
}

static std::string unlessFp8(const CompileOptions &o) {
  return o.precision.isFp8() ? "" : "it scales the products of --precision fp8; leave it out";
}

static std::string unlessAdapted(const CompileOptions &o) {
  return o.lora.rank > 0 ? ""
                         : "it stores weights that adapters leave as they are, and without --lora all weights are trained or "
                           "saved; give --lora, or leave it out";
}

/// IR has its precision.
static std::string unlessMasters(const CompileOptions &o) {
  if (o.masters == MasterStorage::halves && o.optimizer->gradientOffset())
    return "--optimizer " + optionText(o.optimizer) +
           " reads master weights twice in a step, which needs whole ones; leave it out";
  if (o.masters == MasterStorage::halves && o.replay)
    return "--replay needs --masters whole, because it compares complete master weights; leave one "
           "of them out";
  return o.precision == MixedPrecision::bf16 || StringRef(o.model).ends_with(".mlir")
             ? ""
             : "it applies to the master weights of --precision bf16 and fp8 only; leave it out";
}

/// IR has its mesh, and what asks for nothing may be said of every mesh.
static std::string unlessQueriesDivided(const CompileOptions &o) {
  ContextParallel how = o.contextParallel;
  bool divided = how == ContextParallel::automatic ? o.mesh.size(o.mesh.named("context")) > 1
                                                   : how == ContextParallel::gather || isRing(how);
  if (divided && o.contextBalance == ContextBalance::striped && !o.getTarget().hasPartialAttention())
    return "target " + o.getTarget().getName().str() +
           " does not support striped queries; use zigzag or none";
  return divided || o.contextBalance == ContextBalance::none || StringRef(o.model).ends_with(".mlir")
             ? ""
             : "it applies to --context-parallel gather, ring and hybrid, which divide queries "
               "among ranks; leave it out, or add one of them";
}

static std::string unlessPartialAttention(const CompileOptions &o) {
  const exec::Target &target = o.getTarget();
  return !isRing(o.contextParallel) || target.hasPartialAttention()
             ? ""
             : "target " + target.getName().str() +
                   " computes attention of all keys in one call; use gather or ulysses";
}

/// IR has its microbatches.
static std::string unlessMicrobatches(const CompileOptions &o) {
  if (!o.batchRamp || StringRef(o.model).ends_with(".mlir"))
    return "";
  if (o.microbatches == 1)
    return "the batch has one microbatch, and a smaller batch is one of fewer microbatches; give --microbatches M, or "
           "leave it out";
  return o.mesh.size(o.mesh.named("pipe")) > 1
             ? "pipeline schedules are of a fixed number of microbatches; leave it out, or use a mesh without the axis `pipe`"
             : "";
}

static std::string unlessMasked(const CompileOptions &o) {
  return o.maskedShare.value ? "" : "without --mlm no token is masked; give it, or leave it out";
}

static std::string unlessPreferences(const CompileOptions &o) {
  return o.loss == Loss::dpo || !o.dpoBeta.value || StringRef(o.model).ends_with(".mlir")
             ? ""
             : "it is the beta of --loss dpo; add that, or leave it out";
}

/// The gradient of a token's logits needs the log-probabilities of its whole pair.
static std::string unlessLossIsTokenSum(const CompileOptions &o) {
  return o.loss == Loss::dpo && o.lossParts.value.value_or(1) > 1
             ? "with --loss dpo the gradient of a chunk needs the log-probabilities of all chunks of "
               "its pair; leave it out, and use more --microbatches to have fewer logits at once"
             : "";
}

static std::string unlessScoped(const CompileOptions &o) {
  return o.auxLoss == AuxLoss::sequence && o.auxScope == AuxScope::microbatch
             ? "--aux-loss sequence is computed per sequence; leave it out"
             : "";
}

static std::string unlessCounted(const CompileOptions &o) {
  if (!o.auxCountingPass || StringRef(o.model).ends_with(".mlir"))
    return "";
  if (o.microbatches == 1)
    return "one microbatch contains the routing choices of the whole batch; leave it out";
  if (o.auxLoss == AuxLoss::none)
    return "--aux-loss none needs no counts of routing choices; leave one of them out";
  if (o.auxLoss == AuxLoss::sequence || o.auxScope != AuxScope::batch)
    return "it applies to load-balancing losses over the whole batch; leave it out, or use "
           "--aux-scope batch and an --aux-loss other than sequence";
  return "";
}

/// IR has its mesh.
static std::string unlessExpertsDivided(const CompileOptions &o, bool asksForNothing) {
  return asksForNothing || StringRef(o.model).ends_with(".mlir") ||
                 o.mesh.size(o.mesh.named("expert")) > 1
             ? ""
             : "there is no expert parallelism (mesh axis `expert`); leave it out, or add e.g. "
               "--mesh expert=2";
}

static std::string unlessBuffers(const CompileOptions &o) {
  return unlessExpertsDivided(o, !o.expertBuffer.value);
}
static std::string unlessParts(const CompileOptions &o) {
  return unlessExpertsDivided(o, o.expertParts == 1);
}

static std::string unlessCopies(const CompileOptions &o) {
  return unlessExpertsDivided(o, o.redundantExperts == 0);
}

static std::string unlessOnlyBudget(const CompileOptions &o) {
  return o.remat.budget.text.empty() ? ""
                                     : "--remat " + optionText(o.remat) +
                                           " names the bytes already; write --remat auto, or leave "
                                           "it out";
}

/// IR has its mesh, and what asks for nothing may be said of every mesh.
static std::string onOneRank(const CompileOptions &o, bool asksForNothing) {
  return asksForNothing || StringRef(o.model).ends_with(".mlir") || o.mesh.size() > 1
             ? ""
             : "one rank has no collectives; leave it out, or add e.g. --mesh data=2";
}

static std::string unlessAlgorithm(const CompileOptions &o) {
  return onOneRank(o, o.collectiveAlgorithm == dist::CollectiveAlgorithm::Native ||
                          o.collectiveAlgorithm == dist::CollectiveAlgorithm::Auto);
}

static std::string unlessLooped(const CompileOptions &o) {
  return onOneRank(o, o.collectiveMatmul == Toggle::off);
}

static std::string unlessGradientsAreSent(const CompileOptions &o) {
  return onOneRank(o, o.gradReduceDtype == GradientWire::asSummed);
}

static std::string unlessGradientsAreCompressed(const CompileOptions &o) {
  bool isSent = !o.gradCompression || o.gradCompression.blocks > 1 || dist::batchParts(o.mesh) > 1 || !o.plan.empty();
  return isSent || StringRef(o.model).ends_with(".mlir")
             ? ""
             : "there is one data-parallel rank, which sends no gradients; leave it out, or add e.g. --mesh data=2";
}

static std::string unlessOverlap(const CompileOptions &o) {
  return onOneRank(o, o.overlap != Overlap::on);
}

static std::string unlessPlanned(const CompileOptions &o) {
  return o.plan.empty() ? "without --plan auto --mesh says how many there are; leave it out" : "";
}

//===--- types that flags alone have ---------------------------------------------===//

static Error parseOption(StringRef text, std::string &value) {
  value = text.str();
  return Error::success();
}
static std::string optionText(const std::string &value) { return value; }

static Error parseOption(StringRef text, std::vector<std::string> &values) {
  values.push_back(text.str());
  return Error::success();
}
static std::string optionText(const std::vector<std::string> &values) { return join(values, ", "); }

static Error parseOption(StringRef text, int64_t &value) {
  return text.getAsInteger(10, value) ? createStringError("'" + text + "' is not a whole number")
                                      : Error::success();
}
static std::string optionText(int64_t value) { return value ? std::to_string(value) : ""; }

/// A switch that stands alone is on.
static Error parseOption(StringRef text, bool &value) {
  value = text != "false";
  return value && text != "true" && !text.empty()
             ? createStringError("'" + text + "' must be true or false")
             : Error::success();
}
static std::string optionText(bool value) { return value ? "true" : ""; }

static Error parseOption(StringRef text, const exec::Target *&target) {
  target = exec::findTarget(text);
  return target ? Error::success()
                : createStringError("'" + text + "' is unknown; there are " + exec::targetNames());
}
static std::string optionText(const exec::Target *target) {
  return (target ? *target : exec::getDefaultTarget()).getName().str();
}

//===--- what targets and optimizers add ---------------------------------------===//

static std::vector<std::string> targetChoices() {
  std::vector<std::string> names;
  for (const auto &target : exec::getTargets())
    names.push_back(target->getName().str());
  return names;
}

static std::vector<std::string> optimizerChoices() {
  std::vector<std::string> names;
  for (StringRef name : train::optimizerNames())
    names.push_back(name.str());
  return names;
}

static const char *optimizerHelp() {
  static const std::string help =
      "optimizer: " +
      join(map_range(train::optimizers(),
                     [](auto *row) { return (row->name + " (" + row->summary + ")").str(); }),
           ", ");
  return help.c_str();
}

static std::vector<std::string> emissions() {
  std::vector<std::string> names(std::begin(phaseNames), std::end(phaseNames));
  names.push_back("llvm");
  for (const auto &target : exec::getTargets())
    for (StringRef name : target->getEmissions())
      names.push_back(name.str());
  names.insert(names.end(), {"chakra", "object", "exe"});
  return names;
}

/// The flags of all targets behind those of the compiler.
static std::vector<Flag> withTargets(std::vector<Flag> flags) {
  for (const auto &target : exec::getTargets())
    for (const exec::TargetFlag &of : target->getFlags()) {
      Flag flag{of.name, of.value, of.help, of.choices};
      if (of.planned)
        flag.decided = Phase::exec;
      flag.ofPasses = true;
      flag.target = target.get();
      flag.initial = of.initial;
      flag.group = "Target " + target->getName().str();
      flag.set = [](const Flag &flag, CompileOptions &options, StringRef text) -> Error {
        options.targetFlags[flag.name] = text.str();
        return Error::success();
      };
      flag.get = [](const Flag &flag, const CompileOptions &options) -> std::string {
        auto found = options.targetFlags.find(flag.name);
        return found == options.targetFlags.end() ? flag.initial : found->second;
      };
      flags.push_back(flag);
    }
  return flags;
}

//===--- the table -------------------------------------------------------------===//

/// `flag` with what sets and writes the field `member`.
template <auto member> static Flag bind(Flag flag, bool ofPasses) {
  using T = std::decay_t<decltype(std::declval<CompileOptions>().*member)>;
  flag.form = std::is_same_v<T, bool>                       ? Flag::Switch
              : std::is_same_v<T, int64_t>                  ? Flag::Integer
              : std::is_same_v<T, std::vector<std::string>> ? Flag::List
                                                            : Flag::Text;
  flag.ofPasses = ofPasses;
  if constexpr (std::is_enum_v<T>)
    if (flag.choices.empty())
      for (StringRef name : namesOf(T()))
        flag.choices.push_back(name.str());
  if constexpr (std::is_same_v<T, TrainingPrecision>)
    for (StringRef name : namesOf(TrainingPrecision::Choice()))
      flag.choices.push_back(name.str());
  flag.set = [](const Flag &, CompileOptions &options, StringRef text) {
    return parseOption(text, options.*member);
  };
  flag.get = [](const Flag &, const CompileOptions &options) {
    return optionText(options.*member);
  };
  return flag;
}

Error Flag::read(StringRef text, CompileOptions &options) const {
  std::string expanded;
  if (expand) {
    Expected<std::string> said = expand(text);
    if (!said)
      return createStringError("--" + std::string(name) + " " + toString(said.takeError()));
    text = expanded = *said;
  }
  Error error = set(*this, options, text);
  if (!error)
    return error;
  std::string why = toString(std::move(error));
  // What begins with the value follows the flag.
  bool ofValue = StringRef(why).starts_with("'") || StringRef(why).starts_with("auto:");
  return createStringError((ofValue ? "--" + std::string(name) + " " : "") + why);
}

/// An entry of the table that is no flag: the flags behind it belong to the section `name`.
static Flag heading(const char *name) { return Flag{"", "", name}; }

static std::vector<Flag> withGroups(const std::vector<Flag> &entries) {
  std::vector<Flag> flags;
  StringRef group;
  for (const Flag &entry : entries)
    if (StringRef(entry.name).empty())
      group = entry.help;
    else
      flags.emplace_back(entry).group = group.str();
  return flags;
}

ArrayRef<Flag> compileFlags() {
  static const std::vector<Flag> flags = withTargets(withGroups({
#define OPTION_GROUP(HEADING) heading(HEADING),
#define OPTION(TYPE, FIELD, INITIAL, ...) bind<&CompileOptions::FIELD>(__VA_ARGS__, false),
#define PASS_OPTION(TYPE, FIELD, INITIAL, ...) bind<&CompileOptions::FIELD>(__VA_ARGS__, true),
#include "meshwright/Options.def"
  }));
  return flags;
}

} // namespace meshwright
