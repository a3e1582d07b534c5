//===- Annotations.h - what analyses find, as attributes --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Passes of meshwright-opt alone: each runs an analysis and writes into the IR what it finds, for
// readers and for FileCheck. No other pass reads it.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_ANNOTATIONS_H
#define MESHWRIGHT_ANNOTATIONS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace meshwright {

/// Runs one analysis and writes what it finds.
struct Annotation {
  llvm::StringLiteral argument, description;
  llvm::LogicalResult (*annotate)(mlir::ModuleOp);
};

class AnnotatePass : public mlir::PassWrapper<AnnotatePass, mlir::OperationPass<mlir::ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(AnnotatePass)

  explicit AnnotatePass(const Annotation &annotation) : annotation(annotation) {}
  llvm::StringRef getArgument() const final { return annotation.argument; }
  llvm::StringRef getDescription() const final { return annotation.description; }
  void runOnOperation() final {
    if (failed(annotation.annotate(getOperation())))
      signalPassFailure();
  }

private:
  Annotation annotation;
};

inline void registerAnnotations(llvm::ArrayRef<Annotation> annotations) {
  for (const Annotation &annotation : annotations)
    mlir::registerPass([annotation] { return std::make_unique<AnnotatePass>(annotation); });
}

void registerDistAnnotations();
void registerExecAnnotations();

} // namespace meshwright

#endif // MESHWRIGHT_ANNOTATIONS_H
