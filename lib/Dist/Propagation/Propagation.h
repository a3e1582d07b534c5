//===- Propagation.h - shardings to a fixed point over factor tables --------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The side table of dist-propagate, without IR: nodes are values, links are factor
// tables between them. Axes spread along factors until nothing changes. After
// GSPMD (Xu et al. 2021) and Shardy.
//
// In order: calls and variables; links that only pass on; links with reductions;
// and at last conflicts, where the nodes of one link want an axis for different
// factors or factors along different axes. Priority decides those at any time: what
// the user seeded, then parameters and their gradients, which stay where they are,
// then all else. Among equals the least bytes to move do, once nothing else is left
// to do.
//
// Invariants: lists of axes only grow, so the fixed point is reached; a closed
// dimension keeps what its seed gave; no axis cuts a node twice.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_DIST_PROPAGATION_H
#define MESHWRIGHT_LIB_DIST_PROPAGATION_H

#include "Dist/Propagation/FactorAxes.h"

namespace meshwright::dist {

class Propagation {
public:
  /// Why a dimension of a node is cut along an axis.
  struct Decision {
    unsigned dim, axis;
    /// The link it came through and the node at its other side; -1 for a seed.
    int link = -1, from = -1;
    unsigned fromDim = 0;
    /// What a seed is for, if that is known.
    std::string reason = {};
  };

  /// Who wins where nodes disagree.
  enum Priority { Ordinary, Parameter, User };

  struct Node {
    std::string name;
    llvm::SmallVector<int64_t> shape;
    int64_t bytes = 0;
    int priority = Ordinary;
    /// Axes that propagation must not cut the node along.
    AxisMask replicated = 0;
    Sharding sharding;
    /// Which dimensions may be cut further.
    llvm::SmallVector<bool> open;
    llvm::SmallVector<Decision> decisions;
    /// Axes whose root alone has it, which only seeds say, and what for.
    llvm::SmallVector<std::pair<unsigned, std::string>> roots;
  };

  struct Link {
    std::string name;
    ShardingRule rule;
    /// Nodes of the operands, then of the results.
    llvm::SmallVector<unsigned> nodes;
    /// A value that is handed over unchanged.
    bool handOver = false;
    /// Axes its nodes want for different factors.
    llvm::SmallVector<AxisConflict> conflicts = {};
  };

  explicit Propagation(Mesh mesh) : mesh(std::move(mesh)) {}

  /// A new node of elements of `bits`, nothing cut, all dimensions open.
  unsigned addNode(std::string name, llvm::ArrayRef<int64_t> shape, unsigned bits = 32);
  /// Gives a node its seed; dimensions with `open` may grow, though not along
  /// `replicated`. `reasonOf` an axis says what it is there for.
  void seed(unsigned node, const Sharding &sharding, llvm::ArrayRef<bool> open,
            AxisMask replicated = 0, llvm::function_ref<std::string(unsigned)> reasonOf = {});
  /// Gives a node at least this priority.
  void raise(unsigned node, int priority);
  /// Lets propagation leave a dimension as it is.
  void close(unsigned node, unsigned dim);
  void addLink(std::string name, ShardingRule rule, llvm::ArrayRef<unsigned> nodes,
               bool handOver = false);

  /// To the fixed point.
  void run();

  const Node &operator[](unsigned node) const { return nodes[node]; }
  const Mesh &getMesh() const { return mesh; }

  /// For each cut of the node the chain of links back to the seed it came from, and
  /// the conflicts it was part of, one line each.
  std::string explain(unsigned node) const;

private:
  bool apply(unsigned link, bool byCost);
  /// The axes that a link's nodes agree on for a factor, and the one that has them.
  std::pair<Axes, size_t> agreed(const FactorClaims &claims, unsigned factor, bool byCost) const;

  Mesh mesh;
  llvm::SmallVector<Node, 0> nodes;
  llvm::SmallVector<Link, 0> links;
};

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_PROPAGATION_H
