//===- DiagnosticCollector.h - MLIR's diagnostics as one error ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_PIPELINE_DIAGNOSTICCOLLECTOR_H
#define MESHWRIGHT_PIPELINE_DIAGNOSTICCOLLECTOR_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/Error.h"

#include <string>

namespace meshwright {

/// Collects what MLIR reports while alive, so that it becomes one error.
class DiagnosticCollector {
public:
  /// Remarks are what the user asked for: they go to `remarks`.
  explicit DiagnosticCollector(mlir::MLIRContext &context, llvm::raw_ostream *remarks = nullptr)
      : handler(&context, [this, remarks](mlir::Diagnostic &diagnostic) {
          if (remarks && diagnostic.getSeverity() == mlir::DiagnosticSeverity::Remark)
            *remarks << diagnostic << "\n";
          llvm::raw_string_ostream os(text);
          if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error ||
              diagnostic.getSeverity() == mlir::DiagnosticSeverity::Note) {
            // Line 0 stands for the whole of a file, which messages name themselves.
            auto position = diagnostic.getLocation()->findInstanceOf<mlir::FileLineColLoc>();
            if (position && position.getLine())
              os << position.getFilename().getValue() << ":" << position.getLine() << ":"
                 << position.getColumn() << ": ";
            os << diagnostic << "\n";
          }
          failed |= diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error;
          return mlir::success();
        }) {}

  /// Whether there was an error; what watches passes cannot make them fail.
  bool hasErrors() const { return failed; }

  llvm::Error take(const llvm::Twine &otherwise) {
    std::string message = llvm::StringRef(text).rtrim().str();
    return llvm::createStringError(message.empty() ? otherwise.str() : message);
  }

private:
  std::string text;
  bool failed = false;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace meshwright

#endif // MESHWRIGHT_PIPELINE_DIAGNOSTICCOLLECTOR_H
