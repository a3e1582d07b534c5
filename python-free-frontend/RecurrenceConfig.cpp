//===- RecurrenceConfig.cpp - what configurations say of recurrences ----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Model.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::frontend;

namespace {
struct RecurrenceReader {
  Config &config;
  const Recurrence &keys;
  std::optional<Config> object = {}; ///< that of `keys.object`

  int64_t size(const Key<int64_t> &key, int64_t most = int64_t(1) << 40) {
    if (!key.alias.empty())
      config.alias(key.name, key.alias);
    return key.name.empty() ? key.otherwise : config.size(key.name, key.otherwise, most);
  }
  bool flag(const Key<bool> &key) {
    if (!key.alias.empty())
      config.alias(key.name, key.alias);
    return key.name.empty() ? key.otherwise : config.flag(key.name, key.otherwise);
  }

  /// What layers have, of which the file lists `listed`; an MLP beside it is not meant.
  std::vector<Mixer> mixers(const Model &m, int64_t listed, std::vector<bool> &sparse);
  RecurrenceSizes sizes(const Model &m);
  /// A number below 0.
  double readBound();
  /// Those of recurrences of single elements.
  void readElements(RecurrenceSizes &s, const Model &m);
};
} // namespace

std::vector<Mixer> RecurrenceReader::mixers(const Model &m, int64_t listed, std::vector<bool> &sparse) {
  std::vector<Mixer> mixers(listed, keys.mixer);
  std::vector<bool> named(listed);
  auto set = [&](size_t i, StringRef type, StringRef key) {
    if (type == "linear_attention" || type == "mamba" || type == "conv" || type == "M")
      return;
    sparse[i] = sparse[i] && !keys.alone;
    bool windowed = type == m.family.kinds.type && m.family.kinds.listed;
    if (type == "full_attention" || type == "attention" || type == "*" || windowed) {
      mixers[i] = Mixer::Attention;
      return;
    }
    mixers[i] = Mixer::None;
    sparse[i] = type == "moe" || type == "E";
    if (!keys.alone || !(sparse[i] || type == "mlp" || type == "-"))
      config.error(key) << "layer type \"" << type << "\" is not known; "
                        << (keys.alone ? "mamba, attention, mlp and moe (in a pattern M, *, - and E)"
                                       : "linear_attention, mamba, conv, attention and full_attention")
                        << " are";
  };
  auto check = [&](StringRef key, size_t size) {
    if (int64_t(size) == listed)
      return true;
    config.error(key) << "\"" << key << "\" lists " << size << " layers, but the model has " << listed;
    return false;
  };
  if (keys.alone)
    sparse.assign(listed, false);
  if (!keys.listAlias.empty())
    config.alias(keys.list, keys.listAlias);
  if (auto types = keys.list.empty() ? std::nullopt : config.texts(keys.list)) {
    for (StringRef other : {keys.pattern, keys.attends, keys.every.name})
      if (!other.empty())
        config.ignore(other);
    for (StringRef other : {"kda_layers", "full_attn_layers"})
      if (object)
        object->ignore(other);
    for (size_t i = 0; check(keys.list, types->size()) && i < types->size(); ++i)
      set(i, (*types)[i], keys.list);
    return mixers;
  }
  if (object) {
    for (StringRef key : {"kda_layers", "full_attn_layers"})
      for (int64_t layer : object->counts(key).value_or(std::vector<int64_t>())) {
        if (layer < 1 || layer > listed) {
          object->error(key) << "\"" << key << "\" lists layer " << layer << ", but layers are counted from 1 to " << listed;
          continue;
        }
        bool attends = key == "full_attn_layers";
        mixers[size_t(layer - 1)] = attends ? Mixer::Attention : keys.mixer;
        named[size_t(layer - 1)] = true;
      }
    if (!llvm::is_contained(named, false))
      return mixers;
    object->error("") << "\"" << keys.object << "\" lists layer " << llvm::find(named, false) - named.begin() + 1
                      << " neither in \"kda_layers\" nor in \"full_attn_layers\"; write it in one of them";
    return mixers;
  }
  if (keys.needsList)
    config.error(keys.list) << "the file has no \"" << keys.list << "\", which says what each layer has in place of attention; write it there";
  if (!keys.pattern.empty() && config.has(keys.pattern)) {
    std::string pattern = config.text(keys.pattern, "");
    for (size_t i = 0; check(keys.pattern, pattern.size()) && i < pattern.size(); ++i)
      set(i, StringRef(pattern).substr(i, 1), keys.pattern);
    return mixers;
  }
  if (!keys.attends.empty()) {
    auto numbers = config.counts(keys.attends);
    for (int64_t i = 0; i < listed; ++i)
      if (numbers ? llvm::is_contained(*numbers, i) : keys.allAttend)
        mixers[i] = Mixer::Attention;
  }
  if (!keys.cycle.empty()) {
    std::vector<std::string> types = config.texts(keys.cycle).value_or(std::vector<std::string>{"recurrent", "recurrent", "attention"});
    if (types.empty())
      config.error(keys.cycle) << "\"" << keys.cycle << "\" is empty; list recurrent and attention";
    for (StringRef type : types)
      if (type != "recurrent" && type != "attention")
        config.error(keys.cycle) << "\"" << keys.cycle << "\": \"" << type << "\" is not known; recurrent and attention are";
    for (int64_t i = 0; i < listed && !config.failed(); ++i)
      if (types[size_t(i) % types.size()] == "attention")
        mixers[i] = Mixer::Attention;
  }
  if (keys.every.otherwise > 0) {
    int64_t every = size(keys.every), remainder = every - 1;
    if (!keys.offset.name.empty())
      remainder = config.count(keys.offset.name, keys.offset.otherwise);
    if (remainder >= every && !config.failed())
      config.error(keys.offset.name) << "\"" << keys.offset.name << "\" = " << remainder << " must be less than " << keys.every.name
                                     << " = " << every << ", of which it is a remainder";
    for (int64_t i = 0; i < listed; ++i)
      if (i % every == remainder)
        mixers[i] = Mixer::Attention;
  }
  return mixers;
}

RecurrenceSizes RecurrenceReader::sizes(const Model &m) {
  RecurrenceSizes s;
  if (keys.mixer != Mixer::ElementDelta)
    s.kernel = size(keys.kernel, 64);
  s.convBias = flag(keys.convBias);
  s.bias = flag(keys.bias);
  s.outputBias = keys.outputBias.name.empty() ? s.bias : flag(keys.outputBias);
  s.normed = flag(keys.normed);
  s.normedFirst = flag(keys.normedFirst);
  s.gateFactor = flag(keys.negative) ? 2 : 1;
  s.activation = m.activation;
  if (!keys.activation.name.empty())
    s.activation = config.text(keys.activation.name, keys.activation.otherwise);
  bool activates = keys.mixer != Mixer::Convolution && keys.mixer != Mixer::RealGated;
  if (s.activation != "silu" && s.activation != "swish" && activates)
    config.error(keys.activation.name.empty() ? m.family.activation.name : keys.activation.name)
        << "activation \"" << s.activation << "\" of a recurrence's convolution is not supported; \"silu\" is";
  if (keys.mixer == Mixer::Convolution) {
    s.outputStd = m.std;
    return s;
  }
  s.chunk = keys.chunk.otherwise ? size(keys.chunk) : 0;
  s.outputStd = m.std;
  if (!keys.scaledOutput.name.empty() && flag(keys.scaledOutput))
    s.outputStd /= std::sqrt(double(m.layers));
  if (keys.mixer == Mixer::RealGated || keys.mixer == Mixer::Selective) {
    readElements(s, m);
    return s;
  }
  if (keys.mixer == Mixer::Lightning) {
    s.heads = s.keyHeads = m.heads;
    s.headDim = s.keyDim = m.headDim;
    return s;
  }
  if (keys.mixer == Mixer::ElementDelta) {
    auto read = [&](const Key<int64_t> &key, StringRef saved, StringRef inside, int64_t otherwise, int64_t most = largestSize) {
      int64_t value = key.name.empty() ? otherwise : config.size(key.name, otherwise, most);
      if (!saved.empty())
        value = config.size(saved, value, most);
      return object ? object->size(inside, value, most) : value;
    };
    s.heads = s.keyHeads = read(keys.heads, keys.saved.heads, "num_heads", keys.heads.name.empty() ? m.heads : keys.heads.otherwise);
    s.headDim = s.keyDim = read(keys.headDim, keys.saved.headDim, "head_dim", keys.headDim.otherwise);
    s.kernel = read(keys.kernel, keys.saved.kernel, "short_conv_kernel_size", keys.kernel.otherwise, 64);
    if (keys.bound.name.empty())
      return s;
    if (flag(keys.bounded))
      s.decayBound = readBound();
    else
      config.ignore(keys.bound.name);
    return s;
  }
  s.heads = size(keys.heads);
  int64_t inner = keys.expand.name.empty() ? 0 : size(keys.expand) * m.hidden;
  StringRef whole = keys.expand.name;
  if (std::optional<int64_t> given = keys.inner.name.empty() ? std::nullopt : config.optionalSize(keys.inner.name, keys.inner.otherwise)) {
    inner = *given;
    whole = keys.inner.name;
  }
  const llvm::json::Value *dim = config.json(keys.headDim.name);
  bool isAuto = dim ? dim->getAsString() == std::optional<StringRef>("auto") : keys.headDim.otherwise == 0;
  s.headDim = isAuto ? std::max<int64_t>(inner / s.heads, 1) : size(keys.headDim);
  s.keyHeads = size(keys.keyHeads);
  s.keyDim = size(keys.keyDim);
  if (!keys.limit.empty()) {
    std::tie(s.leastStep, s.mostStep) = config.range(keys.limit, {0, INFINITY});
    if (s.leastStep == 0 && std::isinf(s.mostStep))
      s.mostStep = 0; // a softplus is above 0
  }
  if (!keys.leastStep.name.empty()) {
    config.alias(keys.leastStep.name, keys.leastStep.alias);
    s.leastStep = config.positive(keys.leastStep.name, keys.leastStep.otherwise);
    s.mostStep = INFINITY;
  }
  if (config.failed())
    return s;
  if (s.heads % s.keyHeads)
    config.error(keys.keyHeads.name) << keys.heads.name << " = " << s.heads
                                     << " cannot be divided among " << keys.keyHeads.name << " = "
                                     << s.keyHeads << "; change one of them";
  else if (inner && s.heads * s.headDim != inner) {
    auto error = config.error(keys.headDim.name);
    error << s.heads << " heads (" << keys.heads.name << ") of " << s.headDim << " elements (" << keys.headDim.name
          << ") are not the " << inner << " of " << whole;
    if (whole == keys.expand.name)
      error << " times " << m.family.hidden.name;
    error << "; change one of them";
  }
  return s;
}

double RecurrenceReader::readBound() {
  const llvm::json::Value *value = config.json(keys.bound.name);
  std::optional<double> number = value ? value->getAsNumber() : keys.bound.otherwise;
  if (!number || *number >= 0)
    config.error(keys.bound.name) << "\"" << keys.bound.name << "\" must be a number below 0, the least logarithm of a decay";
  return number.value_or(keys.bound.otherwise);
}

void RecurrenceReader::readElements(RecurrenceSizes &s, const Model &m) {
  if (keys.mixer == Mixer::RealGated) {
    // Gates are of heads, which attention has as many of.
    int64_t inner = config.optionalSize(keys.inner.name).value_or(m.hidden);
    s.heads = m.heads;
    s.headDim = inner / s.heads;
    if (inner % s.heads && !config.failed())
      config.error(keys.inner.name) << "\"" << keys.inner.name << "\" = " << inner << " cannot be divided among " << s.heads << " heads ("
                                    << m.family.heads.name << "); change one of them";
    return;
  }
  s.heads = size(keys.expand) * m.hidden;
  s.headDim = 1;
  s.keyDim = size(keys.keyDim);
  const llvm::json::Value *rank = config.json(keys.rank.name);
  bool isAuto = !rank || rank->getAsString() == std::optional<StringRef>("auto");
  s.rank = isAuto ? (m.hidden + 15) / 16 : size(keys.rank);
  if (keys.normsParts)
    s.partEps = keys.partEps.name.empty() ? m.eps : config.positive(keys.partEps.name, keys.partEps.otherwise);
}

/// Reports options that recurrences do not support.
static void checkOptions(Config &config, const Model &m, const ModelOptions &options) {
  StringRef name = m.family.name;
  if (!options.mupBase.empty() || options.width)
    config.error("") << "--mup-base: no rule of muP is known for the recurrences and convolutions of "
                     << name << "; leave it out";
}

std::optional<int64_t> meshwright::frontend::listedLayers(Config &config, const Recurrence &keys) {
  if (!keys.listAlias.empty())
    config.alias(keys.list, keys.listAlias);
  if (auto types = keys.list.empty() ? std::nullopt : config.texts(keys.list))
    return int64_t(types->size());
  if (!keys.pattern.empty() && config.has(keys.pattern))
    return int64_t(config.text(keys.pattern, "").size());
  return {};
}

void meshwright::frontend::readRecurrence(Config &config, Model &m, int64_t listed,
                                          const ModelOptions &options) {
  const Recurrence &keys = m.family.recurrence;
  RecurrenceReader reader{config, keys};
  if (!keys.object.empty())
    reader.object = config.object(keys.object);
  std::vector<bool> sparse(listed);
  for (int64_t i = 0; i < std::min(listed, m.layers); ++i)
    sparse[i] = m.kinds[i].sparse;
  std::vector<Mixer> mixers = reader.mixers(m, listed, sparse);
  m.recurrence = reader.sizes(m);
  if (reader.object)
    reader.object->finish(m.family.name, {}, {});
  for (int64_t i = 0; i < m.layers; ++i) {
    LayerKind &kind = m.kinds[i];
    kind.mixer = mixers[i % listed];
    kind.sparse = sparse[i % listed];
    kind.feedsForward = keys.feedsForward && !(keys.alone && kind.mixer != Mixer::None);
    if (kind.mixer == Mixer::Attention || keys.beside)
      continue;
    kind.table = -1;
    kind.scoreScale = 1;
  }
  bool recurs = llvm::any_of(m.kinds, [](const LayerKind &kind) {
    return kind.mixer != Mixer::Attention && kind.mixer != Mixer::None;
  });
  if (recurs && !config.failed())
    checkOptions(config, m, options);
}
