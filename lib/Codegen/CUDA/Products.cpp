//===- Products.cpp - the matrix products of an executable ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CUDA/Products.h"
#include "meshwright/LocationText.h"
#include "meshwright/runtime/cuda/ABI.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;
using namespace meshwright::codegen::cuda;

static int64_t typeOf(Value memory) {
  Type element = cast<MemRefType>(memory.getType()).getElementType();
  return element.isF32() ? MW_F32 : element.isBF16() ? MW_BF16 : MW_F16;
}

SmallVector<Value> ProductTable::operandsOf(exec::MatmulOp op) {
  bool inPlace = !op.getBeta().isZero();
  Value beside = op.getSlopeAt() ? op.getSlopeAt() : op.getPreactivation();
  Value row = op.getBias() ? op.getBias() : op.getSumA() ? op.getSumA() : op.getSumB();
  return {op.getA(), op.getB(), op.getC(), inPlace ? Value(op.getC()) : op.getAddend(),
          row,       beside,    op.getWorkspace()};
}

FailureOr<int64_t> ProductTable::numberOf(exec::MatmulOp op) {
  float alpha = op.getAlpha().convertToFloat(), beta = op.getBeta().convertToFloat();
  if (alpha != 1 || (beta != 0 && beta != 1))
    return op.emitOpError("has alpha ")
           << alpha << " and beta " << beta << "; on GPUs alpha is 1 and beta 0 or 1";
  int64_t alignment = 256;
  SmallVector<Value> operands = operandsOf(op);
  for (Value memory : ArrayRef(operands).drop_back()) // the workspace is what the runtime makes of it
    if (memory)
      alignment = std::gcd(alignment, alignments.of(memory));
  // cuBLASLt asks for it; rows of a multiple of 8 narrow elements see to it.
  if (Value beside = operandsOf(op)[5]; beside && alignments.of(beside) % 16)
    return op.emitOpError("has what gelu is taken of at an address that 16 does not divide; "
                          "compile with --epilogues bias,addend");
  int64_t epilogue = (beta != 0 || op.getAddend() ? MW_ADDEND : 0) | (op.getBias() ? MW_BIAS : 0) |
                     (op.getGelu() ? MW_GELU : 0) |
                     (op.getPreactivation() ? MW_PREACTIVATION : 0) |
                     (op.getSlopeAt() ? MW_GELU_GRAD : 0) | (op.getSumA() ? MW_SUM_A : 0) |
                     (op.getSumB() ? MW_SUM_B : 0);
  std::vector<int64_t> row;
  for (uint64_t number : {op.getM(), op.getN(), op.getK(), op.getLda(), op.getLdb(), op.getLdc(),
                          op.getBatch(), op.getStrideA(), op.getStrideB(), op.getStrideC()})
    row.push_back(int64_t(number));
  llvm::append_values(row, int64_t(op.getTransA()), int64_t(op.getTransB()), typeOf(op.getA()),
                      typeOf(op.getC()), epilogue, alignment);
  static_assert(sizeof(MwProduct) == 16 * sizeof(int64_t));
  auto [entry, isNew] = numbers.try_emplace(row, int64_t(numbers.size()));
  if (isNew) {
    llvm::append_range(table, row);
    callSites += locationText(op.getLoc());
    callSites.push_back('\0');
  }
  return entry->second;
}
