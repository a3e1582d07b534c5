//===- DescribeFamilies.cpp - what each family accepts --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The tables as text, for `meshwright models` and docs/models.md.
//
//===----------------------------------------------------------------------===//
#include "Model.h"

#include "llvm/Support/Format.h"

using namespace meshwright;
using namespace meshwright::frontend;

namespace {
/// Writes lists of keys, each with its value where it is absent.
class KeyList {
public:
  KeyList(llvm::raw_ostream &os, StringRef title) : os(os), title(title) {}
  ~KeyList() {
    if (!keys.empty())
      os << "  " << title << ": " << llvm::join(keys, ", ") << "\n";
  }

  template <typename T> void add(const Key<T> &key) {
    if (key.name.empty())
      return;
    std::string names = key.name.str();
    if (!key.alias.empty())
      names += " or " + key.alias.str();
    addText(names + " (" + show(key.otherwise) + ")");
  }
  void addText(const std::string &text) {
    if (!llvm::is_contained(keys, text))
      keys.push_back(text);
  }
  void addName(StringRef name) {
    if (!name.empty())
      addText(name.str());
  }

private:
  static std::string show(int64_t value) { return std::to_string(value); }
  static std::string show(bool value) { return value ? "true" : "false"; }
  static std::string show(StringRef value) { return value.str(); }
  static std::string show(double value) {
    std::string text;
    llvm::raw_string_ostream(text) << llvm::format("%g", value);
    return text;
  }
  template <typename T> static std::string show(const std::optional<T> &value) {
    return value ? show(*value) : "null";
  }

  llvm::raw_ostream &os;
  StringRef title;
  std::vector<std::string> keys;
};
} // namespace

static void describe(const Family &f, llvm::raw_ostream &os) {
  os << f.name;
  if (!f.variant.name.empty())
    os << " with " << f.variant.name << (f.variant.value ? " true" : " false");
  for (StringRef key : f.present)
    os << " with " << key;
  for (StringRef key : f.absent)
    os << " without " << key;
  os << "\n  judge: " << f.judge << "\n";
  {
    KeyList releases(os, "releases tried");
    for (StringRef release : releasesOf(f.name))
      releases.addName(release);
  }
  {
    KeyList sizes(os, "sizes");
    for (const auto &key : {f.vocabulary, f.positions, f.hidden, f.layers, f.heads})
      sizes.add(key);
    for (const auto &key : {f.kvHeads, f.headDim, f.inner, f.embeddingWidth})
      sizes.add(key);
    sizes.add(f.types);
    sizes.add(f.innerMultiple);
    sizes.addName(f.blocks);
    sizes.addName(f.attentions);
  }
  if (f.source) {
    KeyList encoder(os, "sizes of the encoder");
    for (const auto &key : {f.source->layers, f.source->heads})
      encoder.add(key);
    encoder.add(f.source->inner);
  }
  if (f.encoder)
    os << "  task: to predict masked tokens, with --mlm and --mask-id\n";
  {
    KeyList kinds(os, "variations");
    if (f.feedForward.empty())
      kinds.add(f.activation);
    kinds.addName(f.feedForward);
    kinds.add(f.startToken);
    kinds.addName(f.targetVocabulary);
    kinds.add(f.relative.buckets);
    kinds.add(f.relative.maxDistance);
    kinds.addName(f.scaledLogits);
    kinds.add(f.scaleEmbedding);
    kinds.add(f.transform.activation);
    kinds.add(f.eps);
    kinds.add(f.padding);
    for (const auto &key :
         {f.tied, f.parallel, f.qkvBias, f.outputBias, f.mlpBias, f.headBias, f.transform.bias,
          f.useNormBias, f.normAffine, f.normFirst, f.usePostNorms, f.headGate.used, f.useHeadNorm, f.scaled, f.scaledByLayer})
      kinds.add(key);
    kinds.add(f.scoreByWidth);
    kinds.add(f.scoreMultiplier);
    kinds.add(f.gateLimit);
    kinds.add(f.differential.std);
    for (const auto &key : {f.blockSparse.block, f.blockSparse.local, f.blockSparse.denseEvery})
      kinds.add(key);
    for (const auto &key : {f.scoreScale, f.scoreCap, f.logitCap, f.scoreFactor, f.clip})
      kinds.add(key);
    for (const auto &key : {f.embeddingFactor, f.residualFactor, f.logitFactor, f.logitDivisor})
      kinds.add(key);
    const LayerFactors &factors = f.factors;
    for (const auto &key : {factors.attentionInput, factors.keys, factors.attentionOutput, factors.mixerInput, factors.mixerOutput})
      kinds.add(key);
    const NormedResiduals &residuals = f.normedResiduals;
    for (const auto &key : {residuals.attentionStream, residuals.attention, residuals.mixerStream, residuals.mixer, residuals.mlpStream, residuals.mlp})
      kinds.add(key);
    kinds.addName(factors.mixer);
    kinds.addName(factors.mlp);
    kinds.add(f.temperature.used);
    kinds.add(f.temperature.every);
    kinds.add(f.temperature.factor);
    kinds.add(f.depthFactor);
    kinds.add(f.logitWidth);
    kinds.add(f.kinds.window);
    kinds.addName(f.kinds.use);
    kinds.add(f.kinds.fullLayers);
    kinds.add(f.kinds.windowedLayers);
    kinds.add(f.kinds.fullEvery);
    kinds.add(f.adjustedInner.used);
    kinds.add(f.adjustedInner.factor);
    kinds.add(f.adjustedInner.multiple);
    if (f.kinds.listed)
      kinds.addName("layer_types");
    for (StringRef key : {f.kinds.repeated, f.kinds.marks, f.kinds.before, f.kinds.further, f.windowedKvHeadsKey})
      kinds.addName(key);
    for (StringRef key : f.windowedHeads)
      kinds.addName(key);
    kinds.add(f.kinds.first);
    kinds.add(f.kinds.firstEvery);
    kinds.addName(f.headsByLayer);
    kinds.add(f.valueDim);
    kinds.add(f.valueFactor);
    kinds.addName(f.headGate.kind);
    kinds.addName(f.skippedLayers);
    kinds.add(f.mixed.headDim);
    kinds.add(f.mixed.kvHeads);
    kinds.add(f.mixed.valuesAreKeys);
    kinds.add(f.mixed.sharing);
    kinds.add(f.mixed.wide);
    kinds.add(f.inputs.width);
    kinds.add(f.inputs.vocabulary);
  }
  {
    KeyList experts(os, "experts");
    experts.add(f.experts.used);
    for (const auto &key :
         {f.experts.count, f.experts.chosen, f.experts.denseFirst, f.experts.every})
      experts.add(key);
    experts.add(f.experts.offset);
    experts.add(f.experts.last);
    experts.add(f.experts.inner);
    experts.add(f.experts.sharedInner);
    experts.add(f.experts.sharedCount);
    experts.add(f.experts.residual);
    experts.add(f.experts.groups);
    experts.add(f.experts.chosenGroups);
    experts.addName(f.experts.method.name);
    experts.add(f.experts.normalized);
    experts.add(f.experts.leastSum);
    experts.add(f.experts.factor);
    experts.add(f.experts.limit);
    experts.add(f.experts.gain);
    experts.add(f.experts.balanced);
    experts.add(f.experts.balance);
    experts.addName(f.experts.dense);
    experts.addName(f.experts.sparse);
    experts.addName(f.experts.kinds);
    for (StringRef key : {f.experts.marks, f.experts.normOrder, f.experts.limits, f.experts.mlpLimits})
      experts.addName(key);
    experts.add(f.experts.identities);
    experts.add(f.experts.jitter);
    experts.add(f.experts.denseInner);
    experts.addName(f.experts.scores);
    experts.addName(f.experts.combination);
  }
  if (const Recurrence &r = f.recurrence; r.any()) {
    KeyList recurrence(os, r.mixer == Mixer::Convolution ? "short convolutions" : "linear recurrences");
    for (const auto &key : {r.heads, r.headDim, r.keyHeads, r.keyDim, r.kernel, r.chunk, r.expand})
      recurrence.add(key);
    recurrence.add(r.inner);
    for (const auto &key : {r.bias, r.convBias, r.outputBias, r.normed, r.normedFirst, r.negative, r.scaledOutput, r.bounded})
      recurrence.add(key);
    recurrence.add(r.bound);
    recurrence.add(r.activation);
    recurrence.addName(r.limit);
    recurrence.add(r.leastStep);
    for (StringRef key : {r.saved.heads, r.saved.headDim, r.saved.kernel, r.object})
      recurrence.addName(key);
    recurrence.add(r.rank);
    recurrence.add(r.partEps);
    for (StringRef key : {r.list, r.listAlias, r.pattern, r.attends, r.cycle})
      recurrence.addName(key);
    recurrence.add(r.every);
    recurrence.add(r.offset);
  }
  if (f.latent.used) {
    KeyList latent(os, "latent attention");
    latent.add(f.latent.queryRank);
    for (const auto &key : {f.latent.keyRank, f.latent.plainDim, f.latent.turnedDim})
      latent.add(key);
    latent.add(f.latent.valueDim);
    latent.add(f.latent.bias);
    latent.add(f.latent.interleaved);
    const Indexer &indexer = f.latent.indexer;
    for (const auto &key : {indexer.topk, indexer.heads, indexer.headDim, indexer.every, indexer.offset})
      latent.add(key);
    latent.addName(indexer.pattern);
    latent.addName(indexer.types);
  }
  if (f.rotary.used) {
    KeyList rotary(os, "rotary positions");
    rotary.add(f.rotary.theta);
    rotary.add(f.rotary.windowTheta);
    rotary.add(f.rotary.part);
    rotary.addName(f.rotary.thetaAgain);
    rotary.addName(f.rotary.partAgain);
    if (f.rotary.part.name.empty())
      rotary.add(f.rotary.width);
    else
      rotary.addName(f.rotary.width.name);
    rotary.add(f.rotary.original);
    rotary.addName(f.rotary.type);
    rotary.addName(f.rotary.layers);
    rotary.addName(f.rotary.thetas);
    rotary.addName(f.rotary.parts);
    rotary.addName(f.rotary.denseToo);
    rotary.add(f.rotary.unturnedEvery);
    rotary.add(f.rotary.ratio);
    if (!f.rotary.theta.name.empty()) {
      rotary.addName("rope_scaling");
      rotary.addName("rope_parameters");
    }
  }
  {
    KeyList training(os, "training");
    for (const auto &key :
         {f.attentionDropout, f.embeddingDropout, f.residualDropout, f.innerDropout, f.std})
      training.add(key);
  }
  {
    KeyList fixed(os, "one value only");
    for (const FixedKey &key : f.fixed)
      fixed.addText(key.key.str() + " " + llvm::join(key.allowed, " or "));
  }
  {
    KeyList repeats(os, "repeat others");
    for (auto [key, of] : f.repeats)
      repeats.addText((key + " of " + of).str());
  }
  KeyList ignored(os, "ignored");
  for (StringRef key : f.ignored)
    ignored.addName(key);
}

void meshwright::describeFamilies(llvm::raw_ostream &os) {
  for (const Family &family : families())
    describe(family, os);
  os << "all families\n";
  {
    KeyList fixed(os, "one value only, where the family has no use for the key");
    for (const FixedKey &key : commonFixedKeys())
      fixed.addText(key.key.str() + " " + llvm::join(key.allowed, " or "));
  }
  {
    KeyList ignored(os, "ignored");
    for (StringRef key : commonIgnoredKeys())
      ignored.addName(key);
  }
  os << "model types that are refused\n";
  for (const Refusal &refusal : refusals())
    os << "  " << refusal.model << ": " << refusal.why << "\n";
}
