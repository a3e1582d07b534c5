//===- TimelinePicture.cpp - what stages do over time, drawn ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Report/TimelinePicture.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace llvm;
using meshwright::planner::Phase;
using meshwright::planner::Timeline;

namespace meshwright {

/// "F3", with the chunk where the stage holds several.
static std::string labelOf(const planner::Task &task, bool severalChunks) {
  std::string text = task.str();
  return severalChunks ? text : StringRef(text).split('.').first.str();
}

static bool hasSeveralChunks(ArrayRef<Timeline::Span> spans) {
  return any_of(spans, [&](const Timeline::Span &span) {
    return span.task.chunk != spans.front().task.chunk;
  });
}

void drawTimelineText(const Timeline &timeline, raw_ostream &os) {
  // The shortest task is as wide as the longest name and a space.
  double shortest = std::numeric_limits<double>::infinity();
  size_t widest = 0;
  for (const auto &spans : timeline.stages)
    for (const Timeline::Span &span : spans) {
      shortest = std::min(shortest, span.end - span.begin);
      widest = std::max(widest, labelOf(span.task, hasSeveralChunks(spans)).size());
    }
  double scale = shortest > 0 ? double(widest + 1) / shortest : 1;
  auto column = [&](double time) { return size_t(std::lround(time * scale)); };
  for (auto [stage, spans] : enumerate(timeline.stages)) {
    std::string row(column(timeline.length()), '.');
    for (const Timeline::Span &span : spans) {
      size_t begin = column(span.begin), width = column(span.end) - begin;
      std::string label = labelOf(span.task, hasSeveralChunks(spans));
      label.resize(width, ' ');
      row.replace(begin, width, label);
    }
    os << formatv("{0,3} |{1}|\n", stage, row);
  }
}

static StringRef colorOf(Phase phase) {
  switch (phase) {
  case Phase::forward:
    return "#1f6feb";
  case Phase::backward:
    return "#d4700a";
  case Phase::weight:
    return "#1a7f37";
  }
  llvm_unreachable("all phases are above");
}

void drawTimelineSvg(const Timeline &timeline, raw_ostream &os) {
  constexpr int left = 70, width = 1000, row = 26, bar = 20;
  int height = row * int(timeline.stages.size()) + 44;
  double scale = width / std::max(timeline.length(), 1e-30);
  os << formatv("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
                "role=\"img\" font-family=\"sans-serif\" font-size=\"11\">\n",
                left + width + 10, height);
  for (auto [stage, spans] : enumerate(timeline.stages)) {
    int y = row * int(stage) + 4;
    os << formatv("<text x=\"{0}\" y=\"{1}\" text-anchor=\"end\">stage {2}</text>"
                  "<rect x=\"{3}\" y=\"{4}\" width=\"{5}\" height=\"{6}\" fill=\"#e6e6e6\"/>\n",
                  left - 8, y + 14, stage, left, y, width, bar);
    bool several = hasSeveralChunks(spans);
    for (const Timeline::Span &span : spans) {
      double x = left + span.begin * scale, w = (span.end - span.begin) * scale;
      std::string label = std::to_string(span.task.microbatch);
      // The second and later chunks of a stage are paler.
      os << formatv("<g><title>{0}: {1:f3} to {2:f3}</title><rect x=\"{3:f2}\" y=\"{4}\" "
                    "width=\"{5:f2}\" height=\"{6}\" fill=\"{7}\" fill-opacity=\"{8}\" "
                    "stroke=\"white\" stroke-width=\"0.5\"/>",
                    labelOf(span.task, several), span.begin, span.end, x, y, w, bar,
                    colorOf(span.task.phase),
                    several && span.task.chunk != spans.front().task.chunk ? "0.6" : "1");
      if (w >= 7.0 * double(label.size()))
        os << formatv("<text x=\"{0:f2}\" y=\"{1}\" text-anchor=\"middle\" fill=\"white\">{2}"
                      "</text>",
                      x + w / 2, y + 14, label);
      os << "</g>\n";
    }
  }
  int x = left, y = height - 20;
  for (auto [phase, name] : {std::pair<Phase, StringRef>{Phase::forward, "forward"},
                             {Phase::backward, "backward"},
                             {Phase::weight, "gradients of weights"}}) {
    os << formatv("<rect x=\"{0}\" y=\"{1}\" width=\"12\" height=\"12\" fill=\"{2}\"/>"
                  "<text x=\"{3}\" y=\"{4}\">{5}</text>\n",
                  x, y, colorOf(phase), x + 17, y + 10, name);
    x += 100;
  }
  os << formatv("<text x=\"{0}\" y=\"{1}\" text-anchor=\"end\">{2:f1}% of the stages' time is "
                "work</text>\n</svg>\n",
                left + width, y + 10, 100 * timeline.utilisation());
}

} // namespace meshwright
