//===- FactorAxes.cpp - shardings seen through a factor table ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/FactorAxes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"

#include <tuple>

using namespace llvm;

namespace meshwright::dist {

FactorAxes factorAxesOf(const ShardingRule &rule, const TensorFactors &tensor,
                        const Sharding &sharding, const Mesh &mesh, bool *complete) {
  FactorAxes result(rule.factors.size());
  if (complete)
    *complete = true;
  for (auto [factors, axes] : zip(tensor.dims, sharding.dims)) {
    size_t next = 0;
    int64_t left = factors.empty() ? 1 : rule.factors[factors[0]].size;
    for (unsigned axis : axes) {
      while (left == 1 && next + 1 < factors.size())
        left = rule.factors[factors[++next]].size;
      // The only factor of a dimension takes every axis, even one that does not
      // divide: whether uneven parts are possible is not decided here.
      bool only = factors.size() == 1;
      int64_t n = mesh.axes[axis].size;
      if (factors.empty() || (!only && left % n)) {
        if (complete)
          *complete = false;
        break;
      }
      result[factors[next]].push_back(axis);
      if (!only)
        left /= n;
    }
  }
  return result;
}

bool canExtend(const ShardingRule &rule, const FactorAxes &axes, unsigned f, unsigned axis,
               const Mesh &mesh) {
  if (rule.factors[f].whole)
    return false;
  int64_t parts = mesh.size(axes[f]) * mesh.axes[axis].size;
  if (rule.factors[f].size % parts)
    return false;
  auto fits = [&](const TensorFactors &tensor) {
    for (const auto &dim : tensor.dims) {
      if (dim.size() < 2 || !is_contained(dim, f))
        continue;
      bool before = true;
      for (unsigned other : dim) {
        if (other == f)
          before = false;
        else if (before && mesh.size(axes[other]) != rule.factors[other].size)
          return false;
        else if (!before && !axes[other].empty() && parts != rule.factors[f].size)
          return false;
      }
    }
    return true;
  };
  return all_of(rule.operands, fits) && all_of(rule.results, fits);
}

Sharding shardingOf(const TensorFactors &tensor, const FactorAxes &axes) {
  Sharding sharding;
  for (const auto &dim : tensor.dims) {
    Axes &cut = sharding.dims.emplace_back();
    for (unsigned f : dim)
      append_range(cut, axes[f]);
  }
  return sharding;
}

AxisMask maskOf(ArrayRef<unsigned> axes) {
  AxisMask mask = 0;
  for (unsigned axis : axes)
    mask |= AxisMask(1) << axis;
  return mask;
}

AxisMask maskOf(const FactorAxes &axes) {
  AxisMask mask = 0;
  for (const Axes &list : axes)
    mask |= maskOf(list);
  return mask;
}

Axes axesOf(AxisMask mask) {
  Axes axes;
  for (; mask; mask &= mask - 1)
    axes.push_back(countr_zero(mask));
  return axes;
}

static bool holds(const TensorFactors &tensor, unsigned f) {
  return any_of(tensor.dims, [&](const auto &dim) { return is_contained(dim, f); });
}

AxisMask partialFromReduction(const ShardingRule &rule, unsigned index, const FactorAxes &axes) {
  AxisMask mask = 0;
  for (unsigned f = 0; f < rule.factors.size(); ++f)
    if (!axes[f].empty() && !holds(rule.results[index], f) &&
        any_of(rule.operands, [&](const TensorFactors &t) { return holds(t, f); }))
      mask |= maskOf(axes[f]);
  return mask;
}

FactorAxes chooseFactorAxes(const ShardingRule &rule, ArrayRef<const Sharding *> wanted,
                            ArrayRef<int64_t> weights, const Mesh &mesh) {
  // Candidates: one list of axes for one factor, with the bytes that have it.
  struct Candidate {
    unsigned factor;
    Axes axes;
    int64_t weight;
  };
  SmallVector<Candidate> candidates;
  for (size_t t = 0; t < wanted.size(); ++t) {
    if (weights[t] == 0)
      continue;
    const TensorFactors &tensor =
        t < rule.operands.size() ? rule.operands[t] : rule.results[t - rule.operands.size()];
    FactorAxes axes = factorAxesOf(rule, tensor, *wanted[t], mesh);
    for (unsigned f = 0; f < axes.size(); ++f) {
      if (axes[f].empty() || rule.factors[f].whole)
        continue;
      auto same = find_if(candidates,
                          [&](const Candidate &c) { return c.factor == f && c.axes == axes[f]; });
      if (same == candidates.end())
        candidates.push_back({f, axes[f], weights[t]});
      else
        same->weight += weights[t];
    }
  }
  // Heaviest first; of equal ones the longer list, which does more in parallel.
  auto rank = [](const Candidate &c) {
    return std::make_tuple(-c.weight, -int64_t(c.axes.size()), c.factor, c.axes);
  };
  llvm::sort(candidates, [&](const Candidate &a, const Candidate &b) { return rank(a) < rank(b); });
  FactorAxes chosen(rule.factors.size());
  AxisMask used = 0;
  // Minor factors of a composed dimension can only follow the major ones, so go
  // round until nothing is added.
  for (bool changed = true; changed;) {
    changed = false;
    for (const Candidate &c : candidates) {
      Axes &have = chosen[c.factor];
      if (have.size() >= c.axes.size() || !std::equal(have.begin(), have.end(), c.axes.begin()))
        continue;
      unsigned axis = c.axes[have.size()];
      if (used >> axis & 1 || !canExtend(rule, chosen, c.factor, axis, mesh))
        continue;
      have.push_back(axis);
      used |= AxisMask(1) << axis;
      changed = true;
    }
  }
  return chosen;
}

} // namespace meshwright::dist
