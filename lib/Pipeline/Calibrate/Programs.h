//===- Programs.h - what is trained to measure a machine ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_PIPELINE_CALIBRATE_PROGRAMS_H
#define MESHWRIGHT_LIB_PIPELINE_CALIBRATE_PROGRAMS_H

#include <cstdint>
#include <string>
#include <vector>

namespace meshwright::calibrate {

/// A model to compile and train for some steps.
struct Program {
  std::string config;             ///< the text of its config.json
  std::vector<std::string> flags; ///< of `meshwright compile`, without -o
  int64_t steps;
  /// One of two programs that differ in whether collectives run beside computation.
  enum Overlap { Any, On, Off } overlap = Any;
};

/// Programs whose kernels, products, calls of attention and collectives cover the sizes that
/// models have, for `ranks` ranks. `quick`: the small ones alone.
std::vector<Program> programsFor(int64_t ranks, bool quick);

} // namespace meshwright::calibrate

#endif // MESHWRIGHT_LIB_PIPELINE_CALIBRATE_PROGRAMS_H
