//===- Families.h - the model families that are understood -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_FRONTEND_FAMILIES_H
#define MESHWRIGHT_FRONTEND_FAMILIES_H

#include "Config.h"
#include "meshwright/Frontend.h"

namespace meshwright::frontend {

using ImportedModule = mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>;

/// Where the user gave no sequence length: the model's positions, at most 1024.
void useDefaultSequence(ModelOptions &options, int64_t positions);

/// The number of layers in `key`, or what the options say instead; reports more than 16
/// million of them. `listed`, if given, gets what the configuration says.
int64_t readLayers(Config &config, llvm::StringRef key, int64_t otherwise,
                   const ModelOptions &options, int64_t *listed = nullptr);

/// Reports layers in runs of equal ones, of which each has a function of its own, if there are
/// so many that their text would fill memory.
mlir::LogicalResult checkRuns(Config &config, int64_t runs, llvm::StringRef key);

ImportedModule importGPT2(Config &config, ModelOptions options, mlir::MLIRContext &context);

/// llama, mistral, qwen2 and qwen3: one shape of layer with variations.
ImportedModule importLlama(Config &config, llvm::StringRef family, ModelOptions options,
                           mlir::MLIRContext &context);

/// Keys that any configuration may hold and that say nothing about training's
/// mathematics: provenance, file formats, text generation, other heads.
llvm::ArrayRef<llvm::StringRef> commonIgnoredKeys();

/// Keys that any configuration may hold with one understood value.
llvm::ArrayRef<FixedKey> commonFixedKeys();

/// Checks what every family has in common: the sequence against the model's
/// positions (in the key `positionsKey`), and that no tensor is too large to
/// number its bytes.
mlir::LogicalResult checkSizes(Config &config, const ModelOptions &options, int64_t vocabulary,
                               int64_t widest, int64_t layers, int64_t positions,
                               llvm::StringRef positionsKey);

/// The activation in `key`; reports a name that is not known.
std::string readActivation(Config &config, llvm::StringRef key, llvm::StringRef otherwise);

} // namespace meshwright::frontend

#endif // MESHWRIGHT_FRONTEND_FAMILIES_H
