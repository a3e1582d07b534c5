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
  int64_t ranks = 1, arenaBytes = 0;
};

/// The plan of a module at stage exec.
llvm::Expected<Plan> buildPlan(mlir::ModuleOp module);

/// Writes `directory`/report.json and a self-contained `directory`/index.html.
llvm::Error writeReport(const Plan &plan, llvm::StringRef directory);

/// Fails unless the plan satisfies `condition`: a quantity (`peak`: bytes of a
/// rank's arena), `<=`, `<`, `>=` or `>`, and a number of bytes with or without
/// a unit (70GiB, 1.5e9).
llvm::Error checkAssertion(const Plan &plan, llvm::StringRef condition);

/// The plan as tables on a terminal.
void printPlan(const llvm::json::Object &plan, llvm::raw_ostream &os);

/// The losses of `--metrics` files as a curve: on a terminal, and to `svg` if it
/// names a file.
llvm::Error plotLosses(llvm::ArrayRef<std::string> files, llvm::StringRef svg,
                       llvm::raw_ostream &os);

} // namespace meshwright

#endif // MESHWRIGHT_REPORT_H
