//===- Propagation.cpp - shardings to a fixed point over factor tables ------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/Propagation.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace meshwright::dist {

unsigned Propagation::addNode(std::string name, ArrayRef<int64_t> shape) {
  Node &node = nodes.emplace_back();
  node.name = std::move(name);
  node.shape.assign(shape.begin(), shape.end());
  node.sharding = Sharding::replicated(shape.size());
  node.open.assign(shape.size(), true);
  return nodes.size() - 1;
}

void Propagation::seed(unsigned id, const Sharding &sharding, ArrayRef<bool> open) {
  Node &node = nodes[id];
  node.sharding = sharding.complete();
  node.open.assign(open.begin(), open.end());
  node.decisions.clear();
  for (auto [d, axes] : enumerate(sharding.dims))
    for (unsigned axis : axes)
      node.decisions.push_back({unsigned(d), axis, -1, -1, 0});
}

void Propagation::close(unsigned node, unsigned dim) { nodes[node].open[dim] = false; }

void Propagation::addLink(std::string name, ShardingRule rule, ArrayRef<unsigned> ends) {
  links.push_back({std::move(name), std::move(rule), SmallVector<unsigned>(ends)});
}

static const TensorFactors &tensorOf(const ShardingRule &rule, size_t t) {
  return t < rule.operands.size() ? rule.operands[t] : rule.results[t - rule.operands.size()];
}

/// The dimension of `tensor` that holds `factor`, or -1.
static int dimWith(const TensorFactors &tensor, unsigned factor) {
  for (auto [d, dim] : enumerate(tensor.dims))
    if (is_contained(dim, factor))
      return d;
  return -1;
}

bool Propagation::apply(unsigned id) {
  const Link &link = links[id];
  const ShardingRule &rule = link.rule;
  SmallVector<FactorAxes> seen;
  for (size_t t = 0; t < link.nodes.size(); ++t)
    seen.push_back(factorAxesOf(rule, tensorOf(rule, t), nodes[link.nodes[t]].sharding, mesh));

  bool changed = false;
  for (unsigned f = 0; f < rule.factors.size(); ++f) {
    if (rule.factors[f].whole)
      continue;
    // The longest list, if every other one is its beginning: where tensors
    // disagree nothing spreads, and the op's use will reshard.
    size_t longest = 0;
    for (size_t t = 1; t < seen.size(); ++t)
      if (seen[t][f].size() > seen[longest][f].size())
        longest = t;
    const Axes axes = seen[longest][f];
    if (axes.empty() || !all_of(seen, [&](const FactorAxes &s) {
          return std::equal(s[f].begin(), s[f].end(), axes.begin());
        }))
      continue;
    for (size_t t = 0; t < seen.size(); ++t) {
      int d = dimWith(tensorOf(rule, t), f);
      Node &node = nodes[link.nodes[t]];
      if (d < 0 || !node.open[d])
        continue;
      while (seen[t][f].size() < axes.size()) {
        unsigned axis = axes[seen[t][f].size()];
        bool elsewhere = node.sharding.uses(axis) || any_of(seen, [&](const FactorAxes &s) {
                           return any_of(enumerate(s), [&](auto entry) {
                             return entry.index() != f && is_contained(entry.value(), axis);
                           });
                         });
        if (elsewhere || !canExtend(rule, seen[t], f, axis, mesh))
          break;
        node.sharding.dims[d].push_back(axis);
        // An op may have one node several times, under several factors.
        for (size_t other = 0; other < seen.size(); ++other)
          if (link.nodes[other] == link.nodes[t])
            seen[other] = factorAxesOf(rule, tensorOf(rule, other), node.sharding, mesh);
        node.decisions.push_back({unsigned(d), axis, int(id), int(link.nodes[longest]),
                                  unsigned(dimWith(tensorOf(rule, longest), f))});
        changed = true;
      }
    }
  }
  return changed;
}

void Propagation::run() {
  SmallVector<unsigned> passThrough, all;
  for (unsigned i = 0; i < links.size(); ++i) {
    all.push_back(i);
    if (none_of(links[i].rule.factors, [](const Factor &f) { return f.reduced; }))
      passThrough.push_back(i);
  }
  for (const auto &level : {passThrough, all})
    for (bool changed = true; changed;) {
      changed = false;
      for (unsigned link : level)
        changed |= apply(link);
      for (unsigned link : reverse(level))
        changed |= apply(link);
    }
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
    os << " by seed";
  }
  return text;
}

} // namespace meshwright::dist
