//===- RootFlow.h - what only one device of each group computes -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A value with a root axis is on the devices at coordinate 0 of that axis alone. An
// op with such an operand runs there, so its results are there too, and its other
// operands must be; loops, calls and returns hand the placement on. It ends at what
// a seed places: at variables, at `dist.constrain` with `boundary`, and where values
// leave the program.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_DIST_ROOTFLOW_H
#define MESHWRIGHT_LIB_DIST_ROOTFLOW_H

#include "PartialFlow.h"

namespace meshwright::dist {

class RootFlow {
public:
  /// Starts from `seeds` and tells each of `ops` its root axes.
  void run(const Structure &structure, llvm::MutableArrayRef<PlacedOp> ops,
           llvm::DenseMap<mlir::Value, AxisMask> seeds);

  /// The root axes of a value.
  AxisMask of(mlir::Value value) const { return roots.lookup(value); }

private:
  llvm::DenseMap<mlir::Value, AxisMask> roots;
};

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_ROOTFLOW_H
