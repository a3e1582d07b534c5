//===- Tiles.h - products of tiles in a block of threads --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// How the threads of a block share small matrices and multiply them. A block keeps some
// rows of tensors, and walks the rows of others, a tile at a time. Products of both are
// tiles of scores, [rows, columns], and what is added up are tiles of [rows, depth]. Of
// both a thread has some rows, r = 0, 1, ..., and of each the same columns: values are
// lists with a row's columns next to each other. Where rows are in several threads, these
// are neighbours in one warp. Kernels written on this interface run on cores for arithmetic
// (FmaTiles) and on tensor cores (MmaTiles).
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_CUDA_TILES_H
#define MESHWRIGHT_CODEGEN_CUDA_TILES_H

#include "Codegen/CUDA/BlockEmitter.h"

#include <deque>
#include <optional>

namespace meshwright::codegen::cuda {

struct TileSizes {
  int64_t rows, columns;
};

/// What a kernel has at a time.
struct TileNeeds {
  int64_t length; ///< rows that there are
  int64_t scores; ///< tiles of scores
  int64_t terms;  ///< numbers of each column of scores
  /// Elements of rows of the tiles of sums, of the tensors of which a block keeps rows, and of
  /// those that it walks.
  llvm::SmallVector<int64_t, 2> sums, kept, walked;
};

/// Rows of a tensor in shared memory.
struct Tile {
  int64_t rows, depth; ///< elements of a row
  mlir::Value base;
  bool walked;            ///< or kept
  bool inRegisters = false; ///< a thread's part is to be, ...
  Values held = {};         ///< and is
};

class Tiles {
public:
  using Fetch = llvm::function_ref<void(mlir::Value step)>;
  using Body = llvm::function_ref<Values(mlir::Value step, mlir::ValueRange in)>;

  virtual ~Tiles() = default;

  /// The largest tiles whose parts fit registers and shared memory, or none.
  virtual std::optional<TileSizes> sizesFor(const TileNeeds &needs) const = 0;
  /// Begins a function that has tiles of these sizes.
  virtual void start(const TileSizes &sizes, const TileNeeds &needs) = 0;

  //===--- what a thread has ------------------------------------------------===//
  int64_t rowCount() const { return rows; }
  int64_t columnCount() const { return columns; }
  virtual mlir::Value rowOf(int64_t r) = 0;
  virtual mlir::Value columnOf(int64_t c) = 0; ///< of scores
  /// How far these are from its first ones.
  virtual int64_t rowOffset(int64_t r) const = 0;
  virtual int64_t columnOffset(int64_t c) const = 0;
  /// Whether the thread is the first of those that have its rows.
  virtual mlir::Value isFirst() = 0;
  /// Of all threads of a row, to each of them.
  virtual mlir::Value rowSum(mlir::Value value) = 0;
  virtual mlir::Value rowMax(mlir::Value value) = 0;

  //===--- tiles ------------------------------------------------------------===//
  /// Of rows of `dim` elements.
  virtual Tile &allocate(bool walked, int64_t dim) = 0;
  /// Begins to copy rows, the first at a multiple of the tile's, with zeros where the tensor ends.
  virtual void load(const Tile &tile, const Rows &from) = 0;
  /// Waits until kept tiles are there.
  virtual void settle() = 0;
  /// A loop whose turns find what `fetch` loads; settles first.
  virtual Values walk(mlir::Value low, mlir::Value high, mlir::ValueRange start, Fetch fetch,
                      Body body) = 0;

  //===--- arithmetic -------------------------------------------------------===//
  virtual Values zeros(int64_t dim) = 0; ///< sums, of rows of `dim` elements
  virtual void scale(llvm::MutableArrayRef<mlir::Value> sums, mlir::ValueRange factors) = 0;
  /// Scores x y^T of a kept tile and a walked one.
  virtual Values product(const Tile &x, const Tile &y) = 0;
  /// sums + scores y
  virtual Values accumulate(mlir::ValueRange scores, const Tile &y, mlir::ValueRange sums) = 0;
  /// Of each row the sum of x y.
  virtual Values dot(const Tile &x, const Rows &y) = 0;
  /// Adds rows of numbers in f32, each times `factors[r]`, to sums, where rows exist.
  virtual void add(const Rows &from, mlir::ValueRange factors,
                   llvm::MutableArrayRef<mlir::Value> sums) = 0;
  /// Writes sums, each row times `factors[r]`, where rows exist, in f32 or rounded.
  virtual void write(const Rows &to, mlir::ValueRange sums, mlir::ValueRange factors) = 0;
  /// exp(score * factor - shift)
  virtual mlir::Value exponential(mlir::Value score, double factor, mlir::Value shift) = 0;

protected:
  int64_t rows = 0, columns = 0;
  std::deque<Tile> tiles;
};

/// On cores for arithmetic: heads of any size as f32.
std::unique_ptr<Tiles> createFmaTiles(BlockEmitter &emitter);
/// On tensor cores: heads of 16, 32, ... 256 elements of bf16 or f16 in rows that begin at
/// multiples of 16 bytes.
std::unique_ptr<Tiles> createMmaTiles(BlockEmitter &emitter, mlir::Type element);

} // namespace meshwright::codegen::cuda

#endif // MESHWRIGHT_CODEGEN_CUDA_TILES_H
