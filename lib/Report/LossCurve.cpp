//===- LossCurve.cpp - losses as a curve -------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/Json.h"
#include "meshwright/Report.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace llvm;

namespace meshwright {

namespace {
struct Series {
  std::string name;
  std::vector<double> steps, losses;
};
struct Bounds {
  double firstStep = 0, lastStep = 0, low = INFINITY, high = -INFINITY;
};
} // namespace

static Expected<Series> readSeries(StringRef path) {
  auto buffer = MemoryBuffer::getFile(path);
  if (!buffer)
    return createStringError("cannot read '" + path + "': " + buffer.getError().message());
  Series series{sys::path::stem(path).str(), {}, {}};
  SmallVector<StringRef> lines;
  (*buffer)->getBuffer().split(lines, '\n', -1, false);
  for (auto [i, line] : enumerate(lines)) {
    Expected<json::Value> value = parseJson(line);
    const json::Object *object = value ? value->getAsObject() : nullptr;
    if (!object) {
      if (!value)
        consumeError(value.takeError());
      return createStringError("'" + path + "' line " + Twine(i + 1) +
                               " is not a JSON object; expected a file written by --metrics");
    }
    auto step = object->getNumber("step"), loss = object->getNumber("loss");
    if (step && loss) {
      series.steps.push_back(*step);
      series.losses.push_back(*loss);
    }
  }
  if (series.steps.empty())
    return createStringError("'" + path + "' has no line with a step and a loss");
  return series;
}

static Bounds boundsOf(ArrayRef<Series> all) {
  Bounds bounds;
  bounds.firstStep = all[0].steps.front();
  for (const Series &series : all) {
    bounds.firstStep = std::min(bounds.firstStep, series.steps.front());
    bounds.lastStep = std::max(bounds.lastStep, series.steps.back());
    for (double loss : series.losses) {
      bounds.low = std::min(bounds.low, loss);
      bounds.high = std::max(bounds.high, loss);
    }
  }
  if (bounds.high == bounds.low)
    bounds.high = bounds.low + 1;
  return bounds;
}

/// One character per series on a grid of rows and columns.
static void drawText(ArrayRef<Series> all, const Bounds &b, raw_ostream &os) {
  constexpr int rows = 16, columns = 64;
  constexpr StringLiteral marks = "*o+x#@";
  std::vector<std::string> grid(rows, std::string(columns, ' '));
  for (auto [s, series] : enumerate(all))
    for (auto [step, loss] : zip(series.steps, series.losses)) {
      double x = b.lastStep > b.firstStep ? (step - b.firstStep) / (b.lastStep - b.firstStep) : 0;
      double y = (b.high - loss) / (b.high - b.low);
      grid[std::lround(y * (rows - 1))][std::lround(x * (columns - 1))] = marks[s % marks.size()];
    }
  for (auto [r, row] : enumerate(grid))
    os << formatv("{0,8:f3} |{1}\n", b.high - (b.high - b.low) * r / (rows - 1), row);
  os << "         +" << std::string(columns, '-') << "\n";
  os << formatv("          {0,-10}{1,54}\n", b.firstStep, formatv("step {0}", b.lastStep).str());
  for (auto [s, series] : enumerate(all))
    os << formatv("  {0} {1}: loss {2:f4} -> {3:f4}\n", marks[s % marks.size()], series.name,
                  series.losses.front(), series.losses.back());
}

static void drawSvg(ArrayRef<Series> all, const Bounds &b, raw_ostream &os) {
  constexpr int width = 720, height = 360, left = 60, bottom = 40, top = 20, right = 20;
  constexpr StringLiteral colors[] = {"#1f6feb", "#d1242f", "#1a7f37", "#9a6700", "#8250df"};
  os << formatv("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" "
                "font-family=\"sans-serif\" "
                "font-size=\"12\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
                width, height);
  auto x = [&](double step) {
    double span = std::max(1.0, b.lastStep - b.firstStep);
    return left + (step - b.firstStep) / span * (width - left - right);
  };
  auto y = [&](double loss) {
    return top + (b.high - loss) / (b.high - b.low) * (height - top - bottom);
  };
  for (int i = 0; i <= 4; ++i) {
    double loss = b.low + (b.high - b.low) * i / 4;
    os << formatv("<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:f1}\" y2=\"{2:f1}\" stroke=\"#ddd\"/>"
                  "<text x=\"{3}\" y=\"{4:f1}\" text-anchor=\"end\">{5:f2}</text>\n",
                  left, width - right, y(loss), left - 6, y(loss) + 4, loss);
  }
  os << formatv("<text x=\"{0}\" y=\"{1}\">step {2}</text><text x=\"{3}\" y=\"{1}\" "
                "text-anchor=\"end\">step {4}</text>\n",
                left, height - 14, b.firstStep, width - right, b.lastStep);
  for (auto [s, series] : enumerate(all)) {
    StringRef color = colors[s % std::size(colors)];
    os << "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"" << color << "\" points=\"";
    for (auto [step, loss] : zip(series.steps, series.losses))
      os << formatv("{0:f1},{1:f1} ", x(step), y(loss));
    os << "\"/>\n";
    os << formatv("<text x=\"{0}\" y=\"{1}\" text-anchor=\"end\" fill=\"{2}\">{3}</text>\n",
                  width - right - 6, top + 14 + 16 * s, color, series.name);
  }
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
  Bounds bounds = boundsOf(all);
  drawText(all, bounds, os);
  if (svg.empty())
    return Error::success();
  std::error_code error;
  raw_fd_ostream file(svg, error);
  if (!error) {
    drawSvg(all, bounds, file);
    file.flush();
    error = file.error();
    file.clear_error();
  }
  if (error)
    return createStringError("cannot write '" + svg + "': " + error.message());
  return Error::success();
}

} // namespace meshwright
