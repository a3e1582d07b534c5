//===- Verify.cpp - closes floor 1 ------------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "FunctionUtils.h"
#include "Train/GradientBlocks.h"
#include "Train/Passes.h"
#include "Train/Quantize.h"
#include "Train/Sizes.h"
#include "Train/Storage.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;

namespace meshwright::train {
#define GEN_PASS_DEF_TRAINVERIFY
#include "Train/Passes.h.inc"
} // namespace meshwright::train

/// The function called `name` with all inputs and outputs named.
static FailureOr<func::FuncOp> programNamed(ModuleOp module, StringRef name) {
  auto function = module.lookupSymbol<func::FuncOp>(name);
  if (!function)
    return module.emitError("has no program @") << name;
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (inputName(function, i).empty())
      return function.emitError("argument ") << i << " has no " << inputAttr;
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (outputName(function, i).empty())
      return function.emitError("result ") << i << " has no " << outputAttr;
  return function;
}

/// What the module says of itself, which the runtime reads data by, against what
/// the program does.
static LogicalResult checkSizes(ModuleOp module, func::FuncOp step) {
  auto said = [&](StringRef name) { return moduleSize(module, name); };
  BlockArgument tokens = inputNamed(step, "tokens");
  if (auto type = tokens ? cast<RankedTensorType>(tokens.getType()) : RankedTensorType()) {
    if (failed(verifySizes(module, step, "tokens", type.getShape())))
      return failure();
    if (said(maxPositionsAttr).value_or(type.getDimSize(2)) < type.getDimSize(2))
      return module.emitError("sequences of ")
             << type.getDimSize(2) << " tokens are longer than " << *said(maxPositionsAttr)
             << " positions (train.max_positions)";
  }
  // A token beyond a table would be read from other memory.
  std::optional<int64_t> vocabulary = said(vocabularyAttr);
  auto rows = [&](Operation *op, int64_t size) -> LogicalResult {
    if (vocabulary.value_or(0) <= size)
      return success();
    return op->emitOpError("has ") << size << " rows or classes for a vocabulary of " << *vocabulary
                                   << " (train.vocabulary)";
  };
  WalkResult result = module.walk([&](Operation *op) {
    LogicalResult fits = success();
    if (auto loss = dyn_cast<CrossEntropyOp>(op)) {
      fits = rows(op, cast<RankedTensorType>(loss.getLogits().getType()).getShape().back());
    } else if (auto embedding = dyn_cast<EmbeddingOp>(op)) {
      auto argument = dyn_cast<BlockArgument>(embedding.getIds());
      auto function = op->getParentOfType<func::FuncOp>();
      if (argument && (argument == inputNamed(function, "tokens") || argument == inputNamed(function, "source")))
        fits = rows(op, cast<RankedTensorType>(embedding.getTable().getType()).getDimSize(0));
    }
    return failed(fits) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// An encoder's tokens and their number go together, as does what the runtime fills them by.
static LogicalResult checkSource(ModuleOp module, func::FuncOp step) {
  BlockArgument source = inputNamed(step, "source"), lengths = inputNamed(step, "source_lengths");
  std::optional<int64_t> length = moduleSize(module, sourceSequenceAttr),
                         start = moduleSize(module, startTokenAttr);
  if (!source && !lengths && !length && !start)
    return success();
  if (!source || !lengths || !length || !start || !inputNamed(step, "target_weight"))
    return step.emitError() << "of an encoder-decoder model has the inputs source, source_lengths and "
                               "target_weight, and its module "
                            << sourceSequenceAttr << " and " << startTokenAttr;
  if (*start < 0 || *start >= moduleSize(module, vocabularyAttr).value_or(INT64_MAX))
    return module.emitError() << startTokenAttr << " must be a token of the vocabulary ("
                              << vocabularyAttr << "), found " << *start;
  auto type = dyn_cast<RankedTensorType>(source.getType());
  if (failed(verifySizes(module, step, "source", type.getShape())))
    return failure();
  if (cast<RankedTensorType>(lengths.getType()).getShape() != type.getShape().drop_back())
    return step.emitError("input source_lengths is ")
           << lengths.getType() << ", not a number for each sequence of source, " << type;
  return success();
}

/// Pairs have a reference, and a step says how likely their sequences are.
static LogicalResult checkPreferences(ModuleOp module, func::FuncOp step) {
  BlockArgument reference = inputNamed(step, referenceInput);
  Attribute attribute = module->getAttr(dpoBetaAttr);
  if (!reference && !attribute)
    return success();
  auto beta = dyn_cast_if_present<FloatAttr>(attribute);
  if (!beta || !(beta.getValueAsDouble() > 0))
    return module.emitError() << dpoBetaAttr << " must be a number above 0";
  int64_t batch = moduleSize(module, batchAttr).value_or(0);
  bool saysAll = false;
  for (unsigned i = 0; i < step.getNumResults(); ++i)
    saysAll |= outputName(step, i) == logProbsOutput &&
               cast<RankedTensorType>(step.getResultTypes()[i]).getShape() == ArrayRef(batch);
  if (reference && inputNamed(step, "sequence_ids") && saysAll)
    return success();
  return step.emitError() << "a program of pairs has the inputs sequence_ids and " << referenceInput << " and the output "
                          << logProbsOutput << ", a number for each of the batch's " << batch
                          << " sequences, as the module's " << dpoBetaAttr << " says";
}

/// What the runtime masks tokens by, and what it leaves out, against the program that is to count them.
static LogicalResult checkMasks(ModuleOp module, func::FuncOp step) {
  if (inputNamed(step, "positions") && !inputNamed(step, "target_weight"))
    return step.emitError("has no input target_weight, but an input positions: first targets of "
                          "documents do not count");
  Attribute share = module->getAttr(maskedShareAttr), token = module->getAttr(maskTokenAttr);
  if (!share && !token)
    return success();
  auto probability = dyn_cast_if_present<FloatAttr>(share);
  if (!probability || !(probability.getValueAsDouble() > 0 && probability.getValueAsDouble() < 1))
    return module.emitError() << maskedShareAttr << " must be a number above 0 and below 1";
  std::optional<int64_t> number = moduleSize(module, maskTokenAttr);
  if (!number || *number < 0 || *number >= moduleSize(module, vocabularyAttr).value_or(INT64_MAX))
    return module.emitError() << maskTokenAttr << " must be a token of the vocabulary ("
                              << vocabularyAttr << ")";
  if (!inputNamed(step, "target_weight"))
    return step.emitError() << "has no input target_weight, but the module has " << maskedShareAttr;
  return success();
}

/// The blocks of a matrix's gradient, their sum, or a factor of its approximation.
static LogicalResult checkCompression(VariableOp state, VariableOp parameter) {
  SmallVector<int64_t> shape(parameter.getTensorType().getShape());
  ArrayRef<int64_t> own = state.getTensorType().getShape();
  bool isResidual = state.getRole() == residualRole;
  size_t layers = parameter.getStacked();
  bool isFactor = state.getRole() == factorRole;
  bool fits = shape.size() == layers + 2 && own.size() == shape.size() + isResidual &&
              parameter.getStacked() == state.getStacked();
  if (fits && isResidual)
    shape.insert(shape.begin() + layers, own[layers]);
  else if (fits && isFactor) {
    shape.erase(shape.end() - 2);
    shape.push_back(own.back());
  }
  if (fits && own == ArrayRef(shape))
    return success();
  return state.emitError() << "variable @" << state.getSymName() << " is " << state.getTensorType() << ", no "
                           << (isResidual ? "blocks of the gradient" : isFactor ? "factor of the gradient" : "sum of blocks of the gradient") << " of @"
                           << parameter.getSymName() << ", " << parameter.getTensorType();
}

/// A number for each layer, or its history.
static LogicalResult checkScaling(VariableOp state, VariableOp parameter) {
  RankedTensorType type = state.getTensorType(), whole = parameter.getTensorType();
  int64_t rank = isObserved(state) ? 1 : 2;
  if (parameter.getStacked() && state.getStacked() && type.getElementType().isF32() && type.getRank() == rank &&
      type.getDimSize(0) == whole.getDimSize(0))
    return success();
  return state.emitError() << "variable @" << state.getSymName() << " is " << type << ", but its parameter @"
                           << parameter.getSymName() << " is " << whole << "; delayed scaling has "
                           << (rank == 1 ? "a number" : "some numbers") << " of f32 for each layer";
}

/// A state goes wherever its parameter goes, element by element or, as a mean, with one element along some
/// dimensions, or as one number for each block of the last; counts of tokens are of a router's rows, and scales of
/// those of a weight in 8 bits. States of delayed scaling are of layers, and states of compression are of blocks, or have
/// one index of the parameter.
static LogicalResult checkState(VariableOp state) {
  std::optional<StringRef> owner = state.getOf();
  if (!owner)
    return success();
  auto module = state->getParentOfType<ModuleOp>();
  auto parameter = module.lookupSymbol<VariableOp>(*owner);
  if (!parameter || !parameter.isParameter())
    return state.emitError() << "variable @" << state.getSymName() << " is the state of @" << *owner
                             << ", which is no parameter";
  ArrayRef<int64_t> shape = parameter.getTensorType().getShape();
  if (isOfCompression(state))
    return checkCompression(state, parameter);
  if (isOfDelayedScaling(state))
    return checkScaling(state, parameter);
  bool ofRows = state.getRole() == tokensRole || isScale(state);
  if (ofRows && !shape.empty())
    shape = shape.drop_back();
  ArrayRef<int64_t> own = state.getTensorType().getShape();
  bool fits = own.size() == shape.size();
  for (size_t d = 0; fits && d < shape.size(); ++d) {
    bool areBlocks = d + 1 == shape.size() && own[d] > 0 && shape[d] % own[d] == 0;
    fits = own[d] == shape[d] || (!ofRows && (own[d] == 1 || areBlocks));
  }
  if (isScale(state) && !(parameter.getTensorType().getElementType().isInteger(8) && parameter->hasAttr(frozenAttr) &&
                          state.getTensorType().getElementType().isF32()))
    return state.emitError() << "variable @" << state.getSymName() << " is " << state.getTensorType()
                             << ", but scales are f32, of a frozen parameter in 8 bits; its parameter @" << *owner
                             << " is " << (parameter->hasAttr(frozenAttr) ? "" : "trained, ")
                             << parameter.getTensorType();
  if (!fits || parameter.getStacked() != state.getStacked())
    return state.emitError() << "variable @" << state.getSymName() << " is " << state.getTensorType()
                             << ", another shape than " << (ofRows ? "rows of " : "")
                             << "its parameter @" << *owner << ", " << parameter.getTensorType();
  return success();
}

/// Codes of 8 bits are numbers by their scales alone.
static LogicalResult checkCodes(VariableOp parameter) {
  if (!parameter.isParameter() || !parameter.getTensorType().getElementType().isInteger(8))
    return success();
  auto module = parameter->getParentOfType<ModuleOp>();
  if (llvm::any_of(module.getOps<VariableOp>(), [&](VariableOp state) {
        return isScale(state) && state.getOf() == parameter.getSymName();
      }))
    return success();
  return parameter.emitError() << "variable @" << parameter.getSymName() << " has codes of 8 bits, "
                               << parameter.getTensorType() << ", but no variable is its scale";
}

/// Names of the variables that `function`, or what it calls, writes.
static void collectWrites(func::FuncOp function, llvm::StringSet<> &names,
                          SymbolTableCollection &symbols) {
  function.walk([&](Operation *op) {
    if (auto set = dyn_cast<SetOp>(op))
      names.insert(set.getVariable());
    else if (auto repeat = dyn_cast<RepeatOp>(op))
      collectWrites(repeat.lookupCallee(symbols), names, symbols);
  });
}

/// Later passes find layers and microbatches by what repeats say of themselves.
static LogicalResult checkRoles(ModuleOp module) {
  RepeatOp split, whole;
  WalkResult result = module.walk([&](RepeatOp repeat) {
    if (!roleOf(repeat)) {
      repeat.emitOpError("has no ")
          << TrainDialect::roleAttr << "; train-autodiff and train-accumulate give it one";
      return WalkResult::interrupt();
    }
    // Layers inside a layer are where that is.
    std::optional<Role> outer = roleOf(repeat->getParentOp());
    if (isLayers(repeat) && outer != Role::Forward && outer != Role::Backward)
      (chunkOf(repeat) ? split : whole) = repeat;
    return WalkResult::advance();
  });
  if (!result.wasInterrupted() && split && whole)
    return whole.emitOpError("has no ") << TrainDialect::chunkAttr << ", but other layers have one";
  return failure(result.wasInterrupted());
}

namespace {
struct TrainVerify : train::impl::TrainVerifyBase<TrainVerify> {
  void runOnModule() override {
    ModuleOp module = getOperation();
    FailureOr<func::FuncOp> step = programNamed(module, "step"),
                            eval = programNamed(module, "eval");
    if (failed(step) || failed(eval))
      return signalPassFailure();
    if (failed(checkSizes(module, *step)) || failed(checkMasks(module, *step)) ||
        failed(checkPreferences(module, *step)) ||
        failed(checkSource(module, *step)) ||
        failed(checkRoles(module)) || failed(verifyStorage(module)))
      return signalPassFailure();
    for (auto variable : module.getOps<VariableOp>())
      if (failed(checkState(variable)) || failed(checkCodes(variable)))
        return signalPassFailure();
    SymbolTableCollection symbols;
    llvm::StringSet<> written, evalWrites;
    collectWrites(*step, written, symbols);
    collectWrites(*eval, evalWrites, symbols);
    for (auto variable : module.getOps<VariableOp>())
      if (bool isFrozen = variable->hasAttr(frozenAttr) || isScale(variable);
          isFrozen == written.contains(variable.getSymName())) {
        variable.emitError(isFrozen ? "is frozen, but @step writes it"
                                    : "is never written by @step: does the loss depend on it?");
        return signalPassFailure();
      }
    if (!evalWrites.empty()) {
      eval->emitError("writes @") << evalWrites.begin()->getKey();
      return signalPassFailure();
    }
    WalkResult result = module.walk([&](Operation *op) {
      if (isa<BatchSumOp>(op)) {
        op->emitOpError("is of all microbatches, which train-count-batch must see before train-autodiff");
        return WalkResult::interrupt();
      }
      if (isa<ObserveOp, QuantizeGradientOp>(op)) {
        op->emitOpError("is removed by train-autodiff, which has to run before");
        return WalkResult::interrupt();
      }
      StringRef dialect = op->getDialect() ? op->getDialect()->getNamespace() : "";
      if (llvm::is_contained({"builtin", "func", "train"}, dialect))
        return WalkResult::advance();
      op->emitError("does not belong on floor 1");
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
