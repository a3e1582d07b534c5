//===- RowEmitter.cpp - loop nests in which threads share rows --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CUDA/LoopNestEmitter.h"
#include "Codegen/VectorMath.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;
using namespace meshwright::codegen::cuda;

//===----------------------------------------------------------------------===//
// Reductions among threads
//===----------------------------------------------------------------------===//

/// Among `width` neighbouring lanes; all get the result.
Value LoopNestEmitter::warpReduce(train::ReduceKind kind, Value value, int64_t width) {
  for (int64_t distance = width / 2; distance >= 1; distance /= 2) {
    auto other = gpu::ShuffleOp::create(b, loc, value, int32_t(distance), int32_t(warpSize),
                                        gpu::ShuffleMode::XOR);
    value = combine(kind, value, other.getShuffleResult());
  }
  return value;
}

LoopNestEmitter::Carried LoopNestEmitter::groupReduce(ArrayRef<train::ReduceKind> kinds,
                                                      Carried values) {
  return threadsReduce(kinds, values,
                       shape.kind == LaunchShape::Rows ? shape.group : shape.threads);
}

LoopNestEmitter::Carried LoopNestEmitter::threadsReduce(ArrayRef<train::ReduceKind> kinds,
                                                        Carried values, int64_t threads) {
  if (values.empty())
    return values;
  for (auto [kind, value] : llvm::zip(kinds, values))
    value = warpReduce(kind, value, warpSize);
  int64_t warps = threads / warpSize, width = llvm::bit_ceil(uint64_t(warps));
  if (warps == 1)
    return values;
  // One value a warp in shared memory, which all then read. Groups of several
  // warps are whole blocks.
  auto space = gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup);
  auto type = MemRefType::get({int64_t(values.size()) * warps}, b.getF32Type(),
                              MemRefLayoutAttrInterface(), space);
  Value shared = function.addWorkgroupAttribution(type, loc);
  Value warp = arith::DivUIOp::create(b, loc, thread, constant(warpSize));
  Value lane = arith::RemUIOp::create(b, loc, thread, constant(warpSize));
  auto at = [&](Value index, int64_t offset) {
    index = arith::AddIOp::create(b, loc, index, constant(offset));
    return Value(arith::IndexCastOp::create(b, loc, b.getIndexType(), index));
  };
  guarded(isFirst(lane), [&] {
    for (auto [i, value] : llvm::enumerate(values))
      memref::StoreOp::create(b, loc, value, shared, at(warp, int64_t(i) * warps));
  });
  gpu::BarrierOp::create(b, loc);
  Value part = arith::RemUIOp::create(b, loc, lane, constant(width));
  Value exists = width > warps ? less(part, constant(warps)) : Value();
  if (exists)
    part = arith::MinSIOp::create(b, loc, part, constant(warps - 1));
  for (auto [i, value] : llvm::enumerate(values)) {
    value = memref::LoadOp::create(b, loc, shared, at(part, int64_t(i) * warps));
    if (exists)
      value = arith::SelectOp::create(b, loc, exists, value, neutral(kinds[i], value.getType()));
  }
  for (auto [kind, value] : llvm::zip(kinds, values))
    value = warpReduce(kind, value, width);
  // Nobody may write again, for the next row, before all have read.
  gpu::BarrierOp::create(b, loc);
  return values;
}

//===----------------------------------------------------------------------===//
// Columns
//===----------------------------------------------------------------------===//

/// Light bodies need several vectors in flight, heavy ones have enough to do.
unsigned LoopNestEmitter::unrollOf(unsigned loop) {
  int64_t cost = 0;
  for (Node *reduce : rowReductions(nest))
    if (reduce->depth == loop + 1)
      cost += reduce->operands[0]->cost + 1;
  for (const Root &root : nest.roots)
    if (!root.row && loopOf(nest, root) == loop)
      cost += root.node->cost + 1;
  return cost <= 24 ? 4 : 2;
}

/// Pieces of the main column a thread holds in registers, over both halves.
unsigned LoopNestEmitter::slotsOfMain() const {
  int64_t width = nest.columnSize;
  bool halves = nest.half && width == 2 * nest.half;
  int64_t sharing = shape.group * shape.tiles;
  return halves ? 2 * slotsOf(nest.half, sharing, lanes) : slotsOf(width, sharing, lanes);
}

LoopNestEmitter::Carried LoopNestEmitter::walk(int column, unsigned loop, Carried carried,
                                               Body body) {
  int64_t width = nest.columnsOf(column), step = shape.group * shape.tiles * lanes;
  bool halves = nest.half && width == 2 * nest.half;
  unsigned slot = 0;
  Value mine = arith::MulIOp::create(b, loc, inGroup, constant(lanes));
  for (int half = 0; half < (halves ? 2 : 1); ++half) {
    int64_t low = half * nest.half, high = half || !halves ? width : nest.half;
    auto at = [&](Value index, Value mask, Memo &memo, ArrayRef<Value> in) {
      Columns here;
      here.index = index;
      here.mask = mask;
      here.half = half;
      here.loop = loop;
      here.memo = &memo;
      return body(here, slot, in);
    };
    if (!shape.inRegisters) {
      // Several vectors at once, so that their loads overlap.
      int64_t unroll = unrollOf(loop), wide = unroll * step, count = (high - low) / wide;
      if (count) {
        Value begin = arith::AddIOp::create(b, loc, mine, constant(low));
        // Every second loop walks back, from what caches still have.
        int64_t stride = loop % 2 ? -wide : wide;
        if (loop % 2)
          begin = arith::AddIOp::create(b, loc, begin, constant((count - 1) * wide));
        carried = forLoop(
            constant(0), constant(count), constant(1), carried, [&](Value turn, ValueRange in) {
              Carried next(in);
              Value first = arith::AddIOp::create(
                  b, loc, begin, arith::MulIOp::create(b, loc, turn, constant(stride)));
              for (int64_t u = 0; u < unroll; ++u) {
                Memo memo;
                next = at(arith::AddIOp::create(b, loc, first, constant(u * step)), {}, memo, next);
              }
              return next;
            });
        low += count * wide;
      }
    }
    for (; low < high; low += step, ++slot) {
      Value index = arith::AddIOp::create(b, loc, mine, constant(low));
      Value mask = low + step > high ? less(index, constant(high)) : Value();
      Memo fresh;
      carried = at(index, mask, shape.inRegisters ? held[{column, slot}] : fresh, carried);
    }
  }
  return carried;
}

/// Less than all that is finite there is only minus infinity, which leaves nothing to add:
/// taken off itself it would be no number.
Value LoopNestEmitter::atLeastFinite(Value x) {
  Value lowest = arith::ConstantOp::create(
      b, loc, b.getF32FloatAttr(std::numeric_limits<float>::lowest()));
  return arith::MaximumFOp::create(b, loc, x, lowest);
}

/// exp(before - after), by which sums change when the greatest element does.
Value LoopNestEmitter::decrease(Value before, Value after) {
  Value difference =
      arith::SubFOp::create(b, loc, atLeastFinite(before), atLeastFinite(after));
  return math::ExpOp::create(b, loc, difference);
}

LoopNestEmitter::Carried LoopNestEmitter::emitLoop(unsigned loop, int column, Carried carried) {
  SmallVector<Node *> reduces;
  SmallVector<const Root *> roots;
  for (Node *reduce : rowReductions(nest))
    if (reduce->depth == loop + 1 && reduce->column == column)
      reduces.push_back(reduce);
  if (column == nest.mainColumn)
    for (const Root &root : nest.roots)
      if (!root.row && loopOf(nest, root) == loop)
        roots.push_back(&root);
  if (reduces.empty() && roots.empty())
    return carried;
  evalRowValues(loop);

  // Carried from vector to vector: this loop's row reductions, then what is carried
  // from row to row, of which sums over everything become vectors here.
  auto fullSums = rootsOf(Root::FullSum), columnSums = rootsOf(Root::ColumnSum);
  SmallVector<train::ReduceKind> kinds;
  Carried start;
  auto vector = vectorOf(b.getF32Type());
  for (Node *reduce : reduces) {
    kinds.push_back(reduce->primitive.reduction);
    // What sums are scaled by is one number for all columns of a thread.
    bool scales = llvm::any_of(reduces, [&](Node *sum) { return sum->greatest == reduce; });
    start.push_back(neutral(kinds.back(), scales ? Type(b.getF32Type()) : vector));
  }
  for (const Root *root : fullSums)
    start.push_back(neutral(root->reduction, vector));
  llvm::append_range(start, ArrayRef(carried).drop_front(fullSums.size()));
  unsigned firstFull = reduces.size(), firstColumn = firstFull + fullSums.size();

  auto body = [&](const Columns &columns, unsigned slot, ArrayRef<Value> in) {
    // All values before any store: a result may lie where an argument does.
    Carried next(in);
    auto accumulate = [&](unsigned i, train::ReduceKind kind, Value value) {
      if (columns.mask)
        value = arith::SelectOp::create(b, loc, columns.mask, value, neutral(kind, vector));
      next[i] = combine(kind, next[i], value);
    };
    for (auto [i, reduce] : llvm::enumerate(reduces)) {
      if (reduce->greatest)
        continue; // with what it depends on
      Value value = splat(eval(reduce->operands[0], &columns));
      if (isa<VectorType>(in[i].getType())) {
        accumulate(i, kinds[i], value);
        continue;
      }
      if (columns.mask)
        value = arith::SelectOp::create(b, loc, columns.mask, value, neutral(kinds[i], vector));
      next[i] = combine(kinds[i], in[i], horizontal(kinds[i], value));
      Value factor = splat(decrease(in[i], next[i]));
      for (auto [j, sum] : llvm::enumerate(reduces)) {
        if (sum->greatest != reduce)
          continue;
        next[j] = arith::MulFOp::create(b, loc, in[j], factor, contract);
        // Values made with the greatest so far are no other loop's.
        Memo inside = *columns.memo;
        Columns here = columns;
        here.memo = &inside;
        scalars[reduce] = atLeastFinite(next[i]);
        accumulate(j, kinds[j], splat(eval(sum->operands[0], &here)));
        scalars.erase(reduce);
      }
    }
    SmallVector<Value> values;
    for (const Root *root : roots)
      values.push_back(splat(eval(root->node, &columns)));
    for (auto [root, value] : llvm::zip(roots, values)) {
      if (root->kind == Root::FullSum)
        accumulate(firstFull + (llvm::find(fullSums, root) - fullSums.begin()), root->reduction,
                   value);
      else if (root->kind == Root::ColumnSum && shape.inRegisters)
        accumulate(firstColumn +
                       (llvm::find(columnSums, root) - columnSums.begin()) * slotsOfMain() + slot,
                   root->reduction, value);
      else
        emitRoot(*root, columns, value);
    }
    return next;
  };
  Carried ends = walk(column, loop, start, body);

  // What sums are scaled by comes first.
  for (bool scaled : {false, true}) {
    SmallVector<Node *> nodes;
    SmallVector<train::ReduceKind> nodeKinds;
    Carried values;
    for (auto [i, reduce] : llvm::enumerate(reduces)) {
      if (bool(reduce->greatest) != scaled)
        continue;
      Value value = ends[i];
      if (scaled) {
        Node *greatest = reduce->greatest;
        Value ofThread = ends[llvm::find(reduces, greatest) - reduces.begin()];
        value = arith::MulFOp::create(b, loc, value, splat(decrease(ofThread, scalars[greatest])),
                                      arith::FastMathFlags::contract);
      }
      nodes.push_back(reduce);
      nodeKinds.push_back(kinds[i]);
      values.push_back(isa<VectorType>(value.getType()) ? horizontal(kinds[i], value) : value);
    }
    for (auto [node, value] : llvm::zip(nodes, groupReduce(nodeKinds, values)))
      scalars[node] = value;
  }
  for (auto [i, root] : llvm::enumerate(fullSums))
    if (llvm::is_contained(roots, root))
      carried[i] =
          combine(root->reduction, carried[i], horizontal(root->reduction, ends[firstFull + i]));
  for (unsigned i = firstColumn; i < ends.size(); ++i)
    carried[fullSums.size() + i - firstColumn] = ends[i];
  return carried;
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// What is stored or summed once a row, by the group's first thread.
void LoopNestEmitter::emitRowRoots(Carried &carried) {
  SmallVector<std::pair<const Root *, Value>> stores;
  unsigned sum = 0;
  bool inPlace = false;
  for (const Root &root : nest.roots) {
    if (root.row && root.kind == Root::Store) {
      stores.push_back({&root, eval(root.node, nullptr)});
      inPlace |= root.dest->kind == Buffer::Result &&
                 llvm::any_of(kernelLoops.inplace,
                              [&](auto pair) { return pair.second == root.dest->index; });
    } else if (root.row && root.kind == Root::FullSum) {
      // The same in all threads of the group: counted once.
      Value once = arith::SelectOp::create(b, loc, isFirst(inGroup), eval(root.node, nullptr),
                                           neutral(root.reduction, b.getF32Type()));
      carried[sum] = combine(root.reduction, carried[sum], once);
    }
    sum += root.kind == Root::FullSum;
  }
  if (stores.empty())
    return;
  if (inPlace) {
    // All have read the argument before the first writes in its place.
    if (shape.group == warpSize)
      NVVM::SyncWarpOp::create(b, loc, arith::ConstantIntOp::create(b, loc, -1, 32));
    else
      gpu::BarrierOp::create(b, loc);
  }
  guarded(isFirst(inGroup), [&] {
    for (auto [root, value] : stores)
      store(value, destination(*root, nullptr), nullptr);
  });
}

LoopNestEmitter::Carried LoopNestEmitter::emitRow(Carried carried) {
  for (unsigned loop = 0, loops = loopCount(); loop < loops; ++loop)
    for (auto [dim, role] : llvm::enumerate(nest.roles))
      if (role == Role::Column && (!nest.isMerged(dim) || int(dim) == nest.mainColumn))
        carried = emitLoop(loop, dim, carried);
  emitRowRoots(carried);
  return carried;
}

void LoopNestEmitter::storeColumnSums(ArrayRef<Value> sums) {
  auto roots = rootsOf(Root::ColumnSum);
  held.clear();
  walk(nest.mainColumn, 0, {},
       [&](const Columns &columns, unsigned slot, ArrayRef<Value>) -> Carried {
         for (auto [i, root] : llvm::enumerate(roots)) {
           Value value = sums.empty() ? neutral(root->reduction, vectorOf(b.getF32Type()))
                                      : sums[i * slotsOfMain() + slot];
           store(value, destination(*root, &columns), &columns);
         }
         return {};
       });
}

int LoopNestEmitter::walkedColumn(Node *node) const {
  for (int dim : node->map)
    if (nest.isColumn(dim))
      return nest.isMerged(dim) ? nest.mainColumn : dim;
  llvm_unreachable("only what has columns is walked");
}

/// Sums along a row make threads wait for each other, and while they do nothing would be
/// on its way from memory. So they load the next row before they begin with one.
SmallVector<Node *> LoopNestEmitter::loadedAhead() const {
  SmallVector<Node *> nodes;
  if (!shape.inRegisters || nest.half || rowReductions(nest).empty())
    return nodes;
  for (auto &node : nest.nodes)
    if (node->kind == Node::Load && node->scope == Scope::Column &&
        llvm::any_of(node->map, [&](int dim) { return nest.roles[dim] == Role::Parallel; }))
      nodes.push_back(node.get());
  return nodes;
}

void LoopNestEmitter::forEachSlot(int column,
                                  llvm::function_ref<void(const Columns &, unsigned)> visit) {
  int64_t width = nest.columnsOf(column), step = shape.group * lanes;
  Value mine = arith::MulIOp::create(b, loc, inGroup, constant(lanes));
  unsigned slot = 0;
  for (int64_t low = 0; low < width; low += step, ++slot) {
    Columns columns;
    columns.index = arith::AddIOp::create(b, loc, mine, constant(low));
    if (low + step > width)
      columns.mask = less(columns.index, constant(width));
    visit(columns, slot);
  }
}

LoopNestEmitter::Carried LoopNestEmitter::loadAhead(ArrayRef<Node *> nodes, Value row) {
  decompose(row, Role::Parallel);
  Carried loaded;
  for (Node *node : nodes)
    forEachSlot(walkedColumn(node), [&](const Columns &columns, unsigned) {
      Memo memo;
      Columns here = columns;
      here.memo = &memo;
      loaded.push_back(eval(node, &here));
    });
  return loaded;
}

void LoopNestEmitter::emitChunkOfRows() {
  auto fullSums = rootsOf(Root::FullSum), columnSums = rootsOf(Root::ColumnSum);
  Carried start;
  for (const Root *root : fullSums)
    start.push_back(neutral(root->reduction, b.getF32Type()));
  if (shape.inRegisters)
    for (const Root *root : columnSums)
      start.append(slotsOfMain(), neutral(root->reduction, vectorOf(b.getF32Type())));
  else if (!columnSums.empty())
    storeColumnSums({}); // the sums are in memory, each column only one thread's

  Value size = constant(llvm::divideCeil(nest.iterations, nest.chunks));
  Value begin = arith::MulIOp::create(b, loc, chunk, size);
  Value end = arith::MinSIOp::create(b, loc, arith::AddIOp::create(b, loc, begin, size),
                                     constant(nest.iterations));
  // Carried behind the sums: this row, and those that have been loaded after it.
  SmallVector<Node *> ahead = loadedAhead();
  unsigned sums = start.size();
  Value last = arith::SubIOp::create(b, loc, end, constant(1));
  auto rowAfter = [&](Value row, int64_t distance) {
    Value later = arith::AddIOp::create(b, loc, row, constant(distance));
    return Value(arith::MinSIOp::create(b, loc, later, last));
  };
  for (int64_t i = 0; i < shape.rowsAhead; ++i)
    llvm::append_range(start, loadAhead(ahead, rowAfter(begin, i)));
  unsigned ofRow = (start.size() - sums) / shape.rowsAhead;
  Carried ends = forLoop(begin, end, constant(1), start, [&](Value row, ValueRange in) {
    Carried next(in.drop_front(sums + ofRow));
    llvm::append_range(next, loadAhead(ahead, rowAfter(row, shape.rowsAhead)));
    decompose(row, Role::Parallel);
    held.clear();
    unsigned position = sums;
    for (Node *node : ahead)
      forEachSlot(walkedColumn(node), [&](const Columns &, unsigned slot) {
        held[{walkedColumn(node), slot}][{node, 0}] = in[position++];
      });
    Carried carried = emitRow(Carried(in.take_front(sums)));
    carried.append(next);
    return carried;
  });
  ends.truncate(sums);
  if (shape.inRegisters && !columnSums.empty())
    storeColumnSums(ArrayRef(ends).drop_front(fullSums.size()));
  if (fullSums.empty())
    return;
  SmallVector<train::ReduceKind> kinds;
  for (const Root *root : fullSums)
    kinds.push_back(root->reduction);
  storeFullSums(groupReduce(kinds, Carried(ArrayRef(ends).take_front(fullSums.size()))));
}

void LoopNestEmitter::emitRows() {
  if (!rootsOf(Root::FullSum).empty() || !rootsOf(Root::ColumnSum).empty())
    return emitChunkOfRows();
  int64_t together = shape.threads / shape.group, rows = nest.rows(Role::Parallel);
  Value row = block, exists;
  if (together > 1) {
    inGroup = arith::RemUIOp::create(b, loc, thread, constant(shape.group));
    row = arith::AddIOp::create(b, loc, arith::MulIOp::create(b, loc, block, constant(together)),
                                arith::DivUIOp::create(b, loc, thread, constant(shape.group)));
    if (rows % together)
      exists = less(row, constant(rows));
  }
  guarded(exists, [&] {
    decompose(row, Role::Parallel);
    held.clear();
    emitRow({});
  });
}
