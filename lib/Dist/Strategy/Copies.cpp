//===- Copies.cpp - why tensor ranks hold copies of a parameter -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Which indices tensor parallelism can shard is known only where they are chosen; the
// plan that users read tells them what it left whole.
//
//===----------------------------------------------------------------------===//
#include "Seeds.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

/// Why one index of a parameter is not divided further.
static std::string reasonOf(unsigned id, const IndexClasses &classes, const TensorClasses &chosen) {
  if (chosen.residual.contains(id))
    return "the residual stream's";
  const IndexClass &entry = classes[id];
  if (entry.isRank())
    return "an adapter's rank";
  if (entry.inIntegerInputs)
    return "an index of the inputs";
  for (auto [op, factor] : entry.neededWhole)
    if (!canRunSharded(op, factor))
      return "needed whole by " + op->getName().getStringRef().str();
  return "divided into " + std::to_string(entry.size) + " parts at most";
}

void Seeder::noteCopies(const TensorClasses &chosen) {
  for (auto variable : module.getOps<train::VariableOp>()) {
    auto seeded = variable->getAttrOfType<ShardingAttr>(DistDialect::seedAttr);
    if (!variable.isParameter() || !seeded)
      continue;
    Sharding sharding = seeded.on(mesh);
    bool copied = llvm::any_of(mesh.named("tensor"), [&](unsigned axis) {
      return mesh.axes[axis].size > 1 && !sharding.uses(axis);
    });
    if (!copied)
      continue;
    std::string reason;
    if (!variable->hasAttr(DistDialect::reasonAttr)) {
      reason = "a seed says so";
    } else {
      int64_t layers = variable.getStacked();
      for (int64_t d = layers; d < variable.getTensorType().getRank(); ++d) {
        SmallVector<std::string> why;
        for (unsigned id : classes.of(variable, d))
          if (std::string one = reasonOf(id, classes, chosen); !llvm::is_contained(why, one))
            why.push_back(one);
        if (!why.empty())
          reason += (reason.empty() ? "dimension " : "; dimension ") + std::to_string(d - layers) +
                    " is " + llvm::join(why, " and ");
      }
      if (reason.empty())
        reason = "one element a layer";
    }
    variable->setAttr(DistDialect::copiesAttr, StringAttr::get(module.getContext(), reason));
  }
}
