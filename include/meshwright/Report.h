//===- Report.h - the plan, as data and as pictures --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_REPORT_H
#define MESHWRIGHT_REPORT_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <string>

namespace meshwright {

/// What an executable is planned to do, as docs/plan.md describes it.
struct Plan {
  std::string json; ///< the text that the executable carries
  int64_t ranks = 1, arenaBytes = 0, hostBytes = 0;
  /// Bytes that a rank's device must have: the arena and the allowances beside it, of the
  /// program that needs most; and these allowances by program.
  int64_t deviceBytes = 0;
  std::vector<int64_t> besideBytes;
  double recomputedFlops = 0; ///< of a step over all ranks
  /// Further data of a report, if asked for: live bytes by op, for each program and entry
  /// point, and the trace of a step.
  llvm::json::Array memoryOverTime;
  std::string predictedTrace;
};

/// The plan of a module at phase exec, with the data that `writeReport` needs `forReport`.
llvm::Expected<Plan> buildPlan(mlir::ModuleOp module, bool forReport = false);

/// Writes `directory`/report.json, a self-contained `directory`/index.html, the pictures in
/// it as SVG, and `directory`/trace.json.
llvm::Error writeReport(const Plan &plan, llvm::StringRef directory);

/// Fails unless the plan satisfies `condition`: quantities joined by +, `<=`, `<`,
/// `>=` or `>`, and a number with or without a unit, e.g. peak<=70GiB. Bytes of a
/// rank: `peak`, its arena; `device`, that and the allowances beside it; what a category of memory has at the peak, e.g.
/// `parameter`; `communication`, what it sends in a step, on average over ranks, or
/// `communication[data,tensor]`, of that what goes along these axes. Else `flops` of a
/// step over all ranks, and `collectives`, calls in a step.
llvm::Error checkAssertion(const Plan &plan, llvm::StringRef condition);

/// Prints the differences of two plans as tables and returns the number of rows that
/// differ; 0 only if the plans are equal.
unsigned diffPlans(const llvm::json::Object &a, const llvm::json::Object &b,
                   llvm::raw_ostream &os);

/// Whether this is a complete plan, from an executable or a file.
bool isPlan(const llvm::json::Object &plan);

/// The plan as tables on a terminal.
void printPlan(const llvm::json::Object &plan, llvm::raw_ostream &os);

/// The measured ceilings of a machine: bytes read and written a second, and operations of
/// matrix products a second; 0 if not given.
struct Ceilings {
  double copyRate = 0, matmulRate = 0;
  bool known() const { return copyRate > 0 && matmulRate > 0; }
};

/// The bytes and operations of each kernel of a step as a table; with ceilings also the time
/// that no implementation can beat.
void printKernels(const llvm::json::Object &plan, const Ceilings &ceilings, llvm::raw_ostream &os);

/// The losses of `--metrics` files as a curve: on a terminal, and to `svg` if it
/// names a file.
llvm::Error plotLosses(llvm::ArrayRef<std::string> files, llvm::StringRef svg,
                       llvm::raw_ostream &os);

} // namespace meshwright

#endif // MESHWRIGHT_REPORT_H
