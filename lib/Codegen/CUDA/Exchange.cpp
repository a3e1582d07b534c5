//===- Exchange.cpp - kernels that add what exchanges receive ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CUDA/Exchange.h"
#include "Codegen/CUDA/KernelEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;

/// Enough to keep any GPU's memory busy, and few beside what is computed meanwhile.
static constexpr int64_t exchangeBlocks = 256, exchangeThreads = 256;

/// In f32, rounded once.
static Value combine(OpBuilder &b, Location loc, train::ReduceKind kind, Value x, Value y) {
  Type type = x.getType();
  bool narrow = !type.isF32();
  if (narrow) {
    x = arith::ExtFOp::create(b, loc, b.getF32Type(), x);
    y = arith::ExtFOp::create(b, loc, b.getF32Type(), y);
  }
  Value result = kind == train::ReduceKind::Max
                     ? Value(arith::MaximumFOp::create(b, loc, x, y))
                     : Value(arith::AddFOp::create(b, loc, x, y));
  return narrow ? Value(arith::TruncFOp::create(b, loc, type, result)) : result;
}

LogicalResult cuda::addExchangeKernel(exec::ExchangeOp op, gpu::GPUModuleOp target) {
  if (!op.getKind())
    return success(); // What arrives replaces.
  Type type = getElementTypeOrSelf(op.getMemory().front());
  if (!isa<FloatType>(type))
    return op.emitOpError("adds elements of type ") << type << "; f32, bf16 and f16 work on GPUs";
  // As the runtime looks for it (runtime/cuda/Collectives.cpp).
  std::string name;
  llvm::raw_string_ostream(name)
      << "exchange$" << (*op.getKind() == train::ReduceKind::Max ? "max" : "sum") << "$" << type;
  if (target.lookupSymbol(name))
    return success();

  Location loc = op.getLoc();
  OpBuilder b = OpBuilder::atBlockEnd(target.getBody());
  auto ptr = LLVM::LLVMPointerType::get(b.getContext(), cuda::globalSpace);
  auto function = gpu::GPUFuncOp::create(
      b, loc, name, b.getFunctionType({ptr, ptr, b.getI64Type()}, {}), TypeRange(), TypeRange(),
      {b.getNamedAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr())});
  function.setKnownBlockSizeAttr(b.getDenseI32ArrayAttr({int32_t(exchangeThreads), 1, 1}));
  function.setKnownGridSizeAttr(b.getDenseI32ArrayAttr({int32_t(exchangeBlocks), 1, 1}));
  b.setInsertionPointToStart(&function.getBody().front());
  auto constant = [&](int64_t value) {
    return Value(arith::ConstantIntOp::create(b, loc, value, 64));
  };
  auto id = [&](Value index) {
    return Value(arith::IndexCastOp::create(b, loc, b.getI64Type(), index));
  };
  Value block = id(gpu::BlockIdOp::create(b, loc, gpu::Dimension::x));
  Value thread = id(gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x));
  Value first = arith::AddIOp::create(
      b, loc, arith::MulIOp::create(b, loc, block, constant(exchangeThreads)), thread);
  auto loop = scf::ForOp::create(b, loc, first, function.getArgument(2), constant(exchangeBlocks * exchangeThreads));
  OpBuilder inside = OpBuilder::atBlockBegin(loop.getBody());
  unsigned bytes = type.getIntOrFloatBitWidth() / 8;
  auto at = [&](unsigned argument) {
    return Value(LLVM::GEPOp::create(inside, loc, ptr, type, function.getArgument(argument),
                                     ValueRange{loop.getInductionVar()}));
  };
  Value to = at(0), from = at(1);
  Value mine = LLVM::LoadOp::create(inside, loc, type, to, bytes);
  Value theirs = LLVM::LoadOp::create(inside, loc, type, from, bytes);
  LLVM::StoreOp::create(inside, loc, combine(inside, loc, *op.getKind(), mine, theirs), to, bytes);
  b.setInsertionPointToEnd(&function.getBody().front());
  gpu::ReturnOp::create(b, loc);
  return success();
}
