//===- Communication.h - what collectives say against the mesh --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_EXEC_VERIFY_COMMUNICATION_H
#define MESHWRIGHT_LIB_EXEC_VERIFY_COMMUNICATION_H

#include "Exec/Exec.h"

namespace meshwright::exec {

/// Checks the collectives, windows and offsets of all programs: that their axes are of the mesh, that
/// parts, roots, peers and permutations are those of as many ranks as differ along these, and the
/// numbers by which code and plan name them.
mlir::LogicalResult verifyCommunication(mlir::ModuleOp module);

} // namespace meshwright::exec

#endif // MESHWRIGHT_LIB_EXEC_VERIFY_COMMUNICATION_H
