//===- PlanCommand.cpp - the `plan` command ----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "../OutputFiles.h"
#include "../TomlText.h"
#include "Explain.h"
#include "Prepare.h"
#include "Search.h"
#include "Tensors.h"
#include "meshwright/AtomicFile.h"
#include "meshwright/Codegen.h"
#include "meshwright/Cost/DevicesInUse.h"
#include "meshwright/Pipeline.h"
#include "meshwright/Strategy.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

#include <numeric>
#include <set>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::planner;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

static constexpr const char *planUsage =
    "usage: meshwright plan MODEL --cluster FILE|NAME --devices N --batch B [flags] [--keep FLAGS]\n"
    "                       [-o RECIPE.toml] [--json] [--seconds T] [--layouts N] [--threads N]\n"
    "                       [--exhaustive]\n"
    "       meshwright plan MODEL --cluster FILE|NAME --tensors --mesh [data=N,]tensor=N --batch B [flags]\n"
    "                       [-o RECIPE.toml] [--json] [--seconds T] [--threads N]\n"
    "  Searches for the layout with the shortest step that fits into device memory: mesh, ZeRO stage,\n"
    "  microbatches, pipeline schedule, activation checkpointing and offloading. Candidates are compiled and\n"
    "  simulated on the cluster, the most promising first, for at most T seconds (60). Flags of\n"
    "  'meshwright compile' are kept as given; the output flags are not accepted. --keep fixes a part\n"
    "  of the layout, e.g. --keep '--mesh tensor=4 --schedule 1f1b', which leaves the other mesh axes\n"
    "  to the search. -o writes the best layout as a recipe for 'meshwright compile --recipe'.\n"
    "  --layouts N stops after N compilations; --exhaustive also compiles layouts that lower bounds\n"
    "  rule out; --threads N compiles N layouts in parallel. docs/planning.md lists what is searched.\n"
    "  --tensors searches how each parameter is sharded along the axis tensor of a given mesh. What it\n"
    "  finds is compiled and simulated beside tensor parallelism and sequence parallelism, and -o\n"
    "  writes the fastest of them as a recipe with seeds. It searches for about T seconds (60) at most.\n";

namespace {
struct PlanArguments {
  std::vector<std::string> rest;
  std::string recipe, keep;
  int64_t devices = 0;
  Limits limits;
  bool json = false, tensors = false;
  std::set<std::string> given; ///< of the command's own flags
};
} // namespace

static Expected<PlanArguments> readPlanArguments(llvm::ArrayRef<std::string> args) {
  PlanArguments read;
  int64_t threads = 0;
  std::pair<StringRef, int64_t *> counts[] = {
      {"--devices", &read.devices}, {"--layouts", &read.limits.compiled}, {"--threads", &threads}};
  for (size_t i = 0; i < args.size(); ++i) {
    StringRef arg = args[i];
    bool hasValue = i + 1 < args.size();
    auto *count = llvm::find_if(counts, [&](auto &entry) { return entry.first == arg; });
    if (arg == "-h" || arg == "--help")
      return llvm::make_error<HelpRequested>(planUsage);
    if (arg.starts_with("-"))
      read.given.insert(arg.str());
    if (arg == "--json") {
      read.json = true;
    } else if (arg == "--tensors") {
      read.tensors = true;
    } else if (arg == "--exhaustive") {
      read.limits.exhaustive = true;
    } else if ((arg == "-o" || arg == "--output") && hasValue) {
      read.recipe = args[++i];
    } else if (arg == "--keep" && hasValue) {
      read.keep += " " + args[++i];
    } else if (count != std::end(counts) && hasValue) {
      if (StringRef(args[++i]).getAsInteger(10, *count->second) || *count->second < 1)
        return createStringError(arg + " '" + args[i] + "' is not a whole number from 1 on");
    } else if (arg == "--seconds" && hasValue) {
      if (StringRef(args[++i]).getAsDouble(read.limits.seconds) || !(read.limits.seconds > 0))
        return createStringError("--seconds '" + args[i] + "' is not a positive number");
    } else {
      read.rest.push_back(args[i]);
    }
  }
  read.limits.threads = unsigned(std::min<int64_t>(threads, 1024));
  return read;
}

/// No other layout is faster with as little memory.
static std::vector<const Candidate *> paretoOf(const Found &found) {
  std::vector<const Candidate *> front;
  for (const Candidate &candidate : found.fitting)
    if (front.empty() || candidate.bytes < front.back()->bytes)
      front.push_back(&candidate);
  return front;
}

static double mfuOf(const Problem &problem, const Candidate &candidate) {
  cost::DevicesInUse devices(problem.cluster, problem.devices);
  double peak =
      problem.options.precision == MixedPrecision::f32 ? devices.peakF32 : devices.peakNarrow;
  return candidate.flops / (double(problem.devices) * peak * candidate.seconds);
}

static double tokensOf(const Problem &problem, const Candidate &candidate) {
  return double(problem.batch * problem.model.sequence) / candidate.seconds /
         double(problem.devices);
}

static llvm::json::Object jsonOf(const Problem &problem, const Found &found,
                                 const Candidate &candidate) {
  llvm::json::Object flags, breakdown;
  for (auto &[name, value] : candidate.layout.flags())
    flags[name] = value;
  candidate.parts.forEach([&](StringRef name, double part) { breakdown[name.str()] = part; });
  llvm::json::Object object{{"flags", std::move(flags)},
          {"step_s", candidate.seconds},
          {"tokens_per_s_per_device", tokensOf(problem, candidate)},
          {"mfu", mfuOf(problem, candidate)},
          {"peak_bytes", candidate.bytes},
          {"bound_s", candidate.leastSeconds},
          {"bound_bytes", candidate.leastBytes},
          {"binds", bindingOf(candidate)},
          {"breakdown", std::move(breakdown)}};
  if (!found.fitting.empty() && candidate.layout.str() != found.fitting.front().layout.str())
    object["loses"] = lossOf(problem, found.fitting.front(), candidate);
  return object;
}

static void printRow(const Problem &problem, const Found &found, const Candidate &candidate,
                     llvm::raw_ostream &os) {
  const Candidate &best = found.fitting.front();
  bool isBest = candidate.layout.str() == best.layout.str();
  bool isShort = best.seconds < 0.1;
  os << llvm::formatv("{0,10:F3} {1,-2}{2,11:N0}{3,8:P1}{4,9:F1} GB  {5}\n",
                      candidate.seconds * (isShort ? 1e3 : 1), isShort ? "ms" : "s",
                      int64_t(tokensOf(problem, candidate)), mfuOf(problem, candidate),
                      double(candidate.bytes) / 1e9, candidate.layout.str());
  os << llvm::formatv("{0,46}{1}\n", "",
                      isBest ? bindingOf(candidate) : lossOf(problem, best, candidate));
}

/// How many layouts there were to choose from.
static std::string spaceOf(const Found &found) {
  std::string text = std::to_string(found.layouts) + " layouts";
  if (found.placements == 0)
    return text;
  return text + " and " + std::to_string(found.placements) +
         (found.placements == 1 ? " other placement" : " other placements") + " of the best";
}

/// What is known of the layouts of the space that were not compiled.
static std::string boundOf(const Found &found) {
  double best = found.fitting.front().seconds;
  if (found.complete)
    return "all other layouts are slower or too large, by their lower bounds";
  std::string limit = found.isOutOfTime ? "time limit reached (--seconds)"
                                        : "as many layouts as --layouts allows were compiled";
  if (!found.triedOffloads)
    return limit + "; not all of the best layouts were tried with less recomputation or more offloading";
  if (found.leastSeconds >= best)
    return limit + ", but all other layouts are slower, by their lower bounds";
  bool isShort = best < 0.1;
  return limit + llvm::formatv("; the lower bound of layouts not compiled is {0:F3} {1}, {2:P1} below "
                               "the best",
                               found.leastSeconds * (isShort ? 1e3 : 1), isShort ? "ms" : "s",
                               1 - found.leastSeconds / best)
                     .str();
}

static std::string proofOf(const Found &found) {
  std::string text = boundOf(found);
  if (found.untriedPlacements == 0)
    return text;
  return text + "; " + std::to_string(found.untriedPlacements) + " of " +
         std::to_string(found.placements) +
         " other placements of the best layout were not tried (--layouts, --seconds)";
}

static void print(const Problem &problem, const Found &found, llvm::raw_ostream &os) {
  os << llvm::formatv("{0} of {1} devices of {2}; {3} compiled in {4:F0} s", spaceOf(found),
                      problem.devices, problem.cluster.name, found.compiled, found.seconds);
  if (found.refused)
    os << llvm::formatv(", {0} of these refused, e.g.: {1}", found.refused, found.example);
  os << "; " << proofOf(found)
     << "\n       step   tokens/s     MFU    memory  flags; below: where the best layout loses time,\n"
        "              a device                     or why the others are slower\n";
  for (const Candidate &candidate : llvm::ArrayRef(found.fitting).take_front(10))
    printRow(problem, found, candidate, os);
  if (auto front = paretoOf(found); front.size() > 1) {
    os << "the fastest with less memory:\n";
    for (const Candidate *candidate : llvm::ArrayRef(front).drop_front())
      printRow(problem, found, *candidate, os);
  }
}

/// The flags that were given and those of the plan, as a recipe.
static std::string recipeOf(const CompileOptions &options, const Candidate &candidate, int64_t devices) {
  std::string text = llvm::formatv("# meshwright plan: {0:F4} s a step on {1} devices of {2}, {3} "
                                   "bytes a device\nmodel = {4}\n",
                                   candidate.seconds, devices, options.cluster->name,
                                   candidate.bytes, tomlString(options.model))
                         .str();
  for (const Flag &flag : compileFlags()) {
    if (!options.given.count(flag.name) || flag.form == Flag::List ||
        llvm::is_contained({"recipe", "plan", "devices"}, StringRef(flag.name)))
      continue;
    std::string value = flag.text(options);
    // Flags have no text for what is off.
    if (value.empty() && flag.form == Flag::Integer)
      value = "0";
    if (value.empty() && flag.form == Flag::Switch)
      value = "false";
    if (value.empty() && StringRef(flag.name) == "offload")
      value = "none";
    bool isBare = flag.form == Flag::Integer || flag.form == Flag::Switch;
    text += std::string(flag.name) + " = " + (isBare ? value : tomlString(value)) + "\n";
  }
  if (!options.seeds.empty())
    text += "\n[seeds]\n";
  for (auto &[pattern, sharding] : options.seeds)
    text += tomlString(pattern) + " = " + tomlString(sharding) + "\n";
  return text;
}

static llvm::json::Value jsonOf(const Problem &problem, const Found &found, bool all) {
  llvm::json::Array best, pareto, everything;
  for (const Candidate &candidate : llvm::ArrayRef(found.fitting).take_front(10))
    best.push_back(jsonOf(problem, found, candidate));
  for (const Candidate *candidate : paretoOf(found))
    pareto.push_back(jsonOf(problem, found, *candidate));
  llvm::json::Object object{{"cluster", problem.cluster.name},
                            {"devices", problem.devices},
                            {"layouts", found.layouts},
                            {"placements", found.placements},
                            {"untried_placements", found.untriedPlacements},
                            {"compiled", found.compiled},
                            {"refused", found.refused},
                            {"complete", found.complete},
                            {"least_s", found.leastSeconds},
                            {"seconds", found.seconds},
                            {"best", std::move(best)},
                            {"pareto", std::move(pareto)}};
  if (all) {
    for (const auto *list : {&found.fitting, &found.others})
      for (const Candidate &candidate : *list)
        everything.push_back(jsonOf(problem, found, candidate));
    object["all"] = std::move(everything);
  }
  return object;
}

//===----------------------------------------------------------------------===//
// Single tensors
//===----------------------------------------------------------------------===//

static void print(const CompileOptions &options, const TensorSearchResult &found, llvm::raw_ostream &os) {
  const TensorPlan &shown = found.found();
  std::string proof = shown.isProved    ? "no other choice costs less by the search's estimate"
                      : shown.bound     ? llvm::formatv("not proved to be the best: its estimate is {0:F1}% above the lower bound",
                                                        100 * (shown.cost / *shown.bound - 1))
                                              .str()
                                        : "not proved to be the best";
  os << llvm::formatv("{0} on {1} devices of {2}; {3} ops, each layer's once, searched in {4:F1} s\n{5}: {6}{7}\n",
                      dist::meshText(options.mesh), options.mesh.size(), options.cluster->name, found.ops, found.seconds, shown.name,
                      proof, found.isOutOfTime ? "; time limit reached (--seconds)" : "");
  size_t width = 0;
  for (const FoundTensor &tensor : shown.tensors)
    width = std::max(width, tensor.name.size());
  for (const FoundTensor &tensor : shown.tensors)
    os << "  " << llvm::left_justify(tensor.name, width + 2) << llvm::left_justify(tensor.sharding, 22) << "  " << tensor.words << "\n";
  constexpr size_t most = 6;
  if (!shown.reshards.empty())
    os << "it sends, by its estimate of a step:\n";
  for (const FoundReshard &reshard : llvm::ArrayRef(shown.reshards).take_front(most))
    os << llvm::formatv("{0,10}  {1}: {2} to {3}\n", timeText(reshard.seconds), reshard.value, reshard.from, reshard.to);
  if (shown.reshards.size() > most)
    os << llvm::formatv("{0,10}  {1} others\n", timeText(std::accumulate(shown.reshards.begin() + most, shown.reshards.end(), 0.0,
                                                       [](double sum, const FoundReshard &one) { return sum + one.seconds; })),
                        shown.reshards.size() - most);
  os << "      step     memory  compiled and simulated\n";
  for (auto [i, plan] : llvm::enumerate(found.plans)) {
    const Candidate &candidate = plan.candidate;
    if (!candidate.refused.empty()) {
      os << llvm::formatv("{0,10}{1,11}  {2}: {3}\n", "refused", "", plan.name, candidate.refused);
      continue;
    }
    os << llvm::formatv("{0,10}{1,8:F1} GB  {2}{3}\n", timeText(candidate.seconds), double(candidate.bytes) / 1e9, plan.name,
                        i >= found.fitting ? ", does not fit" : "");
  }
}

static llvm::json::Value jsonOf(const CompileOptions &options, const TensorSearchResult &found) {
  llvm::json::Array plans;
  for (auto [i, plan] : llvm::enumerate(found.plans)) {
    const Candidate &candidate = plan.candidate;
    llvm::json::Object object{{"name", plan.name}};
    if (plan.isFound) {
      llvm::json::Array reshards;
      for (const FoundReshard &reshard : plan.reshards)
        reshards.push_back(llvm::json::Object{{"value", reshard.value}, {"from", reshard.from}, {"to", reshard.to}, {"seconds", reshard.seconds}});
      llvm::json::Object seeds;
      for (auto &[pattern, sharding] : plan.options.seeds)
        seeds[pattern] = sharding;
      object["estimate_s"] = plan.cost;
      object["proved"] = plan.isProved;
      if (plan.bound)
        object["bound_s"] = *plan.bound;
      object["seeds"] = std::move(seeds);
      object["reshards"] = std::move(reshards);
    }
    if (!candidate.refused.empty()) {
      object["refused"] = candidate.refused;
    } else {
      llvm::json::Object breakdown;
      candidate.parts.forEach([&](StringRef name, double part) { breakdown[name.str()] = part; });
      object["step_s"] = candidate.seconds;
      object["peak_bytes"] = candidate.bytes;
      object["fits"] = i < found.fitting;
      object["breakdown"] = std::move(breakdown);
    }
    plans.push_back(std::move(object));
  }
  return llvm::json::Object{{"cluster", options.cluster->name},
                            {"mesh", dist::meshText(options.mesh)},
                            {"ops", found.ops},
                            {"seconds", found.seconds},
                            {"out_of_time", found.isOutOfTime},
                            {"plans", std::move(plans)}};
}

static Error planTensors(const PlanArguments &arguments, const CompileOptions &options, MLIRContext &context,
                         llvm::raw_ostream &os) {
  std::string why = " is for the search of a layout; with --tensors the mesh is given, leave it out";
  for (const char *flag : {"--devices", "--keep", "--layouts", "--exhaustive"})
    if (arguments.given.count(flag))
      return createStringError(flag + why);
  for (const char *flag : {"devices", "plan"})
    if (options.given.count(flag))
      return createStringError("the recipe's '" + std::string(flag) + "'" + why);
  Expected<TensorSearchResult> found =
      searchTensors(options, arguments.limits.threads, arguments.limits.seconds, context);
  if (!found)
    return found.takeError();
  const TensorPlan &best = found->plans.front();
  if (!arguments.recipe.empty())
    if (Error error = writeFileAtomically(recipeOf(best.options, best.candidate, options.mesh.size()), arguments.recipe))
      return error;
  if (arguments.json)
    os << llvm::formatv("{0:2}\n", jsonOf(options, *found));
  else
    print(options, *found, os);
  return Error::success();
}

Error meshwright::planLayout(llvm::ArrayRef<std::string> args, MLIRContext &context,
                             llvm::raw_ostream &os) {
  Expected<PlanArguments> read = readPlanArguments(args);
  if (!read)
    return read.takeError();
  Expected<std::map<std::string, int64_t>> axes = addKept(read->keep, read->rest);
  if (!axes)
    return axes.takeError();
  Expected<CompileOptions> options = parseCompileOptions(read->rest);
  if (!options)
    return options.takeError();
  if (Error error = refuseOutput(*options, "plan"))
    return error;
  if (!read->recipe.empty()) {
    CompileOptions files = *options;
    files.output = read->recipe;
    if (Error error = checkFiles(files))
      return error;
  }
  if (!options->cluster)
    return createStringError(llvm::Twine("--cluster is missing: it says what the devices are\n") + planUsage);
  if (!options->plan.empty() && !options->fromRecipe.count("plan"))
    return createStringError("--plan " + options->plan +
                             " changes nothing: plan searches layouts anyway; leave it out");
  if (read->tensors)
    return planTensors(*read, *options, context, os);
  int64_t devices = read->devices ? read->devices : options->devices;
  Expected<Problem> problem = prepare(*options, devices, *axes, context);
  if (!problem)
    return problem.takeError();
  Found found = searchLayouts(*problem, read->limits, llvm::errs());
  if (found.fitting.empty())
    return nothingFits(*problem, found, read->limits.threads);
  if (!read->recipe.empty())
    if (Error error = writeFileAtomically(recipeOf(optionsOf(*options, problem->batch, found.fitting.front().layout), found.fitting.front(), problem->devices), read->recipe))
      return error;
  if (read->json)
    os << llvm::formatv("{0:2}\n", jsonOf(*problem, found, read->limits.exhaustive));
  else
    print(*problem, found, os);
  return Error::success();
}

Expected<CompileOptions> meshwright::withPlan(const CompileOptions &given, MLIRContext &context,
                                              llvm::raw_ostream &log) {
  if (given.plan.empty())
    return given;
  // A mesh holds the sizes of its axes.
  CompileOptions options = given;
  std::string mesh = optionText(given.mesh);
  options.mesh = {};
  options.given.erase("mesh");
  std::vector<std::string> words;
  Expected<std::map<std::string, int64_t>> axes =
      addKept(mesh.empty() ? "" : "--mesh " + mesh, words);
  if (!axes)
    return createStringError("--plan auto: " + toString(axes.takeError()));
  if (!options.cluster)
    return createStringError("--plan auto needs --cluster, which says what the devices are");
  if (options.devices < 1 && options.given.count("devices"))
    return createStringError("--devices " + llvm::Twine(options.devices) + " must be positive");
  Expected<Problem> problem = prepare(options, options.devices, *axes, context);
  if (!problem)
    return problem.takeError();
  Limits limits;
  Found found = searchLayouts(*problem, limits, llvm::errs());
  if (found.fitting.empty())
    return nothingFits(*problem, found, limits.threads);
  const Candidate &best = found.fitting.front();
  log << llvm::formatv("plan auto: {0}, of {1} of {2} devices of {3} by {4} compilations: "
                       "{5:F3} ms a step are predicted, {6:N0} bytes a device; {7}\n",
                       best.layout.str(), spaceOf(found), problem->devices, problem->cluster.name,
                       found.compiled, best.seconds * 1e3, best.bytes, proofOf(found));
  return optionsOf(options, problem->batch, best.layout);
}
