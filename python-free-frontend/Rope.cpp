//===- Rope.cpp - frequencies of rotary positions ----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The formulas are those of transformers' modeling_rope_utils.py, in double
// precision: what is rounded to a training run's precision is the table of cosines
// and sines. (transformers rounds the frequencies to 32-bit floats first, which
// moves an angle at position s by less than s * 1e-7.)
//
//===----------------------------------------------------------------------===//
#include "Model.h"

#include "llvm/Support/Format.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::frontend;

static constexpr double pi = 3.14159265358979323846;

static std::string shown(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", value);
  return text;
}

namespace {
/// One table under construction, and the object of the configuration that scales it.
struct Scaling {
  Config &object;
  const Model &model;
  int64_t sequence;
  double theta;
  RopeTable table;

  /// Reports that the type needs `key`, if it is absent.
  bool needs(StringRef type, ArrayRef<StringRef> keys) {
    if (object.failed())
      return false;
    for (StringRef key : keys)
      if (!object.has(key))
        object.error(object.has("type") && !object.has("rope_type") ? "type" : "rope_type")
            << type << " rope scaling needs " << (keys.size() == 1 && key == "factor" ? "a " : "")
            << "\"" << key << "\"";
    return !object.failed();
  }
};
} // namespace

//===--- kinds of scaling ---------------------------------------------------===//

/// theta^(-2i/width) for i below width/2.
static SmallVector<double> plainFrequencies(double theta, int64_t width) {
  SmallVector<double> frequencies;
  for (int64_t i = 0; i < width; i += 2)
    frequencies.push_back(1.0 / std::pow(theta, double(i) / double(width)));
  return frequencies;
}

static void scaleNothing(Scaling &) {}

static void scaleLinear(Scaling &s) {
  double factor = s.object.positive("factor", 1.0);
  s.needs("linear", {"factor"});
  for (double &frequency : s.table.frequencies)
    frequency /= factor;
}

/// What it does begins beyond the model's positions, which no sequence does.
static void scaleDynamic(Scaling &s) {
  s.object.positive("factor", 1.0);
  s.object.optionalSize("original_max_position_embeddings");
  if (!s.model.family.rotary.alpha || !s.object.has("alpha")) {
    s.needs("dynamic", {"factor"});
    return;
  }
  // NTK-aware scaling by a number that does not depend on the sequence. What YaRN would read says nothing.
  for (StringRef key : {"beta_fast", "beta_slow", "mscale", "mscale_all_dim"})
    s.object.ignore(key);
  double alpha = s.object.positive("alpha", 1.0), width = double(2 * s.table.frequencies.size());
  if (width <= 2) {
    s.object.error("alpha") << "\"alpha\" is for heads of which more than 2 elements turn, found " << width;
    return;
  }
  s.theta *= std::pow(alpha, width / (width - 2));
  s.table.frequencies = plainFrequencies(s.theta, int64_t(width));
}

/// Llama 3.1's scaling: long waves are divided by `factor`, short ones kept, those
/// between blended.
static void scaleLlama3(Scaling &s) {
  double factor = s.object.positive("factor", 1.0);
  double low = s.object.positive("low_freq_factor", 1.0);
  double high = s.object.positive("high_freq_factor", 4.0);
  // transformers 4 has no default for it. Version 5 takes max_position_embeddings,
  // the length after scaling, which no model was trained with before.
  double original = double(s.object.size("original_max_position_embeddings", 8192));
  if (s.object.failed())
    return;
  s.needs("llama3",
          {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"});
  if (high < low)
    s.object.error("high_freq_factor")
        << "\"high_freq_factor\" must not be below \"low_freq_factor\", found "
        << shown(high) << " and " << shown(low);
  for (double &frequency : s.table.frequencies) {
    double wave = 2 * pi / frequency;
    if (wave > original / low) {
      frequency /= factor;
    } else if (wave >= original / high && high > low) {
      double smooth = (original / wave - low) / (high - low);
      frequency = (1 - smooth) * frequency / factor + smooth * frequency;
    }
  }
}

/// How much YaRN lengthens the scores of positions that are spread by `factor`.
static double yarnScale(double factor, double weight) {
  return factor <= 1 ? 1.0 : 0.1 * weight * std::log(factor) + 1.0;
}

/// YaRN (Peng et al. 2023): frequencies that turn often within the original positions are kept,
/// slow ones are divided by `factor`, those between blended along a ramp.
static void scaleYarn(Scaling &s) {
  double original = double(s.object.size("original_max_position_embeddings", s.model.positions));
  double factor = s.object.optionalPositive("factor", std::nullopt)
                      .value_or(double(s.model.positions) / original);
  std::optional<double> given = s.object.optionalPositive("attention_factor", std::nullopt);
  std::optional<double> weight = s.object.optionalPositive("mscale", std::nullopt);
  std::optional<double> weightAll = s.object.optionalPositive("mscale_all_dim", std::nullopt);
  double fast = s.object.optionalPositive("beta_fast", std::nullopt).value_or(32);
  double slow = s.object.optionalPositive("beta_slow", std::nullopt).value_or(1);
  bool truncate = s.object.flag("truncate", true);
  if (!truncate && s.model.family.rotary.byLayerType)
    s.object.error("truncate") << "\"truncate\": transformers does not read it where layers have "
                                  "angles of their own, as in "
                               << s.model.family.name << ", and rounds; leave it out";
  // One of both says how far positions are spread.
  if (!s.object.has("original_max_position_embeddings") && !s.needs("yarn", {"factor"}))
    return;
  double width = double(2 * s.table.frequencies.size());
  auto boundary = [&](double turns) {
    return width * std::log(original / (turns * 2 * pi)) / (2 * std::log(s.theta));
  };
  double low = boundary(fast), high = boundary(slow);
  if (truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, width - 1);
  if (low == high)
    high += 0.001; // as transformers does, against a division by 0
  for (auto [i, frequency] : llvm::enumerate(s.table.frequencies)) {
    double ramp = std::clamp((double(i) - low) / (high - low), 0.0, 1.0);
    frequency = frequency / factor * ramp + frequency * (1 - ramp);
  }
  s.table.scale = yarnScale(factor, 1);
  if (weight && weightAll)
    s.table.scale = yarnScale(factor, *weight) / yarnScale(factor, *weightAll);
  if (given)
    s.table.scale = *given;
  if (weightAll)
    s.table.latentScale = std::pow(yarnScale(factor, *weightAll), 2);
}

/// LongRoPE (Ding et al. 2024): each frequency is divided by a number of its own, of one list
/// for sequences within the original positions and of another for longer ones.
static void scaleLong(Scaling &s) {
  size_t count = s.table.frequencies.size();
  std::optional<double> factor = s.object.optionalPositive("factor", std::nullopt);
  std::optional<double> given = s.object.optionalPositive("attention_factor", std::nullopt);
  std::vector<double> shorter = s.object.positives("short_factor", count);
  std::vector<double> longer = s.object.positives("long_factor", count);
  std::optional<int64_t> inside = s.object.optionalSize("original_max_position_embeddings");
  std::optional<int64_t> original = s.model.originalPositions;
  if (!original)
    original = inside.value_or(s.model.positions);
  if (!s.needs("longrope", {"short_factor", "long_factor"}))
    return;
  // Where the scale is given, transformers 5 divides by the first list however long sequences are.
  bool isLong = s.sequence > *original && !s.model.family.rotary.mscales;
  const std::vector<double> &divisors = isLong ? longer : shorter;
  for (auto [frequency, divisor] : llvm::zip(s.table.frequencies, divisors))
    frequency /= divisor;
  double spread = factor.value_or(double(s.model.positions) / double(*original));
  if (spread > 1)
    s.table.scale = std::sqrt(1 + std::log(spread) / std::log(double(*original)));
  if (given)
    s.table.scale = *given;
  if (!s.model.family.rotary.mscales || !s.needs("longrope", {"short_mscale", "long_mscale"}))
    return;
  double ofShort = s.object.positive("short_mscale", 1.0), ofLong = s.object.positive("long_mscale", 1.0);
  s.table.scale = s.sequence > *original ? ofLong : ofShort;
}

/// A part of the frequencies of a whole head; what is left does not turn.
static void scaleProportional(Scaling &s) {
  double part = s.object.positive("partial_rotary_factor", 1.0), factor = s.object.positive("factor", 1.0);
  auto turned = size_t(part * double(2 * s.table.frequencies.size())) / 2;
  for (auto [i, frequency] : llvm::enumerate(s.table.frequencies))
    frequency = i < turned ? frequency / factor : 0;
}

static const struct {
  StringRef name;
  void (*scale)(Scaling &);
} types[] = {{"default", scaleNothing}, {"linear", scaleLinear}, {"llama3", scaleLlama3},
             {"dynamic", scaleDynamic}, {"yarn", scaleYarn},     {"longrope", scaleLong},
             {"proportional", scaleProportional}};

//===--- tables -------------------------------------------------------------===//

/// The table that `object` describes, by "rope_type" or its old name "type".
static RopeTable readTable(Config &object, const Model &model, int64_t sequence, double theta,
                           std::optional<double> ofLayers = std::nullopt) {
  theta = object.positive("rope_theta", theta);
  theta = ofLayers.value_or(theta);
  std::string old = object.text("type", "default");
  std::string type = object.text("rope_type", old);
  if (model.family.rotary.sections) {
    // Text has one position on all axes.
    for (StringRef key : {"mrope_section", "mrope_interleaved"})
      object.ignore(key);
    for (std::string *name : {&old, &type})
      if (*name == "mrope")
        *name = "default";
  }
  if (!object.failed() && object.has("type") && type != old)
    object.error("type") << "\"type\" is the old name of \"rope_type\", but they differ: " << old
                         << " and " << type << "; keep one";
  if (object.failed())
    return {};
  bool isLong = type == "su" || type == "yarn" || type == "longrope";
  if (model.family.rotary.onlyLong && isLong)
    type = "longrope";
  if (model.family.rotary.onlyLong && !isLong && type != "default") {
    StringRef key = object.has("rope_type") ? "rope_type" : "type";
    object.error(key) << "\"" << key << "\": rope scaling of " << model.family.name
                      << " is \"longrope\" (\"su\" and \"yarn\" in older "
                      << "files) or \"default\", found \"" << type << "\"";
    return {};
  }
  const auto *known = llvm::find_if(types, [&](const auto &entry) { return entry.name == type; });
  if (known == std::end(types)) {
    StringRef key = object.has("rope_type") ? "rope_type" : "type";
    InFlightDiagnostic diagnostic = object.error(key);
    diagnostic << "\"" << key << "\": rope scaling \"" << type << "\" is not supported; ";
    llvm::interleaveComma(types, diagnostic,
                          [&](const auto &entry) { diagnostic << "\"" << entry.name << "\""; });
    diagnostic << " are (others can be written as train.rope_table in an .mlir file)";
    return {};
  }
  Scaling scaling{object, model, sequence, theta, {plainFrequencies(theta, model.turned), 1.0}};
  known->scale(scaling);
  static const FixedKey whole[] = {
      {"partial_rotary_factor", {"1.0", "null"}, "only a part of each head would turn"}};
  object.finish((model.family.name + " with rope type " + type).str(), {}, whole);
  return scaling.table;
}

/// Reports `again` if it says another value than `key`, which alone is read.
static void checkAgain(Config &config, const Model &m, StringRef again, StringRef key,
                       double value) {
  if (again.empty() || config.positive(again, value) == value)
    return;
  config.error(again) << "\"" << again << "\" is not " << shown(value) << ", but " << m.family.name
                      << " takes that value from \"" << key << "\"; write it there too";
}

/// The number that a list has for all layers with this table, which are of one type; nothing without a list.
static std::optional<double> ofType(Config &config, const Model &m, StringRef key, int table) {
  const llvm::json::Value *value = key.empty() ? nullptr : config.json(key);
  const llvm::json::Array *list = value ? value->getAsArray() : nullptr;
  std::optional<double> common;
  for (size_t i = 0; list && i < std::min(list->size(), m.kinds.size()); ++i) {
    if (m.kinds[i].table != table)
      continue;
    std::optional<double> one = (*list)[i].getAsNumber();
    if (!one || *one <= 0 || common.value_or(*one) != *one) {
      config.error(key) << "\"" << key << "\" must list a number above 0 for each layer, the same for all of one type";
      return std::nullopt;
    }
    common = one;
  }
  return common;
}

/// How many elements of a head turn: the family's part or number of them. `scaling` may say it too.
static int64_t readTurned(Config &config, Config *scaling, const Model &m) {
  const Rotary &rotary = m.family.rotary;
  StringRef ofWidth = rotary.width.name, ofPart = rotary.part.name;
  if (!ofWidth.empty() && ofPart.empty())
    return config.size(ofWidth, rotary.width.otherwise);
  if (!ofWidth.empty() && config.has(ofWidth)) {
    int64_t width = config.size(ofWidth, m.headDim);
    double part = double(width) / double(m.headDim);
    for (Config *object : {&config, scaling})
      if (object && int64_t(double(m.headDim) * object->positive(ofPart, part)) != width)
        object->error(ofPart) << "\"" << ofPart << "\" of heads of " << m.headDim
                              << " elements is not the " << width << " of \"" << ofWidth
                              << "\"; write one of them";
    return width;
  }
  if (auto part = ofType(config, m, rotary.parts, 0))
    return int64_t(double(m.headDim) * *part);
  if (rotary.partOfType > 0 && scaling)
    return int64_t(double(m.headDim) * scaling->positive("partial_rotary_factor", rotary.partOfType));
  if (rotary.part.name.empty())
    return int64_t(double(m.headDim) * rotary.part.otherwise);
  double part = config.positive(rotary.part.name, rotary.part.otherwise);
  checkAgain(config, m, rotary.partAgain, rotary.part.name, part);
  if (scaling)
    part = scaling->positive("partial_rotary_factor", part);
  return int64_t(double(m.headDim) * part);
}

static void checkTurned(Config &config, const Model &m) {
  const Family &f = m.family;
  StringRef head =
      !f.headDim.name.empty() && config.has(f.headDim.name) ? f.headDim.name : f.heads.name;
  if (m.headDim % 2) {
    config.error(head)
        << "\"" << head
        << "\": rotary positions turn pairs, so the size of a head must be even, found "
        << m.headDim;
    return;
  }
  bool byPart = f.rotary.width.name.empty() ||
                (!f.rotary.part.name.empty() && !config.has(f.rotary.width.name));
  StringRef key = byPart ? f.rotary.part.name : f.rotary.width.name;
  if (m.turned % 2 || m.turned < 2 || m.turned > m.headDim)
    config.error(key) << "\"" << key << "\": rotary positions turn pairs, so an even number of the "
                      << m.headDim << " elements of a head must turn, found " << m.turned;
}

/// Of a family whose layer types have angles of their own, transformers 5 reads nothing that stands
/// in "rope_parameters" itself. Says so where that is not what is computed anyway.
static void ignoreFlatParameters(Config &parameters, const Model &m, double theta,
                                 double windowTheta) {
  static const StringRef keys[] = {"rope_type", "type", "rope_theta", "factor",
                                   "original_max_position_embeddings", "attention_factor",
                                   "beta_fast", "beta_slow", "mscale", "mscale_all_dim",
                                   "low_freq_factor", "high_freq_factor", "short_factor",
                                   "long_factor", "truncate", "partial_rotary_factor"};
  bool isFlat = llvm::any_of(keys, [&](StringRef key) { return parameters.has(key); });
  if (!isFlat)
    return;
  std::string type = parameters.text("rope_type", parameters.text("type", "default"));
  double flatTheta = parameters.positive("rope_theta", theta);
  for (StringRef key : keys)
    parameters.ignore(key);
  if (parameters.failed() || (type == "default" && flatTheta == theta && flatTheta == windowTheta))
    return;
  emitRemark(parameters.location("rope_theta"))
      << "note: \"rope_parameters\" of " << m.family.name
      << " has an object for each layer type, and transformers 5 reads nothing else in it: angles "
         "of layers without such an object are plain, with theta "
      << shown(theta) << ", and " << shown(windowTheta)
      << " where there is a window; write what is meant as \"full_attention\": {...}, "
         "\"sliding_attention\": {...}";
}

void meshwright::frontend::readRotary(Config &config, Model &m, int64_t sequence) {
  const Rotary &rotary = m.family.rotary;
  const llvm::json::Value *ofAll = rotary.optional ? config.json(rotary.theta.name) : nullptr;
  if (!rotary.theta.alias.empty())
    config.alias(rotary.theta.name, rotary.theta.alias);
  const llvm::json::Value *listed = rotary.thetaByLayer ? config.json(rotary.theta.name) : nullptr;
  bool isListed = listed && listed->getAsArray();
  double theta = rotary.theta.name.empty() || isListed || (ofAll && ofAll->getAsNull())
                     ? rotary.theta.otherwise
                     : config.positive(rotary.theta.name, rotary.theta.otherwise);
  checkAgain(config, m, rotary.thetaAgain, rotary.theta.name, theta);
  if (!rotary.ratio.name.empty())
    theta *= config.positive(rotary.ratio.name, rotary.ratio.otherwise);
  double windowTheta = rotary.windowTheta.name.empty()
                           ? rotary.windowTheta.otherwise
                           : config.positive(rotary.windowTheta.name, rotary.windowTheta.otherwise);
  if (isListed) {
    theta = ofType(config, m, rotary.theta.name, 0).value_or(theta);
    windowTheta = ofType(config, m, rotary.theta.name, 1).value_or(theta);
  } else if (rotary.thetaByLayer) {
    windowTheta = theta;
  }
  if (!rotary.original.name.empty())
    m.originalPositions = config.optionalSize(rotary.original.name, rotary.original.otherwise);
  std::optional<Config> scaling, parameters;
  if (!rotary.theta.name.empty()) {
    if (config.has("rope_scaling") && config.has("rope_parameters"))
      config.error("rope_parameters")
          << "\"rope_scaling\" and \"rope_parameters\" are two spellings of one thing; keep one";
    scaling = config.object("rope_scaling");
    parameters = config.object("rope_parameters");
  }
  std::optional<Config> windowed;
  if (parameters && rotary.byLayerType) {
    windowed = parameters->object("sliding_attention");
    scaling = parameters->object("full_attention");
    ignoreFlatParameters(*parameters, m, theta, windowTheta);
    parameters->finish(m.family.name, {}, {});
  } else if (parameters) {
    scaling = std::move(parameters);
  } else if (rotary.scalesWindows) {
    windowed = config.object("rope_scaling");
  }
  if (StringRef key = m.family.temperature.ofRotary; !key.empty() && scaling) {
    scaling->ignore("max_position_embeddings"); // repeats the model's
    m.temperature = scaling->optionalPositive(key, std::nullopt).value_or(0);
    int64_t every = scaling->size("original_max_position_embeddings", m.positions);
    m.tempersTurned = true;
    if (m.temperature > 0 && sequence > every && !config.failed())
      useTemperature(*scaling, "original_max_position_embeddings", m, every, sequence);
  }
  const llvm::json::Value *ofObject = rotary.optional && scaling ? scaling->json("rope_theta") : nullptr;
  const llvm::json::Value *said = ofObject ? ofObject : ofAll;
  if (said && said->getAsNull()) {
    if (scaling)
      scaling->finish(m.family.name, {"rope_type", "type"}, {});
    for (LayerKind &kind : m.kinds)
      kind.table = -1;
    m.turned = m.headDim;
    return;
  }
  if (rotary.scalingRequired && !scaling && !config.failed())
    config.error("") << m.family.name << " needs \"rope_scaling\" or \"rope_parameters\": without "
                     << "them transformers scales angles by numbers of its own; write them out";
  m.turned = readTurned(config, scaling ? &*scaling : nullptr, m);
  // What follows compares keys, and one in error stands for no value.
  if (config.failed())
    return;
  checkTurned(config, m);
  if (config.failed())
    return;
  auto table = [&](std::optional<Config> &object, double theta, std::optional<double> ofLayers = std::nullopt) {
    RopeTable &made = m.tables.emplace_back(object ? readTable(*object, m, sequence, theta, ofLayers)
                                                   : RopeTable{plainFrequencies(ofLayers.value_or(theta), m.turned)});
    made.turned = m.turned;
    if (rotary.backwards)
      for (double &frequency : made.frequencies)
        frequency = -frequency;
  };
  // Layers without a window may have other heads.
  int64_t turned = m.turned, fullDim = m.headDim;
  for (const LayerKind &kind : m.kinds)
    if (kind.headDim)
      m.turned = fullDim = kind.headDim;
  for (double ofLayers : m.thetas)
    table(scaling, theta, ofLayers);
  if (m.thetas.empty())
    table(scaling, theta);
  m.turned = turned;
  if (rotary.byLayerType) {
    if (rotary.partOfType > 0) {
      // Without an object of theirs layers with a window have the part that the configuration says, if it does.
      double said = rotary.part.name.empty() ? rotary.windowPart : config.positive(rotary.part.name, rotary.windowPart);
      double part = windowed ? windowed->positive("partial_rotary_factor", rotary.partOfType)
                             : ofType(config, m, rotary.parts, 1).value_or(said);
      m.turned = int64_t(double(m.headDim) * part);
      checkTurned(config, m);
      if (config.failed())
        return;
    }
    table(windowed, windowTheta);
    m.turned = turned;
  }
  // What does not turn has frequency 0.
  for (auto [i, entry] : llvm::enumerate(m.tables))
    entry.frequencies.resize((i ? m.headDim : fullDim) / 2, 0.0);
}
