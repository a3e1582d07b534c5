//===- LaunchShape.h - how a loop nest is spread over a GPU's threads -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// | shape   | who does what                                                          |
// |---------|------------------------------------------------------------------------|
// | points  | each thread a few vectors of columns; with sums over everything, each   |
// |         | block walks the vectors of one chunk. Adding up partial results: each   |
// |         | warp of a block adds some of them for the same 32 columns               |
// | rows    | a warp or a block a row; with sums over rows, each block walks the rows |
// |         | of one chunk and each thread keeps the sums of its columns             |
// | columns | each thread one vector of columns, walking the sequential rows in order |
// | owners  | each thread one vector of columns of the rows whose target its block    |
// |         | owns, several of which are on their way at once                        |
//
// All depends on shapes alone, so that results have the same bits on every run.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_CUDA_LAUNCHSHAPE_H
#define MESHWRIGHT_CODEGEN_CUDA_LAUNCHSHAPE_H

#include "meshwright/KernelLoops.h"

namespace meshwright::codegen::cuda {

constexpr int64_t warpSize = 32;

struct LaunchShape {
  enum Kind { Points, Rows, Columns, Owners };
  Kind kind = Points;
  /// Elements in a thread's vector.
  unsigned lanes = 1;
  int64_t blocks = 1, threads = 1;
  /// Points: vectors of a thread, all loaded before the first is used. Owners: rows of which
  /// that is so.
  int64_t vectors = 1;
  /// Points: warps that share the partial results of their columns.
  int64_t parts = 1;
  /// Rows: threads that share a row; `threads` is a multiple of it.
  int64_t group = 1;
  /// Rows: whether a thread holds all it needs of its row in registers.
  bool inRegisters = false;
  /// Rows: blocks that share the columns of a chunk.
  int64_t tiles = 1;
  /// Rows of a chunk that are loaded before the one that is computed, where threads share
  /// rows.
  int64_t rowsAhead = 1;
  /// Blocks that a multiprocessor must have registers for.
  int64_t residentBlocks = 1;
  /// Owners: among how many blocks the rows of the target are divided.
  int64_t owners = 1;
};

/// The elements of the widest vectors that the shapes of `nest` and the alignment of its
/// memory allow.
unsigned widestVector(const LoopNest &nest, const KernelLoops &kernelLoops,
                      llvm::ArrayRef<int64_t> alignment);

/// How `members` are launched together: loop nests that differ in their sizes only, or one
/// loop nest. `lanes` is the narrowest of their widest vectors.
LaunchShape launchShapeOf(llvm::ArrayRef<const LoopNest *> members, unsigned lanes);

/// Blocks of those of a launch that work on `member`.
int64_t blocksOf(const LoopNest &member, const LaunchShape &shape);

/// Pieces that `group` threads with vectors of `lanes` need to walk `columns`.
inline int64_t slotsOf(int64_t columns, int64_t group, int64_t lanes) {
  return llvm::divideCeil(columns, group * lanes);
}

} // namespace meshwright::codegen::cuda

#endif // MESHWRIGHT_CODEGEN_CUDA_LAUNCHSHAPE_H
