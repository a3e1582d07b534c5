//===- TileEmitter.cpp - products of tiles in shared memory -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CUDA/TileEmitter.h"
#include "Codegen/CUDA/KernelEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;
using namespace meshwright::codegen::cuda;

static constexpr unsigned globalSpace = 1, sharedSpace = 3;
static constexpr llvm::StringLiteral sharedName = "meshwright$shared";

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

static bool isFloat(Value value) { return isa<FloatType>(getElementTypeOrSelf(value)); }
static constexpr auto contract = arith::FastMathFlags::contract;

Value TileEmitter::constant(int64_t value) {
  return arith::ConstantIntOp::create(b, loc, value, 64);
}
Value TileEmitter::word(uint32_t value) {
  return arith::ConstantIntOp::create(b, loc, int64_t(int32_t(value)), 32);
}
Value TileEmitter::number(double value) {
  return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(float(value)));
}
Value TileEmitter::add(Value x, Value y) {
  if (isFloat(x))
    return arith::AddFOp::create(b, loc, x, y, contract);
  return arith::AddIOp::create(b, loc, x, y);
}
Value TileEmitter::sub(Value x, Value y) {
  if (isFloat(x))
    return arith::SubFOp::create(b, loc, x, y, contract);
  return arith::SubIOp::create(b, loc, x, y);
}
Value TileEmitter::mul(Value x, Value y) {
  if (isFloat(x))
    return arith::MulFOp::create(b, loc, x, y, contract);
  return arith::MulIOp::create(b, loc, x, y);
}
Value TileEmitter::divide(Value x, int64_t y) {
  return arith::DivUIOp::create(b, loc, x, constant(y));
}
Value TileEmitter::remainder(Value x, int64_t y) {
  return arith::RemUIOp::create(b, loc, x, constant(y));
}
Value TileEmitter::smaller(Value x, Value y) { return arith::MinSIOp::create(b, loc, x, y); }
Value TileEmitter::larger(Value x, Value y) {
  if (isFloat(x))
    return arith::MaximumFOp::create(b, loc, x, y);
  return arith::MaxSIOp::create(b, loc, x, y);
}
Value TileEmitter::less(Value x, Value y) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, x, y);
}
Value TileEmitter::equal(Value x, Value y) {
  if (isFloat(x))
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, x, y);
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, x, y);
}
Value TileEmitter::both(Value x, Value y) {
  return !x ? y : !y ? x : arith::AndIOp::create(b, loc, x, y).getResult();
}
Value TileEmitter::select(Value condition, Value x, Value y) {
  return condition ? arith::SelectOp::create(b, loc, condition, x, y).getResult() : x;
}
Value TileEmitter::fma(Value x, Value y, Value z) { return math::FmaOp::create(b, loc, x, y, z); }
Value TileEmitter::splat(Value x) {
  return vector::BroadcastOp::create(b, loc, VectorType::get({width}, x.getType()), x);
}
Value TileEmitter::element(Value vector, int64_t i) {
  return vector::ExtractOp::create(b, loc, vector, i);
}

TileEmitter::Values TileEmitter::loop(Value low, Value high, ValueRange start,
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

void TileEmitter::guarded(Value condition, llvm::function_ref<void()> body) {
  if (!condition)
    return body();
  auto branch = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(branch.thenBlock()->getTerminator());
  body();
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

gpu::GPUFuncOp TileEmitter::begin(StringRef name, unsigned operands, int64_t blocks) {
  auto ptr = LLVM::LLVMPointerType::get(b.getContext(), globalSpace);
  b.setInsertionPointToEnd(module.getBody());
  function = gpu::GPUFuncOp::create(
      b, loc, name, b.getFunctionType(SmallVector<Type>(operands, ptr), {}), TypeRange(),
      TypeRange(), {b.getNamedAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr())});
  function.setKnownBlockSizeAttr(b.getDenseI32ArrayAttr({int32_t(threads), 1, 1}));
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
  rowThread = divide(thread, columnThreads);
  columnThread = remainder(thread, columnThreads);
  sharedBase = LLVM::AddressOfOp::create(
      b, loc, LLVM::LLVMPointerType::get(b.getContext(), sharedSpace), sharedName);
  return function;
}

void TileEmitter::place(Tile &tile) {
  tile.base = at(sharedBase, b.getF32Type(), constant(sharedBytes / int64_t(sizeof(float))));
  sharedBytes += tile.bytes();
}

void TileEmitter::end() {
  function->setAttr(sharedBytesAttr, b.getI64IntegerAttr(sharedBytes));
  gpu::ReturnOp::create(b, loc);
}

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

void TileEmitter::warpBarrier() {
  NVVM::SyncWarpOp::create(b, loc, arith::ConstantIntOp::create(b, loc, -1, 32));
}

Value TileEmitter::rowSum(Value value) {
  for (int64_t distance = columnThreads / 2; distance >= 1; distance /= 2)
    value = add(value, gpu::ShuffleOp::create(b, loc, value, int32_t(distance), 32,
                                              gpu::ShuffleMode::XOR)
                           .getShuffleResult());
  return value;
}

Value TileEmitter::rowMax(Value value) {
  for (int64_t distance = columnThreads / 2; distance >= 1; distance /= 2)
    value = larger(value, gpu::ShuffleOp::create(b, loc, value, int32_t(distance), 32,
                                                 gpu::ShuffleMode::XOR)
                              .getShuffleResult());
  return value;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value TileEmitter::at(Value pointer, Type element, Value offset) {
  return LLVM::GEPOp::create(b, loc, pointer.getType(), element, pointer, ValueRange{offset});
}

static unsigned bytesOf(Type type) {
  unsigned bytes = getElementTypeOrSelf(type).getIntOrFloatBitWidth() / 8;
  auto vector = dyn_cast<VectorType>(type);
  return vector ? bytes * vector.getNumElements() : bytes;
}

/// f32 of a float or a vector of floats.
static Value extend(OpBuilder &b, Location loc, Value value) {
  Type wide = b.getF32Type();
  if (getElementTypeOrSelf(value) == wide)
    return value;
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    wide = vector.clone(wide);
  return arith::ExtFOp::create(b, loc, wide, value);
}

Value TileEmitter::loadOne(Value pointer, Type element, Value exists) {
  auto load = [&] {
    Value value = LLVM::LoadOp::create(b, loc, element, pointer, bytesOf(element));
    return isa<FloatType>(element) ? extend(b, loc, value) : value;
  };
  if (!exists)
    return load();
  auto branch = scf::IfOp::create(b, loc, TypeRange{b.getF32Type()}, exists,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, loc, load());
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, loc, number(0));
  return branch.getResult(0);
}

Value TileEmitter::loadPiece(const Rows &from, Value row, Value column) {
  Value exists = less(add(from.first, row), constant(from.end));
  Value place = add(mul(row, constant(from.stride)), column);
  if (!from.aligned) {
    Values elements;
    for (int64_t i = 0; i < width; ++i)
      elements.push_back(
          loadOne(at(from.pointer, from.element, add(place, constant(i))), from.element,
                  both(exists, less(add(column, constant(i)), constant(from.valid)))));
    return vector::FromElementsOp::create(b, loc, VectorType::get({width}, b.getF32Type()),
                                          elements);
  }
  auto type = VectorType::get({width}, from.element);
  Value inside = both(exists, less(column, constant(from.valid)));
  auto branch = scf::IfOp::create(b, loc, TypeRange{type.clone(Type(b.getF32Type()))}, inside,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  Value loaded = LLVM::LoadOp::create(b, loc, type, at(from.pointer, from.element, place),
                                      bytesOf(type));
  scf::YieldOp::create(b, loc, extend(b, loc, loaded));
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, loc, splat(number(0)));
  return branch.getResult(0);
}

Value TileEmitter::loadShared(const Tile &tile, Value row, Value column) {
  Value place = add(mul(row, constant(tile.stride())), column);
  auto type = VectorType::get({width}, b.getF32Type());
  return LLVM::LoadOp::create(b, loc, type, at(tile.base, b.getF32Type(), place), bytesOf(type));
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

void TileEmitter::load(const Tile &tile, const Rows &from) {
  int64_t perRow = tile.columns / width;
  loop(constant(0), constant(tile.rows * perRow / threads), {}, [&](Value step, ValueRange) {
    Value index = add(mul(step, constant(threads)), thread);
    Value row = divide(index, perRow), column = mul(remainder(index, perRow), constant(width));
    Value place = add(mul(row, constant(tile.stride())), column);
    Value piece = loadPiece(from, row, column);
    LLVM::StoreOp::create(b, loc, piece, at(tile.base, b.getF32Type(), place),
                          bytesOf(piece.getType()));
    return Values();
  });
}

TileEmitter::Values TileEmitter::product(const Tile &x, const Tile &y) {
  int64_t rows = x.rows / rowThreads, columns = y.rows / columnThreads;
  Values start(rows * columns, number(0));
  return loop(constant(0), constant(x.columns / width), start, [&](Value step, ValueRange in) {
    Value depth = mul(step, constant(width));
    Values xs, ys, sums(in);
    for (int64_t r = 0; r < rows; ++r)
      xs.push_back(loadShared(x, rowOf(r), depth));
    for (int64_t c = 0; c < columns; ++c)
      ys.push_back(loadShared(y, columnOf(c), depth));
    for (int64_t i = 0; i < width; ++i)
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c) {
          Value &sum = sums[r * columns + c];
          sum = fma(element(xs[r], i), element(ys[c], i), sum);
        }
    return sums;
  });
}

void TileEmitter::store(const Tile &tile, ValueRange values) {
  int64_t columns = tile.columns / columnThreads;
  for (auto [i, value] : llvm::enumerate(values)) {
    Value place = add(mul(rowOf(i / columns), constant(tile.stride())), columnOf(i % columns));
    LLVM::StoreOp::create(b, loc, value, at(tile.base, b.getF32Type(), place), bytesOf(value.getType()));
  }
}

TileEmitter::Values TileEmitter::accumulate(const Tile &x, const Tile &y, ValueRange sums) {
  int64_t rows = x.rows / rowThreads, pieces = piecesOf(y.columns);
  return loop(constant(0), constant(x.columns / width), sums, [&](Value step, ValueRange in) {
    Value depth = mul(step, constant(width));
    Values xs, next(in);
    for (int64_t r = 0; r < rows; ++r)
      xs.push_back(loadShared(x, rowOf(r), depth));
    for (int64_t i = 0; i < width; ++i)
      for (int64_t p = 0; p < pieces; ++p) {
        Value piece = loadShared(y, add(depth, constant(i)), pieceOf(p));
        for (int64_t r = 0; r < rows; ++r) {
          Value &sum = next[r * pieces + p];
          sum = fma(splat(element(xs[r], i)), piece, sum);
        }
      }
    return next;
  });
}

void TileEmitter::write(const Rows &to, ValueRange sums, ValueRange factors) {
  int64_t pieces = int64_t(sums.size() / factors.size());
  auto round = [&](Value value) -> Value {
    if (to.element.isF32())
      return value;
    Type type = to.element;
    if (auto vector = dyn_cast<VectorType>(value.getType()))
      type = vector.clone(type);
    return arith::TruncFOp::create(b, loc, type, value);
  };
  for (int64_t r = 0; r < int64_t(factors.size()); ++r)
    guarded(less(add(to.first, rowOf(r)), constant(to.end)), [&] {
      for (int64_t p = 0; p < pieces; ++p) {
        Value value = round(mul(sums[r * pieces + p], splat(factors[r])));
        Value column = pieceOf(p), place = add(mul(rowOf(r), constant(to.stride)), column);
        if (to.aligned) {
          guarded(less(column, constant(to.valid)), [&] {
            LLVM::StoreOp::create(b, loc, value, at(to.pointer, to.element, place),
                                  bytesOf(value.getType()));
          });
          continue;
        }
        for (int64_t i = 0; i < width; ++i)
          guarded(less(add(column, constant(i)), constant(to.valid)), [&] {
            LLVM::StoreOp::create(b, loc, element(value, i),
                                  at(to.pointer, to.element, add(place, constant(i))),
                                  bytesOf(to.element));
          });
      }
    });
}
