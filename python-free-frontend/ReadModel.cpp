//===- ReadModel.cpp - a configuration read by its family's table -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Model.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::frontend;

//===--- keys of a table ----------------------------------------------------===//

static int64_t readSize(Config &config, const Key<int64_t> &key) {
  if (!key.alias.empty())
    config.alias(key.name, key.alias);
  return key.name.empty() ? key.otherwise : config.size(key.name, key.otherwise);
}

static std::optional<int64_t> readOptional(Config &config, const Key<std::optional<int64_t>> &key) {
  if (!key.alias.empty())
    config.alias(key.name, key.alias);
  return key.name.empty() ? key.otherwise : config.optionalSize(key.name, key.otherwise);
}

static std::optional<double> readOptional(Config &config, const Key<std::optional<double>> &key) {
  return key.name.empty() ? key.otherwise : config.optionalPositive(key.name, key.otherwise);
}

static bool readFlag(Config &config, const Key<bool> &key) {
  if (!key.alias.empty())
    config.alias(key.name, key.alias);
  return key.name.empty() ? key.otherwise : config.flag(key.name, key.otherwise);
}

int64_t meshwright::frontend::inProportion(Config &config, StringRef key, int64_t size, int64_t hidden,
                                           const ModelOptions &options) {
  if (!options.width || !size || config.failed())
    return size;
  int64_t product = 0;
  if (llvm::MulOverflow(size, options.width, product) || product % hidden || product == 0)
    config.error(key) << "\"" << key << "\" = " << size << " of a hidden size of " << hidden
                      << " has no whole multiple for one of " << options.width
                      << "; use widths that are multiples of " << hidden / std::gcd(size, hidden);
  return product / hidden;
}

/// 1 where there is no such key.
static double readFactor(Config &config, const Key<double> &key) {
  return key.name.empty() ? 1.0 : config.positive(key.name, key.otherwise);
}

static void readLayerFactors(Config &config, Model &m) {
  const LayerFactors &keys = m.family.factors;
  m.factors.attentionInput = readFactor(config, keys.attentionInput);
  m.factors.attentionOutput = readFactor(config, keys.attentionOutput);
  m.factors.mixerInput = readFactor(config, keys.mixerInput);
  m.factors.mixerOutput = readFactor(config, keys.mixerOutput);
  auto list = [&](StringRef key, auto &factors) {
    if (key.empty() || !config.has(key))
      return;
    std::vector<double> numbers = config.positives(key, factors.size());
    if (numbers.size() == factors.size())
      llvm::copy(numbers, factors.begin());
  };
  list(keys.mixer, m.factors.mixer);
  list(keys.mlp, m.factors.mlp);
}

static void readNormedResiduals(Config &config, Model &m) {
  const NormedResiduals &keys = m.family.normedResiduals;
  m.residuals.attention = {readFactor(config, keys.attentionStream), readFactor(config, keys.attention)};
  m.residuals.mixer = {readFactor(config, keys.mixerStream), readFactor(config, keys.mixer)};
  m.residuals.mlp = {readFactor(config, keys.mlpStream), readFactor(config, keys.mlp)};
}

static double roundedToBF16(double value) {
  llvm::APFloat number(value);
  bool loses = false;
  number.convert(llvm::APFloat::BFloat(), llvm::APFloat::rmNearestTiesToEven, &loses);
  number.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &loses);
  return number.convertToDouble();
}

static double readCap(Config &config, const Key<std::optional<double>> &key) {
  return key.name.empty() ? 0 : config.optionalPositive(key.name, key.otherwise).value_or(0);
}

static double readDropout(Config &config, const Key<double> &key, const ModelOptions &options) {
  if (key.name.empty())
    return 0;
  return options.dropout.value_or(config.probability(key.name, key.otherwise));
}

/// The number of layers; reports more than 16 million of them. `listed` gets what the
/// configuration says, also where the options say something else.
static int64_t readLayers(Config &config, const Key<int64_t> &key, const ModelOptions &options,
                          int64_t &listed) {
  constexpr int64_t most = 1 << 24;
  if (!key.alias.empty())
    config.alias(key.name, key.alias);
  listed = config.size(key.name, key.otherwise, most);
  if (options.layers <= most)
    return options.layers ? options.layers : listed;
  config.error(key.name) << options.layers << " layers are more than the " << most
                         << " that a model may have";
  return listed;
}

/// The key of layers, or a number of them that another key says by counting two attentions of each.
static Key<int64_t> keyOfLayers(Config &config, const Family &f) {
  Key<int64_t> key = f.layers;
  if (f.recurrence.any() && !config.has(key.name))
    key.otherwise = listedLayers(config, f.recurrence).value_or(key.otherwise);
  if (f.attentions.empty() || !config.has(f.attentions))
    return key;
  int64_t attentions = config.size(f.attentions, 2 * key.otherwise);
  int64_t layers = config.has(key.name) ? config.size(key.name, key.otherwise) : attentions / 2;
  if (!config.failed() && attentions != 2 * layers)
    config.error(f.attentions) << "\"" << f.attentions << "\" = " << attentions << " counts the two attentions of each layer, of which there "
                               << "are " << layers << "; write " << 2 * layers << ", or leave the key out";
  key.otherwise = std::max<int64_t>(layers, 1);
  return key;
}

static const StringRef activationNames[] = {"gelu", "gelu_new", "gelu_pytorch_tanh", "silu",
                                            "swish", "relu", "relu2"};
static const ArrayRef<StringRef> knownActivations(activationNames);

/// The activation in `key`; reports a name that is neither known nor `more`.
static std::string readActivation(Config &config, const Key<StringRef> &key,
                                  StringRef more = {}) {
  if (key.name.empty())
    return key.otherwise.str();
  if (!key.alias.empty())
    config.alias(key.name, key.alias);
  std::string name = config.text(key.name, key.otherwise);
  ArrayRef<StringRef> known = knownActivations;
  if (!llvm::is_contained(known, name) && (more.empty() || name != more))
    config.error(key.name) << "\"" << key.name << "\": activation \"" << name << "\" is not known; "
                           << llvm::join(known, ", ") << (more.empty() ? "" : ", ") << more
                           << " are";
  return name;
}

//===--- checks -------------------------------------------------------------===//

void meshwright::frontend::useDefaultSequence(ModelOptions &options, int64_t positions) {
  if (options.sequence == 0)
    options.sequence = std::min<int64_t>(positions, 1024);
}

static void checkHeads(Config &config, const Model &m, bool ownHeadDim) {
  const Family &f = m.family;
  if (!config.failed() && !ownHeadDim && !f.latent.used && m.hidden % m.heads)
    config.error(f.heads.name) << f.hidden.name << " = " << m.hidden << " cannot be divided among "
                               << f.heads.name << " = " << m.heads << " heads; change one of them"
                               << (f.headDim.name.empty() ? "" : " or give \"head_dim\"");
  if (!config.failed() && m.heads % m.kvHeads)
    config.error(f.kvHeads.name) << f.heads.name << " = " << m.heads << " cannot be divided among "
                                 << f.kvHeads.name << " = " << m.kvHeads << "; change one of them";
  if (!config.failed() && f.latent.used && m.kvHeads != m.heads)
    config.error(f.kvHeads.name) << f.kvHeads.name << " = " << m.kvHeads
                                 << ": with latent attention each head has a key of its own; use "
                                 << m.heads << ", the number of heads, or leave the key out";
  if (!config.failed() && f.qkv == QKVStorage::Shards && m.heads % 4)
    config.error(f.heads.name) << f.heads.name << " = " << m.heads << " cannot be divided among the 4 parts in which files of "
                               << f.name << " hold queries, keys and values; use a multiple of 4";
  // Each pair of a head's elements has a frequency in the text of the program.
  StringRef head = f.latent.used ? f.latent.plainDim.name : StringRef("head_dim");
  if (constexpr int64_t most = 65536; f.rotary.used && !config.failed() && m.headDim > most)
    config.error(ownHeadDim || f.latent.used ? head : f.heads.name)
        << "heads of " << m.headDim << " elements are larger than the " << most
        << " that rotary positions are made for; use more heads or a smaller \"" << head << "\"";
}

void meshwright::frontend::useTemperature(Config &config, StringRef key, Model &m, int64_t every,
                                          int64_t sequence) {
  m.everyPosition = every;
  // Each multiple is an op of the program.
  if (constexpr int64_t most = 1024; sequence / every > most)
    config.error(key) << "\"" << key << "\" = " << every << " changes the scale of "
                      << "queries " << sequence / every << " times in a sequence of " << sequence
                      << ", more than the " << most << " that are supported; use a larger one or --seq "
                      << most * every << " or less";
}

/// How queries of layers that do not turn are scaled by position.
static void readTemperature(Config &config, Model &m, int64_t sequence) {
  const Temperature &keys = m.family.temperature;
  if (keys.used.name.empty())
    return;
  bool used = config.flag(keys.used.name, keys.used.otherwise);
  int64_t every = config.size(keys.every.name, keys.every.otherwise);
  m.temperature = config.positive(keys.factor.name, keys.factor.otherwise);
  bool turns = llvm::all_of(m.kinds, [](const LayerKind &kind) { return kind.table >= 0; });
  // Up to there it is 1.
  if (!config.failed() && used && !turns && sequence >= every)
    useTemperature(config, keys.every.name, m, every, sequence);
}

/// The sequence against the model's positions, and that no tensor is too large to number its bytes.
static void checkSizes(Config &config, const Model &m, const ModelOptions &options) {
  StringRef key = m.family.positions.name;
  if (options.sequence > m.positions) {
    config.error(key) << "--seq " << options.sequence << " is longer than the " << m.positions
                      << " positions of the model (" << key << "); use --seq " << m.positions
                      << " or less";
    return;
  }
  // The largest tensors: stacked weights, the embedding, activations and logits.
  int64_t fused = m.family.qkv == QKVStorage::Apart ? 1 : 3;
  int64_t widest = std::max({m.hidden, m.inner, fused * m.heads * m.headDim, m.latent.queryRank,
                             m.latent.keyRank, m.heads * m.latent.valueDim});
  int64_t rows = options.batch / options.microbatches, elements = 0;
  // A program has some dozens of each, whose sum is to fit too.
  constexpr int64_t most = int64_t(1) << 55;
  auto overflows = [&](std::initializer_list<int64_t> sizes) {
    elements = 4;
    return llvm::any_of(sizes, [&](int64_t size) {
      return llvm::MulOverflow(elements, size, elements) || elements > most;
    });
  };
  if (overflows({m.layers, widest, widest}) || overflows({m.vocabulary, widest}) ||
      overflows({m.positions, widest}) ||
      overflows({rows, options.sequence, std::max(m.vocabulary, widest)}) ||
      overflows({m.layers, rows, options.sequence, widest}))
    config.error(key) << "the model's tensors are too large to number the bytes of all "
                         "in 64 bits; check its sizes, --batch and --seq";
}

/// Reports layers in runs of equal ones, of which each has a function of its own, if there are
/// so many that their text would fill memory.
static void checkRuns(Config &config, const Model &m) {
  constexpr int64_t most = 1024;
  int64_t runs = 1;
  for (int64_t i = 1; i < m.layers; ++i)
    runs += m.kinds[i] != m.kinds[i - 1];
  if (runs > most)
    config.error(m.family.layers.name)
        << "the layers differ from their neighbours so often that they need " << runs
        << " functions, more than the " << most
        << " that are supported; use fewer layers or make them alike";
}

//===--- the model ----------------------------------------------------------===//

/// Layers that attend to what other parts of a model give, of which there is nothing in text.
static void readSkipped(Config &config, Model &m, int64_t listed) {
  StringRef key = m.family.skippedLayers;
  auto list = config.counts(key);
  for (int64_t layer : list.value_or(std::vector<int64_t>{3, 8, 13, 18, 23, 28, 33, 38})) {
    if (list && layer >= listed)
      config.error(key) << "\"" << key << "\" lists layer " << layer << ", but " << m.family.layers.name << " is "
                        << listed;
    for (int64_t i = layer; i < m.layers; i += listed)
      m.kinds[i].skipped = true;
  }
  if (llvm::all_of(m.kinds, [](const LayerKind &kind) { return kind.skipped; }) && !config.failed())
    config.error(key) << "\"" << key << "\" lists all layers, and text skips those; leave one out";
}

/// Positions whose table begins with rows up to the padding token's number.
static void countPositions(Config &config, Model &m) {
  StringRef padding = m.family.padding.name, key = m.family.positions.name;
  if (config.failed())
    return;
  if (m.padding < 0) {
    config.error(padding) << "positions are counted from \"" << padding
                          << "\" + 1 on, so it must be a token's number";
    return;
  }
  m.positionOffset = m.padding + 1;
  m.positions -= m.positionOffset;
  if (m.positions < 1)
    config.error(key) << "\"" << key
                      << "\" counts the rows before the first position too, which are "
                      << m.positionOffset << " (\"" << padding << "\" + 1); use more than those";
}

/// Reports keys that neither the family nor all configurations have. transformers writes the latter
/// into objects inside a configuration too.
static void finish(Config &config, StringRef family, ArrayRef<StringRef> ignored,
                   ArrayRef<FixedKey> fixed) {
  // What others ignore may change what this family computes.
  auto isFixed = [&](StringRef key) {
    return llvm::any_of(fixed, [&](const FixedKey &rule) { return rule.key == key; });
  };
  SmallVector<StringRef> allIgnored(commonIgnoredKeys());
  llvm::erase_if(allIgnored, isFixed);
  llvm::append_range(allIgnored, ignored);
  SmallVector<FixedKey> allFixed(fixed);
  llvm::append_range(allFixed, commonFixedKeys());
  config.finish(family, allIgnored, allFixed);
}

/// An encoder's logarithm of distances has an end beyond those that have a bucket of their own.
static void checkBuckets(Config &config, const Model &m) {
  const RelativePositions &keys = m.family.relative;
  int64_t alone = m.family.encoder ? m.buckets / 4 : m.buckets / 2;
  if (config.failed())
    return;
  if (m.buckets < 4 || m.buckets > 65536)
    config.error(keys.buckets.name) << "\"" << keys.buckets.name << "\" must be from 4 to 65536, found "
                                    << m.buckets;
  else if (m.maxDistance <= alone || m.maxDistance > (int64_t(1) << 31) - 1)
    config.error(keys.maxDistance.name)
        << "\"" << keys.maxDistance.name << "\" must be above " << alone << ", the distances of the "
        << m.buckets << " buckets (" << keys.buckets.name << ") that have one each, found "
        << m.maxDistance;
}

/// A decoder that does not say how many layers it has has as many as its encoder.
static int64_t readDecoderLayers(Config &config, const Model &m, const ModelOptions &options,
                                 int64_t &listed) {
  Key<int64_t> key = m.family.layers;
  key.otherwise = m.source->layers;
  if (config.optionalSize(key.name, std::nullopt))
    return readLayers(config, key, options, listed);
  return listed = m.source->layers;
}

/// Gate and activation as T5's configurations say them: "relu", "gated-gelu".
static void readFeedForward(Config &config, Model &m) {
  std::string text = config.text(m.family.feedForward, m.family.gated ? "gated-gelu" : "relu");
  StringRef name = text;
  m.gated = name.consume_front("gated-");
  m.activation = m.gated && name == "gelu" ? "gelu_new" : name.str();
  if (!llvm::is_contained(knownActivations, StringRef(m.activation)))
    config.error(m.family.feedForward)
        << "\"" << m.family.feedForward << "\": \"" << text << "\" is not known; one of "
        << llvm::join(knownActivations, ", ") << " is, or \"gated-\" before one of them";
}

/// The encoder of `m`, and what a decoder has beside layers.
static void readSource(Config &config, Model &m, ModelOptions &options) {
  const Family &f = m.family;
  if (!f.source)
    return;
  m.source = std::make_shared<Model>(readModel(config, *f.source, options, /*part=*/true));
  if (StringRef key = f.targetVocabulary; !key.empty() && config.optionalSize(key).value_or(m.vocabulary) != m.vocabulary)
    config.error(key) << "\"" << key << "\" is another size than \"" << f.vocabulary.name << "\" ("
                      << m.vocabulary << "): sources and targets must have a vocabulary in common";
  m.startToken = config.token(f.startToken.name, m.vocabulary, f.startToken.otherwise);
  if (m.startToken < 0 && !config.failed())
    config.error(f.startToken.name) << "the file has no \"" << f.startToken.name
                                    << "\", the token that a decoder reads before a target's first; "
                                       "write it there";
  if (options.contextParts > 1 && !config.failed())
    config.error("") << "axis `context` of --mesh divides sequences of decoders, not of encoder-decoder "
                        "models such as "
                     << f.name << "; use data, tensor, pipe or --zero";
  if (options.sourceSequence == 0)
    options.sourceSequence = options.sequence;
  if (options.sourceSequence > m.source->positions && !config.failed())
    config.error(f.positions.name) << "--source-seq " << options.sourceSequence << " is longer than the "
                                   << m.source->positions << " positions of the encoder; use --source-seq "
                                   << m.source->positions << " or less";
}

/// Block-sparse attention sees all keys of no more blocks than are local.
static void checkBlockSparse(Config &config, const BlockSparse &keys, int64_t sequence) {
  if (keys.block.name.empty())
    return;
  int64_t block = readSize(config, keys.block), local = readSize(config, keys.local);
  const llvm::json::Value *every = config.json(keys.denseEvery.name);
  bool isDense = every && every->getAsInteger() == 1;
  if (!config.failed() && !isDense && sequence > block * local)
    config.error(keys.local.name) << "\"" << keys.local.name << "\": block-sparse attention sees all keys of " << local
                                  << " blocks of " << block << ", and some of the others of a sequence of " << sequence
                                  << ", which is not supported; use --seq " << block * local
                                  << " or less, where it sees all";
}

/// Reports keys that say something else than those that they repeat.
static void checkRepeats(Config &config, const Family &f) {
  for (auto [key, of] : f.repeats) {
    const llvm::json::Value *again = config.json(key), *value = config.json(of);
    if (again && !again->getAsNull() && value && *again != *value && !config.failed())
      config.error(key) << "\"" << key << "\" differs from \"" << of << "\", which " << f.name
                        << " needs it to repeat; write the same";
  }
}

/// Whether gates are of elements, not of heads.
static bool readElementGate(Config &config, const HeadGate &gate) {
  const llvm::json::Value *value = gate.kind.empty() ? nullptr : config.json(gate.kind);
  if (!value)
    return gate.ofElements;
  std::optional<StringRef> text = value->getAsString();
  if (!text && value->getAsBoolean() != true)
    text = "";
  if (text && *text != "per-head" && *text != "per-element")
    config.error(gate.kind) << "\"" << gate.kind << "\" must be true or \"per-head\", or \"per-element\"";
  return text && *text == "per-element";
}

/// The MLP's inner size where `size` is what it is made of.
static int64_t readAdjusted(Config &config, const AdjustedInner &keys, int64_t size) {
  bool used = !keys.used.name.empty() && readFlag(config, keys.used);
  double factor = keys.factor.name.empty() ? 1 : config.positive(keys.factor.name, keys.factor.otherwise);
  int64_t multiple = readSize(config, keys.multiple);
  if (!used || config.failed())
    return size;
  double adjusted = std::floor(factor * std::floor(2 * double(size) / 3));
  return int64_t(llvm::alignTo(uint64_t(std::clamp(adjusted, 1.0, 1e15)), uint64_t(multiple)));
}

Model meshwright::frontend::readModel(Config &config, const Family &f, ModelOptions &options,
                                      bool part) {
  Model m{f};
  m.vocabulary = readSize(config, f.vocabulary);
  m.padding = -1;
  if (!f.padding.name.empty())
    m.padding = config.token(f.padding.name, m.vocabulary, f.padding.otherwise);
  m.positions = readSize(config, f.positions);
  m.positionOffset = f.positionOffset;
  if (f.positionsAfterPadding)
    countPositions(config, m);
  useDefaultSequence(options, m.positions);
  m.hidden = m.listedHidden = readSize(config, f.hidden);
  if (options.width)
    m.hidden = options.width;
  auto proportional = [&](StringRef key, std::optional<int64_t> size) -> std::optional<int64_t> {
    return size ? std::optional(inProportion(config, key, *size, m.listedHidden, options)) : std::nullopt;
  };
  int64_t listed = 0;
  readSource(config, m, options);
  m.layers = m.source ? readDecoderLayers(config, m, options, listed)
                      : readLayers(config, keyOfLayers(config, f), options, listed);
  m.heads = *proportional(f.heads.name, readSize(config, f.heads));
  m.kvHeads = proportional(f.kvHeads.name, readOptional(config, f.kvHeads)).value_or(m.heads);
  bool ownHeadDim = f.headDim.otherwise || (!f.headDim.name.empty() && config.has(f.headDim.name));
  m.headDim = readOptional(config, f.headDim).value_or(m.hidden / m.heads);
  m.valueDim = readOptional(config, f.valueDim).value_or(m.headDim);
  m.valueFactor = readOptional(config, f.valueFactor).value_or(1);
  m.gatesHeads = !f.headGate.part.empty() && readFlag(config, f.headGate.used);
  m.gatesElements = readElementGate(config, f.headGate);
  if (f.latent.used) {
    m.latent = readLatent(config, m, options.sequence);
    m.headDim = m.latent.plainDim + m.latent.turnedDim;
  }
  m.embeddingWidth =
      proportional(f.embeddingWidth.name, readOptional(config, f.embeddingWidth)).value_or(m.hidden);
  m.inner = proportional(f.inner.name, readOptional(config, f.inner)).value_or(4 * m.hidden);
  if (!f.innerMultiple.name.empty())
    m.inner = readSize(config, f.innerMultiple) * m.hidden;
  if (f.innerIsOfBoth && m.inner % 2)
    config.error(f.inner.name) << "\"" << f.inner.name << "\" counts gate and up together, so it must be even, found "
                               << m.inner;
  if (f.innerIsOfBoth)
    m.inner /= 2;
  if (!f.adjustedInner.used.name.empty())
    m.inner = readAdjusted(config, f.adjustedInner, m.inner);
  m.gated = f.gated;
  if (f.feedForward.empty())
    m.activation = readActivation(config, f.activation, f.mayBeXielu ? xieluName : "");
  else
    readFeedForward(config, m);
  if (f.geluIsTanh && m.activation == "gelu")
    m.activation = "gelu_pytorch_tanh";
  m.attentionDropout = readDropout(config, f.attentionDropout, options);
  m.embeddingDropout = readDropout(config, f.embeddingDropout, options);
  double residual = readDropout(config, f.residualDropout, options);
  m.residualDropout = f.dropsAttention ? residual : 0;
  m.mlpDropout = f.dropsMlp ? residual : 0;
  m.innerDropout = readDropout(config, f.innerDropout, options);
  if (!f.eps.alias.empty())
    config.alias(f.eps.name, f.eps.alias);
  m.eps = f.eps.name.empty() ? f.eps.otherwise : config.positive(f.eps.name, f.eps.otherwise);
  m.std = config.positive(f.std.name, f.std.otherwise);
  m.projectionStd = f.scaledProjections ? m.std / std::sqrt(2.0 * double(m.layers)) : m.std;
  bool scaled = readFlag(config, f.scaled), scaledByLayer = readFlag(config, f.scaledByLayer);
  double scoreScale = scaled ? 1.0 / std::sqrt(double(m.headDim)) : 1.0;
  if (std::optional<double> size = readOptional(config, f.scoreScale))
    scoreScale = 1.0 / std::sqrt(*size);
  double multiplier = readFactor(config, f.scoreMultiplier);
  if (readFlag(config, f.scoreByWidth))
    scoreScale = multiplier / double(m.headDim);
  scoreScale = readOptional(config, f.scoreFactor).value_or(scoreScale);
  scoreScale *= readFactor(config, f.factors.keys);
  m.clip = readCap(config, f.clip);
  m.tied = readFlag(config, f.tied);
  m.parallel = readFlag(config, f.parallel);
  m.qkvBias = readFlag(config, f.qkvBias);
  m.outputBias = readFlag(config, f.outputBias);
  m.mlpBias = readFlag(config, f.mlpBias);
  m.headBias = readFlag(config, f.headBias);
  if (!f.typeTable.empty())
    m.types = readSize(config, f.types);
  if (!f.transform.dense.empty()) {
    m.transformActivation = readActivation(config, f.transform.activation);
    m.transformBias = readFlag(config, f.transform.bias);
  }
  bool affine = readFlag(config, f.normAffine);
  m.normWeight = f.normWeight && affine;
  m.normBias = f.normBias && affine && readFlag(config, f.useNormBias);
  m.normFirst = readFlag(config, f.normFirst);
  m.postNorms = readFlag(config, f.usePostNorms);
  m.headNorm = readFlag(config, f.useHeadNorm) ? f.headNorm : HeadNorm::None;
  m.embeddingFactor = f.embeddingScaled ? std::sqrt(double(m.hidden)) : 1.0;
  if (f.embeddingScaleIsBF16)
    m.embeddingFactor = roundedToBF16(m.embeddingFactor);
  if (!f.scaleEmbedding.name.empty() && readFlag(config, f.scaleEmbedding))
    m.embeddingFactor = std::sqrt(double(m.hidden));
  m.embeddingFactor *= readFactor(config, f.embeddingFactor);
  m.residualFactor = readFactor(config, f.residualFactor);
  if (std::optional<double> depth = readOptional(config, f.depthFactor))
    m.residualFactor *= *depth / std::sqrt(double(m.layers));
  m.logitFactor = readFactor(config, f.logitFactor) / readFactor(config, f.logitDivisor);
  readLayerFactors(config, m);
  readNormedResiduals(config, m);
  if (!f.scaledLogits.empty() && config.flag(f.scaledLogits, m.tied))
    m.logitFactor /= std::sqrt(double(m.hidden));
  if (!f.relative.table.empty()) {
    m.buckets = readSize(config, f.relative.buckets);
    m.maxDistance = readSize(config, f.relative.maxDistance);
    checkBuckets(config, m);
  }
  if (std::optional<int64_t> width = readOptional(config, f.logitWidth))
    m.logitFactor *= double(*width) / double(m.hidden);
  m.scoreCap = readCap(config, f.scoreCap);
  m.logitCap = readCap(config, f.logitCap);
  if (options.masked && !config.failed() && options.masked->token >= m.vocabulary)
    config.error(f.vocabulary.name)
        << "--mask-id " << options.masked->token << " is no token of the vocabulary ("
        << f.vocabulary.name << " = " << m.vocabulary << "); use one below";
  if (f.sinusoids.used && m.hidden % 2 && !config.failed())
    config.error(f.hidden.name) << "\"" << f.hidden.name << "\" = " << m.hidden
                                << " is odd, but positions are as many sines as cosines; use an even one";
  readKinds(config, m, listed, options.sequence, scoreScale, scaledByLayer);
  if (!f.mixed.headDim.name.empty())
    readMixed(config, m);
  if (!f.blocks.empty())
    readBlocks(config, m, listed);
  if (!f.inputs.width.name.empty()) {
    m.inputWidth = config.count(f.inputs.width.name, f.inputs.width.otherwise);
    m.inputVocabulary = config.size(f.inputs.vocabulary.name, f.inputs.vocabulary.otherwise);
    if (m.inputWidth && m.inputVocabulary < m.vocabulary && !config.failed())
      config.error(f.inputs.vocabulary.name) << "\"" << f.inputs.vocabulary.name << "\" = " << m.inputVocabulary
                                             << " is less than the vocabulary (" << m.vocabulary
                                             << "), whose tokens it has vectors for";
  }
  if (m.latent.indexHeads)
    readIndexers(config, m, listed);
  if (!f.skippedLayers.empty())
    readSkipped(config, m, listed);
  readTemperature(config, m, options.sequence);
  readExperts(config, m, listed, options);
  if (!f.rotary.denseToo.empty() && config.size(f.rotary.denseToo, 1) == 1)
    for (LayerKind &kind : m.kinds)
      kind.table = kind.sparse ? kind.table : 0;
  if (f.recurrence.any())
    readRecurrence(config, m, listed, options);
  checkHeads(config, m, ownHeadDim);
  if (f.rotary.used)
    readRotary(config, m, options.sequence);
  if (f.latent.used && f.rotary.used && !config.failed())
    for (LayerKind &kind : m.kinds)
      kind.scoreScale *= m.tables[0].latentScale;
  // A latent that is multiplied multiplies queries.
  if (f.latent.scaled && m.latent.queryRank)
    for (LayerKind &kind : m.kinds)
      kind.scoreScale *= std::sqrt(double(m.hidden) / double(m.latent.queryRank));
  if (std::optional<double> limit = readOptional(config, f.gateLimit))
    m.gate = {*limit, f.gateGain};
  if (f.differential.used) {
    m.lambdaStd = config.positive(f.differential.std.name, f.differential.std.otherwise);
    if (m.kvHeads % 2 && !config.failed())
      config.error(f.kvHeads.name) << f.kvHeads.name << " = " << m.kvHeads
                                   << ": the difference of two attentions is of pairs of heads; use an even number";
  }
  checkBlockSparse(config, f.blockSparse, options.sequence);
  checkRepeats(config, f);

  // What other programs write of what this family always has, or never.
  std::vector<FixedKey> fixed = f.fixed;
  bool normed = m.headNorm != HeadNorm::None;
  for (StringRef key : {"use_qk_norm", "qk_norm", "qk_layernorm"})
    fixed.push_back({key,
                     {normed ? "true" : "false"},
                     normed ? "queries and keys are not normalized"
                            : "queries and keys are normalized"});
  fixed.push_back({"qkv_bias",
                   {m.qkvBias ? "true" : "false"},
                   m.qkvBias ? "queries, keys and values have no biases"
                             : "queries, keys and values have biases"});
  if (!part)
    finish(config, f.name, f.ignored, fixed);
  if (!config.failed())
    checkSizes(config, m, options);
  if (!config.failed())
    checkRuns(config, m);
  return m;
}
