//===- PartialFlow.h - how far partial values go before they are summed -----===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Once each op's factor axes are chosen, a sharded reduction makes partial results.
// A partial value may pass through ops that are linear in it, through loops and out
// of functions, and is completed once, as late as all of its uses allow: so gradients
// are summed over devices after the last microbatch. Constraints with `boundary` let
// sums along axes pass that they do not use: what ZeRO has scattered over `data` in each
// microbatch is summed over `replica` once.
//
// A value passes through an op only if completing the op's results instead moves no
// more bytes: the results are no larger, or an accumulator adds them over several
// iterations. All uses of the value must let it pass, because one complete copy serves
// all of them. A value whose uses would each complete it separately, such as one that
// a product reads and the backward keeps, is completed first. Zeros count as partial
// over any axes.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_DIST_PARTIALFLOW_H
#define MESHWRIGHT_LIB_DIST_PARTIALFLOW_H

#include "Dist/Propagation/FactorAxes.h"
#include "Dist/Propagation/ValueBinding.h"

namespace meshwright::dist {

/// An op with a factor table, the axes of its factors, and the axes over which it runs
/// on the root alone.
struct ShardedOp {
  mlir::Operation *op;
  ShardingRule rule;
  FactorAxes axes;
  AxisMask root = 0;

  /// The axes over which no operand can stay partial.
  AxisMask used() const { return maskOf(axes) | root; }
};

class PartialFlow {
public:
  /// `shardedOver`: the axes over which a value is sharded where it is defined, or on a root.
  PartialFlow(const Structure &structure, llvm::ArrayRef<ShardedOp> ops, const Mesh &mesh,
              llvm::function_ref<AxisMask(mlir::Value)> shardedOver);

  /// Axes over which the value is partial where it is defined.
  AxisMask defined(mlir::Value value) const { return state(value).partial; }
  /// Axes over which this use accepts a partial value.
  AxisMask taken(mlir::OpOperand &use) const { return takenBy.lookup(&use); }

private:
  struct State {
    /// The axes over which it can be partial, and those of them that all uses accept.
    AxisMask possible = 0, flows = 0;
    /// Axes that reductions bring to the value if nothing stops them; axes over which the
    /// value is partial in the end.
    AxisMask reachable = 0, partial = 0;
    bool zero = false;
    int64_t elements = 0; ///< of a device's part
  };
  State state(mlir::Value value) const { return states.lookup(value); }
  AxisMask flowing(mlir::OpOperand &use) const;
  AxisMask accepts(mlir::OpOperand &use) const;
  bool movesMoreApart(mlir::Value value) const;
  int64_t timesAccumulated(mlir::Value value);
  int64_t iterationsCarried(mlir::BlockArgument argument) const;
  bool mergePossible();
  bool spreadPartial();

  const Structure &structure;
  llvm::ArrayRef<ShardedOp> ops;
  const Mesh &mesh;
  AxisMask allAxes;
  llvm::DenseMap<mlir::Value, State> states;
  llvm::DenseMap<mlir::OpOperand *, AxisMask> takenBy;
  llvm::DenseMap<mlir::OpOperand *, const ValueBinding *> bindingOf;
  llvm::DenseMap<mlir::Operation *, const ShardedOp *> sharded;
  llvm::DenseMap<mlir::Value, mlir::Value> carriedTwin;
  /// The number of iterations whose sum contains the value; 1 without a sum.
  llvm::DenseMap<mlir::Value, int64_t> accumulated;
};

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_PARTIALFLOW_H
