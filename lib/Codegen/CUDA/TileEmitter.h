//===- TileEmitter.h - products of tiles in shared memory -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// What kernels that multiply small matrices are made of. A block has 128 threads, 16 by
// 8: thread (r, c) works on rows r, r + 16, ... of a tile of results, and on its columns
// c, c + 8, ... or, of wide ones, on the pieces of four columns c, c + 8, .... The 8
// threads of a row are neighbours in one warp, so that what is exchanged along rows needs
// no barrier of the block. Tiles lie in shared memory as f32, with zeros where tensors
// end. Rows are padded so that the accesses of a warp go to different banks.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_CUDA_TILEEMITTER_H
#define MESHWRIGHT_CODEGEN_CUDA_TILEEMITTER_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace meshwright::codegen::cuda {

class TileEmitter {
public:
  static constexpr int64_t rowThreads = 16, columnThreads = 8, threads = 128;
  /// Elements of one access.
  static constexpr int64_t width = 4;
  /// Shared memory that every GPU from sm_80 on gives a block.
  static constexpr int64_t mostShared = 96 * 1024;

protected:
  using Values = llvm::SmallVector<mlir::Value>;

  /// Rows of `columns` numbers in shared memory, from `base` on.
  struct Tile {
    int64_t rows, columns;
    mlir::Value base = {};
    int64_t stride() const { return columns + width; }
    int64_t bytes() const { return rows * stride() * int64_t(sizeof(float)); }
  };
  /// `rows` rows of a tensor in memory, of which `valid` columns exist.
  struct Rows {
    mlir::Value pointer; ///< of the first row's first element
    mlir::Type element;
    int64_t stride;      ///< from row to row, in elements
    int64_t valid;
    bool aligned;        ///< whether pieces of `width` elements are
    mlir::Value first;   ///< number of the first row, ...
    int64_t end;         ///< and of the row after the last one that exists
  };

  TileEmitter(mlir::gpu::GPUModuleOp module, mlir::Location loc)
      : module(module), b(module.getContext()), loc(loc) {}

  /// Begins a kernel of `blocks` blocks that takes `operands` addresses.
  mlir::gpu::GPUFuncOp begin(mlir::StringRef name, unsigned operands, int64_t blocks);
  /// Shared memory for the tile. All tiles are placed before the function ends.
  void place(Tile &tile);
  void end();

  //===--- tiles ------------------------------------------------------------===//
  void load(const Tile &tile, const Rows &from);
  /// sums[r * columns + c] of x y^T: rows of `x` by rows of `y`.
  Values product(const Tile &x, const Tile &y);
  /// This thread's values, as `product` has them.
  void store(const Tile &tile, mlir::ValueRange values);
  /// sums[r * pieces + p] += x y, where each sum is `width` columns of y.
  Values accumulate(const Tile &x, const Tile &y, mlir::ValueRange sums);
  /// Writes sums of `accumulate`, each row times `factors[r]`, where rows exist.
  void write(const Rows &to, mlir::ValueRange sums, mlir::ValueRange factors);
  /// Pieces of `width` columns of a row that a thread has.
  static int64_t piecesOf(int64_t columns) { return columns / (columnThreads * width); }
  /// The numbers in a tile of this thread's r-th row, c-th column, p-th piece.
  mlir::Value rowOf(int64_t r) { return add(rowThread, constant(r * rowThreads)); }
  mlir::Value columnOf(int64_t c) { return add(columnThread, constant(c * columnThreads)); }
  mlir::Value pieceOf(int64_t p) {
    return mul(add(columnThread, constant(p * columnThreads)), constant(width));
  }

  //===--- threads ----------------------------------------------------------===//
  void barrier() { mlir::gpu::BarrierOp::create(b, loc); }
  void warpBarrier();
  /// Of the threads of a row, to all of them.
  mlir::Value rowSum(mlir::Value value);
  mlir::Value rowMax(mlir::Value value);

  //===--- memory -----------------------------------------------------------===//
  /// `pointer` + `offset` elements of `element`.
  mlir::Value at(mlir::Value pointer, mlir::Type element, mlir::Value offset);
  /// One number as f32; where `exists` does not hold, zero.
  mlir::Value loadOne(mlir::Value pointer, mlir::Type element, mlir::Value exists = {});
  /// One piece of a row, as f32.
  mlir::Value loadPiece(const Rows &from, mlir::Value row, mlir::Value column);
  mlir::Value loadShared(const Tile &tile, mlir::Value row, mlir::Value column);

  //===--- arithmetic -------------------------------------------------------===//
  mlir::Value constant(int64_t value);
  mlir::Value word(uint32_t value);
  mlir::Value number(double value);
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value sub(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, mlir::Value y);
  mlir::Value divide(mlir::Value x, int64_t y);
  mlir::Value remainder(mlir::Value x, int64_t y);
  mlir::Value smaller(mlir::Value x, mlir::Value y);
  mlir::Value larger(mlir::Value x, mlir::Value y);
  mlir::Value less(mlir::Value x, mlir::Value y);
  mlir::Value equal(mlir::Value x, mlir::Value y);
  mlir::Value both(mlir::Value x, mlir::Value y); ///< null is true
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y);
  mlir::Value fma(mlir::Value x, mlir::Value y, mlir::Value z);
  mlir::Value splat(mlir::Value x);
  mlir::Value element(mlir::Value vector, int64_t i);
  Values loop(mlir::Value low, mlir::Value high, mlir::ValueRange start,
              llvm::function_ref<Values(mlir::Value, mlir::ValueRange)> body);
  void guarded(mlir::Value condition, llvm::function_ref<void()> body);

  mlir::gpu::GPUModuleOp module;
  mlir::OpBuilder b;
  mlir::Location loc;
  mlir::gpu::GPUFuncOp function;
  mlir::Value block, thread, rowThread, columnThread;

private:
  mlir::Value sharedBase;
  int64_t sharedBytes = 0;
};

} // namespace meshwright::codegen::cuda

#endif // MESHWRIGHT_CODEGEN_CUDA_TILEEMITTER_H
