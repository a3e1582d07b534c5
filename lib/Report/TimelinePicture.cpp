//===- TimelinePicture.cpp - what stages do over time, drawn ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/TimelinePicture.h"

#include "Report/Palette.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace llvm;
using meshwright::schedule::TaskKind;
using meshwright::schedule::Timeline;

namespace meshwright {

/// "F3", with the chunk where the stage holds several.
static std::string labelOf(const schedule::Task &task, bool severalChunks) {
  std::string text = task.str();
  return severalChunks ? text : StringRef(text).split('.').first.str();
}

static bool hasSeveralChunks(ArrayRef<Timeline::Span> spans) {
  return any_of(spans, [&](const Timeline::Span &span) {
    return span.task.chunk != spans.front().task.chunk;
  });
}

void drawTimelineText(const Timeline &timeline, raw_ostream &os) {
  // The shortest task is as wide as the longest name and a space, where that leaves lines
  // that can be read.
  constexpr double mostColumns = 1200;
  double shortest = std::numeric_limits<double>::infinity();
  size_t widest = 0;
  for (const auto &spans : timeline.stages) {
    bool severalChunks = hasSeveralChunks(spans);
    for (const Timeline::Span &span : spans) {
      shortest = std::min(shortest, span.end - span.begin);
      widest = std::max(widest, labelOf(span.task, severalChunks).size());
    }
  }
  double scale = shortest > 0 ? double(widest + 1) / shortest : 1;
  double length = timeline.length();
  scale = std::min(scale, mostColumns / std::max(length, 1e-30));
  auto column = [&](double time) { return size_t(std::lround(time * scale)); };
  for (auto [stage, spans] : enumerate(timeline.stages)) {
    std::string row(column(length), '.');
    bool severalChunks = hasSeveralChunks(spans);
    for (const Timeline::Span &span : spans) {
      size_t begin = column(span.begin), width = column(span.end) - begin;
      std::string label = labelOf(span.task, severalChunks);
      label.resize(width, ' ');
      row.replace(begin, width, label);
    }
    os << formatv("{0,3} |{1}|", stage, row);
    // Rounds are short beside the tasks: a column at least.
    for (const auto &round : timeline.rounds) {
      size_t longest = 1;
      for (const Timeline::Interval &interval : round)
        longest = std::max(longest, column(interval.end - interval.begin));
      size_t width = std::max<size_t>(1, column(round[stage].end - round[stage].begin));
      os << std::string(width, 'U') << std::string(longest - width, '.') << "|";
    }
    os << "\n";
  }
}

void describeTimeline(StringRef name, const schedule::PipelineSchedule &schedule,
                      const Timeline &timeline, raw_ostream &os) {
  os << formatv("{0} on {1} stages, {2} microbatches: utilization {3:f1}%, bubble {4:f2} between a "
                "stage's tasks\n",
                name, schedule.stages(), schedule.microbatches, 100 * timeline.utilisation(),
                timeline.bubble());
  os << "peak activations of each stage, in microbatches of one chunk:";
  for (int64_t stage = 0; stage < schedule.stages(); ++stage)
    os << " " << mostHeld(schedule, stage);
  os << "\n";
}

/// Of the classes in the picture's style.
static StringRef classOf(TaskKind kind) {
  switch (kind) {
  case TaskKind::forward:
    return "f";
  case TaskKind::backward:
    return "b";
  case TaskKind::weight:
    return "w";
  }
  llvm_unreachable("all phases are above");
}

/// Wide enough that names fit into most tasks, within bounds.
static int widthOf(const Timeline &timeline) {
  SmallVector<double> lengths;
  for (const auto &spans : timeline.stages)
    for (const Timeline::Span &span : spans)
      lengths.push_back(span.end - span.begin);
  if (lengths.empty())
    return 1000;
  auto middle = lengths.begin() + lengths.size() / 2;
  std::nth_element(lengths.begin(), middle, lengths.end());
  return int(std::clamp(16 * timeline.end() / std::max(*middle, 1e-30), 1000.0, 6000.0));
}

void drawTimelineSvg(const Timeline &timeline, StringRef caption, raw_ostream &os) {
  constexpr int left = 70, row = 26, bar = 20, top = 24;
  int width = widthOf(timeline), bottom = top + row * int(timeline.stages.size());
  double scale = width / std::max(timeline.end(), 1e-30);
  os << formatv("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
                "role=\"img\" aria-label=\"what pipeline stages do over a step\" class=\"timeline\" font-family=\"sans-serif\" font-size=\"11\">\n",
                left + width + 10, bottom + 50);
  os << "<style>\n" << report::pictureStyle << "</style>\n";
  os << formatv("<text x=\"{0}\" y=\"14\">{1} Utilization of the stages: {2:f1}%.</text>\n", left,
                caption, 100 * timeline.utilisation());
  for (auto [stage, spans] : enumerate(timeline.stages)) {
    int y = row * int(stage) + top;
    os << formatv("<g transform=\"translate(0 {0})\"><text x=\"{1}\" y=\"14\" text-anchor=\"end\">stage {2}</text>"
                  "<rect x=\"{3}\" width=\"{4}\" height=\"{5}\" class=\"idle\"/>\n",
                  y, left - 8, stage, left, width, bar);
    bool several = hasSeveralChunks(spans);
    for (const Timeline::Span &span : spans) {
      double x = left + span.begin * scale, w = (span.end - span.begin) * scale;
      std::string label = std::to_string(span.task.microbatch);
      // The second and later chunks of a stage are paler.
      os << formatv("<g><title>{0}: {1:f2} to {2:f2}</title><rect x=\"{3:f1}\" "
                    "width=\"{4:f1}\" height=\"{5}\" class=\"{6}{7}\"/>",
                    labelOf(span.task, several), span.begin, span.end, x, w, bar,
                    classOf(span.task.kind),
                    several && span.task.chunk != spans.front().task.chunk ? " later" : "");
      if (w >= 7.0 * double(label.size()))
        os << formatv("<text x=\"{0:f0}\" y=\"14\" class=\"on\">{1}"
                      "</text>",
                      x + w / 2, label);
      os << "</g>\n";
    }
    for (const auto &round : timeline.rounds) {
      const Timeline::Interval &interval = round[stage];
      // Short beside the tasks, but there.
      double w = std::max(2.0, (interval.end - interval.begin) * scale);
      os << formatv("<g><title>after the tasks: {0:f3} to {1:f3}</title><rect x=\"{2:f2}\" "
                    "width=\"{3:f2}\" height=\"{4}\" class=\"u\"/></g>\n",
                    interval.begin, interval.end, left + interval.begin * scale, w, bar);
    }
    os << "</g>\n";
  }
  for (const auto &round : drop_begin(timeline.rounds, timeline.rounds.empty() ? 0 : 1)) {
    double x = left + round.front().begin * scale;
    os << formatv("<g><title>barrier: every stage waits for all</title><line x1=\"{0:f2}\" "
                  "y1=\"{1}\" x2=\"{0:f2}\" y2=\"{2}\" class=\"barrier\"/></g>\n",
                  x, top - 4, bottom);
  }
  int x = left, y = bottom + 14;
  auto isDrawn = [&](TaskKind kind) {
    return any_of(timeline.stages, [&](const auto &spans) {
      return any_of(spans, [&](const Timeline::Span &span) { return span.task.kind == kind; });
    });
  };
  SmallVector<std::pair<StringRef, StringRef>> legend{{"f", "forward"}, {"b", "backward"}, {"idle", "idle"}};
  if (isDrawn(TaskKind::weight))
    legend.insert(legend.begin() + 2, {"w", "gradients of weights"});
  if (!timeline.rounds.empty())
    legend.push_back({"u", "norm of the gradients, then update; dashed: a barrier of all stages"});
  os << "<g data-legend=\"\">\n";
  for (auto [kind, name] : legend) {
    os << formatv("<rect x=\"{0}\" y=\"{1}\" width=\"12\" height=\"12\" class=\"{2}\"/>"
                  "<text x=\"{3}\" y=\"{4}\">{5}</text>\n",
                  x, y, kind, x + 17, y + 10, name);
    x += 35 + 6 * int(name.size());
  }
  os << "</g>\n</svg>\n";
}

} // namespace meshwright
