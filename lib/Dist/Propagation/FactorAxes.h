//===- FactorAxes.h - shardings seen through a factor table -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// An op runs sharded by giving mesh axes to the factors of its table: each device
// along those axes does its part of the factor's range. Operands and results
// follow. An axis serves one factor at most, whole factors get none.
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

/// The factors' axes that one tensor's sharding means. A dimension of several
/// factors gives axes to the major one until it is used up, then to the next.
/// `complete` (if given) says whether that worked for all axes: it does not for
/// an axis on a dimension without factors or one that straddles two.
FactorAxes factorAxesOf(const ShardingRule &rule, const TensorFactors &tensor,
                        const Sharding &sharding, const Mesh &mesh, bool *complete = nullptr);

/// Whether `axis` may come next on factor `f` given what all factors have: the
/// factor is not whole, divides evenly, and in every tensor where a dimension is
/// made of several factors each device still has one contiguous block.
bool canExtend(const ShardingRule &rule, const FactorAxes &axes, unsigned f, unsigned axis,
               const Mesh &mesh);

/// The cuts of a tensor that the factors' axes mean; nothing partial.
Sharding shardingOf(const TensorFactors &tensor, const FactorAxes &axes);

/// All mesh axes in use, as a bit mask.
using AxisMask = uint32_t;
AxisMask maskOf(llvm::ArrayRef<unsigned> axes);
AxisMask maskOf(const FactorAxes &axes);
Axes axesOf(AxisMask mask);

/// Axes over which result `index` becomes partial because a factor that some
/// operand has and it has not is cut along them.
AxisMask partialFromReduction(const ShardingRule &rule, unsigned index, const FactorAxes &axes);

/// Tensors of one op (operands, then results), seen through its table.
struct FactorClaims {
  /// What each tensor has or wants, and the bytes of the whole of it; one without
  /// bytes has no say.
  llvm::SmallVector<FactorAxes> axes;
  llvm::SmallVector<int64_t> bytes;
  /// Where tensors disagree those of the highest priority decide.
  llvm::SmallVector<int> priorities;

  void add(const ShardingRule &rule, const Sharding &sharding, int64_t bytes, int priority,
           const Mesh &mesh);
};

/// An axis that tensors of one op want for different factors.
struct AxisConflict {
  unsigned axis;
  /// The factors, with the bytes a device would send if each got the axis.
  llvm::SmallVector<std::pair<unsigned, int64_t>> factors;
  /// The factor that got it, or -1; whether priority decided, or bytes.
  int winner = -1;
  bool byPriority = false;
};

/// Gives each axis to at most one factor: the losers' lists end before it. Where
/// priority does not decide the least bytes do, or, without `byCost`, nobody gets
/// the axis. `report` is told of each conflict.
void resolveConflicts(const ShardingRule &rule, FactorClaims &claims, const Mesh &mesh, bool byCost,
                      llvm::function_ref<void(const AxisConflict &)> report);

/// How an op runs that finds its tensors like `claims`: conflicts resolved, for each
/// factor the axes that the highest priority, then most bytes of tensors have.
FactorAxes chooseFactorAxes(const ShardingRule &rule, FactorClaims claims, const Mesh &mesh);

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_FACTORAXES_H
