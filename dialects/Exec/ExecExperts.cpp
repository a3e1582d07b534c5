//===- ExecExperts.cpp - mixtures of experts on memory ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Exec/Exec.h"

#include <limits>

using namespace mlir;
using namespace meshwright::exec;

static MemRefType memory(Value value) { return cast<MemRefType>(value.getType()); }
static bool hasFloats(MemRefType type) {
  return isa<Float32Type, BFloat16Type, Float16Type>(type.getElementType());
}

/// Whether `type` has a row of numbers where `experts`, [blocks, b, slots], has one of its i32.
static bool hasRowsOf(MemRefType type, MemRefType experts) {
  return experts.getRank() == 3 && experts.getElementType().isInteger(32) && type.getRank() == 4 &&
         type.getShape().drop_back() == experts.getShape() && hasFloats(type);
}
/// Whether `type` has a matrix for each expert of equally large blocks.
static bool hasBlocksOf(MemRefType type, MemRefType experts) {
  return type.getRank() == 3 && type.getDimSize(0) % experts.getDimSize(0) == 0;
}

LogicalResult RouteOp::verify() {
  MemRefType mask = memory(getMask()), chosen = memory(getChosen());
  if (mask.getRank() != 3 || !hasFloats(mask) || chosen.getRank() != 3 ||
      chosen.getShape().drop_front() != mask.getShape().take_front(2))
    return emitOpError("cannot route ") << mask << " to " << chosen
                                        << "; expected [b, s, experts] and [k, b, s]";
  MemRefType choices = memory(getChoices());
  for (Value value : {getChosen(), getRows(), getChoices(), getExperts()}) {
    bool token = value == getChosen() || value == getRows();
    MemRefType type = memory(value);
    if (!type.getElementType().isInteger(32) ||
        type.getShape() != (token ? chosen : choices).getShape())
      return emitOpError("cannot write ") << type << " of " << mask << " and " << chosen;
  }
  if (choices.getRank() != 3 || choices.getDimSize(1) != mask.getDimSize(0) ||
      mask.getDimSize(2) % choices.getDimSize(0) != 0)
    return emitOpError("cannot put rows into ")
           << choices << "; expected [blocks, b, slots] with blocks of equally many experts";
  int64_t most = std::max(choices.getNumElements(), chosen.getNumElements());
  if (most > std::numeric_limits<int32_t>::max())
    return emitOpError("cannot number ") << most << " choices or rows by i32; use fewer sequences, or "
                                         << "--expert-capacity";
  return success();
}

RouteShape RouteOp::getShape() {
  ArrayRef<int64_t> mask = memory(getMask()).getShape(), slots = memory(getChoices()).getShape();
  return {mask[0],
          mask[1],
          mask[2],
          memory(getChosen()).getDimSize(0),
          slots[0],
          slots[1] * slots[2],
          int64_t(getCapacity())};
}

static GroupShape groupsOf(Value experts, Value matrices) {
  ArrayRef<int64_t> rows = memory(experts).getShape();
  return {rows[0], rows[1] * rows[2], memory(matrices).getDimSize(0)};
}
GroupShape GroupedMatmulOp::getGroups() { return groupsOf(getExperts(), getWeight()); }
GroupShape GroupedMatmulGradOp::getGroups() { return groupsOf(getExperts(), getResult()); }

/// Whether `type` has i32 for the slots of blocks, [x, b, m].
static bool hasSlots(MemRefType type) {
  return type.getRank() == 3 && type.getElementType().isInteger(32);
}
static bool isOneInteger(MemRefType type) {
  return type.getRank() == 0 && type.getElementType().isInteger(32);
}

LogicalResult RoundsOp::verify() {
  if (!hasSlots(memory(getChoices())) || !isOneInteger(memory(getRounds())) ||
      int64_t(getSlots()) < 1)
    return emitOpError("cannot count rounds of ")
           << int64_t(getSlots()) << " slots in " << memory(getChoices()) << " to "
           << memory(getRounds());
  return success();
}

LogicalResult RowsOfRoundOp::verify() {
  MemRefType all = memory(getChoices()), own = memory(getOwnChoices());
  int64_t part = getPart(), parts = getParts();
  if (parts < 1 || part < 0 || part >= parts)
    return emitOpError("a round has no part ") << part << " of " << parts;
  if ((getRound() && !isOneInteger(memory(getRound()))) || !hasSlots(all) || !hasSlots(own) ||
      memory(getExperts()) != all || memory(getOwnExperts()) != own ||
      all.getShape().drop_back() != own.getShape().drop_back() ||
      !hasSlots(memory(getRows())) || memory(getOwnRows()) != memory(getRows()))
    return emitOpError("cannot take ") << own << " of a round from " << all;
  return success();
}

ProductShape GroupedMatmulOp::getShape() {
  MemRefType x = memory(getX()), y = memory(getY());
  int64_t inner = x.getShape().back(), outer = y.getShape().back();
  ProductShape shape{false, !getTransposed(), x.getNumElements() / inner, outer, inner};
  shape.ldc = outer;
  shape.result = y.getElementType();
  shape.mixed = !shape.result.isF32();
  return shape;
}

LogicalResult GroupedMatmulOp::verify() {
  MemRefType x = memory(getX()), y = memory(getY()), weight = memory(getWeight()),
             experts = memory(getExperts());
  if (!hasRowsOf(x, experts) || !hasRowsOf(y, experts))
    return emitOpError("cannot multiply ") << x << " to " << y << " by the experts " << experts;
  int64_t inner = x.getShape().back(), outer = y.getShape().back();
  SmallVector<int64_t, 2> wanted{outer, inner};
  if (getTransposed())
    std::swap(wanted[0], wanted[1]);
  if (!hasBlocksOf(weight, experts) || weight.getShape().drop_front() != ArrayRef(wanted) ||
      weight.getElementType() != x.getElementType() || y.getElementType() != x.getElementType())
    return emitOpError("cannot multiply ") << x << " to " << y << " by " << weight;
  return success();
}

ProductShape GroupedMatmulGradOp::getShape() {
  MemRefType dy = memory(getDy()), x = memory(getX()), result = memory(getResult());
  int64_t m = dy.getShape().back(), n = x.getShape().back();
  ProductShape shape{true, false, m, n, x.getNumElements() / n};
  shape.ldc = n;
  shape.result = result.getElementType();
  shape.mixed = !shape.result.isF32() || !x.getElementType().isF32();
  return shape;
}

LogicalResult GroupedMatmulGradOp::verify() {
  MemRefType dy = memory(getDy()), x = memory(getX()), result = memory(getResult()),
             experts = memory(getExperts());
  if (!hasRowsOf(dy, experts) || !hasRowsOf(x, experts) ||
      dy.getElementType() != x.getElementType() || !hasBlocksOf(result, experts) ||
      result.getDimSize(1) != dy.getShape().back() || result.getDimSize(2) != x.getShape().back() ||
      !hasFloats(result))
    return emitOpError("cannot sum ") << dy << " times " << x << " to " << result
                                      << " by the experts " << experts;
  return success();
}

void GroupedMatmulGradOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  auto add = [&](MemoryEffects::Effect *effect, OpOperand &operand) {
    effects.emplace_back(effect, &operand);
  };
  for (OpOperand *read : {&getDyMutable(), &getXMutable(), &getExpertsMutable()})
    add(MemoryEffects::Read::get(), *read);
  if (getAccumulates())
    add(MemoryEffects::Read::get(), getResultMutable());
  add(MemoryEffects::Write::get(), getResultMutable());
  for (OpOperand &workspace : getWorkspaceMutable())
    add(MemoryEffects::Write::get(), workspace);
}
