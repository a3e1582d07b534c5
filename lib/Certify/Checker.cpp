//===- Checker.cpp - runs a program on facts in place of tensors -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Certify/Checker.h"

#include "Dist/Dist.h"
#include "Train/Train.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/APSInt.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::certify;

#include "Certify/CertifyInterfaces.cpp.inc"

/// The name of constants, which have no op: `train.fill` and what is made of it alone.
static constexpr StringRef fillName = "fill";

std::optional<double> certify::fillOf(const Expression *expression) {
  if (expression->name != fillName)
    return {};
  return cast<FloatAttr>(expression->attributes).getValueAsDouble();
}

bool certify::isZero(const Expression *expression) {
  std::optional<double> value = fillOf(expression);
  return value && *value == 0;
}

bool certify::isNotNegative(const Expression *expression, Checker &checker) {
  if (std::optional<double> value = fillOf(expression))
    return *value >= 0;
  if (checker.proof.notNegative.count(expression)) {
    checker.use("an optimizer's eps is not below 0");
    return true;
  }
  if (isWeight(expression, checker))
    return true;
  if (auto scale = dyn_cast_or_null<DictionaryAttr>(expression->attributes);
      scale && expression->name == train::ScaleOp::getOperationName())
    if (auto factor = scale.getAs<FloatAttr>("factor"))
      return !factor.getValue().isNegative() && isNotNegative(expression->operands[0], checker);
  return false;
}

bool certify::isWeight(const Expression *expression, Checker &checker) {
  if (std::optional<double> value = fillOf(expression))
    return *value >= 0 && *value <= 1;
  if (!checker.proof.weights.count(expression))
    return false;
  checker.use("weights of an optimizer's means are from 0 to 1");
  return true;
}

std::optional<double> certify::valueIn(llvm::APFloat value, Type element) {
  bool isRounded = false;
  if (auto type = dyn_cast<FloatType>(element)) {
    value.convert(type.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &isRounded);
    if (value.isNaN())
      return {};
    return value.convertToDouble();
  }
  llvm::APSInt integer(element.getIntOrFloatBitWidth(), /*isUnsigned=*/false);
  if (value.convertToInteger(integer, llvm::APFloat::rmTowardZero, &isRounded) !=
      llvm::APFloat::opOK)
    return {};
  return double(integer.getSExtValue());
}

bool Checker::hasLike(StringRef name, const Expression *operand, ArrayRef<int64_t> shape) {
  std::tuple key(name, std::vector<int64_t>(operand->shape.begin(), operand->shape.end()),
                 shape.vec());
  if (proof.globals)
    return operand->number >= proof.globals && proof.shapes.count(key);
  proof.shapes.insert(key);
  return false;
}

static constexpr StringRef sumName = "sum";

bool certify::isSum(const Expression *expression) { return expression->name == sumName; }

/// The terms of a sum, and of sums in it, but for zeros.
static void addTerms(const Expression *x, SmallVectorImpl<const Expression *> &terms) {
  bool isAdd = x->name == "train.add" && llvm::all_of(x->operands, [&](auto *operand) {
                 return operand->shape == x->shape && operand->element == x->element;
               });
  if (!isAdd && !isSum(x)) {
    if (!isZero(x))
      terms.push_back(x);
    return;
  }
  for (const Expression *operand : x->operands)
    addTerms(operand, terms);
}

const Expression *Checker::sum(Location location, Operands of, Type element,
                               ArrayRef<int64_t> shape) {
  SmallVector<const Expression *> terms;
  for (const Expression *x : of)
    addTerms(x, terms);
  if (terms.empty())
    return fill(location, 0, element, shape.size());
  // x + 0 = x, whether zeros are added one by one or all at once.
  if (terms.size() == 1 && terms[0]->element == element &&
      ArrayRef<int64_t>(terms[0]->shape) == shape)
    return terms[0];
  llvm::sort(terms, [](auto *a, auto *b) { return a->number < b->number; });
  return make(location, sumName, {}, terms, element, shape);
}

const Expression *Checker::fill(Location location, double value, Type element, int64_t rank) {
  Shape shape(rank, anyExtent);
  return make(location, fillName, Builder(module.getContext()).getF64FloatAttr(value), {}, element,
              shape);
}

const Expression *Checker::make(Location location, StringRef name, Attribute attributes,
                                Operands operands, Type element, ArrayRef<int64_t> shape) {
  return proof.expressions.get(location, name, attributes, operands, 0, element, shape);
}

const Expression *Checker::make(Operation *op, Attribute attributes, Operands operands,
                                unsigned result, ArrayRef<int64_t> shape) {
  return proof.expressions.get(op->getLoc(), op->getName().getStringRef(), attributes, operands,
                               result, getElementTypeOrSelf(op->getResult(result).getType()),
                               shape);
}

const Expression *Checker::make(Operation *op, Operands operands, unsigned result,
                                ArrayRef<int64_t> shape) {
  // What is no property of the op are passes' notes, which do not change what it computes.
  return make(op, op->getPropertiesAsAttribute(), operands, result, shape);
}

const Expression *Checker::termsOf(Value x, const Expression *of) {
  auto [found, isNew] = partials.try_emplace({thisRun, x}, proof.partials);
  proof.partials += isNew;
  return make(x.getLoc(), "term of device", Builder(module.getContext()).getI64IntegerAttr(found->second),
              {of}, of->element, of->shape);
}

InFlightDiagnostic Checker::refuse(Operation *op) {
  return emitError(op->getLoc()) << "not proved: " << op->getName().getStringRef() << " ";
}

std::string Checker::nameOf(Operation *op, unsigned operand) {
  std::string text = "operand " + std::to_string(operand);
  if (Operation *producer = op->getOperand(operand).getDefiningOp())
    return text + " (of " + producer->getName().getStringRef().str() + ")";
  return text;
}

Axes Checker::without1(ArrayRef<unsigned> axes) const {
  Axes result;
  for (unsigned axis : axes)
    if (mesh.axes[axis].size > 1)
      result.push_back(axis);
  return result;
}

void certify::pin(Fact &fact, Value value, Checker &checker) {
  if (!llvm::is_contained(fact.type.shape, anyExtent))
    return;
  ArrayRef<int64_t> local = cast<RankedTensorType>(value.getType()).getShape();
  for (int64_t dim = 0; dim < fact.type.rank(); ++dim)
    if (fact.type.isAny(dim))
      fact.type.shape[dim] = local[dim];
  fact.expression = checker.make(value.getLoc(), "of extents", {}, {fact.expression},
                                 fact.expression->element, fact.type.expressionShape());
}

void certify::settle(Fact &fact, Checker &checker, std::string *why) {
  Distribution &type = fact.type;
  if (!type.terms)
    return;
  const Terms &terms = *type.terms;
  std::optional<Pieces> parts;
  unsigned divided = 0;
  for (int64_t dim = 0; dim < type.rank(); ++dim)
    if (auto found = type.piecesOf(dim, checker.mesh);
        found && llvm::any_of(found->group, [&](unsigned axis) {
          return llvm::is_contained(terms.group, axis);
        })) {
      parts = found;
      ++divided;
    }
  std::string flaw = divided == unsigned(terms.side != Terms::none)
                         ? terms.flaw(parts)
                         : "is divided otherwise than its terms";
  if (!flaw.empty()) {
    if (why)
      *why = flaw;
    return;
  }
  checker.use(terms.kind == Terms::softmax
                  ? "the softmax over some keys and over others, merged, is that over both"
                  : "sums over devices and microbatches may be reordered");
  if (terms.side == Terms::none) {
    type.sum.append(terms.group);
    llvm::sort(type.sum);
  }
  type.terms.reset();
}

func::FuncOp Checker::lookup(Operation *op, FlatSymbolRefAttr name) {
  return symbols.lookupNearestSymbolFrom<func::FuncOp>(op, name);
}

/// What a rule says must fit the program's own types: a sum of two errors is no proof.
LogicalResult Checker::checkTypes(Operation &op, Facts results) {
  for (auto [index, fact] : llvm::enumerate(results)) {
    auto type = cast<RankedTensorType>(op.getResult(index).getType());
    bool isStack = fact.type.chunks && !fact.type.chunks->axis;
    if (fact.type.rank() + isStack != type.getRank())
      return refuse(&op) << "has a result of rank " << type.getRank() << ", not of rank "
                         << fact.type.rank();
    if (!fact.type.fits(type.getShape(), mesh))
      return refuse(&op) << "has a result of type " << type << ", which is no part of "
                         << fact.type.str(mesh);
  }
  return success();
}

/// Whether an op's rule says what becomes of some terms of a sum, and of a tensor of which two dimensions
/// are divided along one axis. Terms that all devices have alike are moved and added up as any tensor is.
static bool knowsTerms(Operation &op, const Distribution &type) {
  bool areAlike = !type.isDiagonal() && type.summands->group.empty();
  return isa<train::AddOp, train::ContractionOpInterface, dist::ConcatOp, dist::PermuteOp, dist::SliceOp>(op) ||
         (areAlike && isa<train::ReduceOp, train::PadOp, train::CastOp, train::ScaleOp, train::MulOp, train::AccumulateOp, dist::AllReduceOp,
                          dist::AllGatherOp, dist::ReduceScatterOp, dist::AllToAllOp>(op));
}

/// Whether an op's rule says what becomes of pieces with zeros, which are no elements of the expression.
static bool knowsZeros(Operation &op) {
  auto mask = dyn_cast<train::MaskOp>(op);
  return isa<train::AddOp, train::SliceOp, train::PadOp, train::ReshapeOp>(op) ||
         isa<dist::DistDialect>(op.getDialect()) || (mask && mask.getValue().isZero());
}

/// Whether results are of the global graph.
static bool areGlobal(Facts facts, const Checker &checker) {
  return llvm::all_of(facts, [&](const Fact &fact) { return checker.isGlobal(fact.expression); });
}

LogicalResult Checker::evaluate(Operation &op, llvm::DenseMap<Value, Fact> &facts) {
  FactList operands, results;
  for (Value operand : op.getOperands())
    operands.push_back(facts.lookup(operand));
  ++proof.ops;
  std::vector<FactList> readings;
  bool hasReadings = false;
  if (proof.globals && !isa<train::ReshapeOp, train::RepeatOp, train::SetOp, func::CallOp>(op))
    for (auto [operand, fact] : llvm::zip_equal(op.getOperands(), operands)) {
      readings.push_back(otherReadings(fact, operand, *this));
      hasReadings |= !readings.back().empty();
    }
  if (!hasReadings)
    return failed(runRule(op, operands, results)) ? failure() : assign(op, results, facts);
  std::vector<Diagnostic> errors;
  size_t own; // the others are of readings that failed, too
  bool isProved;
  {
    ScopedDiagnosticHandler handler(op.getContext(), [&](Diagnostic &error) {
      errors.push_back(std::move(error));
      return success();
    });
    isProved = succeeded(runRule(op, operands, results)) && succeeded(checkTypes(op, results));
    own = errors.size();
    if (!isProved || (areGlobal(operands, *this) && !areGlobal(results, *this)))
      isProved |= readOtherwise(op, operands, readings, results);
  }
  if (isProved)
    return assign(op, results, facts);
  errors.erase(errors.begin() + own, errors.end());
  for (Diagnostic &error : errors)
    op.getContext()->getDiagEngine().emit(std::move(error));
  return failure();
}

bool Checker::readOtherwise(Operation &op, Facts operands, ArrayRef<FactList> readings,
                            NewFacts &results) {
  for (size_t first = 0; first < readings.size(); ++first)
    for (size_t second = first; second < readings.size(); ++second)
      for (const Fact &one : readings[first])
        for (const Fact &other : second == first ? Facts(one) : Facts(readings[second])) {
          FactList changed(operands), made;
          changed[first] = one;
          changed[second] = other;
          if (succeeded(runRule(op, changed, made)) && succeeded(checkTypes(op, made)) &&
              areGlobal(made, *this)) {
            results.assign(made.begin(), made.end());
            return true;
          }
        }
  return false;
}

LogicalResult Checker::runRule(Operation &op, Facts given, NewFacts &results) {
  auto rule = dyn_cast<CertifiableOpInterface>(op);
  if (!rule)
    return refuse(&op) << "has no rule";
  if (auto group = op.getAttrOfType<dist::GroupAttr>("group");
      group && fixed && llvm::is_contained(group.on(mesh), *fixed))
    return refuse(&op) << "works along " << mesh.str({*fixed}) << ", inside of a stage's program";
  FactList operands(given);
  for (auto [index, fact] : llvm::enumerate(operands))
    if (!fact.type.padding.empty() && !rule.knowsPadding())
      return refuse(&op) << "reads " << nameOf(&op, index) << ", " << fact.type.str(mesh)
                         << ", and its rule says nothing of padding";
  for (auto [index, fact] : llvm::enumerate(operands))
    if ((fact.type.messages && !isa<dist::ExchangeOp, train::ReduceOp>(op)) ||
        ((fact.type.summands || fact.type.isDiagonal()) && !knowsTerms(op, fact.type)))
      return refuse(&op) << "reads " << nameOf(&op, index) << ", " << fact.type.str(mesh);
  auto hasZeros = [](const Fact &fact) {
    return llvm::any_of(fact.type.pieces, [](auto &entry) { return entry.second.hasZeros(); });
  };
  for (auto [index, fact] : llvm::enumerate(operands))
    if (!knowsZeros(op) && hasZeros(fact))
      return refuse(&op) << "reads " << nameOf(&op, index) << ", " << fact.type.str(mesh)
                         << ", with zeros that are no elements of it";
  if (!rule.knowsParts())
    for (auto [index, fact] : llvm::enumerate(operands)) {
      std::string why;
      settle(fact, *this, &why);
      if (fact.type.hasParts())
        return refuse(&op) << "reads " << nameOf(&op, index) << ", " << fact.type.str(mesh)
                           << (why.empty() ? why : ", which " + why) << ": it has no rule for that";
    }
  if (failed(rule.certify(operands, results, *this)))
    return failure();
  if (results.size() != op.getNumResults())
    return refuse(&op) << "has a rule for " << results.size() << " of its " << op.getNumResults()
                       << " results";
  return success();
}

LogicalResult Checker::assign(Operation &op, Facts results, llvm::DenseMap<Value, Fact> &facts) {
  if (failed(checkTypes(op, results)))
    return failure();
  for (auto [result, fact] : llvm::zip(op.getResults(), results))
    facts[result] = fact;
  return success();
}

LogicalResult Checker::run(func::FuncOp function, Facts arguments, NewFacts &results) {
  if (function.isExternal() || !function.getBody().hasOneBlock())
    return refuse(function) << "@" << function.getSymName() << " has no body of one block";
  if (!running.insert(function).second)
    return refuse(function) << "@" << function.getSymName() << " calls itself";
  llvm::scope_exit ended([&] { running.erase(function); });
  llvm::SaveAndRestore run(thisRun, ++runs);
  llvm::DenseMap<Value, Fact> facts;
  for (auto [argument, fact] : llvm::zip_equal(function.getArguments(), arguments))
    facts[argument] = fact;
  for (Operation &op : function.getBody().front().without_terminator())
    if (failed(evaluate(op, facts)))
      return failure();
  for (Value value : function.getBody().front().getTerminator()->getOperands())
    settle(results.emplace_back(facts.lookup(value)), *this);
  return success();
}
