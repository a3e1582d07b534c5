//===- TrainStructure.cpp - variables and repetition ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Train/Quantize.h"
#include "Train/Sizes.h"

#include "meshwright/runtime/StorageName.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;

StringRef train::inputName(FunctionOpInterface function, unsigned argument) {
  auto name = function.getArgAttrOfType<StringAttr>(argument, inputAttr);
  return name ? name.getValue() : "";
}

bool train::isByToken(StringRef input) {
  return input == "tokens" || input == "targets" || input == "positions" || input == "source";
}

bool train::isBySequence(StringRef input) {
  return input == "sequence_ids" || input == "source_lengths" || input == referenceInput;
}

StringRef train::lengthAttrOf(StringRef input) {
  return input == "source" ? StringRef(sourceSequenceAttr) : StringRef(sequenceAttr);
}

StringRef train::inputName(BlockArgument argument) {
  auto function = dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
  return function ? inputName(function, argument.getArgNumber()) : "";
}

StringRef train::outputName(FunctionOpInterface function, unsigned result) {
  auto name = function.getResultAttrOfType<StringAttr>(result, outputAttr);
  return name ? name.getValue() : "";
}

FlatSymbolRefAttr train::tokensOf(FunctionOpInterface function, unsigned result) {
  return function.getResultAttrOfType<FlatSymbolRefAttr>(result, tokensOfAttr);
}

std::optional<int64_t> train::moduleSize(ModuleOp module, StringRef name) {
  auto size = module->getAttrOfType<IntegerAttr>(name);
  return size ? std::optional(size.getInt()) : std::nullopt;
}

LogicalResult train::verifySizes(ModuleOp module, Operation *program, StringRef input,
                                 ArrayRef<int64_t> tokens, int64_t ranks) {
  if (tokens.size() != 3)
    return program->emitOpError("input ") << input << " must be [microbatches, sequences, positions], found "
           << tokens.size() << " dimensions";
  auto differ = [&](StringRef name, int64_t said, const Twine &what, int64_t is) {
    return module.emitError() << name << " is " << said << " but " << what << " is " << is;
  };
  for (auto [name, is, what] :
       {std::tuple(StringRef(microbatchesAttr), tokens[0], "the first dimension of tokens"),
        {lengthAttrOf(input), tokens[2],
         input == "source" ? "the last dimension of source" : "the last dimension of tokens"}})
    if (int64_t said = moduleSize(module, name).value_or(is); said != is)
      return differ(name, said, what, is);
  int64_t sequences = tokens[0] * tokens[1], batch = moduleSize(module, batchAttr).value_or(sequences);
  if (batch % sequences != 0 || ranks % (batch / sequences) != 0)
    return differ(batchAttr, batch,
                  ranks == 1 ? "the number of sequences in tokens"
                             : "the number of sequences in the tokens of each rank",
                  sequences);
  return success();
}

bool VariableOp::isOptimizerState() { return getOf() && getRole() != tokensRole && !isScale(*this); }

int64_t VariableOp::getNumbered() {
  return int64_t(getStacked()) + (getStorage() && numberMark(getStorage()->getTensor()));
}

/// Whether `value` is a finite number when it is rounded to `type`, too.
static bool isFiniteAs(llvm::APFloat value, Type type) {
  bool inexact;
  if (auto floats = dyn_cast<FloatType>(type))
    value.convert(floats.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &inexact);
  return value.isFinite();
}

LogicalResult VariableOp::verify() {
  auto type = dyn_cast<RankedTensorType>(getType());
  if (!type || !type.hasStaticShape())
    return emitOpError("needs a static shape, found ") << getType();
  if (getStacked() && type.getRank() == 0)
    return emitOpError("is stacked but has no dimension to count layers");
  if (getOf().has_value() != getRole().has_value())
    return emitOpError("names a role exactly when it is the state of a parameter");
  if (getStacked() && getStorage() && !layerTensorName(getStorage()->getTensor(), 0))
    return emitOpError("is stacked, so its storage name needs '{layer}', found '")
           << getStorage()->getTensor() << "'";
  StringRef mark = getStorage() ? numberMark(getStorage()->getTensor()).value_or("") : "";
  if (mark == "{expert}" && !getExperts())
    return emitOpError("has a tensor for each expert, so it needs 'experts'");
  if (mark == StringRef(rowsMark) && !getExperts())
    return emitOpError("has rows of a tensor for each expert, so it needs 'experts'");
  if (mark == "{head}" && getExperts())
    return emitOpError("has a tensor for each head, but its first dimension counts experts");
  if (getCounts() > type.getRank())
    return emitOpError("has no dimension to count experts");
  if (auto used = getExperts(); used && int64_t(*used) < 1)
    return emitOpError("has experts, but a token uses ") << int64_t(*used);
  if (getNumbered() > type.getRank())
    return emitOpError("has no dimension to count heads");
  if (StorageAttr storage = getStorageAttr()) {
    int64_t rank = type.getRank() - getNumbered();
    if (storage.getTranspose() && rank < 2)
      return emitOpError("is stored in tensor '")
             << storage.getTensor() << "' transposed, but has " << rank
             << " dimensions there; two are needed";
    if (storage.getOptional() && (getInit().getKind() != "constant" || !getInit().getValue().getValue().isZero()))
      return emitOpError("may be missing in files, so it begins with zeros, found ") << getInit();
    if (storage.getFull() && storage.getDim() >= rank)
      return emitOpError("is stored in rows along dimension ")
             << storage.getDim() << " of tensor '" << storage.getTensor() << "', which has " << rank;
  }
  if (FloatAttr initial = getInit().getValue();
      !isFiniteAs(initial.getValue(), type.getElementType()))
    return emitOpError("begins with ")
           << (getInit().getKind() == "normal"    ? "a standard deviation of "
               : getInit().getKind() == "uniform" ? "a bound of "
                                                  : "the value ")
           << initial.getValueAsDouble() << ", which is not finite in " << type.getElementType()
           << "; give a smaller number";
  return success();
}

/// A state goes with its parameter.
LogicalResult VariableOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!getOf())
    return success();
  auto parameter = symbols.lookupNearestSymbolFrom<VariableOp>(*this, getOfAttr());
  if (!parameter || !parameter.isParameter())
    return emitError() << "variable @" << getSymName() << " is the state of @" << *getOf()
                       << ", which is no parameter";
  return success();
}

/// The variable a get or set names, its type checked.
static LogicalResult verifyAccess(Operation *op, FlatSymbolRefAttr name, Type type,
                                  SymbolTableCollection &symbols) {
  auto variable = symbols.lookupNearestSymbolFrom<VariableOp>(op, name);
  if (!variable)
    return op->emitOpError("names ") << name << ", which is not a train.variable";
  auto have = cast<RankedTensorType>(type), want = variable.getTensorType();
  if (have != want)
    return op->emitOpError("has type ") << have << " but " << name << " is " << want;
  return success();
}

LogicalResult GetOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyAccess(*this, getVariableAttr(), getValue().getType(), symbols);
}

LogicalResult SetOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyAccess(*this, getVariableAttr(), getValue().getType(), symbols);
}

double RepeatOp::getTripCount(Rounds rounds) {
  bool followsData = getTimes() && !isOverMicrobatches(*this);
  return followsData && rounds == Rounds::Expected ? 1 : double(getCount());
}

func::FuncOp RepeatOp::lookupCallee(SymbolTableCollection &symbols) {
  return symbols.lookupNearestSymbolFrom<func::FuncOp>(*this, getCalleeAttr());
}

/// `type` without its leading dimension, which must be `count`, and without
/// encoding; null otherwise.
static Type sliceType(Type type, int64_t count) {
  auto tensor = cast<RankedTensorType>(type);
  if (tensor.getRank() == 0 || tensor.getDimSize(0) != count)
    return {};
  return RankedTensorType::get(tensor.getShape().drop_front(), tensor.getElementType());
}

std::optional<Role> train::roleOf(Operation *op) {
  auto role = op->getAttrOfType<RoleAttr>(TrainDialect::roleAttr);
  return role ? std::optional(role.getValue()) : std::nullopt;
}

void train::setRole(Operation *op, Role role) {
  op->setAttr(TrainDialect::roleAttr, RoleAttr::get(op->getContext(), role));
}

bool train::isLayers(RepeatOp repeat) {
  std::optional<Role> role = roleOf(repeat);
  return role == Role::Forward || role == Role::Backward || role == Role::Weight;
}

bool train::isOverMicrobatches(Operation *loop) {
  std::optional<Role> role = roleOf(loop);
  return role == Role::Microbatch || role == Role::Count;
}

std::optional<int64_t> train::chunkOf(RepeatOp repeat) {
  auto chunk = repeat->getAttrOfType<IntegerAttr>(TrainDialect::chunkAttr);
  return chunk ? std::optional(chunk.getInt()) : std::nullopt;
}

LogicalResult RepeatOp::verifySymbolUses(SymbolTableCollection &symbols) {
  func::FuncOp callee = lookupCallee(symbols);
  if (!callee)
    return emitOpError("calls ") << getCalleeAttr() << ", which is not a function";
  auto roleText = [](Operation *op) {
    std::optional<Role> role = roleOf(op);
    return role ? stringifyRole(*role) : "none";
  };
  if (roleOf(*this) != roleOf(callee))
    return emitOpError("has ") << TrainDialect::roleAttr << " " << roleText(*this) << ", but "
                               << getCalleeAttr() << " has " << roleText(callee);
  if (getCount() < 1)
    return emitOpError("repeats ") << getCount() << " times; at least 1 is needed";
  bool slices = getTimes() && !getEach().empty() && !isOverMicrobatches(*this);
  if (getTimes() && (slices || getNumResults() != getCarry().size() || getReverse()))
    return emitOpError("has a number of iterations that is not fixed, but ")
           << (getReverse() ? "runs in reverse" : slices ? "slices" : "stacks")
           << "; only carry and shared are possible, and slices where the iterations are microbatches";
  if (getTimes() && cast<RankedTensorType>(getTimes().getType()).getRank() != 0)
    return emitOpError("takes the number of its iterations from ")
           << getTimes().getType() << "; expected tensor<i32>";
  if (getNumResults() < getCarry().size())
    return emitOpError("has ") << getNumResults() << " results for " << getCarry().size()
                               << " carried values";
  SmallVector<Type> arguments, results;
  if (getIndexed())
    arguments.push_back(RankedTensorType::get({}, IntegerType::get(getContext(), 32)));
  llvm::append_range(arguments, getCarry().getTypes());
  for (Value value : getEach()) {
    Type slice = sliceType(value.getType(), getCount());
    if (!slice)
      return emitOpError("takes slices of ")
             << value.getType() << ", whose first dimension is not " << getCount();
    arguments.push_back(slice);
  }
  llvm::append_range(arguments, getShared().getTypes());
  llvm::append_range(results, getCarry().getTypes());
  for (Value value : getStacks()) {
    Type slice = sliceType(value.getType(), getCount());
    if (!slice)
      return emitOpError("stacks into ")
             << value.getType() << ", whose first dimension is not " << getCount();
    results.push_back(slice);
  }
  // Sharded slices are checked by the dist verifier, which knows how to drop a
  // dimension of a sharding; here shapes and element types must agree.
  auto check = [&](ArrayRef<Type> want, ArrayRef<Type> have, StringRef what) -> LogicalResult {
    if (want.size() != have.size())
      return emitOpError("expects ") << getCalleeAttr() << " to have " << want.size() << " " << what
                                     << "s, found " << have.size();
    for (auto [i, pair] : llvm::enumerate(llvm::zip(want, have)))
      if (!equalButEncoding(std::get<0>(pair), std::get<1>(pair)))
        return emitOpError("expects ") << what << " " << i << " of " << getCalleeAttr() << " to be "
                                       << std::get<0>(pair) << ", found " << std::get<1>(pair);
    return success();
  };
  for (auto [in, out] : llvm::zip(getCarry().getTypes(), getCarried().getTypes()))
    if (in != out)
      return emitOpError("carries ") << in << " in but " << out << " out";
  if (failed(check(arguments, callee.getArgumentTypes(), "argument")))
    return failure();
  return check(results, callee.getResultTypes(), "result");
}
