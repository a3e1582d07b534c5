//===- ScatterEmitter.cpp - rows added where ids say -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Each block owns the rows of the target whose numbers leave a rest of its own. Its warps
// look for those among all ids, 32 at a time: lanes that have found one write its position and
// its row into a queue of their warp, in the order of the ids. Where some have come together
// their rows are loaded at once and added in that order, so that sums have the same bits on
// every run.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CUDA/LoopNestEmitter.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;
using namespace meshwright::codegen::cuda;

/// Ids that a lane loads before it looks at the first.
static constexpr int64_t idsAhead = 8;

/// The queues of all warps of a block, in shared memory, and where this warp's begins: rows
/// of what is added, and the rows of the target they go to.
struct LoopNestEmitter::Queue {
  Value rows, targets, begin;
};

/// Of each lane the number of those before it that are in `votes`.
static Value votesBefore(OpBuilder &b, Location loc, Value votes, Value lane) {
  auto i32 = b.getI32Type();
  Value one = arith::ConstantIntOp::create(b, loc, 1, 32);
  Value narrow = arith::TruncIOp::create(b, loc, i32, lane);
  Value before =
      arith::SubIOp::create(b, loc, arith::ShLIOp::create(b, loc, one, narrow), one);
  return math::CtPopOp::create(b, loc, arith::AndIOp::create(b, loc, votes, before));
}

static Value wide(OpBuilder &b, Location loc, Value count) {
  return arith::ExtUIOp::create(b, loc, b.getI64Type(), count);
}

Value LoopNestEmitter::queued(Value memory, Value begin, Value at) {
  Value index = arith::AddIOp::create(b, loc, begin, at);
  index = arith::IndexCastOp::create(b, loc, b.getIndexType(), index);
  return memref::LoadOp::create(b, loc, memory, index);
}

void LoopNestEmitter::enqueue(Value value, Value memory, Value begin, Value at) {
  Value index = arith::AddIOp::create(b, loc, begin, at);
  index = arith::IndexCastOp::create(b, loc, b.getIndexType(), index);
  memref::StoreOp::create(b, loc, value, memory, index);
}

/// Adds the `count` rows that are queued from `first` on.
void LoopNestEmitter::addQueued(const Queue &queue, Value first, int64_t count,
                                const Columns &columns) {
  const Root &root = nest.roots.front();
  auto type = root.dest->type;
  Type elementType = registerType(type.getElementType());
  int64_t rowSize = type.getNumElements() / type.getDimSize(0);
  Value inside = offset(root.map, type, &columns), base = pointer(root.dest);
  SmallVector<Value> targets, addresses, values, sums;
  // All loads before any store.
  for (int64_t i = 0; i < count; ++i) {
    Value at = arith::AddIOp::create(b, loc, first, constant(i));
    Value row = wide(b, loc, queued(queue.rows, queue.begin, at));
    targets.push_back(queued(queue.targets, queue.begin, at));
    Value start = arith::MulIOp::create(b, loc, wide(b, loc, targets.back()), constant(rowSize));
    addresses.push_back(
        element(base, elementType, arith::AddIOp::create(b, loc, start, inside)));
    auto outer = scalars;
    decompose(row, Role::Sequential);
    Memo memo;
    Columns here = columns;
    here.memo = &memo;
    values.push_back(splat(eval(root.node, &here)));
    scalars = outer;
  }
  for (Value address : addresses)
    sums.push_back(widened(type.getElementType(), load(address, elementType, &columns)));
  for (int64_t i = 0; i < count; ++i) {
    // The same target again: what has been added is not in memory yet.
    for (int64_t before = 0; before < i; ++before) {
      Value same = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, targets[before],
                                         targets[i]);
      sums[i] = arith::SelectOp::create(b, loc, same, sums[before], sums[i]);
    }
    sums[i] = combine(train::ReduceKind::Sum, sums[i], values[i]);
  }
  for (auto [sum, address] : llvm::zip(sums, addresses))
    store(narrowed(type.getElementType(), sum), address, &columns);
}

void LoopNestEmitter::emitScatter() {
  assert(nest.roots.size() == 1 && "a scatter has a loop nest of its own");
  const Root &root = nest.roots.front();
  auto i32 = b.getI32Type();
  int64_t vectors = nest.columnSize / lanes, ofTile = shape.threads;
  int64_t batch = warpSize * idsAhead, rows = nest.rows(Role::Sequential);
  int64_t together = shape.vectors, capacity = batch + together - 1;
  Value tile = arith::DivUIOp::create(b, loc, block, constant(shape.owners));
  Value mine = arith::TruncIOp::create(
      b, loc, i32, arith::RemUIOp::create(b, loc, block, constant(shape.owners)));
  Value vector = arith::AddIOp::create(
      b, loc, arith::MulIOp::create(b, loc, tile, constant(ofTile)), thread);
  Value exists = vectors % ofTile ? less(vector, constant(vectors)) : Value();
  Columns columns;
  columns.index = arith::MulIOp::create(b, loc, vector, constant(lanes));

  auto space = gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup);
  auto type = MemRefType::get({shape.threads / warpSize * capacity}, i32,
                              MemRefLayoutAttrInterface(), space);
  Queue queue{function.addWorkgroupAttribution(type, loc),
              function.addWorkgroupAttribution(type, loc), {}};
  Value warp = arith::DivUIOp::create(b, loc, thread, constant(warpSize));
  Value lane = arith::RemUIOp::create(b, loc, thread, constant(warpSize));
  queue.begin = arith::MulIOp::create(b, loc, warp, constant(capacity));
  Value everybody = arith::ConstantIntOp::create(b, loc, -1, 32);
  Value owners = arith::ConstantIntOp::create(b, loc, shape.owners, 32);

  auto search = [&](Value first, ValueRange in) -> Carried {
    SmallVector<Value> positions, ids;
    for (int64_t i = 0; i < idsAhead; ++i) {
      Value start = arith::AddIOp::create(b, loc, first, constant(i * warpSize));
      positions.push_back(arith::AddIOp::create(b, loc, start, lane));
      auto outer = scalars;
      decompose(rows % batch
                    ? Value(arith::MinSIOp::create(b, loc, positions.back(), constant(rows - 1)))
                    : positions.back(),
                Role::Sequential);
      ids.push_back(eval(root.ids, nullptr));
      scalars = outer;
    }
    Value count = in[0];
    for (int64_t i = 0; i < idsAhead; ++i) {
      Value position = positions[i], id = ids[i];
      Value owned = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                          arith::RemUIOp::create(b, loc, id, owners), mine);
      // Nobody owns what is no row.
      owned = arith::AndIOp::create(b, loc, owned, rowExists(id, root.dest->type.getDimSize(0)));
      if (rows % batch)
        owned = arith::AndIOp::create(b, loc, owned, less(position, constant(rows)));
      Value votes = NVVM::VoteSyncOp::create(b, loc, i32, everybody, owned,
                                             NVVM::VoteSyncKind::ballot);
      guarded(owned, [&] {
        Value at =
            arith::AddIOp::create(b, loc, count, wide(b, loc, votesBefore(b, loc, votes, lane)));
        enqueue(arith::TruncIOp::create(b, loc, i32, position), queue.rows, queue.begin, at);
        enqueue(id, queue.targets, queue.begin, at);
      });
      count = arith::AddIOp::create(
          b, loc, count, wide(b, loc, math::CtPopOp::create(b, loc, votes)));
    }
    NVVM::SyncWarpOp::create(b, loc, everybody);
    Value rest = arith::RemUIOp::create(b, loc, count, constant(together));
    Value whole = arith::SubIOp::create(b, loc, count, rest);
    forLoop(constant(0), whole, constant(together), {}, [&](Value at, ValueRange) -> Carried {
      guarded(exists, [&] { addQueued(queue, at, together, columns); });
      return {};
    });
    // What is left moves to the front, when all have read what is there.
    Value moves = less(lane, rest);
    Value from = arith::AddIOp::create(b, loc, whole, lane);
    SmallVector<Value> left;
    for (Value memory : {queue.rows, queue.targets}) {
      auto read = scf::IfOp::create(b, loc, TypeRange{i32}, moves, /*withElseRegion=*/true);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(read.thenBlock());
      scf::YieldOp::create(b, loc, queued(memory, queue.begin, from));
      b.setInsertionPointToStart(read.elseBlock());
      scf::YieldOp::create(b, loc, mine);
      left.push_back(read.getResult(0));
    }
    NVVM::SyncWarpOp::create(b, loc, everybody);
    guarded(moves, [&] {
      enqueue(left[0], queue.rows, queue.begin, lane);
      enqueue(left[1], queue.targets, queue.begin, lane);
    });
    return {rest};
  };
  Value rest = forLoop(constant(0), constant(rows), constant(batch), {constant(0)}, search)[0];
  NVVM::SyncWarpOp::create(b, loc, everybody);
  forLoop(constant(0), rest, constant(1), {}, [&](Value at, ValueRange) -> Carried {
    guarded(exists, [&] { addQueued(queue, at, 1, columns); });
    return {};
  });
}
