//===- StructureRules.cpp - variables, calls and loops -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A loop is proved by induction. Its carried values are held in a way that the body
// keeps: if they are so before an iteration, they are so after it. What starts as a
// constant, as gradients do that microbatches add to, fits several ways; the first
// iteration decides which, and the proof is that the body keeps that one.
//
// A slice of what another loop stacked is what an iteration of that loop computed, so it
// is that expression, with the carried values of that iteration: whether a program keeps
// a value for the backward or recomputes it makes no difference.
//
// A loop of one iteration is its body, and one over groups of iterations is a loop over all of
// them (Groups.h).
//
// A loop over rounds adds something to its carried values in each of them. Its iterations
// are the positions along an axis of their own, over which the tensors of rows in its
// body are sharded, and what it adds is partial. So is a loop over chunks of tokens.
//
//===----------------------------------------------------------------------===//
#include "Certify/Groups.h"
#include "Certify/Loops.h"
#include "Certify/Rule.h"

#include "Dist/Dist.h"
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
        shared(operands.slice(initial.size() + each.size(), op.getShared().size())) {
    if (op.getTimes())
      (train::isOverMicrobatches(op) ? microbatches : times) = operands.back();
    if (callee && !isOverChunks())
      groups = Groups::of(op, callee);
  }

  LogicalResult certify(NewFacts &results);

private:
  /// How many iterations there are, of all groups.
  int64_t count() { return groups ? groups->count() : int64_t(op.getCount()); }
  /// What an iteration takes of sliced operand `index`.
  FailureOr<Fact> slice(unsigned index);
  /// Runs the body on carried values; pushes what it returns.
  LogicalResult run(Facts carried, NewFacts &produced);
  /// A constant that follows a value that is none is held as that is: parts of a constant are that
  /// constant, and terms of 0 are 0.
  void fitConstant(Fact &next, const Fact &before);
  /// What the padding of carried values is both before and after an iteration: any numbers, if it
  /// was something else. Whether that is less than what types said.
  bool weakenPadding(MutableArrayRef<Fact> produced);
  /// Constants of any extents that an iteration makes a tensor of are held as that is. Whether there are
  /// such.
  bool giveExtents(Facts produced);
  /// How carried values are held between iterations.
  LogicalResult chooseTypes();
  /// That what the loop begins with is held so.
  LogicalResult checkInitial();
  LogicalResult prove(NewFacts &results);
  /// What the loop stacks of result `index` of its body.
  FailureOr<Fact> stackResult(unsigned index, const Fact &fact, const Expression *loop,
                              Facts carried);
  /// A stack of a value at all iterations.
  Fact stackOfAll(const Fact &fact, const Expression *loop);
  Fact unchangedFact(const Fact &before, const Distribution &type);
  /// Of one iteration: its body.
  LogicalResult runOnce(NewFacts &results);
  /// Of a number of rounds: that there are enough of them for all rows.
  FailureOr<Rounds> readRounds(const Fact &times);
  LogicalResult sumRounds(FactList &produced, NewFacts &results);
  /// Whether an iteration has a chunk of each sliced tensor.
  bool isOverChunks() const {
    return llvm::any_of(each, [](const Fact &fact) { return fact.type.chunks.has_value(); });
  }
  /// Whether carried values are sums over iterations.
  bool isSum() const { return times || isOverChunks(); }
  LogicalResult checkChunks();
  /// Of microbatches, one after the other.
  LogicalResult unroll(NewFacts &results);
  Attribute numbers(ArrayRef<int64_t> values) {
    return DenseI64ArrayAttr::get(op.getContext(), values);
  }

  train::RepeatOp op;
  Checker &checker;
  int64_t level;
  func::FuncOp callee;
  Facts initial, each, shared;
  std::optional<Groups> groups;     ///< of iterations, if the loop is over them
  std::optional<Fact> times;        ///< of rounds
  std::optional<Fact> microbatches; ///< how many a step has, if that is its input
  Distributions types;
  std::set<unsigned> unchanged; ///< carried values of a loop over rounds
};
} // namespace

/// Entry `number` of a stack.
static FailureOr<Fact> entryOf(Operation *op, unsigned operand, const Fact &stack, int64_t number,
                               Checker &checker) {
  const Distribution &type = stack.type;
  if (type.rank() == 0 || !type.dims[0].empty() || type.padding.count(0) || type.rows ||
      type.hasParts() || stack.offset)
    return checker.refuse(op) << "takes an entry of " << Checker::nameOf(op, operand) << ", which is "
                              << type.str(checker.mesh);
  Fact entry = stack;
  entry.type.eraseFront();
  Shape shape = entry.type.expressionShape();
  if (std::optional<double> constant = fillOf(stack.expression))
    entry.expression = checker.fill(op->getLoc(), *constant, stack.expression->element, shape.size());
  else if (stack.expression->shape[0] == 1)
    entry.expression = reshaped(stack.expression, shape, checker);
  else
    entry.expression = checker.make(op->getLoc(), "entry", Builder(op).getI64IntegerAttr(number),
                                    {stack.expression}, stack.expression->element, shape);
  return entry;
}

LogicalResult Loop::unroll(NewFacts &results) {
  FactList carried(initial);
  for (int64_t i = 0, count = int64_t(op.getCount()); i < count; ++i) {
    int64_t number = op.getReverse() ? count - 1 - i : i;
    FactList arguments, produced;
    if (op.getIndexed())
      arguments.push_back(
          {checker.fill(op.getLoc(), number, IntegerType::get(op.getContext(), 32), 0), {}});
    llvm::append_range(arguments, carried);
    for (auto [index, whole] : llvm::enumerate(each)) {
      auto slice = entryOf(op, initial.size() + index, whole, number, checker);
      if (failed(slice))
        return failure();
      arguments.push_back(*slice);
    }
    llvm::append_range(arguments, shared);
    if (failed(checker.run(callee, arguments, produced)))
      return failure();
    if (produced.size() > carried.size())
      return checker.refuse(op) << "stacks results of microbatches, for which there is no rule";
    carried = produced;
  }
  results.append(carried);
  return success();
}

/// The entry of a stack that is the same one on all devices.
static LogicalResult take(dist::TakeOp op, Facts operands, NewFacts &results, Checker &checker) {
  auto entry = entryOf(op, 0, operands[0], int64_t(op.getAt()), checker);
  if (failed(entry))
    return failure();
  results.push_back(*entry);
  return success();
}

FailureOr<Fact> Loop::slice(unsigned index) {
  Fact whole = each[index];
  if (whole.type.chunks) {
    whole.type.chunks->axis = checker.rounds.back().axis;
    return whole;
  }
  if (groups && groups->isCheckpoint(index))
    return whole;
  auto refuse = [&] {
    return checker.refuse(op) << "takes slices of " << Checker::nameOf(op, initial.size() + index)
                              << ", which is " << whole.type.str(checker.mesh);
  };
  if (groups) {
    auto merged = groups->merged(whole, checker);
    if (!merged)
      return refuse();
    whole = *merged;
  }
  if (whole.type.rank() == 0 || !whole.type.dims[0].empty() || whole.offset ||
      whole.type.padding.count(0) ||
      (whole.type.rows && whole.type.rows->blockDim &&
       std::min(*whole.type.rows->blockDim, *whole.type.rows->slotDim) == 0))
    return refuse();
  Fact slice = whole;
  slice.type.eraseFront();
  if (slice.type.rows) {
    slice.type.rows = slice.type.rows->shifted(-1);
    const Expression *&routing = slice.type.rows->routing;
    routing = sliceOf(routing, level, count(), ArrayRef(routing->shape).drop_front(), op.getLoc(),
                      checker);
  }
  slice.expression = sliceOf(whole.expression, level, count(), slice.type.expressionShape(),
                             op.getLoc(), checker);
  return slice;
}

LogicalResult Loop::run(Facts carried, NewFacts &produced) {
  FactList arguments, slices;
  for (unsigned index = 0; index < each.size(); ++index) {
    auto fact = slice(index);
    if (failed(fact))
      return failure();
    slices.push_back(*fact);
  }
  llvm::SaveAndRestore nested(checker.depth, checker.depth + 1);
  if (groups)
    return groups->run(level, carried, slices, shared, produced, checker);
  if (op.getIndexed())
    arguments.push_back(
        {checker.make(op.getLoc(), op.getCount() == 1 ? firstName : iterationName, numbers(level),
                      {}, IntegerType::get(op.getContext(), 32), {}),
         {}});
  llvm::append_range(arguments, carried);
  llvm::append_range(arguments, slices);
  llvm::append_range(arguments, shared);
  if (failed(checker.run(callee, arguments, produced)))
    return failure();
  for (auto [index, fact] : llvm::enumerate(produced))
    if (fact.type.terms || fact.type.summands || !fact.type.pieces.empty() || fact.type.messages ||
        (fact.type.chunks && (!isOverChunks() || index < carried.size())))
      return checker.refuse(op) << "has a body that returns " << fact.type.str(checker.mesh)
                                << " as result " << index;
  return success();
}

void Loop::fitConstant(Fact &next, const Fact &before) {
  const Distribution &type = before.type;
  if (!fillOf(next.expression) || fillOf(before.expression) ||
      (!type.sum.empty() && !isZero(next.expression)) || !type.max.empty() || !type.root.empty() ||
      type.rows || llvm::is_contained(type.shape, anyExtent) ||
      next.type != Distribution::replicated(next.type.shape))
    return;
  next.type = type;
  next.expression = checker.make(op.getLoc(), "of extents", {}, {next.expression},
                                 next.expression->element, type.expressionShape());
  for (double value = *fillOf(next.expression->operands[0]);
       auto &[dim, padding] : next.type.padding)
    padding = {padding.logical, value, false};
}

/// The padding of a fact that is held as a type with padding in dimension `dim`: a constant is the
/// same everywhere.
static Padding paddingOf(const Fact &fact, int64_t dim, const Padding &of) {
  auto found = fact.type.padding.find(dim);
  if (found != fact.type.padding.end())
    return found->second;
  return {of.logical, fact.type.isAny(dim) ? fillOf(fact.expression) : std::nullopt, false};
}

bool Loop::weakenPadding(MutableArrayRef<Fact> produced) {
  bool isWeaker = false;
  for (auto [type, fact] : llvm::zip(types, produced))
    for (auto &[dim, padding] : type.padding) {
      auto found = fact.type.padding.find(dim);
      if (found == fact.type.padding.end() || found->second == padding)
        continue;
      Padding before = padding;
      padding.weaken(found->second);
      found->second.weaken(padding);
      isWeaker |= padding != before;
    }
  return isWeaker;
}

bool Loop::giveExtents(Facts produced) {
  bool isSome = false;
  for (auto [type, fact] : llvm::zip(types, produced))
    if (llvm::is_contained(type.shape, anyExtent) && !llvm::is_contained(fact.type.shape, anyExtent)) {
      type = fact.type;
      isSome = true;
    }
  return isSome;
}

LogicalResult Loop::chooseTypes() {
  for (const Fact &fact : initial)
    types.push_back(fact.type);
  if (llvm::none_of(initial, [](const Fact &fact) { return fillOf(fact.expression); }))
    return success();
  FactList produced;
  if (failed(run(initial, produced)))
    return failure();
  for (auto [index, pair] : llvm::enumerate(llvm::zip(types, produced))) {
    auto &[type, fact] = pair;
    fitConstant(fact, initial[index]);
    type = fact.type;
    for (auto &[dim, padding] : type.padding)
      padding.weaken(paddingOf(initial[index], dim, padding));
    if (isSum())
      llvm::erase(type.sum, checker.rounds.back().axis);
  }
  return checkInitial();
}

LogicalResult Loop::checkInitial() {
  // Zeros are also the terms of a sum, and a constant fits any extent; all else must be as it was.
  for (auto [index, pair] : llvm::enumerate(llvm::zip(initial, types))) {
    auto &[fact, type] = pair;
    Distribution expected = type;
    for (auto &[dim, padding] : type.padding) {
      Padding own = paddingOf(fact, dim, padding), weaker = own;
      weaker.weaken(padding);
      if (weaker == padding)
        expected.padding[dim] = own;
    }
    for (int64_t dim = 0; dim < fact.type.rank(); ++dim)
      if (fact.type.isAny(dim)) {
        expected.shape[dim] = anyExtent;
        expected.dims[dim].clear();
        if (auto found = expected.padding.find(dim);
            found != expected.padding.end() && found->second == paddingOf(fact, dim, found->second))
          expected.padding.erase(found);
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
  for (auto [index, fact] : llvm::enumerate(initial))
    if (fact.offset)
      return checker.refuse(op) << "carries " << Checker::nameOf(op, index)
                                << ", whose numbers count from the device's own offset";
  if (microbatches && (microbatches->type != Distribution::replicated({}) || microbatches->offset))
    return checker.refuse(op) << "runs over a number of microbatches that devices need not have alike, "
                              << microbatches->type.str(checker.mesh);
  if (times && times->offset)
    return checker.refuse(op) << "runs a number of times that counts from the device's own offset";
  auto role = train::roleOf(op);
  bool isOverBatch = role == train::Role::Microbatch || role == train::Role::Count;
  if (checker.unrolls && isOverBatch && !isSum() && !microbatches)
    return unroll(results);
  if (!isSum())
    return count() == 1 ? runOnce(results) : prove(results);
  FailureOr<Rounds> rounds = Rounds{level, unsigned(checker.mesh.axes.size()), nullptr};
  if (isOverChunks() && failed(checkChunks()))
    return failure();
  if (!isOverChunks() && failed(rounds = readRounds(*times)))
    return failure();
  checker.mesh.axes.push_back({isOverChunks() ? "chunks" : "rounds", int64_t(op.getCount())});
  checker.rounds.push_back(*rounds);
  LogicalResult proved = prove(results);
  checker.rounds.pop_back();
  checker.mesh.axes.pop_back();
  return proved;
}

LogicalResult Loop::runOnce(NewFacts &results) {
  FactList produced;
  if (failed(run(initial, produced)))
    return failure();
  for (auto [index, fact] : llvm::enumerate(produced)) {
    if (fact.offset)
      return checker.refuse(op) << "makes numbers that count from the device's own offset";
    if (index >= initial.size()) {
      fact.type.insertFront(1);
      if (fact.type.rows) {
        fact.type.rows = fact.type.rows->shifted(1);
        const Expression *&routing = fact.type.rows->routing;
        Shape shape = routing->shape;
        shape.insert(shape.begin(), 1);
        routing = reshaped(routing, shape, checker);
      }
      fact.expression = reshaped(fact.expression, fact.type.expressionShape(), checker);
    }
    results.push_back(fact);
  }
  return success();
}

/// What every iteration returns as it got it is what the loop began with, but for its padding, into
/// which the body may put something else.
Fact Loop::unchangedFact(const Fact &before, const Distribution &type) {
  std::optional<double> constant = fillOf(before.expression);
  bool isPinned = llvm::is_contained(before.type.shape, anyExtent) &&
                  !llvm::is_contained(type.shape, anyExtent);
  if (!constant && !isPinned)
    return {before.expression, type};
  if (!constant && type.padding.empty())
    return before;
  bool isConstant = constant && llvm::all_of(type.padding, [&](auto &entry) {
    return before.type.isAny(entry.first) && entry.second.fill == *constant;
  });
  if (isConstant && type.sum == before.type.sum && type.max == before.type.max &&
      type.root == before.type.root && !type.rows)
    return before;
  return {checker.make(op.getLoc(), "of extents", {}, {before.expression},
                       before.expression->element, type.expressionShape()),
          type};
}

LogicalResult Loop::prove(NewFacts &results) {
  if (failed(chooseTypes()))
    return failure();
  FactList carried, produced;
  do {
    carried.clear();
    produced.clear();
    for (auto [index, pair] : llvm::enumerate(llvm::zip(initial, types))) {
      auto &[fact, type] = pair;
      carried.push_back({checker.make(op.getLoc(), argumentName, numbers({level, int64_t(index)}),
                                      {}, fact.expression->element, type.expressionShape()),
                         type});
    }
    if (failed(run(carried, produced)))
      return failure();
    for (auto [before, after] : llvm::zip(carried, produced))
      fitConstant(after, before);
  } while (weakenPadding(produced) || giveExtents(produced));
  if (failed(checkInitial()))
    return failure();
  if (isSum()) {
    // What every iteration returns as it got it is what the loop began with.
    for (auto [index, fact] : llvm::enumerate(initial))
      if (produced[index].expression == carried[index].expression) {
        carried[index] = fact;
        unchanged.insert(index);
      }
    produced.clear();
    if (failed(run(carried, produced)))
      return failure();
  }
  for (auto [index, pair] : llvm::enumerate(llvm::zip(carried, produced))) {
    auto &[before, after] = pair;
    fitConstant(after, before);
    if (before.type != after.type || after.offset)
      return checker.refuse(op) << "gets carried value " << index << ", "
                                << before.type.str(checker.mesh) << ", but its body returns "
                                << after.type.str(checker.mesh);
  }
  if (isSum())
    return sumRounds(produced, results);
  SmallVector<const Expression *> operands = expressionsOf(initial);
  for (auto [index, pair] : llvm::enumerate(llvm::zip(initial, carried))) {
    // What no iteration changes is so whatever extents a program gives it.
    auto &[fact, before] = pair;
    const Expression *after = produced[index].expression;
    operands.push_back(after == before.expression
                           ? checker.make(op.getLoc(), argumentName, numbers({level, int64_t(index)}),
                                          {}, after->element, fact.expression->shape)
                           : after);
  }
  if (microbatches)
    operands.push_back(microbatches->expression);
  const Expression *loop = checker.make(
      op.getLoc(), loopName, numbers({level, count(), op.getReverse(), int64_t(carried.size())}),
      operands, NoneType::get(op.getContext()), {});
  if (groups)
    checker.use("a loop over groups of iterations is a loop over all of them");
  for (auto [index, fact] : llvm::enumerate(produced)) {
    if (index >= carried.size()) {
      auto stack = stackResult(index, fact, loop, carried);
      if (failed(stack))
        return failure();
      results.push_back(*stack);
      continue;
    }
    if (fact.expression == carried[index].expression) {
      results.push_back(unchangedFact(initial[index], fact.type));
      continue;
    }
    results.push_back({checker.make(op.getLoc(), "after loop", numbers(int64_t(index)), {loop},
                                    fact.expression->element, fact.type.expressionShape()),
                       fact.type});
  }
  return success();
}

FailureOr<Fact> Loop::stackResult(unsigned index, const Fact &fact, const Expression *loop,
                                  Facts carried) {
  if (fact.offset)
    return checker.refuse(op) << "stacks numbers that count from the device's own offset";
  if (groups) {
    if (auto start = groups->startOf(index)) {
      if (carried[*start].type.rows)
        return checker.refuse(op) << "stacks carried value " << *start << ", "
                                  << carried[*start].type.str(checker.mesh)
                                  << ", where groups begin";
      return groups->starts(loop, carried[*start], checker);
    }
    return groups->divided(stackOfAll(fact, loop), checker);
  }
  return stackOfAll(fact, loop);
}

Fact Loop::stackOfAll(const Fact &fact, const Expression *loop) {
  Distribution type = fact.type;
  if (std::optional<double> constant = fillOf(fact.expression)) {
    type.insertFront(anyExtent);
    return {checker.fill(op.getLoc(), *constant, fact.expression->element, type.rank()), type};
  }
  // All slices of a tensor are that tensor.
  if (fact.expression->name == eachName && fact.expression->attributes == numbers(level)) {
    const Expression *whole = fact.expression->operands[0];
    type.insertFront(whole->shape[0]);
    if (!type.rows && type.expressionShape() == whole->shape)
      return {whole, type};
    type = fact.type;
  }
  type.insertFront(count());
  if (type.rows) {
    const Expression *routing = type.rows->routing;
    Shape shape = routing->shape;
    shape.insert(shape.begin(), count());
    type.rows = type.rows->shifted(1);
    type.rows->routing = stackOf(loop, routing, shape, checker);
  }
  return {stackOf(loop, fact.expression, type.expressionShape(), checker), type};
}

FailureOr<Rounds> Loop::readRounds(const Fact &number) {
  const Expression *rounds = number.expression;
  if (rounds->name != train::RoundsOp::getOperationName())
    return checker.refuse(op)
           << "runs a number of times that data decides, for which there is no rule";
  if (!number.type.root.empty())
    return checker.refuse(op) << "runs a number of times that the first device along "
                              << checker.mesh.str(number.type.root) << " knows alone";
  if (!number.type.max.empty())
    return checker.refuse(op) << "runs as many rounds as the device's own rows need, not the "
                                 "maximum over "
                              << checker.mesh.str(number.type.max);
  auto sizes = cast<DenseI64ArrayAttr>(rounds->attributes).asArrayRef();
  if (int64_t(op.getCount()) * sizes[2] < sizes[1])
    return checker.refuse(op) << "runs at most " << op.getCount() << " rounds of " << sizes[2]
                              << " slots, but there may be " << sizes[1] << " rows";
  checker.use("rounds that are enough for the most rows of a device have every row once");
  return Rounds{level, unsigned(checker.mesh.axes.size()), rounds};
}

/// All iterations together have all tokens, and each of them the same chunk of all tensors.
LogicalResult Loop::checkChunks() {
  if (times || microbatches || op.getIndexed())
    return checker.refuse(op) << "runs over chunks of tokens, which have no number";
  const Chunks &first = *llvm::find_if(each, [](auto &fact) { return fact.type.chunks; })->type.chunks;
  for (auto [index, fact] : llvm::enumerate(each))
    if (!fact.type.chunks || !(*fact.type.chunks == first) || first.count != int64_t(op.getCount()))
      return checker.refuse(op) << "takes slices of " << Checker::nameOf(op, initial.size() + index)
                                << ", " << fact.type.str(checker.mesh)
                                << ", beside chunks of tokens in " << int64_t(op.getCount())
                                << " iterations";
  checker.use("all chunks of tokens together are all tokens");
  return success();
}

/// The carried values are what they were and what all rounds add to them.
LogicalResult Loop::sumRounds(FactList &produced, NewFacts &results) {
  for (auto [index, fact] : llvm::enumerate(produced)) {
    const Expression *sum = fact.expression;
    if (index >= initial.size()) {
      if (!fact.type.chunks || fact.type.chunks->first != 0 || dependsOn(level, sum))
        return checker.refuse(op) << "stacks " << fact.type.str(checker.mesh)
                                  << ", which is no chunk of tokens";
      results.push_back(fact);
      results.back().type.chunks->axis.reset();
      continue;
    }
    if (unchanged.count(index)) {
      results.push_back(fact);
      continue;
    }
    Attribute carried = numbers({level, int64_t(index)});
    if (sum->name != accumulatedName || sum->attributes != carried ||
        dependsOn(level, sum->operands[0]))
      return checker.refuse(op) << "makes something else of carried value " << index
                                << " than it and the sum of what rounds add, by " << sum->name;
    if (!isZero(initial[index].expression))
      return checker.refuse(op) << "begins with carried value " << index
                                << ", which is not 0, for which there is no rule";
    results.push_back({sum->operands[0], fact.type});
  }
  return success();
}

static LogicalResult repeat(train::RepeatOp op, Facts given, NewFacts &results,
                            Checker &checker) {
  FactList operands(given);
  size_t begin = op.getCarry().size(), end = begin + op.getEach().size();
  for (auto [index, fact] : llvm::enumerate(operands)) {
    std::string why;
    settle(fact, checker, &why);
    bool isSliced = index >= begin && index < end;
    if (fact.type.hasParts() && !(isSliced && fact.type.chunks && !fact.type.chunks->axis))
      return checker.refuse(op) << "reads " << Checker::nameOf(op, index) << ", "
                                << fact.type.str(checker.mesh)
                                << (why.empty() ? why : ", which " + why)
                                << ": it has no rule for that";
  }
  return Loop(op, operands, checker).certify(results);
}

void certify::attachStructureRules(MLIRContext *context) {
  attachRule<train::GetOp, get, OnPadding::known>(context);
  attachRule<train::SetOp, set, OnPadding::known>(context);
  attachRule<train::RepeatOp, repeat, OnPadding::known, OnParts::known>(context);
}

void certify::attachTakeRule(MLIRContext *context) {
  attachRule<dist::TakeOp, take, OnPadding::known>(context);
}

void certify::attachCallRule(MLIRContext *context) {
  attachRule<func::CallOp, call, OnPadding::known, OnParts::known>(context);
}
