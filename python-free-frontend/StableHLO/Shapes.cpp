//===- Shapes.cpp - import of shapes, sums, products and look-ups ------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Importer.h"
#include "Text.h"
#include "Train/Constant.h"

#include "llvm/ADT/StringMap.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::hlo;
using namespace meshwright::train;

static RankedTensorType typeOf(Operation *op) {
  return cast<RankedTensorType>(op->getResult(0).getType());
}

static FailureOr<Dims> listOf(Operation *op, StringRef name) {
  if (auto found = op->getAttrOfType<DenseI64ArrayAttr>(name))
    return Dims(found.asArrayRef());
  return op->emitError() << op->getName() << " needs the attribute " << name
                         << ", a list of integers";
}

static FailureOr<int64_t> numberOf(Operation *op, StringRef name) {
  if (auto found = op->getAttrOfType<IntegerAttr>(name))
    return found.getInt();
  return op->emitError() << op->getName() << " needs the attribute " << name << ", an integer";
}

FailureOr<Ref> Importer::constant(Operation *op) {
  auto value = op->getAttrOfType<DenseElementsAttr>("value");
  if (!value)
    return graph.error() << "has no dense value";
  RankedTensorType type = typeOf(op);
  auto number = [&](auto element) { return double(element); };
  std::vector<double> data;
  bool isFloat = isa<FloatType>(type.getElementType());
  bool isSigned = !type.getElementType().isInteger(1) && !type.getElementType().isUnsignedInteger();
  auto read = [&](Attribute element) {
    if (isFloat) {
      APFloat wide = cast<FloatAttr>(element).getValue();
      bool isLossy;
      wide.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &isLossy);
      return wide.convertToDouble();
    }
    const APInt &integer = cast<IntegerAttr>(element).getValue();
    return isSigned ? number(integer.getSExtValue()) : number(integer.getZExtValue());
  };
  if (!isFloat && !isa<IntegerType>(type.getElementType()))
    return graph.error() << "of " << type << " is not imported";
  if (value.isSplat())
    return graph.splat(type.getShape(), type.getElementType(),
                       read(value.getSplatValue<Attribute>()));
  for (Attribute element : value.getValues<Attribute>())
    data.push_back(read(element));
  return graph.known(type.getShape(), llvm::to_vector<6>(llvm::seq<int64_t>(0, type.getRank())),
                     type.getElementType(), std::move(data));
}

FailureOr<Ref> Importer::iota(Operation *op) {
  FailureOr<int64_t> dim = numberOf(op, "iota_dimension");
  if (failed(dim))
    return failure();
  RankedTensorType type = typeOf(op);
  std::vector<double> data(type.getDimSize(*dim));
  for (auto [i, value] : llvm::enumerate(data))
    value = double(i);
  return graph.known(type.getShape(), {*dim}, type.getElementType(), std::move(data));
}

FailureOr<Ref> Importer::broadcast(Operation *op) {
  FailureOr<Dims> dims = listOf(op, "broadcast_dimensions");
  if (failed(dims))
    return failure();
  ArrayRef<int64_t> shape = typeOf(op).getShape();
  if (llvm::is_sorted(*dims))
    return graph.broadcast(raw(op, 0), *dims, shape);
  // Operands are transposed where the result has their dimensions in another order.
  FailureOr<Ref> x = operand(op, 0);
  if (failed(x))
    return failure();
  Dims order = llvm::to_vector<6>(llvm::seq<int64_t>(0, dims->size()));
  llvm::sort(order, [&](int64_t a, int64_t b) { return (*dims)[a] < (*dims)[b]; });
  llvm::sort(*dims);
  return graph.broadcast(graph.transpose(*x, order), *dims, shape);
}

FailureOr<Ref> Importer::transpose(Operation *op) {
  FailureOr<Dims> dims = listOf(op, "permutation");
  FailureOr<Ref> x = operand(op, 0);
  if (failed(dims) || failed(x))
    return failure();
  return graph.transpose(*x, *dims);
}

FailureOr<Ref> Importer::reshape(Operation *op) {
  Ref x = raw(op, 0);
  ArrayRef<int64_t> shape = typeOf(op).getShape();
  if (x->form == Form::picked || x->form == Form::tokenLoss) {
    Lazy y = *x;
    y.shape = Dims(shape);
    return Ref(std::make_shared<Lazy>(y));
  }
  // What is known of elements holds for them where they stay in order and size.
  if (areEqualButForOnes(x->shape, shape))
    return graph.reshape(x, shape);
  FailureOr<Ref> plain = usable(x);
  return failed(plain) ? plain : graph.reshape(*plain, shape);
}

FailureOr<Ref> Importer::slice(Operation *op) {
  FailureOr<Dims> starts = listOf(op, "start_indices"), limits = listOf(op, "limit_indices"),
                  strides = listOf(op, "strides");
  if (failed(starts) || failed(limits) || failed(strides))
    return failure();
  Ref x = raw(op, 0);
  if (x->form != Form::bothTokens) {
    FailureOr<Ref> plain = usable(x);
    return failed(plain) ? plain : graph.slice(*plain, *starts, *limits, *strides);
  }
  for (int64_t from : {0, 1})
    if (ArrayRef(*starts) == ArrayRef<int64_t>{0, from} &&
        ArrayRef(*limits) == ArrayRef<int64_t>{rows, sequence + from} &&
        ArrayRef(*strides) == ArrayRef<int64_t>{1, 1})
      return graph.wrap({rows, sequence}, {0, 1}, loss.getArgument(from));
  return graph.error() << "of tokens is imported where it takes all but the last or all but "
                          "the first of each sequence: tokens[:, :-1] and tokens[:, 1:]";
}

FailureOr<Ref> Importer::concatenate(Operation *op) {
  FailureOr<int64_t> dim = numberOf(op, "dimension");
  if (failed(dim))
    return failure();
  SmallVector<Ref> parts;
  for (unsigned i = 0; i < op->getNumOperands(); ++i) {
    FailureOr<Ref> part = operand(op, i);
    if (failed(part))
      return failure();
    parts.push_back(*part);
  }
  return graph.concatenate(parts, *dim, typeOf(op).getShape());
}

FailureOr<Ref> Importer::dotGeneral(Operation *op) {
  auto numbers = op->getAttrOfType<DictionaryAttr>("dot_dimension_numbers");
  if (!numbers)
    return graph.error() << "needs the attribute dot_dimension_numbers";
  FailureOr<Ref> a = operand(op, 0), b = operand(op, 1);
  if (failed(a) || failed(b))
    return failure();
  if (!(*a)->isFloat())
    return unknown(op);
  // JAX transposes products whose right operand has the rows of the result, as those of
  // probabilities and values.
  bool isRhsFirst = false;
  int64_t batch = dimsOf(numbers.get("lhs_batching_dimensions")).size();
  int64_t columns = int64_t((*a)->shape.size()) -
                    int64_t(dimsOf(numbers.get("lhs_contracting_dimensions")).size());
  if (Operation *user = op->hasOneUse() ? *op->user_begin() : nullptr;
      user && user->getName().getStringRef() == "stablehlo.transpose")
    if (auto order = user->getAttrOfType<DenseI64ArrayAttr>("permutation")) {
      auto isOwn = llvm::find_if(order.asArrayRef(), [&](int64_t dim) { return dim >= batch; });
      isRhsFirst = isOwn != order.asArrayRef().end() && *isOwn >= columns;
    }
  if (FailureOr<Ref> found = attention(op, *a, *b, numbers); failed(found) || *found)
    return found;
  FailureOr<Ref> made = graph.product(*a, *b, numbers, typeOf(op), isRhsFirst);
  if (failed(made))
    return failure();
  Lazy y = **made;
  y.form = Form::product;
  y.of = *a;
  y.other = *b;
  y.product = numbers;
  y.number = 1;
  y.axes = llvm::to_vector<6>(llvm::seq<int64_t>(0, y.shape.size()));
  return Ref(std::make_shared<Lazy>(y));
}

//===--- sums and maxima ----------------------------------------------------===//

/// The name of the one op that the region of a reduction in the generic form applies.
static StringRef appliedBy(Operation *op) {
  if (auto text = op->getAttrOfType<StringAttr>("applies"))
    return text.getValue();
  if (op->getNumRegions() != 1 || !op->getRegion(0).hasOneBlock())
    return "";
  Block &block = op->getRegion(0).front();
  bool isOne = llvm::hasNItems(block, 2) && block.back().getNumOperands() == 1 &&
               block.back().getOperand(0).getDefiningOp() == &block.front();
  return isOne ? block.front().getName().getStringRef() : "";
}

FailureOr<Ref> Importer::maximumOf(Operation *op, const Ref &x, ArrayRef<int64_t> dims) {
  if (x->isKnown())
    return graph.error() << "of constants by stablehlo.maximum is not imported";
  Lazy y{{}, {}, x->element, {}, {}};
  Dims position, reduced;
  for (auto [d, size] : llvm::enumerate(x->shape)) {
    position.push_back(y.shape.size());
    if (!llvm::is_contained(dims, int64_t(d)))
      y.shape.push_back(size);
  }
  for (auto [i, dim] : llvm::enumerate(x->dims))
    if (llvm::is_contained(dims, dim))
      reduced.push_back(i);
    else
      y.dims.push_back(position[dim]);
  if (reduced.empty())
    return graph.error() << "over dimensions of equal elements is not imported";
  auto reduce = ReduceOp::create(graph.builder, graph.location, ReduceKind::Max, x->core, reduced);
  reduce->setAttr(constantAttr, graph.builder.getUnitAttr());
  y.core = reduce;
  y.form = Form::maximum;
  y.of = x;
  y.along = Dims(dims);
  return Ref(std::make_shared<Lazy>(y));
}

FailureOr<Ref> Importer::reduce(Operation *op) {
  FailureOr<Dims> dims = listOf(op, "dimensions");
  if (failed(dims))
    return failure();
  if (op->getNumOperands() != 2)
    return graph.error() << "of several tensors is not imported";
  Ref x = raw(op, 0);
  std::optional<double> init = raw(op, 1)->splat();
  StringRef applied = appliedBy(op);
  if (applied == "stablehlo.add" && init == 0.0) {
    if (x->form == Form::tokenLoss) {
      Lazy y = *x;
      y.shape.clear();
      for (auto [d, size] : llvm::enumerate(x->shape))
        if (!llvm::is_contained(*dims, int64_t(d)))
          y.shape.push_back(size);
      return Ref(std::make_shared<Lazy>(y));
    }
    bool isExp = x->form == Form::expShifted && x->along == *dims && x->dims == x->of->dims;
    FailureOr<Ref> plain = isExp ? FailureOr<Ref>(x) : usable(x);
    if (failed(plain))
      return failure();
    if (!x->isFloat() && !x->isKnown())
      return unknown(op);
    FailureOr<Ref> sum = graph.sum(*plain, *dims);
    if (failed(sum) || !isExp)
      return sum;
    Lazy y = **sum;
    y.form = Form::sumExp;
    y.of = x->of;
    y.along = x->along;
    return Ref(std::make_shared<Lazy>(y));
  }
  if (applied == "stablehlo.maximum" && x->isFloat() && init &&
      *init == -std::numeric_limits<double>::infinity()) {
    FailureOr<Ref> plain = usable(x);
    return failed(plain) ? plain : maximumOf(op, *plain, *dims);
  }
  // Whether all checks of tokens hold, which they do.
  if (std::optional<double> all = x->splat(); applied == "stablehlo.and" && all && init)
    return graph.splat(typeOf(op).getShape(), typeOf(op).getElementType(), *all != 0 && *init != 0);
  return graph.error() << (applied.empty() ? "by several ops" : "by ") << applied
                       << " is not imported; sums from 0 and the maxima of softmax are";
}

//===--- look-ups -----------------------------------------------------------===//

FailureOr<Ref> Importer::rowsOf(Operation *op, DictionaryAttr numbers, ArrayRef<int64_t> sizes) {
  FailureOr<Ref> table = operand(op, 0);
  if (failed(table))
    return failure();
  int64_t last = typeOf(op).getRank() - 1;
  bool isRow = (*table)->shape.size() == 2 &&
               dimsOf(numbers.get("collapsed_slice_dims")) == ArrayRef<int64_t>{0} &&
               dimsOf(numbers.get("start_index_map")) == ArrayRef<int64_t>{0} &&
               dimsOf(numbers.get("offset_dims")) == ArrayRef<int64_t>{last} &&
               sizes == ArrayRef<int64_t>{1, (*table)->shape[1]} &&
               int64_t(raw(op, 1)->shape.size()) - 1 == last;
  if (!isRow)
    return graph.error()
           << "is imported where it takes rows of a matrix, as table[tokens] "
              "does, or of each row one element, as jnp.take_along_axis of logits does";
  FailureOr<Value> rows = graph.whole(*table);
  FailureOr<Ref> indices = operand(op, 1);
  if (failed(rows) || failed(indices))
    return failure();
  // Without the dimension of one element that the text gives each index.
  indices = graph.reshape(*indices, ArrayRef((*indices)->shape).drop_back());
  if (failed(indices))
    return failure();
  const Ref &ids = *indices;
  int64_t count = (*table)->shape[0];
  if (ids->isKnown()) {
    bool isRange =
        ids->dims.size() == 1 && ids->data->front() >= 0 && ids->data->back() < double(count);
    for (auto [i, id] : llvm::enumerate(*ids->data))
      isRange = isRange && id == ids->data->front() + double(i);
    if (!isRange)
      return graph.error() << "by constants is imported where they are consecutive numbers "
                              "of rows, as table[jnp.arange(n)]";
    Value part = SliceOp::create(graph.builder, graph.location, *rows, ids->data->size(), 0,
                                 int64_t(ids->data->front()));
    return graph.wrap(typeOf(op).getShape(), {ids->dims[0], last}, part);
  }
  vocabulary = std::min(vocabulary, count);
  Value found = EmbeddingOp::create(graph.builder, graph.location, *rows, ids->core);
  Dims dims = ids->dims;
  dims.push_back(last);
  return graph.wrap(typeOf(op).getShape(), dims, found);
}

FailureOr<Ref> Importer::pick(Operation *op, DictionaryAttr numbers, ArrayRef<int64_t> sizes) {
  Ref x = raw(op, 0);
  FailureOr<Ref> ids = usable(raw(op, 1));
  if (failed(ids))
    return failure();
  int64_t last = int64_t(x->shape.size()) - 1;
  Dims batch = llvm::to_vector<6>(llvm::seq<int64_t>(0, std::max<int64_t>(last, 0)));
  bool isElement = last >= 0 && dimsOf(numbers.get("operand_batching_dims")) == batch &&
                   dimsOf(numbers.get("start_indices_batching_dims")) == batch &&
                   dimsOf(numbers.get("collapsed_slice_dims")) == ArrayRef<int64_t>{last} &&
                   dimsOf(numbers.get("start_index_map")) == ArrayRef<int64_t>{last} &&
                   dimsOf(numbers.get("offset_dims")).empty() &&
                   llvm::all_of(sizes, [](int64_t size) { return size == 1; }) && (*ids)->core &&
                   typeOf(op).getNumElements() == rows * sequence &&
                   llvm::all_of((*ids)->dims, [&](int64_t dim) { return dim < last; });
  if (!isElement)
    return graph.error()
           << "of several dimensions is imported where it takes of each row of "
              "logits the element of its target, as jnp.take_along_axis(logits, targets[..., "
              "None], -1) does";
  Lazy y{Dims(typeOf(op).getShape()), {}, x->element, {}, {}};
  Lazy targets = **ids;
  targets.shape.resize(last);
  y.other = std::make_shared<Lazy>(targets);
  if (x->form == Form::logSoftmax && x->shape == x->of->shape &&
      x->along == ArrayRef<int64_t>{last}) {
    y.form = Form::tokenLoss;
    y.of = x->of;
    y.number = -1;
    return Ref(std::make_shared<Lazy>(y));
  }
  FailureOr<Ref> plain = usable(x);
  if (failed(plain))
    return failure();
  y.form = Form::picked;
  y.of = *plain;
  return Ref(std::make_shared<Lazy>(y));
}

FailureOr<Ref> Importer::gather(Operation *op) {
  auto numbers = op->getAttrOfType<DictionaryAttr>("dimension_numbers");
  FailureOr<Dims> sizes = listOf(op, "slice_sizes");
  if (!numbers || failed(sizes))
    return graph.error() << "needs the attributes dimension_numbers and slice_sizes";
  // The indices are single numbers.
  auto vector = dyn_cast_or_null<IntegerAttr>(numbers.get("index_vector_dim"));
  auto shape = cast<RankedTensorType>(op->getOperand(1).getType()).getShape();
  if (!vector || vector.getInt() != int64_t(shape.size()) - 1 || shape.back() != 1)
    return graph.error() << "by indices of several numbers is not imported; use one index: "
                            "table[tokens], or jnp.take_along_axis";
  return numbers.get("operand_batching_dims") ? pick(op, numbers, *sizes)
                                              : rowsOf(op, numbers, *sizes);
}

//===--- the table ----------------------------------------------------------===//

Importer::Handler Importer::handlerOf(StringRef name) {
  static const llvm::StringMap<Handler> known = {
      {"chlo.erf", &Importer::errorFunction},
      {"chlo.erfc", &Importer::errorFunction},
      {"chlo.square", &Importer::square},
      {"stablehlo.abs", &Importer::absolute},
      {"stablehlo.add", &Importer::add},
      {"stablehlo.and", &Importer::combine},
      {"stablehlo.broadcast_in_dim", &Importer::broadcast},
      {"stablehlo.compare", &Importer::compare},
      {"stablehlo.concatenate", &Importer::concatenate},
      {"stablehlo.constant", &Importer::constant},
      {"stablehlo.convert", &Importer::convert},
      {"stablehlo.cosine", &Importer::cosine},
      {"stablehlo.divide", &Importer::divide},
      {"stablehlo.dot_general", &Importer::dotGeneral},
      {"stablehlo.exponential", &Importer::exponential},
      {"stablehlo.gather", &Importer::gather},
      {"stablehlo.iota", &Importer::iota},
      {"stablehlo.is_finite", &Importer::isFinite},
      {"stablehlo.log", &Importer::logarithm},
      {"stablehlo.logistic", &Importer::logistic},
      {"stablehlo.maximum", &Importer::maximum},
      {"stablehlo.minimum", &Importer::minimum},
      {"stablehlo.multiply", &Importer::multiply},
      {"stablehlo.negate", &Importer::negate},
      {"stablehlo.not", &Importer::invert},
      {"stablehlo.or", &Importer::combine},
      {"stablehlo.power", &Importer::power},
      {"stablehlo.reduce", &Importer::reduce},
      {"stablehlo.reshape", &Importer::reshape},
      {"stablehlo.rsqrt", &Importer::root},
      {"stablehlo.select", &Importer::select},
      {"stablehlo.sine", &Importer::cosine},
      {"stablehlo.slice", &Importer::slice},
      {"stablehlo.sqrt", &Importer::root},
      {"stablehlo.subtract", &Importer::subtract},
      {"stablehlo.tanh", &Importer::tanh},
      {"stablehlo.transpose", &Importer::transpose},
  };
  return known.lookup(name);
}
