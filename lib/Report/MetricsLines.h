//===- MetricsLines.h - what --metrics wrote, line by line -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_REPORT_METRICSLINES_H
#define MESHWRIGHT_LIB_REPORT_METRICSLINES_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace meshwright::report {

/// Calls `visit` for each line of the file, an object, with the line's number from 1.
llvm::Error readMetrics(llvm::StringRef path,
                        llvm::function_ref<llvm::Error(const llvm::json::Object &, size_t)> visit);

/// Writes what `draw` draws into `file`, if that is not empty.
llvm::Error writePicture(llvm::StringRef file, llvm::function_ref<void(llvm::raw_ostream &)> draw);

} // namespace meshwright::report

#endif // MESHWRIGHT_LIB_REPORT_METRICSLINES_H
