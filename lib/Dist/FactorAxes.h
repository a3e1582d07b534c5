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

/// How an op runs that finds its tensors (operands, then results) sharded like
/// `wanted`: for each factor the axes that most bytes of tensors already have.
/// `weights` are bytes; a tensor with weight 0 has no say.
FactorAxes chooseFactorAxes(const ShardingRule &rule, llvm::ArrayRef<const Sharding *> wanted,
                            llvm::ArrayRef<int64_t> weights, const Mesh &mesh);

} // namespace meshwright::dist

#endif // MESHWRIGHT_LIB_DIST_FACTORAXES_H
