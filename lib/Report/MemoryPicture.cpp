//===- MemoryPicture.cpp - memory over time, drawn ---------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "MemoryTables.h"
#include "Page.h"
#include "Palette.h"
#include "TextTable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

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

/// Where the plot of a picture is.
static constexpr int left = 76, top = 24, width = 780, height = 240, bottom = top + height;

/// The parts of a step without tasks, by the first op of each: its gradients come to be behind the forward
/// pass, if none are kept from the beginning, as those of several microbatches are; and what it updates is written at the end.
static SmallVector<std::pair<int64_t, StringRef>> phasesOf(const MemoryOverTime &entry) {
  SmallVector<std::pair<int64_t, StringRef>> phases;
  auto gradients = find_if(entry.points, [](const MemoryOverTime::Point &point) { return point.live.count("gradient"); });
  if (entry.tasks.empty() && gradients != entry.points.end() && gradients->op > 0)
    phases = {{0, "forward"}, {gradients->op, "backward"}};
  if (entry.firstUpdate && (phases.empty() || *entry.firstUpdate > phases.back().first))
    phases.push_back({*entry.firstUpdate, "update"});
  return phases;
}

void writeMemoryCursor(const MemoryOverTime &entry, raw_ostream &os) {
  // Of each category that is ever live, where its bytes change.
  json::Array names, live, tasks, phases;
  for (const Area &area : areas())
    for (StringRef category : area.categories) {
      json::Array changes;
      int64_t before = 0;
      for (const MemoryOverTime::Point &point : entry.points) {
        auto found = point.live.find(category.str());
        int64_t now = found == point.live.end() ? 0 : found->second;
        if (now != before)
          changes.push_back(json::Array{point.op, now});
        before = now;
      }
      if (changes.empty())
        continue;
      names.push_back(category);
      live.push_back(std::move(changes));
    }
  for (const MemoryOverTime::Task &task : entry.tasks)
    tasks.push_back(json::Array{task.op, task.task});
  for (auto [op, phase] : phasesOf(entry))
    phases.push_back(json::Array{op, phase});
  json::Object begins;
  for (auto &[op, buffer] : entry.begins)
    begins[std::to_string(op)] = json::Array{buffer.first, buffer.second};
  json::Object data{{"left", left}, {"width", width}, {"top", top}, {"bottom", bottom}, {"peak", entry.peakOp},
                    {"calls", json::Array(entry.calls)}, {"at", json::Array(entry.callAt)}, {"names", std::move(names)},
                    {"live", std::move(live)}, {"tasks", std::move(tasks)}, {"phases", std::move(phases)},
                    {"begins", std::move(begins)}};
  std::string text = formatv("{0}", json::Value(std::move(data)));
  // No name may end or open a script.
  for (size_t at = 0; (at = text.find('<', at)) != std::string::npos;)
    text.replace(at, 1, "\\u003c");
  os << "<script type=\"application/json\">" << text
     << "</script><output>Move over the picture, or focus it and press the arrow keys, to see what runs and what is live.</output>\n";
}

void drawMemorySvg(const MemoryOverTime &entry, int64_t arenaBytes, raw_ostream &os) {
  double ops = double(std::max<int64_t>(1, entry.ops));
  double most = std::max({1.0, double(arenaBytes), double(entry.peakBytes)});
  auto x = [&](double op) { return left + width * op / ops; };
  auto y = [&](double bytes) { return top + height * (1 - bytes / most); };

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
                "role=\"img\" aria-label=\"live memory over a step, by category\" class=\"memory\" font-family=\"sans-serif\" font-size=\"11\">\n",
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
  SmallVector<const Area *> drawn;
  auto pixel = [](double at) { return int64_t(std::lround(at)); };
  for (size_t i = areas().size(); i-- > 0;) {
    const Area &area = areas()[i];
    auto below = [&](const Sample &sample) { return i ? sample.tops[i - 1] : 0.0; };
    if (none_of(samples, [&](const Sample &s) { return s.tops[i] > below(s); }))
      continue;
    drawn.insert(drawn.begin(), &area);
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
                "<text x=\"{3:f1}\" y=\"{4}\" text-anchor=\"{5}\">peak: {6:N0} bytes at op {7} of {8}{9}</text>\n",
                peak, y(double(entry.peakBytes)), bottom + 4, peak + (late ? -4 : 4),
                bottom + 28, late ? "end" : "start", entry.peakBytes, entry.peakOp, entry.ops,
                entry.callAt.empty() ? "" : ": " + escaped(entry.calls[entry.callAt[entry.peakOp]]));
  // Phases at their first op, and tasks where their names have room.
  double free = 0;
  for (auto [op, phase] : phasesOf(entry)) {
    double at = x(double(op));
    if (!entry.tasks.empty())
      break;
    os << formatv("<path class=\"axis\" d=\"M{0:f1} {1}v5\"/><text x=\"{2:f1}\" y=\"{3}\">{4}</text>\n", at, bottom, at + 3,
                  bottom + 14, phase);
  }
  for (const MemoryOverTime::Task &task : entry.tasks) {
    double at = x(double(task.op) + 0.5);
    if (at < free)
      continue;
    free = at + 7.0 * double(task.task.size()) + 4;
    os << formatv("<text x=\"{0:f1}\" y=\"{1}\" text-anchor=\"middle\">{2}</text>\n", at,
                  bottom + 14, task.task);
  }
  int at = left;
  for (const Area *area : drawn) {
    os << formatv("<rect x=\"{0}\" y=\"{1}\" width=\"12\" height=\"12\" class=\"{2}\"/>"
                  "<text x=\"{3}\" y=\"{4}\">{5}</text>\n",
                  at, bottom + 40, area->style, at + 17, bottom + 50, area->name);
    at += 32 + 6 * int(area->name.size());
  }
  os << "</svg>\n";
}

} // namespace meshwright::report
