//===- MeasuredCalls.cpp - how long the calls of a program took ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/MeasuredCalls.h"

#include "TraceFile.h"

#include "Dist/Dist.h"
#include "Dist/Programs.h"
#include "Exec/Exec.h"
#include "meshwright/Communication.h"
#include "meshwright/LocationText.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::report;

namespace {
/// What spans say of the op that they are of.
using SpanKey = std::tuple<std::string, std::string, int64_t>; // name, location, bytes

/// The calls of one program that have the same key: the products of a layer's forward and backward
/// do the same work, so they are one.
struct Calls {
  cost::CallWork work;
  bool differ = false; ///< calls with this key do not do the same
  std::vector<double> seconds;
};

class Reader {
public:
  Reader(ModuleOp module) : module(module), communication(module) {
    for (auto op : module.getOps<dist::MeshOp>())
      mesh = op.getMesh();
    for (ModuleOp program : dist::programsOf(module))
      addCalls(program);
  }

  void read(const RankTraces &traces);
  MeasuredRun result();

private:
  void addCalls(ModuleOp program);
  /// One step of a rank.
  void readStep(int64_t rank, const TraceEvent &step, llvm::ArrayRef<TraceEvent> events);

  ModuleOp module;
  codegen::Communication communication;
  dist::Mesh mesh;
  SymbolTableCollection symbols;
  cost::FlopCounter flops;
  cost::WorkReader reader;
  std::vector<ModuleOp> programs;
  std::vector<std::map<SpanKey, Calls>> calls; ///< by program
  /// The n-th run of a collective in a step, by collective, step and n: the member that came last
  /// waited for nobody, so the least time of all ranks. Clocks of machines need not agree.
  std::map<std::tuple<int64_t, int64_t, int64_t>, double> meetings;
  std::vector<double> steps, between, launches, beside;
  int64_t stepsRead = 0; ///< of a rank
};
} // namespace

/// As ProgramEmitter names spans.
static SpanKey keyOf(Operation *op) {
  int64_t bytes = 0;
  for (Value operand : op->getOperands())
    if (isa<MemRefType>(operand.getType()))
      bytes += exec::bytesOf(operand.getType());
  auto launch = dyn_cast<exec::LaunchOp>(op);
  return {launch ? launch.getKernel().str() : op->getName().stripDialect().str(),
          codegen::locationText(op->getLoc()), bytes};
}

void Reader::addCalls(ModuleOp program) {
  programs.push_back(program);
  std::map<SpanKey, Calls> &own = calls.emplace_back();
  auto step = program.lookupSymbol<exec::ProgramOp>("step");
  if (!step)
    return;
  cost::forEachRun(step.getBlock(), cost::Rounds::Expected, symbols, [&](Operation *op, double) {
    // Ops that compute; copies and collectives have spans of their own kinds.
    if (!isa<exec::LaunchOp>(op) && flops.of(op) == 0)
      return;
    cost::CallWork work = reader.of(op);
    auto [entry, isNew] = own.try_emplace(keyOf(op));
    Calls &known = entry->second;
    if (isNew)
      known.work = work;
    else if (known.work.kind != work.kind || known.work.flops != work.flops)
      known.differ = true;
  });
}

void Reader::readStep(int64_t rank, const TraceEvent &step, llvm::ArrayRef<TraceEvent> events) {
  size_t program = 0;
  while (program + 1 < programs.size() && !dist::runsOn(programs[program], mesh, rank))
    ++program;
  double busy = 0, count = 0, apart = 0;
  std::map<int64_t, int64_t> runs; // of collectives
  for (const TraceEvent &event : events) {
    if (event.begin < step.begin || event.begin >= step.end)
      continue;
    double seconds = event.end - event.begin;
    bool counts = event.category == "compute" || event.category == "collective" ||
                  event.category == "wait" || event.category == "copy";
    if (event.track == 0 && counts)
      busy += seconds;
    if (event.category == "compute") {
      ++count;
      auto found = calls[program].find({event.name, event.location, event.bytes});
      if (found != calls[program].end())
        found->second.seconds.push_back(seconds);
    } else if (event.category == "collective") {
      apart += event.track == 0 ? 0 : seconds;
      int64_t run = runs[event.index]++;
      double &least = meetings.try_emplace({event.index, stepsRead, run}, seconds).first->second;
      least = std::min(least, seconds);
    }
  }
  steps.push_back(step.end - step.begin);
  between.push_back(step.end - step.begin - busy);
  launches.push_back(count);
  beside.push_back(apart);
  ++stepsRead;
}

void Reader::read(const RankTraces &traces) {
  for (auto &[rank, events] : traces) {
    std::vector<const TraceEvent *> all;
    for (const TraceEvent &event : events)
      if (event.category == "step" && event.name == "step")
        all.push_back(&event);
    stepsRead = 0;
    for (size_t i = all.size() > 1; i < all.size(); ++i)
      readStep(rank, *all[i], events);
  }
}

double report::median(std::vector<double> values) {
  if (values.empty())
    return 0;
  auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The mean, of which a step's time is the sum, of values up to twice the median: what takes longer
/// was interrupted.
static double typical(llvm::ArrayRef<double> values) {
  double limit = 2 * median(values), sum = 0, count = 0;
  for (double value : values)
    if (value <= limit) {
      sum += value;
      ++count;
    }
  return count > 0 ? sum / count : 0;
}

MeasuredRun Reader::result() {
  MeasuredRun run;
  for (auto &program : calls)
    for (auto &[key, its] : program)
      if (!its.differ && !its.seconds.empty())
        run.calls.push_back({std::get<0>(key), std::get<1>(key), its.work, typical(its.seconds),
                             double(its.seconds.size()) / double(steps.size())});
  std::map<int64_t, std::vector<double>> seconds; // by collective
  for (auto &[key, least] : meetings)
    seconds[std::get<0>(key)].push_back(least);
  for (auto &[number, times] : seconds) {
    const codegen::Collective &collective = communication.collectives[number];
    run.collectives.push_back({collective.getName().str(), collective.members,
                               double(collective.groupBytes) / double(collective.members),
                               typical(times)});
  }
  run.step = typical(steps);
  run.between = typical(between);
  run.launches = median(launches);
  run.beside = typical(beside);
  return run;
}

void MeasuredRun::keepShorter(const MeasuredRun &other) {
  assert(calls.size() == other.calls.size() && collectives.size() == other.collectives.size() &&
         "the same executable on the same data makes the same calls");
  auto keep = [](double &mine, double its) { mine = std::min(mine, its); };
  for (auto [mine, its] : llvm::zip(calls, other.calls))
    keep(mine.seconds, its.seconds);
  for (auto [mine, its] : llvm::zip(collectives, other.collectives))
    keep(mine.seconds, its.seconds);
  for (auto part : {&MeasuredRun::step, &MeasuredRun::between, &MeasuredRun::beside})
    keep(this->*part, other.*part);
}

llvm::Expected<MeasuredRun> report::readMeasuredCalls(llvm::StringRef path, ModuleOp module) {
  llvm::Expected<RankTraces> traces = readTrace(path);
  if (!traces)
    return traces.takeError();
  Reader reader(module);
  reader.read(*traces);
  MeasuredRun run = reader.result();
  if (run.step == 0)
    return llvm::createStringError("'" + path + "' has no step");
  return run;
}
