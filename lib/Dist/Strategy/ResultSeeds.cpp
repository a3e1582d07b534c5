//===- ResultSeeds.cpp - seeds of ops' results -------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// An op's `dist.seed` has a seed for each result, and so has its `dist.reason` where these differ:
// what the user seeded has none, also beside what a strategy seeded.
//
//===----------------------------------------------------------------------===//
#include "Dist/Propagation/ValueBinding.h"
#include "Seeds.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

/// What an attribute says of each result, a unit where it says nothing. One that is no array says
/// it of all results. A list of another length is left to propagation, which refuses it.
static SmallVector<Attribute> perResult(Operation *op, StringRef name) {
  Attribute attr = op->getAttr(name), unit = UnitAttr::get(op->getContext());
  if (auto list = dyn_cast_or_null<ArrayAttr>(attr))
    return llvm::to_vector(list);
  return SmallVector<Attribute>(op->getNumResults(), attr ? attr : unit);
}

ShardingAttr dist::seedOf(OpResult result) {
  SmallVector<Attribute> seeds = perResult(result.getOwner(), DistDialect::seedAttr);
  unsigned i = result.getResultNumber();
  return i < seeds.size() ? dyn_cast<ShardingAttr>(seeds[i]) : ShardingAttr();
}

ShardingAttr dist::userSeedOf(OpResult result) {
  SmallVector<Attribute> reasons = perResult(result.getOwner(), DistDialect::reasonAttr);
  unsigned i = result.getResultNumber();
  return i < reasons.size() && isa<UnitAttr>(reasons[i]) ? seedOf(result) : ShardingAttr();
}

void dist::seedResult(OpResult result, ShardingAttr sharding, StringRef reason) {
  Operation *op = result.getOwner();
  Builder b(op->getContext());
  SmallVector<Attribute> seeds = perResult(op, DistDialect::seedAttr),
                         reasons = perResult(op, DistDialect::reasonAttr);
  bool isOne = isa_and_nonnull<ShardingAttr>(op->getAttr(DistDialect::seedAttr));
  if (seeds.size() != op->getNumResults() || reasons.size() != op->getNumResults() ||
      (isOne && op->getNumResults() > 1))
    return;
  unsigned i = result.getResultNumber();
  seeds[i] = sharding;
  reasons[i] = reason.empty() ? Attribute(b.getUnitAttr()) : b.getStringAttr(reason);
  op->setAttr(DistDialect::seedAttr, b.getArrayAttr(seeds));
  // One reason for all is written once.
  SmallVector<Attribute> used;
  for (auto [seed, why] : llvm::zip(seeds, reasons)) {
    if (isa<ShardingAttr>(seed))
      used.push_back(why);
    else
      why = b.getUnitAttr();
  }
  if (!llvm::all_equal(used))
    op->setAttr(DistDialect::reasonAttr, b.getArrayAttr(reasons));
  else if (isa<UnitAttr>(used.front()))
    op->removeAttr(DistDialect::reasonAttr);
  else
    op->setAttr(DistDialect::reasonAttr, used.front());
}

LogicalResult dist::seedOrAgree(OpResult result, ShardingAttr sharding, const Mesh &mesh,
                                StringRef reason, StringRef cause) {
  ShardingAttr before = userSeedOf(result);
  if (!before) {
    seedResult(result, sharding, reason);
    return success();
  }
  // What does not fit is reported by propagation.
  auto silent = [] { return InFlightDiagnostic(); };
  if (failed(before.verifyAxes(mesh, silent)))
    return success();
  bool differs = false;
  for (auto [its, wanted] : llvm::zip(before.on(mesh).dims, sharding.on(mesh).dims))
    differs |= !wanted.empty() && its != wanted;
  if (!differs)
    return success();
  return result.getOwner()->emitError("seed ")
         << before << " of " << describe(result) << " contradicts " << cause
         << ", which needs " << sharding << "; seed that, or leave the seed out";
}
