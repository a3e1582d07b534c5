//===- KernelRows.h - the kinds of kernels in a step --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_COST_KERNELROWS_H
#define MESHWRIGHT_COST_KERNELROWS_H

#include "meshwright/Cost/Flops.h"
#include "meshwright/Cost/MovedBytes.h"

#include "llvm/ADT/DenseMap.h"

#include <string>
#include <vector>

namespace meshwright::cost {

/// Launches, products, calls of attention or copies of a step that do the same work.
struct KernelRow {
  std::string op;   ///< its name in traces
  std::string kind; ///< a generated kernel's templates, or a product's sizes
  MovedBytes moved; ///< by one run
  double flops = 0; ///< of one run
  double times = 0; ///< runs in a step
};

/// The kinds of kernels in the step of one program. Plans list them, and spans of traces have the
/// numbers of their rows, so both ask here.
class KernelRows {
public:
  /// `program` is a module in the memory form; without an entry point `step` there are no rows.
  KernelRows(mlir::ModuleOp program, FlopCounter &flops);

  llvm::ArrayRef<KernelRow> list() const { return rows; }
  /// The row that `op` is counted in; -1 for ops that a step does not run and those that move nothing.
  int64_t numberOf(mlir::Operation *op) const {
    auto found = numbers.find(op);
    return found == numbers.end() ? -1 : found->second;
  }

private:
  std::vector<KernelRow> rows;
  llvm::DenseMap<mlir::Operation *, int64_t> numbers;
};

} // namespace meshwright::cost

#endif // MESHWRIGHT_COST_KERNELROWS_H
