//===- Search.h - finds the layout whose step takes least ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_PIPELINE_PLANNER_SEARCH_H
#define MESHWRIGHT_LIB_PIPELINE_PLANNER_SEARCH_H

#include "Candidate.h"

namespace meshwright::planner {

/// When a search ends.
struct Limits {
  double seconds = 60;
  int64_t compiled = 0;    ///< the most layouts that are compiled; 0: any number
  unsigned threads = 0;    ///< that compile; 0: one for each processor
  bool exhaustive = false; ///< compiles everything, whatever bounds say
};

struct Found {
  std::vector<Candidate> fitting; ///< the fastest first
  std::vector<Candidate> others;  ///< that do not fit, those of fewest bytes first
  int64_t layouts = 0;            ///< in the space
  /// Of the best layout, and how many of these were not compiled since the search had ended.
  int64_t placements = 0, untriedPlacements = 0;
  int64_t compiled = 0, refused = 0; ///< placements among them
  int64_t tooLarge = 0; ///< by the bound of their bytes, not compiled
  std::string example;  ///< what one of these was refused for
  /// Whether each layout that was not compiled takes longer than the best one, or needs more memory
  /// than there is, by its bounds.
  bool complete = false;
  bool triedOffloads = true; ///< and less recomputation, of the best layouts
  bool isOutOfTime = false; ///< it ended because of `seconds`, not of the number of layouts
  /// No layout that was not compiled takes less, by its bound; the best step where that is less.
  double leastSeconds = 0;
  double seconds = 0; ///< that the search took
};

/// Compiles and simulates layouts within `limits`, those that promise most first, in rounds, so
/// that what is found does not depend on the number of threads. Progress goes to `log`, a line that
/// is written again, if it is a terminal.
Found searchLayouts(const Problem &problem, const Limits &limits, llvm::raw_ostream &log);

} // namespace meshwright::planner

#endif // MESHWRIGHT_LIB_PIPELINE_PLANNER_SEARCH_H
