//===- Propagation.h - shardings to a fixed point over factor tables --------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The side table of dist-propagate, without IR: nodes are values, links are factor
// tables between them. Axes spread along factors until nothing changes. After
// GSPMD (Xu et al. 2021) and Shardy.
//
// Invariants: lists of axes only grow, so the fixed point is reached; a closed
// dimension keeps what its seed gave; no axis cuts a node twice.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_DIST_PROPAGATION_H
#define MESHWRIGHT_LIB_DIST_PROPAGATION_H

#include "Dist/FactorAxes.h"

namespace meshwright::dist {

class Propagation {
public:
  /// Why a dimension of a node is cut along an axis.
  struct Decision {
    unsigned dim, axis;
    /// The link it came through and the node at its other side; -1 for a seed.
    int link = -1, from = -1;
    unsigned fromDim = 0;
  };

  struct Node {
    std::string name;
    llvm::SmallVector<int64_t> shape;
    Sharding sharding;
    /// Which dimensions may be cut further.
    llvm::SmallVector<bool> open;
    llvm::SmallVector<Decision> decisions;
  };

  struct Link {
    std::string name;
    ShardingRule rule;
    /// Nodes of the operands, then of the results.
    llvm::SmallVector<unsigned> nodes;
  };

  explicit Propagation(Mesh mesh) : mesh(std::move(mesh)) {}

  /// A new node, nothing cut, all dimensions open.
  unsigned addNode(std::string name, llvm::ArrayRef<int64_t> shape);
  /// Gives a node its seed; dimensions with `open` may grow.
  void seed(unsigned node, const Sharding &sharding, llvm::ArrayRef<bool> open);
  /// Lets propagation leave a dimension as it is.
  void close(unsigned node, unsigned dim);
  void addLink(std::string name, ShardingRule rule, llvm::ArrayRef<unsigned> nodes);

  /// To the fixed point: links without reduction first, since along them a cut
  /// costs nothing, then all.
  void run();

  const Node &operator[](unsigned node) const { return nodes[node]; }
  const Mesh &getMesh() const { return mesh; }

  /// For each cut of the node the chain of links back to the seed it came from,
  /// one line each.
  std::string explain(unsigned node) const;

private:
  bool apply(unsigned link);

  Mesh mesh;
  llvm::SmallVector<Node, 0> nodes;
  llvm::SmallVector<Link, 0> links;
};

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_PROPAGATION_H
