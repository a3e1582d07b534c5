//===- LayerKinds.cpp - what differs by layer ----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Model.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::frontend;

bool meshwright::frontend::fitsLayers(Config &config, const Family &family, StringRef key, size_t entries, int64_t listed) {
  StringRef more = family.kinds.further;
  int64_t further = more.empty() ? 0 : config.count(more, 0), count = int64_t(entries);
  if (count == listed || count == listed + further)
    return true;
  auto error = config.error(key);
  error << "\"" << key << "\" lists " << count << " layers, but " << family.layers.name << " is " << listed;
  if (further)
    error << " and " << more << " is " << further;
  return false;
}

/// The types of layers in a list of pairs, of types and how many times these follow each other.
static std::optional<std::vector<std::string>> readRepeated(Config &config, StringRef key) {
  const llvm::json::Value *value = config.json(key);
  if (!value || value->getAsNull())
    return std::nullopt;
  std::vector<std::string> types;
  bool good = value->getAsArray();
  static const llvm::json::Array none;
  for (const llvm::json::Value &entry : good ? *value->getAsArray() : none) {
    const llvm::json::Array *pair = entry.getAsArray();
    const llvm::json::Array *names = pair && pair->size() == 2 ? (*pair)[0].getAsArray() : nullptr;
    std::optional<int64_t> times = names ? (*pair)[1].getAsInteger() : std::nullopt;
    good = good && times && *times > 0 && *times < (1 << 24);
    for (int64_t i = 0; good && i < *times; ++i)
      for (const llvm::json::Value &name : *names) {
        good = good && name.getAsString();
        types.push_back(name.getAsString().value_or("").str());
      }
  }
  if (!good)
    config.error(key) << "\"" << key << "\" must list pairs of types of layers and how many times these follow each other, as in "
                         "[[[\"global\", \"local\"], 12]]";
  return types;
}

/// Takes the windows from the list of layers' types, if it is there. Written out, the list wins over all else.
static void readLayerTypes(Config &config, const Family &family, int64_t listed, Windows &windows) {
  StringRef key = family.kinds.repeated.empty() ? "layer_types" : family.kinds.repeated;
  auto types = family.kinds.repeated.empty() ? config.texts(key) : readRepeated(config, key);
  if (!types || config.failed())
    return;
  if (!fitsLayers(config, family, key, types->size(), listed))
    return;
  for (size_t i = 0; i < windows.windowed.size(); ++i) {
    StringRef type = (*types)[i % size_t(listed)];
    // Types of recurrences are checked where those are read.
    if (type != family.kinds.fullType && type != family.kinds.type && !family.recurrence.any())
      config.error(key) << "layer type \"" << type << "\" is not known for " << family.name << "; "
                        << family.kinds.fullType << " and " << family.kinds.type << " are";
    windows.windowed[i] = type == family.kinds.type;
  }
  if (windows.size || !llvm::is_contained(windows.windowed, true))
    return;
  const LayerKinds &kinds = family.kinds;
  InFlightDiagnostic diagnostic = config.error("layer_types");
  diagnostic << "\"layer_types\" asks for " << kinds.type.split('_').first << " attention, but ";
  if (kinds.use.empty())
    diagnostic << "\"" << kinds.window.name << "\" is null; set it or list full_attention only";
  else
    diagnostic << "\"" << kinds.use << "\" is false or \"" << kinds.window.name
               << "\" null; set both or list full_attention only";
}

Windows meshwright::frontend::readWindows(Config &config, const Family &family, int64_t listed,
                                          int64_t layers) {
  const LayerKinds &kinds = family.kinds;
  Windows windows{std::nullopt, std::vector<bool>(layers, false)};
  if (!kinds.window.name.empty()) {
    // A size that is not used may be any, also 0.
    if (!kinds.use.empty() && !config.flag(kinds.use, false))
      config.ignore(kinds.window.name);
    else
      windows.size = config.optionalSize(kinds.window.name, kinds.window.otherwise);
    // What a query sees before its own key, and that.
    if (auto before = kinds.before.empty() ? std::nullopt : config.optionalSize(kinds.before))
      windows.size = *before + 1;
    int64_t full =
        kinds.fullLayers.name.empty() ? kinds.fullLayers.otherwise : config.count(kinds.fullLayers.name, kinds.fullLayers.otherwise);
    int64_t end = layers;
    if (!kinds.windowedLayers.name.empty())
      end = std::min(end, config.count(kinds.windowedLayers.name, kinds.windowedLayers.otherwise));
    int64_t every = kinds.fullEvery.otherwise;
    if (kinds.listed && config.has("layer_types"))
      config.ignore(kinds.fullEvery.name);
    else if (!kinds.fullEvery.name.empty())
      every = config.size(kinds.fullEvery.name, kinds.fullEvery.otherwise);
    int64_t first = kinds.first.name.empty() ? 0 : config.count(kinds.first.name, kinds.first.otherwise);
    int64_t firstEvery = first ? config.size(kinds.firstEvery.name, kinds.firstEvery.otherwise) : 1;
    for (int64_t i = full; windows.size && i < end; ++i)
      windows.windowed[i] = i < first ? (i + 1) % firstEvery != 0 : every == 0 || (i - first + kinds.fullFrom) % every != 0;
  }
  if (auto marks = kinds.marks.empty() ? std::nullopt : config.counts(kinds.marks);
      marks && fitsLayers(config, family, kinds.marks, marks->size(), listed))
    for (int64_t i = 0; i < layers; ++i)
      windows.windowed[i] = (*marks)[size_t(i % listed)] != 0;
  if (kinds.listed || !kinds.repeated.empty())
    readLayerTypes(config, family, listed, windows);
  if (kinds.lastFull)
    windows.windowed.back() = false;
  return windows;
}

train::AttentionSpec meshwright::frontend::specOf(const Model &m, const LayerKind &kind) {
  train::AttentionSpec spec;
  static_cast<AttentionMask &>(spec) = kind.mask;
  spec.causal = !m.family.encoder;
  spec.scale = kind.scoreScale;
  spec.cap = m.scoreCap;
  spec.dropout = m.attentionDropout;
  return spec;
}

/// Whether each layer has rotary positions.
static std::vector<bool> readTurned(Config &config, const Family &family, int64_t listed,
                                    const Windows &windows) {
  size_t layers = windows.windowed.size();
  const Rotary &rotary = family.rotary;
  if (rotary.turns == Turns::Windows || (rotary.turns == Turns::WindowsIfAny && windows.size))
    return windows.windowed;
  std::vector<bool> turned(layers, rotary.used);
  if (!rotary.type.empty()) {
    bool turns = config.has(rotary.type) && config.text(rotary.type, "") == "rope";
    config.ignore(rotary.type);
    turned.assign(layers, turns);
  }
  if (rotary.layers.empty())
    return turned;
  int64_t every = config.size(rotary.unturnedEvery.name, rotary.unturnedEvery.otherwise);
  for (size_t i = 0; i < layers; ++i)
    turned[i] = int64_t(i + 1) % every != 0;
  auto list = config.counts(rotary.layers);
  // An empty list is none.
  if (!list || list->empty() || config.failed())
    return turned;
  if (int64_t(list->size()) != listed) {
    config.error(rotary.layers) << "\"" << rotary.layers << "\" lists " << list->size()
                                << " layers, but " << family.layers.name << " is " << listed;
    return turned;
  }
  for (size_t i = 0; i < layers; ++i)
    turned[i] = (*list)[i % size_t(listed)] != 0;
  return turned;
}

/// Gives layers the table of their theta in a list, which wins over all else.
static void readThetas(Config &config, Model &m, int64_t listed) {
  StringRef key = m.family.rotary.thetas;
  const llvm::json::Value *value = key.empty() ? nullptr : config.json(key);
  if (!value || value->getAsNull())
    return;
  const llvm::json::Array *list = value->getAsArray();
  if (!list || int64_t(list->size()) != listed) {
    config.error(key) << "\"" << key << "\" must list a number for each of the " << listed << " layers (" << m.family.layers.name << ")";
    return;
  }
  for (int64_t i = 0; i < m.layers; ++i) {
    std::optional<double> theta = (*list)[size_t(i % listed)].getAsNumber();
    if (!theta || *theta < 0) {
      config.error(key) << "\"" << key << "\" must list numbers above 0, or 0 for layers that do not turn";
      return;
    }
    auto known = llvm::find(m.thetas, *theta);
    m.kinds[size_t(i)].table = *theta == 0 ? -1 : int(known - m.thetas.begin());
    if (*theta > 0 && known == m.thetas.end())
      m.thetas.push_back(*theta);
  }
}

/// Gives layers the number of heads of queries that a list says.
static void readHeads(Config &config, Model &m, int64_t listed) {
  StringRef key = m.family.headsByLayer;
  auto list = key.empty() ? std::nullopt : config.counts(key);
  if (!list || config.failed())
    return;
  if (int64_t(list->size()) != listed)
    config.error(key) << "\"" << key << "\" lists " << list->size() << " layers, but " << m.family.layers.name << " is " << listed;
  for (int64_t i = 0; i < m.layers && !config.failed(); ++i) {
    int64_t heads = (*list)[size_t(i % listed)];
    if (heads < 1 || heads % m.kvHeads)
      config.error(key) << "\"" << key << "\": " << heads << " heads cannot be divided among " << m.family.kvHeads.name << " = "
                        << m.kvHeads << "; change one of them";
    m.kinds[size_t(i)].heads = heads == m.heads ? 0 : heads;
  }
}

/// Gives layers with a window the number of heads of queries that a key of theirs says.
static void readWindowedHeads(Config &config, Model &m, const Windows &windows) {
  int64_t heads = m.heads;
  for (StringRef key : m.family.windowedHeads) {
    heads = config.optionalSize(key).value_or(heads);
    if (heads % m.kvHeads && !config.failed())
      config.error(key) << "\"" << key << "\": " << heads << " heads cannot be divided among " << m.family.kvHeads.name << " = "
                        << m.kvHeads << "; change one of them";
  }
  if (m.family.windowedHeads.empty())
    return;
  for (size_t i = 0; i < m.kinds.size(); ++i)
    m.kinds[i].heads = windows.windowed[i] && heads != m.heads ? heads : 0;
  // transformers repeats it there, layer by layer.
  constexpr StringRef key = "per_layer_config";
  const llvm::json::Value *value = config.json(key);
  const llvm::json::Object *list = value ? value->getAsObject() : nullptr;
  bool fits = !value || value->getAsNull() || list;
  for (const auto &[name, each] : list ? *list : llvm::json::Object()) {
    int64_t layer;
    const llvm::json::Object *sizes = each.getAsObject();
    bool isLayer = !StringRef(name).getAsInteger(10, layer) && layer >= 0 && sizes;
    fits = fits && isLayer && (layer >= m.layers || windows.windowed[size_t(layer)]) && sizes->size() == 1 &&
           sizes->getInteger("num_attention_heads") == heads;
  }
  if (!fits && !config.failed())
    config.error(key) << "\"" << key << "\" must repeat \"num_attention_heads\" = " << heads
                      << " of layers with a window, and nothing else; change it or leave it out";
}

void meshwright::frontend::readKinds(Config &config, Model &m, int64_t listed, int64_t sequence,
                                     double scoreScale, bool scaledByLayer) {
  Windows windows = readWindows(config, m.family, listed, m.layers);
  std::vector<bool> turned = readTurned(config, m.family, listed, windows);
  const LayerKinds &kinds = m.family.kinds;
  if ((kinds.unturned || kinds.turned) && windows.size && !config.has("layer_types"))
    for (size_t i = 0; i < turned.size(); ++i)
      windows.windowed[i] = turned[i] == kinds.turned;
  const Rotary &rotary = m.family.rotary;
  int64_t size = windows.size.value_or(0);
  int64_t windowedKvHeads = m.kvHeads * m.family.windowedKvHeads;
  if (StringRef key = m.family.windowedKvHeadsKey; !key.empty())
    windowedKvHeads = config.size(key, windowedKvHeads);
  // Half of it on each side, and the query's own key.
  if (kinds.acrossBoth)
    size = size / 2 + 1;
  for (int64_t i = 0; i < m.layers; ++i) {
    LayerKind &kind = m.kinds.emplace_back();
    // A window, or a chunk, that holds the whole sequence is none.
    if (windows.windowed[i] && size < sequence)
      (kinds.chunks ? kind.mask.chunk : kind.mask.window) = size;
    kind.normed = i > 0 || m.family.normsFirstLayer;
    kind.sinks = !m.family.sinks.empty() && (windows.windowed[i] || !m.family.sinksInWindows);
    if (windows.windowed[i] && m.family.windowedKvHeads > 1)
      kind.kvHeads = windowedKvHeads == m.kvHeads ? 0 : windowedKvHeads;
    if (kind.kvHeads && m.heads % kind.kvHeads && !config.failed())
      config.error(m.family.kvHeads.name) << m.family.heads.name << " = " << m.heads << " cannot be divided among the "
                                          << kind.kvHeads << " heads of keys of layers with a window, " << m.family.windowedKvHeads
                                          << " times " << m.family.kvHeads.name << "; change one of them";
    kind.table = turned[i] ? rotary.byLayerType && windows.windowed[i] : -1;
    kind.scoreScale = scoreScale / double(scaledByLayer ? i + 1 : 1);
  }
  if (m.family.lastOutputBias.size())
    m.kinds.back().lastBias = true;
  readThetas(config, m, listed);
  readHeads(config, m, listed);
  readWindowedHeads(config, m, windows);
}

/// Reads "per_layer_config", in which transformers lists what differs by layer instead of the keys of layers without a window:
/// it must be the same of those, and nothing of others. Returns whether it is there.
static bool readLayerList(Config &config, const Model &m, int64_t &headDim, std::optional<int64_t> &kvHeads) {
  constexpr StringRef key = "per_layer_config";
  const llvm::json::Value *value = config.json(key);
  if (!value || value->kind() == llvm::json::Value::Null)
    return false;
  const llvm::json::Object *list = value->getAsObject();
  if (!list)
    config.error(key) << "\"" << key << "\" must be an object with the sizes of each layer of full attention by its number, or null";
  if (!list || list->empty())
    return false;
  headDim = m.headDim;
  kvHeads = std::nullopt;
  const llvm::json::Value &common = list->begin()->second;
  const llvm::json::Object *sizes = common.getAsObject();
  size_t full = llvm::count_if(m.kinds, [](const LayerKind &kind) { return kind.table == 0; });
  bool alike = sizes;
  for (const auto &[name, each] : *list) {
    int64_t layer;
    alike = alike && !StringRef(name).getAsInteger(10, layer) && layer >= 0 && each == common;
    if (!alike || layer >= m.layers) // a model of fewer layers than are listed
      continue;
    alike = m.kinds[layer].table == 0;
    --full;
  }
  alike = alike && full == 0;
  for (const auto &[name, size] : sizes ? *sizes : llvm::json::Object()) {
    std::optional<int64_t> number = size.getAsInteger();
    alike = alike && number && *number > 0;
    if (alike && StringRef(name) == "head_dim")
      headDim = *number;
    else if (alike && StringRef(name) == "num_key_value_heads")
      kvHeads = number;
    else
      alike = false;
  }
  if (!alike)
    config.error(key) << "\"" << key << "\" must give all layers of full attention, and no others, the same \"head_dim\" and "
                         "\"num_key_value_heads\"";
  return true;
}

namespace {
/// One part of one entry of the list of blocks.
struct BlockPart {
  Config &config;
  StringRef key, part;
  const llvm::json::Object &object;

  bool flag(StringRef name) { return object.getBoolean(name).value_or(false); }
  std::optional<double> number(StringRef name) {
    std::optional<double> found = object.getNumber(name);
    return found && *found > 0 ? found : std::nullopt;
  }
  InFlightDiagnostic error() { return config.error(key) << "\"" << key << "\": \"" << part << "\" "; }
  /// Refuses what would change attention or the MLP and is none of `known`.
  void check(ArrayRef<StringRef> known) {
    for (const auto &[name, value] : object) {
      bool isOff = value.getAsNull() || value.getAsBoolean() == false;
      if (!isOff && !llvm::is_contained(known, StringRef(name)) && !config.failed())
        error() << "has \"" << StringRef(name) << "\", which is not supported; null or false is";
    }
  }
};
} // namespace

void meshwright::frontend::readBlocks(Config &config, Model &m, int64_t listed) {
  StringRef key = m.family.blocks;
  const llvm::json::Value *value = config.json(key);
  const llvm::json::Array *list = value ? value->getAsArray() : nullptr;
  if (!list || int64_t(list->size()) != listed) {
    config.error(key) << "\"" << key << "\" must list an object for each of the " << listed << " layers ("
                      << m.family.layers.name << ")";
    return;
  }
  static const llvm::json::Object none;
  for (int64_t i = 0; i < m.layers && !config.failed(); ++i) {
    const llvm::json::Object *block = (*list)[size_t(i % listed)].getAsObject();
    auto partOf = [&](StringRef name) {
      const llvm::json::Object *object = block ? block->getObject(name) : nullptr;
      if (!object && !config.failed())
        config.error(key) << "\"" << key << "\": each entry needs an object \"" << name << "\"";
      return BlockPart{config, key, name, object ? *object : none};
    };
    LayerKind &kind = m.kinds[i];
    BlockPart attention = partOf("attention"), mlp = partOf("ffn");
    attention.check({"no_op", "replace_with_linear", "n_heads_in_group"});
    mlp.check({"no_op", "replace_with_linear", "ffn_mult", "intermediate_size"});
    kind.matrixAttends = attention.flag("replace_with_linear");
    kind.matrixFeeds = mlp.flag("replace_with_linear");
    kind.feedsForward = !mlp.flag("no_op");
    if (attention.flag("no_op"))
      kind.mixer = Mixer::None;
    // Nothing is left of it.
    kind.skipped = kind.mixer == Mixer::None && !kind.feedsForward;
    bool attends = kind.mixer == Mixer::Attention && !kind.matrixAttends;
    if (!attends)
      kind.table = -1;
    std::optional<double> group = attention.number("n_heads_in_group");
    if (attends && (!group || m.heads % int64_t(*group)) && !config.failed())
      attention.error() << "needs \"n_heads_in_group\", which divides the " << m.heads << " heads (" << m.family.heads.name << ")";
    else if (attends)
      kind.kvHeads = m.heads / int64_t(*group);
    std::optional<double> multiple = mlp.number("ffn_mult"), size = mlp.number("intermediate_size");
    bool isMlp = kind.feedsForward && !kind.matrixFeeds;
    if (isMlp && !multiple && !size && !config.failed())
      mlp.error() << "needs \"ffn_mult\" or \"intermediate_size\"";
    else if (isMlp)
      kind.inner = size ? int64_t(*size) : int64_t(llvm::alignTo(uint64_t(2 * *multiple * double(m.hidden) / 3), 256));
  }
}

void meshwright::frontend::readMixed(Config &config, Model &m) {
  const MixedHeads &keys = m.family.mixed;
  int64_t headDim = config.size(keys.headDim.name, keys.headDim.otherwise);
  auto kvHeads = config.optionalSize(keys.kvHeads.name, keys.kvHeads.otherwise);
  bool listed = readLayerList(config, m, headDim, kvHeads);
  bool valuesAreKeys = config.flag(keys.valuesAreKeys.name, keys.valuesAreKeys.otherwise);
  int64_t sharing = config.count(keys.sharing.name, keys.sharing.otherwise);
  bool wide = config.flag(keys.wide.name, keys.wide.otherwise);
  if (config.failed())
    return;
  if (headDim % 2)
    config.error(keys.headDim.name) << "\"" << keys.headDim.name
                                    << "\": rotary positions turn pairs, so the size of a head must be even, found " << headDim;
  if (valuesAreKeys && kvHeads && m.heads % *kvHeads)
    config.error(keys.kvHeads.name) << m.family.heads.name << " = " << m.heads << " cannot be divided among "
                                    << keys.kvHeads.name << " = " << *kvHeads << "; change one of them";
  if (sharing >= m.layers)
    config.error(keys.sharing.name) << "\"" << keys.sharing.name << "\" = " << sharing << ", but only layers before the last "
                                    << m.layers << " have keys and values to share; use fewer than those";
  int64_t first = m.layers - sharing;
  for (int64_t i = 0; i < m.layers && !config.failed(); ++i) {
    LayerKind &kind = m.kinds[i];
    bool isFull = kind.table == 0;
    kind.reuses = i >= first;
    if (kind.reuses && wide)
      kind.inner = 2 * m.inner;
    if (!isFull)
      continue;
    kind.headDim = headDim;
    kind.valuesAreKeys = valuesAreKeys && !kind.reuses;
    if ((valuesAreKeys || listed) && kvHeads)
      kind.kvHeads = *kvHeads;
  }
  for (int table : {0, 1}) {
    auto last = [&](bool reuses, int64_t begin, int64_t end) {
      int64_t found = -1;
      for (int64_t i = begin; i < end; ++i)
        if (m.kinds[i].table == table && m.kinds[i].reuses == reuses)
          found = i;
      return found;
    };
    if (config.failed() || last(true, first, m.layers) < 0)
      continue;
    int64_t source = last(false, 0, first);
    if (source < 0)
      config.error(keys.sharing.name) << "\"" << keys.sharing.name << "\" = " << sharing
                                      << ": no earlier layer is of the kind of one that uses keys and values of such";
    else
      m.kinds[source].stores = true;
  }
}
