//===- Frontend.h - model descriptions to floor 1 ----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_FRONTEND_H
#define MESHWRIGHT_FRONTEND_H

#include "meshwright/OptionValues.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <optional>

namespace meshwright {

/// The task of encoders: to predict tokens that are masked.
struct MaskedTokens {
  double share;  ///< of all tokens
  int64_t token; ///< what most of them are replaced by; below 0: not said
};

/// The choices that a model's configuration leaves open.
struct ModelOptions {
  int64_t batch = 1;             ///< sequences of an optimizer step, over all ranks
  int64_t sequence = 0;          ///< tokens of a sequence; 0: its positions, at most 1024
  /// Tokens of a source sequence, which an encoder reads; 0: as many as of a target.
  int64_t sourceSequence = 0;
  int64_t tokens = 0;            ///< of a sequence that the program reads at once; 0: all
  int64_t microbatches = 1;      ///< parts the batch is computed in, one after the other
  bool batchRamp = false;        ///< whether a step may have fewer of these parts
  int64_t expertBlocks = 1;      ///< parts that the experts of a layer are divided into
  /// Tokens of a sequence that an expert takes, as a multiple of what balanced routers send it.
  std::optional<double> expertCapacity = {};
  /// Rows that the buffers between two parts hold, as a multiple of what balanced routers send.
  double expertBuffer = 1.25;
  /// In how many parts rows are sent there and computed with, one beside the other; at least 1.
  int64_t expertParts = 1;
  int64_t redundantExperts = 0; ///< slots of a layer for copies of experts, equally many on each device
  int64_t layers = 0;            ///< replaces the configuration's number of layers; 0: it does not
  /// Replaces the configuration's hidden size, and in proportion how many heads there are and the inner
  /// sizes of MLPs; 0: it does not.
  int64_t width = 0;
  std::string mupBase; ///< the config.json of the base model of muP; empty: standard parametrization
  std::optional<double> dropout; ///< replaces every probability of the configuration
  AuxLoss auxLoss = AuxLoss::config;
  std::optional<double> auxLossFactor; ///< replaces the configuration's
  AuxScope auxScope = AuxScope::batch;
  bool auxCountingPass = false; ///< whether choices of all microbatches are counted beforehand
  std::optional<double> zLoss;          ///< how much of the routers' z-loss is in the loss
  std::optional<double> routerBiasRate; ///< by which a step balances choices of experts
  MixedPrecision precision = MixedPrecision::f32; ///< that the module will be given
  std::optional<MaskedTokens> masked = {};
  /// Of direct preference optimization: how much a reward weighs the log-probability's distance from the
  /// reference's. Sequences are pairs then, in place of which all tokens' cross-entropy is the loss.
  std::optional<double> dpoBeta = {};
  bool packed = false; ///< whether sequences hold several documents
  int64_t contextParts = 1; ///< parts of a sequence, whose tokens may go to experts apart
  /// Parts that sequences are divided into anywhere. If these are uneven, sequences are padded, and
  /// go to experts whole.
  int64_t sequenceParts = 1;
};

/// The training graph of the Hugging Face configuration in the file `path`: a
/// module with the model's variables, `@loss` and the layer function(s) it
/// repeats, as docs/models.md describes. Whatever cannot be read, understood or
/// divided is an error diagnostic that names file, key, value and a way out.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
importHuggingFace(llvm::StringRef path, const ModelOptions &options, mlir::MLIRContext &context);

/// Makes MLIR's parser of this context read StableHLO as JAX prints it.
void registerStableHLO(mlir::MLIRContext &context);
/// Whether the module is StableHLO.
bool isStableHLO(mlir::ModuleOp module);
/// The training graph of a loss function that JAX exports, the function `@main` of `source`, which was read
/// from the file `path`: docs/jax.md describes it. Of `options` it takes microbatches; sizes are the text's.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
importStableHLO(mlir::ModuleOp source, llvm::StringRef path, const ModelOptions &options);

/// A configuration with widths of a model that trains in seconds.
struct Miniature {
  std::string config; ///< JSON
  int64_t layers = 0, positions = 0, hidden = 0, fullHidden = 0;
};

/// Makes the configuration in the file `path` small. Numbers of heads, experts and layers stay; other sizes keep their
/// remainders by `multiple`, so that what a mesh divides or pads it still does. A small model stays as it is.
mlir::FailureOr<Miniature> makeMiniature(llvm::StringRef path, int64_t multiple, mlir::MLIRContext &context);

/// How many first layers of the model in the file `path` are of all kinds that it has, and how long sequences of at
/// least `sequence` tokens are to be for all of a layer to be computed.
struct LeastParts {
  int64_t layers = 0, sequence = 0;
};
mlir::FailureOr<LeastParts> leastParts(llvm::StringRef path, int64_t sequence, mlir::MLIRContext &context);

/// Writes which families are understood, and of each which keys with which values where they are
/// absent.
void describeFamilies(llvm::raw_ostream &os);

} // namespace meshwright

#endif // MESHWRIGHT_FRONTEND_H
