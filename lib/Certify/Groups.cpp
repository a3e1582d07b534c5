//===- Groups.cpp - loops over groups of iterations --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Certify/Groups.h"

#include "Certify/Loops.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::certify;

/// What a loop carried to the first iteration that runs of each group; the operand is the stack of
/// what it carried to all.
static constexpr StringRef startsName = "where groups begin";

std::optional<Groups> Groups::of(train::RepeatOp outer, func::FuncOp body) {
  Groups groups(outer, body);
  return groups.read() ? std::optional(groups) : std::nullopt;
}

/// Arguments of the body are, in order, carried values, slices and shared values.
bool Groups::read() {
  unsigned carries = outer.getCarry().size(), slices = outer.getEach().size();
  if (outer.getTimes() || outer.getIndexed() || body.isExternal() ||
      !body.getBody().hasOneBlock())
    return false;
  Block &block = body.getBody().front();
  auto argumentOf = [&](Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument ? std::optional(argument.getArgNumber()) : std::nullopt;
  };
  auto isSlice = [&](Value value) {
    auto argument = argumentOf(value);
    return argument && *argument >= carries && *argument < carries + slices;
  };
  auto isStack = [](Value value) {
    auto loop = value.getDefiningOp<train::RepeatOp>();
    return loop && cast<OpResult>(value).getResultNumber() >= loop.getCarry().size();
  };
  std::set<unsigned> sliced;
  for (Operation &op : block.without_terminator()) {
    auto loop = dyn_cast<train::RepeatOp>(op);
    if (!loop || loop.getTimes() || loop.getIndexed() ||
        (size && size != int64_t(loop.getCount())))
      return false;
    size = loop.getCount();
    bool isMain =
        carries && llvm::equal(loop.getCarry(), block.getArguments().take_front(carries));
    if (isMain && (main || loop.getReverse() != outer.getReverse()))
      return false;
    if (isMain)
      main = loop;
    for (Value value : loop.getCarry()) {
      if (!isMain && !isSlice(value))
        return false;
      if (!isMain)
        checkpoints.insert(*argumentOf(value) - carries);
    }
    for (Value value : loop.getEach()) {
      if (!isSlice(value) && !isStack(value))
        return false;
      if (isSlice(value))
        sliced.insert(*argumentOf(value) - carries);
    }
    for (Value value : loop.getShared())
      if (auto argument = argumentOf(value); !argument || *argument < carries + slices)
        return false;
  }
  ValueRange returned = block.getTerminator()->getOperands();
  if (carries && (!main || !llvm::equal(returned.take_front(carries), main.getCarried())))
    return false;
  for (Value value : returned.drop_front(carries)) {
    auto argument = argumentOf(value);
    if (!isStack(value) && !(argument && *argument < carries + slices))
      return false;
    if (isSlice(value))
      sliced.insert(*argument - carries);
  }
  groups = outer.getCount();
  return count() > 1 &&
         llvm::none_of(sliced, [&](unsigned index) { return checkpoints.count(index); });
}

std::optional<unsigned> Groups::startOf(unsigned index) {
  Value value = body.getBody().front().getTerminator()->getOperand(index);
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getArgNumber() >= outer.getCarry().size())
    return {};
  return argument.getArgNumber();
}

Attribute Groups::numbers(bool isReverse) {
  return DenseI64ArrayAttr::get(outer.getContext(), {groups, size, isReverse});
}

/// With dimensions of these extents in place of the first `dims`, which have as many elements.
static Fact regrouped(const Fact &stack, unsigned dims, ArrayRef<int64_t> extents,
                      Checker &checker) {
  Fact made = stack;
  for (unsigned dim = 0; dim < dims; ++dim)
    made.type.eraseFront();
  for (int64_t extent : llvm::reverse(extents))
    made.type.insertFront(fillOf(stack.expression) ? anyExtent : extent);
  auto shapeOf = [&](ArrayRef<int64_t> shape) {
    Shape result(extents);
    llvm::append_range(result, shape.drop_front(dims));
    return result;
  };
  if (made.type.rows) {
    made.type.rows = made.type.rows->shifted(int(extents.size()) - int(dims));
    const Expression *&routing = made.type.rows->routing;
    routing = reshaped(routing, shapeOf(routing->shape), checker);
  }
  made.expression = reshaped(stack.expression, made.type.expressionShape(), checker);
  return made;
}

std::optional<Fact> Groups::merged(const Fact &stack, Checker &checker) {
  const Distribution &type = stack.type;
  if (type.rank() < 2 || type.hasParts() || stack.offset)
    return {};
  for (int64_t dim : {0, 1}) {
    int64_t extent = dim == 0 ? groups : size;
    if (!type.dims[dim].empty() || type.padding.count(dim) ||
        (!fillOf(stack.expression) && type.shape[dim] != extent) ||
        (type.rows && type.rows->blockDim &&
         std::min(*type.rows->blockDim, *type.rows->slotDim) == dim))
      return {};
  }
  return regrouped(stack, 2, {count()}, checker);
}

Fact Groups::divided(const Fact &stack, Checker &checker) {
  return regrouped(stack, 1, {groups, size}, checker);
}

Fact Groups::starts(const Expression *loop, const Fact &carried, Checker &checker) {
  Fact made = carried;
  made.type.insertFront(groups);
  Shape shape = carried.type.expressionShape();
  shape.insert(shape.begin(), count());
  const Expression *all = stackOf(loop, carried.expression, shape, checker);
  made.expression = checker.make(carried.expression->location, startsName,
                                 numbers(outer.getReverse()), {all}, all->element,
                                 made.type.expressionShape());
  return made;
}

/// If the values are those of the other loop before the first iteration of each group, and the body
/// makes of those before an iteration those after it, they are the same in all iterations.
LogicalResult Groups::resume(train::RepeatOp loop, int64_t level, Facts stacks, NewFacts &before,
                             SmallVectorImpl<const Expression *> &after, Checker &checker) {
  const Expression *other = nullptr;
  for (auto [index, stack] : llvm::enumerate(stacks)) {
    const Expression *all = stack.expression->name == startsName &&
                                    stack.expression->attributes == numbers(loop.getReverse())
                                ? stack.expression->operands[0]
                                : nullptr;
    if (!all || (other && other != all->operands[0]) ||
        bodyOf(all->operands[0]) != std::pair(level, count()))
      return checker.refuse(loop) << "begins with carried value " << index << ", "
                                  << stack.type.str(checker.mesh) << ", made by "
                                  << stack.expression->name
                                  << ", not with what one loop over as many groups carried to each";
    other = all->operands[0];
    auto loopNumbers = cast<DenseI64ArrayAttr>(other->attributes).asArrayRef();
    bool isReverse = loopNumbers[2];
    int64_t carries = loopNumbers[3];
    if (isReverse != loop.getReverse())
      return checker.refuse(loop) << "runs in another order than the loop whose values it begins with";
    Fact fact = stack;
    fact.type.eraseFront();
    fact.expression = inIteration(other, all->operands[1], checker);
    before.push_back(fact);
    int64_t number = cast<DenseI64ArrayAttr>(all->operands[1]->attributes)[1];
    after.push_back(inIteration(other, other->operands[carries + number], checker));
  }
  return success();
}

LogicalResult Groups::run(int64_t level, Facts carried, Facts slices, Facts shared,
                          NewFacts &produced, Checker &checker) {
  Block &block = body.getBody().front();
  llvm::DenseMap<Value, Fact> facts;
  FactList arguments(carried);
  llvm::append_range(arguments, slices);
  llvm::append_range(arguments, shared);
  for (auto [argument, fact] : llvm::zip_equal(block.getArguments(), arguments))
    facts[argument] = fact;
  for (auto loop : block.getOps<train::RepeatOp>()) {
    func::FuncOp callee = checker.lookup(loop, loop.getCalleeAttr());
    if (!callee)
      return checker.refuse(loop) << "repeats @" << loop.getCallee() << ", which is not there";
    auto factsOf = [&](ValueRange values) {
      FactList list;
      for (Value value : values)
        list.push_back(facts.lookup(value));
      return list;
    };
    unsigned carries = loop.getCarry().size();
    FactList own, made;
    SmallVector<const Expression *> after;
    if (loop == main)
      own.assign(carried.begin(), carried.end());
    else if (failed(resume(loop, level, factsOf(loop.getCarry()), own, after, checker)))
      return failure();
    FactList before(own);
    llvm::append_range(own, factsOf(loop.getEach()));
    llvm::append_range(own, factsOf(loop.getShared()));
    ++checker.proof.ops;
    if (failed(checker.run(callee, own, made)))
      return failure();
    for (auto [index, next] : llvm::enumerate(after))
      if (made[index].expression != next || made[index].type != before[index].type ||
          made[index].offset)
        return checker.refuse(loop)
               << "makes something else of carried value " << index
               << " than the loop whose values it begins with, by " << made[index].expression->name
               << ", " << made[index].type.str(checker.mesh);
    for (auto [result, fact] : llvm::zip_equal(loop.getResults(), made)) {
      ArrayRef<int64_t> local = cast<RankedTensorType>(result.getType()).getShape();
      if (result.getResultNumber() >= carries)
        local = local.drop_front();
      if (fact.type.hasParts() || fact.offset || !fact.type.fits(local, checker.mesh))
        return checker.refuse(loop) << "has a body that returns " << fact.type.str(checker.mesh);
      facts[result] = fact;
    }
    if (loop == main)
      produced.append(made.begin(), made.begin() + carries);
  }
  for (Value value : block.getTerminator()->getOperands().drop_front(carried.size()))
    produced.push_back(facts.lookup(value));
  return success();
}
