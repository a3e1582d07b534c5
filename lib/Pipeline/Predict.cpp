//===- Predict.cpp - the `predict` command -----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/Programs.h"
#include "OutputFiles.h"
#include "meshwright/Cost/DevicesInUse.h"
#include "meshwright/ForeignMemory.h"
#include "meshwright/Pipeline.h"
#include "meshwright/Report.h"
#include "meshwright/StepTime.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;

namespace meshwright {

static std::string predictUsage() {
  std::string text =
      "usage: meshwright predict MODEL --cluster FILE|NAME [flags] [--profile FILE|NAME] [--json]\n"
      "  Compiles the model and simulates a step of the program on a cluster. Prints step time,\n"
      "  tokens per second, MFU, peak memory and a breakdown of the step time. Accepts the flags of\n"
      "  'meshwright compile', except --assert and the output flags; no files are written.\n"
      "  --profile estimates the step time of another training system with the same layout, from\n"
      "  that system's kernel speeds and overheads; given several times, it compiles once and prints a\n"
      "  prediction for each, with --json an array.\n"
      "  Named clusters (docs/clusters.md describes cluster files):\n";
  for (const cost::NamedCluster &known : cost::getClusters()) {
    Expected<cost::Cluster> cluster = cost::readCluster(known.text, known.name);
    text += llvm::formatv("    {0,-14} {1}\n", known.name,
                          cluster ? cluster->description : toString(cluster.takeError()))
                .str();
  }
  text += "  Named profiles:\n";
  for (const cost::NamedProfile &known : cost::getProfiles()) {
    Expected<cost::Profile> profile = cost::readProfile(known.name);
    text += llvm::formatv("    {0,-14} {1}\n", known.name,
                          profile ? profile->description : toString(profile.takeError()))
                .str();
  }
  return text;
}

namespace {
/// What is said of a step.
struct Prediction : StepRates {
  Prediction(ModuleOp module, const CompiledPlan &plan, const StepTime &step,
             const cost::Cluster &cluster, const cost::Profile &profile)
      : StepRates(plan, cluster, step.seconds), plan(plan), cluster(cluster), profile(profile),
        parts(step.mean()), seconds(step.seconds) {
    capacity = cost::DevicesInUse(cluster, int64_t(ranks)).capacity;
    for (const StepTime::Program &program : step.programs)
      if (program.longestWait > longestWait) {
        longestWait = program.longestWait;
        waitsFor = program.waitsFor;
      }
    for (auto [program, its] : llvm::zip_equal(plan.programs, dist::programsOf(module))) {
      double bytes = foreignArena(its, program, profile);
      arena = std::max(arena, bytes);
      peak = std::max(peak, bytes + double(bytesOf(program.allowances)));
    }
  }
  bool fits() const { return capacity == 0 || peak <= capacity; }
  llvm::json::Object json() const;
  void print(llvm::raw_ostream &os) const;

  const CompiledPlan &plan;
  const cost::Cluster &cluster;
  const cost::Profile &profile;
  TimeParts parts;
  double seconds, capacity;
  double peak = 0;  ///< bytes on the device that needs most
  double arena = 0; ///< the same without what drivers and libraries take
  double longestWait = 0; ///< of any program for one copy
  std::string waitsFor;
};
} // namespace

llvm::json::Object Prediction::json() const {
  llvm::json::Object breakdown;
  parts.forEach([&](llvm::StringRef name, double part) { breakdown[name.str()] = part; });
  llvm::json::Object object{{"cluster", cluster.name},
                            {"profile", profile.name},
                            {"devices", int64_t(ranks)},
                            {"step_s", seconds},
                            {"tokens_per_s_per_device", tokensPerDevice},
                            {"mfu", mfu},
                            {"model_flops", modelFlops},
                            {"peak_flops_per_device", peakRate},
                            {"peak_bytes", std::llround(peak)},
                            {"arena_bytes", std::llround(arena)},
                            {"breakdown", std::move(breakdown)}};
  for (MemorySpace space : offloadSpaces)
    if (int64_t bytes = neededBytes(plan)[space])
      object[spaceRow(space).bytes] = bytes;
  if (!waitsFor.empty()) {
    object["longest_copy_wait_s"] = longestWait;
    object["longest_copy_wait"] = waitsFor;
  }
  if (capacity > 0) {
    object["device_memory_bytes"] = capacity;
    object["fits"] = fits();
  }
  return object;
}

void Prediction::print(llvm::raw_ostream &os) const {
  os << llvm::formatv("step {0} on {2} devices of {1}: {3:N0} tokens/s a device, MFU {4:P1}\n",
                      timeText(seconds), cluster.name, int64_t(ranks), int64_t(tokensPerDevice), mfu);
  if (!profile.description.empty())
    os << "  as " << profile.description << "\n";
  os << llvm::formatv("  MFU = {0:e3} FLOPs of a step{1} / ({2} devices x {3:e3} FLOP/s x {4})\n",
                      modelFlops,
                      plan.recomputedFlops > 0 ? ", without recomputation" : "",
                      int64_t(ranks), peakRate, timeText(seconds));
  os << llvm::formatv("peak {0:F2} GB a device", peak / 1e9);
  if (capacity > 0)
    os << llvm::formatv(" of {0:F2} GB{1}", capacity / 1e9, fits() ? "" : ": it does not fit");
  os << offloadedText(neededBytes(plan));
  if (!waitsFor.empty())
    os << llvm::formatv("\nthe longest wait for a copy is {0}, for {1}", timeText(longestWait), waitsFor);
  os << "\nbreakdown of the step time, mean over all devices:\n";
  parts.forEach([&](llvm::StringRef name, double part) {
    if (part >= 5e-5 * seconds)
      os << llvm::formatv("  {0,-32}{1,12}{2,8:P1}\n", name, timeText(part), part / seconds);
  });
}

Error predict(llvm::ArrayRef<std::string> args, MLIRContext &context, llvm::raw_ostream &os) {
  std::vector<std::string> rest;
  std::vector<cost::Profile> profiles;
  bool json = false;
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i] == "-h" || args[i] == "--help")
      return llvm::make_error<HelpRequested>(predictUsage());
    if (args[i] == "--json")
      json = true;
    else if (args[i] == "--profile" && i + 1 < args.size()) {
      Expected<cost::Profile> profile = cost::readProfile(args[++i]);
      if (!profile)
        return profile.takeError();
      profiles.push_back(std::move(*profile));
    } else
      rest.push_back(args[i]);
  }
  if (profiles.empty())
    profiles.push_back({});
  Expected<CompileOptions> options = parseCompileOptions(rest);
  if (!options)
    return options.takeError();
  if (Error error = refuseOutput(*options, "predict"))
    return error;
  if (!options->cluster)
    return createStringError("--cluster is missing: it says where the step runs\n" + predictUsage());
  // Notes are for people, and JSON for programs.
  Expected<OwningOpRef<ModuleOp>> module =
      compileTo(Phase::exec, *options, context, json ? llvm::errs() : os);
  if (!module)
    return module.takeError();
  Expected<CompiledPlan> plan = buildPlan(**module);
  if (!plan)
    return plan.takeError();
  llvm::json::Array all;
  for (const cost::Profile &profile : profiles) {
    Expected<StepTime> step = predictStep(**module, *options->cluster, profile);
    if (!step)
      return step.takeError();
    Prediction prediction(**module, *plan, *step, *options->cluster, profile);
    if (json)
      all.push_back(prediction.json());
    else
      prediction.print(os);
  }
  if (json)
    os << llvm::formatv("{0:2}\n", profiles.size() == 1 ? all.front() : llvm::json::Value(std::move(all)));
  return Error::success();
}

} // namespace meshwright
