//===- Target.cpp - the targets there are ------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Exec/Target.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

llvm::Expected<Target::Parameters> Target::parse(const FlagValues &given,
                                                 MLIRContext &context) const {
  FlagValues values;
  for (const TargetFlag &flag : getFlags())
    values[flag.name] = flag.initial;
  for (auto &[name, value] : given) {
    const TargetFlag *flag =
        llvm::find_if(getFlags(), [&](const TargetFlag &flag) { return name == flag.name; });
    if (flag == getFlags().end())
      return llvm::createStringError("--" + name + " " + value + " is not for --target " +
                                     getName());
    if (!flag->choices.empty() && !llvm::is_contained(flag->choices, value))
      return llvm::createStringError("--" + name + " " + value + " is not supported; there are " +
                                     llvm::join(flag->choices, ", "));
    values[name] = value;
  }
  return parseFlags(values, context);
}

llvm::Expected<Target::Parameters> Target::parseFlags(const FlagValues &,
                                                      MLIRContext &context) const {
  return DictionaryAttr::get(&context);
}

LogicalResult Target::verify(EmitError emitError, Parameters parameters) const {
  if (!parameters.empty())
    return emitError() << "target " << getName() << " has no parameter "
                       << parameters.begin()->getName();
  return success();
}

LogicalResult Target::verifyLibrary(EmitError emitError, Attribute library) const {
  return emitError() << "has library " << library << ", but target " << getName() << " has none";
}

FailureOr<OwningOpRef<ModuleOp>> Target::lower(ModuleOp module, const CodegenOptions &, Parameters,
                                               llvm::raw_ostream &) const {
  return module.emitError("target ") << getName() << " makes no executables";
}

FailureOr<std::string> Target::emit(StringRef emission, ModuleOp module, Parameters) const {
  return module.emitError("target ") << getName() << " has no " << emission;
}

//===----------------------------------------------------------------------===//
// Registry
//===----------------------------------------------------------------------===//

static std::vector<std::unique_ptr<Target>> &registry() {
  static std::vector<std::unique_ptr<Target>> targets;
  return targets;
}

void exec::registerTarget(std::unique_ptr<Target> target) {
  if (!findTarget(target->getName()))
    registry().push_back(std::move(target));
}

ArrayRef<std::unique_ptr<Target>> exec::getTargets() { return registry(); }

const Target *exec::findTarget(StringRef name) {
  auto found = llvm::find_if(registry(), [&](auto &target) { return target->getName() == name; });
  return found == registry().end() ? nullptr : found->get();
}

const Target &exec::getDefaultTarget() {
  auto found = llvm::find_if(registry(), [](auto &target) { return target->isDefault(); });
  return found == registry().end() ? *registry().front() : **found;
}

std::string exec::targetNames() {
  std::string text;
  for (auto [i, target] : llvm::enumerate(registry()))
    text += (i == 0 ? "" : i + 1 == registry().size() ? " and " : ", ") + target->getName().str();
  return text;
}
