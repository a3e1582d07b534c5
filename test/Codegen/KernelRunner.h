//===- KernelRunner.h - compiles a kernel and runs it in this process -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TEST_CODEGEN_KERNELRUNNER_H
#define MESHWRIGHT_TEST_CODEGEN_KERNELRUNNER_H

#include "Codegen/KernelPlan.h"
#include "Reference.h"

#include "mlir/IR/OwningOpRef.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"

namespace meshwright::test {

/// One tensor's memory, 64-byte aligned; `data` points to its first byte, whatever the
/// type of the elements.
struct Memory {
  enum Element { F32, I32, BF16, F16 };
  explicit Memory(int64_t elements, Element element = F32);
  Memory(const Memory &other);
  ~Memory() { std::free(data); }
  /// An element as a number; setting rounds to nearest, ties to even.
  double get(int64_t i) const;
  void set(int64_t i, double value);
  int64_t bytes() const { return elements * (element == BF16 || element == F16 ? 2 : 4); }
  float *data;
  int64_t elements;
  Element element;
};

class KernelRunner {
public:
  /// `body` is the text of a function `@k` of train ops (decomposed here).
  /// `chunks` overrides the schedule, one number for all stages, if not 0.
  explicit KernelRunner(llvm::StringRef text, int64_t chunks = 0, llvm::StringRef cpu = "");

  bool valid() const { return bool(jit); }
  const codegen::KernelPlan &getPlan() const { return *plan; }
  mlir::func::FuncOp getFunction() { return plan->function; }

  /// Random arguments: ids in [0, `ids`), floats around 0.
  std::vector<Memory> makeArguments(unsigned seed, int64_t ids);
  std::vector<Memory> makeResults();
  enum Order { Forward, Backward, TwoThreads };
  /// Runs all stages; `operands` are arguments then results.
  void run(llvm::ArrayRef<float *> operands, Order order = Forward);
  /// Fills fresh results and returns them.
  std::vector<Memory> run(const std::vector<Memory> &arguments, Order order = Forward);
  /// The reference's results for the same arguments.
  std::vector<Values> reference(const std::vector<Memory> &arguments);

private:
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module, planned;
  std::optional<codegen::KernelPlan> plan;
  std::unique_ptr<llvm::orc::LLJIT> jit;
  using Stage = void (*)(void *const *, int64_t, int64_t);
  std::vector<Stage> stages;
  std::optional<Memory> workspace;
};

/// Rewrites train's kernel ops in `kernel` into primitives.
void decompose(mlir::func::FuncOp kernel);

} // namespace meshwright::test

#endif // MESHWRIGHT_TEST_CODEGEN_KERNELRUNNER_H
