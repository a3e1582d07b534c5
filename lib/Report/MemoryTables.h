//===- MemoryTables.h - memory over time as data and as a picture ------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_REPORT_MEMORYTABLES_H
#define MESHWRIGHT_LIB_REPORT_MEMORYTABLES_H

#include "Exec/Memory/MemoryProfile.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace meshwright::report {

/// What docs/plan.md calls `peak` of a program: the largest buffers when most is live, of
/// those that do not outlast the step.
llvm::json::Object peakOf(const std::map<std::string, exec::MemoryProfile> &profiles);

/// What docs/plan.md calls an entry of `memory_over_time`, without its name.
llvm::json::Object overTime(const exec::MemoryProfile &profile);

/// The picture of an entry of `memory_over_time`: what is live as stacked areas, the peak
/// and the arena as lines.
void drawMemorySvg(const llvm::json::Object &entry, int64_t arenaBytes, llvm::raw_ostream &os);

/// The rows of a program's `peak`: name, category, bytes, where it is from.
struct PeakRow {
  std::string name, category, task, op, location;
  int64_t bytes = 0, slices = 1;
};
std::vector<PeakRow> peakRows(const llvm::json::Object &program);
/// "peak in @step at op 12 of 400, in B1.0"; empty if the program does not say.
std::string peakPlace(const llvm::json::Object &program);
/// Of the peak's bytes those that are in no row.
int64_t peakOthers(const llvm::json::Object &program);

} // namespace meshwright::report

#endif // MESHWRIGHT_LIB_REPORT_MEMORYTABLES_H
