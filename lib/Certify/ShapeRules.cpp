//===- ShapeRules.cpp - ops that move, repeat and sum elements ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Certify/Rule.h"

#include "Train/Train.h"

#include "mlir/IR/Builders.h"

#include <limits>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::certify;

/// Every dimension an index of its own, the same in operand 0 and in the result.
static IndexRule alike(Operation *op, StringRef linear) {
  return IndexRule::elementwise(linear, op);
}

/// The constant that an op of rank `rank` makes of a constant by moving it.
static Fact constantFact(Operation *op, double value, Checker &checker) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  const Expression *expression =
      checker.fill(op->getLoc(), value, type.getElementType(), type.getRank());
  return {expression, Distribution::replicated(expression->shape)};
}

static LogicalResult fill(train::FillOp op, Facts, NewFacts &results, Checker &checker) {
  results.push_back(constantFact(op, op.getValue().convertToDouble(), checker));
  return success();
}

static LogicalResult broadcast(train::BroadcastOp op, Facts operands, NewFacts &results,
                               Checker &checker) {
  if (std::optional<double> constant = fillOf(operands[0].expression)) {
    results.push_back(constantFact(op, *constant, checker));
    results[0].type.sum = operands[0].type.sum;
    results[0].type.root = operands[0].type.root;
    return success();
  }
  // A new dimension fits any extent: each device has what it asks for.
  IndexRule rule;
  rule.linear = {{0}};
  rule.operands.emplace_back();
  rule.results.emplace_back();
  for (int64_t dim = 0; dim < cast<RankedTensorType>(op.getType()).getRank(); ++dim) {
    rule.results[0].push_back(dim);
    if (llvm::is_contained(op.getDims(), dim))
      rule.given[dim] = {anyExtent};
    else
      rule.operands[0].push_back(dim);
  }
  return applyRule(rule, op, operands, results, checker);
}

static LogicalResult reduce(train::ReduceOp op, Facts operands, NewFacts &results,
                            Checker &checker) {
  IndexRule rule;
  rule.max = op.getKind() == train::ReduceKind::Max;
  if (rule.max)
    rule.neutral = -std::numeric_limits<double>::infinity();
  else
    rule.linear = {{0}};
  rule.operands.emplace_back();
  rule.results.emplace_back();
  for (int64_t dim = 0; dim < operands[0].type.rank(); ++dim) {
    rule.operands[0].push_back(dim);
    if (!llvm::is_contained(op.getDims(), dim))
      rule.results[0].push_back(dim);
  }
  return applyRule(rule, op, operands, results, checker);
}

/// A slice or a pad: dimension `dim` changes, and must be whole.
static IndexRule changeRows(Operation *op, int64_t dim, int64_t rows, StringRef linear) {
  IndexRule rule = alike(op, linear);
  unsigned before = rule.operands[0][dim], after = rule.operands[0].size();
  rule.whole.insert(before);
  rule.results[0][dim] = after;
  rule.given[after] = {rows};
  return rule;
}

static LogicalResult slice(train::SliceOp op, Facts operands, NewFacts &results, Checker &checker) {
  // All rows are the operand itself, which a rank's program does not slice.
  if (op.getX().getType() == op.getType()) {
    results.push_back(operands[0]);
    return success();
  }
  if (std::optional<double> constant = fillOf(operands[0].expression)) {
    results.push_back(constantFact(op, *constant, checker));
    results[0].type.sum = operands[0].type.sum;
    results[0].type.root = operands[0].type.root;
    return success();
  }
  int64_t dim = op.getDim(), rows = op.getRows();
  FactList facts(operands);
  Distribution &x = facts[0].type;
  auto padding = x.padding.find(dim);
  if (padding != x.padding.end() && x.dims[dim].empty() &&
      int64_t(op.getFrom()) + rows <= padding->second.logical) {
    // None of the padding, and perhaps all else.
    x.shape[dim] = padding->second.logical;
    x.padding.erase(padding);
    if (x.shape[dim] == rows) {
      results.push_back(facts[0]);
      return success();
    }
  }
  return applyRule(changeRows(op, dim, rows, "0"), op, facts, results, checker);
}

static LogicalResult pad(train::PadOp op, Facts operands, NewFacts &results, Checker &checker) {
  int64_t dim = op.getDim();
  FactList facts(operands);
  IndexRule rule = changeRows(op, dim, op.getRows(), op.getValue() == 0 ? "0" : "");
  auto types = rule.apply(op, facts, checker);
  if (failed(types))
    return failure();
  Distribution &type = types->front();
  bool isInGraph = checker.proof.expressions.find(
      op.getLoc(), op->getName().getStringRef(), op->getPropertiesAsAttribute(),
      expressionsOf(facts), 0, facts[0].expression->element, type.expressionShape());
  // Rows that the global graph does not have are padding, if variables have it too.
  if (op.getFrom() != 0 || isInGraph ||
      !checker.padded.count({type.shape[dim], facts[0].type.shape[dim]}))
    return applyRule(rule, op, operands, results, checker);
  type.padding[dim] = {facts[0].type.shape[dim], double(op.getValue())};
  results.push_back({facts[0].expression, type});
  return success();
}

static constexpr IndexText transposed{"a n k -> n a k", "0"};

//===--- reshape ------------------------------------------------------------===//

namespace {
/// Dimensions of a tensor whose elements, in row-major order, are those of dimensions of another.
struct Group {
  SmallVector<int64_t, 4> before, after;
};
} // namespace

/// Groups of dimensions with equal numbers of elements on a device. Other dimensions that have
/// one element in all belong to none. The first `alike` dimensions are groups of their own.
static std::optional<SmallVector<Group>> groupDims(const Distribution &x, ArrayRef<int64_t> before,
                                                   ArrayRef<int64_t> after, size_t alike) {
  SmallVector<Group> groups;
  size_t i = 0, j = 0;
  while (i < alike)
    groups.push_back({{int64_t(i++)}, {int64_t(j++)}});
  auto skip = [&] {
    while (i < before.size() && x.shape[i] == 1)
      ++i;
  };
  for (skip(); i < before.size() && j < after.size(); skip()) {
    Group group;
    int64_t left = before[i], right = after[j];
    group.before.push_back(i++);
    group.after.push_back(j++);
    while (left != right) {
      skip();
      if (left < right ? i == before.size() : j == after.size())
        return {};
      if (left < right) {
        left *= before[i];
        group.before.push_back(i++);
      } else {
        right *= after[j];
        group.after.push_back(j++);
      }
    }
    groups.push_back(group);
  }
  for (; i < before.size(); ++i) {
    if (before[i] != 1)
      return {};
    if (groups.empty())
      return {};
    groups.back().before.push_back(i);
  }
  for (; j < after.size(); ++j)
    if (after[j] != 1)
      return {};
  return groups;
}

/// The ways in which `axes` may shard the dimensions of `group.after` from the `first` of them on,
/// added to `type`: the major axes shard a dimension, and where a device has one element of it, the
/// others shard those behind it.
static void shardDims(Distribution type, ArrayRef<int64_t> dims, ArrayRef<unsigned> axes,
                      ArrayRef<int64_t> local, const Mesh &mesh, Distributions &choices) {
  if (axes.empty()) {
    choices.push_back(type);
    return;
  }
  if (dims.empty())
    return;
  for (size_t taken = axes.size() + 1; taken-- > 0;) {
    if (taken < axes.size() && local[dims[0]] != 1)
      break;
    Distribution choice = type;
    choice.dims[dims[0]].assign(axes.begin(), axes.begin() + taken);
    choice.shape[dims[0]] *= mesh.size(axes.take_front(taken));
    shardDims(choice, dims.drop_front(), axes.drop_front(taken), local, mesh, choices);
  }
}

/// Rows stay as they are: only what a row is gets another shape, and is whole.
static LogicalResult reshapeRows(train::ReshapeOp op, const Fact &x, NewFacts &results,
                                 Checker &checker) {
  ArrayRef<int64_t> before = cast<RankedTensorType>(op.getX().getType()).getShape();
  ArrayRef<int64_t> after = cast<RankedTensorType>(op.getType()).getShape();
  size_t kept = x.type.rows->blockDim ? std::max(*x.type.rows->blockDim, *x.type.rows->slotDim) + 1
                                      : before.size();
  bool isWhole = llvm::all_of(ArrayRef(x.type.dims).drop_front(kept),
                              [](const Axes &axes) { return axes.empty(); });
  if (after.size() < kept || before.take_front(kept) != after.take_front(kept) || !isWhole ||
      x.type.rows->isIds || x.offset)
    return checker.refuse(op) << "makes other dimensions of " << Checker::nameOf(op, 0) << ", "
                              << x.type.str(checker.mesh);
  Distribution type = x.type;
  type.shape.truncate(kept);
  type.dims.truncate(kept);
  type.shape.append(after.begin() + kept, after.end());
  type.dims.resize(after.size());
  const Expression *source = x.expression;
  if (source->name == op->getName().getStringRef()) {
    source = source->operands[0];
    checker.use("a reshape of a reshape is a reshape");
  }
  Shape shape = type.expressionShape();
  results.push_back(
      {shape == source->shape ? source : checker.make(op, Attribute(), {source}, 0, shape), type});
  return success();
}

/// Padding at the end of a group's elements is at the end of its first dimension, where the elements before it
/// are whole ones of that.
static bool keepPadding(const Distribution &x, const Group &group, Distribution &choice) {
  auto first = [](const Distribution &type, ArrayRef<int64_t> dims) {
    return *llvm::find_if(dims, [&](int64_t dim) { return type.shape[dim] != 1 || dim == dims.back(); });
  };
  int64_t from = first(x, group.before), to = first(choice, group.after);
  if (llvm::any_of(group.before, [&](int64_t dim) { return dim != from && x.padding.count(dim); }))
    return false;
  auto padding = x.padding.find(from);
  if (padding == x.padding.end())
    return true;
  int64_t elements = padding->second.logical, row = 1;
  for (int64_t dim : group.before)
    elements *= dim == from ? 1 : x.shape[dim];
  for (int64_t dim : group.after)
    row *= dim == to ? 1 : choice.shape[dim];
  choice.padding[to] = {elements / row, padding->second.fill};
  return elements % row == 0;
}

/// Pushes the distributions of what a reshape makes of `x`, or returns why there are none. A
/// device's part of a group's elements must be contiguous: dimensions behind a sharded one are
/// whole, unless a device has one element of all before them. Then it is the part of several
/// shapes, of which the global graph has one.
static std::string chooseShapes(train::ReshapeOp op, const Distribution &x, size_t alike,
                                Distributions &choices, Checker &checker) {
  ArrayRef<int64_t> before = cast<RankedTensorType>(op.getX().getType()).getShape();
  ArrayRef<int64_t> after = cast<RankedTensorType>(op.getType()).getShape();
  auto groups = groupDims(x, before, after, alike);
  if (!groups)
    return "makes dimensions that are no products of those of " + Checker::nameOf(op, 0) + ", " +
           x.str(checker.mesh);
  Distribution type = Distribution::replicated(after);
  type.sum = x.sum;
  type.max = x.max;
  type.root = x.root;
  Distributions made = {type};
  for (const Group &group : *groups) {
    Axes axes;
    int64_t major = 1;
    for (int64_t dim : group.before) {
      if (!x.dims[dim].empty() && major != 1)
        return "merges dimension " + std::to_string(dim) + ", which is sharded over " +
               checker.mesh.str(x.dims[dim]) + ", into one that it is not the major part of";
      axes.append(x.dims[dim]);
      major *= before[dim];
    }
    Distributions longer;
    for (const Distribution &choice : made)
      shardDims(choice, group.after, axes, after, checker.mesh, longer);
    llvm::erase_if(longer, [&](Distribution &choice) { return !keepPadding(x, group, choice); });
    made = longer;
  }
  choices.append(made);
  return made.empty() ? "makes of " + Checker::nameOf(op, 0) + ", " + x.str(checker.mesh) +
                            ", a tensor whose padding is not at the end of one dimension"
                      : "";
}

/// The fact with numbers for dimensions of any extent: those of the device's tensor, and those that it may be
/// a part of, along axes that hold nothing else, where the global graph has such a tensor.
static FactList withExtents(train::ReshapeOp op, const Fact &x, Checker &checker) {
  FactList made = {x};
  pin(made[0], op.getX(), checker);
  SmallVector<int64_t> any;
  Axes free;
  for (int64_t dim = 0; dim < x.type.rank(); ++dim)
    if (x.type.isAny(dim))
      any.push_back(dim);
  for (unsigned axis = 0; axis < checker.mesh.axes.size(); ++axis)
    if (checker.mesh.axes[axis].size > 1 && x.type.isReplicated(axis))
      free.push_back(axis);
  // One dimension for each of the free axes, or none.
  Distributions types = {made[0].type};
  for (unsigned axis : free)
    for (size_t i = 0, count = any.empty() ? 0 : types.size(); i < count; ++i)
      for (int64_t dim : any) {
        Distribution type = types[i];
        type.dims[dim].push_back(axis);
        type.shape[dim] *= checker.mesh.axes[axis].size;
        types.push_back(type);
      }
  for (const Distribution &type : ArrayRef(types).drop_front())
    if (const Expression *found =
            checker.proof.expressions.find(op.getLoc(), "of extents", {}, {x.expression}, 0,
                                           x.expression->element, type.expressionShape()))
      made.push_back({found, type});
  return made;
}

static LogicalResult reshape(train::ReshapeOp op, Facts operands, NewFacts &results,
                             Checker &checker) {
  if (operands[0].type.rows)
    return reshapeRows(op, operands[0], results, checker);
  if (std::optional<double> constant = fillOf(operands[0].expression)) {
    results.push_back(constantFact(op, *constant, checker));
    results[0].type.sum = operands[0].type.sum;
    results[0].type.root = operands[0].type.root;
    return success();
  }
  if (operands[0].offset)
    return checker.refuse(op) << "reads numbers that count from the device's own offset";
  ArrayRef<int64_t> before = cast<RankedTensorType>(op.getX().getType()).getShape();
  ArrayRef<int64_t> after = cast<RankedTensorType>(op.getType()).getShape();
  // Where a device has one element of a dimension, dimensions may be grouped in several ways.
  size_t alike = 0;
  while (alike < std::min(before.size(), after.size()) && before[alike] == after[alike])
    ++alike;
  StringRef name = op->getName().getStringRef();
  std::string why;
  std::optional<Fact> first;
  for (const Fact &x : withExtents(op, operands[0], checker)) {
    Distributions choices;
    std::string said = chooseShapes(op, x.type, 0, choices, checker);
    chooseShapes(op, x.type, alike, choices, checker);
    if (why.empty())
      why = said;
    const Expression *source = x.expression;
    if (source->name == name) {
      source = source->operands[0];
      checker.use("a reshape of a reshape is a reshape");
    }
    for (const Distribution &choice : choices) {
      Shape shape = choice.expressionShape();
      const Expression *known =
          shape == source->shape ? source
                                 : checker.proof.expressions.find(op.getLoc(), name, {}, {source}, 0,
                                                                  source->element, shape);
      if (!first || known)
        first = {known ? known : source, choice};
      if (!known)
        continue;
      checker.proof.kernels.insert(name.str());
      results.push_back(*first);
      return success();
    }
  }
  if (!first)
    return checker.refuse(op) << why;
  checker.proof.kernels.insert(name.str());
  first->expression = checker.make(op, Attribute(), {first->expression}, 0, first->type.expressionShape());
  results.push_back(*first);
  return success();
}

void certify::attachShapeRules(MLIRContext *context) {
  attachRule<train::FillOp, ::fill>(context);
  attachRule<train::BroadcastOp, broadcast, OnPadding::known>(context);
  attachRule<train::ReduceOp, reduce, OnPadding::known>(context);
  attachRule<train::SliceOp, slice, OnPadding::known>(context);
  attachRule<train::PadOp, pad, OnPadding::known>(context);
  attachRule<train::ReshapeOp, reshape, OnPadding::known>(context);
  attachIndices<train::TransposeBlocksOp, transposed>(context);
}
