//===- MemoryPicture.cpp - memory over time, drawn ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "MemoryTables.h"
#include "Palette.h"
#include "TextTable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace llvm;

namespace meshwright::report {

namespace {
/// What is drawn as one area: categories whose names come in one class of the palette.
struct Area {
  StringRef style, name;
  SmallVector<StringRef, 2> categories;
};

struct Sample {
  int64_t op;
  SmallVector<double> tops; ///< of the areas, one upon the other
};
} // namespace

/// From below; what outlives a step first.
static ArrayRef<Area> areas() {
  static const Area all[] = {{"parameter", "parameters", {"parameter"}},
                             {"optimizer", "optimizer states", {"optimizer"}},
                             {"other", "inputs, outputs", {"input", "output"}},
                             {"gradient", "gradients", {"gradient"}},
                             {"activation", "activations", {"activation"}},
                             {"temporary", "temporary", {"temporary"}},
                             {"workspace", "workspace, messages", {"workspace"}}};
  return all;
}

static Sample sampleOf(const MemoryOverTime::Point &point) {
  Sample sample{point.op, {}};
  double top = 0;
  for (const Area &area : areas()) {
    for (StringRef category : area.categories)
      if (auto live = point.live.find(category.str()); live != point.live.end())
        top += double(live->second);
    sample.tops.push_back(top);
  }
  return sample;
}

/// "24 MiB", without the zeros of "24.0 MiB".
static std::string roundText(double bytes) {
  std::string text = sizeText(bytes);
  auto [number, unit] = StringRef(text).split(' ');
  if (number.contains('.'))
    number = number.rtrim('0').rtrim('.');
  return (number + " " + unit).str();
}

void drawMemorySvg(const MemoryOverTime &entry, int64_t arenaBytes, raw_ostream &os) {
  constexpr int left = 76, top = 24, width = 780, height = 240;
  double ops = double(std::max<int64_t>(1, entry.ops));
  double most = std::max({1.0, double(arenaBytes), double(entry.peakBytes)});
  auto x = [&](double op) { return left + width * op / ops; };
  auto y = [&](double bytes) { return top + height * (1 - bytes / most); };
  int bottom = top + height;

  // Of what falls on one pixel the most is drawn.
  std::vector<Sample> samples;
  for (const MemoryOverTime::Point &point : entry.points) {
    Sample sample = sampleOf(point);
    if (samples.empty() || std::floor(x(double(sample.op))) > std::floor(x(double(samples.back().op))))
      samples.push_back(std::move(sample));
    else if (sample.tops.back() >= samples.back().tops.back())
      samples.back().tops = sample.tops;
  }

  os << formatv("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
                "role=\"img\" class=\"memory\" font-family=\"sans-serif\" font-size=\"11\">\n",
                left + width + 20, bottom + 60);
  os << "<style>\n" << pictureStyle << "</style>\n";
  // Ticks at multiples of a power of two, at most eight.
  double distance = 1;
  while (most / distance > 8)
    distance *= 2;
  for (double bytes = 0; bytes <= most; bytes += distance)
    os << formatv("<text x=\"{0}\" y=\"{1:f1}\" text-anchor=\"end\">{2}</text>\n", left - 8,
                  y(bytes) + 4, bytes > 0 ? roundText(bytes) : "0");
  // From the highest down, each covering all below its top: what is beneath is drawn over it. Steps
  // are in pixels from one to the next, and those that change nothing are none.
  auto pixel = [](double at) { return int64_t(std::lround(at)); };
  for (size_t i = areas().size(); i-- > 0;) {
    const Area &area = areas()[i];
    auto below = [&](const Sample &sample) { return i ? sample.tops[i - 1] : 0.0; };
    if (none_of(samples, [&](const Sample &s) { return s.tops[i] > below(s); }))
      continue;
    int64_t atX = pixel(x(double(samples.front().op))), atY = bottom, startX = atX;
    std::string path = formatv("M{0} {1}", atX, bottom);
    for (const Sample &sample : samples) {
      int64_t nextX = pixel(x(double(sample.op))), nextY = pixel(y(sample.tops[i]));
      if (nextY == atY)
        continue;
      if (nextX != atX)
        path += formatv("h{0}", nextX - atX);
      path += formatv("v{0}", nextY - atY);
      atX = nextX;
      atY = nextY;
    }
    path += formatv("H{0}V{1}H{2}Z", left + width, bottom, startX);
    os << formatv("<path class=\"{0}\" d=\"{1}\"><title>{2}</title></path>\n", area.style, path, area.name);
  }
  os << formatv("<path class=\"axis\" d=\"M{0} {1}V{2}H{3}\"/>\n", left, top, bottom, left + width);
  os << formatv("<line x1=\"{0}\" y1=\"{1:f1}\" x2=\"{2}\" y2=\"{1:f1}\" class=\"barrier\"/>"
                "<text x=\"{0}\" y=\"{3:f1}\">arena: {4:N0} bytes</text>\n",
                left, y(double(arenaBytes)), left + width, y(double(arenaBytes)) - 6, arenaBytes);
  double peak = x(double(entry.peakOp) + 0.5);
  bool late = peak > left + width / 2;
  os << formatv("<line x1=\"{0:f1}\" y1=\"{1:f1}\" x2=\"{0:f1}\" y2=\"{2}\" class=\"axis\"/>"
                "<text x=\"{3:f1}\" y=\"{4}\" text-anchor=\"{5}\">peak: {6:N0} bytes at op {7} of "
                "{8}</text>\n",
                peak, y(double(entry.peakBytes)), bottom + 4, peak + (late ? -4 : 4),
                bottom + 28, late ? "end" : "start", entry.peakBytes, entry.peakOp,
                entry.ops);
  // Tasks where their names have room.
  double free = 0;
  for (const MemoryOverTime::Task &task : entry.tasks) {
    double at = x(double(task.op) + 0.5);
    if (at < free)
      continue;
    free = at + 7.0 * double(task.task.size()) + 4;
    os << formatv("<text x=\"{0:f1}\" y=\"{1}\" text-anchor=\"middle\">{2}</text>\n", at,
                  bottom + 14, task.task);
  }
  int at = left;
  for (const Area &area : areas()) {
    os << formatv("<rect x=\"{0}\" y=\"{1}\" width=\"12\" height=\"12\" class=\"{2}\"/>"
                  "<text x=\"{3}\" y=\"{4}\">{5}</text>\n",
                  at, bottom + 40, area.style, at + 17, bottom + 50, area.name);
    at += 32 + 6 * int(area.name.size());
  }
  os << "</svg>\n";
}

} // namespace meshwright::report
