//===- ExecQuantize.cpp - products of quantized matrices ---------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Exec/Quantize.h"

#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

#define GET_OP_CLASSES
#include "Exec/ExecQuantizeOps.cpp.inc"

void ScaledMatmulOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  auto add = [&](MemoryEffects::Effect *effect, MutableOperandRange operands) {
    for (OpOperand &operand : operands)
      effects.emplace_back(effect, &operand, SideEffects::DefaultResource::get());
  };
  for (OpOperand *read : {&getAMutable(), &getBMutable(), &getScaleAMutable(), &getScaleBMutable()})
    effects.emplace_back(MemoryEffects::Read::get(), read, SideEffects::DefaultResource::get());
  if (!getBeta().isZero())
    effects.emplace_back(MemoryEffects::Read::get(), &getCMutable(), SideEffects::DefaultResource::get());
  effects.emplace_back(MemoryEffects::Write::get(), &getCMutable(), SideEffects::DefaultResource::get());
  add(MemoryEffects::Write::get(), getWorkspaceMutable());
}

double ScaledMatmulOp::getFlops() {
  return 2.0 * double(getM()) * double(getN()) * double(getK()) * double(getBatch());
}

ProductShape ScaledMatmulOp::getShape() {
  ProductShape shape{getTransA(), getTransB(), int64_t(getM()), int64_t(getN()), int64_t(getK())};
  shape.ldc = getLdc();
  shape.batch = getBatch();
  shape.mixed = true;
  shape.result = getC().getType().getElementType();
  return shape;
}

LogicalResult ScaledMatmulOp::verify() {
  auto check = [&](StringRef name, MemRefType type, int64_t rows, int64_t columns, int64_t ld,
                   int64_t stride) -> LogicalResult {
    if (ld < columns)
      return emitOpError(name) << " has rows of " << columns << " elements, " << ld << " apart";
    // 2^31 on each side is no size of a matrix, so nothing overflows below it.
    constexpr int64_t most = int64_t(1) << 31;
    if (stride < 0 || stride >= most || ld >= most || rows >= most || int64_t(getBatch()) >= most)
      return emitOpError(name) << " has sizes or strides outside of 0 to 2^31";
    double end = double(getBatch() - 1) * double(stride) + double(rows - 1) * double(ld) + double(columns);
    if (end > double(type.getNumElements()))
      return emitOpError(name) << " reaches element " << int64_t(end) << " of " << type;
    return success();
  };
  int64_t m = getM(), n = getN(), k = getK();
  if (m < 1 || n < 1 || k < 1 || int64_t(getBatch()) < 1)
    return emitOpError("needs positive sizes");
  if (getA() == getC() || getB() == getC())
    return emitOpError("cannot write over one of its factors");
  for (Value factor : {getA(), getB()})
    if (!isa<Float8E4M3FNType, Float8E5M2Type>(getElementTypeOrSelf(factor)))
      return emitOpError("multiplies matrices of f8E4M3FN or f8E5M2, but a factor is ") << factor.getType();
  if (!isa<Float32Type, BFloat16Type, Float16Type>(getElementTypeOrSelf(getC())))
    return emitOpError("makes matrices of f32, bf16 or f16, but c is ") << getC().getType();
  for (Value scale : {getScaleA(), getScaleB()})
    if (scale.getType() != MemRefType::get({}, Float32Type::get(getContext())))
      return emitOpError("has the scale ") << scale.getType() << "; scales are memref<f32>";
  int64_t wanted = targetOf(*this).getTarget().getProductWorkspace(getShape());
  int64_t given = getWorkspace() ? bytesOf(getWorkspace().getType()) : 0;
  if (given != wanted)
    return emitOpError("gives ") << given << " bytes of workspace where " << wanted << " are needed";
  if (failed(check("a", getA().getType(), getTransA() ? k : m, getTransA() ? m : k, getLda(), getStrideA())) ||
      failed(check("b", getB().getType(), getTransB() ? n : k, getTransB() ? k : n, getLdb(), getStrideB())) ||
      failed(check("c", getC().getType(), m, n, getLdc(), getStrideC())))
    return failure();
  int64_t written = m * n * int64_t(getBatch());
  if (written != getC().getType().getNumElements())
    return emitOpError("writes ") << written << " elements of c, " << getC().getType();
  return success();
}
