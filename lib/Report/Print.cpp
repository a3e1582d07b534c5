//===- Print.cpp - the plan on a terminal -----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "MemoryTables.h"
#include "StepTasks.h"
#include "Tables.h"
#include "TimelinePicture.h"
#include "meshwright/Report.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace meshwright::report;

namespace meshwright {

static void printVariables(const json::Object &plan, raw_ostream &os) {
  os << formatv("\n{0,-40} {1,-5}{2,-24}{3,-24}{4}\n", "parameter", "type", "shape", "on a rank",
                "sharding");
  for (const json::Value &value : *plan.getArray("variables")) {
    const json::Object &variable = *value.getAsObject();
    if (variable.getString("role") == std::optional<StringRef>("parameter"))
      os << formatv("  {0,-38} {1,-5}{2,-24}{3,-24}{4}\n", variable.getString("name").value_or("?"),
                    variable.getString("type").value_or("?"), shapeText(variable.getArray("shape")),
                    shapeText(variable.getArray("local_shape")),
                    shardingText(variable.getArray("sharding")));
  }
}

static void printCollectives(const json::Object &plan, raw_ostream &os) {
  const json::Array &collectives = *plan.getArray("collectives");
  os << formatv("\n{0} collectives\n  {1,-4}{2,-16}{3,-8}{4,6}{5,16} {6,-5}{7,18}  {8}\n",
                collectives.size(), "", "operation", "in", "times", "elements", "type",
                "bytes of group", "where in the IR");
  for (auto [i, value] : enumerate(collectives)) {
    const json::Object &op = *value.getAsObject();
    os << formatv("  {0,-4}{1,-16}{2,-8}{3,6}{4,16:N0} {5,-5}{6,18:N0}  {7}\n", i,
                  op.getString("op").value_or("?"), op.getString("program").value_or("?"),
                  op.getInteger("times").value_or(1), op.getInteger("count").value_or(0),
                  op.getString("type").value_or("?"), op.getInteger("group_bytes").value_or(0),
                  op.getString("location").value_or(""));
  }
  std::vector<Traffic> rows = trafficOf(plan);
  if (rows.empty())
    return;
  os << formatv("\n{0,-8}{1,-20}{2,-16}{3,8}{4,20}{5,20}\n", "sent in", "along", "by", "calls",
                "bytes a rank", "bytes in all");
  for (const Traffic &row : rows)
    os << formatv("  {0,-6}{1,-20}{2,-16}{3,8}{4,20:N0}{5,20}\n", row.program, row.axes, row.op,
                  row.calls, row.bytesOfRank, grouped(row.bytes));
}

static void printAttentions(const json::Object &plan, raw_ostream &os) {
  const json::Array *calls = plan.getArray("attentions");
  if (!calls || calls->empty())
    return;
  os << formatv("\n{0,-18}{1,-11}{2,-6}{3,-24}{4,-14}{5}\n", "attention", "by", "type",
                "batch x queries x keys", "heads", "");
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
    os << formatv("  {0,-16}{1,-11}{2,-6}{3,-24}{4,-14}{5}\n", call.getString("op").value_or("?"),
                  call.getString("by").value_or("?"), call.getString("type").value_or("?"),
                  formatv("{0} x {1} x {2}", number("batch"), number("queries"), number("keys")).str(),
                  formatv("{0}/{1} x {2}", number("heads"), number("kv_heads"), number("head_dim")).str(),
                  note);
  }
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
  os << formatv("\nlargest at the peak of {0} beside what outlasts the step, {1}\n  {2,18}  {3,-12}{4,-8}{5,-24}{6,7}  {7}\n",
                most->getString("name").value_or("?"), peakPlace(*most), "bytes", "category",
                "task", "written by", "slices", "made from");
  for (const PeakRow &row : ArrayRef(all).take_front(rows))
    os << formatv("  {0,18:N0}  {1,-12}{2,-8}{3,-24}{4,7}  {5}\n", row.bytes, row.category, row.task,
                  row.op.empty() ? row.name : row.op, row.slices > 1 ? std::to_string(row.slices) : "",
                  row.location);
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

/// What is kept on the host, and what programs copy from and to it.
static void printHost(const json::Object &plan, raw_ostream &os) {
  const json::Array *memory = plan.getArray("host_memory");
  if (!memory)
    return;
  os << formatv("\n{0,-24}{1,18}\n", "memory on the host", "bytes");
  for (const json::Value &entry : *memory)
    os << formatv("  {0,-22}{1,18:N0}\n", entry.getAsObject()->getString("category").value_or("?"),
                  entry.getAsObject()->getInteger("bytes").value_or(0));
  os << formatv("\n{0,-24}{1,-10}{2,18}{3,18}\n", "bytes copied", "in", "to the device", "to the host");
  for (const json::Value &value : *plan.getArray("programs")) {
    const json::Object &program = *value.getAsObject();
    const json::Object *copied = program.getObject("copied_bytes");
    if (!copied)
      continue;
    for (const auto &[entry, bytes] : *copied)
      os << formatv("  {0,-22}{1,-10}{2,18:N0}{3,18:N0}\n", program.getString("name").value_or("?"),
                    StringRef(entry), bytes.getAsObject()->getInteger("to_device").value_or(0),
                    bytes.getAsObject()->getInteger("to_host").value_or(0));
  }
}

void printPlan(const json::Object &plan, raw_ostream &os) {
  auto integer = [&](StringRef key) { return plan.getInteger(key).value_or(0); };
  os << formatv("model        {0}\n", plan.getString("model").value_or("?"));
  os << formatv("target       {0}, {1}, {2}\n", plan.getString("target").value_or("?"),
                precisionText(plan), plan.getString("optimizer").value_or("?"));
  os << formatv("mesh         {0}\n", meshText(plan));
  os << formatv("batch        {0} sequences of {1} tokens in {2} microbatches\n", integer("batch"),
                integer("sequence"), integer("microbatches"));
  os << formatv("plan         {0}\n", plan.getString("hash").value_or("?"));
  os << formatv("arena        {0:N0} bytes a rank\n", integer("arena_bytes"));
  if (plan.get("host_bytes"))
    os << formatv("on the host  {0:N0} bytes a rank beside it\n", integer("host_bytes"));
  os << formatv("messages     {0:N0} bytes a rank beside it, where ranks are processes\n",
                scratchBytes(plan));
  os << formatv("work         {0} floating-point operations a step, {1} of them computed again\n\n",
                operationsText(plan, "flops"), operationsText(plan, "recomputed_flops"));
  os << formatv("{0,-24}{1,18}\n", "memory at the peak", "bytes");
  for (const json::Value &entry : *plan.getArray("memory"))
    os << formatv("  {0,-22}{1,18:N0}\n", entry.getAsObject()->getString("category").value_or("?"),
                  entry.getAsObject()->getInteger("bytes").value_or(0));
  if (const json::Array *allowances = plan.getArray("allowances"); allowances && !allowances->empty()) {
    os << formatv("\n{0,-24}{1,18}\n", "allowances beside it", "bytes");
    for (const json::Value &entry : *allowances)
      os << formatv("  {0,-22}{1,18:N0}  {2}\n",
                    entry.getAsObject()->getString("category").value_or("?"),
                    entry.getAsObject()->getInteger("bytes").value_or(0),
                    entry.getAsObject()->getString("source").value_or(""));
    os << formatv("{0,-24}{1,18:N0}\n", "to fit a device", integer("device_bytes"));
  }
  const json::Array &programs = *plan.getArray("programs");
  printHost(plan, os);
  if (programs.size() > 1) {
    os << formatv("\n{0,-24}{1,-20}{2,18}{3,18}{4,24}\n", "program", "at", "arena", "live",
                  "operations a step");
    for (const json::Value &value : programs) {
      const json::Object &program = *value.getAsObject();
      os << formatv("  {0,-22}{1,-20}{2,18:N0}{3,18:N0}{4,24}\n",
                    program.getString("name").value_or("?"), placeText(program),
                    program.getInteger("arena_bytes").value_or(0),
                    program.getInteger("live_bytes").value_or(0), operationsText(program, "flops"));
    }
  }
  printPeak(plan, os);
  printTimeline(plan, os);
  printVariables(plan, os);
  printAttentions(plan, os);
  printCollectives(plan, os);
}

} // namespace meshwright
