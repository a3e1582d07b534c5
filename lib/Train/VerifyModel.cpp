//===- VerifyModel.cpp - what a model must keep to ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Verifiers of ops see one op. What passes rely on beyond that, and a model written by
// hand may break, is refused here before any pass reads it.
//
//===----------------------------------------------------------------------===//
#include "Train/Passes.h"
#include "meshwright/runtime/StorageName.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;

namespace meshwright::train {
#define GEN_PASS_DEF_TRAINVERIFYMODEL
#include "Train/Passes.h.inc"
} // namespace meshwright::train

namespace {
class ModelVerifier {
public:
  explicit ModelVerifier(ModuleOp module) : module(module), symbols(module) {}

  LogicalResult run();

private:
  LogicalResult checkFunctions();
  /// `above`: the functions that repeat `function`, and those that repeat them.
  LogicalResult checkRepeats(func::FuncOp function, SmallVector<func::FuncOp> &above);
  LogicalResult checkSizes();
  LogicalResult checkNames();
  LogicalResult checkStorage();

  ModuleOp module;
  SymbolTable symbols;
  /// Functions that are repeated, with one of the repeats.
  llvm::MapVector<Operation *, RepeatOp> asOftenAsDataSays, always;
  DenseSet<Operation *> checked;
};
} // namespace

LogicalResult ModelVerifier::checkRepeats(func::FuncOp function, SmallVector<func::FuncOp> &above) {
  above.push_back(function);
  for (auto repeat : function.getOps<RepeatOp>()) {
    auto callee = symbols.lookup<func::FuncOp>(repeat.getCallee());
    if (callee.isExternal())
      return repeat.emitOpError("repeats @") << repeat.getCallee() << ", which has no body";
    if (llvm::is_contained(above, callee))
      return repeat.emitOpError("repeats @")
             << repeat.getCallee() << ", which repeats itself; layers have a number of their own";
    (repeat.getTimes() ? asOftenAsDataSays : always)[callee] = repeat;
    if (checked.insert(callee).second && failed(checkRepeats(callee, above)))
      return failure();
  }
  above.pop_back();
  return success();
}

LogicalResult ModelVerifier::checkFunctions() {
  for (auto function : module.getOps<func::FuncOp>()) {
    SmallVector<func::FuncOp> above;
    if (checked.insert(function).second && failed(checkRepeats(function, above)))
      return failure();
  }
  for (auto [function, repeat] : asOftenAsDataSays)
    if (always.contains(function))
      return repeat.emitOpError("repeats @")
             << repeat.getCallee() << " as often as data says, but others repeat it a given number "
             << "of times; make it two functions";
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!asOftenAsDataSays.contains(function) && !always.contains(function))
      continue;
    if (function.isPublic())
      return function.emitOpError("is repeated, so it must be private: public functions are "
                                  "programs; write func.func private @")
             << function.getSymName();
    for (Operation &op : function.getBody().front())
      if (isa<GetOp, SetOp>(op))
        return op.emitOpError("is in @")
               << function.getSymName() << ", which is repeated; read variables in @loss and give "
               << "them to the repeat as each or shared";
  }
  return success();
}

LogicalResult ModelVerifier::checkSizes() {
  auto isEmpty = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.hasStaticShape() && tensor.getNumElements() == 0;
  };
  for (auto variable : module.getOps<VariableOp>())
    if (isEmpty(variable.getType()))
      return variable.emitOpError("is ") << variable.getType() << ", which has no elements";
  WalkResult result = module.walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      if (isEmpty(type)) {
        op->emitOpError("makes ") << type << ", which has no elements";
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// Buffers are called as these are, and files and metrics name them.
LogicalResult ModelVerifier::checkNames() {
  auto loss = symbols.lookup<func::FuncOp>("loss");
  if (!loss || loss.isExternal())
    return success(); // train-autodiff says what it misses.
  llvm::StringMap<std::string> taken;
  auto take = [&](StringRef name, const Twine &what, Operation *op) -> LogicalResult {
    auto [entry, isNew] = taken.try_emplace(name, what.str());
    if (name.empty() || isNew)
      return success();
    return op->emitError() << what << " and " << entry->second << " are both called '" << name
                           << "'; rename one";
  };
  for (auto variable : module.getOps<VariableOp>())
    if (failed(take(variable.getSymName(), "a variable", variable)))
      return failure();
  for (BlockArgument argument : loss.getArguments())
    if (failed(take(inputName(argument), "input " + Twine(argument.getArgNumber()) + " of @loss",
                    loss)))
      return failure();
  for (unsigned i = 0; i < loss.getNumResults(); ++i)
    if (failed(take(outputName(loss, i), "output " + Twine(i) + " of @loss", loss)))
      return failure();
  return take("grad_norm", "the norm of the gradients", loss);
}

/// Two parameters in one tensor of a file would be saved as one, and loaded as one.
LogicalResult ModelVerifier::checkStorage() {
  llvm::MapVector<std::pair<StringRef, int64_t>, VariableOp> known;
  llvm::StringMap<int> names; // owns the text
  for (auto variable : module.getOps<VariableOp>()) {
    if (!variable.isParameter())
      continue;
    StorageAttr storage = variable.getStorageAttr();
    std::string pattern =
        storage ? storage.getTensor().str()
                : variable.getSymName().str() + (variable.getStacked() ? ".{layer}" : "");
    int64_t layers = variable.getStacked() ? variable.getTensorType().getDimSize(0) : 1;
    for (int64_t layer = 0; layer < layers; ++layer) {
      StringRef name =
          names.try_emplace(layerTensorName(pattern, layer).value_or(pattern)).first->first();
      auto [entry, isNew] = known.insert({{name, storage ? storage.getOffset() : 0}, variable});
      if (!isNew)
        return variable.emitOpError("is stored in tensor '")
               << name << "', as @" << entry->second.getSymName()
               << " is; give it a storage of its own";
    }
  }
  return success();
}

LogicalResult ModelVerifier::run() {
  return failure(failed(checkFunctions()) || failed(checkSizes()) || failed(checkNames()) ||
                 failed(checkStorage()));
}

namespace {
struct TrainVerifyModel : train::impl::TrainVerifyModelBase<TrainVerifyModel> {
  void runOnModule() override {
    if (failed(ModelVerifier(getOperation()).run()))
      signalPassFailure();
  }
};
} // namespace
