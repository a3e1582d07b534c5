//===- BlockEmitter.h - kernels of a block of threads at a time -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// What emitters of kernels by hand write with: arithmetic in a word, a function with its
// shared memory, memory of tensors. Integers are 64 bits wide, numbers f32.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_CUDA_BLOCKEMITTER_H
#define MESHWRIGHT_CODEGEN_CUDA_BLOCKEMITTER_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace meshwright::codegen::cuda {

using Values = llvm::SmallVector<mlir::Value>;

/// Rows of a tensor in memory, of which `valid` columns exist.
struct Rows {
  mlir::Value pointer; ///< of the first row's first element
  mlir::Type element;
  int64_t stride; ///< from row to row, in elements
  int64_t valid;
  bool aligned;      ///< whether rows begin at multiples of 16 bytes, or of four elements
  mlir::Value first; ///< number of the first row, ...
  int64_t end;       ///< and of the row after the last one that exists
};

class BlockEmitter {
public:
  static constexpr int64_t threads = 128, warpSize = 32, warps = threads / warpSize;
  /// Shared memory that every GPU from sm_80 on gives a block: 99 KiB on sm_86, sm_89 and
  /// sm_120, more on the others.
  static constexpr int64_t mostShared = 99 * 1024;

  BlockEmitter(mlir::gpu::GPUModuleOp module, mlir::Location loc)
      : b(module.getContext()), loc(loc), module(module) {}

  //===--- functions --------------------------------------------------------===//
  /// Begins a kernel of `blocks` blocks that takes `operands` addresses.
  mlir::gpu::GPUFuncOp begin(mlir::StringRef name, unsigned operands, int64_t blocks);
  /// Shared memory of `bytes`, a multiple of 16. All is allocated before the function ends.
  mlir::Value allocate(int64_t bytes);
  void end();

  //===--- threads ----------------------------------------------------------===//
  void barrier() { mlir::gpu::BarrierOp::create(b, loc); }
  void warpBarrier();
  /// The sum, or the largest, of the values of `count` neighbouring threads, a power of
  /// two, to all of them.
  mlir::Value sumOf(int64_t count, mlir::Value value);
  mlir::Value maxOf(int64_t count, mlir::Value value);

  //===--- memory -----------------------------------------------------------===//
  /// `pointer` + `offset` elements of `element`.
  mlir::Value at(mlir::Value pointer, mlir::Type element, mlir::Value offset);
  mlir::Value load(mlir::Value pointer, mlir::Type type);
  void store(mlir::Value value, mlir::Value pointer);
  /// One number as f32; where `exists` does not hold, zero.
  mlir::Value loadOne(mlir::Value pointer, mlir::Type element, mlir::Value exists = {});
  /// A number of an array of i32.
  mlir::Value getInt(mlir::Value array, mlir::Value index);
  void putInt(mlir::Value number, mlir::Value array, mlir::Value index);

  //===--- arithmetic -------------------------------------------------------===//
  mlir::Value constant(int64_t value);
  mlir::Value word(uint32_t value);
  mlir::Value number(double value);
  mlir::Value narrow(mlir::Value x); ///< the lower 32 bits
  mlir::Value widen(mlir::Value x);  ///< of 32 bits with a sign
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value sub(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, mlir::Value y);
  mlir::Value times(mlir::Value x, int64_t y) { return mul(x, constant(y)); }
  mlir::Value divide(mlir::Value x, int64_t y);
  mlir::Value remainder(mlir::Value x, int64_t y);
  mlir::Value smaller(mlir::Value x, mlir::Value y);
  mlir::Value larger(mlir::Value x, mlir::Value y);
  mlir::Value less(mlir::Value x, mlir::Value y);
  mlir::Value equal(mlir::Value x, mlir::Value y);
  mlir::Value differ(mlir::Value x, mlir::Value y); ///< of addresses
  mlir::Value both(mlir::Value x, mlir::Value y);   ///< null is true
  mlir::Value either(mlir::Value x, mlir::Value y); ///< null is false
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y);
  mlir::Value fma(mlir::Value x, mlir::Value y, mlir::Value z);
  mlir::Value splat(mlir::Value x, int64_t width);
  mlir::Value element(mlir::Value vector, int64_t i);
  /// f32 of a float or of a vector of floats, and back.
  mlir::Value extend(mlir::Value value);
  mlir::Value round(mlir::Value value, mlir::Type element);

  Values loop(mlir::Value low, mlir::Value high, mlir::ValueRange start,
              llvm::function_ref<Values(mlir::Value, mlir::ValueRange)> body);
  void guarded(mlir::Value condition, llvm::function_ref<void()> body);
  /// What `body` makes of `values` where the condition holds, else themselves.
  Values changed(mlir::Value condition, mlir::ValueRange values,
                 llvm::function_ref<Values()> body);

  mlir::OpBuilder b;
  mlir::Location loc;
  mlir::gpu::GPUFuncOp function;
  mlir::Value block, thread;

private:
  mlir::gpu::GPUModuleOp module;
  mlir::Value sharedBase;
  int64_t sharedBytes = 0;
};

} // namespace meshwright::codegen::cuda

#endif // MESHWRIGHT_CODEGEN_CUDA_BLOCKEMITTER_H
