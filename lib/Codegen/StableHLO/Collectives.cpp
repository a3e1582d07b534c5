//===- Collectives.cpp - collectives of replicas as StableHLO ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/StableHLO/Export.h"

#include "Dist/Wire.h"

#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;
using stablehlo::HLOBuilder;
using stablehlo::plain;
using stablehlo::Results;

namespace {
/// The groups along some axes, and what a device knows of its own.
class Groups {
public:
  Groups(dist::GroupAttr group, const dist::Mesh &mesh, HLOBuilder &b)
      : b(b), mesh(mesh), axes(group.on(mesh)), members(mesh.size(axes)) {}

  NamedAttribute replicaGroups() {
    SmallVector<int64_t> ranks;
    for (int64_t rank : llvm::seq(mesh.size()))
      if (mesh.position(rank, axes) == 0)
        llvm::append_range(ranks, mesh.group(rank, axes));
    OpBuilder &plainBuilder = b.builder();
    auto type = RankedTensorType::get({mesh.size() / members, members}, plainBuilder.getI64Type());
    return plainBuilder.getNamedAttr("replica_groups", DenseIntElementsAttr::get(type, ranks));
  }
  /// Pairs (sender, receiver): the device of rank p gets the value of rank from[p].
  NamedAttribute pairs(ArrayRef<int64_t> from) {
    SmallVector<int64_t> ranks;
    for (int64_t rank : llvm::seq(mesh.size()))
      ranks.append({mesh.group(rank, axes)[from[mesh.position(rank, axes)]], rank});
    OpBuilder &plainBuilder = b.builder();
    auto type = RankedTensorType::get({mesh.size(), 2}, plainBuilder.getI64Type());
    return plainBuilder.getNamedAttr("source_target_pairs", DenseIntElementsAttr::get(type, ranks));
  }
  /// size * (rank + shift mod members) of the running device, a tensor<i32>.
  Value begin(int64_t size, int64_t shift) {
    OpBuilder &plainBuilder = b.builder();
    Type word = plainBuilder.getI32Type();
    SmallVector<int32_t> table;
    for (int64_t rank : llvm::seq(mesh.size()))
      table.push_back(int32_t((mesh.position(rank, axes) + shift) % members * size));
    auto type = RankedTensorType::get({mesh.size()}, word);
    Type unsignedWord = IntegerType::get(b.builder().getContext(), 32, IntegerType::Unsigned);
    Value rank = b.op("replica_id", RankedTensorType::get({}, unsignedWord), {});
    Value entry = b.dynamicSlice(b.constant(DenseElementsAttr::get(type, ArrayRef(table))),
                                 b.bitcast(rank, word), {1});
    return b.reshape(entry, {});
  }

  HLOBuilder &b;
  const dist::Mesh &mesh;
  dist::Axes axes;
  int64_t members;
};
} // namespace

/// One reduction a tensor: with regions, buckets are of no use there.
template <typename Op>
static FailureOr<Results> reduceEach(Op op, StringRef name, ValueRange x, Groups &groups,
                                    llvm::function_ref<SmallVector<NamedAttribute>(size_t)> more) {
  HLOBuilder &b = groups.b;
  if (op->hasAttr(dist::wireAttr))
    return op->emitOpError("sends narrow terms, which StableHLO's reductions do not; compile without --grad-reduce-dtype");
  Results results;
  for (auto [i, value] : llvm::enumerate(x)) {
    SmallVector<NamedAttribute> attributes = more(i);
    attributes.push_back(groups.replicaGroups());
    Operation *made = b.create(name, plain(op->getResult(i).getType()), value, attributes,
                               /*regions=*/1);
    b.combineWith(made->getRegion(0), op.getKind() == train::ReduceKind::Max ? "maximum" : "add",
                  b.typeOf(value).getElementType());
    results.push_back(made->getResult(0));
  }
  return results;
}

FailureOr<Results> stablehlo::exportCollective(Operation *op, ValueRange x, const dist::Mesh &mesh,
                                               HLOBuilder &b) {
  return llvm::TypeSwitch<Operation *, FailureOr<Results>>(op)
      .Case([&](dist::AllReduceOp op) -> FailureOr<Results> {
        Groups groups(op.getGroup(), mesh, b);
        return reduceEach(op, "all_reduce", x, groups, [](size_t) {
          return SmallVector<NamedAttribute>();
        });
      })
      .Case([&](dist::ReduceScatterOp op) -> FailureOr<Results> {
        Groups groups(op.getGroup(), mesh, b);
        return reduceEach(op, "reduce_scatter", x, groups, [&](size_t i) {
          return SmallVector<NamedAttribute>{b.number("scatter_dimension", op.getDims()[i])};
        });
      })
      .Case([&](dist::AllGatherOp op) -> FailureOr<Results> {
        Groups groups(op.getGroup(), mesh, b);
        Results results;
        for (auto [i, value] : llvm::enumerate(x))
          results.push_back(
              b.op("all_gather", plain(op->getResult(i).getType()), value,
                   {b.number("all_gather_dim", op.getDims()[i]), groups.replicaGroups()}));
        return results;
      })
      .Case([&](dist::AllToAllOp op) -> FailureOr<Results> {
        Groups groups(op.getGroup(), mesh, b);
        return Results{b.op("all_to_all", plain(op.getY().getType()), x,
                            {b.number("split_dimension", op.getSplit()),
                             b.number("concat_dimension", op.getConcat()),
                             b.number("split_count", groups.members), groups.replicaGroups()})};
      })
      .Case([&](dist::PermuteOp op) -> FailureOr<Results> {
        Groups groups(op.getGroup(), mesh, b);
        return Results{b.op("collective_permute", x[0].getType(), x, groups.pairs(op.getFrom()))};
      })
      .Case([&](dist::OffsetOp op) -> FailureOr<Results> {
        return Results{Groups(op.getGroup(), mesh, b).begin(op.getSize(), op.getShift())};
      })
      .Case([&](dist::SliceOp op) -> FailureOr<Results> {
        RankedTensorType part = plain(op.getY().getType());
        Value begin =
            Groups(op.getGroup(), mesh, b).begin(part.getDimSize(op.getDim()), op.getShift());
        SmallVector<Value> at(part.getRank(), b.splat(b.typeOf(begin), 0));
        at[op.getDim()] = begin;
        return Results{b.dynamicSlice(x[0], at, part.getShape())};
      })
      .Default([](Operation *) -> FailureOr<Results> { return failure(); });
}
