//===- KernelTable.h - the kernels of a step, planned and measured ------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_KERNELTABLE_H
#define MESHWRIGHT_KERNELTABLE_H

#include "meshwright/runtime/PlanSchema.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

#include <vector>

namespace meshwright::cost {
struct Device;
}

namespace meshwright {

/// The measured ceilings of a machine: bytes read and written a second, and operations of
/// matrix products a second; 0 if not given.
struct Ceilings {
  double copyRate = 0, matmulRate = 0;
  bool known() const { return copyRate > 0 && matmulRate > 0; }
};

/// What a trace says of a row of a program's kernels.
struct MeasuredKernel {
  double seconds = 0; ///< of all runs
  double runs = 0;
  double each() const { return runs > 0 ? seconds / runs : 0; }
};

/// By program and row, as the plan lists them.
using MeasuredKernels = std::vector<std::vector<MeasuredKernel>>;

/// The times of kernels in a file that `--trace` of the plan's executable wrote, on all ranks: those
/// of the GPU where it has them. Refuses the trace of another executable.
llvm::Expected<MeasuredKernels> readMeasuredKernels(llvm::StringRef path, const plan::Plan &plan);

/// What a table of kernels has beside what the plan says.
struct KernelTimes {
  Ceilings ceilings;                         ///< for the time that no implementation can beat
  const cost::Device *device = nullptr;      ///< for the time that one takes; null: none
  const MeasuredKernels *measured = nullptr; ///< null: none
};

/// Prints the bytes and operations of each kernel of a step as a table, with `times`. A row that was
/// measured faster than the ceilings allow is an error, after the table: it is not what the plan says,
/// or the ceilings are none.
llvm::Error printKernels(const plan::Plan &plan, const KernelTimes &times, llvm::raw_ostream &os);

} // namespace meshwright

#endif // MESHWRIGHT_KERNELTABLE_H
