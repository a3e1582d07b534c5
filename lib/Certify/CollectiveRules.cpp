//===- CollectiveRules.cpp - what collectives do to distributions ------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A collective does not change which global value its operand is a part of, only how
// the devices hold it. All devices of a group run it together, because all run one
// program, whose loops have constant numbers of iterations.
//
//===----------------------------------------------------------------------===//
#include "Certify/Rule.h"
#include "Certify/Sums.h"

#include "Dist/Dist.h"
#include "Dist/Wire.h"

#include <algorithm>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::certify;

namespace {
/// One tensor of a collective.
struct Moved {
  Operation *op;
  unsigned operand;
  Axes group; ///< major first
  Checker &checker;
  Fact fact;

  Moved(Operation *op, unsigned operand, dist::GroupAttr group, Facts operands, Checker &checker)
      : op(op), operand(operand), group(checker.without1(group.on(checker.mesh))), checker(checker),
        fact(operands[operand]) {
    settle(fact, checker);
  }

  InFlightDiagnostic refuse(StringRef what) const {
    return checker.refuse(op) << what << " " << Checker::nameOf(op, operand) << ", which is "
                              << fact.type.str(checker.mesh) << ", over "
                              << checker.mesh.str(group);
  }
  /// Whether dimension `dim` is one that chunks of tokens have some of, or a stack of them.
  bool isChunked(int64_t dim) const {
    const auto &chunks = fact.type.chunks;
    return chunks && chunks->has(dim);
  }
  /// Whether only some devices of the group have the tensor.
  bool isOnRoot() const {
    return llvm::any_of(group,
                        [&](unsigned axis) { return llvm::is_contained(fact.type.root, axis); });
  }
  /// Completes a sum or a maximum.
  LogicalResult reduce(train::ReduceKind kind);
  /// Puts together the parts of dimension `dim`.
  LogicalResult gather(int64_t dim);
  /// Keeps the device's part of dimension `dim` of what the group's devices all have.
  LogicalResult divide(int64_t dim);
  /// Of a collective whose result the device of rank `root` has alone.
  LogicalResult keepOn(int64_t root);
};
} // namespace

LogicalResult Moved::keepOn(int64_t root) {
  if (root != 0)
    return refuse("keeps on another device than the first");
  fact.type.root.append(group);
  llvm::sort(fact.type.root);
  return success();
}

LogicalResult Moved::reduce(train::ReduceKind kind) {
  if (isOnRoot())
    return refuse("adds what one device alone has:");
  if (fact.offset)
    return refuse("adds numbers that count from the device's own offset:");
  bool isSum = kind == train::ReduceKind::Sum;
  if (isSum && isZero(fact.expression))
    return success();
  Axes &terms = isSum ? fact.type.sum : fact.type.max;
  for (unsigned axis : group) {
    if (llvm::is_contained(terms, axis))
      continue;
    if (fact.type.isReplicated(axis) && isSum)
      return refuse("adds equal copies of")
             << ": the result would count them " << checker.mesh.axes[axis].size << " times";
    return refuse(isSum ? "adds what are no terms of a sum:"
                        : "takes the maximum of what are no candidates for it:");
  }
  llvm::erase_if(terms, [&](unsigned axis) { return llvm::is_contained(group, axis); });
  checker.use(isSum ? "sums over devices and microbatches may be reordered"
                    : "maxima may be reordered");
  if (op->hasAttr(dist::wireAttr))
    checker.use("terms and sums that devices send each other may be rounded");
  return success();
}

LogicalResult Moved::gather(int64_t dim) {
  if (fact.offset)
    return refuse("gathers numbers that count from the device's own offset:");
  if (isChunked(dim))
    return refuse("gathers chunks of");
  if (fact.type.isAny(dim) &&
      llvm::all_of(group, [&](unsigned axis) { return fact.type.isReplicated(axis); }))
    return success();
  Axes &axes = fact.type.dims[dim];
  if (axes.size() < group.size() || ArrayRef(axes).take_back(group.size()) != ArrayRef(group))
    return refuse("gathers") << ", which does not shard dimension " << dim << " last";
  axes.truncate(axes.size() - group.size());
  return success();
}

LogicalResult Moved::divide(int64_t dim) {
  for (unsigned axis : group)
    if (!fact.type.isReplicated(axis))
      return refuse("takes parts of");
  if (isChunked(dim) || fact.type.pieces.count(dim))
    return refuse("takes parts of what are parts already:");
  if (!fact.type.isAny(dim))
    fact.type.dims[dim].append(group);
  return success();
}

static LogicalResult allReduce(dist::AllReduceOp op, Facts operands, NewFacts &results,
                               Checker &checker) {
  for (unsigned index = 0; index < operands.size(); ++index) {
    Moved x(op, index, op.getGroup(), operands, checker);
    if (failed(x.reduce(op.getKind())))
      return failure();
    results.push_back(x.fact);
  }
  return success();
}

static LogicalResult reduceToRoot(dist::ReduceOp op, Facts operands, NewFacts &results,
                                  Checker &checker) {
  Moved x(op, 0, op.getGroup(), operands, checker);
  if (failed(x.reduce(op.getKind())) || failed(x.keepOn(op.getRoot())))
    return failure();
  results.push_back(x.fact);
  return success();
}

static LogicalResult gatherToRoot(dist::GatherOp op, Facts operands, NewFacts &results,
                                  Checker &checker) {
  Moved x(op, 0, op.getGroup(), operands, checker);
  if (failed(x.gather(op.getDim())) || failed(x.keepOn(op.getRoot())))
    return failure();
  results.push_back(x.fact);
  return success();
}

/// What the first device has, or all, is then on all of them.
static LogicalResult sendFromRoot(Moved &x, int64_t root) {
  if (root != 0)
    return x.refuse("sends, from another device than the first,");
  llvm::erase_if(x.fact.type.root,
                 [&](unsigned axis) { return llvm::is_contained(x.group, axis); });
  if (x.fact.offset ||
      !llvm::all_of(x.group, [&](unsigned axis) { return x.fact.type.isReplicated(axis); }))
    return x.refuse("sends the first device's part or term of");
  return success();
}

static LogicalResult broadcast(dist::BroadcastOp op, Facts operands, NewFacts &results,
                               Checker &checker) {
  Moved x(op, 0, op.getGroup(), operands, checker);
  if (failed(sendFromRoot(x, op.getRoot())))
    return failure();
  results.push_back(x.fact);
  return success();
}

static LogicalResult scatter(dist::ScatterOp op, Facts operands, NewFacts &results,
                             Checker &checker) {
  Moved x(op, 0, op.getGroup(), operands, checker);
  if (failed(sendFromRoot(x, op.getRoot())) || failed(x.divide(op.getDim())))
    return failure();
  results.push_back(x.fact);
  return success();
}

static LogicalResult allGather(dist::AllGatherOp op, Facts operands, NewFacts &results,
                               Checker &checker) {
  for (auto [index, dim] : llvm::enumerate(op.getDims())) {
    Moved x(op, index, op.getGroup(), operands, checker);
    if (failed(x.gather(dim)))
      return failure();
    results.push_back(x.fact);
  }
  return success();
}

static LogicalResult reduceScatter(dist::ReduceScatterOp op, Facts operands, NewFacts &results,
                                   Checker &checker) {
  for (auto [index, dim] : llvm::enumerate(op.getDims())) {
    Moved x(op, index, op.getGroup(), operands, checker);
    if (failed(x.reduce(op.getKind())) || failed(x.divide(dim)))
      return failure();
    results.push_back(x.fact);
  }
  return success();
}

static LogicalResult allToAll(dist::AllToAllOp op, Facts operands, NewFacts &results,
                              Checker &checker) {
  Moved x(op, 0, op.getGroup(), operands, checker);
  if (failed(x.gather(op.getConcat())) || failed(x.divide(op.getSplit())))
    return failure();
  results.push_back(x.fact);
  return success();
}

/// The part that each device has got, in whatever order.
static LogicalResult permutePieces(dist::PermuteOp op, Moved &x, NewFacts &results) {
  Distribution &type = x.fact.type;
  std::optional<int64_t> dim;
  for (int64_t d = 0; d < type.rank(); ++d) {
    auto pieces = type.piecesOf(d, x.checker.mesh);
    if (!pieces || llvm::none_of(pieces->group, [&](unsigned axis) {
          return llvm::is_contained(x.group, axis);
        }))
      continue;
    bool hasAll = llvm::all_of(
        x.group, [&](unsigned axis) { return llvm::is_contained(pieces->group, axis); });
    if (dim || !hasAll)
      return x.refuse("permutes, beside parts along other axes,");
    dim = d;
  }
  auto divides = [&](unsigned axis) { return llvm::is_contained(type.summands->group, axis); };
  bool movesTerms = type.summands && llvm::any_of(x.group, divides);
  if ((!dim && !movesTerms) || type.chunks || type.rows ||
      (type.terms && type.terms->group != x.group) ||
      (movesTerms && !llvm::all_of(x.group, divides)))
    return x.refuse("makes no order of axes of");
  if (dim)
    type.setPieces(
        *dim,
        type.piecesOf(*dim, x.checker.mesh)->permuted(op.getFrom(), x.group, x.checker.mesh),
        x.checker.mesh);
  if (movesTerms)
    type.summands = type.summands->permuted(op.getFrom(), x.group, x.checker.mesh);
  if (type.terms)
    type.terms = type.terms->permuted(op.getFrom());
  results.push_back(x.fact);
  return success();
}

/// Parts go to other devices, which then have them in another order of axes: the one in which each
/// device's part is the one that it got.
static LogicalResult permute(dist::PermuteOp op, Facts operands, NewFacts &results,
                             Checker &checker) {
  Moved x(op, 0, op.getGroup(), operands, checker);
  const Mesh &mesh = checker.mesh;
  const Distribution before = x.fact.type;
  auto isInGroup = [&](unsigned axis) { return llvm::is_contained(x.group, axis); };
  if (x.fact.offset || x.isOnRoot() || llvm::any_of(before.sum, isInGroup) ||
      llvm::any_of(before.max, isInGroup))
    return x.refuse("permutes the terms of");
  if (!before.pieces.empty() || before.terms || before.summands)
    return permutePieces(op, x, results);
  Axes group = op.getGroup().on(mesh);
  auto fits = [&](const Distribution &after) {
    for (int64_t rank = 0; rank < mesh.size(); ++rank) {
      int64_t from = mesh.group(rank, group)[op.getFrom()[mesh.position(rank, group)]];
      for (auto [old, now] : llvm::zip(before.dims, after.dims))
        if (mesh.size(old) != mesh.size(now) ||
            mesh.position(from, old) != mesh.position(rank, now))
          return false;
    }
    return true;
  };
  // The axes of the group in the places of these axes, in every order.
  SmallVector<unsigned *> places;
  for (Axes &axes : x.fact.type.dims)
    for (unsigned &axis : axes)
      if (isInGroup(axis))
        places.push_back(&axis);
  Axes order = x.group;
  llvm::sort(order);
  do {
    for (auto [place, axis] : llvm::zip(places, order))
      *place = axis;
    if (fits(x.fact.type)) {
      results.push_back(x.fact);
      return success();
    }
  } while (std::next_permutation(order.begin(), order.end()));
  x.fact.type = before;
  return permutePieces(op, x, results);
}

/// Of parts that come one after the other, the t-th one is that of the device t ranks further.
static SmallVector<int64_t> ranksFurther(int64_t shift, int64_t count) {
  SmallVector<int64_t> from;
  for (int64_t p = 0; p < count; ++p)
    from.push_back((p + shift) % count);
  return from;
}

/// A part of a sum of what devices along `axes` have is the sum of their parts: each has its own term of
/// it, besides those that it is known to have.
static LogicalResult keepTerms(dist::SliceOp op, Moved &x, const Axes &axes) {
  Distribution &type = x.fact.type;
  Axes divided = type.summands ? type.summands->group : Axes();
  divided.append(axes);
  if (divideSum(x.fact, divided, x.checker))
    return success();
  if (type.summands || x.checker.mesh.size(axes) > mostDevices)
    return x.refuse("takes parts of");
  llvm::erase_if(type.sum, [&](unsigned axis) { return llvm::is_contained(axes, axis); });
  type.summands = Summands::ofDevices(axes, x.checker.mesh);
  type.summands->term = x.checker.termsOf(op.getX(), x.fact.expression);
  return success();
}

/// The device's own part, or that of the device `shift` ranks further.
static LogicalResult slice(dist::SliceOp op, Facts operands, NewFacts &results, Checker &checker) {
  Moved x(op, 0, op.getGroup(), operands, checker);
  int64_t dim = op.getDim(), shift = op.getShift(), count = checker.mesh.size(x.group);
  Distribution &type = x.fact.type;
  if (x.isChunked(dim))
    return x.refuse("takes parts of what are parts already:");
  auto isInGroup = [&](unsigned axis) { return llvm::is_contained(x.group, axis); };
  Axes partial;
  for (unsigned axis : x.group)
    if (llvm::is_contained(type.sum, axis))
      partial.push_back(axis);
  if (!partial.empty() && failed(keepTerms(op, x, partial)))
    return failure();
  // A tensor that is divided along the group in another dimension has parts for a product of them.
  bool isDiagonal = llvm::any_of(type.dims, [&](const Axes &axes) {
    return &axes != &type.dims[dim] && llvm::any_of(axes, isInGroup);
  });
  isDiagonal |= llvm::any_of(type.pieces, [&](const auto &of) {
    return of.first != dim && llvm::any_of(of.second.group, isInGroup);
  });
  bool isDivided = !type.dims[dim].empty() || type.pieces.count(dim);
  if (!isDiagonal && partial.empty() && (type.isAny(dim) || !isDivided || (!shift && !type.pieces.count(dim)))) {
    if (shift && type.rows)
      return x.refuse("takes another device's part of what is divided:");
    if (failed(x.divide(dim)))
      return failure();
    if (shift && count > 1 && !type.isAny(dim)) {
      if (x.fact.offset || type.shape[dim] % count)
        return x.refuse("takes another device's part of");
      type.setPieces(dim,
                     Pieces::ofShards(x.group, type.shape[dim], checker.mesh)
                         .permuted(ranksFurther(shift, count)),
                     checker.mesh);
    }
    results.push_back(x.fact);
    return success();
  }
  std::optional<Pieces> before = type.piecesOf(dim, checker.mesh);
  if (!before)
    before = Pieces{{}, {{{0, type.shape[dim]}}}};
  if (type.isAny(dim) || llvm::any_of(before->group, isInGroup) ||
      llvm::any_of(type.max, isInGroup) || x.isOnRoot() || type.terms || type.chunks ||
      type.messages || type.rows || x.fact.offset || before->size() % count)
    return x.refuse("takes another device's part of what is divided:");
  Pieces pieces = before->divided(x.group, ranksFurther(shift, count));
  type.pieces.erase(dim);
  type.dims[dim].clear();
  if (isDiagonal)
    type.pieces[dim] = pieces;
  else
    type.setPieces(dim, pieces, checker.mesh);
  results.push_back(x.fact);
  return success();
}

/// Parts in the order in which they came.
static LogicalResult concat(dist::ConcatOp op, Facts operands, NewFacts &results,
                            Checker &checker) {
  int64_t dim = op.getDim();
  for (unsigned t = 0; t < operands.size(); ++t) {
    Moved x(op, t, op.getGroup(), operands, checker);
    int64_t count = checker.mesh.size(x.group);
    Distribution &type = x.fact.type;
    if (x.fact.offset || type.chunks || type.terms || type.rows ||
        int64_t(operands.size()) != count)
      return x.refuse("puts together");
    if (!type.isAny(dim) && count > 1) {
      auto parts = type.piecesOf(dim, checker.mesh);
      size_t last = x.group.size();
      if (!parts || parts->group.size() < last ||
          ArrayRef(parts->group).take_back(last) != ArrayRef(x.group) ||
          type.shape[dim] % checker.mesh.size(parts->group) ||
          *parts != Pieces::ofShards(parts->group, type.shape[dim], checker.mesh)
                        .permuted(ranksFurther(t, count), x.group, checker.mesh))
        return x.refuse("puts, as the part of the device ") << ", " << t << " ranks further";
      type.pieces.erase(dim);
      type.dims[dim].assign(parts->group.begin(), parts->group.end() - last);
      // What is in order, and was in pieces because two dimensions were divided.
      if (!type.isDiagonal())
        for (const auto &[other, pieces] : std::map(type.pieces))
          type.setPieces(other, pieces, checker.mesh);
    }
    if (t == 0) {
      results.push_back(x.fact);
      continue;
    }
    if (x.fact.expression != results[0].expression || type != results[0].type)
      return x.refuse("puts together parts of different tensors:");
    results[0].merge(x.fact);
  }
  joinTerms(results[0], checker);
  return success();
}

void certify::attachCollectiveRules(MLIRContext *context) {
  attachRule<dist::AllReduceOp, allReduce, OnPadding::known, OnParts::known>(context);
  attachRule<dist::ReduceOp, reduceToRoot, OnPadding::known>(context);
  attachRule<dist::GatherOp, gatherToRoot, OnPadding::known>(context);
  attachRule<dist::BroadcastOp, ::broadcast, OnPadding::known>(context);
  attachRule<dist::ScatterOp, scatter, OnPadding::known>(context);
  attachRule<dist::AllGatherOp, allGather, OnPadding::known, OnParts::known>(context);
  attachRule<dist::ReduceScatterOp, reduceScatter, OnPadding::known, OnParts::known>(context);
  attachRule<dist::AllToAllOp, allToAll, OnPadding::known, OnParts::known>(context);
  attachRule<dist::PermuteOp, permute, OnPadding::known, OnParts::known>(context);
  attachRule<dist::SliceOp, ::slice, OnPadding::known, OnParts::known>(context);
  attachRule<dist::ConcatOp, concat, OnPadding::known, OnParts::known>(context);
}
