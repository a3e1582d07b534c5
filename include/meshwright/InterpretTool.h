//===- Tool.h - the command line of meshwright-interpret --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_INTERPRETTOOL_H
#define MESHWRIGHT_INTERPRETTOOL_H

#include "mlir/IR/DialectRegistry.h"

namespace meshwright::interp {

/// Runs the tool with the dialects of `registry`; the exit status.
int interpretMain(int argc, char **argv, mlir::DialectRegistry &registry);

} // namespace meshwright::interp

#endif // MESHWRIGHT_INTERPRETTOOL_H
