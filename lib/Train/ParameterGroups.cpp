//===- ParameterGroups.cpp - which parameters are treated differently -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "ParameterGroups.h"

#include "ParameterPatterns.h"
#include "Train/Widths.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;

static constexpr StringLiteral groupsFlag = "--optimizer-groups";

/// Whether the optimizer decays parameters.
static bool canDecay(const Optimizer &optimizer) {
  return llvm::is_contained(optimizer.scalars(), "weight_decay");
}

LogicalResult GroupedParameters::checkWidths(ModuleOp module) const {
  bool scaled = false, adapted = false;
  for (VariableOp variable : module.getOps<VariableOp>()) {
    scaled |= widthsOf(variable).has_value();
    adapted |= variable->hasAttr(adapterAttr);
  }
  if (!scaled)
    return success();
  if (adapted)
    return module.emitError("--mup-base: muP has no rule for adapters; leave it or --lora out");
  if (optimizer->scaledByWidth)
    return success();
  auto have = make_filter_range(optimizers(), [](auto *row) { return row->scaledByWidth; });
  auto names = map_range(have, [](auto *row) -> StringRef { return row->name; });
  return module.emitError("--mup-base: no rule is published for how steps of --optimizer ")
         << optimizer->name << " depend on the width of a model; there are rules for "
         << llvm::join(names, ", ");
}

LogicalResult GroupedParameters::assign(ModuleOp module, const ParameterGroups &groups,
                                        const Optimizer &optimizer) {
  this->optimizer = &optimizer;
  if (failed(checkWidths(module)))
    return failure();
  for (const ParameterGroup &group : groups.groups) {
    FailureOr<SmallVector<VariableOp>> matching = parametersMatching(module, group.pattern, groupsFlag);
    if (failed(matching))
      return failure();
    if (group.decay && !canDecay(optimizer))
      return emitPatternError(module, group.pattern, groupsFlag)
             << "has a decay, but --optimizer " << optimizer.name
             << " decays no parameters; leave decay= out, or choose another optimizer";
    if (matching->empty())
      return emitNoMatch(module, group.pattern, groupsFlag);
    auto isFrozen = [](VariableOp variable) { return variable->hasAttr(frozenAttr); };
    if (llvm::all_of(*matching, isFrozen))
      return emitPatternError(module, group.pattern, groupsFlag)
             << "matches frozen parameters only, which no update changes; leave it out";
    bool takes = false;
    for (VariableOp variable : *matching)
      takes |= groupOf.try_emplace(variable, group).second;
    if (!takes)
      return emitPatternError(module, group.pattern, groupsFlag)
             << "matches parameters of earlier groups only; a parameter is in the first group "
                "whose pattern matches, so give this one first, or leave it out";
  }
  return success();
}

UpdateFactors GroupedParameters::factorsOf(VariableOp parameter) const {
  bool isMatrix = parameter.getTensorType().getRank() - parameter.getNumbered() >= 2;
  UpdateFactors factors;
  factors.decay = isMatrix ? 1 : 0;
  if (auto found = groupOf.find(parameter); found != groupOf.end()) {
    factors.rate = found->second.rate;
    factors.decay = found->second.decay.value_or(factors.decay);
  }
  if (std::optional<WidthMultipliers> widths = widthsOf(parameter)) {
    UpdateFactors scaled = optimizer->scaledByWidth(*widths);
    factors.rate *= scaled.rate;
    if (canDecay(*optimizer))
      factors.decay *= scaled.decay;
    factors.eps *= scaled.eps;
  }
  return factors;
}
