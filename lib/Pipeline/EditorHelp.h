//===- EditorHelp.h - what editors show beside MLIR's own -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_PIPELINE_EDITORHELP_H
#define MESHWRIGHT_LIB_PIPELINE_EDITORHELP_H

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/JSON.h"

#include <optional>
#include <string>

namespace meshwright {

/// A place in a document, as editors count.
struct EditorPosition {
  unsigned line, character;
};

/// Markdown about what is at `position`: of an op its documentation, of a value its type in words; empty
/// where there is neither, or where the document cannot be read.
std::string hoverText(llvm::StringRef document, EditorPosition position, mlir::MLIRContext &context);

/// Items for the attributes that an op at `position` may have; nothing outside of attributes.
std::optional<llvm::json::Array> completeAttributes(llvm::StringRef document, EditorPosition position,
                                                    mlir::MLIRContext &context);

/// The documentation of an op, as docs/ops-*.md has it; empty for ops of other dialects.
llvm::StringRef documentationOf(llvm::StringRef op);

/// The pages docs/ops-*.md.
llvm::ArrayRef<llvm::StringRef> opPages();

} // namespace meshwright

#endif // MESHWRIGHT_LIB_PIPELINE_EDITORHELP_H
