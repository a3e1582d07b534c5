//===- Decoder.cpp - the program of an executable that generates tokens -----===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Decoder.h"

#include "DiagnosticCollector.h"
#include "Train/Passes.h"
#include "Train/Train.h"
#include "meshwright/Pipeline.h"

#include "mlir/Transforms/Passes.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;

namespace meshwright {

/// Tokens that a call reads: a prompt takes fewer calls with more, and where memory bounds a
/// call, it takes no longer than with one.
static constexpr int64_t decoderTokens = 8;

Expected<OwningOpRef<ModuleOp>> compileDecoder(const CompileOptions &options, int64_t length,
                                               MLIRContext &context) {
  if (llvm::sys::path::extension(options.model) == ".mlir")
    return createStringError("it is compiled from IR, whose batch and sequence are fixed");
  if (options.expertCapacity.value)
    return createStringError("--expert-capacity drops tokens by sequences of the training length");
  CompileOptions decoder;
  decoder.model = options.model;
  decoder.target = options.target;
  decoder.targetFlags = options.targetFlags;
  decoder.layers = options.layers;
  decoder.mupBase = options.mupBase;
  decoder.batch = 1;
  decoder.sequence = length;
  decoder.sourceSequence = options.sourceSequence;
  decoder.tokensAtOnce = std::min(decoderTokens, length);
  decoder.packed = true;
  decoder.dropout.value = 0;
  decoder.overlap = Overlap::off;
  std::string notes;
  llvm::raw_string_ostream log(notes);
  Expected<OwningOpRef<ModuleOp>> module = loadModel(decoder, context, log);
  if (!module)
    return module;
  DiagnosticCollector diagnostics(context);
  PassManager manager(&context);
  if (options.lora.rank > 0) {
    Adapters adapters = options.lora;
    adapters.dropout = 0;
    manager.addPass(train::createTrainAdapt({adapters}));
    if (options.frozenWeights == FrozenWeights::int8)
      manager.addPass(train::createTrainQuantizeWeights());
  }
  manager.addPass(train::createTrainBuildDecoder({length}));
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createSymbolDCEPass());
  if (Error error = buildPipeline(manager, decoder, "dist-apply-strategy", "exec-verify"))
    return std::move(error);
  // A plan names an optimizer, of which a decoder uses nothing.
  (**module)->setAttr(train::optimizerAttr, StringAttr::get(&context, "sgd"));
  if (failed(manager.run(**module)))
    return diagnostics.take("the decoder does not compile");
  return module;
}

} // namespace meshwright
