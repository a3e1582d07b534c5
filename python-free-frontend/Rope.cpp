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
#include "Rope.h"

#include <cmath>

using namespace mlir;
using namespace meshwright::frontend;

static constexpr double pi = 3.14159265358979323846;

/// theta^(-2i/headDim) for i below headDim/2.
static SmallVector<double> plainFrequencies(double theta, int64_t headDim) {
  SmallVector<double> frequencies;
  for (int64_t i = 0; i < headDim; i += 2)
    frequencies.push_back(1.0 / std::pow(theta, double(i) / double(headDim)));
  return frequencies;
}

/// Llama 3.1's scaling: long waves are divided by `factor`, short ones kept, those
/// between blended.
static void scaleLlama3(SmallVector<double> &frequencies, double factor, double lowFactor,
                        double highFactor, double originalPositions) {
  for (double &frequency : frequencies) {
    double wave = 2 * pi / frequency;
    if (wave > originalPositions / lowFactor) {
      frequency /= factor;
    } else if (wave >= originalPositions / highFactor) {
      double smooth = (originalPositions / wave - lowFactor) / (highFactor - lowFactor);
      frequency = (1 - smooth) * frequency / factor + smooth * frequency;
    }
  }
}

SmallVector<double> meshwright::frontend::readRopeFrequencies(Config &config, StringRef family,
                                                              int64_t headDim) {
  double theta = config.positive("rope_theta", 10000.0);
  if (config.has("rope_scaling") && config.has("rope_parameters"))
    config.error("rope_parameters")
        << "\"rope_scaling\" and \"rope_parameters\" are two spellings of one thing; keep one";
  std::optional<Config> scaling = config.object("rope_scaling");
  std::optional<Config> parameters = config.object("rope_parameters");
  if (!scaling)
    scaling = std::move(parameters);
  // What follows compares keys, and one in error stands for no value.
  if (config.failed())
    return {};
  if (headDim % 2) {
    StringRef key = config.has("head_dim") ? "head_dim" : "num_attention_heads";
    config.error(key)
        << "\"" << key
        << "\": rotary positions turn pairs, so the size of a head must be even, found " << headDim;
    return {};
  }
  SmallVector<double> frequencies;
  if (!scaling) {
    frequencies = plainFrequencies(theta, headDim);
  } else {
    theta = scaling->positive("rope_theta", theta);
    std::string old = scaling->text("type", "default");
    std::string type = scaling->text("rope_type", old);
    if (!config.failed() && scaling->has("type") && type != old)
      scaling->error("type") << "\"type\" is the old name of \"rope_type\", but they differ: "
                             << old << " and " << type << "; keep one";
    if (config.failed())
      return {};
    frequencies = plainFrequencies(theta, headDim);
    static const FixedKey whole[] = {
        {"partial_rotary_factor", {"1.0", "null"}, "only a part of each head would turn"}};
    if (type == "linear") {
      double factor = scaling->positive("factor", 1.0);
      if (!config.failed() && !scaling->has("factor"))
        scaling->error("rope_type") << "linear rope scaling needs a \"factor\"";
      for (double &frequency : frequencies)
        frequency /= factor;
    } else if (type == "llama3") {
      double factor = scaling->positive("factor", 1.0);
      double low = scaling->positive("low_freq_factor", 1.0);
      double high = scaling->positive("high_freq_factor", 4.0);
      // transformers 4 has no default for it. Version 5 takes max_position_embeddings,
      // the length after scaling, which no model was trained with before.
      double original = scaling->size("original_max_position_embeddings", 8192);
      if (config.failed())
        return {};
      for (StringRef key :
           {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"})
        if (!scaling->has(key))
          scaling->error("rope_type") << "llama3 rope scaling needs \"" << key << "\"";
      if (high <= low)
        scaling->error("high_freq_factor")
            << "\"high_freq_factor\" must be above \"low_freq_factor\", found " << high << " and "
            << low;
      scaleLlama3(frequencies, factor, low, high, original);
    } else if (type != "default") {
      StringRef key = scaling->has("rope_type") ? "rope_type" : "type";
      scaling->error(key)
          << "\"" << key << "\": rope scaling \"" << type
          << "\" is not supported; \"default\", \"linear\" and \"llama3\" are (others can be "
             "written as train.rope_table in an .mlir file)";
      return {};
    }
    scaling->finish((family + " with rope type " + type).str(), {}, whole);
  }
  if (config.failed())
    return {};
  return frequencies;
}
