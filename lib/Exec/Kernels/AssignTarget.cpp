//===- AssignTarget.cpp - exec-assign-target ---------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Exec/Passes.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

namespace meshwright::exec {
#define GEN_PASS_DEF_EXECASSIGNTARGET
#include "Exec/Passes.h.inc"
} // namespace meshwright::exec

/// "gpu-arch=sm_90 attention=auto" as values of flags.
static FailureOr<FlagValues> parseValues(StringRef text, ModuleOp module) {
  FlagValues values;
  SmallVector<StringRef> words;
  text.split(words, ' ', -1, /*KeepEmpty=*/false);
  for (StringRef word : words) {
    auto [name, value] = word.split('=');
    if (name.empty() || value.empty())
      return module.emitError("'") << word << "' sets no flag of a target; write flag=value";
    values[name.str()] = value.str();
  }
  return values;
}

namespace {
struct ExecAssignTarget : exec::impl::ExecAssignTargetBase<ExecAssignTarget> {
  using ExecAssignTargetBase::ExecAssignTargetBase;
  ExecAssignTarget(StringRef name, const FlagValues &values) : values(values) {
    target = name.str();
  }

  void runOnModule() override {
    const Target *found = findTarget(target);
    if (!found) {
      getOperation().emitError("target '") << target << "' is unknown; there are " << targetNames();
      return signalPassFailure();
    }
    FailureOr<FlagValues> more = parseValues(flags, getOperation());
    if (failed(more))
      return signalPassFailure();
    values.merge(*more);
    auto parameters = found->parse(values, getContext());
    if (!parameters) {
      getOperation().emitError(toString(parameters.takeError()));
      return signalPassFailure();
    }
    getOperation()->setAttr(
        targetAttr, TargetAttr::get(&getContext(), found->getName(),
                                    parameters->empty() ? DictionaryAttr() : *parameters));
  }

  FlagValues values;
};
} // namespace

std::unique_ptr<Pass> exec::createAssignTarget(StringRef target, const FlagValues &flags) {
  return std::make_unique<ExecAssignTarget>(target, flags);
}
