//===- ReshardPath.cpp - from one sharding to another -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/Partition/ReshardPath.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <map>
#include <set>
#include <tuple>

using namespace llvm;

namespace meshwright::dist {

namespace {
/// The column `growth` of Collectives.def.
enum Growth { Same, Grows, Shrinks, Trades };
} // namespace

static Growth growthOf(ReshardStep::Kind kind) {
  switch (kind) {
#define MW_COLLECTIVE(Op, method, name, growth, ...)                                               \
  case ReshardStep::Op:                                                                            \
    return growth;
#include "meshwright/runtime/Collectives.def"
  case ReshardStep::Slice:
    return Shrinks;
  case ReshardStep::Forget:
    return Same;
  }
  llvm_unreachable("all kinds");
}

std::string ReshardStep::str(const Mesh &mesh) const {
  static constexpr StringLiteral names[] = {
#define MW_COLLECTIVE(Op, method, name, ...) #name,
#include "meshwright/runtime/Collectives.def"
      "slice", "forget"};
  std::string text = names[kind].str();
  Growth growth = growthOf(kind);
  if (growth == Trades)
    text += " split " + std::to_string(dim) + " concat " + std::to_string(concat);
  else if (growth != Same)
    text += " dim " + std::to_string(dim);
  else if (!source.empty())
    text += " from [" + join(map_range(source, [](int64_t p) { return std::to_string(p); }), ", ") +
            "]";
  return text + " " + mesh.str(axes);
}

double ReshardStep::sent(double elements, const Mesh &mesh) const {
  Growth growth = growthOf(kind);
  double n = double(mesh.size(axes));
  double c = growth == Shrinks || growth == Trades ? elements / n : elements;
  // Plans hold for any runtime and size: tensors are large, nobody keeps its own value in a
  // permutation, and sums go straight to the root, which adds what it has itself.
  constexpr bool direct = false;
  double fixed = 0, rootPart = c;
  switch (kind) {
#define MW_COLLECTIVE(Op, method, name, growth, sent, ...)                                         \
  case Op:                                                                                         \
    return (sent) / n;
#include "meshwright/runtime/Collectives.def"
  case Slice:
  case Forget:
    return 0;
  }
  llvm_unreachable("all kinds");
}

void ReshardStep::resize(MutableArrayRef<int64_t> shape, const Mesh &mesh) const {
  int64_t n = mesh.size(axes);
  Growth growth = growthOf(kind);
  if (growth == Grows)
    shape[dim] *= n;
  if (growth == Trades)
    shape[concat] *= n;
  if (growth == Shrinks || growth == Trades)
    shape[dim] /= n;
}

namespace {
/// What makes one path better than another, most important first: elements sent,
/// collectives, steps.
using Cost = std::tuple<double, unsigned, unsigned>;

class PathFinder {
public:
  PathFinder(const Sharding &from, const Sharding &to, ArrayRef<int64_t> shape, const Mesh &mesh)
      : start(from), goal(to), shape(shape), mesh(mesh) {
    for (unsigned axis = 0; axis < mesh.axes.size(); ++axis)
      if (from.uses(axis) || to.uses(axis))
        axes.push_back(axis);
    // What both ends have at the major end of a dimension stays there.
    for (auto [have, want] : zip(from.dims, to.dims)) {
      size_t n = 0;
      while (n < have.size() && n < want.size() && have[n] == want[n])
        ++n;
      kept.push_back(n);
      erase_if(axes, [&](unsigned axis) {
        return is_contained(ArrayRef<unsigned>(have).take_front(n), axis);
      });
    }
    erase_if(axes, [&](unsigned axis) {
      return to.isPartial(axis) || (from.isRoot(axis) && to.isRoot(axis));
    });
  }

  size_t movingAxes() const { return axes.size(); }

  /// The cheapest path on which no part has more than `limit` elements.
  std::optional<SmallVector<ReshardStep>> findPath(double limit) {
    this->limit = limit;
    reached.clear();
    queue.clear();
    reach(start, {0, 0, 0}, nullptr, {});
    while (!queue.empty()) {
      const Node *node = std::get<2>(*queue.begin());
      queue.erase(queue.begin());
      if (node->sharding == goal)
        return pathTo(node);
      expand(*node);
    }
    return std::nullopt;
  }

  double elements(const Sharding &s) const {
    double n = 1;
    for (int64_t size : localShape(shape, s, mesh))
      n *= double(size);
    return n;
  }

private:
  struct Node {
    Sharding sharding;
    Cost cost;
    const Node *before = nullptr;
    ReshardStep step;
    /// Breaks ties, so that paths do not depend on addresses.
    size_t number = 0;
  };
  /// An order of shardings, only to find them again.
  struct Less {
    bool operator()(const Sharding &a, const Sharding &b) const {
      auto less = [](ArrayRef<unsigned> x, ArrayRef<unsigned> y) {
        return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end());
      };
      for (auto [x, y] : zip(a.dims, b.dims)) {
        if (less(x, y))
          return true;
        if (less(y, x))
          return false;
      }
      if (a.partial != b.partial)
        return less(a.partial, b.partial);
      return less(a.root, b.root);
    }
  };

  void reach(Sharding sharding, Cost cost, const Node *before, ReshardStep step) {
    sharding.normalize();
    if (before && elements(sharding) > limit)
      return;
    auto [it, isNew] = reached.try_emplace(sharding);
    Node &node = it->second;
    if (!isNew && node.cost <= cost)
      return;
    if (!isNew)
      queue.erase({node.cost, node.number, &node});
    size_t number = isNew ? reached.size() : node.number;
    node = {std::move(sharding), cost, before, std::move(step), number};
    queue.insert({cost, number, &node});
  }

  void take(const Node &node, ReshardStep step, Sharding next) {
    auto [sent, collectives, steps] = node.cost;
    Cost cost{sent + step.sent(elements(node.sharding), mesh),
              collectives + (step.kind != ReshardStep::Slice && step.kind != ReshardStep::Forget),
              steps + 1};
    reach(std::move(next), cost, &node, std::move(step));
  }

  bool divides(const Sharding &s, unsigned d, ArrayRef<unsigned> more) const {
    return shape[d] % (mesh.size(s.dims[d]) * mesh.size(more)) == 0;
  }

  /// Calls f with every order of every non-empty subset of `from`.
  static void arrangements(ArrayRef<unsigned> from, Axes &chosen, function_ref<void()> f) {
    for (unsigned axis : from) {
      if (is_contained(chosen, axis))
        continue;
      chosen.push_back(axis);
      f();
      arrangements(from, chosen, f);
      chosen.pop_back();
    }
  }

  /// Calls f with every non-empty subset of `from`.
  static void subsets(ArrayRef<unsigned> from, function_ref<void(const Axes &)> f) {
    for (unsigned set = 1; set < 1u << from.size(); ++set) {
      Axes chosen;
      for (auto [i, axis] : enumerate(from))
        if (set >> i & 1)
          chosen.push_back(axis);
      f(chosen);
    }
  }

  bool allRootInGoal(ArrayRef<unsigned> list) const {
    return all_of(list, [&](unsigned axis) { return goal.isRoot(axis); });
  }

  void expand(const Node &node) {
    const Sharding &now = node.sharding;
    Axes free, partial, root, useless;
    for (unsigned axis : axes) {
      if (!now.uses(axis))
        (goal.isRoot(axis) ? useless : free).push_back(axis);
      if (now.isPartial(axis))
        partial.push_back(axis);
      if (now.isRoot(axis))
        root.push_back(axis);
    }
    auto without = [](Axes list, const Axes &gone) {
      erase_if(list, [&](unsigned axis) { return is_contained(gone, axis); });
      return list;
    };
    auto shard = [&](unsigned d, ArrayRef<unsigned> more) {
      Sharding next = now;
      next.dims[d].append(more.begin(), more.end());
      erase_if(next.partial, [&](unsigned axis) { return is_contained(more, axis); });
      erase_if(next.root, [&](unsigned axis) { return is_contained(more, axis); });
      return next;
    };
    for (unsigned d = 0; d < now.dims.size(); ++d) {
      Axes chosen;
      arrangements(free, chosen, [&] {
        if (divides(now, d, chosen))
          take(node, {ReshardStep::Slice, chosen, d}, shard(d, chosen));
      });
      arrangements(partial, chosen, [&] {
        if (divides(now, d, chosen))
          take(node, {ReshardStep::ReduceScatter, chosen, d}, shard(d, chosen));
      });
      arrangements(root, chosen, [&] {
        if (!allRootInGoal(chosen) && divides(now, d, chosen))
          take(node, {ReshardStep::Scatter, chosen, d}, shard(d, chosen));
      });
      for (size_t keep = kept[d]; keep < now.dims[d].size(); ++keep) {
        Axes moved(ArrayRef<unsigned>(now.dims[d]).drop_front(keep));
        Sharding rest = now;
        rest.dims[d].truncate(keep);
        take(node, {ReshardStep::AllGather, moved, d}, rest);
        if (allRootInGoal(moved)) {
          Sharding next = rest;
          next.root.append(moved);
          take(node, {ReshardStep::Gather, moved, d}, next);
        }
        for (unsigned e = 0; e < now.dims.size(); ++e) {
          if (e == d || !divides(now, e, moved))
            continue;
          Sharding next = rest;
          next.dims[e].append(moved);
          take(node, {ReshardStep::AllToAll, moved, e, d}, next);
        }
      }
    }
    subsets(partial, [&](const Axes &chosen) {
      Sharding next = now;
      next.partial = without(now.partial, chosen);
      take(node, {ReshardStep::AllReduce, chosen}, next);
      if (!allRootInGoal(chosen))
        return;
      next.root.append(chosen);
      take(node, {ReshardStep::Reduce, chosen}, next);
    });
    subsets(root, [&](const Axes &chosen) {
      Sharding next = now;
      next.root = without(now.root, chosen);
      take(node, {ReshardStep::Broadcast, chosen}, next);
    });
    if (!useless.empty()) {
      Sharding next = now;
      next.root.append(useless);
      take(node, {ReshardStep::Forget, useless}, next);
    }
    Sharding next = now;
    permute(node, next, 0);
  }

  /// Steps to all shardings that divide each dimension into as many parts as `node`
  /// does, but along axes that are on the way to the goal.
  void permute(const Node &node, Sharding &next, unsigned d) {
    const Sharding &now = node.sharding;
    if (d == now.dims.size()) {
      if (next != now)
        take(node, permutation(now, next), next);
      return;
    }
    const Axes mine = now.dims[d];
    auto taken = [&](unsigned axis) {
      for (unsigned e = 0; e < d; ++e)
        if (is_contained(next.dims[e], axis))
          return true;
      return now.isPartial(axis) || now.isRoot(axis);
    };
    if (none_of(mine, taken)) {
      next.dims[d] = mine;
      permute(node, next, d + 1);
    }
    Axes candidates, chosen;
    for (unsigned axis : axes)
      if (!taken(axis))
        candidates.push_back(axis);
    ArrayRef<unsigned> front = ArrayRef<unsigned>(mine).take_front(kept[d]);
    int64_t parts = mesh.size(ArrayRef<unsigned>(mine).drop_front(kept[d]));
    arrangements(candidates, chosen, [&] {
      if (mesh.size(chosen) != parts)
        return;
      Axes list(front);
      list.append(chosen);
      const Axes &want = goal.dims[d];
      if (list == mine || !std::equal(list.begin(), list.begin() + std::min(list.size(), want.size()),
                                      want.begin()))
        return;
      next.dims[d] = list;
      permute(node, next, d + 1);
    });
    next.dims[d] = mine;
  }

  /// Which device each one gets its part from. The devices that hold copies of a
  /// part are paired in order with those that need one.
  ReshardStep permutation(const Sharding &now, const Sharding &next) const {
    ReshardStep step{ReshardStep::Permute, {}};
    for (unsigned axis : axes)
      if (!now.isPartial(axis) && !now.isRoot(axis) && (now.uses(axis) || next.uses(axis)))
        step.axes.push_back(axis);
    SmallVector<int64_t> group = mesh.group(0, step.axes);
    auto part = [&](const Sharding &s, int64_t rank) {
      SmallVector<int64_t> index;
      for (const Axes &list : s.dims)
        index.push_back(mesh.position(rank, list));
      return index;
    };
    std::map<SmallVector<int64_t>, SmallVector<int64_t>> holders;
    for (auto [p, rank] : enumerate(group))
      holders[part(now, rank)].push_back(p);
    step.source.assign(group.size(), -1);
    // A device that has its part already keeps it.
    for (auto [p, rank] : enumerate(group)) {
      auto &have = holders[part(next, rank)];
      if (auto *it = find(have, int64_t(p)); it != have.end()) {
        step.source[p] = p;
        have.erase(it);
      }
    }
    for (auto [p, rank] : enumerate(group))
      if (step.source[p] < 0) {
        auto &have = holders[part(next, rank)];
        step.source[p] = have.front();
        have.erase(have.begin());
      }
    return step;
  }

  static SmallVector<ReshardStep> pathTo(const Node *node) {
    SmallVector<ReshardStep> steps;
    for (; node->before; node = node->before)
      if (node->step.kind != ReshardStep::Forget)
        steps.push_back(node->step);
    std::reverse(steps.begin(), steps.end());
    return steps;
  }

  Sharding start, goal;
  ArrayRef<int64_t> shape;
  const Mesh &mesh;
  /// Axes whose role differs between the ends.
  Axes axes;
  /// For each dimension how many of its major axes never move.
  SmallVector<size_t> kept;
  double limit = 0;
  std::map<Sharding, Node, Less> reached;
  std::set<std::tuple<Cost, size_t, const Node *>> queue;
};
} // namespace

Expected<SmallVector<ReshardStep>> findReshardPath(Sharding from, Sharding to,
                                                   ArrayRef<int64_t> shape, const Mesh &mesh) {
  for (Sharding *sharding : {&from, &to}) {
    auto trivial = [&](unsigned axis) { return mesh.axes[axis].size == 1; };
    for (Axes &axes : sharding->dims)
      erase_if(axes, trivial);
    erase_if(sharding->partial, trivial);
    erase_if(sharding->root, trivial);
    sharding->normalize();
  }
  if (!all_of(to.partial, [&](unsigned a) { return from.isPartial(a); }) ||
      (!from.partial.empty() && !to.partial.empty() && from.max != to.max))
    return createStringError("nothing becomes partial by moving");
  to.max = from.max;
  PathFinder finder(from, to, shape, mesh);
  if (finder.movingAxes() > 6)
    return createStringError("more than six mesh axes change their roles; reshard the value in "
                             "two steps");
  double larger = std::max(finder.elements(from), finder.elements(to));
  for (double limit : {larger, std::numeric_limits<double>::infinity()})
    if (auto steps = finder.findPath(limit))
      return *steps;
  llvm_unreachable("gathering everything and slicing is always a path");
}

} // namespace meshwright::dist
