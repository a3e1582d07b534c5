//===- Search.cpp - finds the layout whose step takes least ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Search.h"

#include "Train/Train.h"
#include "meshwright/Cost/Flops.h"
#include "meshwright/Pipeline.h"
#include "meshwright/Register.h"
#include "meshwright/Report.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/FormatVariadic.h"

#include <atomic>
#include <cmath>
#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <thread>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::planner;
using Clock = std::chrono::steady_clock;

static double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

llvm::Expected<ModelFacts> planner::factsOf(const CompileOptions &options, MLIRContext &context) {
  CompileOptions one = options;
  one.batch = one.microbatches = 1;
  one.mesh = {};
  one.sequenceParallel = false;
  std::string notes;
  llvm::raw_string_ostream log(notes);
  llvm::Expected<OwningOpRef<ModuleOp>> loaded = loadModel(one, context, log);
  if (!loaded)
    return loaded.takeError();
  ModuleOp module = **loaded;
  auto loss = module.lookupSymbol<func::FuncOp>("loss");
  if (!loss)
    return llvm::createStringError("'" + options.model +
                                   "' is past phase train; a search needs a config.json");
  ModelFacts facts;
  facts.sequence = train::moduleSize(module, train::sequenceAttr).value_or(1);
  for (auto repeat : loss.getOps<train::RepeatOp>())
    if (!repeat.getTimes())
      facts.layers += repeat.getCount();
  for (auto embedding : loss.getOps<train::EmbeddingOp>())
    facts.hidden = cast<RankedTensorType>(embedding.getType()).getShape().back();
  module.walk([&](train::AttentionOp attention) {
    facts.heads = cast<RankedTensorType>(attention.getQ().getType()).getDimSize(2);
  });
  for (auto variable : module.getOps<train::VariableOp>()) {
    auto count = double(variable.getTensorType().getNumElements());
    facts.parameters += count;
    if (!variable.getExperts())
      continue;
    facts.expertParameters += count;
    facts.experts = variable.getTensorType().getDimSize(variable.getStacked() ? 1 : 0);
  }
  facts.flops = cost::FlopCounter(cost::FlopCounter::Products).of(loss.getBody().front());
  return facts;
}

namespace {
class Searcher {
public:
  Searcher(const Problem &problem, double limit, llvm::raw_ostream &log)
      : problem(problem), limit(limit), log(log) {}
  Found run();

private:
  bool isTimeUp() const { return secondsSince(begin) > limit; }
  bool fits(const Candidate &candidate) const {
    return candidate.refused.empty() &&
           (capacity() == 0 || double(candidate.bytes) <= capacity());
  }
  double capacity() const { return problem.cluster.devices.front().device.capacity; }
  /// Whether the bounds of a layout say that it is not the best.
  bool isHopeless(const Layout &layout) const {
    return leastSeconds(problem, layout, computing) >= best ||
           (capacity() > 0 && leastBytes(problem, layout) > capacity());
  }
  Candidate compile(const Layout &layout) const;
  /// Compiles those that are not hopeless when their turn comes, several at once. Whether there was
  /// time for all.
  bool evaluate(llvm::ArrayRef<Layout> layouts);
  /// A layout and, where it does not fit, the same with more activation checkpointing.
  void tryLayout(const Layout &layout);
  void keep(Candidate candidate);
  std::vector<Candidate> fastest(size_t count);

  const Problem &problem;
  double limit;
  llvm::raw_ostream &log;
  Clock::time_point begin = Clock::now();
  std::mutex mutex;
  std::map<std::string, Candidate> done;
  std::atomic<double> best = std::numeric_limits<double>::infinity();
  std::atomic<double> computing = 0; ///< seconds that a device computes in every layout
  double leastFound = std::numeric_limits<double>::infinity();
  int64_t layouts = 0;
};
} // namespace

Candidate Searcher::compile(const Layout &layout) const {
  Candidate candidate;
  candidate.layout = layout;
  CompileOptions options = problem.options;
  options.batch = problem.batch;
  options.given.insert("batch");
  for (auto &[name, value] : layout.flags()) {
    const Flag *flag =
        llvm::find_if(compileFlags(), [&](const Flag &f) { return name == f.name; });
    options.given.insert(name);
    llvm::cantFail(flag->read(value, options));
  }
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  context.printOpOnDiagnostic(false);
  std::string notes;
  llvm::raw_string_ostream os(notes);
  auto module = compileTo(Phase::exec, options, context, os);
  if (!module) {
    candidate.refused = toString(module.takeError());
    return candidate;
  }
  auto plan = buildPlan(**module);
  if (!plan) {
    candidate.refused = toString(plan.takeError());
    return candidate;
  }
  candidate.bytes = plan->deviceBytes;
  candidate.flops = plan->flops - plan->recomputedFlops;
  auto step = predictStep(**module, problem.cluster);
  if (!step) {
    candidate.refused = toString(step.takeError());
    return candidate;
  }
  candidate.seconds = step->seconds;
  candidate.parts = step->mean();
  return candidate;
}

void Searcher::keep(Candidate candidate) {
  std::lock_guard lock(mutex);
  if (fits(candidate))
    best = std::min(best.load(), candidate.seconds);
  // Devices compute the same in all layouts, but for how well their parts suit them.
  if (candidate.refused.empty()) {
    const TimeParts &parts = candidate.parts;
    double its = parts.products + parts.attention + parts.kernels + parts.launches;
    leastFound = std::min(leastFound, its);
    computing = std::max(computing.load(), 0.95 * leastFound);
  }
  done[candidate.layout.str()] = std::move(candidate);
  if (log.is_displayed()) {
    std::string time = best < 1e30 ? llvm::formatv(", best step {0:F3} s", best.load()).str() : "";
    log << llvm::formatv("\r{0} of {1} layouts compiled in {2:F0} s{3}   ", done.size(), layouts,
                         secondsSince(begin), time);
    log.flush();
  }
}

void Searcher::tryLayout(const Layout &layout) {
  {
    std::lock_guard lock(mutex);
    if (done.count(layout.str()))
      return;
  }
  Candidate candidate = compile(layout);
  bool tooLarge = candidate.refused.empty() && !fits(candidate);
  keep(candidate);
  if (!tooLarge || problem.options.given.count("remat"))
    return;
  for (const char *policy : {"selective", "full"}) {
    if (isTimeUp())
      return;
    Layout more = layout;
    more.remat = policy;
    Candidate its = compile(more);
    bool isDone = !its.refused.empty() || fits(its);
    keep(std::move(its));
    if (isDone)
      return;
  }
}

bool Searcher::evaluate(llvm::ArrayRef<Layout> wanted) {
  std::atomic<size_t> next = 0;
  std::atomic<bool> isCut = false;
  auto work = [&] {
    for (size_t i; (i = next++) < wanted.size();) {
      if (isTimeUp()) {
        isCut = true;
        return;
      }
      if (!isHopeless(wanted[i]))
        tryLayout(wanted[i]);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
    threads.emplace_back(work);
  work();
  for (std::thread &thread : threads)
    thread.join();
  return !isCut;
}

std::vector<Candidate> Searcher::fastest(size_t count) {
  std::vector<Candidate> list;
  for (auto &[name, candidate] : done)
    if (fits(candidate))
      list.push_back(candidate);
  llvm::sort(list, [](const Candidate &a, const Candidate &b) {
    return std::tuple(a.seconds, a.bytes, a.layout.str()) <
           std::tuple(b.seconds, b.bytes, b.layout.str());
  });
  if (list.size() > count)
    list.resize(count);
  return list;
}

Found Searcher::run() {
  std::vector<Layout> all = layoutsOf(problem);
  layouts = all.size();
  double least = leastComputing(problem);
  computing = least;
  // Of layouts that promise about the same, those with fewer tasks are compiled sooner.
  auto promise = [&](const Layout &layout) {
    auto tasks = double(layout.pipe == 1 ? 1 : layout.pipe * layout.chunks * layout.microbatches);
    return leastSeconds(problem, layout, least) * (1 + 0.05 * std::log2(tasks));
  };
  llvm::stable_sort(all, [&](const Layout &a, const Layout &b) { return promise(a) < promise(b); });
  // First of each mesh and size of microbatches the schedule of the lowest bound, and the least
  // sharding of states that has a chance to fit.
  std::map<std::string, std::vector<Layout>> groups; // what differs in schedule and ZeRO
  std::vector<Layout> first;
  std::set<std::string> begun;
  auto groupOf = [](Layout layout) {
    layout.zero = 0;
    layout.schedule.clear();
    layout.chunks = 1;
    return layout.str();
  };
  for (const Layout &layout : all) {
    std::vector<Layout> &group = groups[groupOf(layout)];
    group.push_back(layout);
    bool isPlain = layout.zero == 0 && layout.data * layout.context > 1;
    if ((isPlain && !problem.options.given.count("zero")) || isHopeless(layout) ||
        !begun.insert(groupOf(layout)).second)
      continue;
    first.push_back(layout);
  }
  // Now and then what the fastest become by other schedules and ZeRO levels.
  constexpr size_t turn = 8;
  for (size_t begun = 0; begun < first.size(); begun += turn) {
    evaluate(llvm::ArrayRef(first).slice(begun, std::min(turn, first.size() - begun)));
    std::vector<Layout> variants;
    for (const Candidate &candidate : fastest(3))
      llvm::append_range(variants, groups[groupOf(candidate.layout)]);
    evaluate(variants);
  }
  Found found;
  found.complete = evaluate(all);
  found.layouts = layouts;
  found.compiled = done.size();
  found.fitting = fastest(done.size());
  for (auto &[name, candidate] : done) {
    if (candidate.refused.empty()) {
      if (!fits(candidate))
        found.others.push_back(candidate);
      continue;
    }
    ++found.refused;
    if (found.example.empty())
      found.example = candidate.refused;
  }
  llvm::stable_sort(found.others,
                    [](const Candidate &a, const Candidate &b) { return a.bytes < b.bytes; });
  found.seconds = secondsSince(begin);
  if (log.is_displayed())
    log << "\n";
  return found;
}

Found planner::searchLayouts(const Problem &problem, double seconds, llvm::raw_ostream &log) {
  return Searcher(problem, seconds, log).run();
}
