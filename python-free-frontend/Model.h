//===- Model.h - one model: a family's table and a configuration --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_FRONTEND_MODEL_H
#define MESHWRIGHT_FRONTEND_MODEL_H

#include "Family.h"
#include "Train/Attention.h"
#include "meshwright/Frontend.h"

namespace meshwright::frontend {

using ImportedModule = mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>;

/// Multi-head latent attention of one model.
struct LatentSizes {
  int64_t queryRank = 0; ///< 0: queries have no latent
  int64_t keyRank = 0, plainDim = 0, turnedDim = 0, valueDim = 0;
  bool bias = false, interleaved = false;
  int64_t indexHeads = 0, indexDim = 0; ///< of what selects keys; 0: nothing does
};

/// Angles of rotary positions.
struct RopeTable {
  llvm::SmallVector<double> frequencies; ///< of half a head; 0 turns nothing
  double scale = 1;                      ///< of cosines and sines
  int64_t turned = 0;                    ///< elements of a head that turn
  double latentScale = 1;                ///< of the scores of latent attention
};

/// Linear recurrences and short convolutions of one model.
struct RecurrenceSizes {
  int64_t heads = 0, headDim = 0, keyHeads = 0, keyDim = 0, kernel = 0, chunk = 0;
  double decayBound = 0; ///< of log decays of elements; 0: none
  int64_t rank = 0;   ///< of the product that makes steps
  double partEps = 0; ///< of the norms of B, C and what makes steps
  bool bias = false, convBias = false, outputBias = false;
  bool normed = true, normedFirst = false; ///< what is gated is normalized, before it is gated
  double gateFactor = 1;                   ///< of the gates of the delta rule
  std::string activation = {};
  double leastStep = 0, mostStep = 0; ///< both 0: steps have no bounds
  double outputStd = 0;               ///< of initial weights into the residual stream
};

/// What differs by layer.
struct LayerKind {
  AttentionMask mask; ///< window or chunk; whether it is causal is the family's to say
  int table = 0;      ///< of `Model::tables`; -1: no rotary positions
  double scoreScale = 1;
  bool sparse = false; ///< experts in place of the MLP
  bool normed = true;  ///< what attention reads
  bool indexed = false; ///< it has parameters that would select keys
  bool skipped = false; ///< text passes by it
  Mixer mixer = Mixer::Attention;
  bool feedsForward = true;                    ///< whether it has an MLP or experts
  int64_t heads = 0, headDim = 0, kvHeads = 0, inner = 0; ///< instead of the model's; 0: those
  bool valuesAreKeys = false;
  bool sinks = false; ///< scores have one more, of the family's tensor
  bool lastBias = false; ///< what attention gives has the bias that the last layer alone has
  bool matrixAttends = false, matrixFeeds = false; ///< a matrix is in place of attention, or of the MLP
  int64_t experts = 0, chosen = 0; ///< of a layer with experts, and of a token, instead of the model's; 0: those
  double limit = 0, mlpLimit = 0; ///< what experts and MLPs are bounded by; 0: nothing
  bool stores = false, reuses = false; ///< keys and values that later layers use, or that an earlier one has
  bool operator==(const LayerKind &other) const {
    return mask == other.mask && table == other.table && scoreScale == other.scoreScale &&
           sparse == other.sparse && normed == other.normed && indexed == other.indexed &&
           skipped == other.skipped && mixer == other.mixer && feedsForward == other.feedsForward &&
           heads == other.heads && headDim == other.headDim && kvHeads == other.kvHeads && inner == other.inner &&
           lastBias == other.lastBias && matrixAttends == other.matrixAttends && matrixFeeds == other.matrixFeeds &&
           experts == other.experts && chosen == other.chosen && limit == other.limit && mlpLimit == other.mlpLimit &&
           valuesAreKeys == other.valuesAreKeys && sinks == other.sinks && stores == other.stores && reuses == other.reuses;
  }
  bool operator!=(const LayerKind &other) const { return !(*this == other); }
};

/// The experts of sparse layers: where layers differ, the most that one has.
struct ExpertSizes {
  int64_t count = 0, chosen = 0, inner = 0, sharedInner = 0;
  int64_t identities = 0; ///< how many zero-computation experts, which return their input, routers may also choose
  int64_t all() const { return count + identities; }
  /// The most experts with matrices that a token may choose.
  int64_t mostRows() const { return std::min(chosen, count); }
  int64_t groups = 1, chosenGroups = 1;
  int64_t blocks = 1; ///< parts of equally many experts, for as many devices
  std::optional<double> capacity = {}; ///< tokens that an expert takes, as a multiple of its share
  double buffer = 1;  ///< rows that a round sends to a block, as a multiple of the balanced share
  int64_t parts = 1;  ///< in which the rows of a round are sent and computed with
  int64_t redundant = 0; ///< slots for copies of experts, equally many in each block
  bool normalized = true;
  double leastSum = 0; ///< of what scores are divided by for that; 0: any
  double factor = 1; ///< of the weights
  bool sigmoid = false;  ///< scores are sigmoids, not a softmax
  bool averaged = false; ///< with the MLP beside them
  bool residual = false; ///< a learned coefficient combines them with the MLP beside them
  double jitter = 0; ///< of SparseMixer's routers; 0: they are others
  GateLimits gate;   ///< of their own
  double balance = 0; ///< how much of the routers' loss of the batch is in the loss
  AuxLoss balanceKind = AuxLoss::hf; ///< hf, switch, gshard or sequence
  AuxScope scope = AuxScope::batch;  ///< whose statistics it has
  /// The factor of a layer's balance, by that of the model's sizes, which `routerLoss` multiplies the sum over layers by.
  double balanceShare = 1;
  bool counted = false; ///< whether choices of all microbatches are counted beforehand
  /// The choices of a token that its balance counts.
  double counting() const { return balanceKind == AuxLoss::gshard ? 1 : double(chosen); }
  double zLoss = 0;        ///< how much of the mean of a layer's squared log-sum-exps is in the loss
  double biasRate = 0;     ///< by which a step changes the bias of choices; 0: it is a constant
  int64_t contextParts = 1, sequenceParts = 1; ///< of a sequence, as in ModelOptions
  /// By whose position modulo so many tokens go to an expert or to a copy of it.
  int64_t residues(int64_t sequence) const {
    int64_t residues = 16, part = sequence / sequenceParts;
    while (sequence % sequenceParts ? residues > 1 : part % residues != 0)
      --residues;
    return residues;
  }
};

/// What values in a layer are multiplied by.
struct LayerMultipliers {
  double attentionInput = 1, attentionOutput = 1, mixerInput = 1, mixerOutput = 1;
  std::array<double, 5> mixer = {1, 1, 1, 1, 1}; ///< gate, x, B, C and steps
  std::array<double, 2> mlp = {1, 1};            ///< gate, output
};

/// Of the stream and of what is added to it, where the stream goes on from norms.
struct ResidualFactors {
  std::array<double, 2> attention = {1, 1}, mixer = {1, 1}, mlp = {1, 1};
};

struct Model {
  const Family &family;
  std::string base = family.base.str(); ///< what the names of tensors begin with
  int64_t vocabulary = 0, padding = -1, positions = 0, hidden = 0, layers = 0;
  int64_t listedHidden = 0; ///< the hidden size in the configuration, which ModelOptions::width may replace
  int64_t heads = 0, kvHeads = 0, headDim = 0, valueDim = 0, inner = 0, embeddingWidth = 0;
  double valueFactor = 1;
  bool gatesHeads = false, gatesElements = false; ///< each head whole, or its elements
  bool postNorms = true;                          ///< what attention and the MLP give is normalized
  GateLimits gate = {};                           ///< of MLPs
  double lambdaStd = 0;                           ///< of the vectors of differential attention
  std::vector<double> thetas = {}; ///< of layers that turn, each once, where layers have their own
  int64_t positionOffset = 0, types = 0;
  std::string activation = {}, transformActivation = {};
  double attentionDropout = 0, embeddingDropout = 0, residualDropout = 0, mlpDropout = 0,
         innerDropout = 0;
  double eps = 0, std = 0, projectionStd = 0;
  bool parallel = false, qkvBias = false, outputBias = false, mlpBias = false, headBias = false;
  bool transformBias = false;
  bool tied = false, normWeight = true, normBias = false, normFirst = true;
  HeadNorm headNorm = HeadNorm::None;
  double embeddingFactor = 1, residualFactor = 1, logitFactor = 1;
  LayerMultipliers factors = {};
  ResidualFactors residuals = {};
  double scoreCap = 0, logitCap = 0, clip = 0; ///< 0: none
  /// Queries of layers that do not turn, or of all, are scaled by so much more at each multiple of `everyPosition`.
  int64_t everyPosition = 0; ///< 0: they are not
  double temperature = 0;
  bool tempersTurned = false; ///< of all, from position `everyPosition` on, not from the one before
  LatentSizes latent = {};
  RecurrenceSizes recurrence = {};
  llvm::SmallVector<RopeTable> tables = {};
  int64_t turned = 0;                            ///< elements of a head that turn
  std::optional<int64_t> originalPositions = {}; ///< before longer ones were trained
  llvm::SmallVector<LayerKind> kinds = {};
  bool gated = true;
  int64_t inputWidth = 0, inputVocabulary = 0; ///< of what each layer adds of the token; 0: nothing
  int64_t buckets = 0, maxDistance = 0; ///< of relative positions; 0: there are none
  int64_t startToken = 0;               ///< what precedes a target
  std::shared_ptr<const Model> source = {}; ///< the encoder; null: there is none
  ExpertSizes experts = {};
  /// Those of layers of one kind.
  ExpertSizes expertsOf(const LayerKind &kind) const;
};

/// Reads all keys of `config`, which has errors afterwards if they make no model.
/// `part`: of a family's encoder, whose decoder reads the other keys.
Model readModel(Config &config, const Family &family, ModelOptions &options, bool part = false);

/// `size`, which `key` says of a model whose hidden size is `hidden`, in proportion to the hidden size
/// that the options ask for; reports one that would be no whole number.
int64_t inProportion(Config &config, StringRef key, int64_t size, int64_t hidden,
                     const ModelOptions &options);

/// Which layers see a window, whether or not it is longer than the sequence.
struct Windows {
  std::optional<int64_t> size;
  std::vector<bool> windowed; ///< by layer
};
/// The config's own lists have `listed` layers; more repeat them.
Windows readWindows(Config &config, const Family &family, int64_t listed, int64_t layers);

/// Self-attention of a layer.
train::AttentionSpec specOf(const Model &model, const LayerKind &kind);

/// The kinds of layers; reports lists that do not fit.
void readKinds(Config &config, Model &model, int64_t listed, int64_t sequence, double scoreScale,
               bool scaledByLayer);

/// Reads which layers have experts, and their sizes; reports a layer that would have some where they
/// are not supported.
void readExperts(Config &config, Model &model, int64_t listed, const ModelOptions &options);

/// Fills in the tables and how much of a head turns, after rope_theta, rope_scaling,
/// rope_parameters and what else the family has.
void readRotary(Config &config, Model &model, int64_t sequence);

/// Sizes of latent attention; reports those that do not fit.
LatentSizes readLatent(Config &config, const Model &model, int64_t sequence);

/// Scales queries by temperature from position `every` on, of which `key` speaks; reports more multiples of it in
/// a sequence than are supported.
void useTemperature(Config &config, StringRef key, Model &model, int64_t every, int64_t sequence);

/// What each layer has of attention and of an MLP, where a list says so.
void readBlocks(Config &config, Model &m, int64_t listed);

/// The number of a list's entries that are about layers that are trained: of `entries`, those of `listed` layers, behind which
/// there may be as many as `further` says; reports another number of entries.
bool fitsLayers(Config &config, const Family &family, StringRef key, size_t entries, int64_t listed);

/// Heads and MLPs of layers that differ in them.
void readMixed(Config &config, Model &model);

/// Which layers have parameters that would select keys.
void readIndexers(Config &config, Model &model, int64_t listed);

/// Reads the sizes of recurrences and which layers have them, after `readKinds` and `readExperts`; reports
/// options that they do not support.
void readRecurrence(Config &config, Model &m, int64_t listed, const ModelOptions &options);

/// How many layers the keys of recurrences list; nothing where they are absent.
std::optional<int64_t> listedLayers(Config &config, const Recurrence &keys);

/// What a recurrence reads beside a layer's input.
/// `firsts`: 1 where a document begins, else 0, [rows, sequence]; null where sequences are one.
/// `valid`: 1 for tokens and 0 for what pads a call that goes on from what calls before it have read; null where
/// sequences are read at once.
/// `begins`: as `firsts`, but also where sequences are one; for RG-LRU alone. `rates`: of the layer's heads; for lightning
/// attention alone.
struct RecurrenceInputs {
  mlir::Value firsts = {}, valid = {}, begins = {}, rates = {};
};
/// What a layer that reads h, [rows, sequence, hidden], has in place of attention.
mlir::Value buildRecurrence(class LayerGraph &g, const Model &m, const LayerKind &kind, mlir::Value h, const RecurrenceInputs &inputs);

/// Latent attention of a layer that reads h.
mlir::Value buildLatentAttention(class LayerGraph &g, const Model &m, const LayerKind &kind,
                                 mlir::Value h, mlir::Value cos, mlir::Value sin);

/// The module of a model.
ImportedModule buildModel(const Model &model, llvm::StringRef config, const ModelOptions &options,
                          mlir::MLIRContext &context);

/// How a decoder's targets begin and end when they are generated, as JSON for the runtime
/// (runtime/common/generate/Conventions.h): what generation_config.json beside the configuration in the
/// file `path` says, if there is one, or else the configuration.
mlir::FailureOr<std::string> readGeneration(Config &config, llvm::StringRef path, const Model &model);

/// Where the user gave no sequence length: the model's positions, at most 1024.
void useDefaultSequence(ModelOptions &options, int64_t positions);

/// Keys that any configuration may hold and that say nothing about training's
/// mathematics: provenance, file formats, text generation, other heads.
llvm::ArrayRef<llvm::StringRef> commonIgnoredKeys();

/// Keys that any configuration may hold with one understood value.
llvm::ArrayRef<FixedKey> commonFixedKeys();

} // namespace meshwright::frontend

#endif // MESHWRIGHT_FRONTEND_MODEL_H
