//===- Epilogues.cpp - kernels for what follows products --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Plain kernels: one element at a time, in f32. They replace cuBLASLt's epilogues where those
// are missing or compute something else.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CUDA/Epilogues.h"
#include "Codegen/CUDA/KernelEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;

static constexpr int64_t epilogueBlocks = 512, epilogueThreads = 256;

namespace {
/// Writes a kernel with the operands that all of them have.
class KernelWriter {
public:
  KernelWriter(Location loc, gpu::GPUModuleOp target, StringRef name)
      : b(OpBuilder::atBlockEnd(target.getBody())), loc(loc),
        ptr(LLVM::LLVMPointerType::get(b.getContext(), cuda::globalSpace)) {
    Type number = b.getI64Type();
    function = gpu::GPUFuncOp::create(
        b, loc, name, b.getFunctionType({ptr, ptr, number, number, number}, {}), TypeRange(),
        TypeRange(), {b.getNamedAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr())});
    function.setKnownBlockSizeAttr(b.getDenseI32ArrayAttr({int32_t(epilogueThreads), 1, 1}));
    function.setKnownGridSizeAttr(b.getDenseI32ArrayAttr({int32_t(epilogueBlocks), 1, 1}));
    b.setInsertionPointToStart(&function.getBody().front());
    block = id(gpu::BlockIdOp::create(b, loc, gpu::Dimension::x));
    thread = id(gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x));
  }
  ~KernelWriter() {
    b.setInsertionPointToEnd(&function.getBody().front());
    gpu::ReturnOp::create(b, loc);
  }

  Value matrix() { return function.getArgument(0); }
  Value beside() { return function.getArgument(1); }
  Value rows() { return function.getArgument(2); }
  Value columns() { return function.getArgument(3); }
  Value distance() { return function.getArgument(4); }

  Value integer(int64_t value) { return arith::ConstantIntOp::create(b, loc, value, 64); }
  Value number(double value) {
    return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(float(value)));
  }
  Value add(Value x, Value y) {
    return x.getType().isF32() ? Value(arith::AddFOp::create(b, loc, x, y))
                               : Value(arith::AddIOp::create(b, loc, x, y));
  }
  Value multiply(Value x, Value y) {
    return x.getType().isF32() ? Value(arith::MulFOp::create(b, loc, x, y))
                               : Value(arith::MulIOp::create(b, loc, x, y));
  }

  /// An element, as f32.
  Value load(Type type, Value base, Value index) {
    Value value = LLVM::LoadOp::create(b, loc, type, at(type, base, index), bytes(type));
    return type.isF32() ? value : Value(arith::ExtFOp::create(b, loc, b.getF32Type(), value));
  }
  void store(Type type, Value value, Value base, Value index) {
    if (!type.isF32())
      value = arith::TruncFOp::create(b, loc, type, value);
    LLVM::StoreOp::create(b, loc, value, at(type, base, index), bytes(type));
  }

  /// Calls `body(i)` for i = from, from + step .. below `to`.
  template <typename Body> void loop(Value from, Value to, int64_t step, Body body) {
    auto loop = scf::ForOp::create(b, loc, from, to, integer(step));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    body(loop.getInductionVar());
  }

  /// s = 1 / (1 + exp(-2 sqrt(2/pi) (x + 0.044715 x^3))), by which gelu is x s.
  Value sigmoid(Value x) {
    Value cube = multiply(x, multiply(x, x));
    Value inner = multiply(number(-twiceRoot), add(x, multiply(number(cubic), cube)));
    return arith::DivFOp::create(b, loc, number(1),
                                 add(number(1), math::ExpOp::create(b, loc, inner)));
  }
  Value gelu(Value x) { return multiply(x, sigmoid(x)); }
  /// s + x s (1 - s) 2 sqrt(2/pi) (1 + 3 * 0.044715 x^2)
  Value slope(Value x) {
    Value s = sigmoid(x), rest = arith::SubFOp::create(b, loc, number(1), s);
    Value inner = add(number(1), multiply(number(3 * cubic), multiply(x, x)));
    return add(s, multiply(multiply(x, multiply(s, rest)), multiply(number(twiceRoot), inner)));
  }

  OpBuilder b;
  Location loc;
  Value block, thread;

private:
  static constexpr double twiceRoot = 1.5957691216057308, cubic = 0.044715;
  static unsigned bytes(Type type) { return type.getIntOrFloatBitWidth() / 8; }
  Value id(Value index) { return arith::IndexCastOp::create(b, loc, b.getI64Type(), index); }
  Value at(Type type, Value base, Value index) {
    return LLVM::GEPOp::create(b, loc, ptr, type, base, ValueRange{index});
  }
  LLVM::LLVMPointerType ptr;
  gpu::GPUFuncOp function;
};

using Element = llvm::function_ref<void(KernelWriter &, Value index, Value column)>;
} // namespace

/// `body` for each element of the matrix: its index there, and its column.
static void addOverMatrix(exec::MatmulOp op, gpu::GPUModuleOp target, StringRef what, Type type,
                          Element body) {
  std::string name = llvm::formatv("epilogue${0}${1}", what, type);
  if (target.lookupSymbol(name))
    return;
  KernelWriter w(op.getLoc(), target, name);
  w.loop(w.block, w.rows(), epilogueBlocks, [&](Value row) {
    Value begin = w.multiply(row, w.distance());
    w.loop(w.thread, w.columns(), epilogueThreads,
           [&](Value column) { body(w, w.add(begin, column), column); });
  });
}

/// The sums of the matrix's columns, whose elements are of another type perhaps.
static void addSums(exec::MatmulOp op, gpu::GPUModuleOp target, Type from, Type to) {
  std::string name = llvm::formatv("epilogue$sums${0}${1}", from, to);
  if (target.lookupSymbol(name))
    return;
  KernelWriter w(op.getLoc(), target, name);
  Value first = w.add(w.multiply(w.block, w.integer(epilogueThreads)), w.thread);
  w.loop(first, w.columns(), epilogueBlocks * epilogueThreads, [&](Value column) {
    auto sum = scf::ForOp::create(w.b, w.loc, w.integer(0), w.rows(), w.integer(1),
                                  ValueRange{w.number(0)});
    {
      OpBuilder::InsertionGuard guard(w.b);
      w.b.setInsertionPointToStart(sum.getBody());
      Value index = w.add(w.multiply(sum.getInductionVar(), w.distance()), column);
      Value more = w.add(sum.getRegionIterArg(0), w.load(from, w.matrix(), index));
      scf::YieldOp::create(w.b, w.loc, more);
    }
    w.store(to, sum.getResult(0), w.beside(), column);
  });
}

void cuda::addEpilogueKernels(exec::MatmulOp op, gpu::GPUModuleOp target) {
  Type type = getElementTypeOrSelf(op.getC().getType());
  auto combine = [&](StringRef what, auto value) {
    addOverMatrix(op, target, what, type, [&](KernelWriter &w, Value index, Value column) {
      w.store(type, value(w, w.load(type, w.matrix(), index), index, column), w.matrix(), index);
    });
  };
  // With another epilogue, what is added may be all that cuBLASLt gets wrong.
  if (op.getAddend() || !op.getBeta().isZero())
    combine("addend", [&](KernelWriter &w, Value x, Value index, Value) {
      return w.add(x, w.load(type, w.beside(), index));
    });
  if (op.getBias())
    combine("bias", [&](KernelWriter &w, Value x, Value, Value column) {
      return w.add(x, w.load(type, w.beside(), column));
    });
  if (op.getGelu() && op.getPreactivation())
    combine("gelu_kept", [&](KernelWriter &w, Value x, Value index, Value) {
      w.store(type, x, w.beside(), index);
      return w.gelu(x);
    });
  else if (op.getGelu())
    combine("gelu", [&](KernelWriter &w, Value x, Value, Value) { return w.gelu(x); });
  if (op.getSlopeAt())
    combine("gelu_grad", [&](KernelWriter &w, Value x, Value index, Value) {
      return w.multiply(x, w.slope(w.load(type, w.beside(), index)));
    });
  if (op.getSumA() || op.getSumB())
    addSums(op, target, getElementTypeOrSelf(op.getA().getType()), type);
}
