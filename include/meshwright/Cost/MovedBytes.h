//===- MovedBytes.h - bytes that ops of the memory form move -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_COST_MOVEDBYTES_H
#define MESHWRIGHT_COST_MOVEDBYTES_H

#include "mlir/IR/Operation.h"
#include "mlir/IR/SymbolTable.h"

namespace meshwright::cost {

struct MovedBytes {
  int64_t read = 0, written = 0;
};
/// What a launch, a product, a call of attention or a copy reads and writes: each operand once,
/// but of tables and targets of rows only those.
MovedBytes movedBy(mlir::Operation *op, mlir::SymbolTableCollection &symbols);

} // namespace meshwright::cost

#endif // MESHWRIGHT_COST_MOVEDBYTES_H
