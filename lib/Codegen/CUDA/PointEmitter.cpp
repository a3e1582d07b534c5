//===- PointEmitter.cpp - loop nests whose threads have vectors of their own ---===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CUDA/LoopNestEmitter.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <list>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;
using namespace meshwright::codegen::cuda;

//===----------------------------------------------------------------------===//
// Vectors
//===----------------------------------------------------------------------===//

LoopNestEmitter::Carried LoopNestEmitter::emitVectorsOf(int half, ArrayRef<Value> numbers,
                                                        ArrayRef<Value> carried,
                                                        const Memo &known) {
  bool hasColumns = nest.mainColumn >= 0;
  struct Vector {
    Columns columns;
    Memo memo;
    SmallVector<Value> indices, values;
  };
  std::list<Vector> vectors;
  // All values before any store: a result may lie where an argument does, and loads
  // that come first are on their way together.
  for (Value number : numbers) {
    Vector &vector = vectors.emplace_back();
    Value row = number, index;
    if (hasColumns) {
      index = number;
      if (nest.rows(Role::Parallel) > 1) {
        int64_t perRow = nest.columnSize / lanes;
        row = arith::DivUIOp::create(b, loc, number, constant(perRow));
        index = arith::RemUIOp::create(b, loc, number, constant(perRow));
      } else {
        row = constant(0);
      }
      index = arith::MulIOp::create(b, loc, index, constant(lanes));
    }
    decompose(row, Role::Parallel);
    // Values of the row belong to this vector, and to one half only.
    auto outer = scalars;
    evalRowValues(0);
    vector.memo = known;
    vector.columns.index = index;
    vector.columns.half = half;
    vector.columns.memo = &vector.memo;
    for (const Root &root : nest.roots)
      vector.values.push_back(hasColumns ? splat(eval(root.node, &vector.columns))
                                         : eval(root.node, nullptr));
    vector.indices = indices;
    scalars = outer;
  }
  Carried sums(carried);
  for (Vector &vector : vectors) {
    indices = vector.indices;
    unsigned sum = 0;
    for (auto [root, value] : llvm::zip(nest.roots, vector.values)) {
      if (root.kind == Root::FullSum) {
        sums[sum] = combine(root.reduction, sums[sum], value);
        ++sum;
      } else if (hasColumns) {
        emitRoot(root, vector.columns, value);
      } else {
        store(value, destination(root, nullptr), nullptr);
      }
    }
  }
  return sums;
}

LoopNestEmitter::Carried LoopNestEmitter::emitVectors(ArrayRef<Value> numbers,
                                                      ArrayRef<Value> carried, const Memo &known) {
  if (!nest.half)
    return emitVectorsOf(0, numbers, carried, known);
  assert(numbers.size() == 1 && "vectors of two halves take different branches");
  Value inRow = arith::RemUIOp::create(b, loc, numbers.front(), constant(nest.columnSize / lanes));
  auto branch = scf::IfOp::create(b, loc, ValueRange(carried).getTypes(),
                                  less(inRow, constant(nest.half / lanes)),
                                  /*withElseRegion=*/true);
  for (int half : {0, 1}) {
    OpBuilder::InsertionGuard guard(b);
    Block *block = half ? branch.elseBlock() : branch.thenBlock();
    if (carried.empty())
      b.setInsertionPoint(block->getTerminator());
    else
      b.setInsertionPointToEnd(block);
    Carried next = emitVectorsOf(half, numbers, carried, known);
    if (!carried.empty())
      scf::YieldOp::create(b, loc, next);
  }
  return Carried(branch.getResults());
}

//===----------------------------------------------------------------------===//
// Points
//===----------------------------------------------------------------------===//

void LoopNestEmitter::emitPoints() {
  if (!rootsOf(Root::FullSum).empty())
    return emitChunkOfPoints();
  if (shape.parts > 1)
    return emitSharedColumns();
  // Neighbouring threads have neighbouring vectors.
  int64_t ofBlock = shape.threads * shape.vectors;
  Value first = arith::MulIOp::create(b, loc, block, constant(ofBlock));
  SmallVector<Value> numbers;
  for (int64_t i = 0; i < shape.vectors; ++i) {
    Value number = arith::AddIOp::create(b, loc, first, constant(i * shape.threads));
    numbers.push_back(arith::AddIOp::create(b, loc, number, thread));
  }
  bool full = llvm::all_of(nests, [&](const LoopNest *member) {
    return member->rows(Role::Parallel) * member->columnSize / lanes % ofBlock == 0;
  });
  if (full) {
    emitVectors(numbers, {});
    return;
  }
  if (numbers.size() == 1)
    return guarded(less(numbers.front(), points), [&] { emitVectors(numbers, {}); });
  // The last block of a loop nest takes its vectors one by one.
  Value end = arith::AddIOp::create(b, loc, first, constant(ofBlock));
  auto last = scf::IfOp::create(b, loc, less(points, end), /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(last.thenBlock()->getTerminator());
  for (Value number : numbers)
    guarded(less(number, points), [&] { emitVectors({number}, {}); });
  b.setInsertionPoint(last.elseBlock()->getTerminator());
  emitVectors(numbers, {});
}

void LoopNestEmitter::emitChunkOfPoints() {
  auto sums = rootsOf(Root::FullSum);
  // Chunks of equal size; the last may be shorter.
  Value size = chunkSize;
  Value begin = arith::MulIOp::create(b, loc, chunk, size);
  Value end = arith::MinSIOp::create(b, loc, arith::AddIOp::create(b, loc, begin, size), points);
  Value mine = arith::AddIOp::create(b, loc, begin, thread);
  Carried start;
  for (const Root *root : sums) {
    Type type = b.getF32Type();
    start.push_back(neutral(root->reduction, nest.mainColumn < 0 ? type : Type(vectorOf(type))));
  }
  if (shape.vectors > 1) {
    // Several vectors at once as long as there are as many; how far this came is
    // carried in front of the sums.
    int64_t step = shape.threads * shape.vectors;
    Value whole = arith::SubIOp::create(b, loc, end, constant(step - shape.threads));
    Carried carried{mine};
    carried.append(start);
    Carried ends = forLoop(mine, whole, constant(step), carried, [&](Value number, ValueRange in) {
      SmallVector<Value> numbers;
      for (int64_t i = 0; i < shape.vectors; ++i)
        numbers.push_back(arith::AddIOp::create(b, loc, number, constant(i * shape.threads)));
      Carried next{arith::AddIOp::create(b, loc, number, constant(step))};
      next.append(emitVectors(numbers, SmallVector<Value>(in.drop_front())));
      return next;
    });
    mine = ends.front();
    start.assign(ends.begin() + 1, ends.end());
  }
  Carried ends =
      forLoop(mine, end, constant(shape.threads), start, [&](Value number, ValueRange in) {
        return emitVectors({number}, SmallVector<Value>(in));
      });
  SmallVector<train::ReduceKind> kinds;
  for (auto [root, end] : llvm::zip(sums, ends)) {
    kinds.push_back(root->reduction);
    if (isa<VectorType>(end.getType()))
      end = horizontal(root->reduction, end);
  }
  storeFullSums(groupReduce(kinds, ends));
}

//===----------------------------------------------------------------------===//
// Partial results
//===----------------------------------------------------------------------===//

Value LoopNestEmitter::partialCount(Node *node) {
  Value count = partialCounts.lookup(node);
  return count ? count : constant(node->buffer->type.getDimSize(0));
}

/// Partial results `first`, `first` + `step` and so on.
Value LoopNestEmitter::addPartials(Node *node, const Columns *columns, Value first, Value step) {
  auto type = node->buffer->type;
  Type elementType = node->getElementType();
  auto kind = node->primitive.reduction;
  Value stride = constant(type.getNumElements() / type.getDimSize(0));
  Value start = offset(node->map, type, columns), base = pointer(node->buffer);
  Carried initial{neutral(kind, columns ? Type(vectorOf(elementType)) : elementType)};
  return forLoop(first, partialCount(node), step, initial,
                 [&](Value number, ValueRange sums) {
                   Value at = arith::AddIOp::create(
                       b, loc, start, arith::MulIOp::create(b, loc, number, stride));
                   Value part = load(element(base, elementType, at), elementType, columns);
                   return Carried{combine(kind, sums[0], part)};
                 })
      .front();
}

Value LoopNestEmitter::partials(Node *node, const Columns *columns) {
  if (node->scope == Scope::Chunk && shape.threads % warpSize == 0) {
    Value sum = addPartials(node, nullptr, thread, constant(shape.threads));
    return threadsReduce(node->primitive.reduction, {sum}, shape.threads).front();
  }
  return addPartials(node, node->scope == Scope::Column ? columns : nullptr, constant(0),
                     constant(1));
}

void LoopNestEmitter::evalSharedPartials() {
  for (auto &node : nest.nodes)
    if (node->kind == Node::Partials && node->scope == Scope::Chunk)
      eval(node.get(), nullptr);
}

/// Each warp adds some of the partial results for the block's columns; the first one adds
/// their sums and does the rest.
void LoopNestEmitter::emitSharedColumns() {
  SmallVector<Node *> nodes;
  for (auto &node : nest.nodes)
    if (node->kind == Node::Partials && node->scope == Scope::Column)
      nodes.push_back(node.get());
  Value part = arith::DivUIOp::create(b, loc, thread, constant(warpSize));
  Value lane = arith::RemUIOp::create(b, loc, thread, constant(warpSize));
  Value number = arith::AddIOp::create(
      b, loc, arith::MulIOp::create(b, loc, block, constant(warpSize)), lane);
  Memo memo;
  Columns columns;
  // Threads beyond the last column add those of the last.
  columns.index = arith::MinSIOp::create(
      b, loc, number, arith::SubIOp::create(b, loc, points, constant(1)));
  columns.memo = &memo;
  decompose(constant(0), Role::Parallel);

  auto space = gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup);
  auto type = MemRefType::get({int64_t(nodes.size()) * shape.threads}, b.getF32Type(),
                              MemRefLayoutAttrInterface(), space);
  Value shared = function.addWorkgroupAttribution(type, loc);
  auto at = [&](Value index, int64_t offset) {
    index = arith::AddIOp::create(b, loc, index, constant(offset));
    return Value(arith::IndexCastOp::create(b, loc, b.getIndexType(), index));
  };
  for (auto [i, node] : llvm::enumerate(nodes)) {
    Value sum = addPartials(node, &columns, part, constant(shape.parts));
    memref::StoreOp::create(b, loc, vector::ExtractOp::create(b, loc, sum, 0), shared,
                            at(thread, int64_t(i) * shape.threads));
  }
  gpu::BarrierOp::create(b, loc);
  Value mine = arith::AndIOp::create(b, loc, isFirst(part), less(number, points));
  guarded(mine, [&] {
    for (auto [i, node] : llvm::enumerate(nodes)) {
      auto kind = node->primitive.reduction;
      Value sum;
      for (int64_t other = 0; other < shape.parts; ++other) {
        Value value = memref::LoadOp::create(
            b, loc, shared, at(lane, int64_t(i) * shape.threads + other * warpSize));
        sum = sum ? combine(kind, sum, value) : value;
      }
      memo[{node, 0}] = splat(sum);
    }
    emitVectors({number}, {}, memo);
  });
}
