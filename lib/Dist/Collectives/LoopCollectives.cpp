//===- LoopCollectives.cpp - products and their collectives in steps --------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/Passes.h"
#include "Dist/Programs.h"
#include "Dist/Wire.h"

#include "Train/Train.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

namespace meshwright::dist {
#define GEN_PASS_DEF_DISTLOOPCOLLECTIVES
#include "Dist/Passes.h.inc"
} // namespace meshwright::dist

namespace {
/// The dimension in which each tensor of a contraction has the index that is split.
struct SplitDims {
  std::optional<int64_t> operands[2], result;
};
} // namespace

/// How a contraction is split into `n` equal parts along the index of dimension `dim` of
/// an operand (0 or 1) or of the result (2); nothing, and a reason, where it cannot be.
static std::optional<SplitDims> splitDimsOf(Operation *op, unsigned tensor, int64_t dim, int64_t n,
                                            std::string &reason) {
  std::string name = op->getName().getStringRef().str();
  if (!isa<train::ContractionOpInterface>(op)) {
    reason = name + " is no matrix product";
    return std::nullopt;
  }
  if (op->getNumOperands() != 2 || op->getOperand(0) == op->getOperand(1)) {
    reason = name + " is no product of two different values";
    return std::nullopt;
  }
  ShardingRule rule = cast<train::ShardingRuleOpInterface>(op).getShardingRule();
  const TensorFactors *tensors[] = {&rule.operands[0], &rule.operands[1], &rule.results[0]};
  const auto &factors = tensors[tensor]->dims[dim];
  if (factors.empty() || rule.factors[factors.front()].size % n) {
    reason = ("dimension " + Twine(dim) + " of " + name + " has no index of which " + Twine(n) +
              " divides the size").str();
    return std::nullopt;
  }
  SplitDims split;
  std::optional<int64_t> *found[] = {&split.operands[0], &split.operands[1], &split.result};
  for (auto [insertionPoint, factorsOf] : llvm::zip(found, tensors))
    for (auto [d, names] : llvm::enumerate(factorsOf->dims)) {
      auto *at = llvm::find(names, factors.front());
      if (at == names.end())
        continue;
      if (at != names.begin()) {
        reason = "index " + rule.factors[factors.front()].name + " of " + name +
                 " is not the outermost of its dimension";
        return std::nullopt;
      }
      *insertionPoint = int64_t(d);
    }
  return split;
}

/// The contraction as an op that can add to a value in place, if it is not one yet.
static Operation *accumulating(Operation *op) {
  if (isa<train::AccumulatingOpInterface>(op))
    return op;
  ShardingRule rule = cast<train::ShardingRuleOpInterface>(op).getShardingRule();
  std::string text;
  auto add = [&](const TensorFactors &tensor) {
    for (const auto &dim : tensor.dims) {
      if (dim.size() != 1)
        return false;
      text += " i" + std::to_string(dim.front());
    }
    return true;
  };
  bool plain = add(rule.operands[0]);
  text += ",";
  plain = plain && add(rule.operands[1]);
  text += " ->";
  plain = plain && add(rule.results[0]);
  if (!plain)
    return op;
  OpBuilder b(op);
  Operation *contract = train::ContractOp::create(
      b, op->getLoc(), op->getResult(0).getType(), StringRef(text).trim(), op->getOperand(0),
      op->getOperand(1), Value());
  contract->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  op->replaceAllUsesWith(contract);
  op->erase();
  return contract;
}

static RankedTensorType partOf(Type whole, int64_t dim, int64_t n) {
  auto type = cast<RankedTensorType>(whole);
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] /= n;
  return RankedTensorType::get(shape, type.getElementType());
}

namespace {
class Loops {
public:
  Loops(Block &block, const Mesh &mesh, int64_t most) : block(block), mesh(mesh), most(most) {}
  void run();

  int64_t gathers = 0, scatters = 0, kept = 0;

private:
  bool gather(AllGatherOp op, std::string &reason);
  bool scatter(ReduceScatterOp op, std::string &reason);
  void keep(Operation *op, const std::string &reason) {
    ++kept;
    op->emitRemark() << "stays one call: " << reason;
  }
  int64_t sizeOf(GroupAttr group) { return mesh.size(group.on(mesh)); }
  bool isShort(int64_t n, std::string &reason) {
    if (n > most)
      reason = ("its group has " + Twine(n) + " devices, more than the " + Twine(most) +
                " for which steps are written out").str();
    return n <= most;
  }

  Value slice(OpBuilder &b, Location loc, Value x, int64_t dim, int64_t n, GroupAttr group,
              int64_t shift) {
    return SliceOp::create(b, loc, partOf(x.getType(), dim, n), x, dim, group, shift);
  }
  /// What the device one ranks further has.
  Value next(OpBuilder &b, Location loc, Value x, int64_t n, GroupAttr group) {
    SmallVector<int64_t> from;
    for (int64_t p = 0; p < n; ++p)
      from.push_back((p + 1) % n);
    return PermuteOp::create(b, loc, x.getType(), x, from, group);
  }
  Value part(OpBuilder &b, Value sum, int64_t dim, int64_t n, GroupAttr group, int64_t shift);
  Value product(OpBuilder &b, Operation *op, const SplitDims &split, int64_t n, GroupAttr group,
                int64_t shift, Value replaced = {}, Value with = {});

  Block &block;
  const Mesh &mesh;
  int64_t most;
};
} // namespace

/// `op` on the parts `shift` ranks further; of operand `replaced` that is `with`.
Value Loops::product(OpBuilder &b, Operation *op, const SplitDims &split, int64_t n,
                     GroupAttr group, int64_t shift, Value replaced, Value with) {
  SmallVector<Value> operands(op->getOperands());
  for (unsigned i = 0; i < 2; ++i)
    if (operands[i] == replaced)
      operands[i] = with;
    else if (split.operands[i])
      operands[i] = slice(b, op->getLoc(), operands[i], *split.operands[i], n, group, shift);
  Operation *step = b.clone(*op);
  step->setOperands(operands);
  if (split.result)
    step->getResult(0).setType(partOf(op->getResult(0).getType(), *split.result, n));
  return step->getResult(0);
}

//===--- gathered operands --------------------------------------------------===//

/// Where all of `readers` can run: behind all that they read and before all that reads
/// them; null if there is no such point.
static Operation *insertionPointFor(Operation *gather, ArrayRef<Operation *> readers) {
  Operation *insertionPoint = gather;
  for (Operation *reader : readers)
    for (Value operand : reader->getOperands())
      if (Operation *made = operand.getDefiningOp();
          made && made->getBlock() == insertionPoint->getBlock() &&
          insertionPoint->isBeforeInBlock(made))
        insertionPoint = made;
  if (llvm::is_contained(readers, insertionPoint))
    return nullptr;
  for (Operation *reader : readers)
    for (Operation *user : reader->getUsers())
      if (!insertionPoint->isBeforeInBlock(
              insertionPoint->getBlock()->findAncestorOpInBlock(*user)))
        return nullptr;
  return insertionPoint;
}

bool Loops::gather(AllGatherOp op, std::string &reason) {
  GroupAttr group = op.getGroup();
  int64_t n = sizeOf(group), dim = op.getDim();
  SmallVector<Operation *> readers;
  SmallVector<SplitDims> splits;
  for (Operation &reader : block) {
    if (!llvm::is_contained(op->getUsers(), &reader))
      continue;
    unsigned which = !reader.getOperands().empty() && reader.getOperand(0) == op.getY() ? 0 : 1;
    std::optional<SplitDims> split = splitDimsOf(&reader, which, dim, n, reason);
    if (!split) {
      reason += ", and needs the gathered value whole";
      return false;
    }
    readers.push_back(&reader);
    splits.push_back(*split);
  }
  if (readers.empty()) {
    reason = "nothing reads the gathered value";
    return false;
  }
  if (!isShort(n, reason))
    return false;
  Operation *insertionPoint = insertionPointFor(op, readers);
  if (!insertionPoint) {
    reason = "products that read the gathered value need each other's results";
    return false;
  }
  for (auto [reader, split] : llvm::zip(readers, splits))
    if (!split.result)
      reader = accumulating(reader);
  OpBuilder b(op->getContext());
  b.setInsertionPointAfter(insertionPoint);
  SmallVector<SmallVector<Value>> parts(readers.size());
  Value part = op.getX();
  for (int64_t t = 0; t < n; ++t) {
    // Under way before the product begins.
    Value following = t + 1 < n ? next(b, op.getLoc(), part, n, group) : Value();
    for (auto [reader, split, made] : llvm::zip(readers, splits, parts)) {
      Value term = product(b, reader, split, n, group, t, op.getY(), part);
      if (split.result || t == 0)
        made.push_back(term);
      else
        made[0] = train::AddOp::create(b, reader->getLoc(), made[0], term);
    }
    part = following;
  }
  for (auto [reader, split, made] : llvm::zip(readers, splits, parts)) {
    Value whole = made[0];
    if (split.result)
      whole = ConcatOp::create(b, reader->getLoc(), reader->getResult(0).getType(), made,
                               *split.result, group);
    reader->getResult(0).replaceAllUsesWith(whole);
  }
  // Only now: new ops are put in front of what may be one of these.
  for (Operation *reader : readers)
    reader->erase();
  op.erase();
  return true;
}

//===--- scattered results --------------------------------------------------===//

/// Whether `op` only adds, so that a part of its result is made of parts of its operands.
static bool adds(Operation *op) {
  return isa_and_nonnull<train::AddOp>(op) && op->getOperand(0).getType() == op->getOperand(1).getType();
}

/// The ops whose sum `value` is, if nobody else reads it: additions, and what they add.
static void termsOf(Value value, SmallVectorImpl<Operation *> &ops, Block &block) {
  Operation *op = value.getDefiningOp();
  if (!op || !value.hasOneUse() || op->getBlock() != &block)
    return;
  ops.push_back(op);
  if (adds(op))
    for (Value operand : op->getOperands())
      termsOf(operand, ops, block);
}

/// The part of `sum` along `dim` that belongs to the device `shift` ranks further.
Value Loops::part(OpBuilder &b, Value sum, int64_t dim, int64_t n, GroupAttr group,
                  int64_t shift) {
  Operation *op = sum.getDefiningOp();
  if (op && sum.hasOneUse() && op->getBlock() == &block) {
    std::string reason;
    if (adds(op))
      return train::AddOp::create(b, op->getLoc(), part(b, op->getOperand(0), dim, n, group, shift),
                                  part(b, op->getOperand(1), dim, n, group, shift));
    if (std::optional<SplitDims> split = splitDimsOf(op, 2, dim, n, reason))
      return product(b, op, *split, n, group, shift);
  }
  return slice(b, sum.getLoc(), sum, dim, n, group, shift);
}

bool Loops::scatter(ReduceScatterOp op, std::string &reason) {
  GroupAttr group = op.getGroup();
  int64_t n = sizeOf(group), dim = op.getDim();
  if (op.getKind() != train::ReduceKind::Sum) {
    reason = "it takes the maximum";
    return false;
  }
  if (op->hasAttr(wireAttr)) {
    reason = "its terms are sent in another type than they are added in";
    return false;
  }
  SmallVector<Operation *> terms;
  termsOf(op.getX(), terms, block);
  reason = "what it adds is used elsewhere or is no product";
  if (llvm::none_of(terms, [&](Operation *term) {
        return !adds(term) && splitDimsOf(term, 2, dim, n, reason);
      }))
    return false;
  if (!isShort(n, reason))
    return false;
  OpBuilder b(op);
  Value sum;
  for (int64_t t = 0; t < n; ++t) {
    // What is on its way to this device ends t + 1 ranks further from here.
    Value arriving = t > 0 ? next(b, op.getLoc(), sum, n, group) : Value();
    sum = part(b, op.getX(), dim, n, group, (t + 1) % n);
    if (arriving)
      sum = train::AddOp::create(b, op.getLoc(), arriving, sum);
  }
  op.getY().replaceAllUsesWith(sum);
  op.erase();
  for (Operation *term : terms)
    if (term->use_empty())
      term->erase();
  return true;
}

void Loops::run() {
  SmallVector<Operation *> found;
  for (Operation &op : block)
    if (isa<ReduceScatterOp>(op))
      found.push_back(&op);
  // Gathers come second: a product that has both keeps its loop to the result, where
  // the sums would otherwise have to be whole.
  for (Operation &op : block)
    if (isa<AllGatherOp>(op))
      found.push_back(&op);
  for (Operation *op : found) {
    std::string reason;
    if (op->getNumOperands() > 1) {
      keep(op, "it has several tensors; dist-optimize-collectives makes such calls later");
      continue;
    }
    if (sizeOf(cast<CollectiveOpInterface>(op).getGroupAttr()) == 1)
      continue;
    if (auto reduce = dyn_cast<ReduceScatterOp>(op)) {
      if (scatter(reduce, reason))
        ++scatters;
      else
        keep(op, reason);
    } else if (gather(cast<AllGatherOp>(op), reason)) {
      ++gathers;
    } else {
      keep(op, reason);
    }
  }
}

namespace {
class LoopCollectivesPass : public dist::impl::DistLoopCollectivesBase<LoopCollectivesPass> {
public:
  using DistLoopCollectivesBase::DistLoopCollectivesBase;

private:
  void runOnModule() override {
    MeshOp meshOp = lookupMesh(getOperation());
    if (!meshOp)
      return signalPassFailure();
    Mesh mesh = meshOp.getMesh();
    for (ModuleOp program : programsOf(getOperation()))
      for (auto function : program.getOps<func::FuncOp>())
        for (Block &block : function.getBody()) {
          Loops loops(block, mesh, maxDevices);
          loops.run();
          gathers += loops.gathers;
          scatters += loops.scatters;
          kept += loops.kept;
        }
  }
};
} // namespace
