//===- SliceUpdates.cpp - exec-slice-updates --------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Exec/Passes.h"
#include "Train/TensorType.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

namespace meshwright::exec {
#define GEN_PASS_DEF_EXECSLICEUPDATES
#include "Exec/Passes.h.inc"
} // namespace meshwright::exec

static bool isScalar(Value value) { return train::tensor(value).getRank() == 0; }

/// Whether each element of the results, all of shape `shape`, depends on the elements at
/// the same index in operands of that shape, on scalars, and where the op says so
/// (`IndexedOpInterface`), on the index.
static bool isElementwise(Operation *op, ArrayRef<int64_t> shape) {
  auto ruled = dyn_cast<train::ShardingRuleOpInterface>(op);
  // A scalar that is repeated says along which of all dimensions.
  if (!ruled || !isa<train::KernelOpInterface>(op) || isa<train::BroadcastOp>(op))
    return false;
  ShardingRule rule = ruled.getShardingRule();
  if (llvm::any_of(rule.factors, [](const Factor &f) { return f.whole || f.reduced; }))
    return false;
  ArrayRef<SmallVector<unsigned, 1>> dims = rule.results.front().dims;
  auto fits = [&](const TensorFactors &tensor, Value value) {
    return tensor.indexes < 0 &&
           (isScalar(value) || (ArrayRef(tensor.dims) == dims && train::tensor(value).getShape() == shape));
  };
  for (auto [tensor, value] : llvm::zip(rule.operands, op->getOperands()))
    if (!fits(tensor, value))
      return false;
  for (auto [tensor, value] : llvm::zip(rule.results, op->getResults()))
    if (isScalar(value) || !fits(tensor, value))
      return false;
  return true;
}

/// The shape of each of `parts` equal parts of a tensor, which lie one after the other: as many
/// dimensions as the tensor, so that indices keep their meaning, of which the first are 1, then one
/// is split, and all others are whole. Nothing if there is no such shape.
static std::optional<SmallVector<int64_t>> partShape(ArrayRef<int64_t> shape, int64_t parts) {
  SmallVector<int64_t> part;
  for (int64_t size : shape) {
    int64_t pieces = parts % size == 0 ? size : parts;
    if (size % pieces)
      return std::nullopt;
    part.push_back(size / pieces);
    parts /= pieces;
  }
  return part;
}

/// The fewest equal parts of `elements` numbers, each of `most` at most, that are `possible`;
/// rather those that begin at multiples of 32 numbers, 64 bytes of the narrowest type. One where
/// parts would be much smaller than they may be: the sizes of layers and tables have divisors.
static int64_t partsOf(int64_t elements, int64_t most, llvm::function_ref<bool(int64_t)> possible) {
  constexpr int64_t alignment = 32, moreToAlign = 4, moreAtMost = 16;
  int64_t fewest = llvm::divideCeil(elements, most);
  std::optional<int64_t> any;
  for (int64_t parts = fewest; parts <= std::min(elements, moreAtMost * fewest); ++parts) {
    if (elements % parts || !possible(parts))
      continue;
    if (elements / parts % alignment == 0 && parts <= moreToAlign * fewest)
      return parts;
    any = any.value_or(parts);
  }
  return any.value_or(1);
}

/// The update with what is computed for it or from it element by element, in their order.
static SmallVector<Operation *> clusterOf(Operation *update, ArrayRef<int64_t> shape) {
  llvm::SetVector<Operation *> cluster;
  cluster.insert(update);
  Block *block = update->getBlock();
  for (size_t i = 0; i < cluster.size(); ++i) {
    Operation *op = cluster[i];
    for (Value operand : op->getOperands()) {
      Operation *producer = operand.getDefiningOp();
      if (producer && producer->getBlock() == block && !isScalar(operand) &&
          isElementwise(producer, shape) &&
          llvm::all_of(producer->getUsers(),
                       [&](Operation *user) { return cluster.contains(user); }))
        cluster.insert(producer);
    }
    for (Operation *user : op->getUsers()) {
      bool ready = user->getBlock() == block && isElementwise(user, shape) &&
                   llvm::all_of(user->getOperands(), [&](Value operand) {
                     Operation *producer = operand.getDefiningOp();
                     return !producer || producer->getBlock() != block ||
                            cluster.contains(producer) || producer->isBeforeInBlock(update);
                   });
      if (ready)
        cluster.insert(user);
    }
  }
  SmallVector<Operation *> sorted(cluster.getArrayRef());
  llvm::sort(sorted, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return sorted;
}

/// Tells `op`, which works on part number `iteration` of tensors of shape `shape`, where the part
/// begins.
static void shiftOffsets(train::IndexedOpInterface op, ArrayRef<int64_t> shape,
                         ArrayRef<int64_t> part, Value iteration) {
  OpBuilder b(op);
  SmallVector<Value> offsets = op.getIndexOffsets();
  for (auto [offset, indexed] : llvm::zip(offsets, op.getIndexedDims())) {
    int64_t every = 1, dim = indexed.second;
    for (size_t d = dim + 1; d < shape.size(); ++d)
      every *= shape[d] / part[d];
    if (part[dim] < shape[dim])
      offset = train::PartOffsetOp::create(b, op->getLoc(), iteration, offset, every,
                                           shape[dim] / part[dim], part[dim]);
  }
  op.setOffsets(offsets);
}

/// Variables that are smaller than this share of a part may be updated together.
static constexpr int64_t smallShare = 16;

namespace {
struct ExecSliceUpdates : exec::impl::ExecSliceUpdatesBase<ExecSliceUpdates> {
  using ExecSliceUpdatesBase::ExecSliceUpdatesBase;

  void runOnModule() override {
    SymbolTable symbols(getOperation());
    SmallVector<train::UpdateOpInterface> updates;
    getOperation().walk([&](train::UpdateOpInterface op) { updates.push_back(op); });
    for (train::UpdateOpInterface update : updates)
      slice(update, symbols);
  }

private:
  void slice(train::UpdateOpInterface update, SymbolTable &symbols);
};
} // namespace

void ExecSliceUpdates::slice(train::UpdateOpInterface update, SymbolTable &symbols) {
  RankedTensorType whole = train::tensor(update.getUpdated());
  ArrayRef<int64_t> shape = whole.getShape();
  int64_t elements = whole.getNumElements();
  // A master is f32; momentum and variance are f32 or narrower.
  if (elements * 4 <= partBytes / smallShare)
    return;
  SmallVector<Operation *> cluster = clusterOf(update, shape);
  // Where nothing depends on the index, a part may begin anywhere and is a row.
  bool indexed = llvm::any_of(cluster, llvm::IsaPred<train::IndexedOpInterface>);
  int64_t parts = partsOf(elements, std::max<int64_t>(1, partBytes / 4),
                          [&](int64_t parts) { return !indexed || partShape(shape, parts); });
  SmallVector<int64_t> part =
      indexed ? *partShape(shape, parts) : SmallVector<int64_t>{elements / parts};
  llvm::SetVector<Value> each, shared;
  SmallVector<Value> results;
  for (Operation *op : cluster) {
    for (Value operand : op->getOperands())
      if (!llvm::is_contained(cluster, operand.getDefiningOp()))
        (isScalar(operand) ? shared : each).insert(operand);
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(),
                       [&](Operation *user) { return !llvm::is_contained(cluster, user); }))
        results.push_back(result);
  }
  auto partType = [&](Value value) {
    return RankedTensorType::get(part, train::tensor(value).getElementType());
  };
  auto stackType = [&](Value value) {
    SmallVector<int64_t> stack{parts};
    llvm::append_range(stack, part);
    return RankedTensorType::get(stack, train::tensor(value).getElementType());
  };
  OpBuilder b(update.getContext());
  SmallVector<Type> arguments, partResults, stacks;
  if (indexed)
    arguments.push_back(RankedTensorType::get({}, b.getI32Type()));
  for (Value value : each)
    arguments.push_back(partType(value));
  for (Value value : shared)
    arguments.push_back(value.getType());
  for (Value value : results) {
    partResults.push_back(partType(value));
    stacks.push_back(stackType(value));
  }
  Location loc = update.getLoc();
  auto function = func::FuncOp::create(b, loc, "update.part", b.getFunctionType(arguments, partResults));
  function.setPrivate();
  train::setRole(function, train::Role::Update);
  symbols.insert(function);
  b.setInsertionPointToStart(function.addEntryBlock());
  IRMapping mapping;
  mapping.map(each.getArrayRef(),
              function.getArguments().drop_front(indexed).take_front(each.size()));
  mapping.map(shared.getArrayRef(), function.getArguments().take_back(shared.size()));
  for (Operation *op : cluster) {
    if (auto indexed = dyn_cast<train::IndexedOpInterface>(op))
      indexed.keepLogicalSizes();
    Operation *copy = b.clone(*op, mapping);
    for (OpResult result : copy->getResults())
      result.setType(partType(result));
    if (auto indexed = dyn_cast<train::IndexedOpInterface>(copy))
      shiftOffsets(indexed, shape, part, function.getArgument(0));
  }
  func::ReturnOp::create(b, loc, llvm::map_to_vector(results, [&](Value value) {
                           return mapping.lookup(value);
                         }));

  // What the update needs stands before it; what needs its results, after.
  b.setInsertionPoint(update);
  SmallVector<Value> slices = llvm::map_to_vector(each, [&](Value value) -> Value {
    return train::ReshapeOp::create(b, loc, stackType(value), value);
  });
  auto repeat = train::RepeatOp::create(b, loc, stacks, function.getSymName(), parts,
                                        /*reverse=*/false, indexed, ValueRange(), slices,
                                        shared.getArrayRef());
  train::setRole(repeat, train::Role::Update);
  for (auto [value, stack] : llvm::zip(results, repeat.getResults()))
    value.replaceAllUsesWith(train::ReshapeOp::create(b, loc, value.getType(), stack).getResult());
  for (Operation *op : llvm::reverse(cluster))
    op->erase();
}
