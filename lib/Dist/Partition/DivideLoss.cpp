//===- DivideLoss.cpp - dist-divide-loss ------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Finds the ops around the logits by factor tables: rows are the indices of tokens, columns those
// of the vocabulary, and a value with both is wide. A region is all ops that read or make a wide
// value, those between them, and those on the way to the loss.
//
//===----------------------------------------------------------------------===//
#include "Dist/Dist.h"
#include "Dist/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

namespace meshwright::dist {
#define GEN_PASS_DEF_DISTDIVIDELOSS
#include "Dist/Passes.h.inc"
} // namespace meshwright::dist

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

/// The factor table of `op`; nothing if it has none.
static std::optional<ShardingRule> ruleOf(Operation *op) {
  if (auto rule = dyn_cast<train::ShardingRuleOpInterface>(op))
    return rule.getShardingRule();
  if (isa<AllReduceOp>(op) && op->getNumOperands() == 1)
    return elementwiseRule(shapeOf(op->getResult(0)), {shapeOf(op->getOperand(0))},
                           /*linear=*/true, /*additive=*/false);
  return std::nullopt;
}

/// Whether `op` makes a scalar that may be a loss.
static bool makesLoss(Operation *op) {
  return llvm::any_of(op->getResults(), [](Value result) {
    return shapeOf(result).empty() && isa<FloatType>(getElementTypeOrSelf(result));
  });
}

namespace {
/// The ops between the product that makes the logits and those that read them or their gradient.
class LossRegion {
public:
  /// That of `head`, or nothing if it ends in no loss, or if its rows cannot be divided.
  static std::optional<LossRegion> find(Operation *head);

  bool contains(Operation *op) const { return ops.contains(op); }
  size_t size() const { return ops.size(); }
  Operation *head() const { return logits.getDefiningOp(); }
  int64_t rows() const { return llvm::product_of(shapeOf(logits).take_front(rowDims)); }
  int64_t logitsBytes() const {
    auto type = cast<RankedTensorType>(logits.getType());
    return type.getNumElements() * type.getElementTypeBitWidth() / 8;
  }

  /// Makes a loop of it that computes a part of the rows in each of `parts` iterations.
  train::RepeatOp divide(int64_t parts);

private:
  /// What is known of a value that has rows, always in its first dimensions.
  struct Rowed {
    SmallVector<unsigned> columns; ///< dimensions; none if the value is not wide
  };

  bool add(Operation *op);
  bool grow();
  bool addBetween();
  /// Whether one of the results is a loss; `addLoss` adds the ops of one that is behind the region.
  bool endsInLoss() const;
  bool addLoss();
  /// Whether results that no row is left in are read outside alone.
  bool sumsLeave() const;

  bool isOutside(Value value) const { return !contains(value.getDefiningOp()); }
  bool hasRows(Value value) const { return values.contains(value); }
  bool isUsedOutside(Value value) const {
    return llvm::any_of(value.getUsers(), [&](Operation *user) { return !contains(user); });
  }
  /// `type` of a value with rows as a part of them, or with an entry for each part in front.
  RankedTensorType partType(Type type, int64_t parts, bool stacked) const;

  Value logits;
  Block *block = nullptr;
  unsigned rowDims = 0;
  llvm::SetVector<Operation *> ops;
  llvm::DenseMap<Value, Rowed> values;
  llvm::DenseSet<Value> shared; ///< read by ops for which they have no rows
  SmallVector<Value> wide;      ///< whose readers and maker have to be added
};
} // namespace

std::optional<LossRegion> LossRegion::find(Operation *head) {
  std::optional<ShardingRule> rule = ruleOf(head);
  if (!isa<train::ContractionOpInterface>(head) || !rule || head->getNumOperands() != 2)
    return std::nullopt;
  auto has = [](const TensorFactors &tensor, unsigned factor) {
    return llvm::any_of(tensor.dims,
                        [&](ArrayRef<unsigned> dim) { return llvm::is_contained(dim, factor); });
  };
  LossRegion region;
  region.logits = head->getResult(0);
  region.block = head->getBlock();
  Rowed rowed;
  for (auto [i, dim] : llvm::enumerate(rule->results[0].dims)) {
    if (dim.size() != 1)
      return std::nullopt;
    bool isRow = has(rule->operands[0], dim[0]), isColumn = has(rule->operands[1], dim[0]);
    if (isRow == isColumn || (isRow && region.rowDims != i))
      return std::nullopt;
    if (isRow)
      ++region.rowDims;
    else
      rowed.columns.push_back(i);
  }
  if (region.rowDims == 0 || rowed.columns.empty())
    return std::nullopt;
  region.values[region.logits] = rowed;
  region.wide.push_back(region.logits);
  if (!region.add(head) || !region.grow())
    return std::nullopt;
  if ((!region.endsInLoss() && !region.addLoss()) || !region.sumsLeave())
    return std::nullopt;
  return region;
}

/// Adds `op`, one of whose operands or results is known to have rows; false if it cannot be
/// divided.
bool LossRegion::add(Operation *op) {
  if (contains(op))
    return true;
  std::optional<ShardingRule> rule = ruleOf(op);
  if (op->getBlock() != block || !rule || !isPure(op))
    return false;
  SmallVector<std::pair<Value, const TensorFactors *>> tensors;
  for (auto [value, factors] : llvm::zip_equal(op->getOperands(), rule->operands))
    tensors.push_back({value, &factors});
  for (auto [value, factors] : llvm::zip_equal(op->getResults(), rule->results))
    tensors.push_back({value, &factors});
  SmallVector<unsigned> rows, columns;
  for (auto [value, factors] : tensors) {
    auto known = values.find(value);
    if (known == values.end())
      continue;
    for (const auto &dim : ArrayRef(factors->dims).take_front(rowDims))
      if (dim.size() != 1)
        return false;
    if (rows.empty())
      for (const auto &dim : ArrayRef(factors->dims).take_front(rowDims))
        rows.push_back(dim[0]);
    for (unsigned dim : known->second.columns)
      llvm::append_range(columns, factors->dims[dim]);
  }
  if (rows.empty() || llvm::any_of(rows, [&](unsigned f) { return rule->factors[f].whole; }))
    return false;
  auto accumulating = dyn_cast<train::AccumulatingOpInterface>(op);
  bool addsToInit = accumulating && !accumulating.getInitMutable().empty();
  if (auto indexed = dyn_cast<train::IndexedOpInterface>(op))
    for (auto [value, dim] : indexed.getIndexedDims())
      for (auto [other, factors] : tensors)
        if (other == value && llvm::any_of(factors->dims[dim], [&](unsigned factor) {
              return llvm::is_contained(rows, factor);
            }))
          return false;
  // Each tensor has all rows in front, or none.
  SmallVector<std::pair<Value, Rowed>> found;
  llvm::SmallDenseSet<Value> without;
  for (auto [i, tensor] : llvm::enumerate(tensors)) {
    auto [value, factors] = tensor;
    Rowed rowed;
    unsigned here = 0;
    for (auto [d, dim] : llvm::enumerate(factors->dims)) {
      for (unsigned factor : dim) {
        if (llvm::is_contained(rows, factor)) {
          if (dim.size() != 1 || d >= rowDims || rows[d] != factor)
            return false;
          ++here;
        } else if (llvm::is_contained(columns, factor)) {
          rowed.columns.push_back(d);
        }
      }
    }
    bool isResult = i >= op->getNumOperands();
    if (here != rowDims && (here != 0 || (isResult && (rule->max || addsToInit)) || hasRows(value)))
      return false;
    if (here == rowDims)
      found.push_back({value, rowed});
    else if (!isResult)
      without.insert(value);
  }
  // A value that is both has no part that would do for both.
  for (auto &[value, rowed] : found)
    if (shared.contains(value) || without.contains(value))
      return false;
  shared.insert(without.begin(), without.end());
  ops.insert(op);
  for (auto &[value, rowed] : found) {
    bool isNew = values.try_emplace(value, rowed).second;
    if (isNew && !rowed.columns.empty())
      wide.push_back(value);
  }
  return true;
}

bool LossRegion::grow() {
  while (!wide.empty()) {
    Value value = wide.pop_back_val();
    for (Operation *user : value.getUsers())
      if (!add(user))
        return false;
    Operation *maker = value.getDefiningOp();
    if (maker && maker->getBlock() == block && !add(maker))
      return false;
    if (wide.empty() && !addBetween())
      return false;
  }
  return true;
}

/// Adds what lies on the way from an op of the region to another.
bool LossRegion::addBetween() {
  llvm::DenseSet<Operation *> after, before;
  auto any = [](auto &&range, const llvm::DenseSet<Operation *> &set) {
    return llvm::any_of(range, [&](Operation *op) { return set.contains(op); });
  };
  auto makers = [](Operation *op) {
    SmallVector<Operation *> found;
    for (Value operand : op->getOperands())
      if (Operation *maker = operand.getDefiningOp())
        found.push_back(maker);
    return found;
  };
  for (Operation &op : *block)
    if (contains(&op) || any(makers(&op), after))
      after.insert(&op);
  for (Operation &op : llvm::reverse(*block))
    if (contains(&op) || any(op.getUsers(), before))
      before.insert(&op);
  for (Operation &op : *block)
    if (!contains(&op) && after.contains(&op) && before.contains(&op) && !add(&op))
      return false;
  return true;
}

bool LossRegion::endsInLoss() const { return llvm::any_of(ops, makesLoss); }

bool LossRegion::addLoss() {
  // All that is computed row by row behind the region, except by products.
  LossRegion wider = *this;
  SmallVector<Value> open;
  auto follow = [&](Operation *op) {
    for (Value result : op->getResults())
      if (wider.hasRows(result) && !isa<train::ContractionOpInterface>(op))
        open.push_back(result);
  };
  llvm::for_each(ops, follow);
  while (!open.empty())
    for (Operation *user : open.pop_back_val().getUsers())
      if (!wider.contains(user) && !isa<train::ContractionOpInterface>(user) && wider.add(user))
        follow(user);
  // Of that, what a loss is computed from.
  llvm::DenseSet<Operation *> behind;
  for (Operation &op : llvm::reverse(*block))
    if (wider.contains(&op) && !contains(&op) &&
        (makesLoss(&op) ||
         llvm::any_of(op.getUsers(), [&](Operation *user) { return behind.contains(user); })))
      behind.insert(&op);
  for (Operation &op : *block)
    if (behind.contains(&op) && !add(&op))
      return false;
  return grow() && addBetween() && endsInLoss();
}

bool LossRegion::sumsLeave() const {
  return llvm::all_of(ops, [&](Operation *op) {
    return llvm::all_of(op->getResults(), [&](Value result) {
      return hasRows(result) ||
             llvm::none_of(result.getUsers(), [&](Operation *user) { return contains(user); });
    });
  });
}

RankedTensorType LossRegion::partType(Type type, int64_t parts, bool stacked) const {
  auto whole = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape;
  if (stacked)
    shape.push_back(parts);
  shape.append(rowDims - 1, 1);
  shape.push_back(rows() / parts);
  llvm::append_range(shape, whole.getShape().drop_front(rowDims));
  return RankedTensorType::get(shape, whole.getElementType());
}

train::RepeatOp LossRegion::divide(int64_t parts) {
  SmallVector<Operation *> order;
  for (Operation &op : *block)
    if (contains(&op))
      order.push_back(&op);
  // What goes in and what comes out, in the order of the program.
  llvm::SetVector<Value> each, shared;
  SmallVector<Value> sums, stacks;
  for (Operation *op : order) {
    for (Value operand : op->getOperands())
      if (isOutside(operand))
        (hasRows(operand) ? each : shared).insert(operand);
    for (Value result : op->getResults())
      if (isUsedOutside(result))
        (hasRows(result) ? stacks : sums).push_back(result);
  }

  Location loc = logits.getLoc();
  auto parent = cast<func::FuncOp>(block->getParentOp());
  auto module = parent->getParentOfType<ModuleOp>();
  OpBuilder builder(parent);
  SmallVector<Type> arguments, results;
  for (Value sum : sums)
    arguments.push_back(sum.getType());
  for (Value value : each)
    arguments.push_back(partType(value.getType(), parts, false));
  for (Value value : shared)
    arguments.push_back(value.getType());
  for (Value sum : sums)
    results.push_back(sum.getType());
  for (Value value : stacks)
    results.push_back(partType(value.getType(), parts, false));
  auto body = func::FuncOp::create(loc, (parent.getSymName() + ".loss").str(),
                                   builder.getFunctionType(arguments, results));
  body.setPrivate();
  train::setRole(body, train::Role::Loss);
  SymbolTable(module).insert(body, parent->getIterator());

  Block *inside = body.addEntryBlock();
  IRMapping map;
  for (auto [from, to] :
       llvm::zip_equal(llvm::concat<const Value>(each.getArrayRef(), shared.getArrayRef()),
                       inside->getArguments().drop_front(sums.size()))) {
    map.map(from, to);
    to.setLoc(from.getLoc());
  }
  OpBuilder in = OpBuilder::atBlockEnd(inside);
  for (Operation *op : order) {
    Operation *part = in.clone(*op, map);
    for (auto [whole, result] : llvm::zip_equal(op->getResults(), part->getResults()))
      if (hasRows(whole))
        result.setType(partType(whole.getType(), parts, false));
    if (auto sized = dyn_cast<train::SizedOpInterface>(part))
      sized.updateSizes();
  }
  SmallVector<Value> returned;
  for (auto [sum, argument] : llvm::zip(sums, inside->getArguments())) {
    argument.setLoc(sum.getLoc());
    returned.push_back(
        train::AccumulateOp::create(in, sum.getLoc(), argument, map.lookup(sum)).getResult());
  }
  for (Value value : stacks)
    returned.push_back(map.lookup(value));
  func::ReturnOp::create(in, loc, returned);

  // The loop stands where the last op of the region does; whatever reads a result follows it.
  OpBuilder out(order.back());
  SmallVector<Value> carried, sliced;
  SmallVector<Type> types;
  for (Value sum : sums) {
    carried.push_back(
        train::FillOp::create(out, sum.getLoc(), sum.getType(), out.getF64FloatAttr(0.0)));
    types.push_back(sum.getType());
  }
  for (Value value : each)
    sliced.push_back(train::ReshapeOp::create(out, value.getLoc(),
                                              partType(value.getType(), parts, true), value));
  for (Value value : stacks)
    types.push_back(partType(value.getType(), parts, true));
  auto loop = train::RepeatOp::create(out, loc, types, body.getSymName(), parts,
                                      /*reverse=*/false, /*indexed=*/false, carried, sliced,
                                      shared.getArrayRef());
  train::setRole(loop, train::Role::Loss);
  llvm::DenseSet<Operation *> late;
  Operation *last = order.back();
  for (Operation *op = order.front(); op != loop;) {
    Operation *next = op->getNextNode();
    bool isLate = !contains(op) && llvm::any_of(op->getOperands(), [&](Value operand) {
      Operation *maker = operand.getDefiningOp();
      return maker && (contains(maker) || late.contains(maker));
    });
    if (isLate) {
      late.insert(op);
      op->moveAfter(last);
      last = op;
    }
    op = next;
  }
  for (auto [sum, result] : llvm::zip(sums, loop.getCarried())) {
    result.setLoc(sum.getLoc());
    sum.replaceUsesWithIf(result, [&](OpOperand &use) { return !contains(use.getOwner()); });
  }
  out.setInsertionPointAfter(loop);
  for (auto [value, stack] : llvm::zip(stacks, loop.getStacks())) {
    auto whole = train::ReshapeOp::create(out, value.getLoc(), value.getType(), stack);
    value.replaceUsesWithIf(whole, [&](OpOperand &use) { return !contains(use.getOwner()); });
  }
  for (Operation *op : llvm::reverse(order))
    op->erase();
  return loop;
}

/// The largest number of parts of `rows` that divides them and leaves each at least `least`.
static int64_t mostParts(int64_t rows, int64_t least) {
  int64_t parts = std::max<int64_t>(1, rows / std::max<int64_t>(1, least));
  while (rows % parts)
    --parts;
  return parts;
}

/// Logits below this many bytes are left whole unless parts are asked for.
static constexpr int64_t leastLogits = int64_t(64) << 20;

namespace {
struct DivideLossPass : dist::impl::DistDivideLossBase<DivideLossPass> {
  using DistDivideLossBase::DistDivideLossBase;

  void runOnModule() override {
    bool anywhere = false;
    for (auto function : llvm::to_vector(getOperation().getOps<func::FuncOp>())) {
      std::optional<train::Role> role = train::roleOf(function);
      if (function.isExternal() || (role && role != train::Role::Microbatch))
        continue;
      FailureOr<bool> divided = divideLosses(function.getBody().front());
      if (failed(divided))
        return signalPassFailure();
      anywhere |= *divided;
      bool trains = role || !function.getOps<train::SetOp>().empty();
      if (!*divided && parts.value.value_or(1) > 1 && trains &&
          !findRepeat(function, train::Role::Microbatch)) {
        refuse(function);
        return signalPassFailure();
      }
    }
    if (!anywhere && parts.value.value_or(1) > 1) {
      refuse(getOperation());
      signalPassFailure();
    }
  }

  void refuse(Operation *op) {
    op->emitError()
        << "--loss-parts " << *parts.value
        << ": no loss can be divided; that takes a product whose result only the loss and what is "
           "computed token by token read, so leave the flag out";
  }

  static bool findRepeat(func::FuncOp function, train::Role role) {
    return llvm::any_of(function.getOps<train::RepeatOp>(),
                        [&](train::RepeatOp repeat) { return train::roleOf(repeat) == role; });
  }

  /// Divides the losses of a function; whether there is one, or failure if `parts` divides none.
  FailureOr<bool> divideLosses(Block &block) {
    llvm::DenseSet<Operation *> whole; // heads of losses that stay as they are
    Operation *uneven = nullptr;
    int64_t unevenRows = 0;
    bool found = false, divided = false;
    while (std::optional<LossRegion> region = smallestRegion(block, whole)) {
      found = true;
      int64_t rows = region->rows(), count = parts.value.value_or(0);
      if (!parts.value)
        count = region->logitsBytes() < leastLogits ? 1 : mostParts(rows, leastRows);
      if (rows % count) {
        uneven = region->head();
        unevenRows = rows;
        count = 1;
      } else {
        divided = true;
      }
      if (count > 1)
        region->divide(count);
      else
        whole.insert(region->head());
    }
    if (!uneven || divided)
      return found;
    return uneven->emitError() << "--loss-parts " << *parts.value << " does not divide the "
                               << unevenRows << " tokens that a rank has in a microbatch; "
                               << mostParts(unevenRows,
                                            (unevenRows + *parts.value - 1) / *parts.value)
                               << " does";
  }

  /// Of the regions in `block` that begin at none of `whole` the one with fewest ops: a product in
  /// front of a head can begin one too, around it.
  static std::optional<LossRegion> smallestRegion(Block &block,
                                                  const llvm::DenseSet<Operation *> &whole) {
    std::optional<LossRegion> smallest;
    for (Operation &op : block) {
      std::optional<LossRegion> region = LossRegion::find(&op);
      if (region && llvm::none_of(whole, [&](Operation *head) { return region->contains(head); }) &&
          (!smallest || region->size() < smallest->size()))
        smallest = std::move(region);
    }
    return smallest;
  }
};
} // namespace
