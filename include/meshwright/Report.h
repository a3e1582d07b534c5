//===- Report.h - the plan, as data and as pictures --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_REPORT_H
#define MESHWRIGHT_REPORT_H

#include "meshwright/Cost/Cluster.h"
#include "meshwright/runtime/PlanSchema.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace meshwright {

/// The bytes live at each op of an entry point, as `memory_over_time` in docs/plan.md.
struct MemoryOverTime {
  struct Point {
    int64_t op = 0;
    plan::Table<int64_t> live; ///< bytes by category
    MESHWRIGHT_FIELDS(v("op", self.op);
                      for (auto &[category, bytes] : self.live) v(category.c_str(), bytes);)
  };
  struct Task {
    int64_t op = 0;
    std::string task;
    MESHWRIGHT_FIELDS(v("op", self.op); v("task", self.task);)
  };
  int64_t in = 0; ///< which of the plan's programs
  std::string program;
  int64_t ops = 0, peakOp = 0, peakBytes = 0;
  std::vector<Point> points;
  std::vector<Task> tasks;
  /// For the page alone: what ops are called, the call of each op as a number in that list, the largest buffer that begins
  /// to be live at an op, with its bytes, and the first op that updates parameters.
  std::vector<std::string> calls;
  std::vector<int64_t> callAt;
  std::map<int64_t, std::pair<std::string, int64_t>> begins;
  std::optional<int64_t> firstUpdate;
  MESHWRIGHT_FIELDS(v("in", self.in); v("program", self.program); v("ops", self.ops);
                    v("peak_op", self.peakOp); v("peak_bytes", self.peakBytes);
                    v("points", self.points); v("tasks", self.tasks);)
};

/// What is expected of a step on a cluster.
struct ExpectedStep {
  struct Part {
    std::string what; ///< as `meshwright predict` calls it
    double seconds = 0;
    MESHWRIGHT_FIELDS(v("what", self.what); v("seconds", self.seconds);)
  };
  std::string cluster;
  double seconds = 0, tokensPerDevice = 0; ///< tokens a second
  double mfu = 0;
  std::vector<Part> parts; ///< the mean over devices; they add up to `seconds`
  std::map<std::string, std::string> links; ///< by axes of the mesh: what communication along them goes over
  MESHWRIGHT_FIELDS(v("cluster", self.cluster); v("seconds", self.seconds);
                    v("tokens_per_s_per_device", self.tokensPerDevice); v("mfu", self.mfu);
                    v("parts", self.parts); v("links", self.links);)
};

/// The plan of a compiled module, and further data of a report, if asked for.
struct CompiledPlan : plan::Plan {
  std::string json; ///< the text that the executable carries
  std::vector<MemoryOverTime> memoryOverTime; ///< for each program and entry point
  std::string predictedTrace;                 ///< of a step
  std::optional<ExpectedStep> expected;       ///< where a cluster was given
  /// Bytes that a rank may have on its device, and where the number comes from; 0: not known.
  double limit = 0;
  std::string limitSource;
};

/// The plan of a module at phase exec, with the data that `writeReport` needs `forReport`: times in
/// it are those on `cluster`, or relative without one. `numbers` are what changes the numbers that an executable computes.
llvm::Expected<CompiledPlan> buildPlan(mlir::ModuleOp module, bool forReport = false,
                               const cost::Cluster *cluster = nullptr,
                               plan::List<plan::Setting> numbers = {});

/// The text of `plan` that an executable carries.
std::string planText(const plan::Plan &plan);

/// The hash that `plan` must have (PlanHash.h). What an assembler said of its kernels is no part of
/// it.
std::string planHash(plan::Plan plan);

/// Writes `directory`/report.json, a self-contained `directory`/index.html, the pictures in
/// it as SVG, and `directory`/trace.json.
llvm::Error writeReport(const CompiledPlan &plan, llvm::StringRef directory);

/// Fails unless the plan satisfies `condition`: quantities joined by +, `<=`, `<`,
/// `>=` or `>`, and a number with or without a unit, e.g. peak<=70GiB. Bytes of a
/// rank: `peak`, its arena; `device`, that and the allowances beside it; a category of memory at
/// the peak, e.g. `parameter`; `communication`, the bytes sent in a step, on average over ranks, or
/// `communication[data,tensor]`, those of them sent along these axes. Others are `flops` of
/// a step over all ranks, and `collectives`, calls in a step.
llvm::Error checkAssertion(const plan::Plan &plan, llvm::StringRef condition);

/// Prints the differences of two plans as tables and returns the number of rows that
/// differ; 0 only if the plans are equal.
unsigned diffPlans(const plan::Plan &a, const plan::Plan &b, llvm::raw_ostream &os);

int64_t ranksOf(const plan::Plan &plan);
/// What a rank needs of each memory space: of the device's `device_bytes`, of others their arenas.
BySpace<int64_t> neededBytes(const plan::Plan &plan);
/// The offload spaces in it, e.g. " and 1,024 on the host".
std::string offloadedText(const BySpace<int64_t> &bytes);
/// The sum of the allowances.
int64_t bytesOf(llvm::ArrayRef<plan::Allowance> allowances);

/// The plan as tables on a terminal.
void printPlan(const plan::Plan &plan, llvm::raw_ostream &os);

/// What `meshwright plot` draws.
struct LossPlot {
  std::vector<std::string> files; ///< of --metrics
  std::string svg;                ///< the picture's file; empty: none
  std::string metric = "loss";    ///< a key of the files; of the loss evaluations are drawn too
  int64_t smooth = 1;             ///< each point is the mean of so many steps
  bool overTokens = false;        ///< and not over steps
  bool logSteps = false, logValues = false; ///< logarithmic axes
};

/// Draws what `plot` says as curves: on a terminal, and as a picture.
llvm::Error plotLosses(const LossPlot &plot, llvm::raw_ostream &os);

/// How evenly the tokens that a `--metrics` file counts choose experts, as a table, and to `svg` as
/// a picture if it names a file.
llvm::Error plotExperts(llvm::StringRef file, llvm::StringRef svg, llvm::raw_ostream &os);
/// Says of the last loads of experts in `metrics` how many rows the busiest device of `plan` computes, without copies of experts and
/// with them.
llvm::Error printPlacement(const plan::Plan &plan, llvm::StringRef metrics, llvm::raw_ostream &os);

} // namespace meshwright

#endif // MESHWRIGHT_REPORT_H
