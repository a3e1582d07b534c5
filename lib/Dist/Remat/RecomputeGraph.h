//===- RecomputeGraph.h - what to keep and what to compute again -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The choice that rematerialization makes, as plain data. A graph of operations
// and values; some values are needed later. Each value that is available then is
// free, or is kept at the price of its bytes, or its operation runs again at the
// operation's cost, which makes its operands needed in turn.
//
// The least of `cost + price x bytes` is a minimum cut (Chillee et al. 2022 and
// Jain et al. 2020 pose the same problem): values and operations are nodes; a value
// that must be there points to its operation with the price of keeping it, an
// operation to each operand without limit and to the sink with its cost.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_DIST_RECOMPUTEGRAPH_H
#define MESHWRIGHT_LIB_DIST_RECOMPUTEGRAPH_H

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <limits>
#include <vector>

namespace meshwright::dist {

struct RecomputeGraph {
  struct Value {
    int64_t bytes = 0;
    int op = -1; ///< whose result it is, or -1: it can only be kept
    bool free = false, needed = false;
  };
  struct Op {
    double cost = 0; ///< infinity: cannot run again
    llvm::SmallVector<unsigned> operands;
  };
  std::vector<Value> values;
  std::vector<Op> ops;
};

struct RecomputeChoice {
  llvm::BitVector kept, recomputed; ///< by value, by operation
  int64_t bytes = 0;            ///< of what is kept
  double cost = 0;              ///< of what runs again
};

/// The price at which memory is worth any computation.
inline constexpr double anyPrice = std::numeric_limits<double>::infinity();

/// The choice with the least cost + price x bytes, and of those the one that runs
/// least again. With `anyPrice` the fewest bytes, then the least cost.
RecomputeChoice cheapestChoice(const RecomputeGraph &graph, double price);

/// A choice and a price at which it is the cheapest.
struct PricedChoice {
  double price;
  RecomputeChoice choice;
};

/// All choices that are cheapest at some price above 0: the lower convex hull of cost
/// over bytes. Ascending in cost; the last is that of `anyPrice`.
std::vector<PricedChoice> efficientChoices(const RecomputeGraph &graph);

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_RECOMPUTEGRAPH_H
