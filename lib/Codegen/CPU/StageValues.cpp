//===- StageValues.cpp - the values of a stage ------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CPU/StageEmitter.h"

#include "mlir/IR/IRMapping.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;
using namespace meshwright::codegen::cpu;

static constexpr auto contract = arith::FastMathFlags::contract;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value StageEmitter::constant(int64_t value) {
  return arith::ConstantIntOp::create(b, loc, value, 64);
}

Value StageEmitter::splat(Value scalar) {
  return isa<VectorType>(scalar.getType())
             ? scalar
             : Value(vector::BroadcastOp::create(b, loc, vectorOf(scalar.getType()), scalar));
}

Value StageEmitter::pointer(Buffer *buffer) {
  Value &known = pointers[buffer];
  if (known)
    return known;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&function.getBody().front());
  auto ptr = LLVM::LLVMPointerType::get(b.getContext());
  if (buffer->kind == Buffer::Constant) {
    auto type =
        LLVM::LLVMArrayType::get(buffer->type.getElementType(), buffer->type.getNumElements());
    std::string name = (function.getName() + ".constant" + Twine(pointers.size())).str();
    OpBuilder atModule = OpBuilder::atBlockBegin(module.getBody());
    auto flat = buffer->constant.reshape(
        RankedTensorType::get({buffer->type.getNumElements()}, buffer->type.getElementType()));
    LLVM::GlobalOp::create(atModule, loc, type, /*isConstant=*/true, LLVM::Linkage::Private, name,
                           flat, /*alignment=*/64);
    return known = LLVM::AddressOfOp::create(b, loc, ptr, name);
  }
  func::FuncOp kernel = plan.function;
  unsigned index = buffer->index;
  if (buffer->kind == Buffer::Result)
    index += kernel.getNumArguments();
  if (buffer->kind == Buffer::Workspace)
    index = kernel.getNumArguments() + kernel.getNumResults();
  Value slot =
      LLVM::GEPOp::create(b, loc, ptr, ptr, buffers, ArrayRef<LLVM::GEPArg>{int32_t(index)});
  known = LLVM::LoadOp::create(b, loc, ptr, slot);
  if (buffer->kind == Buffer::Workspace && buffer->offset)
    known = LLVM::GEPOp::create(b, loc, ptr, b.getI8Type(), known,
                                ValueRange{constant(buffer->offset)});
  return known;
}

Value StageEmitter::element(Value base, Type type, Value offset) {
  return LLVM::GEPOp::create(b, loc, base.getType(), type, base, ValueRange{offset});
}

Value StageEmitter::offset(ArrayRef<int> map, RankedTensorType type, const Columns *columns,
                           Value replaced, int at) {
  Value sum = constant(0);
  int64_t stride = 1;
  auto shape = type.getShape().take_back(map.size());
  for (int64_t d = int64_t(map.size()) - 1; d >= 0; stride *= shape[d--]) {
    int dim = map[d];
    Value index;
    if (stage.isMerged(dim) && dim != stage.mainColumn)
      continue; // part of the column's index
    if (d == at && replaced)
      index = replaced;
    else if (stage.isColumn(dim))
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

Value StageEmitter::load(Value address, Type type, const Columns *columns, Value extraMask) {
  if (!columns)
    return LLVM::LoadOp::create(b, loc, type, address, /*alignment=*/4);
  auto vector = vectorOf(type);
  Value mask = columns->mask;
  if (extraMask)
    mask = mask ? Value(arith::AndIOp::create(b, loc, mask, extraMask)) : extraMask;
  if (!mask)
    return LLVM::LoadOp::create(b, loc, vector, address, /*alignment=*/4);
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(vector));
  return LLVM::MaskedLoadOp::create(b, loc, vector, address, mask, zero,
                                    /*alignment=*/4);
}

void StageEmitter::store(Value value, Value address, const Columns *columns) {
  if (columns && columns->mask)
    LLVM::MaskedStoreOp::create(b, loc, value, address, columns->mask, b.getI32IntegerAttr(4));
  else
    LLVM::StoreOp::create(b, loc, value, address, /*alignment=*/4);
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

Value StageEmitter::neutral(train::ReduceKind kind, Type type) {
  auto element = getElementTypeOrSelf(type);
  double value = kind == train::ReduceKind::Max ? -INFINITY : 0.0;
  TypedAttr scalar = b.getFloatAttr(element, value);
  if (auto vector = dyn_cast<VectorType>(type))
    scalar = DenseElementsAttr::get(vector, Attribute(scalar));
  return arith::ConstantOp::create(b, loc, scalar);
}

Value StageEmitter::combine(train::ReduceKind kind, Value x, Value y) {
  if (kind == train::ReduceKind::Max)
    return arith::MaximumFOp::create(b, loc, x, y);
  return arith::AddFOp::create(b, loc, x, y, contract);
}

Value StageEmitter::horizontal(train::ReduceKind kind, Value vector) {
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

Value StageEmitter::laneIndex(const Columns &columns, Type element) {
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

Value StageEmitter::eval(Node *node, const Columns *columns) {
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
    value = load(element(scratch.lookup(node), node->getElementType(), columns->index),
                 node->getElementType(), columns);
  else
    value = build(node, columns);
  return (*columns->memo)[{node, columns->shift}] = value;
}

Value StageEmitter::build(Node *node, const Columns *columns) {
  switch (node->kind) {
  case Node::Load:
    return load(element(pointer(node->buffer), node->getElementType(),
                        offset(node->map, node->buffer->type, columns)),
                node->getElementType(), columns);
  case Node::Splat: {
    auto constant = cast<arith::ConstantOp>(node->op);
    auto value = cast<DenseElementsAttr>(constant.getValue()).getSplatValue<TypedAttr>();
    return arith::ConstantOp::create(b, loc, value);
  }
  case Node::Iota: {
    int dim = node->map[cast<train::IotaOp>(node->op).getDim()];
    if (stage.isColumn(dim))
      return laneIndex(*columns, b.getI32Type());
    return arith::TruncIOp::create(b, loc, b.getI32Type(), indices[dim]);
  }
  case Node::Rotate:
  case Node::Duplicate: {
    // (a, c) -> (-c, a); (a) -> (a, a).
    bool rotate = node->kind == Node::Rotate, second = columns->half == 1;
    Columns moved = *columns;
    if (second) {
      moved.shift -= stage.half;
      moved.half = 0;
    } else if (rotate) {
      moved.shift += stage.half;
      moved.half = 1;
    }
    Value value = eval(node->operands[0], &moved);
    return rotate && !second ? Value(arith::NegFOp::create(b, loc, splat(value))) : splat(value);
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

Value StageEmitter::compute(Node *node, const Columns *columns) {
  IRMapping operands;
  for (auto [operand, value] : llvm::zip(node->operands, node->op->getOperands())) {
    Value built = eval(operand, columns);
    operands.map(value, columns ? splat(built) : built);
  }
  Operation *op = b.clone(*node->op, operands);
  for (OpResult result : op->getResults()) {
    Type element = getElementTypeOrSelf(result.getType());
    result.setType(columns ? Type(vectorOf(element)) : element);
  }
  // Multiply-adds are fused; nothing is reordered.
  if (auto fast = dyn_cast<arith::ArithFastMathInterface>(op))
    op->setAttr(fast.getFastMathAttrName(),
                arith::FastMathFlagsAttr::get(b.getContext(), contract));
  return op->getResult(node->resultIndex);
}

Value StageEmitter::rowExists(Value id, RankedTensorType table) {
  TypedAttr rows = b.getI32IntegerAttr(int32_t(table.getDimSize(0)));
  if (auto vector = dyn_cast<VectorType>(id.getType()))
    rows = DenseElementsAttr::get(vector, Attribute(rows));
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, id,
                               arith::ConstantOp::create(b, loc, rows));
}

Value StageEmitter::gather(Node *node, const Columns *columns) {
  Node *ids = node->operands[0];
  auto type = node->buffer->type;
  int64_t rowSize = 1;
  for (int64_t size : type.getShape().drop_front())
    rowSize *= size;
  Value id = eval(ids, columns);
  // A row that does not exist is zero; row 0 is read in its place.
  Value exists = rowExists(id, type);
  id = arith::SelectOp::create(b, loc, exists, id,
                               arith::ConstantOp::create(b, loc, b.getZeroAttr(id.getType())));
  auto rest = ArrayRef<int>(node->map).drop_front(ids->map.size());
  Value inside = offset(rest, type, columns);
  Type wide = b.getI64Type();
  if (ids->scope != Scope::Column) {
    Value row =
        arith::MulIOp::create(b, loc, arith::ExtSIOp::create(b, loc, wide, id), constant(rowSize));
    Value value = load(element(pointer(node->buffer), node->getElementType(),
                               arith::AddIOp::create(b, loc, row, inside)),
                       node->getElementType(), node->scope == Scope::Column ? columns : nullptr);
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(value.getType()));
    return arith::SelectOp::create(b, loc, exists, value, zero);
  }
  // Each lane has a row of its own.
  Value rows = arith::MulIOp::create(b, loc, arith::ExtSIOp::create(b, loc, vectorOf(wide), id),
                                     splat(constant(rowSize)));
  Value offsets = arith::AddIOp::create(b, loc, rows, splat(inside));
  auto pointersType = vectorOf(LLVM::LLVMPointerType::get(b.getContext()));
  Value addresses = LLVM::GEPOp::create(b, loc, pointersType, node->getElementType(),
                                        pointer(node->buffer), ValueRange{offsets});
  auto vector = vectorOf(node->getElementType());
  Value mask = exists;
  if (columns->mask)
    mask = arith::AndIOp::create(b, loc, mask, columns->mask);
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(vector));
  return LLVM::masked_gather::create(b, loc, vector, addresses, mask, ValueRange{zero},
                                     b.getI32IntegerAttr(4));
}

Value StageEmitter::pad(Node *node, const Columns *columns) {
  auto op = cast<train::PadOp>(node->op);
  auto type = node->buffer->type;
  Type elementType = node->getElementType();
  Value base = pointer(node->buffer);
  Value rows = constant(type.getDimSize(op.getDim()));
  int dim = node->map[op.getDim()];
  Value inside, value;
  if (stage.isColumn(dim)) {
    inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                   laneIndex(*columns, b.getI64Type()), splat(rows));
    value = load(element(base, elementType, offset(node->map, type, columns)), elementType, columns,
                 inside);
  } else {
    inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, indices[dim], rows);
    Value row = arith::SelectOp::create(b, loc, inside, indices[dim], constant(0));
    value = load(element(base, elementType, offset(node->map, type, columns, row, op.getDim())),
                 elementType, node->scope == Scope::Column ? columns : nullptr);
  }
  TypedAttr outside = isa<FloatType>(elementType)
                          ? TypedAttr(b.getFloatAttr(elementType, double(int64_t(op.getValue()))))
                          : TypedAttr(b.getIntegerAttr(elementType, int64_t(op.getValue())));
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    outside = DenseElementsAttr::get(vector, Attribute(outside));
  return arith::SelectOp::create(b, loc, inside, value,
                                 arith::ConstantOp::create(b, loc, outside));
}

Value StageEmitter::window(Node *node, const Columns *columns) {
  auto type = node->buffer->type;
  int64_t stride = 1;
  for (int64_t size : type.getShape().drop_front(cast<train::DynamicSliceOp>(node->op).getDim() + 1))
    stride *= size;
  Value begin = arith::ExtSIOp::create(b, loc, b.getI64Type(), eval(node->operands[0], columns));
  Value at = arith::AddIOp::create(b, loc, offset(node->map, type, columns),
                                   arith::MulIOp::create(b, loc, begin, constant(stride)));
  return load(element(pointer(node->buffer), node->getElementType(), at), node->getElementType(),
              columns);
}

/// The sum of all chunks' partial results, in their order.
Value StageEmitter::partials(Node *node, const Columns *columns) {
  auto type = node->buffer->type;
  Type elementType = node->getElementType();
  auto kind = cast<train::ReduceOp>(node->op).getKind();
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
