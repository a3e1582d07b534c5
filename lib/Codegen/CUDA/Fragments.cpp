//===- Fragments.cpp - what tensor cores multiply ----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CUDA/Fragments.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen::cuda;

Value Fragments::bitcast(Type type, Value value) {
  return LLVM::BitcastOp::create(e.b, e.loc, type, value);
}

Value Fragments::pack(Value x, Value y) {
  Value both =
      vector::FromElementsOp::create(e.b, e.loc, pair(e.b.getF32Type()), ValueRange{x, y});
  return bitcast(e.b.getI32Type(), e.round(both, element));
}

Fragment Fragments::load(Value address, bool transposed) {
  Type word = e.b.getI32Type();
  MLIRContext *context = e.b.getContext();
  auto type = LLVM::LLVMStructType::getLiteral(context, SmallVector<Type>(4, word));
  Value all = NVVM::LdMatrixOp::create(
      e.b, e.loc, type, address, 4, transposed ? NVVM::MMALayout::col : NVVM::MMALayout::row,
      NVVM::LdStMatrixShapeAttr::get(context, 8, 8), NVVM::LdStMatrixEltType::B16);
  Fragment result;
  for (int64_t i = 0; i < 4; ++i)
    result[i] = LLVM::ExtractValueOp::create(e.b, e.loc, all, i);
  return result;
}

void Fragments::multiply(const Fragment &a, Value b0, Value b1, const std::array<Value *, 4> &to) {
  bool isF16 = element.isF16();
  auto operand = [&](Value word) { return isF16 ? bitcast(pair(element), word) : word; };
  Values as, before;
  for (Value word : a)
    as.push_back(operand(word));
  for (Value *sum : to)
    before.push_back(*sum);
  auto types = isF16 ? NVVM::MMATypes::f16 : NVVM::MMATypes::bf16;
  auto result = LLVM::LLVMStructType::getLiteral(e.b.getContext(),
                                                 SmallVector<Type>(4, e.b.getF32Type()));
  Value all = NVVM::MmaOp::create(
      e.b, e.loc, result, as, ValueRange{operand(b0), operand(b1)}, before, {16, 8, 16},
      std::nullopt, std::nullopt, std::array<NVVM::MMATypes, 2>{types, types},
      std::array<NVVM::MMALayout, 2>{NVVM::MMALayout::row, NVVM::MMALayout::col});
  for (int64_t i = 0; i < 4; ++i)
    *to[i] = LLVM::ExtractValueOp::create(e.b, e.loc, all, i);
}

void Fragments::copy(Value to, Value from, Value size) {
  NVVM::CpAsyncOp::create(e.b, e.loc, to, from, 16, NVVM::LoadCacheModifierKind::CG, size);
}
void Fragments::commit() { NVVM::CpAsyncCommitGroupOp::create(e.b, e.loc); }
void Fragments::wait(int64_t groups) { NVVM::CpAsyncWaitGroupOp::create(e.b, e.loc, groups); }
