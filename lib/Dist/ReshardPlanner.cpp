//===- ReshardPlanner.cpp - from one sharding to another --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/ReshardPlanner.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace meshwright::dist {

std::string ReshardStep::str(const Mesh &mesh) const {
  static constexpr StringLiteral names[] = {"slice", "reduce_scatter", "all_to_all", "all_reduce",
                                            "all_gather"};
  std::string text = names[kind].str();
  if (kind == AllToAll)
    text += " split " + std::to_string(dim) + " concat " + std::to_string(concat);
  else if (kind != AllReduce)
    text += " dim " + std::to_string(dim);
  return text + " " + mesh.str(axes);
}

namespace {
class Planner {
public:
  Planner(Sharding from, Sharding to) : now(std::move(from)), goal(std::move(to)) {}

  std::optional<SmallVector<ReshardStep>> plan() {
    if (!all_of(goal.partial, [&](unsigned a) { return now.isPartial(a); }))
      return std::nullopt;
    if (!now.partial.empty() && !goal.partial.empty() && now.max != goal.max)
      return std::nullopt;
    while (grow() || reduce() || gather())
      ;
    return steps;
  }

private:
  /// Whether dimension d has the first axes of its goal, perhaps all.
  bool onTheWay(unsigned d) const {
    const Axes &have = now.dims[d], &want = goal.dims[d];
    return have.size() <= want.size() && std::equal(have.begin(), have.end(), want.begin());
  }

  /// Adds a step, or its axes to the last one where both are one collective.
  void push(ReshardStep::Kind kind, unsigned axis, unsigned dim = 0, unsigned concat = 0) {
    if (!steps.empty() && steps.back().kind == kind && steps.back().dim == dim &&
        kind != ReshardStep::AllToAll) {
      // Cutting goes from the major axis to the minor, gathering back.
      Axes &axes = steps.back().axes;
      axes.insert(kind == ReshardStep::AllGather ? axes.begin() : axes.end(), axis);
      return;
    }
    steps.push_back({kind, {axis}, dim, concat});
  }

  /// Gives one dimension the next axis it wants.
  bool grow() {
    // All slices before the first step that sends: it then sends less.
    for (bool slicing : {true, false})
      for (unsigned d = 0; d < now.dims.size(); ++d) {
        if (!onTheWay(d) || now.dims[d] == goal.dims[d])
          continue;
        unsigned axis = goal.dims[d][now.dims[d].size()];
        if (slicing != !now.uses(axis))
          continue;
        if (slicing)
          push(ReshardStep::Slice, axis, d);
        else if (now.isPartial(axis)) {
          erase(now.partial, axis);
          push(ReshardStep::ReduceScatter, axis, d);
        } else {
          unsigned e = now.dimOf(axis);
          if (now.dims[e].back() != axis || onTheWay(e))
            continue;
          now.dims[e].pop_back();
          push(ReshardStep::AllToAll, axis, d, e);
        }
        now.dims[d].push_back(axis);
        return true;
      }
    return false;
  }

  /// Completes all partial axes that no dimension will take.
  bool reduce() {
    Axes done;
    for (unsigned axis : now.partial)
      if (!goal.uses(axis))
        done.push_back(axis);
    if (done.empty())
      return false;
    erase_if(now.partial, [&](unsigned axis) { return is_contained(done, axis); });
    steps.push_back({ReshardStep::AllReduce, done, 0, 0});
    return true;
  }

  /// Takes the last axis off a dimension that does not want it.
  bool gather() {
    for (unsigned d = 0; d < now.dims.size(); ++d)
      if (!onTheWay(d)) {
        push(ReshardStep::AllGather, now.dims[d].pop_back_val(), d);
        return true;
      }
    return false;
  }

  Sharding now, goal;
  SmallVector<ReshardStep> steps;
};
} // namespace

std::optional<SmallVector<ReshardStep>> planReshard(Sharding from, Sharding to, const Mesh &mesh) {
  for (Sharding *sharding : {&from, &to}) {
    auto trivial = [&](unsigned axis) { return mesh.axes[axis].size == 1; };
    for (Axes &axes : sharding->dims)
      erase_if(axes, trivial);
    erase_if(sharding->partial, trivial);
  }
  return Planner(std::move(from), std::move(to)).plan();
}

} // namespace meshwright::dist
