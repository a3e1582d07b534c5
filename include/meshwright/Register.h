//===- Register.h - dialects and passes for tools ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_REGISTER_H
#define MESHWRIGHT_REGISTER_H

#include "mlir/IR/DialectRegistry.h"

namespace meshwright {

/// Adds the dialects of the three floors, the upstream ones they build on, and
/// the interpreter's external models.
void registerDialects(mlir::DialectRegistry &registry);

/// Makes every pass and the pipeline `--meshwright-pipeline` known by name.
void registerPasses();

/// Prints the tables of attributes that ops do not declare (AttributeTable.h), a line each: name, type,
/// example, place, first and last phase, writer and meaning, with tabs between them.
void printAttributes(llvm::raw_ostream &os);

} // namespace meshwright

#endif // MESHWRIGHT_REGISTER_H
