//===- Explain.h - why a layout is as fast as it is -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_PIPELINE_PLANNER_EXPLAIN_H
#define MESHWRIGHT_LIB_PIPELINE_PLANNER_EXPLAIN_H

#include "Search.h"

namespace meshwright::planner {

/// What a step's time goes to beside products and attention, where it is much: "bubble of 4 stages
/// with 8 microbatches 11%, all_gather along tensor on NVSwitch 7%".
std::string bindingOf(const Candidate &candidate);

/// What a slower layout loses against the best, and by what: "tensor=4 loses 6.0%: all_gather along
/// tensor on InfiniBand +5.1%".
std::string lossOf(const Problem &problem, const Candidate &best, const Candidate &candidate);

/// Why a search has found nothing: how many bytes are missing for the layout that needs fewest, and
/// what single changes do, each compiled, those that help most first.
llvm::Error nothingFits(const Problem &problem, const Found &found, unsigned threads);

} // namespace meshwright::planner

#endif // MESHWRIGHT_LIB_PIPELINE_PLANNER_EXPLAIN_H
