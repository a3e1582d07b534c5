//===- Search.cpp - finds the layout whose step takes least ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Search.h"

#include "Bounds.h"
#include "Parallel.h"

#include "llvm/Support/FormatVariadic.h"

#include <chrono>
#include <cmath>
#include <deque>
#include <map>
#include <set>

using namespace meshwright;
using namespace meshwright::planner;
using Clock = std::chrono::steady_clock;

namespace {
/// A layout of the space, and what is known before it is compiled.
struct SearchEntry {
  Layout layout;
  double quick = 0;              ///< seconds at least
  std::optional<double> seconds; ///< at least, by the walk through the schedule
  double bytes = 0;              ///< at least
  double order = 0;              ///< the lower the sooner it is compiled
  bool isTried = false; ///< with the most activation checkpointing alone
  bool isDone = false;
};

class Searcher {
public:
  Searcher(const Problem &problem, const Limits &limits, llvm::raw_ostream &log)
      : problem(problem), limits(limits), log(log), bounds(problem) {}
  Found run();

private:
  /// Layouts that are compiled before anything is concluded from them: as many whatever the number
  /// of threads, so that all numbers find the same.
  static constexpr size_t roundSize = 8;

  double taken() const { return std::chrono::duration<double>(Clock::now() - begin).count(); }
  /// Of the time and the compilations, as long as nothing fits: the rest is for layouts that offload.
  double share() const { return isOffloadLeft && best == HUGE_VAL ? 0.5 : 1; }
  bool isOutOfTime() const { return taken() > deadline * share(); }
  bool isOver() const {
    return isOutOfTime() || isOutOfCompilations();
  }
  bool isOutOfCompilations() const { return limits.compiled && compiled >= mostNow(); }
  int64_t mostNow() const { return std::max<int64_t>(1, int64_t(double(most) * share())); }
  /// Layouts of the next round.
  size_t sizeOfRound() const {
    return limits.compiled ? std::min<size_t>(roundSize, mostNow() - compiled) : roundSize;
  }
  double leastSeconds(SearchEntry &entry) {
    if (!entry.seconds)
      entry.seconds = bounds.seconds(entry.layout);
    return *entry.seconds;
  }
  bool isTooLarge(const SearchEntry &entry) const { return capacity > 0 && entry.bytes > capacity; }
  /// Whether the bounds of a layout say that it is not the best.
  bool isHopeless(SearchEntry &entry) {
    if (limits.exhaustive)
      return false;
    return isTooLarge(entry) || entry.quick > best ||
           (best < HUGE_VAL && leastSeconds(entry) > best);
  }
  /// Calls `compile` for each of `round`, several at once, and keeps what they return.
  void compileRound(llvm::ArrayRef<SearchEntry *> round,
                    llvm::function_ref<std::vector<Candidate>(const Layout &)> compile, bool promising = false);
  /// Compiles those that are not hopeless when their round comes, and with `promising` only those
  /// that are expected to be faster than the best. Whether all had their turn.
  bool evaluate(llvm::ArrayRef<SearchEntry *> wanted, bool promising);
  /// A layout and, where it does not fit, the same with more activation checkpointing. One that is not expected
  /// to fit is tried with the most of it at first, with `promising`.
  std::vector<Candidate> tryLayout(const Layout &layout, bool promising);
  bool isTriedOnly(const Layout &layout, bool promising) const {
    return promising && !problem.isKept("remat") && bounds.expectsCheckpointing(layout);
  }
  /// Whether the time ended before the most activation checkpointing was tried of a layout that does
  /// not fit with less.
  bool isUnfinished(const std::vector<Candidate> &tried) const {
    const Candidate &last = tried.back();
    return !problem.isKept("remat") && last.refused.empty() && !last.fits(capacity) &&
           last.layout.remat != "full";
  }
  /// Compiles `entries` as they are while there is time; how many.
  int64_t compileEach(std::vector<SearchEntry> &entries);
  /// Compiles the fastest layouts with less activation checkpointing, where they have been tried with the most of it,
  /// and with none, but what they keep or their optimizer offloaded.
  /// Whether all of these had their turn.
  bool relaxBest();
  /// If nothing fits: compiles layouts whose optimizer is offloaded, then more, until some fit. Whether
  /// all of these had their turn.
  bool searchOffloaded();
  /// Compiles the fastest layout with its axes in other orders.
  void placeBest();
  /// If nothing fits: compiles layouts that are too large by their bounds, with the most activation
  /// checkpointing, until none can need less than the one that is found.
  void findSmallest();
  void keep(Candidate candidate);
  std::vector<const Candidate *> fastest(size_t count) const;
  void searchFirst();
  Found conclude(bool complete);

  const Problem &problem;
  const Limits &limits;
  llvm::raw_ostream &log;
  Bounds bounds;
  double capacity = problem.capacity();
  Clock::time_point begin = Clock::now();
  std::deque<SearchEntry> space; ///< those of which the device has everything, then others
  std::map<std::string, Candidate> done;
  int64_t compiled = 0;
  /// When the present part of the search ends: a tenth of the time, and of the compilations, is for
  /// `placeBest`.
  double deadline = 0.9 * limits.seconds;
  int64_t most = limits.compiled > 1 ? limits.compiled - (limits.compiled + 9) / 10 : limits.compiled;
  bool areOffloadsTried = true; ///< and less recomputation, of the best layouts
  bool isOffloadLeft = problem.searchesOffload() && capacity > 0;
  bool endedByCount = false;              ///< what ended the search before placements
  int64_t placements = 0, tried = 0; ///< of the best layout, and how many of these were compiled
  std::atomic<bool> isCut = false; ///< the time ended before all of a round was tried
  double best = HUGE_VAL;
  double computing = 0; ///< seconds that devices compute in the layout that computes least
};
} // namespace

void Searcher::keep(Candidate candidate) {
  if (candidate.fits(capacity))
    best = std::min(best, candidate.seconds);
  if (candidate.refused.empty()) {
    const TimeParts &parts = candidate.parts;
    double its = parts.products + parts.attention + parts.kernels + parts.launches;
    computing = computing > 0 ? std::min(computing, its) : its;
  }
  done[candidate.layout.str()] = std::move(candidate);
}

std::vector<Candidate> Searcher::tryLayout(const Layout &layout, bool promising) {
  if (isTriedOnly(layout, promising)) {
    Layout most = layout;
    most.remat = "full";
    return {compileLayout(problem, most)};
  }
  std::vector<Candidate> tried{compileLayout(problem, layout)};
  if (problem.isKept("remat"))
    return tried;
  for (const char *policy : {"selective", "full"}) {
    const Candidate &last = tried.back();
    if (!last.refused.empty() || last.fits(capacity))
      break;
    if (isOver()) {
      isCut = true;
      break;
    }
    Layout more = layout;
    more.remat = policy;
    tried.push_back(compileLayout(problem, more));
  }
  return tried;
}

void Searcher::compileRound(llvm::ArrayRef<SearchEntry *> round,
                            llvm::function_ref<std::vector<Candidate>(const Layout &)> compile, bool promising) {
  std::vector<std::vector<Candidate>> results(round.size());
  forEachAtOnce(round.size(), limits.threads, [&](size_t i) {
    if (isOver())
      isCut = true;
    else
      results[i] = compile(round[i]->layout);
  });
  for (auto [entry, result] : llvm::zip(round, results)) {
    bool isTriedOnly = this->isTriedOnly(entry->layout, promising);
    entry->isTried |= !result.empty() && isTriedOnly;
    entry->isDone |= !result.empty() && !isTriedOnly && !isUnfinished(result);
    compiled += int64_t(result.size());
    for (Candidate &candidate : result) {
      candidate.leastSeconds = leastSeconds(*entry);
      candidate.leastBytes = entry->bytes;
      keep(std::move(candidate));
    }
  }
  if (!log.is_displayed())
    return;
  std::string time = best < HUGE_VAL ? llvm::formatv(", best step {0:F3} s", best).str() : "";
  log << llvm::formatv("\r{0} of {1} layouts compiled in {2:F0} s{3}   ", compiled,
                       int64_t(space.size()) + placements, taken(), time);
  log.flush();
}

bool Searcher::evaluate(llvm::ArrayRef<SearchEntry *> wanted, bool promising) {
  for (size_t at = 0; at < wanted.size();) {
    if (isOver())
      return false;
    std::vector<SearchEntry *> round;
    for (; at < wanted.size() && round.size() < sizeOfRound(); ++at) {
      SearchEntry *entry = wanted[at];
      bool isIn = llvm::is_contained(round, entry);
      if (entry->isDone || (promising && entry->isTried) || isIn || isHopeless(*entry) ||
          (promising && bounds.expectedSeconds(entry->layout, computing) > best))
        continue;
      round.push_back(entry);
    }
    compileRound(round, [&](const Layout &layout) { return tryLayout(layout, promising); }, promising);
  }
  return true;
}

std::vector<const Candidate *> Searcher::fastest(size_t count) const {
  std::vector<const Candidate *> list;
  for (auto &[name, candidate] : done)
    if (candidate.fits(capacity))
      list.push_back(&candidate);
  llvm::sort(list, [](const Candidate *a, const Candidate *b) {
    return std::tuple(a->seconds, a->bytes, a->layout.str()) <
           std::tuple(b->seconds, b->bytes, b->layout.str());
  });
  if (list.size() > count)
    list.resize(count);
  return list;
}

/// What layouts have in common that differ in schedule and ZeRO level alone.
static std::string familyOf(Layout layout) {
  layout.zero = 0;
  layout.schedule = {};
  layout.remat.clear();
  layout.offload.clear();
  return layout.str();
}

void Searcher::searchFirst() {
  // Of each mesh and size of microbatches the schedule that is expected to be the fastest, and the
  // least sharding of states that has a chance to fit.
  std::map<std::string, std::vector<SearchEntry *>> families;
  std::vector<SearchEntry *> first;
  std::set<std::string> begun;
  for (SearchEntry &entry : space) {
    const Layout &layout = entry.layout;
    std::string family = familyOf(layout);
    families[family].push_back(&entry);
    bool isPlain = layout.zero == 0 && layout.dataRanks() * layout.context > 1;
    if ((isPlain && !problem.isKept("zero")) || isHopeless(entry) || !begun.insert(family).second)
      continue;
    first.push_back(&entry);
  }
  // Large models have few layouts that fit: one that probably does, and compiles fast, comes before all others, so
  // that there is an answer. The only one that may be compiled is the fastest.
  auto easy = llvm::find_if(first, [&](SearchEntry *entry) {
    return entry->layout.pipe == 1 && bounds.expectsRoom(entry->layout);
  });
  if (easy != first.end() && most != 1)
    evaluate(*easy, /*promising=*/true);
  // Now and then what the fastest become by other schedules and ZeRO levels.
  llvm::ArrayRef<SearchEntry *> rest = first;
  while (!rest.empty() && !isOver()) {
    auto turn = rest.take_front(roundSize);
    rest = rest.drop_front(turn.size());
    evaluate(turn, /*promising=*/true);
    std::vector<SearchEntry *> variants;
    for (const Candidate *candidate : fastest(3))
      llvm::append_range(variants, families[familyOf(candidate->layout)]);
    evaluate(variants, /*promising=*/true);
  }
}

int64_t Searcher::compileEach(std::vector<SearchEntry> &entries) {
  int64_t before = compiled;
  std::vector<SearchEntry *> all;
  for (SearchEntry &entry : entries)
    all.push_back(&entry);
  for (llvm::ArrayRef<SearchEntry *> rest = all; !rest.empty() && !isOver();) {
    auto round = rest.take_front(sizeOfRound());
    rest = rest.drop_front(round.size());
    compileRound(round, [&](const Layout &layout) { return std::vector{compileLayout(problem, layout)}; });
  }
  return compiled - before;
}

bool Searcher::relaxBest() {
  std::vector<SearchEntry> relaxed;
  auto add = [&](const Layout &layout) {
    bool isIn = llvm::any_of(relaxed, [&](const SearchEntry &entry) { return entry.layout.str() == layout.str(); });
    if (isIn || done.count(layout.str()))
      return;
    SearchEntry &entry = relaxed.emplace_back();
    entry.quick = bounds.quickSeconds(layout);
    entry.bytes = bounds.bytes(layout);
    entry.layout = layout;
  };
  for (const Candidate *candidate : fastest(2)) {
    Layout layout = candidate->layout;
    if (problem.isKept("remat") || layout.remat.empty())
      continue;
    for (const char *policy : {"", "selective"})
      if (layout.remat = policy; candidate->layout.remat == "full")
        add(layout);
    layout.remat.clear();
    if (problem.searchesOffload())
      for (const std::string &offload : moreOffload(problem.options, candidate->layout.offload)) {
        layout.offload = offload;
        add(layout);
      }
  }
  return compileEach(relaxed) == int64_t(relaxed.size());
}

bool Searcher::searchOffloaded() {
  double lastDeadline = deadline;
  int64_t last = most;
  size_t count = space.size();
  isOffloadLeft = false;
  bool areAll = true;
  std::vector<std::string> ways = waysToOffload(problem.options);
  for (const std::string &offload : ways) {
    // Half of what is left is for each but the last.
    bool isLast = &offload == &ways.back();
    deadline = isLast ? lastDeadline : taken() + (lastDeadline - taken()) / 2;
    most = isLast ? last : compiled + (last - compiled + 1) / 2;
    std::vector<SearchEntry *> offloaded;
    for (size_t i = 0; i < count; ++i) {
      SearchEntry &entry = space.emplace_back();
      entry.layout = space[i].layout;
      entry.layout.offload = offload;
      entry.quick = space[i].quick;
      entry.bytes = bounds.bytes(entry.layout);
      entry.order = space[i].order;
      offloaded.push_back(&entry);
    }
    bool areThese = evaluate(offloaded, /*promising=*/false);
    if (best < HUGE_VAL) {
      deadline = lastDeadline;
      most = last;
      return (areThese || evaluate(offloaded, /*promising=*/false)) && areAll && !isCut;
    }
    areAll &= areThese;
  }
  return areAll && !isCut;
}

void Searcher::placeBest() {
  std::vector<SearchEntry> placed;
  for (const Candidate *candidate : fastest(1))
    for (Layout &layout : placementsOf(problem, candidate->layout)) {
      SearchEntry &entry = placed.emplace_back();
      // The bounds on links are those of the usual order.
      entry.seconds = entry.quick = bounds.computing(layout);
      entry.bytes = bounds.bytes(layout);
      entry.layout = std::move(layout);
    }
  placements = int64_t(placed.size());
  tried = compileEach(placed);
}

void Searcher::findSmallest() {
  std::vector<SearchEntry *> others;
  for (SearchEntry &entry : space)
    if (!entry.isDone)
      others.push_back(&entry);
  llvm::stable_sort(others, [](SearchEntry *a, SearchEntry *b) { return a->bytes < b->bytes; });
  for (llvm::ArrayRef<SearchEntry *> rest = others; !rest.empty() && !isOver();) {
    double smallest = HUGE_VAL;
    for (auto &[name, candidate] : done)
      if (candidate.refused.empty())
        smallest = std::min(smallest, double(candidate.bytes));
    auto round = rest.take_front(sizeOfRound());
    rest = rest.drop_front(round.size());
    if (round.front()->bytes >= smallest)
      return;
    compileRound(round, [&](Layout layout) {
      if (!problem.isKept("remat"))
        layout.remat = "full";
      return std::vector{compileLayout(problem, layout)};
    });
  }
}

Found Searcher::conclude(bool complete) {
  Found found;
  found.complete = complete;
  found.layouts = int64_t(space.size());
  found.compiled = compiled;
  found.placements = placements;
  found.untriedPlacements = placements - tried;
  found.isOutOfTime = !endedByCount;
  found.triedOffloads = areOffloadsTried;
  found.leastSeconds = best;
  std::vector<SearchEntry *> open;
  for (SearchEntry &entry : space) {
    found.tooLarge += !entry.isDone && isTooLarge(entry);
    if (!entry.isDone && !isTooLarge(entry))
      open.push_back(&entry);
  }
  llvm::stable_sort(open, [](SearchEntry *a, SearchEntry *b) { return a->quick < b->quick; });
  for (SearchEntry *entry : open)
    if (entry->quick < found.leastSeconds)
      found.leastSeconds = std::min(found.leastSeconds, leastSeconds(*entry));
  for (const Candidate *candidate : fastest(done.size()))
    found.fitting.push_back(*candidate);
  for (auto &[name, candidate] : done) {
    if (candidate.fits(capacity))
      continue;
    if (candidate.refused.empty())
      found.others.push_back(candidate);
    else if (found.refused++ == 0)
      found.example = candidate.refused;
  }
  llvm::stable_sort(found.others,
                    [](const Candidate &a, const Candidate &b) { return a.bytes < b.bytes; });
  found.seconds = taken();
  return found;
}

Found Searcher::run() {
  for (Layout &layout : layoutsOf(problem)) {
    SearchEntry &entry = space.emplace_back();
    entry.layout = layout;
    entry.quick = bounds.quickSeconds(layout);
    entry.bytes = bounds.bytes(layout);
    // Compiling takes as long as there are tasks: those of few tasks show first whether a mesh is
    // worth it.
    double tasks = layout.pipe == 1 ? 0 : double(layout.chunks() * layout.microbatches);
    entry.order = bounds.expectedSeconds(layout, bounds.computing(layout)) * (1 + tasks / 8192);
  }
  llvm::stable_sort(space, [](const SearchEntry &a, const SearchEntry &b) { return a.order < b.order; });
  searchFirst();
  std::vector<SearchEntry *> all;
  for (SearchEntry &entry : space)
    all.push_back(&entry);
  bool complete = evaluate(all, /*promising=*/false) && !isCut;
  if (best == HUGE_VAL && isOffloadLeft)
    complete &= searchOffloaded();
  endedByCount = isOutOfCompilations();
  deadline = limits.seconds;
  most = limits.compiled;
  if (best == HUGE_VAL) {
    findSmallest();
  } else {
    areOffloadsTried = relaxBest();
    complete &= areOffloadsTried;
    placeBest();
  }
  if (log.is_displayed())
    log << "\n";
  return conclude(complete);
}

Found planner::searchLayouts(const Problem &problem, const Limits &limits, llvm::raw_ostream &log) {
  return Searcher(problem, limits, log).run();
}
