//===- Prepare.h - what a search begins with --------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_PIPELINE_PLANNER_PREPARE_H
#define MESHWRIGHT_LIB_PIPELINE_PLANNER_PREPARE_H

#include "Layout.h"

namespace meshwright::planner {

/// Appends flags that are kept, "--mesh tensor=4 --schedule 1f1b", to the words of a command line.
/// Of --mesh the sizes of its axes are returned instead, which hold for these axes alone.
llvm::Expected<std::map<std::string, int64_t>> addKept(llvm::StringRef flags,
                                                       std::vector<std::string> &words);

/// What is searched for `options`, which must outlive it, on `devices` of their cluster (0: all).
/// An error if there is no such search.
llvm::Expected<Problem> prepare(const CompileOptions &options, int64_t devices,
                                std::map<std::string, int64_t> axes, mlir::MLIRContext &context);

} // namespace meshwright::planner

#endif // MESHWRIGHT_LIB_PIPELINE_PLANNER_PREPARE_H
