//===- Propagation.cpp - shardings to a fixed point over factor tables ------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/Propagation/Propagation.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace meshwright::dist {

unsigned Propagation::addNode(std::string name, ArrayRef<int64_t> shape, unsigned bits) {
  Node &node = nodes.emplace_back();
  node.name = std::move(name);
  node.bytes = divideCeil(bits, 8);
  for (int64_t size : shape)
    node.bytes *= size;
  node.shape.assign(shape.begin(), shape.end());
  node.sharding = Sharding::replicated(shape.size());
  node.open.assign(shape.size(), true);
  return nodes.size() - 1;
}

void Propagation::seed(unsigned id, const Sharding &sharding, ArrayRef<bool> open,
                       AxisMask replicated, function_ref<std::string(unsigned)> reasonOf) {
  Node &node = nodes[id];
  node.replicated = replicated;
  node.sharding = sharding.complete();
  node.open.assign(open.begin(), open.end());
  node.decisions.clear();
  node.roots.clear();
  for (unsigned axis : sharding.root)
    node.roots.push_back({axis, reasonOf ? reasonOf(axis) : ""});
  for (auto [d, axes] : enumerate(sharding.dims))
    for (unsigned axis : axes)
      node.decisions.push_back({unsigned(d), axis, -1, -1, 0, reasonOf ? reasonOf(axis) : ""});
}

void Propagation::raise(unsigned node, int priority) {
  nodes[node].priority = std::max(nodes[node].priority, priority);
}

void Propagation::close(unsigned node, unsigned dim) { nodes[node].open[dim] = false; }

void Propagation::addLink(std::string name, ShardingRule rule, ArrayRef<unsigned> ends,
                          bool binding) {
  links.push_back({std::move(name), std::move(rule), SmallVector<unsigned>(ends), binding});
}

/// The dimension of `tensor` that holds `factor`, or -1.
static int dimWith(const TensorFactors &tensor, unsigned factor) {
  for (auto [d, dim] : enumerate(tensor.dims))
    if (is_contained(dim, factor))
      return d;
  return -1;
}

static bool isBeginning(const Axes &shorter, const Axes &longer) {
  return shorter.size() <= longer.size() &&
         std::equal(shorter.begin(), shorter.end(), longer.begin());
}

std::pair<Axes, size_t> Propagation::agreed(const FactorClaims &claims, unsigned f,
                                            bool byCost) const {
  // The longest list of the highest priority, if every other one of that priority
  // is its beginning. Where tensors disagree nothing spreads until bytes decide.
  SmallVector<size_t> order;
  for (size_t t = 0; t < claims.axes.size(); ++t)
    if (!claims.axes[t][f].empty())
      order.push_back(t);
  if (order.empty())
    return {};
  stable_sort(order, [&](size_t a, size_t b) {
    auto rank = [&](size_t t) {
      return std::make_pair(claims.priorities[t], claims.axes[t][f].size());
    };
    return rank(a) > rank(b);
  });
  const Axes &first = claims.axes[order.front()][f];
  bool all = true, ofPriority = true;
  for (size_t t : order) {
    bool fits = isBeginning(claims.axes[t][f], first);
    all &= fits;
    ofPriority &= fits || claims.priorities[t] < claims.priorities[order.front()];
  }
  if (all || (ofPriority && claims.priorities[order.front()] > Ordinary))
    return {first, order.front()};
  if (!byCost)
    return {};
  size_t heaviest = order.front();
  for (size_t t : order)
    if (claims.priorities[t] == claims.priorities[heaviest] &&
        claims.bytes[t] > claims.bytes[heaviest])
      heaviest = t;
  return {claims.axes[heaviest][f], heaviest};
}

bool Propagation::apply(unsigned id, bool byCost) {
  Link &link = links[id];
  const ShardingRule &rule = link.rule;
  auto look = [&] {
    FactorClaims claims;
    for (unsigned node : link.nodes)
      claims.add(rule, nodes[node].sharding, std::max<int64_t>(nodes[node].bytes, 1),
                 nodes[node].priority, mesh);
    return claims;
  };
  FactorClaims claims = look();
  SmallVector<FactorAxes> seen = claims.axes;
  link.conflicts.clear();
  resolveConflicts(rule, claims, mesh, byCost,
                   [&](const AxisConflict &conflict) { link.conflicts.push_back(conflict); });

  bool changed = false;
  for (unsigned f = 0; f < rule.factors.size(); ++f) {
    if (rule.factors[f].whole)
      continue;
    auto [axes, source] = agreed(claims, f, byCost);
    for (size_t t = 0; t < seen.size() && !axes.empty(); ++t) {
      int d = dimWith(tensorOf(rule, t), f);
      Node &node = nodes[link.nodes[t]];
      if (d < 0 || !node.open[d] || !isBeginning(seen[t][f], axes))
        continue;
      while (seen[t][f].size() < axes.size()) {
        unsigned axis = axes[seen[t][f].size()];
        // Another factor may have got the axis while this link was looked at.
        bool elsewhere = node.sharding.uses(axis) || (node.replicated >> axis & 1) ||
                         any_of(claims.axes, [&](const FactorAxes &s) {
                           return any_of(enumerate(s), [&](auto entry) {
                             return entry.index() != f && is_contained(entry.value(), axis);
                           });
                         });
        if (elsewhere || !canExtend(rule, seen[t], f, axis, mesh))
          break;
        node.sharding.dims[d].push_back(axis);
        node.decisions.push_back({unsigned(d), axis, int(id), int(link.nodes[source]),
                                  unsigned(dimWith(tensorOf(rule, source), f))});
        // An op may have one node several times, under several factors.
        for (size_t other = 0; other < seen.size(); ++other)
          if (link.nodes[other] == link.nodes[t])
            seen[other] = factorAxesOf(rule, tensorOf(rule, other), node.sharding, mesh);
        changed = true;
      }
    }
  }
  return changed;
}

void Propagation::run() {
  auto upTo = [&](auto included, bool byCost) {
    for (bool changed = true; changed;) {
      changed = false;
      for (unsigned i = 0; i < links.size(); ++i)
        changed |= included(links[i]) && apply(i, byCost);
      for (unsigned i = links.size(); i-- > 0;)
        changed |= included(links[i]) && apply(i, byCost);
    }
  };
  auto all = [](const Link &) { return true; };
  auto passesOn = [](const Link &link) {
    return none_of(link.rule.factors, [](const Factor &f) { return f.reduced; });
  };
  upTo([](const Link &link) { return link.binding; }, false);
  upTo(passesOn, false);
  upTo(all, false);
  upTo(all, true);
}

std::string Propagation::explain(unsigned id) const {
  std::string text;
  raw_string_ostream os(text);
  const Node &node = nodes[id];
  os << node.name << " is " << node.sharding.str(mesh);
  for (const Decision &first : node.decisions) {
    os << "\n  dimension " << first.dim << " along " << mesh.axes[first.axis].name << ":";
    // Decisions were made one after another, each from one made before it.
    const Decision *decision = &first;
    while (decision->link >= 0) {
      const Node &from = nodes[decision->from];
      os << " from " << from.name << " dimension " << decision->fromDim << " through "
         << links[decision->link].name << ";";
      const Decision *next = nullptr;
      for (const Decision &candidate : from.decisions)
        if (candidate.axis == decision->axis && candidate.dim == decision->fromDim)
          next = &candidate;
      if (!next)
        break;
      decision = next;
    }
    os << " by seed" << (decision->reason.empty() ? "" : ": ") << decision->reason;
  }
  for (auto &[axis, reason] : node.roots)
    os << "\n  at the root of " << mesh.axes[axis].name << ": by seed"
       << (reason.empty() ? "" : ": ") << reason;
  // Ops meet a parameter as the slice that is passed to a layer.
  SmallVector<unsigned> same = {id};
  for (size_t i = 0; i < same.size(); ++i)
    for (const Link &link : links)
      if (link.binding && link.nodes.front() == same[i] && !is_contained(same, link.nodes.back()))
        same.push_back(link.nodes.back());
  for (const Link &link : links)
    if (any_of(link.nodes, [&](unsigned n) { return is_contained(same, n); }))
      for (const AxisConflict &conflict : link.conflicts) {
        auto name = [&](unsigned f) { return link.rule.factors[f].name; };
        os << "\n  conflict at " << link.name << ": " << mesh.axes[conflict.axis].name
           << " is wanted for";
        interleave(
            conflict.factors, os,
            [&](auto factor) {
              os << " " << name(factor.first) << " (" << factor.second << " bytes would move)";
            },
            ",");
        os << "; " << (conflict.winner < 0 ? "nothing" : name(conflict.winner)) << " got it "
           << (conflict.byPriority ? "by priority" : "for the least bytes");
      }
  return text;
}

} // namespace meshwright::dist
