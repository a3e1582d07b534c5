//===- Flops.h - floating-point operations of a program ---------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_REPORT_FLOPS_H
#define MESHWRIGHT_LIB_REPORT_FLOPS_H

#include "Exec/Exec.h"

namespace meshwright::report {

/// Counts what one rank does in ops of the memory form, with loops as often as they run
/// and calls as what they call.
class FlopCounter {
public:
  /// `again`: only what has run before.
  double of(mlir::Operation *op, bool again = false);
  double of(mlir::Block &block, bool again = false);

private:
  mlir::SymbolTableCollection symbols;
  /// By whether only what runs again is counted.
  llvm::DenseMap<mlir::Operation *, double> callees[2];
};

} // namespace meshwright::report

#endif // MESHWRIGHT_LIB_REPORT_FLOPS_H
