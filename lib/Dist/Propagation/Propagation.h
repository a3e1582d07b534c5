//===- Propagation.h - shardings to a fixed point over factor tables --------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The side table of dist-propagate, without IR: nodes are values, links are factor
// tables between them. Axes spread along factors until nothing changes. After
// GSPMD (Xu et al. 2021) and Shardy.
//
// The order is: calls and variables; links that only pass axes on; links with
// reductions; and last conflicts, in which the nodes of one link ask for an axis on
// different factors, or for different axes on a factor. Priority decides conflicts at
// any time: nodes with a seed of the user come first, then parameters and their
// gradients, which stay where they are, then all others. Between equal priorities the
// fewest moved bytes decide, when nothing else is left to do.
//
// Invariants: lists of axes only grow, so the fixed point is reached; a closed
// dimension keeps the axes of its seed; no axis shards a node twice.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_DIST_PROPAGATION_H
#define MESHWRIGHT_LIB_DIST_PROPAGATION_H

#include "Dist/Propagation/FactorAxes.h"

namespace meshwright::dist {

class Propagation {
public:
  /// Why a dimension of a node is sharded along an axis.
  struct Decision {
    unsigned dim, axis;
    /// The link that the axis came through and the node at its other end; -1 for a seed.
    int link = -1, from = -1;
    unsigned fromDim = 0;
    /// The reason of the seed, if it has one.
    std::string reason = {};
  };

  /// The priority of a node in conflicts.
  enum Priority { Ordinary, Parameter, User };

  struct Node {
    std::string name;
    llvm::SmallVector<int64_t> shape;
    int64_t bytes = 0;
    int priority = Ordinary;
    /// Axes along which propagation must not shard the node.
    AxisMask replicated = 0;
    Sharding sharding;
    /// The dimensions that may get more axes.
    llvm::SmallVector<bool> open;
    llvm::SmallVector<Decision> decisions;
    /// Axes whose root alone holds the node, which only seeds set, and their reason.
    llvm::SmallVector<std::pair<unsigned, std::string>> roots;
  };

  struct Link {
    std::string name;
    ShardingRule rule;
    /// Nodes of the operands, then of the results.
    llvm::SmallVector<unsigned> nodes;
    /// Whether the link is a value binding.
    bool binding = false;
    /// Axes that its nodes ask for on different factors.
    llvm::SmallVector<AxisConflict> conflicts = {};
  };

  explicit Propagation(Mesh mesh) : mesh(std::move(mesh)) {}

  /// A new node of elements of `bits`, replicated, with all dimensions open.
  unsigned addNode(std::string name, llvm::ArrayRef<int64_t> shape, unsigned bits = 32);
  /// Gives a node its seed; dimensions with `open` may get more axes, except those in
  /// `replicated`. `reasonOf` returns the reason of an axis.
  void seed(unsigned node, const Sharding &sharding, llvm::ArrayRef<bool> open,
            AxisMask replicated = 0, llvm::function_ref<std::string(unsigned)> reasonOf = {});
  /// Gives a node at least this priority.
  void raise(unsigned node, int priority);
  /// Stops propagation from changing a dimension.
  void close(unsigned node, unsigned dim);
  void addLink(std::string name, ShardingRule rule, llvm::ArrayRef<unsigned> nodes,
               bool binding = false);

  /// Propagates to the fixed point.
  void run();

  const Node &operator[](unsigned node) const { return nodes[node]; }
  const Mesh &getMesh() const { return mesh; }

  /// For each axis of the node the chain of links back to its seed, and the conflicts on
  /// the way, one line each.
  std::string explain(unsigned node) const;

private:
  bool apply(unsigned link, bool byCost);
  /// The axes that a link's nodes agree on for a factor, and a node that has them.
  std::pair<Axes, size_t> agreed(const FactorClaims &claims, unsigned factor, bool byCost) const;

  Mesh mesh;
  llvm::SmallVector<Node, 0> nodes;
  llvm::SmallVector<Link, 0> links;
};

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_PROPAGATION_H
