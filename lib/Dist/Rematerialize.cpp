//===- Rematerialize.cpp - dist-rematerialize --------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/Passes.h"
#include "LayerPairs.h"
#include "meshwright/Remat.h"

#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

namespace meshwright::dist {
#define GEN_PASS_DEF_DISTREMATERIALIZE
#include "Dist/Passes.h.inc"
} // namespace meshwright::dist

static SmallVector<int64_t> divisorsOf(int64_t count) {
  SmallVector<int64_t> divisors;
  for (int64_t n = 1; n <= count; ++n)
    if (count % n == 0)
      divisors.push_back(n);
  return divisors;
}

/// Layers a group that `policy` asks for of `count`.
static FailureOr<int64_t> groupSize(const RematPolicy &policy, LayerPair &pair) {
  int64_t count = pair.count();
  if (policy.every == 0) {
    // Of equal groups the ones whose number is nearest to their length.
    SmallVector<int64_t> sizes = divisorsOf(count);
    return *llvm::min_element(sizes, [&](int64_t a, int64_t b) {
      return a + count / a != b + count / b ? a + count / a < b + count / b : a < b;
    });
  }
  if (count % policy.every == 0)
    return policy.every;
  std::string workable = llvm::join(
      llvm::map_range(divisorsOf(count), [](int64_t n) { return std::to_string(n); }), ", ");
  return pair.forward.emitOpError("repeats ")
         << count << " times, which groups of " << policy.every
         << " layers do not divide; every:K works with K = " << workable;
}

static LogicalResult apply(const RematPolicy &policy, LayerPair &pair) {
  FailureOr<int64_t> size = groupSize(policy, pair);
  if (failed(size))
    return failure();
  if (*size > 1)
    groupLayers(pair, *size);
  if (policy.price) {
    LayerGraph layer(pair);
    applyChoice(pair, layer, cheapestChoice(layer.graph, *policy.price));
  } else if (*size == 1 && policy.every != 1) {
    LayerGraph layer(pair);
    applyChoice(pair, layer, cheapestChoice(layer.graph, anyPrice));
  }
  return success();
}

namespace {
struct DistRematerialize : dist::impl::DistRematerializeBase<DistRematerialize> {
  using DistRematerializeBase::DistRematerializeBase;

  void runOnOperation() override {
    llvm::Expected<RematPolicy> parsed = parsePolicy(policy);
    if (!parsed) {
      getOperation().emitError(toString(parsed.takeError()));
      return signalPassFailure();
    }
    if (parsed->every == 1 && !parsed->price)
      return;
    for (LayerPair &pair : findLayerPairs(getOperation()))
      if (failed(apply(*parsed, pair)))
        return signalPassFailure();
  }
};
} // namespace

namespace {
/// What policies of one kind come to: groups of one size, or none.
class Estimator {
public:
  explicit Estimator(ModuleOp module) : pairs(findLayerPairs(module)) {
    for (LayerPair &pair : pairs) {
      layers.emplace_back(pair);
      for (const PricedChoice &priced : efficientChoices(layers.back().graph))
        prices.push_back(priced.price);
      SmallVector<int64_t> own = divisorsOf(pair.count());
      if (layers.size() == 1)
        sizes = own;
      llvm::erase_if(sizes, [&](int64_t size) { return !llvm::is_contained(own, size); });
    }
    llvm::sort(prices);
  }

  RematCandidate estimate(const RematPolicy &policy) {
    RematCandidate candidate{policy, 0, 0};
    for (auto [pair, layer] : llvm::zip(pairs, layers)) {
      double bytes = double(layer.residualBytes), cost = 0;
      if (policy.price) {
        RecomputeChoice choice = cheapestChoice(layer.graph, *policy.price);
        bytes = double(choice.bytes);
        cost = choice.cost;
      }
      int64_t size = policy.every, count = pair.count();
      if (size > 1) {
        candidate.bytes += double(count / size * layer.carryBytes);
        cost += costOfFunction(pair.forwardFunction());
      }
      candidate.bytes += double(size > 1 ? size : count) * bytes;
      candidate.cost += double(count) * cost;
    }
    return candidate;
  }

  /// All with groups of `size` layers, ascending in cost.
  std::vector<RematCandidate> all(int64_t size) {
    std::vector<RematCandidate> candidates{estimate({size, std::nullopt})};
    for (double price : prices)
      candidates.push_back(estimate({size, price}));
    return candidates;
  }

  SmallVector<int64_t> sizes;

private:
  SmallVector<LayerPair> pairs;
  std::vector<LayerGraph> layers;
  std::vector<double> prices;
};
} // namespace

std::vector<RematCandidate> meshwright::rematCandidates(ModuleOp module) {
  Estimator estimator(module);
  std::vector<RematCandidate> all{estimator.estimate({})}, best;
  for (int64_t size : estimator.sizes)
    llvm::append_range(all, estimator.all(size));
  llvm::stable_sort(all, [](const RematCandidate &a, const RematCandidate &b) {
    return std::pair(a.cost, a.bytes) < std::pair(b.cost, b.bytes);
  });
  for (const RematCandidate &candidate : all)
    if (best.empty() || candidate.bytes < best.back().bytes)
      best.push_back(candidate);
  return best;
}

double meshwright::leastRematCost(ModuleOp module, double bytes) {
  Estimator estimator(module);
  double least = HUGE_VAL;
  for (int64_t size : estimator.sizes) {
    // Choices at some price are the corners of a convex bound, straight in between.
    std::optional<RematCandidate> last;
    for (const RematCandidate &next : estimator.all(size)) {
      if (next.bytes <= bytes) {
        double cost = next.cost;
        if (last && last->bytes > next.bytes)
          cost = last->cost + (next.cost - last->cost) * (last->bytes - bytes) /
                                  (last->bytes - next.bytes);
        least = std::min(least, cost);
        break;
      }
      if (!last || next.bytes < last->bytes)
        last = next;
    }
  }
  return least;
}
