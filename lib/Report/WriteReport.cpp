//===- WriteReport.cpp - the files of --report -------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "MemoryTables.h"
#include "Page.h"
#include "StepTasks.h"
#include "Tables.h"
#include "meshwright/OutputFolder.h"
#include "meshwright/PlanJson.h"
#include "meshwright/Report.h"
#include "meshwright/TimelinePicture.h"

#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;
using namespace meshwright::report;

namespace meshwright {

static Error writeText(const Twine &path, StringRef text) {
  std::error_code error;
  std::string name = path.str();
  raw_fd_ostream os(name, error);
  if (!error) {
    os << text;
    os.flush();
    error = os.error();
    os.clear_error();
  }
  return error ? createStringError("cannot write '" + name + "': " + error.message())
               : Error::success();
}

namespace report {
struct Span {
  double begin, end;
  MESHWRIGHT_FIELDS(v("begin", self.begin); v("end", self.end);)
};
struct TaskSpan : Span {
  std::string task;
  MESHWRIGHT_FIELDS(v("task", self.task); Span::fields(self, v);)
};
/// What a pipeline stage does over a step.
struct StageSpans {
  std::vector<TaskSpan> tasks;
  std::vector<Span> rounds;
  MESHWRIGHT_FIELDS(v("tasks", self.tasks); v("rounds", self.rounds);)
};

/// The plan and the tables that follow from it.
struct Report : plan::Plan {
  std::vector<Traffic> communication;
  std::vector<Copies> replicated;
  std::optional<std::vector<StageSpans>> timeline;
  std::vector<MemoryOverTime> memoryOverTime;
  std::optional<ExpectedStep> expected;
  MESHWRIGHT_FIELDS(plan::Plan::fields(self, v); v("communication", self.communication);
                    v("replicated", self.replicated); v("timeline", self.timeline);
                    v("memory_over_time", self.memoryOverTime); v("expected_step", self.expected);)
};
} // namespace report

static std::vector<StageSpans> spansOf(const schedule::Timeline &timeline) {
  std::vector<StageSpans> stages;
  for (auto [stage, spans] : enumerate(timeline.stages)) {
    StageSpans &of = stages.emplace_back();
    for (const schedule::Timeline::Span &span : spans)
      of.tasks.push_back({{span.begin, span.end}, span.task.str()});
    for (const auto &round : timeline.rounds)
      of.rounds.push_back({round[stage].begin, round[stage].end});
  }
  return stages;
}

static std::string textOf(function_ref<void(raw_ostream &)> write) {
  std::string text;
  raw_string_ostream os(text);
  write(os);
  return text;
}

/// The largest buffers at a peak.
static void writePeak(const plan::Peak &peak, raw_ostream &os) {
  Table table(os,
              {"#bytes", "category", "written in task", "by", "#slices", "made from", "buffer"});
  for (const plan::PeakBuffer &row : peak.buffers)
    table.row({number(row.bytes), row.category, row.task, row.op,
               row.slices > 1 ? number(row.slices) : "", row.location, row.name});
  if (peak.others)
    table.row({number(peak.others), "all others", "", "", "", "", ""});
}

/// The programs whose pictures the page has: all of a few; of more the first, the last, and those that need most, as the
/// others are like them.
static SmallSetVector<int64_t, 4> shownPrograms(const plan::Plan &plan) {
  constexpr size_t most = 4;
  auto order = to_vector(seq<int64_t>(0, int64_t(plan.programs.size())));
  llvm::stable_sort(order, [&](int64_t a, int64_t b) { return plan.programs[a].arenaBytes > plan.programs[b].arenaBytes; });
  SmallSetVector<int64_t, 4> shown;
  shown.insert(0);
  shown.insert(int64_t(plan.programs.size()) - 1);
  for (int64_t program : order)
    if (shown.size() < most)
      shown.insert(program);
  return shown;
}

/// A picture of each program's step, as a file and in the page, with what is largest at the
/// peak.
static Error addMemory(const CompiledPlan &plan, StringRef directory, SmallVectorImpl<Section> &sections) {
  auto shown = shownPrograms(plan);
  size_t hidden = plan.programs.size() - shown.size();
  for (const MemoryOverTime &entry : plan.memoryOverTime) {
    if (entry.program != "step")
      continue;
    const plan::Program &program = plan.programs[entry.in];
    std::string picture =
        textOf([&](raw_ostream &os) { drawMemorySvg(entry, program.arenaBytes, os); });
    if (Error error = writeText(directory + "/memory-" + program.name + ".svg", picture))
      return error;
    if (!shown.contains(entry.in))
      continue;
    sections.push_back({"memory-" + program.name, "Memory of " + escaped(program.name) + " over a step",
                        "<div class=wide>" + picture + textOf([&](raw_ostream &os) { writeMemoryCursor(entry, os); }) + "</div>" +
                            textOf([&](raw_ostream &os) {
                              os << "<details><summary>Largest buffers at the peak, without persistent ones, "
                                 << escaped(peakLocation(*program.peak)) << "</summary>\n";
                              writePeak(*program.peak, os);
                              os << "</details>\n";
                            })});
  }
  if (hidden && !sections.empty())
    sections.back().html += "<p class=note>" + number(int64_t(hidden)) +
                            " more programs are between these; the files memory-PROGRAM.svg beside this page show each.</p>\n";
  return Error::success();
}

/// Whether the pictures of a report may have a file of this name: those of memory are called after
/// programs.
static bool isPictureName(StringRef name) {
  StringRef program = name;
  return name == "timeline.svg" ||
         (program.consume_front("memory-") && program.consume_back(".svg") &&
          all_of(program, [](char c) { return isAlnum(c) || c == '_'; }));
}

Error writeReport(const CompiledPlan &plan, StringRef directory) {
  if (std::error_code error = sys::fs::create_directories(directory))
    return createStringError("cannot make directory '" + directory + "': " + error.message());
  if (Error error = removeFiles(directory, isPictureName))
    return error;
  Report report{plan, trafficOf(plan), copiesOf(plan), std::nullopt, plan.memoryOverTime, plan.expected};
  SmallVector<Section> sections;

  Expected<std::optional<StepTasks>> tasks = tasksOf(plan);
  if (!tasks)
    return tasks.takeError();
  if (*tasks) {
    std::string picture = textOf([&](raw_ostream &os) {
      drawTimelineSvg((*tasks)->timeline,
                      "The lengths are floating-point operations of the plan, not measured time; "
                      "the whole step is 100.",
                      os);
    });
    report.timeline = spansOf((*tasks)->timeline);
    if (Error error = writeText(directory + "/timeline.svg", picture))
      return error;
    sections.push_back(
        {"timeline", "Pipeline stages over a step",
         picture +
             "<p>The file timeline.svg beside this page has the picture at full size.</p>\n"});
  }
  if (Error error = addMemory(plan, directory, sections))
    return error;
  if (Error error = writeText(directory + "/report.json",
                              formatv("{0:2}\n", json::Value(report)).str()))
    return error;
  if (Error error = writeText(directory + "/trace.json", plan.predictedTrace))
    return error;
  return writeText(directory + "/index.html",
                   textOf([&](raw_ostream &os) { writePage(plan, sections, os); }));
}

} // namespace meshwright
