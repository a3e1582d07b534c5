//===- Print.cpp - the plan on a terminal -----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "MemoryTables.h"
#include "Page.h"
#include "StepTasks.h"
#include "Tables.h"
#include "TextTable.h"
#include "TimelinePicture.h"
#include "meshwright/Report.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace meshwright::report;

namespace meshwright {

static void printVariables(const json::Object &plan, raw_ostream &os) {
  TextTable table({"parameter", "type", "shape", "on a rank", "sharding"});
  for (const json::Value &value : *plan.getArray("variables")) {
    const json::Object &variable = *value.getAsObject();
    if (variable.getString("role") == std::optional<StringRef>("parameter"))
      table.row({variable.getString("name").value_or("?").str(),
                 variable.getString("type").value_or("?").str(),
                 shapeText(variable.getArray("shape")), shapeText(variable.getArray("local_shape")),
                 shardingText(variable.getArray("sharding"))});
  }
  os << "\n";
  table.print(os);
}

static void printCollectives(const json::Object &plan, raw_ostream &os) {
  const json::Array &collectives = *plan.getArray("collectives");
  os << formatv("\n{0} collectives\n", collectives.size());
  TextTable table({"#number", "operation", "in", "#times", "#elements", "type", "#bytes of group",
                   "where in the IR"});
  for (auto [i, value] : enumerate(collectives)) {
    const json::Object &op = *value.getAsObject();
    auto text = [&](StringRef key) { return op.getString(key).value_or("").str(); };
    auto integer = [&](StringRef key) { return number(op.getInteger(key).value_or(0)); };
    table.row({number(i), text("op"), text("program"), integer("times"), integer("count"),
               text("type"), integer("group_bytes"), text("location")});
  }
  if (!collectives.empty())
    table.print(os);
  std::vector<Traffic> rows = trafficOf(plan);
  if (rows.empty())
    return;
  TextTable sent({"sent in", "along", "by", "#calls", "#bytes a rank", "#", "#bytes in all", "#"});
  for (const Traffic &row : rows)
    sent.row({row.program, row.axes, row.op, number(row.calls), number(row.bytesOfRank),
              sizeText(double(row.bytesOfRank)), grouped(row.bytes), sizeText(row.bytes)});
  os << "\n";
  sent.print(os);
}

static void printAttentions(const json::Object &plan, raw_ostream &os) {
  const json::Array *calls = plan.getArray("attentions");
  if (!calls || calls->empty())
    return;
  TextTable table({"attention", "by", "type", "batch x queries x keys", "heads", ""});
  for (const json::Value &value : *calls) {
    const json::Object &call = *value.getAsObject();
    auto number = [&](StringRef key) { return call.getInteger(key).value_or(0); };
    std::string note = call.getString("reason").value_or("").str(), on;
    if (auto tensorCores = call.getBoolean("tensor_cores"))
      on = *tensorCores ? "on tensor cores" : "on cores for arithmetic";
    if (!on.empty() && !note.empty())
      note = on + "; " + note;
    if (call.getInteger("workspace_bytes"))
      note = formatv("workspace {0:N0} bytes{1}{2}", number("workspace_bytes"),
                     call.getBoolean("deterministic").value_or(false) ? ", deterministic" : "",
                     call.getBoolean("fallback").value_or(false) ? ", else generated " + on : "");
    table.row(
        {call.getString("op").value_or("?").str(), call.getString("by").value_or("?").str(),
         call.getString("type").value_or("?").str(),
         formatv("{0} x {1} x {2}", number("batch"), number("queries"), number("keys")).str(),
         formatv("{0}/{1} x {2}", number("heads"), number("kv_heads"), number("head_dim")).str(),
         note});
  }
  os << "\n";
  table.print(os);
}

/// Of the program that needs most.
static void printPeak(const json::Object &plan, raw_ostream &os) {
  constexpr size_t rows = 10;
  const json::Object *most = nullptr;
  for (const json::Value &value : *plan.getArray("programs")) {
    const json::Object *program = value.getAsObject();
    if (program && (!most || program->getInteger("arena_bytes").value_or(0) >
                                 most->getInteger("arena_bytes").value_or(0)))
      most = program;
  }
  std::vector<PeakRow> all = most ? peakRows(*most) : std::vector<PeakRow>();
  if (all.empty())
    return;
  os << formatv("\nlargest at the peak of {0} beside what outlasts the step, {1}\n",
                most->getString("name").value_or("?"), peakPlace(*most));
  TextTable table({"#bytes", "#", "category", "task", "written by", "#slices", "made from"});
  for (const PeakRow &row : ArrayRef(all).take_front(rows))
    table.row({number(row.bytes), sizeText(double(row.bytes)), row.category, row.task,
               row.op.empty() ? row.name : row.op, row.slices > 1 ? number(row.slices) : "",
               row.location});
  table.print(os);
}

static void printTimeline(const json::Object &plan, raw_ostream &os) {
  Expected<std::optional<StepTasks>> tasks = tasksOf(plan);
  if (!tasks) {
    os << "\nno timeline: " << toString(tasks.takeError()) << "\n";
    return;
  }
  if (!*tasks)
    return;
  os << "\nstages over a step; the lengths are floating-point operations, the whole is 100\n";
  drawTimelineText((*tasks)->timeline, os);
  describeTimeline("tasks", (*tasks)->schedule, (*tasks)->timeline, os);
}

/// Lines of a list in the plan that say how many bytes a category takes, and why.
static void printMemory(StringRef title, const json::Array &lines, raw_ostream &os) {
  TextTable table({title.str(), "#bytes", "#", ""});
  for (const json::Value &value : lines) {
    const json::Object &line = *value.getAsObject();
    int64_t bytes = line.getInteger("bytes").value_or(0);
    table.row({line.getString("category").value_or("?").str(), number(bytes),
               sizeText(double(bytes)), line.getString("source").value_or("").str()});
  }
  os << "\n";
  table.print(os);
}

/// What is kept on the host, and what programs copy from and to it.
static void printHost(const json::Object &plan, raw_ostream &os) {
  const json::Array *memory = plan.getArray("host_memory");
  if (!memory)
    return;
  printMemory("memory on the host", *memory, os);
  TextTable table({"bytes copied", "in", "#to the device", "#to the host"});
  for (const json::Value &value : *plan.getArray("programs")) {
    const json::Object &program = *value.getAsObject();
    const json::Object *copied = program.getObject("copied_bytes");
    if (!copied)
      continue;
    for (const auto &[entry, bytes] : *copied)
      table.row({program.getString("name").value_or("?").str(), StringRef(entry).str(),
                 number(bytes.getAsObject()->getInteger("to_device").value_or(0)),
                 number(bytes.getAsObject()->getInteger("to_host").value_or(0))});
  }
  os << "\n";
  table.print(os);
}

static void printPrograms(const json::Array &programs, raw_ostream &os) {
  TextTable table({"program", "at", "#arena", "#", "#live", "#operations a step"});
  for (const json::Value &value : programs) {
    const json::Object &program = *value.getAsObject();
    auto integer = [&](StringRef key) { return program.getInteger(key).value_or(0); };
    table.row({program.getString("name").value_or("?").str(), placeText(program),
               number(integer("arena_bytes")), sizeText(double(integer("arena_bytes"))),
               number(integer("live_bytes")), operationsText(program, "flops")});
  }
  os << "\n";
  table.print(os);
}

void printPlan(const json::Object &plan, raw_ostream &os) {
  auto integer = [&](StringRef key) { return plan.getInteger(key).value_or(0); };
  os << formatv("model        {0}\n", plan.getString("model").value_or("?"));
  os << formatv("target       {0}, {1}, {2}\n", plan.getString("target").value_or("?"),
                precisionText(plan), plan.getString("optimizer").value_or("?"));
  os << formatv("mesh         {0}\n", meshText(plan));
  os << formatv("batch        {0} sequences of {1} tokens in {2} microbatch{3}\n", integer("batch"),
                integer("sequence"), integer("microbatches"),
                integer("microbatches") == 1 ? "" : "es");
  os << formatv("plan         {0}\n", plan.getString("hash").value_or("?"));
  os << formatv("arena        {0} a rank\n", bytesText(integer("arena_bytes")));
  if (plan.get("host_bytes"))
    os << formatv("on the host  {0} a rank beside it\n", bytesText(integer("host_bytes")));
  os << formatv("messages     {0} a rank beside it, where ranks are processes\n",
                bytesText(scratchBytes(plan)));
  os << formatv("work         {0} floating-point operations a step, {1} of them computed again\n",
                countText(plan.getNumber("flops").value_or(0)),
                countText(plan.getNumber("recomputed_flops").value_or(0)));
  printMemory("memory at the peak", *plan.getArray("memory"), os);
  if (const json::Array *allowances = plan.getArray("allowances"); allowances && !allowances->empty()) {
    printMemory("allowances beside it", *allowances, os);
    os << "to fit a device: " << bytesText(integer("device_bytes")) << "\n";
  }
  printHost(plan, os);
  if (const json::Array &programs = *plan.getArray("programs"); programs.size() > 1)
    printPrograms(programs, os);
  printPeak(plan, os);
  printTimeline(plan, os);
  printVariables(plan, os);
  printAttentions(plan, os);
  printCollectives(plan, os);
}

} // namespace meshwright
