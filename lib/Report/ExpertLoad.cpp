//===- ExpertLoad.cpp - how evenly tokens choose experts ---------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "MetricsLines.h"
#include "Page.h"
#include "TextTable.h"
#include "meshwright/Report.h"
#include "meshwright/runtime/ExpertPlacement.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

using namespace llvm;

namespace meshwright {

namespace {
/// The load of a layer's experts after a step: tokens as multiples of the layer's mean.
struct Loads {
  double step = 0;
  std::vector<double> experts;
  std::vector<double> tokens; ///< as they were counted

  double least() const { return *std::min_element(experts.begin(), experts.end()); }
  double most() const { return *std::max_element(experts.begin(), experts.end()); }
  int64_t idle() const { return std::count(experts.begin(), experts.end(), 0.0); }
};

/// Of each layer, by its number.
using Layers = std::map<int64_t, std::vector<Loads>>;
} // namespace

/// The counts of one layer; null where a router failed.
static Expected<std::vector<double>> countsOf(const json::Value &value, const Twine &where) {
  const json::Array *list = value.getAsArray();
  std::vector<double> counts;
  if (list)
    for (const json::Value &count : *list) {
      auto number = count.getAsNumber();
      if (!number && count.getAsNull())
        return std::vector<double>();
      if (!number || !(*number >= 0 && *number < 1e18))
        break;
      counts.push_back(*number);
    }
  if (!list || list->empty() || counts.size() != list->size())
    return createStringError(where + " is no list of counts; expected what "
                                     "--expert-tokens-every adds to --metrics");
  return counts;
}

static Expected<Layers> readLoads(StringRef path) {
  Layers layers;
  Error error = report::readMetrics(path, [&](const json::Object &line, size_t number) -> Error {
    const json::Object *all = line.getObject("expert_tokens");
    auto step = line.getNumber("step");
    if (!all || !step)
      return Error::success();
    for (const auto &[key, value] : *all) {
      std::string where =
          ("'" + path + "' line " + Twine(number) + ": expert_tokens of layer '" + StringRef(key) + "'")
              .str();
      int64_t layer = 0;
      if (StringRef(key).getAsInteger(10, layer))
        return createStringError(where + " has no number of a layer");
      Expected<std::vector<double>> counts = countsOf(value, where);
      if (!counts)
        return counts.takeError();
      double mean = std::accumulate(counts->begin(), counts->end(), 0.0) / double(counts->size());
      if (counts->empty() || mean == 0)
        continue;
      std::vector<Loads> &known = layers[layer];
      if (!known.empty() && known.front().experts.size() != counts->size())
        return createStringError(where + " has " + Twine(counts->size()) + " experts, but " +
                                 Twine(known.front().experts.size()) + " before");
      std::vector<double> multiples = *counts;
      for (double &multiple : multiples)
        multiple /= mean;
      known.push_back({*step, std::move(multiples), std::move(*counts)});
    }
    return Error::success();
  });
  if (error)
    return std::move(error);
  if (layers.empty())
    return createStringError("'" + path + "' has no line with expert_tokens; give the executable "
                                          "--expert-tokens-every N beside --metrics");
  return layers;
}

static void drawText(const Layers &layers, raw_ostream &os) {
  os << "tokens of experts, as multiples of their layer's mean\n";
  report::TextTable table({"#layer", "#experts", "#step", "#least", "#most", "#without a token"});
  auto add = [&](int64_t layer, const Loads &loads) {
    table.row({std::to_string(layer), std::to_string(loads.experts.size()),
               formatv("{0:f0}", loads.step), formatv("{0:f2}", loads.least()),
               formatv("{0:f2}", loads.most()), std::to_string(loads.idle())});
  };
  for (const auto &[layer, steps] : layers) {
    add(layer, steps.front());
    if (steps.size() > 1)
      add(layer, steps.back());
  }
  table.print(os);
}

/// White without a token, blue at the mean, and on to orange at twice the mean and above.
static std::string colorOf(double load) {
  auto between = [](std::array<int, 3> a, std::array<int, 3> b, double share) {
    std::array<int, 3> c;
    for (int i = 0; i < 3; ++i)
      c[i] = int(std::lround(a[i] + (b[i] - a[i]) * share));
    return formatv("#{0:x-2}{1:x-2}{2:x-2}", c[0], c[1], c[2]).str();
  };
  // The blue and the orange of Okabe and Ito.
  std::array<int, 3> none = {255, 255, 255}, mean = {0, 114, 178}, twice = {213, 94, 0};
  return load <= 1 ? between(none, mean, load) : between(mean, twice, std::min(load - 1, 1.0));
}

/// A row for each layer, in it a cell for each step and expert.
static void drawSvg(const Layers &layers, raw_ostream &os) {
  constexpr int width = 720, left = 96, right = 24, top = 28, gap = 14, below = 64;
  auto heightOf = [](const Loads &loads) {
    return double(loads.experts.size()) * std::max(2.0, std::min(10.0, 160.0 / double(loads.experts.size())));
  };
  double height = top, first = INFINITY, last = -INFINITY;
  for (const auto &[layer, steps] : layers) {
    height += heightOf(steps.front()) + gap;
    first = std::min(first, steps.front().step);
    last = std::max(last, steps.back().step);
  }
  os << formatv("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1:f0}\" width=\"{0}\" "
                "height=\"{1:f0}\" font-family=\"sans-serif\" font-size=\"12\">\n"
                "<rect width=\"{0}\" height=\"{1:f0}\" fill=\"white\"/>\n"
                "<text x=\"{2}\" y=\"16\">tokens of experts, as multiples of their layer's mean</text>\n",
                width, height + below, left);
  double y = top;
  for (const auto &[layer, steps] : layers) {
    double rows = heightOf(steps.front()), row = rows / double(steps.front().experts.size());
    double column = double(width - left - right) / double(steps.size());
    os << formatv("<text x=\"{0}\" y=\"{1:f1}\" text-anchor=\"end\">layer {2}</text>\n", left - 8,
                  y + rows / 2 + 4, layer);
    for (auto [s, loads] : enumerate(steps))
      for (auto [e, load] : enumerate(loads.experts))
        os << formatv("<rect x=\"{0:f1}\" y=\"{1:f1}\" width=\"{2:f1}\" height=\"{3:f1}\" fill=\"{4}\">"
                      "<title>layer {5}, expert {6}, step {7:f0}: {8:f2}</title></rect>\n",
                      left + double(s) * column, y + double(e) * row, column, row, colorOf(load),
                      layer, e, loads.step, load);
    os << formatv("<rect x=\"{0}\" y=\"{1:f1}\" width=\"{2}\" height=\"{3:f1}\" fill=\"none\" "
                  "stroke=\"#888\"/>\n",
                  left, y, width - left - right, rows);
    y += rows + gap;
  }
  os << formatv("<text x=\"{0}\" y=\"{1:f1}\">step {2:f0}</text>\n"
                "<text x=\"{3}\" y=\"{1:f1}\" text-anchor=\"end\">step {4:f0}</text>\n",
                left, y + 4, first, width - right, last);
  for (int i = 0; i <= 4; ++i) {
    double load = i / 2.0;
    os << formatv("<rect x=\"{0}\" y=\"{1:f1}\" width=\"20\" height=\"12\" fill=\"{2}\" "
                  "stroke=\"#888\"/><text x=\"{3}\" y=\"{4:f1}\">{5:f1}{6}</text>\n",
                  left + i * 72, y + 20, colorOf(load), left + i * 72 + 26, y + 31, load,
                  i == 4 ? " or more" : "");
  }
  os << "</svg>\n";
}

Error plotExperts(StringRef file, StringRef svg, raw_ostream &os) {
  Expected<Layers> layers = readLoads(file);
  if (!layers)
    return layers.takeError();
  drawText(*layers, os);
  return report::writePicture(svg, [&](raw_ostream &picture) { drawSvg(*layers, picture); });
}

Error printPlacement(const plan::Plan &plan, StringRef metrics, raw_ostream &os) {
  PlacementSizes sizes;
  for (const plan::MeshAxis &axis : plan.mesh)
    if (axis.name == "expert")
      sizes.devices = axis.size;
  if (sizes.devices == 1)
    return createStringError("--expert-loads: the plan has no mesh axis expert, along which devices have different experts; "
                             "compile with --mesh expert=N");
  auto input = find_if(plan.inputs, [](const plan::Port &port) { return port.name == expertPlacementInput; });
  bool has = input != plan.inputs.end() && input->shape.size() == 3 && input->shape[1] > 1;
  // What a first slot on each device would be good for is known without it.
  sizes.residues = has ? input->shape[1] - 1 : 16;
  sizes.slots = has ? input->shape[2] : sizes.devices;
  Expected<Layers> layers = readLoads(metrics);
  if (!layers)
    return layers.takeError();
  report::TextTable table({"#layer", "#experts", "#step", "#mean", "#busiest", "#with copies"});
  double before = 0, after = 0, lastStep = 0;
  for (const auto &[layer, steps] : *layers)
    lastStep = std::max(lastStep, steps.back().step);
  for (const auto &[layer, steps] : *layers) {
    const Loads &last = steps.back();
    size_t experts = last.experts.size();
    // A layer whose router failed in that step has no loads there, so the executable gives it no copies.
    PlacementSizes ofLayer = sizes;
    if (last.step < lastStep)
      ofLayer.slots = 0;
    if (experts % size_t(sizes.devices))
      return createStringError("--expert-loads: '" + metrics + "' has loads of " + Twine(experts) + " experts of layer " + Twine(layer) +
                               ", which the plan's " + Twine(sizes.devices) +
                               " devices along axis expert do not divide; give the metrics of a run of this model");
    ExpertPlacement placed = placeExperts(last.tokens, ofLayer);
    auto busiest = [](const std::vector<double> &devices) { return *std::max_element(devices.begin(), devices.end()); };
    double all = std::accumulate(last.tokens.begin(), last.tokens.end(), 0.0);
    before += busiest(placed.before);
    after += busiest(placed.after);
    table.row({std::to_string(layer), std::to_string(experts), formatv("{0:f0}", last.step),
               formatv("{0:f0}", all / double(sizes.devices)),
               formatv("{0:f0}", busiest(placed.before)), formatv("{0:f0}", busiest(placed.after))});
  }
  os << "rows of the busiest of " << sizes.devices << " devices along axis expert, with " << sizes.slots << " slots for copies";
  os << (has ? "\n" : formatv(", as --redundant-experts {0} would give it\n", sizes.slots).str());
  table.print(os);
  os << formatv("copies save {0:f1}% of the rows of the busiest devices\n", 100 * (1 - after / before));
  return Error::success();
}

} // namespace meshwright
