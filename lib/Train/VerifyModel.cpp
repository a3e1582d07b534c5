//===- VerifyModel.cpp - what a model must keep to ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Verifiers of ops see one op. What passes rely on beyond that, and a model written by
// hand may break, is refused here before any pass reads it.
//
//===----------------------------------------------------------------------===//
#include "Train/Passes.h"
#include "Train/Storage.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"

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
  LogicalResult checkCounts();
  LogicalResult checkOps();

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
      return repeat.emitOpError("repeats @")
             << repeat.getCallee() << ", which has no body; give it one";
    if (llvm::is_contained(above, callee))
      return repeat.emitOpError("repeats @") << repeat.getCallee()
                                             << ", which repeats itself, directly or through "
                                                "others; make what is repeated inside it "
                                                "another function";
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
  for (auto function : module.getOps<func::FuncOp>())
    for (auto [i, type] : llvm::enumerate(function.getArgumentTypes()))
      if (isEmpty(type))
        return function.emitOpError("argument ")
               << i << " is " << type << ", which has no elements";
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
  llvm::StringMap<std::pair<std::string, Operation *>> taken;
  auto take = [&](StringRef name, const Twine &what, Operation *op) -> LogicalResult {
    auto [entry, isNew] = taken.try_emplace(name, what.str(), op);
    if (name.empty() || isNew)
      return success();
    return op->emitError() << what << " and " << entry->second.first << " are both called '" << name
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
  auto reserve = [&](StringRef name, StringRef whose) -> LogicalResult {
    auto entry = taken.find(name);
    if (entry == taken.end())
      return success();
    const auto &[what, op] = entry->second;
    return op->emitError() << what << " is called '" << name << "', as " << whose
                           << " may be; rename it";
  };
  for (const auto &entry : taken)
    if (isOptimizerInput(entry.getKey()))
      return reserve(entry.getKey(), "an input of the optimizer");
  return reserve("grad_norm", "the norm of the gradients");
}

/// Counts of tokens, and biases that balance them, are kept in variables, one result each.
LogicalResult ModelVerifier::checkCounts() {
  auto loss = symbols.lookup<func::FuncOp>("loss");
  if (!loss)
    return success();
  for (StringRef kind : {tokensOfAttr, balancesAttr}) {
    llvm::StringMap<unsigned> known;
    for (unsigned i = 0; i < loss.getNumResults(); ++i) {
      auto of = loss.getResultAttrOfType<FlatSymbolRefAttr>(i, kind);
      if (!of)
        continue;
      if (!symbols.lookup<VariableOp>(of.getAttr()))
        return loss.emitError("result ")
               << i << " has " << kind << " = " << of << ", which is no variable";
      if (auto [entry, isNew] = known.try_emplace(of.getValue(), i); !isNew)
        return loss.emitError("results ") << entry->second << " and " << i << " both have " << kind
                                          << " = " << of << "; add them up and return one";
    }
  }
  return success();
}

LogicalResult ModelVerifier::checkOps() {
  WalkResult result = module.walk([&](Operation *op) {
    // Shards of the product would each add it.
    auto init = llvm::TypeSwitch<Operation *, Value>(op)
                    .Case<ContractOp, EmbeddingGradOp, GroupedLinearGradOp>(
                        [](auto sum) { return sum.getInit(); })
                    .Default(Value());
    if (init) {
      op->emitOpError("has an init, which passes give it once tensors are sharded; write a "
                      "train.add after it");
      return WalkResult::interrupt();
    }
    auto isEmpty = llvm::TypeSwitch<Operation *, bool>(op)
                       .Case<ReduceOp, BroadcastOp>([](auto dims) { return dims.getDims().empty(); })
                       .Default(false);
    if (isEmpty) {
      op->emitOpError("has no dimensions and does nothing; leave it out");
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult ModelVerifier::run() {
  return failure(failed(checkFunctions()) || failed(checkSizes()) || failed(checkNames()) ||
                 failed(verifyStorage(module)) || failed(checkCounts()) || failed(checkOps()));
}

namespace {
struct TrainVerifyModel : train::impl::TrainVerifyModelBase<TrainVerifyModel> {
  void runOnModule() override {
    if (failed(ModelVerifier(getOperation()).run()))
      signalPassFailure();
  }
};
} // namespace
