//===- FactorAxes.h - shardings seen through a factor table -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// An op runs sharded when the factors of its table have mesh axes: each device along
// these axes computes its part of the factor's range, and operands and results are
// sharded accordingly. An axis serves one factor at most; whole factors have none.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_DIST_FACTORAXES_H
#define MESHWRIGHT_LIB_DIST_FACTORAXES_H

#include "Dist/Sharding.h"
#include "Train/ShardingRule.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace meshwright::dist {

/// For each factor of a rule its mesh axes, major first.
using FactorAxes = llvm::SmallVector<Axes>;

/// The factors of tensor `t` of an op: operands first, then results.
const TensorFactors &tensorOf(const ShardingRule &rule, size_t t);

/// The axes of factors that the sharding of one tensor implies. A dimension of several
/// factors gives axes to the major one until it is used up, then to the next.
/// `complete` (if given) becomes false if an axis fits no factor, because its dimension
/// has none or because it would belong to two.
FactorAxes factorAxesOf(const ShardingRule &rule, const TensorFactors &tensor,
                        const Sharding &sharding, const Mesh &mesh, bool *complete = nullptr);

/// Whether `axis` may be the next axis of factor `f`, given the axes of all factors: the
/// factor is not whole and divides evenly, and in every tensor with a dimension of several
/// factors each device still has one contiguous block.
bool canExtend(const ShardingRule &rule, const FactorAxes &axes, unsigned f, unsigned axis,
               const Mesh &mesh);

/// The sharding of a tensor that the factors' axes imply; nothing is partial.
Sharding shardingOf(const TensorFactors &tensor, const FactorAxes &axes);

/// All mesh axes in use, as a bit mask.
using AxisMask = uint32_t;
AxisMask maskOf(llvm::ArrayRef<unsigned> axes);
AxisMask maskOf(const FactorAxes &axes);
Axes axesOf(AxisMask mask);

/// Axes over which result `index` becomes partial, because they shard a factor that some
/// operand has and the result has not.
AxisMask partialFromReduction(const ShardingRule &rule, unsigned index, const FactorAxes &axes);

/// Tensors of one op (operands, then results), seen through its table.
struct FactorClaims {
  /// The axes that each tensor has or asks for, and the bytes of the whole tensor; a tensor
  /// without bytes does not count.
  llvm::SmallVector<FactorAxes> axes;
  llvm::SmallVector<int64_t> bytes;
  /// If tensors disagree, those of the highest priority decide.
  llvm::SmallVector<int> priorities;

  void add(const ShardingRule &rule, const Sharding &sharding, int64_t bytes, int priority,
           const Mesh &mesh);
};

/// An axis that tensors of one op ask for on different factors.
struct AxisConflict {
  unsigned axis;
  /// The factors, with the bytes a device would send if each got the axis.
  llvm::SmallVector<std::pair<unsigned, int64_t>> factors;
  /// The factor that got it, or -1; whether priority decided, or bytes.
  int winner = -1;
  bool byPriority = false;
};

/// Gives each axis to at most one factor; the lists of all other factors end before it. If
/// priority does not decide, the fewest bytes do, or, without `byCost`, no factor gets the
/// axis. `report` is called for each conflict.
void resolveConflicts(const ShardingRule &rule, FactorClaims &claims, const Mesh &mesh, bool byCost,
                      llvm::function_ref<void(const AxisConflict &)> report);

/// The axes of an op whose tensors have the axes in `claims`: conflicts are resolved, and each
/// factor gets the axes of the tensors with the highest priority, then with the most bytes.
FactorAxes chooseFactorAxes(const ShardingRule &rule, FactorClaims claims, const Mesh &mesh);

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_FACTORAXES_H
