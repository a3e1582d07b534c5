//===- ParameterGroups.cpp - which parameters are treated differently -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "ParameterGroups.h"

#include "Train/Storage.h"

#include "llvm/Support/GlobPattern.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;

/// An error about `group` at `module`.
static InFlightDiagnostic emitGroupError(ModuleOp module, const ParameterGroup &group) {
  return module.emitError("--optimizer-groups: the pattern '") << group.pattern << "' ";
}

/// Says which parameters there are, by the names of their first tensors.
static LogicalResult emitNoMatch(ModuleOp module, const ParameterGroup &group, bool taken) {
  InFlightDiagnostic error = emitGroupError(module, group);
  if (taken)
    return error << "matches parameters of earlier groups only; a parameter is in the first group "
                    "whose pattern matches, so give this one first, or leave it out";
  error << "matches no parameter; parameters are ";
  auto parameters = llvm::make_filter_range(module.getOps<VariableOp>(),
                                            [](VariableOp v) { return v.isParameter(); });
  llvm::interleaveComma(parameters, error,
                        [&](VariableOp variable) { error << storedTensorName(variable, 0); });
  return error;
}

LogicalResult GroupedParameters::assign(ModuleOp module, const ParameterGroups &groups,
                                        const Optimizer &optimizer) {
  bool canDecay = llvm::is_contained(optimizer.scalars(), "weight_decay");
  for (const ParameterGroup &group : groups.groups) {
    llvm::Expected<llvm::GlobPattern> glob =
        llvm::GlobPattern::create(group.pattern, /*MaxSubPatterns=*/1024);
    if (!glob)
      return emitGroupError(module, group) << "is malformed: " << llvm::toString(glob.takeError());
    if (group.decay && !canDecay)
      return emitGroupError(module, group)
             << "has a decay, but --optimizer " << optimizer.name
             << " decays no parameters; leave decay= out, or choose another optimizer";
    bool matches = false, takes = false;
    for (auto variable : module.getOps<VariableOp>()) {
      if (!variable.isParameter())
        continue;
      int64_t tensors = storedTensors(variable);
      std::optional<int64_t> with, without;
      for (int64_t tensor = 0; tensor < tensors && !(with && without); ++tensor)
        (glob->match(storedTensorName(variable, tensor)) ? with : without) = tensor;
      if (!with)
        continue;
      if (without)
        return emitGroupError(module, group)
               << "matches " << storedTensorName(variable, *with) << " but not "
               << storedTensorName(variable, *without) << ", which are one parameter, @"
               << variable.getSymName() << "; write * in place of the number";
      matches = true;
      takes |= groupOf.try_emplace(variable, group).second;
    }
    if (!takes)
      return emitNoMatch(module, group, matches);
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
