//===- TraceFile.h - the file that --trace of an executable writes ------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_REPORT_TRACEFILE_H
#define MESHWRIGHT_LIB_REPORT_TRACEFILE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <map>
#include <string>
#include <vector>

namespace meshwright::report {

/// A span, with -1 for numbers that it does not have.
struct TraceEvent {
  std::string name, category, location;
  int64_t track, index, bytes;
  double begin, end; ///< seconds
};

/// The spans of each rank, in order of their begin.
using RankTraces = std::map<int64_t, std::vector<TraceEvent>>;

/// Reads a trace that was measured; one that a report predicts, or that lacks spans, is refused.
llvm::Expected<RankTraces> readTrace(llvm::StringRef path);

} // namespace meshwright::report

#endif // MESHWRIGHT_LIB_REPORT_TRACEFILE_H
