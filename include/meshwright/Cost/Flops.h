//===- Flops.h - floating-point operations of a program ---------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_COST_FLOPS_H
#define MESHWRIGHT_COST_FLOPS_H

#include "meshwright/Cost/TripCount.h"

namespace meshwright::cost {

/// Adds up the floating-point operations that ops say they are (`CostOpInterface`), those of loops
/// and repeats as often as they run and calls as what they call, in IR of every floor. A function
/// is counted once, so it must not change between questions.
class FlopCounter {
public:
  enum Counted {
    All,
    Products ///< those of products and attention alone, not of what becomes part of kernels
  };
  explicit FlopCounter(Counted counted = All) : counted(counted) {}

  /// With `again` only what has run before, marked with this value of `train.recomputed`.
  double of(mlir::Operation *op, mlir::Attribute again = {});
  double of(mlir::Block &block, mlir::Attribute again = {});

private:
  Counted counted;
  mlir::SymbolTableCollection symbols;
  /// By callee and `again`.
  llvm::DenseMap<std::pair<mlir::Operation *, mlir::Attribute>, double> callees;
};

} // namespace meshwright::cost

#endif // MESHWRIGHT_COST_FLOPS_H
