//===- RootFlow.h - what only one device of each group computes -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Only the devices at coordinate 0 of a root axis hold a value with that axis. An op
// with such an operand runs on them: its results are there too, and its other operands
// are sent there. Loops, calls and returns pass the root axes on. Values with seeds of
// their own end them: variables, `dist.constrain` with `boundary`, and results of the
// program.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_DIST_ROOTFLOW_H
#define MESHWRIGHT_LIB_DIST_ROOTFLOW_H

#include "PartialFlow.h"

namespace meshwright::dist {

class RootFlow {
public:
  /// Starts from `seeds` and tells each of `ops` its root axes.
  void run(const Structure &structure, llvm::MutableArrayRef<ShardedOp> ops,
           llvm::DenseMap<mlir::Value, AxisMask> seeds);

  /// The root axes of a value.
  AxisMask of(mlir::Value value) const { return roots.lookup(value); }

private:
  llvm::DenseMap<mlir::Value, AxisMask> roots;
};

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_ROOTFLOW_H
