//===- LoopNestValues.cpp - what a loop nest's expressions become -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/LoopNestValues.h"
#include "Codegen/VectorMath.h"

#include "mlir/IR/IRMapping.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

LoopNestValues::Carried
LoopNestValues::forLoop(Value low, Value high, Value step, ValueRange start,
                        llvm::function_ref<Carried(Value, ValueRange)> body) {
  auto loop = scf::ForOp::create(b, loc, low, high, step, start);
  OpBuilder::InsertionGuard guard(b);
  // Without carried values the terminator is there already.
  Block *block = loop.getBody();
  if (start.empty())
    b.setInsertionPoint(block->getTerminator());
  else
    b.setInsertionPointToEnd(block);
  Carried next = body(loop.getInductionVar(), loop.getRegionIterArgs());
  if (!start.empty())
    scf::YieldOp::create(b, loc, next);
  return Carried(loop.getResults());
}

void LoopNestValues::guarded(Value condition, llvm::function_ref<void()> body) {
  if (!condition)
    return body();
  auto branch = scf::IfOp::create(b, loc, condition);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(branch.thenBlock()->getTerminator());
  body();
}

void LoopNestValues::decompose(Value index, Role role) {
  indices.resize(nest.sizes.size());
  for (int dim = int(nest.sizes.size()) - 1; dim >= 0; --dim) {
    if (nest.roles[dim] != role)
      continue;
    bool outermost = true;
    for (int before = 0; before < dim; ++before)
      outermost &= nest.roles[before] != role;
    Value size = constant(nest.sizes[dim]);
    indices[dim] = outermost ? index : Value(arith::RemUIOp::create(b, loc, index, size));
    if (!outermost)
      index = arith::DivUIOp::create(b, loc, index, size);
  }
}

unsigned LoopNestValues::loopCount() const {
  unsigned loops = 0;
  for (const Root &root : nest.roots)
    loops = std::max(loops, loopOf(nest, root) + (root.row ? 0 : 1));
  for (Node *reduce : rowReductions(nest))
    loops = std::max(loops, reduce->depth);
  return loops;
}

void LoopNestValues::evalChunkValues() {
  forEachEvaluation(nest, [&](Node *node, unsigned, bool) {
    if (node->scope == Scope::Chunk)
      eval(node, nullptr);
    return node->scope != Scope::Chunk;
  });
}

void LoopNestValues::evalRowValues(unsigned loop) {
  forEachEvaluation(nest, [&](Node *node, unsigned when, bool) {
    if (when == loop && node->scope != Scope::Column && node->kind != Node::RowReduce) {
      eval(node, nullptr);
      return false;
    }
    return true;
  });
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value LoopNestValues::destination(const Root &root, const Columns *columns) {
  auto type = root.dest->type;
  Value inside = offset(root.map, type, columns);
  bool perChunk = !nest.columns && (root.kind == Root::ColumnSum || root.kind == Root::FullSum);
  Value row;
  if (perChunk)
    row = chunk;
  if (root.kind == Root::Scatter) {
    // Of an id that is no row, `emitRoot` adds zeros to row 0.
    Value id = eval(root.ids, nullptr);
    Value zero = arith::ConstantIntOp::create(b, loc, 0, 32);
    id = arith::SelectOp::create(b, loc, rowExists(id, type.getDimSize(0)), id, zero);
    row = arith::ExtSIOp::create(b, loc, b.getI64Type(), id);
  }
  if (row) {
    int64_t rowSize = type.getNumElements() / type.getDimSize(0);
    inside = arith::AddIOp::create(b, loc, inside,
                                   arith::MulIOp::create(b, loc, row, constant(rowSize)));
  }
  return element(pointer(root.dest), registerType(type.getElementType()), inside);
}

void LoopNestValues::emitRoot(const Root &root, const Columns &columns, Value value) {
  Value address = destination(root, &columns);
  if (root.kind != Root::Store) {
    auto kind = root.kind == Root::Scatter ? train::ReduceKind::Sum : root.reduction;
    if (root.kind == Root::Scatter)
      value = arith::SelectOp::create(
          b, loc, rowExists(eval(root.ids, nullptr), root.dest->type.getDimSize(0)), value,
          arith::ConstantOp::create(b, loc, b.getZeroAttr(value.getType())));
    Type element = root.dest->type.getElementType();
    Value before = widened(element, load(address, registerType(element), &columns));
    value = narrowed(element, combine(kind, before, value));
  }
  store(value, address, &columns);
}

Value LoopNestValues::constant(int64_t value) {
  return arith::ConstantIntOp::create(b, loc, value, 64);
}

Value LoopNestValues::splat(Value scalar) {
  return isa<VectorType>(scalar.getType())
             ? scalar
             : Value(vector::BroadcastOp::create(b, loc, vectorOf(scalar.getType()), scalar));
}

Value LoopNestValues::element(Value base, Type type, Value offset) {
  return LLVM::GEPOp::create(b, loc, base.getType(), type, base, ValueRange{offset});
}

Value LoopNestValues::offset(ArrayRef<int> map, RankedTensorType type, const Columns *columns,
                             Value replaced, int at) {
  Value sum = constant(0);
  int64_t stride = 1;
  auto shape = type.getShape().take_back(map.size());
  for (int64_t d = int64_t(map.size()) - 1; d >= 0; stride *= shape[d--]) {
    int dim = map[d];
    Value index;
    if (nest.isMerged(dim) && dim != nest.mainColumn)
      continue; // part of the column's index
    if (d == at && replaced)
      index = replaced;
    else if (nest.isColumn(dim))
      index = columns->shift
                  ? Value(arith::AddIOp::create(b, loc, columns->index, constant(columns->shift)))
                  : columns->index;
    else
      index = indices[dim];
    if (stride != 1)
      index = arith::MulIOp::create(b, loc, index, constant(stride));
    sum = arith::AddIOp::create(b, loc, sum, index);
  }
  return sum;
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

Value LoopNestValues::neutral(train::ReduceKind kind, Type type) {
  auto element = getElementTypeOrSelf(type);
  double value = kind == train::ReduceKind::Max ? -INFINITY : 0.0;
  TypedAttr scalar = b.getFloatAttr(element, value);
  if (auto vector = dyn_cast<VectorType>(type))
    scalar = DenseElementsAttr::get(vector, Attribute(scalar));
  return arith::ConstantOp::create(b, loc, scalar);
}

Value LoopNestValues::combine(train::ReduceKind kind, Value x, Value y) {
  if (kind == train::ReduceKind::Max)
    return arith::MaximumFOp::create(b, loc, x, y);
  return arith::AddFOp::create(b, loc, x, y, contract);
}

/// bf16 and f16, in which nothing is computed.
static FloatType narrowFloat(Type element) {
  auto type = dyn_cast<FloatType>(element);
  return type && type.getWidth() < 32 ? type : FloatType();
}

Value LoopNestValues::widened(Type element, Value value) {
  FloatType narrow = narrowFloat(element);
  return narrow ? extend(narrow, value) : value;
}

Value LoopNestValues::narrowed(Type element, Value value) {
  FloatType narrow = narrowFloat(element);
  return narrow ? round(narrow, value) : value;
}

Value LoopNestValues::horizontal(train::ReduceKind kind, Value vector) {
  int64_t width = cast<VectorType>(vector.getType()).getNumElements();
  for (; width > 1; width /= 2) {
    auto lower = llvm::to_vector(llvm::seq<int64_t>(0, width / 2));
    auto upper = llvm::to_vector(llvm::seq<int64_t>(width / 2, width));
    vector = combine(kind, vector::ShuffleOp::create(b, loc, vector, vector, lower),
                     vector::ShuffleOp::create(b, loc, vector, vector, upper));
  }
  return vector::ExtractOp::create(b, loc, vector, 0);
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

Value LoopNestValues::laneIndex(const Columns &columns, Type element) {
  Value first = columns.index;
  if (columns.shift)
    first = arith::AddIOp::create(b, loc, first, constant(columns.shift));
  if (!element.isInteger(64))
    first = arith::TruncIOp::create(b, loc, element, first);
  auto type = vectorOf(element);
  SmallVector<Attribute> steps;
  for (unsigned lane = 0; lane < lanes; ++lane)
    steps.push_back(b.getIntegerAttr(element, lane));
  Value step = arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, steps));
  return arith::AddIOp::create(b, loc, splat(first), step);
}

Value LoopNestValues::eval(Node *node, const Columns *columns) {
  if (node->scope != Scope::Column) {
    auto it = scalars.find(node);
    if (it != scalars.end())
      return it->second;
    Value value = build(node, nullptr);
    return scalars[node] = value;
  }
  Value &known = (*columns->memo)[{node, columns->shift}];
  if (known)
    return known;
  Value value;
  if (node->keptBy >= 0 && unsigned(node->keptBy) < columns->loop && !columns->shift)
    value = kept(node, *columns);
  if (!value)
    value = build(node, columns);
  return (*columns->memo)[{node, columns->shift}] = value;
}

Value LoopNestValues::build(Node *node, const Columns *columns) {
  Type type = registerType(node->getElementType());
  switch (node->kind) {
  case Node::Load:
    return load(
        element(pointer(node->buffer), type, offset(node->map, node->buffer->type, columns)), type,
        columns);
  case Node::Splat: {
    auto constant = cast<arith::ConstantOp>(node->op);
    auto value = cast<DenseElementsAttr>(constant.getValue()).getSplatValue<TypedAttr>();
    if (type != node->getElementType()) // held as its bits
      value = IntegerAttr::get(type, cast<FloatAttr>(value).getValue().bitcastToAPInt());
    return arith::ConstantOp::create(b, loc, value);
  }
  case Node::Iota: {
    int dim = node->map[node->primitive.dim];
    if (nest.isColumn(dim))
      return laneIndex(*columns, b.getI32Type());
    return arith::TruncIOp::create(b, loc, b.getI32Type(), indices[dim]);
  }
  case Node::Halves: {
    auto [from, negated] = node->primitive.halves[columns->half];
    Columns moved = *columns;
    moved.shift += (from - columns->half) * nest.half;
    moved.half = from;
    Value value = splat(eval(node->operands[0], &moved));
    return negated ? Value(arith::NegFOp::create(b, loc, value)) : value;
  }
  case Node::Gather:
    return gather(node, columns);
  case Node::Pad:
    return pad(node, columns);
  case Node::Window:
    return window(node, columns);
  case Node::Partials:
    return partials(node, columns);
  case Node::Compute:
    return compute(node, columns);
  case Node::RowReduce:
    break;
  }
  llvm_unreachable("row reductions are evaluated by their loop");
}

Value LoopNestValues::compute(Node *node, const Columns *columns) {
  IRMapping operands;
  for (auto [operand, value] : llvm::zip(node->operands, node->op->getOperands())) {
    Value built = eval(operand, columns);
    operands.map(value, columns ? splat(built) : built);
  }
  // Conversions are exact or round to nearest; nothing is fused with them.
  if (isa<arith::ExtFOp, arith::TruncFOp>(node->op)) {
    Value operand = node->op->getOperand(0), value = operands.lookup(operand);
    auto from = cast<FloatType>(getElementTypeOrSelf(operand.getType()));
    auto to = cast<FloatType>(node->getElementType());
    if (from.getWidth() < 32)
      return extend(from, value);
    if (to.getWidth() < 32)
      return round(to, value);
  }
  Operation *op = b.clone(*node->op, operands);
  for (OpResult result : op->getResults()) {
    Type element = registerType(getElementTypeOrSelf(result.getType()));
    result.setType(columns ? Type(vectorOf(element)) : element);
  }
  // Multiply-adds are fused; nothing is reordered.
  if (auto fast = dyn_cast<arith::ArithFastMathInterface>(op))
    op->setAttr(fast.getFastMathAttrName(),
                arith::FastMathFlagsAttr::get(b.getContext(), contract));
  return op->getResult(node->resultIndex);
}

Value LoopNestValues::rowExists(Value id, int64_t count) {
  TypedAttr rows = b.getI32IntegerAttr(int32_t(count));
  if (auto vector = dyn_cast<VectorType>(id.getType()))
    rows = DenseElementsAttr::get(vector, Attribute(rows));
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, id,
                               arith::ConstantOp::create(b, loc, rows));
}

Value LoopNestValues::gather(Node *node, const Columns *columns) {
  Node *ids = node->operands[0];
  auto type = node->buffer->type;
  auto rest = ArrayRef<int>(node->map).drop_front(ids->map.size());
  int64_t rowSize = 1;
  for (int64_t size : type.getShape().take_back(rest.size()))
    rowSize *= size;
  Type elementType = registerType(node->getElementType());
  Value id = eval(ids, columns);
  // A row that does not exist is zero; row 0 is read in its place.
  Value exists = rowExists(id, type.getNumElements() / rowSize);
  id = arith::SelectOp::create(b, loc, exists, id,
                               arith::ConstantOp::create(b, loc, b.getZeroAttr(id.getType())));
  Value inside = offset(rest, type, columns);
  Type wide = b.getI64Type();
  if (ids->scope != Scope::Column) {
    Value row =
        arith::MulIOp::create(b, loc, arith::ExtSIOp::create(b, loc, wide, id), constant(rowSize));
    Value value = load(
        element(pointer(node->buffer), elementType, arith::AddIOp::create(b, loc, row, inside)),
        elementType, node->scope == Scope::Column ? columns : nullptr);
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(value.getType()));
    return arith::SelectOp::create(b, loc, exists, value, zero);
  }
  // Each lane has a row of its own.
  Value rows = arith::MulIOp::create(b, loc, arith::ExtSIOp::create(b, loc, vectorOf(wide), id),
                                     splat(constant(rowSize)));
  Value offsets = arith::AddIOp::create(b, loc, rows, splat(inside));
  Value value = loadLanes(pointer(node->buffer), elementType, offsets, *columns);
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(value.getType()));
  return arith::SelectOp::create(b, loc, exists, value, zero);
}

Value LoopNestValues::pad(Node *node, const Columns *columns) {
  const train::Primitive &op = node->primitive;
  auto type = node->buffer->type;
  Type elementType = registerType(node->getElementType());
  Value base = pointer(node->buffer);
  Value rows = constant(type.getDimSize(op.dim));
  int dim = node->map[op.dim];
  // What lies before x is far beyond its end as a number without a sign.
  Value inside, value, from = constant(op.from);
  auto behind = [&](Value index, Value first) {
    return op.from ? Value(arith::SubIOp::create(b, loc, index, first)) : index;
  };
  if (nest.isColumn(dim)) {
    Value index = behind(laneIndex(*columns, b.getI64Type()), splat(from));
    inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, index, splat(rows));
    value = load(element(base, elementType, behind(offset(node->map, type, columns), from)),
                 elementType, columns, inside);
  } else {
    Value index = behind(indices[dim], from);
    inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, index, rows);
    Value row = arith::SelectOp::create(b, loc, inside, index, constant(0));
    value = load(element(base, elementType, offset(node->map, type, columns, row, op.dim)),
                 elementType, node->scope == Scope::Column ? columns : nullptr);
  }
  TypedAttr outside;
  if (auto real = dyn_cast<FloatType>(node->getElementType())) {
    auto number = b.getFloatAttr(real, double(op.value));
    outside = number;
    if (!isa<FloatType>(elementType)) // its bits
      outside = IntegerAttr::get(elementType, number.getValue().bitcastToAPInt());
  } else {
    outside = b.getIntegerAttr(elementType, op.value);
  }
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    outside = DenseElementsAttr::get(vector, Attribute(outside));
  return arith::SelectOp::create(b, loc, inside, value,
                                 arith::ConstantOp::create(b, loc, outside));
}

Value LoopNestValues::window(Node *node, const Columns *columns) {
  auto type = node->buffer->type;
  int64_t stride = 1;
  for (int64_t size : type.getShape().drop_front(node->primitive.dim + 1))
    stride *= size;
  Value begin = arith::ExtSIOp::create(b, loc, b.getI64Type(), eval(node->operands[0], columns));
  Value at = arith::AddIOp::create(b, loc, offset(node->map, type, columns),
                                   arith::MulIOp::create(b, loc, begin, constant(stride)));
  Type elementType = registerType(node->getElementType());
  return load(element(pointer(node->buffer), elementType, at), elementType, columns);
}

/// The sum of all chunks' partial results, in their order.
Value LoopNestValues::partials(Node *node, const Columns *columns) {
  auto type = node->buffer->type;
  Type elementType = node->getElementType();
  auto kind = node->primitive.reduction;
  int64_t stride = type.getNumElements() / type.getDimSize(0);
  Value start = offset(node->map, type, columns);
  Value base = pointer(node->buffer);
  Value initial = neutral(kind, columns ? Type(vectorOf(elementType)) : elementType);
  auto loop = scf::ForOp::create(
      b, loc, constant(0), constant(type.getDimSize(0)), constant(1), ValueRange{initial},
      [&](OpBuilder &, Location, Value chunk, ValueRange sums) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToEnd(chunk.getParentBlock());
        Value at = arith::AddIOp::create(b, loc, start,
                                         arith::MulIOp::create(b, loc, chunk, constant(stride)));
        Value part = load(element(base, elementType, at), elementType, columns);
        scf::YieldOp::create(b, loc, combine(kind, sums[0], part));
      });
  return loop.getResult(0);
}
