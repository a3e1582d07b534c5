//===- AttentionRows.h - where queries, keys and values lie in files -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_FRONTEND_ATTENTIONROWS_H
#define MESHWRIGHT_FRONTEND_ATTENTIONROWS_H

#include "Experts.h"

namespace meshwright::frontend {
/// Whether heads of queries and keys are permuted when they are read.
bool isPermuted(const Model &m);
/// Appends the rows of one head, which is at `base`, as runs of (begin, count, step).
void addHead(llvm::SmallVectorImpl<int64_t> &runs, const Model &m, int64_t base, bool permuted);
/// Where the queries (part 0), keys (1) or values (2) lie.
FileRows rowsOf(const Model &m, int part);
} // namespace meshwright::frontend

#endif
