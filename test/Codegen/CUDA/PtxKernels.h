//===- PtxKernels.h - runs the PTX of kernels without a GPU -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TEST_CODEGEN_CUDA_PTXKERNELS_H
#define MESHWRIGHT_TEST_CODEGEN_CUDA_PTXKERNELS_H

#include "mlir/IR/BuiltinOps.h"

#include <map>
#include <memory>
#include <string>

namespace ptx {
class Module;
} // namespace ptx

namespace meshwright::test {

/// The functions of a gpu.module, as the compiler writes them.
class PtxKernels {
public:
  explicit PtxKernels(mlir::ModuleOp kernels);
  /// Those that the compiler makes of a program of floor 3, given as text; null if it makes none.
  static std::unique_ptr<PtxKernels> ofProgram(llvm::StringRef text);
  ~PtxKernels();
  bool has(llvm::StringRef name) const { return launches.count(name.str()); }
  std::vector<std::string> getNames() const {
    auto names = llvm::make_first_range(launches);
    return {names.begin(), names.end()};
  }
  const std::string &getText() const { return text; }

private:
  friend class PtxRun;
  struct Launch {
    int blocks, threads;
    int64_t sharedBytes;
  };
  std::map<std::string, Launch> launches;
  std::string text, error;
  std::unique_ptr<ptx::Module> module;
};

/// Runs kernels on the machine for PTX, with a judge, on copies of tensors that lie far from
/// each other: what reaches beyond one ends in none.
class PtxRun {
public:
  explicit PtxRun(const PtxKernels &kernels);
  ~PtxRun();

  /// A tensor that kernels may touch; its number.
  unsigned add(void *data, int64_t bytes, bool isWritten);
  /// Runs a kernel on these tensors, and whole numbers after them. What is wrong, or nothing.
  std::string launch(llvm::StringRef name, llvm::ArrayRef<unsigned> tensors,
                     llvm::ArrayRef<int64_t> numbers = {});

private:
  struct Memory;
  const PtxKernels &kernels;
  std::unique_ptr<Memory> memory;
};

} // namespace meshwright::test

#endif // MESHWRIGHT_TEST_CODEGEN_CUDA_PTXKERNELS_H
