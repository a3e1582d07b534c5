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
#include "meshwright/Report.h"
#include "meshwright/TimelinePicture.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace meshwright::report;

namespace meshwright {

static void printVariables(const plan::Plan &plan, raw_ostream &os) {
  TextTable table({"parameter", "type", "shape", "on a rank", "sharding"});
  for (const plan::Variable &variable : plan.variables)
    if (variable.role == "parameter")
      table.row({variable.name, variable.type, shapeText(variable.shape),
                 shapeText(variable.localShape), shardingText(variable.sharding)});
  os << "\n";
  table.print(os);
}

static void printCollectives(const plan::Plan &plan, raw_ostream &os) {
  os << formatv("\n{0} collectives\n", plan.collectives.size());
  TextTable table({"#number", "operation", "in", "#times", "#elements", "type", "#bytes of group",
                   "where in the IR"});
  for (auto [i, op] : enumerate(plan.collectives))
    table.row({number(i), op.op, op.entry, timesText(op), number(op.count), op.type,
               number(op.groupBytes), op.location});
  if (!plan.collectives.empty())
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

static void printAttentions(const plan::Plan &plan, raw_ostream &os) {
  if (!plan.attentions || plan.attentions->empty())
    return;
  TextTable table({"attention", "by", "type", "batch x queries x keys", "heads", ""});
  for (const plan::Attention &call : *plan.attentions) {
    std::string note = call.reason.value_or(""), on;
    if (call.tensorCores)
      on = *call.tensorCores ? "on tensor cores" : "on cores for arithmetic";
    if (!on.empty() && !note.empty())
      note = on + "; " + note;
    if (call.workspaceBytes)
      note = formatv("workspace {0:N0} bytes{1}{2}", *call.workspaceBytes,
                     call.deterministic.value_or(false) ? ", deterministic" : "",
                     call.fallback.value_or(false) ? ", else generated " + on : "");
    table.row({call.op, call.by, call.type,
               formatv("{0} x {1} x {2}", call.batch, call.queries, call.keys).str(),
               formatv("{0}/{1} x {2}{3}", call.heads, call.kvHeads, call.headDim,
                       call.valueDim ? formatv("/{0}", *call.valueDim).str() : std::string())
                   .str(),
               note});
  }
  os << "\n";
  table.print(os);
}

/// Of the program that needs most.
static void printPeak(const plan::Plan &plan, raw_ostream &os) {
  constexpr size_t rows = 10;
  const plan::Program *most = nullptr;
  for (const plan::Program &program : plan.programs)
    if (!most || program.arenaBytes > most->arenaBytes)
      most = &program;
  if (!most || !most->peak || most->peak->buffers.empty())
    return;
  os << formatv("\nlargest buffers at the peak of {0}, without persistent ones, {1}\n", most->name,
                peakLocation(*most->peak));
  TextTable table({"#bytes", "#", "category", "task", "written by", "#slices", "source"});
  for (const plan::PeakBuffer &row : ArrayRef(most->peak->buffers).take_front(rows))
    table.row({number(row.bytes), sizeText(double(row.bytes)), row.category, row.task,
               row.op.empty() ? row.name : row.op, row.slices > 1 ? number(row.slices) : "",
               row.location});
  table.print(os);
}

static void printTimeline(const plan::Plan &plan, raw_ostream &os) {
  Expected<std::optional<StepTasks>> tasks = tasksOf(plan);
  if (!tasks) {
    os << "\nno timeline: " << toString(tasks.takeError()) << "\n";
    return;
  }
  if (!*tasks)
    return;
  os << "\npipeline stages over a step; lengths are in FLOPs, the whole step is 100\n";
  drawTimelineText((*tasks)->timeline, os);
  describeTimeline("tasks", (*tasks)->schedule, (*tasks)->timeline, os);
}

static std::string sourceOf(const plan::MemoryLine &) { return ""; }
static std::string sourceOf(const plan::Allowance &line) { return line.source; }

/// How many bytes each category takes, and why.
template <typename Line>
static void printMemory(StringRef title, const std::vector<Line> &lines, raw_ostream &os) {
  TextTable table({title.str(), "#bytes", "#", ""});
  for (const Line &line : lines)
    table.row({line.category, number(line.bytes), sizeText(double(line.bytes)), sourceOf(line)});
  os << "\n";
  table.print(os);
}

/// What is in an offload space, and what programs copy from and to there.
static void printOffloaded(const plan::Plan &plan, MemorySpace space, raw_ostream &os) {
  if (!plan.offloaded[space].memory)
    return;
  std::string text = spaceRow(space).text;
  printMemory("memory on " + text, *plan.offloaded[space].memory, os);
  TextTable table({"bytes copied", "in", "#to the device", "#to " + text});
  for (const plan::Program &program : plan.programs)
    if (program.offloaded[space].bytes && program.copiedBytes)
      for (const auto &[entry, copied] : *program.copiedBytes)
        table.row({program.name, entry, number(copied.in(space, /*stores=*/false)),
                   number(copied.in(space, /*stores=*/true))});
  os << "\n";
  table.print(os);
}

/// Why a step does work again.
static void printRecomputed(const plan::Plan &plan, raw_ostream &os) {
  if (!plan.recomputed)
    return;
  TextTable table({"recomputed", "#FLOPs per step", "#", "why"});
  for (const plan::Recomputed &row : *plan.recomputed)
    table.row({row.reason, grouped(row.flops),
               formatv("{0:f1}% of all", 100 * row.flops / plan.flops), recomputedText(row.reason)});
  os << "\n";
  table.print(os);
}

static void printRepeated(const plan::Plan &plan, raw_ostream &os) {
  if (!plan.repeated)
    return;
  std::vector<plan::Repeated> rows = *plan.repeated;
  llvm::stable_sort(rows, [](const auto &a, const auto &b) { return a.flops > b.flops; });
  TextTable table({"computed redundantly", "along", "#redundant FLOPs"});
  for (const plan::Repeated &row : rows)
    table.row({row.location, llvm::join(row.axes, ", "), grouped(row.flops)});
  os << "\n";
  table.print(os);
}

static void printPrograms(ArrayRef<plan::Program> programs, raw_ostream &os) {
  TextTable table({"program", "at", "#arena", "#", "#live", "#FLOPs per step"});
  for (const plan::Program &program : programs)
    table.row({program.name, coordinatesText(program), number(program.arenaBytes),
               sizeText(double(program.arenaBytes)), number(program.liveBytes),
               grouped(program.flops)});
  os << "\n";
  table.print(os);
}

void printPlan(const plan::Plan &plan, raw_ostream &os) {
  os << formatv("model        {0}\n", plan.model);
  Parameters parameters = parametersOf(plan);
  os << formatv("parameters   {0:N0}", parameters.all);
  if (parameters.used != parameters.all)
    os << formatv(", of which a token uses {0:N0}", parameters.used);
  os << "\n";
  os << formatv("target       {0}, {1}, {2}\n", plan.target, precisionText(plan), plan.optimizer);
  os << formatv("mesh         {0}\n", meshText(plan));
  os << formatv("batch        {0} sequences of {1} tokens in {2} microbatch{3}\n", plan.batch,
                plan.sequence, plan.microbatches, plan.microbatches == 1 ? "" : "es");
  os << formatv("plan         {0}\n", plan.hash);
  os << formatv("arena        {0} a rank\n", bytesText(plan.arenaBytes));
  for (MemorySpace space : offloadSpaces)
    if (std::optional<int64_t> bytes = plan.offloaded[space].bytes)
      os << formatv("on {0,-8}  {1} a rank outside the arena\n", spaceRow(space).text, bytesText(*bytes));
  os << formatv("messages     {0} a rank outside the arena, if ranks are processes\n",
                bytesText(scratchBytes(plan)));
  os << formatv("checkpoint   {0}; --async-save copies it on rank 0's host, or of shards on each rank its part\n",
                bytesText(checkpointBytes(plan)));
  os << formatv("buddy        --buddy keeps {0} in the memory of one machine, or {1} on several together\n",
                bytesText(2 * checkpointBytes(plan)), bytesText(4 * checkpointBytes(plan)));
  os << formatv("work         {0} FLOPs per step, {1} of them recomputed\n",
                countText(plan.flops), countText(plan.recomputedFlops));
  if (plan.repeated) {
    double flops = 0;
    for (const plan::Repeated &row : *plan.repeated)
      flops += row.flops;
    os << formatv("repeated     {0} of them, in matrix products that several ranks compute redundantly\n",
                  countText(flops));
  }
  if (plan.attentionImbalance)
    os << formatv("attention    the most loaded rank has {0:f3} times the mean{1}\n",
                  *plan.attentionImbalance, asOneDocument(plan));
  printRecomputed(plan, os);
  printMemory("memory at the peak", plan.memory, os);
  if (!plan.allowances.empty()) {
    printMemory("allowances beside it", plan.allowances, os);
    os << "to fit a device: " << bytesText(plan.deviceBytes) << "\n";
  }
  for (MemorySpace space : offloadSpaces)
    printOffloaded(plan, space, os);
  if (plan.programs.size() > 1)
    printPrograms(plan.programs, os);
  printPeak(plan, os);
  printTimeline(plan, os);
  printVariables(plan, os);
  printRepeated(plan, os);
  printAttentions(plan, os);
  printCollectives(plan, os);
}

} // namespace meshwright
