//===- ProductTiles.h - a tile of a product in a block of threads -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A block computes [rows, columns] numbers of a product A B. It walks the indices that are summed
// over, `depth` at a time: of both factors a part is copied to shared memory, and all threads
// multiply the parts. A factor lies in memory in either order, and any of its rows there may be
// left out. Kernels written on this interface run on tensor cores (MmaProductTiles.cpp) and on
// cores for arithmetic (FmaProductTiles.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_CUDA_PRODUCTTILES_H
#define MESHWRIGHT_CODEGEN_CUDA_PRODUCTTILES_H

#include "Codegen/CUDA/BlockEmitter.h"
#include "Codegen/CUDA/Tiles.h"

#include <functional>

namespace meshwright::codegen::cuda {

/// A part of a factor in memory. Its rows there are those of the tile, or for B its columns; or,
/// where the factor is `depthFirst`, the indices that are summed over.
struct FactorPart {
  mlir::Value pointer; ///< of the tensor
  int64_t stride;      ///< elements between rows in memory
  mlir::Value row;     ///< of the tensor that the part begins with
  mlir::Value column;  ///< and element of that row
  int64_t width;       ///< elements that a row has
  /// Whether a row, counted from the part's first one, is there; others are zeros.
  std::function<mlir::Value(mlir::Value row)> exists;
};

class ProductTiles {
public:
  /// Indices that are summed over in one turn.
  static constexpr int64_t depth = 32;
  enum Factor { A, B };
  using Fetch = llvm::function_ref<void(mlir::Value step)>;

  virtual ~ProductTiles() = default;
  virtual TileSizes sizes() const = 0;
  /// Begins a function.
  virtual void start(bool depthFirstA, bool depthFirstB) = 0;
  /// Begins to copy a part; called by `fetch`.
  virtual void load(Factor factor, const FactorPart &from) = 0;
  /// The sums of `steps` turns, each of which finds what `fetch` loads. Afterwards shared memory
  /// is free again.
  virtual Values walk(mlir::Value steps, Fetch fetch) = 0;

  //===--- what a thread has of the results ---------------------------------===//
  int64_t rows, pieces; ///< rows, and of each pieces of so many columns
  int64_t width;
  virtual mlir::Value rowOf(int64_t r) = 0;
  virtual mlir::Value columnOf(int64_t piece) = 0; ///< the first
  /// A vector of f32.
  virtual mlir::Value piece(mlir::ValueRange sums, int64_t r, int64_t piece) = 0;
};

/// f32, bf16 or f16, multiplied as f32.
std::unique_ptr<ProductTiles> createFmaProductTiles(BlockEmitter &emitter, mlir::Type element);
/// bf16 or f16 in rows that begin at multiples of 16 bytes.
std::unique_ptr<ProductTiles> createMmaProductTiles(BlockEmitter &emitter, mlir::Type element);

} // namespace meshwright::codegen::cuda

#endif // MESHWRIGHT_CODEGEN_CUDA_PRODUCTTILES_H
