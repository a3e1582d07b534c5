//===- TrainDialect.cpp - registration and shared helpers -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Train/Quantize.h"
#include "Train/Train.h"
#include "meshwright/AttributeTable.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::train;

#include "Train/TrainDialect.cpp.inc"
#include "Train/TrainEnums.cpp.inc"
#include "Train/TrainInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "Train/TrainAttrs.cpp.inc"

//===--- attributes that ops do not declare ---------------------------------===//

using namespace meshwright::attributes;

static constexpr AttributeType
    RepetitionRole{"e.g. #train.role<forward>", "#train.role<forward>",
                   [](Attribute a) { return isa<RoleAttr>(a); }},
    ElementType{"a float type", "f32",
                [](Attribute a) {
                  auto type = dyn_cast<TypeAttr>(a);
                  return type && isa<FloatType>(type.getValue());
                }},
    RecomputedMark{"no value or a string", "\"rounds\"",
                   [](Attribute a) { return isa<UnitAttr, StringAttr>(a); }},
    ShortNumbers{"array<i32: ..>", "array<i32: 0>",
                 [](Attribute a) { return isa<DenseI32ArrayAttr>(a); }};
static constexpr AttributePlace OnVariable{"a train.variable", isOn<VariableOp>},
    OnSlice{"a train.slice", isOn<SliceOp>};

#define MESHWRIGHT_ATTRIBUTE(name, type, place, first, last, writer, meaning)                      \
  {name, type, place, Phase::first, Phase::last, writer, meaning},
static constexpr KnownAttribute trainAttributes[] = {
#include "Train/TrainAttributes.def"
};
#define MESHWRIGHT_ATTRIBUTE(name, type, place, first, last, writer, meaning)                      \
  {name, type, place, Phase::first, Phase::last, writer, meaning},
static constexpr KnownAttribute attributesOfNoFloor[] = {
#include "Train/CommonAttributes.def"
};

ArrayRef<KnownAttribute> train::knownAttributes() { return trainAttributes; }
ArrayRef<KnownAttribute> train::commonAttributes() { return attributesOfNoFloor; }

LogicalResult TrainDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  return verifyAttribute(trainAttributes, op, Holder::Op, attribute);
}
LogicalResult TrainDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned,
                                                     NamedAttribute attribute) {
  return verifyAttribute(trainAttributes, op, Holder::Argument, attribute);
}
LogicalResult TrainDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned,
                                                        NamedAttribute attribute) {
  return verifyAttribute(trainAttributes, op, Holder::Result, attribute);
}

namespace {
/// Checks the attributes that are of no floor; it has nothing else.
struct CommonDialect : Dialect {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CommonDialect)
  static constexpr StringLiteral getDialectNamespace() { return "meshwright"; }
  explicit CommonDialect(MLIRContext *context)
      : Dialect(getDialectNamespace(), context, TypeID::get<CommonDialect>()) {}
  LogicalResult verifyOperationAttribute(Operation *op, NamedAttribute attribute) override {
    return verifyAttribute(attributesOfNoFloor, op, Holder::Op, attribute);
  }
};
} // namespace

void train::registerCommonAttributes(DialectRegistry &registry) { registry.insert<CommonDialect>(); }

void TrainDialect::initialize() {
  getContext()->getOrLoadDialect<CommonDialect>();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "Train/TrainAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "Train/TrainOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "Train/TrainQuantizeOps.cpp.inc"
      >();
}

LogicalResult InitAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef kind,
                               FloatAttr value) {
  if (kind == "normal" && value.getValueAsDouble() < 0)
    return emitError() << "a standard deviation is not negative, found "
                       << value.getValueAsDouble();
  if (kind == "uniform" && value.getValueAsDouble() < 0)
    return emitError() << "a bound is not negative, found " << value.getValueAsDouble();
  if (kind != "normal" && kind != "uniform" && kind != "constant" && kind != "row_norms")
    return emitError() << "unknown initialisation '" << kind
                       << "'; expected normal, uniform, constant or row_norms";
  return success();
}

LogicalResult StorageAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef tensor,
                                  bool, int64_t dim, int64_t offset, int64_t full,
                                  int64_t period, DenseI64ArrayAttr runs, bool) {
  // So that sums and products of them are numbers of 64 bits.
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  if (dim < 0 || offset < 0 || full < 0 || offset > most || full > most)
    return emitError() << "rows of '" << tensor << "' have a dimension, an offset and a size from 0 "
                       << "on, of less than 2^31 rows, found dim " << dim << ", offset " << offset
                       << " and full " << full;
  bool listed = runs && !runs.empty();
  if (period == 0 && !listed)
    return success();
  if (period < 1 || !listed || runs.size() % 3 != 0 || full < 1 || full % period != 0)
    return emitError() << "rows of '" << tensor
                       << "' that repeat need a period that divides `full` "
                       << "and runs of begin, count and step, found period " << period << ", full "
                       << full << " and " << (runs ? runs.size() : 0) << " numbers in runs";
  for (int64_t i = 0; i < runs.size(); i += 3)
    if (runs[i] < 0 || runs[i + 1] < 1 || runs[i + 2] < 1 || runs[i + 1] > most || runs[i + 2] > most ||
        runs[i] + (runs[i + 1] - 1) * runs[i + 2] >= period)
      return emitError() << "a run of rows of '" << tensor << "' begins at " << runs[i] << ", has "
                         << runs[i + 1] << " rows with step " << runs[i + 2]
                         << " and does not lie in its period of " << period;
  return success();
}

static SmallVector<ArrayRef<int64_t>> shapesOf(TypeRange types) {
  SmallVector<ArrayRef<int64_t>> shapes;
  for (Type type : types)
    shapes.push_back(cast<RankedTensorType>(type).getShape());
  return shapes;
}

static FailureOr<ShardingRule> sizedRule(StringRef text, TypeRange operands,
                                         ArrayRef<std::pair<StringRef, int64_t>> known,
                                         std::string &error) {
  SmallVector<ArrayRef<int64_t>> shapes = shapesOf(operands);
  SmallVector<int64_t> ranks;
  for (ArrayRef<int64_t> shape : shapes)
    ranks.push_back(shape.size());
  FailureOr<ShardingRule> rule = parseShardingRule(text, ranks, error);
  if (failed(rule) || failed(inferFactorSizes(*rule, shapes, known, error)))
    return failure();
  return rule;
}

ShardingRule train::ruleOf(Operation *op, StringRef text,
                           ArrayRef<std::pair<StringRef, int64_t>> known) {
  std::string error;
  FailureOr<ShardingRule> rule = sizedRule(text, op->getOperandTypes(), known, error);
  if (failed(rule))
    llvm::report_fatal_error(Twine("unverified operation has no sharding rule: ") + error);
  // Factors of results alone (a table's rows) take the result's size.
  for (auto [tensor, type] : llvm::zip(rule->results, op->getResultTypes()))
    for (auto [dim, size] : llvm::zip(tensor.dims, cast<RankedTensorType>(type).getShape()))
      if (dim.size() == 1 && rule->factors[dim[0]].size == 0)
        rule->factors[dim[0]].size = size;
  return *rule;
}

ShardingRule train::elementwiseRuleOf(Operation *op, bool linear, bool additive) {
  return elementwiseRule(cast<RankedTensorType>(op->getResult(0).getType()).getShape(),
                         shapesOf(op->getOperandTypes()), linear, additive);
}

LogicalResult train::inferFromRule(StringRef opName, StringRef text,
                                   std::optional<Location> location, TypeRange operands,
                                   SmallVectorImpl<Type> &results,
                                   ArrayRef<std::pair<StringRef, int64_t>> known) {
  std::string error;
  FailureOr<ShardingRule> rule = sizedRule(text, operands, known, error);
  if (failed(rule))
    return emitOptionalError(location, "'train.", opName, "' op ", error, " (rule: ", text, ")");
  Type element = cast<RankedTensorType>(operands[0]).getElementType();
  for (const TensorFactors &tensor : rule->results)
    results.push_back(RankedTensorType::get(shapeOf(*rule, tensor), element));
  return success();
}

LogicalResult train::inferBroadcast(StringRef opName, std::optional<Location> location, Type lhs,
                                    Type rhs, SmallVectorImpl<Type> &results) {
  auto wide = cast<RankedTensorType>(lhs), narrow = cast<RankedTensorType>(rhs);
  if (narrow.getRank() > wide.getRank() ||
      wide.getShape().take_back(narrow.getRank()) != narrow.getShape())
    return emitOptionalError(location, "'train.", opName, "' op shape of ", rhs,
                             " is not a trailing part of the shape of ", lhs);
  if (wide.getElementType() != narrow.getElementType())
    return emitOptionalError(location, "'train.", opName, "' op element types of ", lhs, " and ",
                             rhs, " differ");
  results.push_back(RankedTensorType::get(wide.getShape(), wide.getElementType()));
  return success();
}

bool train::equalButEncoding(TypeRange a, TypeRange b) {
  return llvm::equal(a, b, [](Type x, Type y) {
    auto left = dyn_cast<RankedTensorType>(x), right = dyn_cast<RankedTensorType>(y);
    return left && right && left.getShape() == right.getShape() &&
           left.getElementType() == right.getElementType();
  });
}

bool train::equalButFloats(TypeRange a, TypeRange b) {
  return llvm::equal(a, b, [](Type x, Type y) {
    auto left = dyn_cast<RankedTensorType>(x), right = dyn_cast<RankedTensorType>(y);
    return left && right && left.getShape() == right.getShape() &&
           (left.getElementType() == right.getElementType() ||
            (isa<FloatType>(left.getElementType()) && isa<FloatType>(right.getElementType())));
  });
}

Type train::atLeastF32(Type type) {
  auto element = dyn_cast<FloatType>(type);
  return element && element.getWidth() < 32 ? Float32Type::get(type.getContext()) : type;
}

RankedTensorType train::withElementType(Type type, Type element) {
  auto tensor = cast<RankedTensorType>(type);
  return RankedTensorType::get(tensor.getShape(), element, tensor.getEncoding());
}

static int64_t elements(Type type) { return cast<RankedTensorType>(type).getNumElements(); }

double train::defaultFlops(Operation *op) {
  int64_t most = 0;
  for (Type type : op->getOperandTypes())
    most = std::max(most, elements(type));
  for (Type type : op->getResultTypes())
    most = std::max(most, elements(type));
  return double(most);
}

double train::contractionFlops(Operation *op) {
  double product = 2;
  for (const Factor &factor : cast<ShardingRuleOpInterface>(op).getShardingRule().factors)
    product *= double(factor.size);
  return product;
}
