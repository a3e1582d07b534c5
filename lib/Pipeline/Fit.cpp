//===- Fit.cpp - the `fit` command -------------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "OutputFiles.h"
#include "Planner/Candidate.h"
#include "Planner/Parallel.h"
#include "meshwright/Pipeline.h"
#include "meshwright/Report.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

#include <numeric>

using namespace mlir;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

namespace meshwright {

static constexpr const char *fitUsage =
    "usage: meshwright fit MODEL --largest batch|seq|layers --memory-limit BYTES [flags]\n"
    "  Finds the largest batch size, sequence length or number of layers whose plan fits the memory\n"
    "  budget of a rank, e.g. 70GiB, and (not with --remat auto) what makes room for the next: activation\n"
    "  checkpointing, by the FLOPs that it computes again, and offloading, by the bytes that it copies; with --cluster also by\n"
    "  the predicted step time. Accepts the flags of 'meshwright compile', except --assert and the\n"
    "  output flags; no files are written.\n";

namespace {
/// What one value of the quantity comes to.
struct Probe {
  int64_t value = 0;
  BySpace<int64_t> bytes = {};
  bool fits = false;
  /// Why there is no plan; empty if there is one.
  std::string refused;

  std::string str() const {
    if (!refused.empty())
      return refused;
    return llvm::formatv("{0:N0} bytes a rank{1}", bytes[MemorySpace::Device], offloadedText(bytes))
        .str();
  }
};

class Search {
public:
  /// Looks among the multiples of `unit`, from `first` of them on.
  Search(CompileOptions options, int64_t CompileOptions::*quantity, StringRef name, int64_t unit,
         int64_t first, const BySpace<Bytes> &budgets, MLIRContext &context, llvm::raw_ostream &os)
      : options(std::move(options)), quantity(quantity), name(name), unit(unit), first(first),
        budgets(budgets), context(context), os(os) {}

  Error run() {
    Probe best = probe(first);
    if (!best.refused.empty())
      return createStringError(best.refused);
    if (!best.fits) {
      priceWays(first);
      std::string more = moreOnHost();
      return createStringError(llvm::formatv(
          "no {0} fits: {1}, the smallest, needs {2}, more than the {3:N0} of --memory-limit{4}", name,
          best.value, best.str(), int64_t(budgets[MemorySpace::Device].count), more));
    }
    Probe next = findLargest(best);
    CompileOptions given = options;
    compareOffload(best, next);
    options = std::move(given);
    if (next.refused.empty())
      priceWays(next.value / unit);
    return Error::success();
  }

private:
  /// Makes `best`, which fits, the largest that does and returns the next: doubles until something
  /// does not fit, then halves the gap.
  Probe findLargest(Probe &best) {
    int64_t low = best.value / unit, high = 2 * low;
    Probe next = probe(high);
    while (next.fits) {
      best = next;
      low = high;
      next = probe(high *= 2);
    }
    while (high - low > 1) {
      int64_t middle = low + (high - low) / 2;
      Probe tried = probe(middle);
      (tried.fits ? low : high) = middle;
      (tried.fits ? best : next) = tried;
    }
    os << prefix
       << llvm::formatv("largest {0}: {1}, {2}; {3} would be: {4}\n", name, best.value, best.str(),
                        next.value, next.str());
    return next;
  }

  /// What may be kept on the host, without --offload or in addition to it: what needs fewest copies first.
  std::vector<Offload> offloads() const {
    std::vector<Offload> list;
    Offload more = options.offload;
    bool states = !options.optimizer->states.empty() || options.precision != MixedPrecision::f32;
    if (!isOffload(more.optimizer) && states) {
      more.optimizer = MemorySpace::Host;
      list.push_back(more);
    }
    if (!isOffload(more.parameters)) {
      more.parameters = MemorySpace::Host;
      list.push_back(more);
    }
    return list;
  }

  /// What makes a value fit that does not, cheapest first.
  void priceWays(int64_t count);

  /// How to fit the smallest value, which does not without that.
  std::string moreOnHost() {
    for (Offload offload : offloads()) {
      options.offload = offload;
      prefix = "with --offload " + optionText(offload) + ": ";
      if (Probe changed = probe(first); changed.fits)
        return "; --offload " + optionText(offload) + " makes it fit";
    }
    return "";
  }

  /// Says what --offload changes: of what fits with it, whether it does without; of what does not fit
  /// without, the largest that does with it.
  void compareOffload(const Probe &best, const Probe &next) {
    Offload given = options.offload;
    if (given.any()) {
      options.offload = {};
      prefix = "without --offload " + optionText(given) + ": ";
      options.given.erase("offload-buffer");
      options.given.erase("offload");
      probe(best.value / unit);
      return;
    }
    Probe tooMuch = next;
    for (Offload offload : offloads()) {
      if (!tooMuch.refused.empty())
        return;
      options.offload = offload;
      prefix = "with --offload " + optionText(offload) + ": ";
      if (Probe changed = probe(tooMuch.value / unit); changed.fits)
        tooMuch = findLargest(changed);
    }
  }

  /// Compiles with `count` units.
  Probe probe(int64_t count) {
    Probe result;
    result.value = options.*quantity = count * unit;
    options.given.insert(name.str());
    std::string notes;
    llvm::raw_string_ostream log(notes);
    Expected<OwningOpRef<ModuleOp>> module = compileTo(Phase::exec, options, context, log);
    if (notes != said) // As a rule the same for all values.
      os << notes;
    said = notes;
    Expected<CompiledPlan> plan = module ? buildPlan(**module) : module.takeError();
    if (plan) {
      result.bytes = neededBytes(*plan);
      result.fits = !exceeded(result.bytes, budgets);
    } else {
      result.refused = toString(plan.takeError());
    }
    os << prefix << llvm::formatv("{0} {1}: {2}\n", name, result.value,
                        result.refused.empty() ? result.str() + (result.fits ? "" : ", too much")
                                               : "refused");
    os.flush();
    return result;
  }

  CompileOptions options;
  std::string prefix; ///< of what it says of a value
  std::string said;   ///< by the compiler, of the last value
  int64_t CompileOptions::*quantity;
  StringRef name;
  int64_t unit, first;
  BySpace<Bytes> budgets;
  MLIRContext &context;
  llvm::raw_ostream &os;
};
} // namespace

namespace {
/// Flags that make room, and what they cost.
struct Way {
  std::string flags;
  CompileOptions options;
  planner::Candidate made = {};
};
} // namespace

void Search::priceWays(int64_t count) {
  options.*quantity = count * unit;
  options.given.insert(name.str());
  const cost::Cluster *cluster = options.given.count("cluster") ? &*options.cluster : nullptr;
  std::vector<Way> ways = {{"", options}};
  auto add = [&](StringRef remat, StringRef offload) {
    Way way = {"", options};
    for (auto [flag, value] : {std::pair("remat", remat), std::pair("offload", offload)}) {
      if (value.empty())
        continue;
      way.flags += llvm::formatv("{0}--{1} {2}", way.flags.empty() ? "" : " ", flag, value);
      way.options.given.insert(flag);
    }
    if (!remat.empty())
      llvm::cantFail(parseOption(remat, way.options.remat));
    if (!offload.empty())
      llvm::cantFail(parseOption(offload, way.options.offload));
    ways.push_back(std::move(way));
  };
  bool mayCompute = !options.given.count("remat"), mayOffload = !options.given.count("offload");
  if (mayCompute)
    for (const char *remat : {"selective", "full"})
      add(remat, "");
  std::vector<std::string> ofStates = planner::waysToOffload(options);
  if (mayOffload && !llvm::is_contained(ofStates, "activations"))
    add("", "activations");
  for (const std::string &offload : ofStates) {
    if (mayOffload)
      add("", offload);
    if (mayOffload && mayCompute && !StringRef(offload).contains("activations"))
      add("full", offload);
  }
  if (ways.size() == 1) // Both flags are given.
    return;
  planner::Candidate without = planner::simulate(options, cluster);
  if (cluster && !without.refused.empty()) {
    os << "no step times: " << without.refused << "\n";
    cluster = nullptr;
    without = planner::simulate(options, cluster);
  }
  ways.erase(ways.begin());
  size_t tried = ways.size();
  planner::forEachAtOnce(ways.size(), /*threads=*/0,
                         [&](size_t i) { ways[i].made = planner::simulate(ways[i].options, cluster); });
  llvm::erase_if(ways, [&](const Way &way) {
    return !way.made.refused.empty() || exceeded(way.made.needed, budgets);
  });
  llvm::stable_sort(ways, [](const Way &a, const Way &b) {
    return std::tuple(a.made.seconds, a.made.copied, a.made.recomputed) <
           std::tuple(b.made.seconds, b.made.copied, b.made.recomputed);
  });
  os << llvm::formatv("{0} {1} fits with {2}\n", name, options.*quantity,
                      ways.empty() ? llvm::formatv("none of {0} choices of --remat and --offload", tried).str() : "one of these:");
  for (const Way &way : ways) {
    const planner::Candidate &made = way.made;
    std::vector<std::string> prices;
    if (made.recomputed > without.recomputed)
      prices.push_back(llvm::formatv("{0:P1} more FLOPs", (made.recomputed - without.recomputed) /
                                                              (without.flops + without.recomputed)));
    if (made.copied > without.copied)
      prices.push_back(llvm::formatv("{0:N0} bytes copied a step", made.copied - without.copied));
    if (cluster)
      prices.push_back(llvm::formatv("{0} a step, {1} without", timeText(made.seconds), timeText(without.seconds)));
    os << llvm::formatv("  {0}: {1:N0} bytes a rank{2}; {3}\n", way.flags, made.bytes, offloadedText(made.needed),
                        prices.empty() ? "at no price" : llvm::join(prices, ", "));
  }
}

/// The fewest layers that the flags allow: each chunk of a pipeline has one, and so has what
/// begins at the last split point.
static int64_t fewestLayers(const CompileOptions &options) {
  int64_t stages = options.mesh.size(options.mesh.named("pipe"));
  if (stages == 1)
    return 1;
  if (int64_t last = options.cuts.numbers.empty() ? 0 : options.cuts.numbers.back(); last > 0)
    return last + 1;
  return stages * options.schedule.chunksPerStage;
}

Error fit(llvm::ArrayRef<std::string> args, MLIRContext &context, llvm::raw_ostream &os) {
  std::vector<std::string> rest;
  std::string largest;
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i] == "-h" || args[i] == "--help")
      return llvm::make_error<HelpRequested>(fitUsage);
    if (args[i] == "--largest" && i + 1 < args.size())
      largest = args[++i];
    else
      rest.push_back(args[i]);
  }
  auto quantity = llvm::StringSwitch<int64_t CompileOptions::*>(largest)
                      .Case("batch", &CompileOptions::batch)
                      .Case("seq", &CompileOptions::sequence)
                      .Case("layers", &CompileOptions::layers)
                      .Default(nullptr);
  if (largest.empty())
    return createStringError(llvm::Twine("--largest is missing: it says what to look for\n") + fitUsage);
  if (!quantity)
    return createStringError("--largest '" + largest + "' must be batch, seq or layers\n" + fitUsage);

  Expected<CompileOptions> options = parseCompileOptions(rest);
  if (!options)
    return options.takeError();
  if (Error error = refuseOutput(*options, "fit"))
    return error;
  if (llvm::sys::path::extension(options->model) == ".mlir")
    return createStringError("'" + options->model + "' has its sizes in its types; fit needs a "
                                                    "config.json");
  if (options->memoryLimit.text.empty())
    return createStringError(llvm::Twine("--memory-limit is missing: it says what a rank may use\n") +
                             fitUsage);
  BySpace<Bytes> budgets = options->budgets();
  // For compiling the limit is a budget of rematerialization alone.
  if (!options->remat.automatic) {
    options->memoryLimit = {};
    options->given.erase("memory-limit");
  }
  if (options->given.count(largest))
    return createStringError("--" + largest + " is what fit looks for; leave it out");

  // What every batch must be a multiple of; ranks share a sequence out evenly, and the loss its tokens.
  int64_t unit = 1, batchUnit = options->leastBatch();
  int64_t lossParts = options->lossParts.value.value_or(1);
  if (largest == "batch")
    unit = batchUnit;
  else if (largest == "seq")
    unit = options->mesh.size(options->mesh.named("context")) *
           (options->sequenceParallel ? options->mesh.size(options->mesh.named("tensor")) : 1) *
           (lossParts / std::gcd(lossParts, std::max<int64_t>(options->batch / batchUnit, 1)));
  int64_t first = largest == "layers" ? fewestLayers(*options) : 1;
  return Search(*options, quantity, largest, unit, first, budgets, context, os).run();
}

} // namespace meshwright
