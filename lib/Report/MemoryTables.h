//===- MemoryTables.h - memory over time as data and as a picture ------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_REPORT_MEMORYTABLES_H
#define MESHWRIGHT_LIB_REPORT_MEMORYTABLES_H

#include "meshwright/MemoryProfile.h"
#include "meshwright/Report.h"

#include "llvm/Support/raw_ostream.h"

namespace meshwright::report {

/// The largest buffers when most is live, of those that do not outlast the step; nothing
/// where there is no program.
std::optional<plan::Peak> peakOf(const std::map<std::string, exec::MemoryProfile> &profiles);

/// What is live over the ops of an entry point, without its name.
MemoryOverTime overTime(const exec::MemoryProfile &profile);

/// A picture of that: what is live as stacked areas, the peak and the arena as lines.
void drawMemorySvg(const MemoryOverTime &entry, int64_t arenaBytes, llvm::raw_ostream &os);

/// What the page's script reads to say what runs and what is live under the cursor of that picture, which stands before it.
void writeMemoryCursor(const MemoryOverTime &entry, llvm::raw_ostream &os);

/// "peak in @step at op 12 of 400, in B1.0".
std::string peakLocation(const plan::Peak &peak);

} // namespace meshwright::report

#endif // MESHWRIGHT_LIB_REPORT_MEMORYTABLES_H
