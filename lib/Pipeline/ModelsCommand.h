//===- ModelsCommand.h - meshwright models ----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_PIPELINE_MODELSCOMMAND_H
#define MESHWRIGHT_PIPELINE_MODELSCOMMAND_H

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/Error.h"

namespace meshwright {

/// `meshwright models [FILE|DIR]...`: the families, or whether configurations are understood.
llvm::Error listModels(llvm::ArrayRef<std::string> args, mlir::MLIRContext &context, llvm::raw_ostream &os);

} // namespace meshwright

#endif // MESHWRIGHT_PIPELINE_MODELSCOMMAND_H
