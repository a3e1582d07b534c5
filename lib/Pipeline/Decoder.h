//===- Decoder.h - the program of an executable that generates tokens -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_PIPELINE_DECODER_H
#define MESHWRIGHT_LIB_PIPELINE_DECODER_H

#include "meshwright/Options.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace meshwright {

/// The decoder of the model that `options` name, at phase exec: one rank's program, which reads
/// `decoderTokens` at a time and keeps keys and values of `length`. An error says why there is none.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
compileDecoder(const CompileOptions &options, int64_t length, mlir::MLIRContext &context);

} // namespace meshwright

#endif // MESHWRIGHT_LIB_PIPELINE_DECODER_H
