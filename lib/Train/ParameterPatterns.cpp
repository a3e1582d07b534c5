//===- ParameterPatterns.cpp - parameters by their names in files -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "ParameterPatterns.h"

#include "Train/Storage.h"

#include "llvm/Support/GlobPattern.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;

InFlightDiagnostic train::emitPatternError(ModuleOp module, StringRef pattern, StringRef flag) {
  return module.emitError(flag) << ": the pattern '" << pattern << "' ";
}

LogicalResult train::emitNoMatch(ModuleOp module, StringRef pattern, StringRef flag) {
  InFlightDiagnostic error = emitPatternError(module, pattern, flag);
  error << "matches no parameter; parameters are ";
  auto parameters = llvm::make_filter_range(module.getOps<VariableOp>(),
                                            [](VariableOp v) { return v.isParameter(); });
  llvm::interleaveComma(parameters, error,
                        [&](VariableOp variable) { error << storedTensorName(variable, 0); });
  return error;
}

FailureOr<SmallVector<VariableOp>> train::parametersMatching(ModuleOp module, StringRef pattern,
                                                             StringRef flag) {
  llvm::Expected<llvm::GlobPattern> glob =
      llvm::GlobPattern::create(pattern, /*MaxSubPatterns=*/1024);
  if (!glob)
    return emitPatternError(module, pattern, flag)
           << "is malformed: " << llvm::toString(glob.takeError());
  SmallVector<VariableOp> matching;
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
      return emitPatternError(module, pattern, flag)
             << "matches " << storedTensorName(variable, *with) << " but not "
             << storedTensorName(variable, *without) << ", which are one parameter, @"
             << variable.getSymName() << "; write * in place of the number";
    matching.push_back(variable);
  }
  return matching;
}
