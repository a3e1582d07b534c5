//===- ModuleText.h - IR as people read and write it --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_PIPELINE_MODULETEXT_H
#define MESHWRIGHT_PIPELINE_MODULETEXT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/MemoryBuffer.h"

namespace meshwright {

/// Prints IR whose values are called after the parts of the model that they are of: a
/// location with a name is the name. Lines have 160 columns at most where no string is longer, and
/// the model's configuration is at the end.
void printModule(mlir::Operation *op, llvm::raw_ostream &os, bool elideLargeConstants = false);

/// Reads IR and gives values the names they have in the file, so that they keep them through
/// all passes and printing again gives the same text. Null, after a diagnostic, if it is wrong.
mlir::OwningOpRef<mlir::ModuleOp> readModule(llvm::StringRef path, mlir::MLIRContext &context);
/// The same of a text, whose name begins messages.
mlir::OwningOpRef<mlir::ModuleOp> parseModule(std::unique_ptr<llvm::MemoryBuffer> text,
                                              mlir::MLIRContext &context);

} // namespace meshwright

#endif // MESHWRIGHT_PIPELINE_MODULETEXT_H
