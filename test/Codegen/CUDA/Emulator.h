//===- Emulator.h - runs GPU kernels without a GPU --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Runs the ops that lib/Codegen/CUDA emits: a grid of blocks, one after the other,
// each with its threads in lockstep. It is a judge more than a machine: it keeps
// for every two bytes of memory who touched them since when, and complains about
//   - races: two threads touch the same memory, one writes, and no barrier (or, in
//     one warp, no warp barrier) lies between them; blocks never wait for each other
//   - reads of memory that nobody wrote
//   - accesses outside of memory, or not aligned as the op says
//   - barriers that not all threads reach, shuffles and products of tensor cores that not
//     all of a warp reach
//   - memory touched that a copy beside the threads (cp.async) may still write
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TEST_CODEGEN_CUDA_EMULATOR_H
#define MESHWRIGHT_TEST_CODEGEN_CUDA_EMULATOR_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

#include <string>
#include <vector>

namespace meshwright::test {

class Emulator {
public:
  explicit Emulator(mlir::gpu::GPUModuleOp module) : module(module) {}

  /// Memory of `bytes` bytes that kernels may touch; its number.
  unsigned add(void *data, int64_t bytes, bool initialised);

  /// Runs `function` on these pieces of memory, and whole numbers after them, with its
  /// known grid and block size. False after the first kernel with complaints.
  bool launch(mlir::gpu::GPUFuncOp function, llvm::ArrayRef<unsigned> memory,
              llvm::ArrayRef<int64_t> numbers = {});

  const std::vector<std::string> &getComplaints() const { return complaints; }

private:
  friend class BlockEmulator;

  /// A thread, and how many barriers its block and its warp had passed.
  struct Access {
    int64_t thread = -1;
    uint32_t blockEpoch = 0, warpEpoch = 0;
  };
  /// Two bytes of memory. Two different readers: one of them is not the writer.
  struct Cell {
    Access writer, readers[2];
    bool initialised = false;
    bool arriving = false; ///< from a copy that was not waited for
  };
  struct Memory {
    char *data;
    int64_t bytes;
    std::string name;
    std::vector<Cell> cells;
  };
  void complain(mlir::Operation *op, const llvm::Twine &message);

  mlir::gpu::GPUModuleOp module;
  std::vector<Memory> memories;
  std::vector<std::string> complaints;
  llvm::StringMap<unsigned> constants;
  std::vector<std::vector<char>> owned;
};

} // namespace meshwright::test

#endif // MESHWRIGHT_TEST_CODEGEN_CUDA_EMULATOR_H
