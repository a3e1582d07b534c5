//===- ReshapeRule.cpp - which values a reshaped tensor is a part of ---------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Where a device has one element of a dimension, its tensor is a part of several values.
// All of this is true, so that the rule takes a likely one, and Checker::evaluate others.
//
//===----------------------------------------------------------------------===//
#include "Certify/Loops.h"
#include "Certify/Rule.h"

#include "Dist/Dist.h"
#include "Train/Train.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"

#include <numeric>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::certify;

namespace {
/// The shapes that a reshape may give what devices have parts of. In row-major order a dimension is
/// its axes, the first one major, and then what a device has of it. So a tensor is a sequence of
/// axes and of blocks of elements that a device has one after the other, and two tensors of one
/// sequence hold the same elements on each device. Where a device has one element of a dimension,
/// several shapes have the sequence of `x`; the global graph has one of them.
class Reshapes {
public:
  Reshapes(const Distribution &x, ArrayRef<int64_t> before, ArrayRef<int64_t> after,
           const Mesh &mesh)
      : x(x), after(after), mesh(mesh) {
    for (auto [axes, size] : llvm::zip_equal(x.dims, before)) {
      for (unsigned axis : axes)
        sequence.push_back({axis, 1});
      if (size == 1)
        continue;
      if (!sequence.empty() && !sequence.back().axis)
        sequence.back().block *= size;
      else
        sequence.push_back({std::nullopt, size});
    }
  }

  Distributions get() {
    if (llvm::is_contained(x.shape, 0) || llvm::is_contained(after, 0))
      return {};
    Distribution type = Distribution::replicated(after);
    type.sum = x.sum;
    type.max = x.max;
    type.root = x.root;
    int64_t block = sequence.empty() || sequence[0].axis ? 1 : sequence[0].block;
    choose(type, 0, 0, block);
    llvm::erase_if(made, [&](Distribution &type) { return !keepPadding(type); });
    return made;
  }

private:
  struct Part {
    std::optional<unsigned> axis;
    int64_t block;
  };
  /// Gives dimensions from `dim` on what comes in the sequence from `at` on, of which `block`
  /// elements are left if it is a block.
  void choose(const Distribution &type, int64_t dim, size_t at, int64_t block);
  /// Padding is the end of one dimension, if the dimensions before it are as many elements in both
  /// shapes.
  bool keepPadding(Distribution &type) const;

  const Distribution &x;
  ArrayRef<int64_t> after;
  const Mesh &mesh;
  SmallVector<Part> sequence;
  Distributions made;
};
} // namespace

void Reshapes::choose(const Distribution &type, int64_t dim, size_t at, int64_t block) {
  auto isAxis = [&](size_t part) { return part < sequence.size() && sequence[part].axis; };
  if (at < sequence.size() && !isAxis(at) && block == 1)
    ++at;
  if (dim == type.rank()) {
    if (at == sequence.size() && block == 1)
      made.push_back(type);
    return;
  }
  size_t last = at;
  while (block == 1 && isAxis(last))
    ++last;
  for (size_t end = last + 1; end-- > at;) {
    Distribution choice = type;
    for (size_t part = at; part < end; ++part) {
      choice.dims[dim].push_back(*sequence[part].axis);
      choice.shape[dim] *= mesh.axes[*sequence[part].axis].size;
    }
    int64_t left = block;
    if (end > at || block == 1)
      left = end < sequence.size() && !isAxis(end) ? sequence[end].block : 1;
    if (left % after[dim] == 0)
      choose(choice, dim + 1, end, left / after[dim]);
  }
}

bool Reshapes::keepPadding(Distribution &type) const {
  auto product = [](ArrayRef<int64_t> extents) {
    return std::accumulate(extents.begin(), extents.end(), int64_t(1), std::multiplies<>());
  };
  for (auto &[from, padding] : x.padding) {
    ArrayRef<int64_t> old(x.shape), now(type.shape);
    int64_t to = 0;
    while (to < type.rank() &&
           (now[to] == 1 || product(now.take_front(to)) < product(old.take_front(from))))
      ++to;
    if (to == type.rank() || product(now.take_front(to)) != product(old.take_front(from)))
      return false;
    int64_t elements = padding.logical * product(old.drop_front(from + 1));
    int64_t row = product(now.drop_front(to + 1));
    if (elements % row != 0 || type.padding.count(to))
      return false;
    type.padding[to] = {elements / row, padding.fill, padding.isPositive};
  }
  return product(type.expressionShape()) == product(x.expressionShape());
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
  bool isPadded =
      llvm::any_of(x.type.padding, [&](auto &entry) { return entry.first >= int64_t(kept); });
  if (isPadded && before != after)
    return checker.refuse(op) << "makes other dimensions of the padding of "
                              << Checker::nameOf(op, 0) << ", " << x.type.str(checker.mesh);
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

/// The fact with numbers for dimensions of any extent: those of the device's tensor, and those that
/// it may be a part of, along axes that shard nothing else of it, where the global graph has such a
/// tensor.
static FactList withExtents(train::ReshapeOp op, const Fact &x, Checker &checker) {
  FactList made = {x};
  pin(made[0], op.getX(), checker);
  SmallVector<int64_t> any;
  Axes free;
  for (int64_t dim = 0; dim < x.type.rank(); ++dim)
    if (x.type.isAny(dim))
      any.push_back(dim);
  for (bool isFirst : {true, false})
    for (unsigned axis = 0; axis < checker.deviceAxes; ++axis)
      if (checker.mesh.axes[axis].size > 1 && axis != checker.fixed &&
          x.type.isReplicated(axis) && bool(checker.sharding.count(axis)) == isFirst)
        free.push_back(axis);
  // One dimension for each of the free axes, or none; then with the padding that variables have.
  Distributions types = {made[0].type};
  auto addTo = [&](auto change) {
    for (size_t i = 0, count = types.size(); i < count; ++i)
      for (int64_t dim : any)
        change(types[i], dim);
  };
  for (unsigned axis : free)
    addTo([&](Distribution type, int64_t dim) {
      type.dims[dim].push_back(axis);
      type.shape[dim] *= checker.mesh.axes[axis].size;
      types.push_back(type);
    });
  addTo([&](Distribution type, int64_t dim) {
    for (auto [extent, logical] : checker.proof.padded)
      if (extent == type.shape[dim]) {
        types.push_back(type);
        types.back().padding[dim] = {logical, std::nullopt, false};
      }
  });
  // Batch and tokens are divided as those of inputs, and all else along axes that divide something.
  auto rank = [&](const Distribution &type) {
    auto areAll = [&](auto is) {
      return llvm::all_of(any, [&](int64_t dim) {
        return llvm::all_of(type.dims[dim], [&](unsigned axis) { return is(axis, dim); });
      });
    };
    if (areAll([&](unsigned axis, int64_t dim) { return checker.batch.count({axis, dim}) != 0; }))
      return 0;
    return areAll([&](unsigned axis, int64_t) { return checker.sharding.count(axis) != 0; }) ? 1 : 2;
  };
  std::stable_sort(types.begin() + 1, types.end(), [&](const Distribution &a, const Distribution &b) {
    return rank(a) < rank(b);
  });
  for (const Distribution &type : ArrayRef(types).drop_front())
    if (const Expression *found =
            checker.proof.expressions.find(op.getLoc(), "of extents", {}, {x.expression}, 0,
                                           x.expression->element, type.expressionShape()))
      made.push_back({found, type});
  return made;
}

//===--- reshape of parts ---------------------------------------------------===//

/// Whether loops over chunks of tokens alone read a value, in its function or, after it was returned or
/// handed on, in others.
static bool isForLoops(Value value, llvm::SmallDenseSet<Value> &seen) {
  if (!seen.insert(value).second)
    return true;
  auto isSo = [&](OpOperand &use) {
    Operation *user = use.getOwner();
    if (auto loop = dyn_cast<train::RepeatOp>(user))
      return train::roleOf(loop) == train::Role::Loss;
    if (auto call = dyn_cast<func::CallOp>(user)) {
      auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
      return callee && !callee.isExternal() &&
             isForLoops(callee.getArgument(use.getOperandNumber()), seen);
    }
    auto function = dyn_cast<func::FuncOp>(user->getParentOp());
    if (!function || !isa<func::ReturnOp>(user))
      return false;
    auto calls = SymbolTable::getSymbolUses(function, function->getParentOp());
    return calls && !calls->empty() && llvm::all_of(*calls, [&](SymbolTable::SymbolUse call) {
             auto caller = dyn_cast<func::CallOp>(call.getUser());
             return caller && isForLoops(caller.getResult(use.getOperandNumber()), seen);
           });
  };
  return !value.use_empty() && llvm::all_of(value.getUses(), isSo);
}

/// The chunks of tokens that a reshape makes for a loop over them: [tokens.., ...] becomes
/// [count, 1.., tokens / count, ...].
static std::optional<Chunks> chunksOf(train::ReshapeOp op) {
  ArrayRef<int64_t> before = cast<RankedTensorType>(op.getX().getType()).getShape();
  ArrayRef<int64_t> after = cast<RankedTensorType>(op.getType()).getShape();
  if (after.size() != before.size() + 1)
    return {};
  int64_t tokens = 1;
  for (size_t dims = 1; dims <= before.size(); ++dims) {
    tokens *= before[dims - 1];
    if (tokens == after[0] * after[dims] && before.drop_front(dims) == after.drop_front(dims + 1)) {
      llvm::SmallDenseSet<Value> seen;
      if (!isForLoops(op.getResult(), seen))
        return {};
      return Chunks{after[0], int64_t(dims), {}};
    }
    if (after[dims] != 1)
      return {};
  }
  return {};
}

/// Every n-th element, if devices have a column each of [elements / n, n]; and back.
static std::optional<Fact> reshapeStripes(train::ReshapeOp op, const Fact &x, Checker &checker) {
  ArrayRef<int64_t> before = cast<RankedTensorType>(op.getX().getType()).getShape();
  ArrayRef<int64_t> after = cast<RankedTensorType>(op.getType()).getShape();
  StringRef name = op->getName().getStringRef();
  const Expression *source = x.expression->name == name ? x.expression->operands[0] : x.expression;
  bool isMerged = before.size() == after.size() + 1;
  if ((!isMerged && before.size() + 1 != after.size()) || x.type.terms || x.type.chunks ||
      llvm::is_contained(x.type.shape, anyExtent))
    return {};
  ArrayRef<int64_t> split = isMerged ? before : after, merged = isMerged ? after : before;
  for (size_t dim = 0; dim + 1 < split.size(); ++dim) {
    bool fits = split[dim + 1] == 1 && split[dim] == merged[dim] &&
                split.take_front(dim) == merged.take_front(dim) &&
                split.drop_front(dim + 2) == merged.drop_front(dim + 1);
    if (!fits || x.type.padding.count(dim) || (isMerged && x.type.padding.count(dim + 1)))
      continue;
    Fact made = x;
    Distribution &type = made.type;
    type.pieces.clear();
    type.padding.clear();
    for (auto &[other, padding] : x.type.padding)
      type.padding[other < int64_t(dim) ? other : isMerged ? other - 1 : other + 1] = padding;
    Pieces stripes;
    if (isMerged) {
      stripes.group = type.dims[dim + 1];
      int64_t count = checker.mesh.size(stripes.group);
      if (x.expression->name != name || stripes.group.empty() || !type.dims[dim].empty() ||
          type.shape[dim + 1] != count || !x.type.pieces.empty())
        continue;
      for (int64_t p = 0; p < count; ++p)
        stripes.of.push_back({{p, type.shape[dim], count}});
      type.shape[dim] *= count;
      type.shape.erase(type.shape.begin() + dim + 1);
      type.dims.erase(type.dims.begin() + dim + 1);
      type.setPieces(dim, stripes, checker.mesh);
    } else {
      auto found = x.type.pieces.find(dim);
      if (found == x.type.pieces.end() || x.type.pieces.size() != 1)
        continue;
      stripes.group = found->second.group;
      int64_t count = checker.mesh.size(stripes.group), rows = split[dim];
      for (int64_t p = 0; p < count; ++p)
        stripes.of.push_back({{p, rows, count}});
      if (stripes != found->second || type.shape[dim] != rows * count)
        continue;
      type.shape[dim] = rows;
      type.shape.insert(type.shape.begin() + dim + 1, count);
      type.dims.insert(type.dims.begin() + dim + 1, stripes.group);
    }
    Shape shape = type.expressionShape();
    made.expression = shape == source->shape
                          ? source
                          : checker.make(op.getLoc(), name, {}, {source}, source->element, shape);
    checker.proof.kernels.insert(name.str());
    return made;
  }
  return {};
}

/// Of a tensor in pieces, or of terms: the dimension that is divided stays as it is. Makes of it one
/// in equal parts.
static LogicalResult withoutParts(train::ReshapeOp op, Fact &x, Checker &checker) {
  for (auto &[dim, pieces] : x.type.pieces) {
    if (x.type.padding.count(dim))
      return checker.refuse(op) << "makes another shape of padded pieces, "
                                << x.type.str(checker.mesh);
    x.type.dims[dim] = pieces.group;
    x.type.shape[dim] = pieces.size() * checker.mesh.size(pieces.group);
  }
  x.type.pieces.clear();
  return success();
}

/// Gives a choice for what withoutParts made of `x` the parts of `x`; whether it has their
/// dimensions.
static bool withParts(Distribution &choice, const Distribution &x, const Mesh &mesh) {
  auto find = [&](const Axes &group, int64_t extent) -> std::optional<int64_t> {
    for (int64_t dim = 0; dim < choice.rank(); ++dim)
      if (choice.dims[dim] == group && choice.shape[dim] == extent)
        return dim;
    return {};
  };
  if (x.terms && x.terms->side != Terms::none)
    for (int64_t dim = 0; dim < x.rank(); ++dim)
      if (x.dims[dim] == x.terms->group && !find(x.dims[dim], x.shape[dim]))
        return false;
  choice.terms = x.terms;
  for (auto &[dim, pieces] : x.pieces) {
    auto to = find(pieces.group, pieces.size() * mesh.size(pieces.group));
    if (!to)
      return false;
    choice.shape[*to] = x.shape[dim];
    choice.setPieces(*to, pieces, mesh);
  }
  return true;
}

/// The first dimension as two, or two as one, which no axis divides: all others stay as they are. If the
/// second of two is 1 on a device, it may as well be one that an axis divides.
static std::optional<Fact> reshapeFront(train::ReshapeOp op, const Fact &x, Checker &checker) {
  ArrayRef<int64_t> before = cast<RankedTensorType>(op.getX().getType()).getShape();
  ArrayRef<int64_t> after = cast<RankedTensorType>(op.getType()).getShape();
  bool isMerged = before.size() > after.size();
  ArrayRef<int64_t> split = isMerged ? before : after, merged = isMerged ? after : before;
  if (split.size() != merged.size() + 1 || split.size() < 2 || split[1] == 1 ||
      merged[0] != split[0] * split[1] ||
      split.drop_front(2) != merged.drop_front() || x.type.hasParts())
    return {};
  Fact made = x;
  for (ArrayRef<int64_t> old = before.take_front(isMerged ? 2 : 1); int64_t extent : old) {
    if (!made.type.dims[0].empty() || made.type.padding.count(0) || made.type.shape[0] != extent)
      return {};
    made.type.eraseFront();
  }
  for (int64_t extent : llvm::reverse(after.take_front(isMerged ? 1 : 2)))
    made.type.insertFront(extent);
  made.expression = reshaped(x.expression, made.type.expressionShape(), checker);
  return made;
}

FactList certify::otherReadings(const Fact &fact, Value value, Checker &checker) {
  FactList readings;
  const Distribution &type = fact.type;
  ArrayRef<int64_t> local = cast<RankedTensorType>(value.getType()).getShape();
  bool isDivided = llvm::any_of(type.dims, [](const Axes &axes) { return !axes.empty(); });
  if (type.rows || type.hasParts() || fact.offset || !isDivided || !llvm::is_contained(local, 1) ||
      llvm::is_contained(type.shape, anyExtent))
    return readings;
  const Expression *source = fact.expression;
  StringRef name = train::ReshapeOp::getOperationName();
  if (source->name == name)
    source = source->operands[0];
  for (const Distribution &choice : Reshapes(type, local, local, checker.mesh).get()) {
    Shape shape = choice.expressionShape();
    const Expression *known =
        shape == source->shape ? source
                               : checker.proof.expressions.find(value.getLoc(), name, {}, {source},
                                                                0, source->element, shape);
    if (known && known != fact.expression && checker.isGlobal(known))
      readings.push_back({known, choice});
  }
  return readings;
}

/// The dimensions, at either end of the shape, that a reading leaves as they are.
static int64_t keptDims(const Distribution &x, const Distribution &reading) {
  int64_t first = 0, last = 0, most = std::min(x.rank(), reading.rank());
  auto isSame = [&](int64_t dim, int64_t other) {
    return x.shape[dim] == reading.shape[other] && x.dims[dim] == reading.dims[other];
  };
  while (first < most && isSame(first, first))
    ++first;
  while (first + last < most && isSame(x.rank() - 1 - last, reading.rank() - 1 - last))
    ++last;
  return first + last;
}

/// What the result may be read as, likely ones first: what the global graph has; then what the program
/// had before; then what the global graph has of another value, and all else, of which the most
/// dimensions stay as they are. Where the expression has another shape than the type, it is what is
/// reshaped.
static FailureOr<FactList> readingsOf(train::ReshapeOp op, Fact x, const std::optional<Fact> &stripes,
                                      Checker &checker) {
  ArrayRef<int64_t> before = cast<RankedTensorType>(op.getX().getType()).getShape();
  ArrayRef<int64_t> after = cast<RankedTensorType>(op.getType()).getShape();
  StringRef name = op->getName().getStringRef();
  std::optional<Fact> front = reshapeFront(op, x, checker);
  FactList readings, earlier, like, others;
  const Distribution parts = x.type;
  if (failed(withoutParts(op, x, checker)))
    return failure();
  for (const Fact &fact : withExtents(op, x, checker)) {
    Distributions choices = Reshapes(fact.type, before, after, checker.mesh).get();
    llvm::erase_if(choices,
                   [&](Distribution &choice) { return !withParts(choice, parts, checker.mesh); });
    const Expression *source = fact.expression;
    if (source->name == name) {
      source = source->operands[0];
      checker.use("a reshape of a reshape is a reshape");
    }
    for (const Distribution &choice : choices) {
      Shape shape = choice.expressionShape();
      const Expression *made =
          shape == source->shape ? source
                                 : checker.proof.expressions.find(op.getLoc(), name, {}, {source},
                                                                  0, source->element, shape);
      if (made)
        (checker.isGlobal(made) ? readings : earlier).push_back({made, choice});
      else
        (checker.hasLike(name, source, shape) ? like : others).push_back({source, choice});
    }
  }
  bool hasLike = !like.empty();
  std::reverse(like.begin(), like.end());
  for (FactList *facts : {&like, &others})
    llvm::stable_sort(*facts, [&](const Fact &a, const Fact &b) {
      return keptDims(x.type, a.type) > keptDims(x.type, b.type);
    });
  auto add = [&](const std::optional<Fact> &fact, bool isHere) {
    if (fact && isHere)
      readings.push_back(*fact);
  };
  llvm::append_range(readings, earlier);
  add(front, !hasLike);
  add(stripes, true);
  llvm::append_range(readings, like);
  llvm::append_range(readings, others);
  add(front, hasLike);
  return readings;
}

/// What ranks exchange is what they gather along a dimension, or stripes of the next one.
static void preferExchanged(train::ReshapeOp op, const std::optional<Fact> &stripes,
                            FactList &readings, Checker &checker) {
  auto areExchanged = [&](auto asThat) {
    return !op->use_empty() && llvm::all_of(op->getUsers(), [&](Operation *user) {
      auto exchange = dyn_cast<dist::AllToAllOp>(user);
      return exchange && asThat(exchange);
    });
  };
  bool ofStripes = areExchanged([](dist::AllToAllOp exchange) {
    return exchange.getConcat() == exchange.getSplit() + 1;
  });
  auto rank = [&](const Fact &fact) {
    bool isGathered = areExchanged([&](dist::AllToAllOp exchange) {
      Axes group = checker.without1(exchange.getGroup().on(checker.mesh));
      const Axes &axes = fact.type.dims[exchange.getConcat()];
      return axes.size() >= group.size() && ArrayRef(axes).take_back(group.size()) == ArrayRef(group);
    });
    bool isKnown = fact.expression->shape == fact.type.expressionShape() &&
                   checker.isGlobal(fact.expression);
    bool areStripes = ofStripes && stripes && fact.type == stripes->type;
    return isGathered && isKnown ? 0 : areStripes ? 1 : isGathered ? 2 : 3;
  };
  llvm::stable_sort(readings, [&](const Fact &a, const Fact &b) { return rank(a) < rank(b); });
}

static LogicalResult reshape(train::ReshapeOp op, Facts facts, NewFacts &results,
                             Checker &checker) {
  FactList operands(facts);
  settle(operands[0], checker);
  Distribution &type = operands[0].type;
  if (type.rows)
    return reshapeRows(op, operands[0], results, checker);
  if (type.chunks) {
    // All chunks are the tensor.
    if (type.chunks->axis)
      return checker.refuse(op) << "makes another shape of a chunk, " << type.str(checker.mesh);
    results.push_back(operands[0]);
    results[0].type.chunks.reset();
    return success();
  }
  if (auto chunks = chunksOf(op); chunks && !type.hasParts() && !fillOf(operands[0].expression)) {
    results.push_back(operands[0]);
    results[0].type.chunks = chunks;
    return success();
  }
  if (operands[0].expression->name == "zero" && op.getType().getRank() == 1) {
    results.push_back(operands[0]);
    results[0].type = Distribution::replicated({1});
    return success();
  }
  if (movesConstant(op, operands[0], results, checker))
    return success();
  if (operands[0].offset)
    return checker.refuse(op) << "reads numbers that count from the device's own offset";
  std::optional<Fact> stripes = reshapeStripes(op, operands[0], checker);
  FailureOr<FactList> readings = readingsOf(op, operands[0], stripes, checker);
  if (failed(readings))
    return failure();
  if (readings->empty())
    return checker.refuse(op) << "makes " << op.getType() << " of " << Checker::nameOf(op, 0)
                              << ", " << type.str(checker.mesh)
                              << ", whose parts are parts of no tensor of such a shape";
  preferExchanged(op, stripes, *readings, checker);
  checker.proof.kernels.insert(op->getName().getStringRef().str());
  Fact &read = readings->front();
  if (Shape shape = read.type.expressionShape(); shape != read.expression->shape)
    read.expression = checker.make(op, Attribute(), {read.expression}, 0, shape);
  results.push_back(read);
  return success();
}

void certify::attachReshapeRule(MLIRContext *context) {
  attachRule<train::ReshapeOp, ::reshape, OnPadding::known, OnParts::known>(context);
}
