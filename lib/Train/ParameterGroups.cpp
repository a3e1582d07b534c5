//===- ParameterGroups.cpp - which parameters are treated differently -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "ParameterGroups.h"

#include "ParameterPatterns.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;

static constexpr StringLiteral flag = "--optimizer-groups";

LogicalResult GroupedParameters::assign(ModuleOp module, const ParameterGroups &groups,
                                        const Optimizer &optimizer) {
  bool canDecay = llvm::is_contained(optimizer.scalars(), "weight_decay");
  for (const ParameterGroup &group : groups.groups) {
    FailureOr<SmallVector<VariableOp>> matching = parametersMatching(module, group.pattern, flag);
    if (failed(matching))
      return failure();
    if (group.decay && !canDecay)
      return emitPatternError(module, group.pattern, flag)
             << "has a decay, but --optimizer " << optimizer.name
             << " decays no parameters; leave decay= out, or choose another optimizer";
    if (matching->empty())
      return emitNoMatch(module, group.pattern, flag);
    auto isFrozen = [](VariableOp variable) { return variable->hasAttr(frozenAttr); };
    if (llvm::all_of(*matching, isFrozen))
      return emitPatternError(module, group.pattern, flag)
             << "matches frozen parameters only, which no update changes; leave it out";
    bool takes = false;
    for (VariableOp variable : *matching)
      takes |= groupOf.try_emplace(variable, group).second;
    if (!takes)
      return emitPatternError(module, group.pattern, flag)
             << "matches parameters of earlier groups only; a parameter is in the first group "
                "whose pattern matches, so give this one first, or leave it out";
  }
  return success();
}

UpdateFactors GroupedParameters::factorsOf(VariableOp parameter) const {
  bool isMatrix = parameter.getTensorType().getRank() - parameter.getNumbered() >= 2;
  UpdateFactors factors{1, isMatrix ? 1.0 : 0.0};
  if (auto found = groupOf.find(parameter); found != groupOf.end()) {
    factors.rate = found->second.rate;
    factors.decay = found->second.decay.value_or(factors.decay);
  }
  return factors;
}
