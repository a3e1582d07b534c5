//===- KernelInput.h - a kernel, its plan, its arguments and results --------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TEST_CODEGEN_KERNELINPUT_H
#define MESHWRIGHT_TEST_CODEGEN_KERNELINPUT_H

#include "Reference.h"
#include "meshwright/KernelLoops.h"

#include "mlir/IR/OwningOpRef.h"

namespace meshwright::test {

/// One tensor's memory, 64-byte aligned; `data` points to its first byte, whatever the
/// type of the elements.
struct Memory {
  enum Element { F32, I32, BF16, F16, E4M3, E5M2, I8 };
  explicit Memory(int64_t elements, Element element = F32);
  Memory(const Memory &other);
  ~Memory() { std::free(data); }
  /// An element as a number; setting rounds to nearest, ties to even.
  double get(int64_t i) const;
  void set(int64_t i, double value);
  int64_t bytes() const {
    return elements * (element == E4M3 || element == E5M2 || element == I8 ? 1
                       : element == BF16 || element == F16                 ? 2
                                                                           : 4);
  }
  float *data;
  int64_t elements;
  Element element;
};

/// A kernel as every target gets it.
class KernelInput {
public:
  /// `text` is a function `@k` of train ops (decomposed here). `chunks` overrides
  /// the schedule, one number for all loop nests, if not 0.
  KernelInput(llvm::StringRef text, exec::ScheduleLimits options, int64_t chunks);

  const codegen::KernelLoops &getLoops() const { return *kernelLoops; }
  mlir::func::FuncOp getFunction() { return kernelLoops->function; }

  /// Random arguments: ids in [0, `ids`), floats around 0.
  std::vector<Memory> makeArguments(unsigned seed, int64_t ids);
  std::vector<Memory> makeResults();
  /// The reference's results for the same arguments.
  std::vector<Values> reference(const std::vector<Memory> &arguments);

protected:
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::optional<codegen::KernelLoops> kernelLoops;
};

/// Rewrites train's kernel ops in `kernel` into primitives.
void decompose(mlir::func::FuncOp kernel);

} // namespace meshwright::test

#endif // MESHWRIGHT_TEST_CODEGEN_KERNELINPUT_H
