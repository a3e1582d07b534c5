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

using namespace llvm;

namespace meshwright {

namespace {
struct Point {
  double step, loss;
};

/// What one file says; an evaluation is of the weights after its step.
struct Series {
  std::string name;
  std::vector<Point> training, evaluation;
};

/// A range with ticks that people read easily: 1, 2 or 5 times a power of ten apart.
struct Axis {
  double low, high, distance;

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
  std::vector<double> ticks() const {
    std::vector<double> values;
    for (double i = std::ceil(low / distance - 1e-9); i * distance <= high + 1e-9 * distance; ++i)
      values.push_back(i * distance);
    return values;
  }
  std::string label(double value) const {
    int decimals = std::max(0, -int(std::floor(std::log10(distance) + 1e-9)));
    // Not -0.
    return formatv("{0}", format("%.*f", decimals, value == 0 ? 0.0 : value)).str();
  }
  double share(double value) const { return high > low ? (value - low) / (high - low) : 0; }
};

struct Axes {
  Axis steps, losses;
};
} // namespace

static constexpr StringLiteral lossTitle = "loss (nats per token)",
                               stepTitle = "step (counted from 0)";

static Expected<Series> readSeries(StringRef path) {
  Series series{sys::path::stem(path).str(), {}, {}};
  Error error = report::readMetrics(path, [&](const json::Object &line, size_t) {
    auto step = line.getNumber("step"), loss = line.getNumber("loss"),
         evaluated = line.getNumber("eval_loss");
    // An evaluation without a step says how many steps were made.
    if (auto made = line.getNumber("steps"))
      step = *made - 1;
    if (step && loss)
      series.training.push_back({*step, *loss});
    if (step && evaluated)
      series.evaluation.push_back({*step, *evaluated});
    return Error::success();
  });
  if (error)
    return std::move(error);
  if (series.training.empty() && series.evaluation.empty())
    return createStringError("'" + path + "' has no line with a step and a loss");
  return series;
}

static Axes axesOf(ArrayRef<Series> all) {
  double first = INFINITY, last = -INFINITY, low = INFINITY, high = -INFINITY;
  for (const Series &series : all)
    for (const std::vector<Point> *points : {&series.training, &series.evaluation})
      for (const Point &point : *points) {
        first = std::min(first, point.step);
        last = std::max(last, point.step);
        low = std::min(low, point.loss);
        high = std::max(high, point.loss);
      }
  Axis steps = Axis::around(first, last, 6, 1);
  // The last tick where that costs little room.
  if (double tick = std::ceil(last / steps.distance) * steps.distance;
      tick - last <= (last - first) / 10)
    steps.high = tick;
  return {steps, Axis::around(low, high, 6, high > low ? 1e-9 : 0.1).rounded()};
}

/// "loss 5.5155 -> 2.3059".
static std::string course(ArrayRef<Point> points) {
  std::string text = formatv("loss {0:f4}", points.front().loss).str();
  return points.size() == 1 ? text : text + formatv(" -> {0:f4}", points.back().loss).str();
}

/// One character per series on a grid of rows and columns; evaluations have letters.
static void drawText(ArrayRef<Series> all, const Axes &axes, raw_ostream &os) {
  constexpr int rows = 17, columns = 64;
  constexpr StringLiteral marks = "*o+x#@", letters = "ABCDEF";
  std::vector<std::string> grid(rows, std::string(columns, ' '));
  auto column = [&](double step) { return std::lround(axes.steps.share(step) * (columns - 1)); };
  auto row = [&](double loss) { return std::lround((1 - axes.losses.share(loss)) * (rows - 1)); };
  auto draw = [&](ArrayRef<Point> points, char mark) {
    for (const Point &point : points)
      grid[row(point.loss)][column(point.step)] = mark;
  };
  for (auto [s, series] : enumerate(all))
    draw(series.training, marks[s % marks.size()]);
  for (auto [s, series] : enumerate(all))
    draw(series.evaluation, letters[s % letters.size()]);

  std::vector<std::string> labels(rows);
  for (double loss : axes.losses.ticks())
    labels[row(loss)] = axes.losses.label(loss);
  os << lossTitle << "\n";
  for (auto [label, line] : zip_equal(labels, grid))
    os << formatv("{0,8} |{1}\n", label, StringRef(line).rtrim());
  std::string line(columns, '-'), below(columns + 12, ' ');
  size_t end = 0;
  for (double step : axes.steps.ticks()) {
    size_t at = column(step);
    std::string label = axes.steps.label(step);
    line[at] = '+';
    // Where it does not touch the one before.
    size_t begin = at < label.size() / 2 ? 0 : at - label.size() / 2;
    if (end && begin <= end)
      continue;
    below.replace(begin, label.size(), label);
    end = begin + label.size();
  }
  os << "         +" << line << "\n          " << StringRef(below).rtrim() << "\n";
  os << std::string(10 + (columns - stepTitle.size()) / 2, ' ') << stepTitle << "\n";
  for (auto [s, series] : enumerate(all)) {
    if (!series.training.empty())
      os << formatv("  {0} {1}: {2}\n", marks[s % marks.size()], series.name,
                    course(series.training));
    if (!series.evaluation.empty())
      os << formatv("  {0} {1}: evaluation {2}\n", letters[s % letters.size()], series.name,
                    course(series.evaluation));
  }
}

static void drawSvg(ArrayRef<Series> all, const Axes &axes, raw_ostream &os) {
  constexpr int width = 720, left = 64, top = 16, right = 24, plot = 300, row = 20;
  // Okabe and Ito's.
  constexpr StringLiteral colors[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00"};
  int entries = 0;
  for (const Series &series : all)
    entries += !series.training.empty() + !series.evaluation.empty();
  constexpr int bottom = top + plot, legend = bottom + 56;
  os << formatv("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
                "height=\"{1}\" "
                "font-family=\"sans-serif\" font-size=\"12\">\n"
                "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
                width, legend + row * entries);
  auto x = [&](double step) { return left + axes.steps.share(step) * (width - left - right); };
  auto y = [&](double loss) { return bottom - axes.losses.share(loss) * plot; };
  for (double loss : axes.losses.ticks())
    os << formatv("<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:f1}\" y2=\"{2:f1}\" stroke=\"#ddd\"/>"
                  "<text x=\"{3}\" y=\"{4:f1}\" text-anchor=\"end\">{5}</text>\n",
                  left, width - right, y(loss), left - 8, y(loss) + 4, axes.losses.label(loss));
  for (double step : axes.steps.ticks())
    os << formatv("<line x1=\"{0:f1}\" x2=\"{0:f1}\" y1=\"{1}\" y2=\"{2}\" stroke=\"#888\"/>"
                  "<text x=\"{0:f1}\" y=\"{3}\" text-anchor=\"middle\">{4}</text>\n",
                  x(step), bottom, bottom + 5, bottom + 19, axes.steps.label(step));
  os << formatv("<text x=\"{0}\" y=\"{1}\" text-anchor=\"middle\">{2}</text>\n",
                (left + width - right) / 2, bottom + 38, stepTitle);
  os << formatv(
      "<text transform=\"translate(16 {0}) rotate(-90)\" text-anchor=\"middle\">{1}</text>\n",
      top + plot / 2, lossTitle);
  int entry = 0;
  auto draw = [&](ArrayRef<Point> points, StringRef color, bool evaluation, const Twine &name) {
    if (points.empty())
      return;
    std::string line = formatv("fill=\"none\" stroke=\"{0}\" stroke-width=\"{1}\"{2}", color,
                               evaluation ? 2 : 1.5, evaluation ? " stroke-dasharray=\"6 4\"" : "");
    os << "<polyline " << line << " points=\"";
    for (const Point &point : points)
      os << formatv("{0:f1},{1:f1} ", x(point.step), y(point.loss));
    os << "\"/>\n";
    auto dot = [&](double cx, double cy) {
      os << formatv("<circle cx=\"{0:f1}\" cy=\"{1:f1}\" r=\"3.5\" fill=\"white\" stroke=\"{2}\" "
                    "stroke-width=\"2\"/>\n",
                    cx, cy, color);
    };
    for (const Point &point : points)
      if (evaluation || points.size() == 1)
        dot(x(point.step), y(point.loss));
    int at = legend + row * entry++;
    os << formatv("<line x1=\"{0}\" x2=\"{1}\" y1=\"{2}\" y2=\"{2}\" {3}/>\n", left, left + 32, at,
                  line);
    if (evaluation)
      dot(left + 16, at);
    os << formatv("<text x=\"{0}\" y=\"{1}\">{2}: {3}</text>\n", left + 42, at + 4,
                  report::escaped(name.str()), report::escaped(course(points)));
  };
  for (auto [s, series] : enumerate(all))
    draw(series.training, colors[s % std::size(colors)], false, series.name);
  for (auto [s, series] : enumerate(all))
    draw(series.evaluation, colors[s % std::size(colors)], true, series.name + ", evaluation");
  os << "</svg>\n";
}

Error plotLosses(ArrayRef<std::string> files, StringRef svg, raw_ostream &os) {
  std::vector<Series> all;
  for (const std::string &file : files) {
    Expected<Series> series = readSeries(file);
    if (!series)
      return series.takeError();
    all.push_back(std::move(*series));
  }
  // Files of one name in several folders.
  for (auto [i, series] : enumerate(all))
    if (count_if(files, [&](StringRef file) {
          return sys::path::stem(file) == sys::path::stem(files[i]);
        }) > 1)
      series.name = files[i];
  Axes axes = axesOf(all);
  drawText(all, axes, os);
  return report::writePicture(svg, [&](raw_ostream &file) { drawSvg(all, axes, file); });
}

} // namespace meshwright
