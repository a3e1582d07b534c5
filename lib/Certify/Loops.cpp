//===- Loops.cpp - what the iterations of a loop compute ---------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Certify/Loops.h"

#include "Train/Train.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::certify;

namespace {
/// What an iteration of a loop computes, as an expression of the iteration with the same number of
/// any loop.
class StackSlice {
public:
  StackSlice(const Expression *loop, Checker &checker) : checker(checker), loop(loop) {}
  const Expression *replace(const Expression *x);

private:
  const Expression *make(const Expression *like, Attribute attributes, Operands operands) {
    if (isSum(like)) // sorts its terms
      return checker.sum(like->location, operands, like->element, like->shape);
    return checker.proof.expressions.get(like->location, like->name, attributes, operands,
                                         like->result, like->element, like->shape);
  }
  Checker &checker;
  const Expression *loop;
  llvm::DenseMap<const Expression *, const Expression *> replaced;
};
} // namespace

std::pair<int64_t, int64_t> certify::bodyOf(const Expression *loop) {
  ArrayRef<int64_t> numbers = cast<DenseI64ArrayAttr>(loop->attributes).asArrayRef();
  return {numbers[0], numbers[1]};
}

/// Whether nothing in an expression belongs to a body at `level` that is around it: a loop at this
/// level or outside of it has bodies of its own, as what it stacks is in, and slices are of what is
/// computed before.
static bool isClosed(const Expression *x, int64_t level) {
  const Expression *loop = x->name == stackName ? x->operands[0] : x;
  return (loop->name == loopName && bodyOf(loop).first <= level) ||
         (x->name == eachName && cast<DenseI64ArrayAttr>(x->attributes)[0] == level);
}

const Expression *StackSlice::replace(const Expression *x) {
  auto [found, isNew] = replaced.try_emplace(x, x);
  if (!isNew)
    return found->second;
  const Expression *result = x;
  int64_t level = bodyOf(loop).first;
  if (x->name == argumentName) {
    if (cast<DenseI64ArrayAttr>(x->attributes)[0] == level) {
      Shape shape = x->shape;
      shape.insert(shape.begin(), bodyOf(loop).second);
      result = checker.proof.expressions.get(
          x->location, eachName, DenseI64ArrayAttr::get(checker.module.getContext(), level),
          {stackOf(loop, x, shape, checker)}, 0, x->element, x->shape);
    }
  } else if (!isClosed(x, level)) {
    SmallVector<const Expression *> operands;
    for (const Expression *operand : x->operands)
      operands.push_back(replace(operand));
    if (ArrayRef(operands) != ArrayRef(x->operands))
      result = make(x, x->attributes, operands);
  }
  return replaced[x] = result;
}

const Expression *certify::stackOf(const Expression *loop, const Expression *value,
                                 ArrayRef<int64_t> shape, Checker &checker) {
  auto [level, count] = bodyOf(loop);
  bool isCarried = value->name == argumentName &&
                   cast<DenseI64ArrayAttr>(value->attributes)[0] == level;
  if (!isCarried) {
    value = StackSlice(loop, checker).replace(value);
    loop = checker.make(value->location, loopName,
                        DenseI64ArrayAttr::get(checker.module.getContext(), {level, count, 0, 0}),
                        {}, NoneType::get(checker.module.getContext()), {});
  }
  return checker.proof.expressions.get(value->location, stackName, {}, {loop, value}, 0,
                                       value->element, shape);
}

const Expression *certify::reshaped(const Expression *x, ArrayRef<int64_t> shape, Checker &checker) {
  if (std::optional<double> constant = fillOf(x))
    return checker.fill(x->location, *constant, x->element, shape.size());
  StringRef name = train::ReshapeOp::getOperationName();
  const Expression *source = x->name == name ? x->operands[0] : x;
  return source->shape == shape
             ? source
             : checker.make(x->location, name, {}, {source}, source->element, shape);
}

const Expression *certify::sliceOf(const Expression *stack, int64_t level, int64_t count,
                                 ArrayRef<int64_t> shape, Location location, Checker &checker) {
  if (std::optional<double> constant = fillOf(stack))
    return checker.fill(location, *constant, stack->element, shape.size());
  if (count == 1)
    return reshaped(stack, shape, checker);
  if (stack->name == stackName && bodyOf(stack->operands[0]) == std::pair(level, count)) {
    checker.use("a value that is kept for the backward is equal to one that is recomputed");
    return StackSlice(stack->operands[0], checker).replace(stack->operands[1]);
  }
  return checker.make(location, eachName,
                      DenseI64ArrayAttr::get(checker.module.getContext(), level), {stack},
                      stack->element, shape);
}

const Expression *certify::inIteration(const Expression *loop, const Expression *value,
                                       Checker &checker) {
  return StackSlice(loop, checker).replace(value);
}

static bool dependsOn(int64_t level, const Expression *x,
                      llvm::SmallPtrSetImpl<const Expression *> &seen) {
  if (!seen.insert(x).second)
    return false;
  if ((x->name == argumentName || x->name == eachName || x->name == iterationName ||
       x->name == accumulatedName) &&
      cast<DenseI64ArrayAttr>(x->attributes)[0] == level)
    return true;
  if (isClosed(x, level))
    return false;
  return llvm::any_of(x->operands, [&](auto *operand) { return dependsOn(level, operand, seen); });
}

bool certify::dependsOn(int64_t level, const Expression *x) {
  llvm::SmallPtrSet<const Expression *, 16> seen;
  return ::dependsOn(level, x, seen);
}
