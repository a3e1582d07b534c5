//===- KernelGraph.cpp - expressions of one loop nest -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Kernels/KernelGraph.h"
#include "Train/TensorType.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;
using train::tensor;

SmallVector<std::pair<int64_t, Role>> RootSpec::rowDims() const {
  SmallVector<std::pair<int64_t, Role>> dims;
  auto shape = getType().getShape();
  int64_t count = columnSize() < 0 ? shape.size() : shape.size() - 1;
  for (int64_t d = 0; d < count; ++d)
    dims.push_back(
        {shape[d], columns && llvm::is_contained(reduced, d) ? Role::Sequential : Role::Parallel});
  return dims;
}

int64_t RootSpec::columnSize() const {
  auto shape = getType().getShape();
  return row || shape.empty() ? -1 : shape.back();
}

std::optional<train::Primitive> codegen::primitiveOf(Operation *op) {
  auto primitive = dyn_cast_or_null<train::PrimitiveOpInterface>(op);
  return primitive ? std::optional(primitive.getPrimitive()) : std::nullopt;
}

/// A scalar is wanted by elements if it is broadcast, at once or after scalar
/// arithmetic.
static bool reachesBroadcast(Value scalar, DenseSet<Operation *> &seen) {
  for (Operation *user : scalar.getUsers()) {
    if (!seen.insert(user).second)
      continue;
    if (auto primitive = primitiveOf(user); primitive && primitive->kind == train::Primitive::View)
      return true;
    for (Value result : user->getResults())
      if (tensor(result).getRank() == 0 && reachesBroadcast(result, seen))
        return true;
  }
  return false;
}

bool codegen::isRowReduce(Operation *op) {
  auto reduce = primitiveOf(op);
  if (!reduce || reduce->kind != train::Primitive::Reduce)
    return false;
  int64_t rank = tensor(op->getOperand(0)).getRank();
  if (reduce->dims.size() != 1 || reduce->dims[0] != rank - 1)
    return false;
  DenseSet<Operation *> seen;
  return rank > 1 || reachesBroadcast(op->getResult(0), seen);
}

Node *KernelGraph::create(Node::Kind kind, Value value, ArrayRef<int> map) {
  auto node = std::make_unique<Node>();
  node->kind = kind;
  node->value = value;
  node->op = value.getDefiningOp();
  if (auto primitive = primitiveOf(node->op))
    node->primitive = *primitive;
  if (auto result = dyn_cast<OpResult>(value))
    node->resultIndex = result.getResultNumber();
  node->map.assign(map.begin(), map.end());
  nest.nodes.push_back(std::move(node));
  return nest.nodes.back().get();
}

int KernelGraph::columnOf(int64_t size) {
  for (auto [dim, role] : llvm::enumerate(nest.roles))
    if (role == Role::Column && nest.sizes[dim] == size)
      return dim;
  nest.sizes.push_back(size);
  nest.roles.push_back(Role::Column);
  return nest.sizes.size() - 1;
}

FailureOr<Node *> KernelGraph::get(Value value, ArrayRef<int> map) {
  auto key = std::make_pair(value.getAsOpaquePointer(), SmallVector<int, 4>(map));
  if (auto it = memo.find(key); it != memo.end())
    return it->second;
  FailureOr<Node *> node = build(value, map);
  if (succeeded(node))
    memo[key] = *node;
  return node;
}

FailureOr<Node *> KernelGraph::load(Value value, const Materialized &materialized,
                                    ArrayRef<int> map) {
  level = std::max(level, materialized.level + 1);
  Node *node = create(materialized.partial ? Node::Partials : Node::Load, value, map);
  node->buffer = materialized.buffer;
  return node;
}

FailureOr<Buffer *> KernelGraph::memoryOf(Value value) {
  DenseElementsAttr constant;
  if (auto op = value.getDefiningOp<arith::ConstantOp>())
    constant = dyn_cast<DenseElementsAttr>(op.getValue());
  if (constant || isa<BlockArgument>(value))
    return findBuffer(value, constant);
  FailureOr<Materialized> materialized = materialize(value);
  if (failed(materialized))
    return failure();
  level = std::max(level, materialized->level + 1);
  return materialized->buffer;
}

/// Whether an op has operands or results of float types narrower than f32.
static bool computesNarrowly(Operation *op) {
  auto narrow = [](Type type) {
    Type element = getElementTypeOrSelf(type);
    return train::atLeastF32(element) != element;
  };
  return llvm::any_of(op->getOperandTypes(), narrow) || llvm::any_of(op->getResultTypes(), narrow);
}

FailureOr<Node *> KernelGraph::loadPlaced(Value value, ArrayRef<int> map) {
  FailureOr<Materialized> materialized = materialize(value);
  return failed(materialized) ? FailureOr<Node *>(failure()) : load(value, *materialized, map);
}

FailureOr<Node *> KernelGraph::buildReduce(Value value, ArrayRef<int> map) {
  Operation *op = value.getDefiningOp();
  if (computesNarrowly(op))
    return op->emitOpError("sums in bf16 or f16, but kernels compute in f32: extend its operand "
                           "and round its result");
  bool row = isRowReduce(op);
  if (row && probing && hasColumn(map)) {
    reducedAlongColumns = true;
    return failure();
  }
  if (!row || hasColumn(map) || nest.columns)
    return loadPlaced(value, map);
  int column = columnOf(tensor(op->getOperand(0)).getShape().back());
  SmallVector<int, 4> inner(map);
  inner.push_back(column);
  FailureOr<Node *> operand = get(op->getOperand(0), inner);
  if (failed(operand))
    return failure();
  Node *node = create(Node::RowReduce, value, map);
  node->operands = {*operand};
  node->column = column;
  return node;
}

FailureOr<Node *> KernelGraph::buildHalves(Value value, ArrayRef<int> map) {
  Operation *op = value.getDefiningOp();
  int64_t width = tensor(value).getShape().back();
  if (width % 2)
    return op->emitOpError("needs an even last dimension, found ") << value.getType();
  // What is no row of this loop nest's columns gets a loop nest of its own, as where blocks of
  // columns are summed over rows: those do not end where halves do.
  if (nest.columns || !nest.isColumn(map.back()) || (nest.half && nest.half != width / 2))
    return loadPlaced(value, map);
  nest.half = width / 2;
  FailureOr<Node *> operand = get(op->getOperand(0), map);
  if (failed(operand))
    return failure();
  Node *node = create(Node::Halves, value, map);
  node->operands = {*operand};
  return node;
}

FailureOr<Node *> KernelGraph::buildAccess(Node::Kind kind, Value value, ArrayRef<int> map) {
  Operation *op = value.getDefiningOp();
  FailureOr<Buffer *> buffer = memoryOf(op->getOperand(0));
  if (failed(buffer))
    return failure();
  SmallVector<Node *, 3> operands;
  for (Value materialize : op->getOperands().drop_front()) {
    FailureOr<Node *> node = get(materialize, map.take_front(tensor(materialize).getRank()));
    if (failed(node))
      return failure();
    operands.push_back(*node);
  }
  Node *node = create(kind, value, map);
  node->buffer = *buffer;
  node->operands = std::move(operands);
  return node;
}

FailureOr<Node *> KernelGraph::buildPrimitive(const train::Primitive &primitive, Value value,
                                              ArrayRef<int> map) {
  switch (primitive.kind) {
  case train::Primitive::View: {
    assert(primitive.from == 0 && "is a window by now");
    SmallVector<int, 4> inner;
    for (int64_t dim : primitive.dims)
      inner.push_back(map[dim]);
    return get(value.getDefiningOp()->getOperand(0), inner);
  }
  case train::Primitive::Reduce:
    return buildReduce(value, map);
  case train::Primitive::Iota:
    return create(Node::Iota, value, map);
  case train::Primitive::Gather:
    return buildAccess(Node::Gather, value, map);
  case train::Primitive::Scatter:
    return loadPlaced(value, map);
  case train::Primitive::Pad:
    return buildAccess(Node::Pad, value, map);
  case train::Primitive::Window:
    return buildAccess(Node::Window, value, map);
  case train::Primitive::Halves:
    return buildHalves(value, map);
  }
  llvm_unreachable("all primitives are listed");
}

FailureOr<Node *> KernelGraph::build(Value value, ArrayRef<int> map) {
  if (isa<BlockArgument>(value)) {
    Node *node = create(Node::Load, value, map);
    node->buffer = findBuffer(value, {});
    return node;
  }
  if (auto it = available.find(value); it != available.end())
    return load(value, it->second, map);
  Operation *op = value.getDefiningOp();

  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
    if (!elements)
      return op->emitOpError("in a kernel must be dense");
    Node *node = create(elements.isSplat() ? Node::Splat : Node::Load, value, map);
    if (!elements.isSplat())
      node->buffer = findBuffer(value, elements);
    return node;
  }

  if (auto primitive = primitiveOf(op))
    return buildPrimitive(*primitive, value, map);

  if (!op->hasTrait<OpTrait::Elementwise>() || op->getNumRegions() != 0)
    return op->emitOpError("cannot be part of a generated kernel: expected element-wise arith and "
                           "math ops and train's kernel primitives");
  if (!isa<arith::ExtFOp, arith::TruncFOp, arith::SelectOp>(op) && computesNarrowly(op))
    return op->emitOpError("computes in bf16 or f16, but kernels compute in f32: extend its "
                           "operands and round its results");
  SmallVector<Node *, 3> operands;
  for (Value operand : op->getOperands()) {
    FailureOr<Node *> node = get(operand, map);
    if (failed(node))
      return failure();
    operands.push_back(*node);
  }
  Node *node = create(Node::Compute, value, map);
  node->operands = std::move(operands);
  return node;
}

LogicalResult KernelGraph::add(const RootSpec &spec) {
  auto rows = spec.rowDims();
  int64_t width = spec.columnSize();
  if (nest.nodes.empty() && nest.sizes.empty()) {
    nest.columns = spec.columns;
    for (auto [size, role] : rows) {
      nest.sizes.push_back(size);
      nest.roles.push_back(role);
    }
    if (width >= 0) {
      nest.mainColumn = nest.sizes.size();
      nest.sizes.push_back(width);
      nest.roles.push_back(Role::Column);
    }
  }
  SmallVector<int, 4> map = llvm::to_vector<4>(llvm::seq<int>(0, rows.size()));
  if (width >= 0)
    map.push_back(nest.mainColumn);
  FailureOr<Node *> node = get(spec.value, map);
  if (failed(node))
    return failure();
  Root root{spec.kind};
  root.node = *node;
  root.dest = spec.dest;
  root.reduction = spec.reduction;
  root.row = width < 0;
  root.skipWhenInPlace = spec.skipWhenInPlace;
  for (auto [d, dim] : llvm::enumerate(map))
    if (!llvm::is_contained(spec.reduced, int64_t(d)))
      root.map.push_back(dim);
  if (spec.ids) {
    FailureOr<Node *> ids =
        get(spec.ids, ArrayRef<int>(map).take_front(tensor(spec.ids).getRank()));
    if (failed(ids))
      return failure();
    root.ids = *ids;
  }
  nest.roots.push_back(root);
  return success();
}
