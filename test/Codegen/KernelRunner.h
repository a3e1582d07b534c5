//===- KernelRunner.h - compiles a kernel and runs it in this process -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TEST_CODEGEN_KERNELRUNNER_H
#define MESHWRIGHT_TEST_CODEGEN_KERNELRUNNER_H

#include "KernelInput.h"

#include "llvm/ExecutionEngine/Orc/LLJIT.h"

namespace meshwright::test {

class KernelRunner : public KernelInput {
public:
  /// As KernelInput; `cpu` is the processor, this one if empty.
  explicit KernelRunner(llvm::StringRef text, int64_t chunks = 0, llvm::StringRef cpu = "");

  bool valid() const { return bool(jit); }
  enum Order { Forward, Backward, TwoThreads };
  /// Runs all loop nests; `operands` are arguments then results.
  void run(llvm::ArrayRef<float *> operands, Order order = Forward);
  /// Fills fresh results and returns them.
  std::vector<Memory> run(const std::vector<Memory> &arguments, Order order = Forward);

private:
  std::unique_ptr<llvm::orc::LLJIT> jit;
  using LoopNest = void (*)(void *const *, int64_t, int64_t);
  std::vector<LoopNest> nests;
  std::optional<Memory> workspace;
};

} // namespace meshwright::test

#endif // MESHWRIGHT_TEST_CODEGEN_KERNELRUNNER_H
