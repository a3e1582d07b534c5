//===- WriteReport.cpp - the files of --report -------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "MemoryTables.h"
#include "Page.h"
#include "StepTasks.h"
#include "Tables.h"
#include "TimelinePicture.h"
#include "meshwright/Report.h"

#include "llvm/Support/FileSystem.h"
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

/// The plan and the tables that follow from it.
static json::Object withTables(const json::Object &plan) {
  json::Array traffic, copies;
  for (const Traffic &row : trafficOf(plan))
    traffic.push_back(json::Object{{"program", row.program},
                                   {"axes", row.axes},
                                   {"op", row.op},
                                   {"calls", row.calls},
                                   {"rank_bytes", row.bytesOfRank},
                                   {"bytes", row.bytes}});
  for (const Copies &row : copiesOf(plan))
    copies.push_back(json::Object{{"variable", row.variable},
                                  {"role", row.role},
                                  {"axis", row.axis},
                                  {"size", row.size},
                                  {"bytes", row.bytes},
                                  {"reason", row.reason}});
  json::Object report(plan);
  report["communication"] = std::move(traffic);
  report["replicated"] = std::move(copies);
  return report;
}

/// The timeline of pipeline stages: their spans as JSON, and as a picture.
static json::Array spansOf(const planner::Timeline &timeline) {
  json::Array stages;
  for (auto [stage, spans] : enumerate(timeline.stages)) {
    json::Array tasks, rounds;
    for (const planner::Timeline::Span &span : spans)
      tasks.push_back(json::Object{
          {"task", span.task.str()}, {"begin", span.begin}, {"end", span.end}});
    for (const auto &round : timeline.rounds)
      rounds.push_back(json::Object{{"begin", round[stage].begin}, {"end", round[stage].end}});
    stages.push_back(json::Object{{"tasks", std::move(tasks)}, {"rounds", std::move(rounds)}});
  }
  return stages;
}

static std::string textOf(function_ref<void(raw_ostream &)> write) {
  std::string text;
  raw_string_ostream os(text);
  write(os);
  return text;
}

/// The largest buffers at a program's peak.
static void writePeak(const json::Object &program, raw_ostream &os) {
  Table table(os,
              {"#bytes", "category", "written in task", "by", "#slices", "made from", "buffer"});
  for (const PeakRow &row : peakRows(program))
    table.row({number(row.bytes), row.category, row.task, row.op,
               row.slices > 1 ? number(row.slices) : "", row.location, row.name});
  if (int64_t others = peakOthers(program))
    table.row({number(others), "all others", "", "", "", "", ""});
}

/// A picture of each program's step, as a file and in the page, with what is largest at the
/// peak.
static Error addMemory(const Plan &plan, const json::Object &object, StringRef directory,
                       SmallVectorImpl<Section> &sections) {
  const json::Array &programs = *object.getArray("programs");
  for (const json::Value &value : plan.memoryOverTime) {
    const json::Object &entry = *value.getAsObject();
    if (entry.getString("program") != std::optional<StringRef>("step"))
      continue;
    const json::Object &program = *programs[*entry.getInteger("in")].getAsObject();
    std::string name = program.getString("name").value_or("?").str();
    std::string picture = textOf([&](raw_ostream &os) {
      drawMemorySvg(entry, program.getInteger("arena_bytes").value_or(0), os);
    });
    if (Error error = writeText(directory + "/memory-" + name + ".svg", picture))
      return error;
    sections.push_back({"Memory of " + escaped(name) + " over the ops of a step",
                        picture + textOf([&](raw_ostream &os) {
                          os << "<p>Largest at the peak beside what outlasts the step, "
                             << escaped(peakPlace(program)) << ":</p>\n";
                          writePeak(program, os);
                        })});
  }
  return Error::success();
}

Error writeReport(const Plan &plan, StringRef directory) {
  if (std::error_code error = sys::fs::create_directories(directory))
    return createStringError("cannot make directory '" + directory + "': " + error.message());
  Expected<json::Value> value = json::parse(plan.json);
  if (!value)
    return value.takeError();
  const json::Object &object = *value->getAsObject();
  json::Object report = withTables(object);
  SmallVector<Section> sections;

  Expected<std::optional<StepTasks>> tasks = tasksOf(object);
  if (!tasks)
    return tasks.takeError();
  if (*tasks) {
    std::string picture = textOf([&](raw_ostream &os) {
      drawTimelineSvg((*tasks)->timeline,
                      "The lengths are floating-point operations of the plan, not measured time; "
                      "the whole step is 100.",
                      os);
    });
    report["timeline"] = spansOf((*tasks)->timeline);
    if (Error error = writeText(directory + "/timeline.svg", picture))
      return error;
    sections.push_back(
        {"Pipeline stages over a step",
         picture +
             "<p>The file timeline.svg beside this page has the picture at full size.</p>\n"});
  }
  report["memory_over_time"] = json::Array(plan.memoryOverTime);
  if (Error error = addMemory(plan, object, directory, sections))
    return error;
  if (Error error = writeText(directory + "/report.json",
                              formatv("{0:2}\n", json::Value(std::move(report))).str()))
    return error;
  if (Error error = writeText(directory + "/trace.json", plan.predictedTrace))
    return error;
  return writeText(directory + "/index.html",
                   textOf([&](raw_ostream &os) { writePage(object, sections, os); }));
}

} // namespace meshwright
