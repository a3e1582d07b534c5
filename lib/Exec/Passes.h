//===- Passes.h - the passes of floor 3 -------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_PASSES_H
#define MESHWRIGHT_LIB_EXEC_PASSES_H

#include "Exec/Exec.h"
#include "meshwright/OptionValues.h"
#include "meshwright/PhasePass.h"

namespace meshwright::exec {
#define GEN_PASS_DECL
#include "Exec/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "Exec/Passes.h.inc"

/// exec-assign-target with values of flags that are parsed already.
std::unique_ptr<mlir::Pass> createAssignTarget(llvm::StringRef target, const FlagValues &flags);
} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_PASSES_H
