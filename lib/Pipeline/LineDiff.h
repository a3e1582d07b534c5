//===- LineDiff.h - the lines that differ between two texts ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_PIPELINE_LINEDIFF_H
#define MESHWRIGHT_LIB_PIPELINE_LINEDIFF_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <vector>

namespace meshwright {

/// A line of a comparison; `Kept` is in both texts.
struct DiffLine {
  enum Kind { Kept, Removed, Added } kind;
  llvm::StringRef text;
};

/// The lines of both texts in order. Lines that occur once in each are matched first (patience diff),
/// so that functions and ops with names stay together.
std::vector<DiffLine> diffLines(llvm::StringRef before, llvm::StringRef after);

} // namespace meshwright

#endif // MESHWRIGHT_LIB_PIPELINE_LINEDIFF_H
