//===- RematEstimates.cpp - what policies of rematerialization come to -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "LayerPairs.h"
#include "meshwright/Remat.h"

#include <cmath>
#include <map>
#include <numeric>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

namespace {
/// The layers of one pair.
struct Run {
  int64_t chunk, count;
  LayerGraph layer;
  double forwardCost;
  /// The prices at which the cheapest choice changes, ascending.
  std::vector<double> turns;
  /// By price; a minimum cut each.
  std::map<double, RecomputeChoice> choices;

  const RecomputeChoice &choice(double price) {
    auto found = choices.find(price);
    if (found == choices.end())
      found = choices.emplace(price, cheapestChoice(layer.graph, price)).first;
    return found->second;
  }
};

/// What a run keeps from its forward to its backward, and what one group's backward
/// has beside that: multiples of the bytes that a layer keeps, and of a layer's input.
struct Kept {
  double layers = 0, inputs = 0, groupLayers = 0;
  double again = 0; ///< layers whose whole forward runs again for their group

  bool isNoBetter(const Kept &other) const {
    return layers >= other.layers && inputs >= other.inputs && groupLayers >= other.groupLayers &&
           again >= other.again;
  }
};
} // namespace

struct RematEstimates::Layers {
  std::vector<Run> runs;
  std::vector<int64_t> sizes;
  std::vector<double> prices;
};

/// `every` as groupsOf reads it.
static Kept keptBy(int64_t every, int64_t count) {
  Kept kept;
  for (int64_t left = count; left > 0;) {
    LayerGroups groups = groupsOf(every, left);
    if (groups.size == 1) {
      kept.layers += double(groups.layers);
    } else {
      kept.inputs += double(groups.layers / groups.size);
      kept.groupLayers = std::max(kept.groupLayers, double(groups.size));
      kept.again += double(groups.layers);
    }
    left -= groups.layers;
  }
  return kept;
}

RematEstimates::RematEstimates(ModuleOp module, std::vector<schedule::HeldAtBackward> held,
                               bool anyGroups, const cost::Device &device)
    : held(std::move(held)), layers(std::make_unique<Layers>()) {
  int64_t most = 1;
  for (LayerPair &pair : findLayerPairs(module)) {
    bool isHere = llvm::any_of(this->held, [&](const schedule::HeldAtBackward &h) {
      return pair.chunk < int64_t(h.counts.size()) && h.counts[pair.chunk] > 0;
    });
    if (!isHere)
      continue;
    layers->runs.push_back({pair.chunk,
                            pair.count(),
                            LayerGraph(pair, device),
                            costOfFunction(pair.forwardFunction(), device),
                            {},
                            {}});
    most = std::max(most, pair.count());
  }
  for (int64_t size = 1; size <= most; ++size) {
    bool divides = llvm::all_of(layers->runs, [&](const Run &run) {
      return groupsOf(size, run.count).tail(run.count) == 0;
    });
    // Larger groups that are no fewer only take more, unless they leave one layer out.
    bool isUseless = llvm::any_of(layers->sizes, [&](int64_t smaller) {
      return llvm::all_of(layers->runs, [&](const Run &run) {
        return keptBy(size, run.count).isNoBetter(keptBy(smaller, run.count));
      });
    });
    if (anyGroups ? !isUseless : divides)
      layers->sizes.push_back(size);
  }
  layers->prices = {selectivePrice, anyPrice};
  for (Run &run : layers->runs) {
    const RecomputeChoice *last = nullptr;
    std::vector<PricedChoice> choices = efficientChoices(run.layer.graph);
    for (const auto &[price, choice] : choices) {
      layers->prices.push_back(price);
      if (last)
        run.turns.push_back((choice.cost - last->cost) / double(last->bytes - choice.bytes));
      last = &choice;
    }
  }
  llvm::sort(layers->prices);
  layers->prices.erase(llvm::unique(layers->prices), layers->prices.end());
}

RematEstimates::~RematEstimates() = default;

RematCandidate RematEstimates::estimate(const RematPolicy &policy) {
  RematCandidate candidate{policy, 0, 0};
  std::vector<double> waiting(layers->runs.size()), running(layers->runs.size());
  for (auto [i, run] : llvm::enumerate(layers->runs)) {
    Kept kept = keptBy(policy.every, run.count);
    // Layers on their own are computed again whole where others come in groups.
    double bytes = double(run.layer.residualBytes), cost = 0, own = bytes, ownCost = 0;
    if (policy.price) {
      const RecomputeChoice &choice = run.choice(*policy.price);
      own = bytes = double(choice.bytes);
      ownCost = cost = choice.cost;
    } else if (policy.every != 1) {
      own = double(run.choice(anyPrice).bytes);
      ownCost = run.choice(anyPrice).cost;
    }
    waiting[i] = kept.layers * own + kept.inputs * double(run.layer.carryBytes);
    running[i] = kept.groupLayers * bytes;
    candidate.cost += kept.layers * ownCost + kept.again * (run.forwardCost + cost);
  }
  for (const schedule::HeldAtBackward &now : held) {
    double bytes = 0, most = 0;
    for (auto [i, run] : llvm::enumerate(layers->runs)) {
      bytes += double(now.counts[run.chunk]) * waiting[i];
      if (run.chunk == now.chunk)
        most = std::max(most, running[i]); // one group's backward at a time
    }
    candidate.bytes = std::max(candidate.bytes, bytes + most);
  }
  return candidate;
}

std::vector<RematCandidate> RematEstimates::candidates() {
  auto before = [](const RematCandidate &a, const RematCandidate &b) {
    return std::pair(a.cost, a.bytes) < std::pair(b.cost, b.bytes);
  };
  std::vector<RematCandidate> named{estimate({}), estimate({0, std::nullopt}),
                                    estimate({1, selectivePrice}), estimate({1, anyPrice})},
      priced, all;
  for (int64_t size : layers->sizes) {
    if (size > 1)
      named.push_back(estimate({size, std::nullopt}));
    for (double price : layers->prices)
      priced.push_back(estimate({size, price}));
  }
  // Of equals the one with a name.
  llvm::append_range(named, priced);
  llvm::stable_sort(named, before);
  double least = HUGE_VAL;
  for (const RematCandidate &candidate : named) {
    bool isNamed = !candidate.policy.price ||
                   (candidate.policy.every == 1 && (*candidate.policy.price == anyPrice ||
                                                    *candidate.policy.price == selectivePrice));
    if (!isNamed && candidate.bytes >= least)
      continue;
    least = std::min(least, candidate.bytes);
    if (all.empty() || all.back().policy.str() != candidate.policy.str())
      all.push_back(candidate);
  }
  return all;
}

/// By weak duality: whatever a byte is worth, the least of cost and the price of what is
/// over `bytes` is a bound. One moment of the schedule, where most waits, stands for all.
double RematEstimates::dualBound(int64_t every, double bytes) {
  const schedule::HeldAtBackward *now = nullptr;
  int64_t most = -1;
  for (const schedule::HeldAtBackward &moment : held)
    if (int64_t all = std::accumulate(moment.counts.begin(), moment.counts.end(), int64_t(0));
        all > most) {
      now = &moment;
      most = all;
    }
  /// Layers that keep something of their own, how often what each keeps is there, and what
  /// else there is.
  struct Term {
    Run *run;
    double layers, weight, cost;
  };
  SmallVector<Term> terms;
  double fixedBytes = 0;
  SmallVector<double> prices;
  for (Run &run : layers->runs) {
    Kept kept = keptBy(every, run.count);
    double waits = double(now->counts[run.chunk]);
    fixedBytes += waits * kept.inputs * double(run.layer.carryBytes);
    if (kept.layers > 0)
      terms.push_back({&run, kept.layers, waits, 0});
    // Inside its group a layer keeps something in the group's backward alone. Of several
    // runs any may be the largest; each counts for its part.
    if (kept.again > 0)
      terms.push_back({&run, kept.again,
                       run.chunk == now->chunk
                           ? kept.groupLayers / double(layers->runs.size()) / kept.again
                           : 0,
                       run.forwardCost});
  }
  for (const Term &term : terms)
    for (double turn : term.run->turns)
      if (term.weight > 0)
        prices.push_back(turn / term.weight);
  // What runs again in any case; the bound of a price of nothing.
  double best = 0;
  for (const Term &term : terms)
    best += term.layers * term.cost;
  for (double price : prices) {
    double bound = price * (fixedBytes - bytes);
    for (const Term &term : terms) {
      const RecomputeChoice &choice = term.run->choice(price * term.weight);
      bound += term.layers * (term.cost + choice.cost + price * term.weight * double(choice.bytes));
    }
    best = std::max(best, bound);
  }
  return best;
}

double RematEstimates::leastCost(double bytes) {
  double least = HUGE_VAL;
  for (int64_t size : layers->sizes)
    least = std::min(least, dualBound(size, bytes));
  return least;
}
