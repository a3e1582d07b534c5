//===- StructureRules.cpp - variables, calls and loops -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A loop is proved by induction. Its carried values are held in a way that the body
// keeps: if they are so before an iteration, they are so after it. What starts as a
// constant, as gradients do that microbatches add to, fits several ways; the first
// iteration decides which, and the proof is that the body keeps that one.
//
//===----------------------------------------------------------------------===//
#include "Certify/Rule.h"

#include "Train/Train.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::certify;

static LogicalResult get(train::GetOp op, Facts, NewFacts &results, Checker &checker) {
  auto found = checker.state.find(op.getVariable());
  if (found == checker.state.end())
    return checker.refuse(op) << "reads @" << op.getVariable()
                              << ", which is no variable of both programs";
  results.push_back(found->second);
  return success();
}

static LogicalResult set(train::SetOp op, Facts operands, NewFacts &, Checker &checker) {
  auto found = checker.state.find(op.getVariable());
  if (found == checker.state.end())
    return checker.refuse(op) << "writes @" << op.getVariable()
                              << ", which is no variable of both programs";
  if (checker.depth)
    return checker.refuse(op) << "writes @" << op.getVariable()
                              << " in a loop, for which there is no rule";
  found->second = operands[0];
  return success();
}

static LogicalResult call(func::CallOp op, Facts operands, NewFacts &results, Checker &checker) {
  func::FuncOp callee = checker.lookup(op, op.getCalleeAttr());
  return callee ? checker.run(callee, operands, results)
                : checker.refuse(op) << "calls @" << op.getCallee() << ", which is not there";
}

//===--- loops --------------------------------------------------------------===//

namespace {
class Loop {
public:
  Loop(train::RepeatOp op, Facts operands, Checker &checker)
      : op(op), checker(checker), level(checker.depth),
        callee(checker.lookup(op, op.getCalleeAttr())),
        initial(operands.take_front(op.getCarry().size())),
        each(operands.slice(initial.size(), op.getEach().size())),
        shared(operands.drop_front(initial.size() + each.size())) {}

  LogicalResult certify(NewFacts &results);

private:
  /// Runs the body on carried values; pushes what it returns.
  LogicalResult run(Facts carried, NewFacts &produced);
  /// How carried values are held between iterations.
  LogicalResult chooseTypes();
  Attribute numbers(ArrayRef<int64_t> values) {
    return DenseI64ArrayAttr::get(op.getContext(), values);
  }

  train::RepeatOp op;
  Checker &checker;
  int64_t level;
  func::FuncOp callee;
  Facts initial, each, shared;
  Distributions types;
};
} // namespace

LogicalResult Loop::run(Facts carried, NewFacts &produced) {
  FactList arguments;
  if (op.getIndexed())
    arguments.push_back({checker.make(op.getLoc(), "iteration", numbers(level), {},
                                      IntegerType::get(op.getContext(), 32), {}),
                         {}});
  llvm::append_range(arguments, carried);
  for (auto [index, whole] : llvm::enumerate(each)) {
    Fact slice = whole;
    if (whole.type.rank() == 0 || !whole.type.dims[0].empty() || whole.offset)
      return checker.refuse(op) << "takes slices of " << Checker::nameOf(op, initial.size() + index)
                                << ", which is " << whole.type.str(checker.mesh);
    slice.type.shape.erase(slice.type.shape.begin());
    slice.type.dims.erase(slice.type.dims.begin());
    std::optional<double> constant = fillOf(whole.expression);
    slice.expression =
        constant
            ? checker.fill(op.getLoc(), *constant, whole.expression->element, slice.type.rank())
            : checker.make(op.getLoc(), "each", numbers(level), {whole.expression},
                           whole.expression->element, slice.type.shape);
    arguments.push_back(slice);
  }
  llvm::append_range(arguments, shared);
  llvm::SaveAndRestore nested(checker.depth, checker.depth + 1);
  return checker.run(callee, arguments, produced);
}

LogicalResult Loop::chooseTypes() {
  for (const Fact &fact : initial)
    types.push_back(fact.type);
  if (llvm::none_of(initial, [](const Fact &fact) { return fillOf(fact.expression); }))
    return success();
  FactList produced;
  if (failed(run(initial, produced)))
    return failure();
  for (auto [type, fact] : llvm::zip(types, produced))
    type = fact.type;
  // Zeros are also the terms of a sum, and a constant fits any extent; all else must be as it was.
  for (auto [index, pair] : llvm::enumerate(llvm::zip(initial, types))) {
    auto &[fact, type] = pair;
    Distribution expected = type;
    for (int64_t dim = 0; dim < fact.type.rank(); ++dim)
      if (fact.type.isAny(dim)) {
        expected.shape[dim] = anyExtent;
        expected.dims[dim].clear();
      }
    if (isZero(fact.expression))
      expected.sum = fact.type.sum;
    if (expected != fact.type)
      return checker.refuse(op) << "begins with carried value " << index << ", "
                                << fact.type.str(checker.mesh) << ", which iterations make "
                                << type.str(checker.mesh);
  }
  return success();
}

LogicalResult Loop::certify(NewFacts &results) {
  if (!callee)
    return checker.refuse(op) << "repeats @" << op.getCallee() << ", which is not there";
  if (op.getTimes())
    return checker.refuse(op)
           << "runs a number of times that data decides, for which there is no rule";
  for (auto [index, fact] : llvm::enumerate(initial))
    if (fact.offset)
      return checker.refuse(op) << "carries " << Checker::nameOf(op, index)
                                << ", whose numbers count from the device's own offset";
  if (failed(chooseTypes()))
    return failure();
  FactList carried, produced;
  for (auto [index, pair] : llvm::enumerate(llvm::zip(initial, types))) {
    auto &[fact, type] = pair;
    carried.push_back({checker.make(op.getLoc(), "argument", numbers({level, int64_t(index)}), {},
                                    fact.expression->element, type.shape),
                       type});
  }
  if (failed(run(carried, produced)))
    return failure();
  for (auto [index, pair] : llvm::enumerate(llvm::zip(carried, produced))) {
    auto &[before, after] = pair;
    if (before.type != after.type || after.offset)
      return checker.refuse(op) << "gets carried value " << index << ", "
                                << before.type.str(checker.mesh) << ", but its body returns "
                                << after.type.str(checker.mesh);
  }
  SmallVector<const Expression *> operands = expressionsOf(initial);
  llvm::append_range(operands, expressionsOf(produced));
  for (auto [index, fact] : llvm::enumerate(produced)) {
    Distribution type = fact.type;
    if (index >= carried.size()) {
      if (fact.offset)
        return checker.refuse(op) << "stacks numbers that count from the device's own offset";
      type.shape.insert(type.shape.begin(), op.getCount());
      type.dims.insert(type.dims.begin(), Axes());
    }
    Attribute attributes = numbers(
        {level, int64_t(op.getCount()), op.getReverse(), int64_t(carried.size()), int64_t(index)});
    results.push_back({checker.make(op.getLoc(), "loop", attributes, operands,
                                    fact.expression->element, type.shape),
                       type});
  }
  return success();
}

static LogicalResult repeat(train::RepeatOp op, Facts operands, NewFacts &results,
                            Checker &checker) {
  return Loop(op, operands, checker).certify(results);
}

void certify::attachStructureRules(MLIRContext *context) {
  attachRule<train::GetOp, get>(context);
  attachRule<train::SetOp, set>(context);
  attachRule<train::RepeatOp, repeat>(context);
}

void certify::attachCallRule(MLIRContext *context) { attachRule<func::CallOp, call>(context); }
