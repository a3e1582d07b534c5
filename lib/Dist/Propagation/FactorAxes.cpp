//===- FactorAxes.cpp - shardings seen through a factor table ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/Propagation/FactorAxes.h"

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
  // An axis of one device shards nothing, and could be on any factor.
  if (rule.factors[f].whole || mesh.axes[axis].size == 1)
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
    Axes &sharded = sharding.dims.emplace_back();
    for (unsigned f : dim)
      append_range(sharded, axes[f]);
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

const TensorFactors &tensorOf(const ShardingRule &rule, size_t t) {
  return t < rule.operands.size() ? rule.operands[t] : rule.results[t - rule.operands.size()];
}

void FactorClaims::add(const ShardingRule &rule, const Sharding &sharding, int64_t size,
                       int priority, const Mesh &mesh) {
  axes.push_back(factorAxesOf(rule, tensorOf(rule, axes.size()), sharding, mesh));
  bytes.push_back(size);
  priorities.push_back(priority);
}

/// Bytes a device sends if factor f gets the axis: tensors that have it elsewhere
/// move, results without the factor become partial and are summed.
static int64_t costOf(const ShardingRule &rule, const FactorClaims &claims, unsigned f,
                      unsigned axis, const Mesh &mesh) {
  int64_t n = mesh.axes[axis].size, cost = 0;
  for (auto [t, axes] : enumerate(claims.axes)) {
    if (claims.bytes[t] == 0)
      continue;
    int64_t local = claims.bytes[t];
    bool elsewhere = false;
    for (auto [g, list] : enumerate(axes)) {
      local /= mesh.size(list);
      elsewhere |= g != f && is_contained(list, axis);
    }
    bool has = holds(tensorOf(rule, t), f), isResult = t >= rule.operands.size();
    if (elsewhere)
      cost += has ? local * (n - 1) / n : local * (n - 1);
    else if (isResult && !has)
      cost += 2 * local * (n - 1) / n;
  }
  return cost;
}

/// The conflict over one axis, decided if it can be.
static AxisConflict conflictOver(const ShardingRule &rule, const FactorClaims &claims,
                                 unsigned axis, const Mesh &mesh, bool byCost) {
  AxisConflict conflict{axis, {}, -1, false};
  int highest = 0;
  llvm::SmallVector<unsigned> preferred;
  for (unsigned f = 0; f < rule.factors.size(); ++f) {
    int priority = -1;
    for (auto [t, axes] : enumerate(claims.axes))
      if (claims.bytes[t] && is_contained(axes[f], axis))
        priority = std::max(priority, claims.priorities[t]);
    if (priority < 0 || rule.factors[f].whole)
      continue;
    conflict.factors.push_back({f, costOf(rule, claims, f, axis, mesh)});
    if (preferred.empty() || priority > highest) {
      highest = priority;
      preferred.clear();
    }
    if (priority == highest)
      preferred.push_back(f);
  }
  if (preferred.size() == 1) {
    conflict.winner = preferred.front();
    conflict.byPriority = true;
  } else if (byCost) {
    int64_t least = 0;
    for (auto [f, cost] : conflict.factors)
      if (is_contained(preferred, f) && (conflict.winner < 0 || cost < least)) {
        conflict.winner = f;
        least = cost;
      }
  }
  return conflict;
}

void resolveConflicts(const ShardingRule &rule, FactorClaims &claims, const Mesh &mesh, bool byCost,
                      function_ref<void(const AxisConflict &)> report) {
  for (unsigned axis = 0; axis < mesh.axes.size(); ++axis) {
    AxisConflict conflict = conflictOver(rule, claims, axis, mesh, byCost);
    if (conflict.factors.size() < 2)
      continue;
    report(conflict);
    for (FactorAxes &axes : claims.axes)
      for (auto [f, list] : enumerate(axes))
        if (int(f) != conflict.winner)
          // What comes after an axis is a part of its parts.
          if (auto at = find(list, axis); at != list.end())
            list.erase(at, list.end());
  }
}

FactorAxes chooseFactorAxes(const ShardingRule &rule, FactorClaims claims, const Mesh &mesh) {
  resolveConflicts(rule, claims, mesh, /*byCost=*/true, [](const AxisConflict &) {});
  // Candidates: one list of axes for one factor, with the bytes that have it.
  struct Candidate {
    unsigned factor;
    Axes axes;
    int64_t weight;
    int priority;
  };
  SmallVector<Candidate> candidates;
  for (auto [axes, bytes, priority] : zip(claims.axes, claims.bytes, claims.priorities))
    for (unsigned f = 0; bytes && f < axes.size(); ++f) {
      if (axes[f].empty() || rule.factors[f].whole)
        continue;
      auto same = find_if(candidates,
                          [&](const Candidate &c) { return c.factor == f && c.axes == axes[f]; });
      if (same == candidates.end()) {
        candidates.push_back({f, axes[f], bytes, priority});
      } else {
        same->weight += bytes;
        same->priority = std::max(same->priority, priority);
      }
    }
  // Of equal ones the longer list, which does more in parallel.
  auto rank = [](const Candidate &c) {
    return std::make_tuple(-c.priority, -c.weight, -int64_t(c.axes.size()), c.factor, c.axes);
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
