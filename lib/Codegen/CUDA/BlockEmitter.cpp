//===- BlockEmitter.cpp - kernels of a block of threads at a time -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CUDA/BlockEmitter.h"
#include "Codegen/CUDA/KernelEmitter.h"
#include "Codegen/VectorMath.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;
using namespace meshwright::codegen::cuda;

static constexpr unsigned sharedSpace = 3;
static constexpr llvm::StringLiteral sharedName = "meshwright$shared";

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

static bool isFloat(Value value) { return isa<FloatType>(getElementTypeOrSelf(value)); }

Value BlockEmitter::constant(int64_t value) {
  return arith::ConstantIntOp::create(b, loc, value, 64);
}
Value BlockEmitter::word(uint32_t value) {
  return arith::ConstantIntOp::create(b, loc, int64_t(int32_t(value)), 32);
}
Value BlockEmitter::number(double value) {
  return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(float(value)));
}
Value BlockEmitter::narrow(Value x) {
  return arith::TruncIOp::create(b, loc, b.getI32Type(), x);
}
Value BlockEmitter::widen(Value x) {
  return arith::ExtSIOp::create(b, loc, b.getI64Type(), x);
}
Value BlockEmitter::add(Value x, Value y) {
  if (isFloat(x))
    return arith::AddFOp::create(b, loc, x, y, contract);
  return arith::AddIOp::create(b, loc, x, y);
}
Value BlockEmitter::sub(Value x, Value y) {
  if (isFloat(x))
    return arith::SubFOp::create(b, loc, x, y, contract);
  return arith::SubIOp::create(b, loc, x, y);
}
Value BlockEmitter::mul(Value x, Value y) {
  if (isFloat(x))
    return arith::MulFOp::create(b, loc, x, y, contract);
  return arith::MulIOp::create(b, loc, x, y);
}
Value BlockEmitter::divide(Value x, int64_t y) {
  return arith::DivUIOp::create(b, loc, x, constant(y));
}
Value BlockEmitter::remainder(Value x, int64_t y) {
  return arith::RemUIOp::create(b, loc, x, constant(y));
}
Value BlockEmitter::smaller(Value x, Value y) { return arith::MinSIOp::create(b, loc, x, y); }
Value BlockEmitter::larger(Value x, Value y) {
  if (isFloat(x))
    return arith::MaximumFOp::create(b, loc, x, y);
  return arith::MaxSIOp::create(b, loc, x, y);
}
Value BlockEmitter::less(Value x, Value y) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, x, y);
}
Value BlockEmitter::equal(Value x, Value y) {
  if (isFloat(x))
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, x, y);
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, x, y);
}
Value BlockEmitter::differ(Value x, Value y) {
  return LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::ne, x, y);
}
Value BlockEmitter::both(Value x, Value y) {
  return !x ? y : !y ? x : arith::AndIOp::create(b, loc, x, y).getResult();
}
Value BlockEmitter::either(Value x, Value y) {
  return !x ? y : !y ? x : arith::OrIOp::create(b, loc, x, y).getResult();
}
Value BlockEmitter::select(Value condition, Value x, Value y) {
  return condition ? arith::SelectOp::create(b, loc, condition, x, y).getResult() : x;
}
Value BlockEmitter::fma(Value x, Value y, Value z) { return math::FmaOp::create(b, loc, x, y, z); }
Value BlockEmitter::splat(Value x, int64_t width) {
  return vector::BroadcastOp::create(b, loc, VectorType::get({width}, x.getType()), x);
}
Value BlockEmitter::element(Value vector, int64_t i) {
  return vector::ExtractOp::create(b, loc, vector, i);
}

Value BlockEmitter::extend(Value value) {
  Type wide = withElement(value.getType(), b.getF32Type());
  return value.getType() == wide ? value : arith::ExtFOp::create(b, loc, wide, value).getResult();
}
Value BlockEmitter::round(Value value, Type element) {
  Type narrow = withElement(value.getType(), element);
  return value.getType() == narrow ? value
                                   : arith::TruncFOp::create(b, loc, narrow, value).getResult();
}

Values BlockEmitter::loop(Value low, Value high, ValueRange start,
                                      llvm::function_ref<Values(Value, ValueRange)> body) {
  auto loop = scf::ForOp::create(b, loc, low, high, constant(1), start);
  OpBuilder::InsertionGuard guard(b);
  if (start.empty()) {
    b.setInsertionPoint(loop.getBody()->getTerminator());
    body(loop.getInductionVar(), {});
    return {};
  }
  b.setInsertionPointToEnd(loop.getBody());
  Values next = body(loop.getInductionVar(), loop.getRegionIterArgs());
  scf::YieldOp::create(b, loc, next);
  return Values(loop.getResults());
}

void BlockEmitter::guarded(Value condition, llvm::function_ref<void()> body) {
  if (!condition)
    return body();
  auto branch = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(branch.thenBlock()->getTerminator());
  body();
}

Values BlockEmitter::changed(Value condition, ValueRange values, llvm::function_ref<Values()> body) {
  if (!condition)
    return Values(values);
  auto branch = scf::IfOp::create(b, loc, values.getTypes(), condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, loc, body());
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, loc, values);
  return Values(branch.getResults());
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

gpu::GPUFuncOp BlockEmitter::begin(StringRef name, unsigned operands, int64_t blocks) {
  auto ptr = LLVM::LLVMPointerType::get(b.getContext(), globalSpace);
  b.setInsertionPointToEnd(module.getBody());
  function = gpu::GPUFuncOp::create(
      b, loc, name, b.getFunctionType(SmallVector<Type>(operands, ptr), {}), TypeRange(),
      TypeRange(), {b.getNamedAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr())});
  function.setKnownBlockSizeAttr(b.getDenseI32ArrayAttr({int32_t(threads), 1, 1}));
  // Without a number ptxas may spill to make room for more blocks.
  function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(), b.getI32IntegerAttr(1));
  function.setKnownGridSizeAttr(b.getDenseI32ArrayAttr({int32_t(blocks), 1, 1}));
  if (!module.lookupSymbol(sharedName)) {
    // Its size is the launch's.
    OpBuilder atModule = OpBuilder::atBlockBegin(module.getBody());
    LLVM::GlobalOp::create(atModule, loc, LLVM::LLVMArrayType::get(b.getF32Type(), 0),
                           /*isConstant=*/false, LLVM::Linkage::External, sharedName, Attribute(),
                           /*alignment=*/16, sharedSpace);
  }
  sharedBytes = 0;
  b.setInsertionPointToStart(&function.getBody().front());
  auto id = [&](Value index) {
    // Known to be small and not negative: divisions become 32-bit ones.
    Value narrow = arith::IndexCastOp::create(b, loc, b.getI32Type(), index);
    return Value(arith::ExtUIOp::create(b, loc, b.getI64Type(), narrow));
  };
  block = id(gpu::BlockIdOp::create(b, loc, gpu::Dimension::x));
  thread = id(gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x));
  sharedBase = LLVM::AddressOfOp::create(
      b, loc, LLVM::LLVMPointerType::get(b.getContext(), sharedSpace), sharedName);
  return function;
}

Value BlockEmitter::allocate(int64_t bytes) {
  Value base = at(sharedBase, b.getI8Type(), constant(sharedBytes));
  sharedBytes += bytes;
  return base;
}

void BlockEmitter::end() {
  function->setAttr(sharedBytesAttr, b.getI64IntegerAttr(sharedBytes));
  gpu::ReturnOp::create(b, loc);
}

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

void BlockEmitter::warpBarrier() {
  NVVM::SyncWarpOp::create(b, loc, arith::ConstantIntOp::create(b, loc, -1, 32));
}

/// `reduce` of a value and those of the threads at distances that are powers of two.
static Value butterfly(OpBuilder &b, Location loc, int64_t count, Value value,
                       llvm::function_ref<Value(Value, Value)> reduce) {
  for (int64_t distance = count / 2; distance >= 1; distance /= 2)
    value = reduce(value, gpu::ShuffleOp::create(b, loc, value, int32_t(distance), 32,
                                                 gpu::ShuffleMode::XOR)
                              .getShuffleResult());
  return value;
}
Value BlockEmitter::sumOf(int64_t count, Value value) {
  return butterfly(b, loc, count, value, [&](Value x, Value y) { return add(x, y); });
}
Value BlockEmitter::maxOf(int64_t count, Value value) {
  return butterfly(b, loc, count, value, [&](Value x, Value y) { return larger(x, y); });
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value BlockEmitter::at(Value pointer, Type element, Value offset) {
  return LLVM::GEPOp::create(b, loc, pointer.getType(), element, pointer, ValueRange{offset});
}

static unsigned bytesOf(Type type) {
  unsigned bytes = getElementTypeOrSelf(type).getIntOrFloatBitWidth() / 8;
  auto vector = dyn_cast<VectorType>(type);
  return vector ? bytes * vector.getNumElements() : bytes;
}

Value BlockEmitter::load(Value pointer, Type type) {
  return LLVM::LoadOp::create(b, loc, type, pointer, bytesOf(type));
}
void BlockEmitter::store(Value value, Value pointer) {
  LLVM::StoreOp::create(b, loc, value, pointer, bytesOf(value.getType()));
}

Value BlockEmitter::getInt(Value array, Value index) {
  return widen(load(at(array, b.getI32Type(), index), b.getI32Type()));
}
void BlockEmitter::putInt(Value number, Value array, Value index) {
  store(narrow(number), at(array, b.getI32Type(), index));
}

Value BlockEmitter::loadOne(Value pointer, Type element, Value exists) {
  auto one = [&] {
    Value value = load(pointer, element);
    return isa<FloatType>(element) ? extend(value) : value;
  };
  if (!exists)
    return one();
  auto branch = scf::IfOp::create(b, loc, TypeRange{b.getF32Type()}, exists,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, loc, one());
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, loc, number(0));
  return branch.getResult(0);
}
