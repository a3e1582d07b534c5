//===- Tensors.cpp - shardings of single tensors on a given mesh ------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Tensors.h"

#include "Dist/Dist.h"
#include "Parallel.h"
#include "meshwright/Pipeline.h"
#include "meshwright/Strategy.h"
#include "meshwright/TensorShardings.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

#include <chrono>
#include <cmath>
#include <map>
#include <set>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::planner;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

/// Entries of the largest table of a search: 128 MiB.
static constexpr size_t mostEntries = size_t(1) << 24;

static Error check(const CompileOptions &options) {
  const dist::Mesh &mesh = options.mesh;
  for (const char *flag : {"sequence-parallel", "tensor-2d"})
    if (options.given.count(flag))
      return createStringError("--" + llvm::Twine(flag) +
                               " is what plan --tensors decides; leave it out");
  if (!options.given.count("mesh"))
    return createStringError(
        "--tensors needs --mesh with an axis tensor, such as --mesh tensor=4: it "
        "searches shardings along that axis");
  for (const dist::MeshAxis &axis : mesh.axes)
    if (axis.name != "tensor" && axis.name != "data" && axis.name != "replica" && axis.size > 1)
      return createStringError("--tensors: mesh axis '" + axis.name +
                               "' is not supported; beside tensor, " +
                               "a mesh may have data and replica");
  if (mesh.find("tensor") < 0 || mesh.size(mesh.named("tensor")) < 2)
    return createStringError(
        "--tensors: mesh " + dist::meshText(mesh, true) +
        " has no axis tensor of several devices to search along; add e.g. tensor=2");
  if (!options.seeds.empty())
    return createStringError("--tensors finds seeds itself; leave the recipe's [seeds] out");
  const auto &kinds = options.cluster->devices;
  if (kinds.size() > 1 && kinds.front().count > 0 && mesh.size() > kinds.front().count)
    return createStringError("--tensors: mesh " + dist::meshText(mesh) + " has more devices than the " +
                             llvm::Twine(kinds.front().count) + " '" + kinds.front().device.name +
                             "' that cluster " + options.cluster->name +
                             " begins with; its estimate is for devices of one kind");
  bool isIr = llvm::sys::path::extension(options.model) == ".mlir";
  if (isIr && dist::batchParts(mesh) > 1)
    return createStringError(
        "--tensors: '" + options.model +
        "' is written for its batch, which a mesh axis data would "
        "divide; leave data out, which does not change what is found within a data rank");
  if (isIr)
    return Error::success();
  if (options.batch == 0)
    return createStringError("--batch is missing: the sequences of an optimizer step");
  int64_t parts = dist::batchParts(mesh);
  if (options.batch % (parts * std::max<int64_t>(options.microbatches, 1)) != 0)
    return createStringError("--batch " + llvm::Twine(options.batch) + " does not divide by " +
                             llvm::Twine(parts * std::max<int64_t>(options.microbatches, 1)) +
                             ", the data ranks times microbatches");
  return Error::success();
}

/// As patterns of a recipe take a name: characters that mean something there are themselves.
static std::string patternOf(StringRef name) {
  std::string text;
  for (char c : name) {
    if (StringRef("*?[]{}\\!#").contains(c))
      text += '\\';
    text += c;
  }
  return text;
}

/// "[{}, {tensor}]", without the dimension of layers.
static std::string textOf(llvm::ArrayRef<dist::Axes> dims, const dist::Mesh &mesh) {
  llvm::SmallVector<std::string> texts;
  for (const dist::Axes &axes : dims)
    texts.push_back(mesh.str(axes));
  return "[" + llvm::join(texts, ", ") + "]";
}

/// The seed of a value: the searched axis is where the search says, all others where they may be.
static std::string seedOf(Value value, const dist::Sharding &sharding, const dist::Mesh &mesh,
                          const dist::TensorShardings &search) {
  llvm::SmallVector<std::string> texts;
  dist::Axes tensor = mesh.named("tensor");
  for (auto [d, axes] : llvm::enumerate(sharding.dims)) {
    if (axes.empty()) {
      texts.push_back("{?}");
      continue;
    }
    // Sequences are divided along the axes of data first.
    dist::Axes all = search.isOfBatch(value, d) ? dist::batchAxes(mesh) : dist::Axes();
    llvm::append_range(all, axes);
    texts.push_back(mesh.str(all));
  }
  bool isWhole = sharding.complete().isReplicated();
  return "[" + llvm::join(texts, ", ") + "]" +
         (isWhole ? ", replicated = " + mesh.str(tensor) : "");
}

/// "dimension 1 in 4 parts".
static std::string wordsOf(const dist::Sharding &sharding, const dist::Mesh &mesh, size_t layers) {
  for (auto [d, axes] : llvm::enumerate(sharding.dims))
    if (!axes.empty())
      return "dimension " + std::to_string(d - layers) + " of " +
             std::to_string(sharding.dims.size() - layers) + " in " +
             std::to_string(mesh.size(axes)) + " parts";
  return sharding.partial.empty() ? "whole on each device" : "a term of the sum on each device";
}

/// "@layer.forward:x", by the name of the function that was written.
static std::string nameOf(Value value, const dist::TensorShardings &search) {
  auto called = value.getLoc()->findInstanceOf<NameLoc>();
  auto function = search.originalOf(value.getParentRegion()->getParentOfType<func::FuncOp>());
  auto argument = dyn_cast<BlockArgument>(value);
  std::string name = called     ? called.getName().str()
                     : argument ? std::to_string(argument.getArgNumber())
                                : value.getDefiningOp()->getName().getStringRef().str();
  return "@" + function.getSymName().str() + ":" + name;
}

/// The seeds of a choice.
static TensorPlan planOf(StringRef name, const CompileOptions &options, ModuleOp module,
                         dist::TensorShardings &search, const dist::TensorShardings::Choice &minimum) {
  const dist::Mesh &mesh = options.mesh;
  TensorPlan plan;
  plan.name = name;
  plan.options = options;
  plan.isFound = true;
  plan.cost = search.costOf(minimum);
  for (const dist::TensorShardings::Sent &sent : search.sent(minimum))
    plan.reshards.push_back(
        {nameOf(sent.value, search), sent.from.str(mesh), sent.to.str(mesh), sent.seconds});
  for (auto variable : module.getOps<train::VariableOp>()) {
    if (!variable.isParameter())
      continue;
    dist::Sharding sharding = search.shardingOf(variable, minimum);
    size_t layers = variable.getStacked();
    std::string text = textOf(llvm::ArrayRef(sharding.dims).drop_front(layers), mesh);
    plan.options.seeds.push_back({patternOf(variable.getSymName()), text});
    plan.tensors.push_back({variable.getSymName().str(), text, wordsOf(sharding, mesh, layers)});
  }
  std::set<std::string> seen;
  for (BlockArgument carried : search.carriedByLayers()) {
    dist::Sharding sharding = search.shardingOf(carried, minimum);
    std::string text = seedOf(carried, sharding, mesh, search), name = nameOf(carried, search);
    // Other values may have the name, too: gradients have that of what they are the gradient of.
    std::string number = "#" + std::to_string(carried.getArgNumber()), pattern = patternOf(name) + number;
    if (!seen.insert(pattern).second)
      continue;
    // Only reductions make partial values: propagation finds those.
    if (sharding.partial.empty())
      plan.options.seeds.push_back({pattern, text});
    plan.tensors.push_back({name + number, sharding.partial.empty() ? text : "", wordsOf(sharding, mesh, 0)});
  }
  return plan;
}

/// The fastest plan that fits among those of several prices for bytes: rising ones until one fits,
/// then ones between the highest that is too low and the lowest that is not. Nothing if none fits.
/// At least one price is tried, others until `end`.
static std::optional<TensorPlan> withinMemory(const CompileOptions &options, double capacity,
                                              ModuleOp module, dist::TensorShardings &search,
                                              const dist::TensorShardings::Choice &minimum,
                                              dist::TensorShardings::Time end) {
  constexpr int rounds = 10;
  std::optional<TensorPlan> best;
  std::map<std::vector<unsigned>, bool> known = {{minimum.values, false}};
  double low = 0, high = 0, price = minimum.cost / std::max(1.0, search.bytesOf(minimum));
  for (int round = 0; round < rounds; ++round) {
    if (round > 0 && std::chrono::steady_clock::now() >= end)
      break;
    dist::TensorShardings::Choice priced = search.minimize(mostEntries, end, price);
    auto [fits, isNew] = known.try_emplace(priced.values, false);
    if (isNew) {
      TensorPlan plan = planOf("search within memory", options, module, search, priced);
      plan.candidate = simulate(plan.options, *options.cluster);
      fits->second = plan.candidate.fits(capacity);
      if (fits->second && (!best || plan.candidate.seconds < best->candidate.seconds))
        best = std::move(plan);
    }
    (fits->second ? high : low) = price;
    price = high == 0 ? 16 * price : std::sqrt(std::max(low, high / 64) * high);
  }
  return best;
}

const TensorPlan &TensorSearchResult::found() const {
  return *llvm::find_if(plans, [](const TensorPlan &plan) { return plan.isFound; });
}

Expected<TensorSearchResult> planner::searchTensors(const CompileOptions &options, unsigned threads,
                                                    double seconds, MLIRContext &context) {
  if (Error error = check(options))
    return std::move(error);
  const dist::Mesh &mesh = options.mesh;
  int64_t devices = mesh.size();
  if (std::optional<int64_t> size = options.cluster->size(); size && devices > *size)
    return createStringError("mesh " + dist::meshText(mesh) + " has " + llvm::Twine(devices) +
                             " devices, more than the " + llvm::Twine(*size) + " of cluster " +
                             options.cluster->name);
  // The step of one device along all other axes.
  CompileOptions step = options;
  step.batch = options.batch / dist::batchParts(mesh);
  llvm::raw_null_ostream log;
  auto module = compileTo(Phase::step, step, context, log);
  if (!module)
    return module.takeError();
  bool hasSeeds = (**module)->hasAttr(dist::DistDialect::seedsAttr);
  if (hasSeeds || !dist::seededAxes(**module).empty())
    return createStringError("--tensors finds seeds itself, but '" + options.model +
                             "' has some already; take them out");
  auto begin = std::chrono::steady_clock::now();
  // More seconds than a year has are no limit.
  auto end = dist::TensorShardings::Time::max();
  if (seconds < 3e7)
    end = begin + std::chrono::duration_cast<dist::TensorShardings::Time::duration>(
                      std::chrono::duration<double>(seconds));
  dist::TensorShardings search(mesh, mesh.named("tensor"), *options.cluster);
  {
    std::string why;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      if (why.empty())
        why = diagnostic.str();
      return success();
    });
    if (failed(search.read(**module)))
      return createStringError("--tensors: " + why);
  }
  dist::TensorShardings::Choice minimum = search.minimize(mostEntries, end);
  TensorSearchResult result;
  result.ops = search.ops();
  result.isOutOfTime = minimum.isOutOfTime;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

  TensorPlan best = planOf("search", options, **module, search, minimum);
  best.isProved = minimum.isProved;
  best.bound = minimum.bound;
  if (best.tensors.empty())
    return createStringError("--tensors: '" + options.model +
                             "' has no parameter, and nothing that layers pass on, to shard");

  CompileOptions sequence = options;
  sequence.sequenceParallel = true;
  sequence.given.insert("sequence-parallel");
  for (auto &[name, preset] :
       {std::pair<const char *, const CompileOptions &>("tensor parallelism", options),
        {"tensor and sequence parallelism", sequence}}) {
    result.plans.emplace_back().name = name;
    result.plans.back().options = preset;
  }
  result.plans.push_back(std::move(best));
  forEachAtOnce(result.plans.size(), threads, [&](size_t i) {
    result.plans[i].candidate = simulate(result.plans[i].options, *options.cluster);
  });
  double capacity = capacityOf(options, *options.cluster, devices);
  const Candidate &free = result.plans.back().candidate;
  if (free.refused.empty() && !free.fits(capacity))
    if (std::optional<TensorPlan> plan = withinMemory(options, capacity, **module, search, minimum, end))
      result.plans.push_back(std::move(*plan));
  // Of two equally fast ones the preset, which the user knows, comes first.
  llvm::stable_sort(result.plans, [&](const TensorPlan &a, const TensorPlan &b) {
    auto rank = [&](const TensorPlan &plan) {
      return std::tuple(!plan.candidate.refused.empty(), !plan.candidate.fits(capacity),
                        plan.candidate.seconds);
    };
    return rank(a) < rank(b);
  });
  result.fitting = llvm::count_if(
      result.plans, [&](const TensorPlan &plan) { return plan.candidate.fits(capacity); });
  if (result.fitting == 0) {
    const Candidate &first = result.plans.front().candidate;
    if (!first.refused.empty())
      return createStringError(first.refused);
    return createStringError("no plan fits into the " + llvm::Twine(int64_t(capacity)) +
                             " bytes of a device: '" + result.plans.front().name + "' needs " +
                             llvm::Twine(first.bytes) +
                             "; use more devices, or --remat, --zero or --offload");
  }
  return result;
}
