//===- DeviceMemory.h - what a GPU holds beside the arena -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_REPORT_DEVICEMEMORY_H
#define MESHWRIGHT_REPORT_DEVICEMEMORY_H

#include "Codegen/Communication.h"

#include "llvm/Support/JSON.h"

namespace meshwright::report {

/// Memory of a device that is neither the arena's nor ours to place: drivers and libraries
/// take it. An allowance is what is set aside for it, not what was measured; the runtime
/// measures, and says both.
struct Allowance {
  std::string category;
  int64_t bytes = 0;
  std::string source; ///< where the number comes from
};

/// The allowances of a rank that runs `program`; none where the host computes.
std::vector<Allowance> allowancesOf(mlir::ModuleOp program,
                                    const codegen::Communication &communication);

llvm::json::Array toJson(llvm::ArrayRef<Allowance> allowances);
int64_t bytesOf(llvm::ArrayRef<Allowance> allowances);

} // namespace meshwright::report

#endif // MESHWRIGHT_REPORT_DEVICEMEMORY_H
