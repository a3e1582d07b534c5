//===- DistModels.cpp - collectives among simulated ranks -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Interpreter/Model.h"

#include "Dist/Dist.h"

#include "meshwright/runtime/Traffic.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::interp;

using PerRank = ArrayRef<TensorList>;
using ResultsPerRank = MutableArrayRef<TensorList>;

//===--- meshes and groups ----------------------------------------------------===//

/// The module's mesh, if it is as large as the run.
static FailureOr<dist::Mesh> meshOf(Operation *op, RankContext &context) {
  dist::MeshOp meshOp = dist::lookupMesh(context.module());
  if (!meshOp)
    return failure();
  dist::Mesh mesh = meshOp.getMesh();
  if (mesh.size() != context.ranks())
    return op->emitError() << "mesh @" << meshOp.getSymName() << " has " << mesh.size()
                           << " devices, but the run has " << context.ranks()
                           << " ranks; use --ranks " << mesh.size();
  return mesh;
}

template <typename OpT> using CollectiveFunction = LogicalResult (*)(OpT, PerRank, ResultsPerRank);

template <typename OpT, CollectiveFunction<OpT> function>
struct CollectiveModel
    : InterpretableCollectiveOpInterface::ExternalModel<CollectiveModel<OpT, function>, OpT> {
  FailureOr<SmallVector<int64_t>> getGroup(Operation *op, RankContext &context) const {
    FailureOr<dist::Mesh> mesh = meshOf(op, context);
    if (failed(mesh))
      return failure();
    return mesh->group(context.rank(), cast<OpT>(op).getGroup().on(*mesh));
  }
  LogicalResult interpretCollective(Operation *op, ArrayRef<int64_t>, PerRank operands,
                                    ResultsPerRank results, RankContext &) const {
    return function(cast<OpT>(op), operands, results);
  }
};

//===--- what the ops do ------------------------------------------------------===//

/// All values of operand `which`, element by element, in the order of the ranks.
static Tensor reduce(train::ReduceKind kind, PerRank operands, size_t which = 0) {
  Tensor total = operands[0][which];
  if (!total.isFloat()) {
    int64_t *out = total.writeIntegers();
    for (const TensorList &member : operands.drop_front())
      for (auto [i, value] : llvm::enumerate(member[which].integers()))
        out[i] = kind == train::ReduceKind::Sum ? out[i] + value : std::max(out[i], value);
    return total;
  }
  double *out = total.writeFloats();
  for (const TensorList &member : operands.drop_front())
    for (auto [i, value] : llvm::enumerate(member[which].floats()))
      out[i] = kind == train::ReduceKind::Sum ? out[i] + value : std::max(out[i], value);
  return total;
}

/// The `index`-th of `count` equal parts of x along `dim`.
static Tensor part(const Tensor &x, int64_t dim, int64_t index, int64_t count) {
  SmallVector<int64_t> offsets(x.rank(), 0), sizes(x.shape());
  sizes[dim] /= count;
  offsets[dim] = index * sizes[dim];
  return x.box(offsets, sizes);
}

/// Tensors of one shape put together along `dim`.
static Tensor concatenate(ArrayRef<Tensor> parts, int64_t dim) {
  SmallVector<int64_t> offsets(parts[0].rank(), 0), sizes(parts[0].shape());
  sizes[dim] *= int64_t(parts.size());
  Tensor whole(parts[0].elementType(), sizes);
  for (const Tensor &x : parts) {
    whole.setBox(offsets, x);
    offsets[dim] += x.dim(dim);
  }
  return whole;
}

/// Operand `which` of every member, put together along `dim`.
static Tensor gathered(PerRank operands, size_t which, int64_t dim) {
  TensorList parts;
  for (const TensorList &member : operands)
    parts.push_back(member[which]);
  return concatenate(parts, dim);
}

static LogicalResult allReduce(dist::AllReduceOp op, PerRank operands, ResultsPerRank results) {
  for (size_t t = 0; t < op.getXs().size(); ++t) {
    Tensor total = reduce(op.getKind(), operands, t);
    for (TensorList &member : results)
      member.push_back(total);
  }
  return success();
}

static LogicalResult allGather(dist::AllGatherOp op, PerRank operands, ResultsPerRank results) {
  for (auto [t, dim] : llvm::enumerate(op.getDims())) {
    Tensor whole = gathered(operands, t, dim);
    for (TensorList &member : results)
      member.push_back(whole);
  }
  return success();
}

static LogicalResult reduceScatter(dist::ReduceScatterOp op, PerRank operands,
                                   ResultsPerRank results) {
  for (auto [t, dim] : llvm::enumerate(op.getDims())) {
    Tensor total = reduce(op.getKind(), operands, t);
    for (auto [i, member] : llvm::enumerate(results))
      member.push_back(part(total, dim, i, results.size()));
  }
  return success();
}

static LogicalResult broadcast(dist::BroadcastOp op, PerRank operands, ResultsPerRank results) {
  for (TensorList &member : results)
    member.push_back(operands[op.getRoot()][0]);
  return success();
}

static LogicalResult reduceToRoot(dist::ReduceOp op, PerRank operands, ResultsPerRank results) {
  for (auto [i, member] : llvm::enumerate(results))
    member.push_back(i == op.getRoot() ? reduce(op.getKind(), operands)
                                       : Tensor::undefined(op.getY().getType()));
  return success();
}

static LogicalResult gather(dist::GatherOp op, PerRank operands, ResultsPerRank results) {
  for (auto [i, member] : llvm::enumerate(results))
    member.push_back(i == op.getRoot() ? gathered(operands, 0, op.getDim())
                                       : Tensor::undefined(op.getY().getType()));
  return success();
}

static LogicalResult scatter(dist::ScatterOp op, PerRank operands, ResultsPerRank results) {
  for (auto [i, member] : llvm::enumerate(results))
    member.push_back(part(operands[op.getRoot()][0], op.getDim(), i, results.size()));
  return success();
}

static LogicalResult allToAll(dist::AllToAllOp op, PerRank operands, ResultsPerRank results) {
  for (auto [i, member] : llvm::enumerate(results)) {
    TensorList parts;
    for (const TensorList &sender : operands)
      parts.push_back(part(sender[0], op.getSplit(), i, results.size()));
    member.push_back(concatenate(parts, op.getConcat()));
  }
  return success();
}

static LogicalResult permute(dist::PermuteOp op, PerRank operands, ResultsPerRank results) {
  for (auto [member, from] : llvm::zip(results, op.getFrom()))
    member.push_back(operands[from][0]);
  return success();
}

static LogicalResult exchange(dist::ExchangeOp op, PerRank operands, ResultsPerRank results) {
  for (auto [rank, member] : llvm::enumerate(results)) {
    int64_t from = op.getFrom()[rank];
    for (size_t t = 0; t < op.getXs().size(); ++t) {
      Tensor y = operands[rank][t];
      if (from >= 0) {
        auto at = [&](int64_t piece) { return partOffset(y.size(), op.getPieces(), piece); };
        int64_t send = op.getSend()[from];
        double *out = y.writeFloats() + at(op.getReceive()[rank]);
        ArrayRef<double> got = operands[from][t].floats().slice(
            at(send), at(send + op.getLength()) - at(send));
        for (auto [i, value] : llvm::enumerate(got))
          out[i] = !op.getKind()                             ? value
                   : *op.getKind() == train::ReduceKind::Sum ? out[i] + value
                                                             : std::max(out[i], value);
      }
      member.push_back(y);
    }
  }
  return success();
}

/// The world rank of another rank of the op's group.
template <typename OpT>
static FailureOr<int64_t> peerOf(OpT op, int64_t rank, RankContext &context) {
  FailureOr<dist::Mesh> mesh = meshOf(op, context);
  if (failed(mesh))
    return failure();
  int64_t peer = mesh->group(context.rank(), op.getGroup().on(*mesh))[rank];
  if (peer == context.rank())
    return op.emitError() << "on rank " << peer << " names the rank itself as its peer";
  return peer;
}

/// Channels of different groups are different: numbered by the group's axes.
template <typename OpT> static int64_t channelOf(OpT op, RankContext &context) {
  int64_t axes = 0;
  for (unsigned axis : op.getGroup().on(dist::lookupMesh(context.module()).getMesh()))
    axes = axes * 64 + axis + 1;
  return axes << 24 | int64_t(op.getChannel());
}

static LogicalResult send(dist::SendOp op, ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &,
                          RankContext &context) {
  FailureOr<int64_t> peer = peerOf(op, op.getTo(), context);
  if (failed(peer))
    return failure();
  context.send(*peer, channelOf(op, context), operands[0]);
  return success();
}

static LogicalResult recv(dist::RecvOp op, ArrayRef<Tensor>, SmallVectorImpl<Tensor> &results,
                          RankContext &context) {
  FailureOr<int64_t> peer = peerOf(op, op.getFrom(), context);
  if (failed(peer))
    return failure();
  FailureOr<Tensor> value = context.receive(op, *peer, channelOf(op, context));
  if (failed(value))
    return failure();
  results.push_back(*value);
  return success();
}

static LogicalResult slice(dist::SliceOp op, ArrayRef<Tensor> operands,
                           SmallVectorImpl<Tensor> &results, RankContext &context) {
  FailureOr<dist::Mesh> mesh = meshOf(op, context);
  if (failed(mesh))
    return failure();
  dist::Axes axes = op.getGroup().on(*mesh);
  int64_t n = mesh->size(axes), rank = mesh->position(context.rank(), axes);
  results.push_back(part(operands[0], op.getDim(), (rank + int64_t(op.getShift())) % n, n));
  return success();
}

static LogicalResult concat(dist::ConcatOp op, ArrayRef<Tensor> operands,
                            SmallVectorImpl<Tensor> &results, RankContext &context) {
  FailureOr<dist::Mesh> mesh = meshOf(op, context);
  if (failed(mesh))
    return failure();
  size_t rank = mesh->position(context.rank(), op.getGroup().on(*mesh));
  TensorList parts(operands);
  for (auto [t, x] : llvm::enumerate(operands))
    parts[(rank + t) % operands.size()] = x;
  results.push_back(concatenate(parts, op.getDim()));
  return success();
}

static LogicalResult take(dist::TakeOp op, ArrayRef<Tensor> operands,
                          SmallVectorImpl<Tensor> &results, RankContext &) {
  results.push_back(operands[0].slice(op.getAt()));
  return success();
}

static LogicalResult localOffset(dist::OffsetOp op, ArrayRef<Tensor>,
                                 SmallVectorImpl<Tensor> &results, RankContext &context) {
  FailureOr<dist::Mesh> mesh = meshOf(op, context);
  if (failed(mesh))
    return failure();
  Tensor value(op.getType());
  dist::Axes axes = op.getGroup().on(*mesh);
  int64_t rank = (mesh->position(context.rank(), axes) + int64_t(op.getShift())) % mesh->size(axes);
  *value.writeIntegers() = rank * int64_t(op.getSize());
  results.push_back(value);
  return success();
}

/// On global tensors: where a value is does not change it.
static LogicalResult reshard(dist::ReshardOp, ArrayRef<Tensor> operands,
                             SmallVectorImpl<Tensor> &results, RankContext &) {
  results.push_back(operands[0]);
  return success();
}

static LogicalResult constrain(dist::ConstrainOp, ArrayRef<Tensor> operands,
                               SmallVectorImpl<Tensor> &results, RankContext &) {
  results.push_back(operands[0]);
  return success();
}

template <typename OpT, CollectiveFunction<OpT> function>
static void attachCollective(MLIRContext *context) {
  OpT::template attachInterface<CollectiveModel<OpT, function>>(*context);
}

void interp::attachDistModels(MLIRContext *context) {
  attachCollective<dist::AllReduceOp, allReduce>(context);
  attachCollective<dist::AllGatherOp, allGather>(context);
  attachCollective<dist::ReduceScatterOp, reduceScatter>(context);
  attachCollective<dist::AllToAllOp, allToAll>(context);
  attachCollective<dist::PermuteOp, permute>(context);
  attachCollective<dist::ExchangeOp, exchange>(context);
  attachCollective<dist::BroadcastOp, broadcast>(context);
  attachCollective<dist::ReduceOp, reduceToRoot>(context);
  attachCollective<dist::GatherOp, gather>(context);
  attachCollective<dist::ScatterOp, scatter>(context);
  attach<dist::SendOp, send>(context);
  attach<dist::RecvOp, recv>(context);
  attach<dist::SliceOp, slice>(context);
  attach<dist::ConcatOp, concat>(context);
  attach<dist::TakeOp, take>(context);
  attach<dist::OffsetOp, localOffset>(context);
  attach<dist::ReshardOp, reshard>(context);
  attach<dist::ConstrainOp, constrain>(context);
}
