//===- AttentionWork.cpp - what each device's queries see -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "AttentionWork.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

/// The elements of a small integer tensor on the device of rank `rank` of its group; nothing where
/// they are not known, or come from two groups.
static std::optional<SmallVector<int64_t>> elementsOf(Value value, int64_t rank, const Mesh &mesh,
                                                      GroupAttr &group) {
  using Elements = std::optional<SmallVector<int64_t>>;
  auto operand = [&](Value of) { return elementsOf(of, rank, mesh, group); };
  Operation *op = value.getDefiningOp();
  if (!op)
    return {};
  return llvm::TypeSwitch<Operation *, Elements>(op)
      .Case([&](OffsetOp offset) -> Elements {
        if (group && group != offset.getGroup())
          return {};
        group = offset.getGroup();
        int64_t ranks = mesh.size(group.on(mesh));
        return SmallVector<int64_t>{(rank + int64_t(offset.getShift())) % ranks *
                                    int64_t(offset.getSize())};
      })
      .Case([&](train::ReshapeOp reshape) { return operand(reshape.getX()); })
      .Case([&](train::PadOp pad) -> Elements {
        Elements x = operand(pad.getX());
        if (!x)
          return {};
        SmallVector<int64_t> padded(pad.getRows(), int64_t(pad.getValue()));
        llvm::copy(*x, padded.begin() + pad.getFrom());
        return padded;
      })
      .Case([&](train::SliceOp slice) -> Elements {
        Elements x = operand(slice.getX());
        if (!x)
          return {};
        return SmallVector<int64_t>(ArrayRef(*x).slice(slice.getFrom(), slice.getRows()));
      })
      .Case([&](train::ShiftIdsOp shift) -> Elements {
        Elements ids = operand(shift.getIds()), offset = operand(shift.getOffset());
        if (!ids || !offset)
          return {};
        for (int64_t &id : *ids)
          id -= offset->front();
        return ids;
      })
      .Default([](Operation *) { return Elements(); });
}

std::optional<QueryOffsets> dist::queryOffsetsOf(Value offset, const Mesh &mesh) {
  QueryOffsets offsets;
  if (!offset || !elementsOf(offset, 0, mesh, offsets.group) || !offsets.group)
    return {};
  int64_t ranks = mesh.size(offsets.group.on(mesh));
  for (int64_t rank = 0; rank < ranks; ++rank)
    offsets.first.push_back(elementsOf(offset, rank, mesh, offsets.group)->front());
  return offsets;
}

template <typename Op> static AttentionShape attentionShape(Op op) {
  train::AttentionSizes sizes = op.getSizes();
  train::AttentionAttr spec = op.getSpec();
  return {cast<RankedTensorType>(op.getQ().getType()).getDimSize(1), sizes.queries, sizes.keys,
          spec.getValue(), spec->queryStride, spec->keyStride};
}
AttentionShape AttentionShape::of(train::AttentionOp op) { return attentionShape(op); }
AttentionShape AttentionShape::of(train::AttentionGradOp op) { return attentionShape(op); }

int64_t AttentionShape::pairs(int64_t first, int64_t count) const {
  AttentionShape whole = *this;
  whole.keyStride = 1;
  return whole.pairs(first, count, 0, keys);
}

int64_t AttentionShape::pairs(int64_t first, int64_t count, int64_t firstKey,
                              int64_t countOfKeys) const {
  int64_t sum = 0, pastKey = std::min(firstKey + countOfKeys * keyStride, keys);
  for (int64_t query = first; query < std::min(first + count * queryStride, queries);
       query += queryStride)
    sum += mask.visibleKeys(query, pastKey, firstKey, keyStride);
  return sum;
}
