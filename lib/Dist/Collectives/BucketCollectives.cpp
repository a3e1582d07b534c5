//===- BucketCollectives.cpp - many tensors in one call ---------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "BucketCollectives.h"

#include "Dist/Wire.h"

#include "llvm/ADT/SetVector.h"

#include <map>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

static int64_t bytesOf(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

namespace {
class Bucketing {
public:
  Bucketing(Block &block, const Mesh &mesh, const BucketSize &size) : block(block), mesh(mesh), size(size) {}

  void run() {
    SmallVector<Operation *> candidates;
    for (Operation &op : block)
      if (isa<AllReduceOp, AllGatherOp, ReduceScatterOp>(op) && op.getNumOperands() == 1)
        candidates.push_back(&op);
    // By what members of a call agree in: the op, its group and kind, the type, and that in which it is sent.
    std::map<std::array<const void *, 5>, SmallVector<Operation *>> open;
    for (Operation *op : candidates) {
      Attribute reduction = op->getAttr("kind"), wire = op->getAttr(wireAttr);
      std::array<const void *, 5> key = {
          op->getName().getAsOpaquePointer(),
          cast<CollectiveOpInterface>(op).getGroupAttr().getAsOpaquePointer(),
          reduction ? reduction.getAsOpaquePointer() : nullptr,
          getElementTypeOrSelf(op->getOperand(0)).getAsOpaquePointer(),
          wire ? wire.getAsOpaquePointer() : nullptr};
      // A call that this one needs the result of is complete.
      for (auto &[other, members] : open)
        if (llvm::is_contained(members, op->getOperand(0).getDefiningOp()))
          close(members);
      SmallVector<Operation *> &bucket = open[key];
      if (!tryAdd(bucket, op)) {
        close(bucket);
        bucket = {op};
      }
    }
    for (auto &[key, bucket] : open)
      close(bucket);
  }

private:
  static int64_t moved(Operation *op) { return std::max(bytesOf(op->getOperand(0)), bytesOf(op->getResult(0))); }
  bool isStack(Operation *op) const;
  bool isFull(ArrayRef<Operation *> bucket, Operation *op) const;
  bool tryAdd(SmallVector<Operation *> &bucket, Operation *op);
  void close(SmallVector<Operation *> &bucket);

  Block &block;
  const Mesh &mesh;
  const BucketSize &size;
};
} // namespace

/// Whether `op` is a collective of stacked tensors of layers, which later passes (`exec-slice-collectives`, `exec-overlap`)
/// call layer by layer.
bool Bucketing::isStack(Operation *op) const {
  auto type = cast<RankedTensorType>(op->getOperand(0).getType());
  auto dims = op->getAttrOfType<DenseI64ArrayAttr>("dims");
  return type.getRank() > 1 && moved(op) / type.getDimSize(0) >= size.sliceBytes && !(dims && dims[0] == 0);
}

bool Bucketing::isFull(ArrayRef<Operation *> bucket, Operation *op) const {
  double own = double(moved(op)), sum = 0;
  SmallVector<double> members;
  for (Operation *member : bucket)
    sum += members.emplace_back(double(moved(member)));
  if (isStack(op) || llvm::any_of(bucket, [&](Operation *member) { return isStack(member); }))
    return sum + own > double(size.bytes);
  GroupAttr group = cast<CollectiveOpInterface>(op).getGroupAttr();
  double most = std::max(double(size.bytes), size.network.bytesOfLongCall(mesh.size(group.on(mesh))));
  // Weights of a norm would wait for as long as those of a product if they had a call of their own.
  double little = most / 64, joined = own;
  for (double member : members)
    joined += member <= little ? member : 0;
  bool joins = own <= little && joined <= most / 4;
  return sum + own > most && sum > little && !joins;
}

/// `op` joins a bucket at its own position, or before a reader of the other results
/// that cannot wait until there, if what makes the operand of `op` is before that.
bool Bucketing::tryAdd(SmallVector<Operation *> &bucket, Operation *op) {
  if (bucket.empty()) {
    bucket.push_back(op);
    return true;
  }
  if (isFull(bucket, op))
    return false;
  Operation *made = op->getOperand(0).getDefiningOp();
  Operation *insertionPoint = op;
  llvm::SetVector<Operation *> delayed;
  auto delayReaders = [&](Operation *of) {
    for (Operation *reader : of->getUsers()) {
      if (reader == made || reader == op)
        return false; // the operand is made of a result
      if (!reader->isBeforeInBlock(insertionPoint))
        continue;
      if (isa<train::KernelOpInterface, train::ReshapeOp>(reader))
        delayed.insert(reader);
      else if (made && !made->isBeforeInBlock(reader))
        return false;
      else
        insertionPoint = reader;
    }
    return true;
  };
  for (Operation *member : bucket)
    if (!delayReaders(member))
      return false;
  for (unsigned i = 0; i < delayed.size(); ++i)
    if (!delayReaders(delayed[i]))
      return false;
  // Those behind an insertion point that was found after them stay.
  SmallVector<Operation *> readers;
  for (Operation *reader : delayed)
    if (reader->isBeforeInBlock(insertionPoint))
      readers.push_back(reader);
  llvm::sort(readers, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  bucket.push_back(op);
  if (insertionPoint == op)
    insertionPoint = op->getNextNode();
  for (Operation *moving : llvm::concat<Operation *>(bucket, readers))
    moving->moveBefore(insertionPoint);
  return true;
}

void Bucketing::close(SmallVector<Operation *> &bucket) {
  if (bucket.size() > 1) {
    SmallVector<Location> locations;
    SmallVector<Value> xs;
    SmallVector<Type> types;
    SmallVector<int64_t> dims;
    for (Operation *member : bucket) {
      locations.push_back(member->getLoc());
      xs.push_back(member->getOperand(0));
      types.push_back(member->getResult(0).getType());
      if (auto own = member->getAttrOfType<DenseI64ArrayAttr>("dims"))
        dims.push_back(own[0]);
    }
    OpBuilder builder(bucket.back());
    OperationState state(builder.getFusedLoc(locations), bucket.front()->getName());
    state.addOperands(xs);
    state.addTypes(types);
    state.addAttributes(bucket.front()->getAttrs());
    if (!dims.empty())
      state.attributes.set("dims", builder.getDenseI64ArrayAttr(dims));
    Operation *call = builder.create(state);
    for (auto [member, result] : llvm::zip(bucket, call->getResults())) {
      member->getResult(0).replaceAllUsesWith(result);
      member->erase();
    }
  }
  bucket.clear();
}

void meshwright::dist::bucketCollectives(Block &block, const Mesh &mesh, const BucketSize &size) {
  Bucketing(block, mesh, size).run();
}
