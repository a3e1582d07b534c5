//===- LossCurve.cpp - losses as a curve -------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "MetricsLines.h"
#include "Page.h"
#include "meshwright/Report.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <limits>
#include <map>

using namespace llvm;

namespace meshwright {

namespace {
struct Point {
  double at, value;
};

/// One line of the picture; an evaluation is of the weights after its step.
struct Curve {
  std::string name; ///< of the file, and of the evaluation's set
  bool isEvaluation = false;
  std::vector<Point> points;
  std::vector<Point> means; ///< of the points, where they are smoothed
  const std::vector<Point> &drawn() const { return means.empty() ? points : means; }
};

/// A range with ticks that people read easily: 1, 2 or 5 times a power of ten apart, or, of a logarithmic axis, 1, 2
/// and 5 times each power of ten.
struct Axis {
  double low, high, distance;
  bool logarithmic = false;

  /// Holds [low, high], with about `count` ticks at least `least` apart.
  static Axis around(double low, double high, int count, double least) {
    double wanted = std::max((high - low) / count, least);
    double power = std::pow(10, std::floor(std::log10(wanted)));
    double distance = 10 * power;
    for (double factor : {5, 2, 1})
      if (factor * power >= wanted * (1 - 1e-9))
        distance = factor * power;
    return {low, high, distance};
  }
  /// Ends at ticks.
  Axis rounded() const {
    double from = std::floor(low / distance + 1e-9), to = std::ceil(high / distance - 1e-9);
    return {from * distance, std::max(to, from + 1) * distance, distance};
  }
  /// The values from `low` to `high`, which are above 0.
  static Axis ofPowers(double low, double high) {
    return {low, high > low ? high : 2 * low, 0, true};
  }

  std::vector<double> ticks() const {
    std::vector<double> values;
    if (!logarithmic) {
      for (double i = std::ceil(low / distance - 1e-9); i * distance <= high + 1e-9 * distance; ++i)
        values.push_back(i * distance);
      return values;
    }
    // The power below the smallest numbers is zero, which has no next one.
    double first = std::max(std::pow(10, std::floor(std::log10(low))), std::numeric_limits<double>::min());
    for (double power = first; power <= high; power *= 10)
      for (double factor : {1, 2, 5})
        if (factor * power >= low * (1 - 1e-9) && factor * power <= high * (1 + 1e-9))
          values.push_back(factor * power);
    // A range without any of them has its ends.
    return values.size() > 1 ? values : std::vector<double>{low, high};
  }
  std::string label(double value) const {
    if (std::abs(value) >= 1e6 || (logarithmic && value < 1e-3))
      return formatv("{0}", format("%.4g", value)).str();
    if (logarithmic)
      return formatv("{0}", format("%.5g", value)).str();
    int decimals = std::max(0, -int(std::floor(std::log10(distance) + 1e-9)));
    // Not -0.
    return formatv("{0}", format("%.*f", decimals, value == 0 ? 0.0 : value)).str();
  }
  double share(double value) const {
    auto scale = [&](double number) { return logarithmic ? std::log(number) : number; };
    return high > low ? (scale(value) - scale(low)) / (scale(high) - scale(low)) : 0;
  }
};

struct Axes {
  Axis across, up;
  std::string acrossTitle, upTitle;
};
} // namespace

/// "loss (nats per token)", "lr": what is drawn.
static std::string titleOf(const LossPlot &plot) {
  return plot.metric == "loss" ? "loss (nats per token)" : plot.metric;
}

static std::string acrossTitleOf(const LossPlot &plot) {
  if (plot.overTokens)
    return "tokens";
  return plot.logSteps ? "steps made" : "step (counted from 0)";
}

/// The mean of each point and those up to `count - 1` before it.
static std::vector<Point> smoothed(ArrayRef<Point> points, int64_t count) {
  std::vector<Point> means;
  double sum = 0;
  for (auto [i, point] : enumerate(points)) {
    sum += point.value;
    if (int64_t(i) >= count)
      sum -= points[i - count].value;
    means.push_back({point.at, sum / double(std::min<int64_t>(i + 1, count))});
  }
  return means;
}

/// Training first, then the evaluations by the names of their sets.
static Expected<std::vector<Curve>> readCurves(StringRef path, const LossPlot &plot) {
  std::string name = sys::path::stem(path).str();
  Curve training{name, false, {}, {}};
  std::map<std::string, Curve> evaluations;
  Error error = report::readMetrics(path, [&](const json::Object &line, size_t number) -> Error {
    auto step = line.getNumber("step"), tokens = line.getNumber("tokens");
    // An evaluation without a step says how many steps were made.
    if (auto made = line.getNumber("steps"))
      step = *made - 1;
    if (!step)
      return Error::success();
    if (plot.overTokens && !tokens)
      return createStringError("'" + path + "' line " + Twine(number) + " does not say \"tokens\": it is of an earlier "
                               "version; draw it over steps");
    double at = plot.overTokens ? *tokens : plot.logSteps ? *step + 1 : *step;
    // On a logarithmic axis there is no place for what is before the first step, such as an evaluation of
    // untrained weights.
    if (!std::isfinite(at) || (plot.logSteps && at < 1))
      return Error::success();
    if (auto value = line.getNumber(plot.metric); value && std::isfinite(*value))
      training.points.push_back({at, *value});
    for (const auto &[key, value] : line)
      if (StringRef set = key; plot.metric == "loss" && set.consume_front("eval_loss") && (set.empty() || set.consume_front("/")))
        if (auto loss = value.getAsNumber(); loss && std::isfinite(*loss)) {
          std::string label = set.empty() ? "evaluation" : "evaluation of " + set.str();
          Curve &curve = evaluations.try_emplace(label, Curve{name + ": " + label, true, {}, {}}).first->second;
          curve.points.push_back({at, *loss});
        }
    return Error::success();
  });
  if (error)
    return std::move(error);
  std::vector<Curve> curves;
  if (!training.points.empty())
    curves.push_back(std::move(training));
  for (auto &[label, curve] : evaluations)
    curves.push_back(std::move(curve));
  if (curves.empty())
    return createStringError("'" + path + "' has no line with a step and a " + plot.metric);
  for (Curve &curve : curves)
    if (plot.smooth > 1 && !curve.isEvaluation)
      curve.means = smoothed(curve.points, plot.smooth);
  return curves;
}

static Expected<Axes> axesOf(ArrayRef<Curve> curves, const LossPlot &plot) {
  double first = INFINITY, last = -INFINITY, low = INFINITY, high = -INFINITY;
  for (const Curve &curve : curves)
    for (const Point &point : curve.drawn()) {
      first = std::min(first, point.at);
      last = std::max(last, point.at);
      low = std::min(low, point.value);
      high = std::max(high, point.value);
    }
  Axis across = Axis::around(first, last, 6, 1);
  // The last tick where that costs little room.
  if (double tick = std::ceil(last / across.distance) * across.distance;
      tick - last <= (last - first) / 10)
    across.high = tick;
  Axis up = Axis::around(low, high, 6, high > low ? 1e-9 : 0.1).rounded();
  if (plot.logSteps)
    across = Axis::ofPowers(std::max(first, 1.0), std::max(last, 1.0));
  if (plot.logValues) {
    if (low <= 0)
      return createStringError(formatv("--log-y: a {0} of {1} has no logarithm: draw it without", plot.metric, low));
    up = Axis::ofPowers(low, high);
  }
  return Axes{across, up, acrossTitleOf(plot), titleOf(plot)};
}

/// "loss 5.5155 -> 2.3059", of what is drawn.
static std::string course(const Curve &curve, const LossPlot &plot) {
  ArrayRef<Point> points = curve.drawn();
  auto number = [&](double value) {
    return plot.metric == "loss" ? formatv("{0:f4}", value).str() : formatv("{0}", format("%.4g", value)).str();
  };
  std::string text = plot.metric + " " + number(points.front().value);
  return points.size() == 1 ? text : text + " -> " + number(points.back().value);
}

static std::string legend(const Curve &curve, const LossPlot &plot) {
  return curve.name + (curve.isEvaluation ? " " : ": ") + course(curve, plot) +
         (curve.means.empty() ? "" : formatv(" (means of {0})", plot.smooth).str());
}

/// One character per curve on a grid of rows and columns; evaluations have letters.
static void drawText(ArrayRef<Curve> curves, const Axes &axes, const LossPlot &plot, raw_ostream &os) {
  constexpr int rows = 17, columns = 64;
  constexpr StringLiteral marks = "*o+x#@", letters = "ABCDEF";
  std::vector<std::string> grid(rows, std::string(columns, ' '));
  auto column = [&](double at) { return std::lround(axes.across.share(at) * (columns - 1)); };
  auto row = [&](double value) { return std::lround((1 - axes.up.share(value)) * (rows - 1)); };
  std::vector<char> signs;
  size_t trainings = 0, evaluations = 0;
  for (const Curve &curve : curves)
    signs.push_back(curve.isEvaluation ? letters[evaluations++ % letters.size()] : marks[trainings++ % marks.size()]);
  for (bool evaluation : {false, true})
    for (auto [curve, sign] : zip_equal(curves, signs))
      for (const Point &point : curve.drawn())
        if (curve.isEvaluation == evaluation)
          grid[row(point.value)][column(point.at)] = sign;

  std::vector<std::string> labels(rows);
  for (double value : axes.up.ticks())
    labels[row(value)] = axes.up.label(value);
  os << axes.upTitle << "\n";
  for (auto [label, line] : zip_equal(labels, grid))
    os << formatv("{0,8} |{1}\n", label, StringRef(line).rtrim());
  std::string line(columns, '-'), below(columns + 12, ' ');
  size_t end = 0;
  for (double tick : axes.across.ticks()) {
    size_t at = column(tick);
    std::string label = axes.across.label(tick);
    line[at] = '+';
    // Where it does not touch the one before.
    size_t begin = at < label.size() / 2 ? 0 : at - label.size() / 2;
    if (end && begin <= end)
      continue;
    below.replace(begin, label.size(), label);
    end = begin + label.size();
  }
  os << "         +" << line << "\n          " << StringRef(below).rtrim() << "\n";
  os << std::string(10 + (columns - axes.acrossTitle.size()) / 2, ' ') << axes.acrossTitle << "\n";
  for (auto [curve, sign] : zip_equal(curves, signs))
    os << formatv("  {0} {1}\n", sign, legend(curve, plot));
}

static void drawSvg(ArrayRef<Curve> curves, const Axes &axes, const LossPlot &plot, raw_ostream &os) {
  constexpr int width = 720, left = 64, top = 16, right = 24, height = 300, row = 20;
  // Okabe and Ito's.
  constexpr StringLiteral colors[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00"};
  constexpr int bottom = top + height, legendTop = bottom + 56;
  os << formatv("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
                "height=\"{1}\" "
                "font-family=\"sans-serif\" font-size=\"12\">\n"
                "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
                width, legendTop + row * int(curves.size()));
  auto x = [&](double at) { return left + axes.across.share(at) * (width - left - right); };
  auto y = [&](double value) { return bottom - axes.up.share(value) * height; };
  for (double value : axes.up.ticks())
    os << formatv("<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:f1}\" y2=\"{2:f1}\" stroke=\"#ddd\"/>"
                  "<text x=\"{3}\" y=\"{4:f1}\" text-anchor=\"end\">{5}</text>\n",
                  left, width - right, y(value), left - 8, y(value) + 4, axes.up.label(value));
  for (double at : axes.across.ticks())
    os << formatv("<line x1=\"{0:f1}\" x2=\"{0:f1}\" y1=\"{1}\" y2=\"{2}\" stroke=\"#888\"/>"
                  "<text x=\"{0:f1}\" y=\"{3}\" text-anchor=\"middle\">{4}</text>\n",
                  x(at), bottom, bottom + 5, bottom + 19, axes.across.label(at));
  os << formatv("<text x=\"{0}\" y=\"{1}\" text-anchor=\"middle\">{2}</text>\n",
                (left + width - right) / 2, bottom + 38, axes.acrossTitle);
  os << formatv(
      "<text transform=\"translate(16 {0}) rotate(-90)\" text-anchor=\"middle\">{1}</text>\n",
      top + height / 2, report::escaped(axes.upTitle));
  auto polyline = [&](ArrayRef<Point> points, StringRef style) {
    os << "<polyline " << style << " points=\"";
    // What lies beyond the axes of the means is drawn at their edge.
    for (const Point &point : points)
      os << formatv("{0:f1},{1:f1} ", x(point.at), y(std::min(std::max(point.value, axes.up.low), axes.up.high)));
    os << "\"/>\n";
  };
  // A file has one color; evaluations come after what they are of.
  int colored = -1;
  for (auto [entry, curve] : enumerate(curves)) {
    colored += !curve.isEvaluation || colored < 0;
    StringRef color = colors[colored % std::size(colors)];
    std::string line = formatv("fill=\"none\" stroke=\"{0}\" stroke-width=\"{1}\"{2}", color,
                               curve.isEvaluation ? 2 : 1.5, curve.isEvaluation ? " stroke-dasharray=\"6 4\"" : "");
    if (!curve.means.empty())
      polyline(curve.points, formatv("fill=\"none\" stroke=\"{0}\" stroke-width=\"1\" opacity=\"0.25\"", color).str());
    polyline(curve.drawn(), line);
    auto dot = [&](double cx, double cy) {
      os << formatv("<circle cx=\"{0:f1}\" cy=\"{1:f1}\" r=\"3.5\" fill=\"white\" stroke=\"{2}\" "
                    "stroke-width=\"2\"/>\n",
                    cx, cy, color);
    };
    for (const Point &point : curve.drawn())
      if (curve.isEvaluation || curve.points.size() == 1)
        dot(x(point.at), y(point.value));
    int at = legendTop + row * int(entry);
    os << formatv("<line x1=\"{0}\" x2=\"{1}\" y1=\"{2}\" y2=\"{2}\" {3}/>\n", left, left + 32, at,
                  line);
    if (curve.isEvaluation)
      dot(left + 16, at);
    os << formatv("<text x=\"{0}\" y=\"{1}\">{2}</text>\n", left + 42, at + 4,
                  report::escaped(legend(curve, plot)));
  }
  os << "</svg>\n";
}

Error plotLosses(const LossPlot &plot, raw_ostream &os) {
  std::vector<Curve> curves;
  for (const std::string &file : plot.files) {
    Expected<std::vector<Curve>> read = readCurves(file, plot);
    if (!read)
      return read.takeError();
    // Files of one name in several folders.
    StringRef stem = sys::path::stem(file);
    bool isAmbiguous = count_if(plot.files, [&](StringRef other) { return sys::path::stem(other) == stem; }) > 1;
    for (Curve &curve : *read) {
      if (isAmbiguous)
        curve.name.replace(0, stem.size(), file);
      curves.push_back(std::move(curve));
    }
  }
  Expected<Axes> axes = axesOf(curves, plot);
  if (!axes)
    return axes.takeError();
  drawText(curves, *axes, plot, os);
  return report::writePicture(plot.svg, [&](raw_ostream &file) { drawSvg(curves, *axes, plot, file); });
}

} // namespace meshwright
