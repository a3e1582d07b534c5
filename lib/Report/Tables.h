//===- Tables.h - what follows from a plan ----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The tables that pages, terminals, assertions and comparisons show, all made from
// the plan alone, so that they can be made of an executable's plan too.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_REPORT_TABLES_H
#define MESHWRIGHT_LIB_REPORT_TABLES_H

#include "meshwright/runtime/PlanSchema.h"

#include "llvm/ADT/StringRef.h"

namespace meshwright::report {

/// How often a collective runs, "8", or "8 in 4 rounds" where data says how many of the rounds run.
std::string timesText(const plan::Collective &op);

/// All collectives of one kind along the same axes in one run of a program.
struct Traffic {
  std::string program;
  /// Those longer than 1, as "data" or "replica,data".
  std::string axes;
  std::string op;
  int64_t calls = 0;
  /// What all ranks send. A double, as many ranks may send more than 2^63 bytes.
  double bytes = 0;
  /// What one of them sends on average.
  int64_t bytesOfRank = 0;
  MESHWRIGHT_FIELDS(v("program", self.program); v("axes", self.axes); v("op", self.op);
                    v("calls", self.calls); v("rank_bytes", self.bytesOfRank);
                    v("bytes", self.bytes);)
};
/// By program, then axes, then kind.
std::vector<Traffic> trafficOf(const plan::Plan &plan);

/// A variable of which the devices along an axis hold copies.
struct Copies {
  std::string variable, role, axis;
  int64_t size = 0;  ///< of the axis
  int64_t bytes = 0; ///< of the variable on one rank
  std::string reason;
  MESHWRIGHT_FIELDS(v("variable", self.variable); v("role", self.role); v("axis", self.axis);
                    v("size", self.size); v("bytes", self.bytes); v("reason", self.reason);)
};
std::vector<Copies> copiesOf(const plan::Plan &plan);

/// Bytes of a category at the peak; 0 if none are.
int64_t categoryBytes(const plan::Plan &plan, llvm::StringRef category);
/// The categories there can be.
std::vector<llvm::StringRef> categories();

/// Why work is done again, in words; `reason` is one of `plan::Recomputed`.
std::string recomputedText(llvm::StringRef reason);

/// How many parameters a model has, and how many of them a token uses where there are experts.
struct Parameters {
  int64_t all = 0, used = 0;
};
Parameters parametersOf(const plan::Plan &plan);

/// A variable's bytes on one rank.
int64_t bytesOf(const plan::Variable &variable);
/// What all communicators of a rank allocate at most, where ranks send messages.
int64_t scratchBytes(const plan::Plan &plan);
/// What the tensors of a checkpoint take, and so their copy with --async-save: the trained weights, the optimizer's states and
/// averages of weights, in f32.
int64_t checkpointBytes(const plan::Plan &plan);

/// Rounded to an integer, with commas; of numbers that may exceed 2^63.
std::string grouped(double number);

/// Where a program runs: "pipe 0", or "everywhere".
std::string coordinatesText(const plan::Program &program);
std::string shapeText(const plan::Shape &shape);
/// "dim 0 over data", or "replicated".
std::string shardingText(const plan::List<plan::List<std::string>> &sharding);
std::string meshText(const plan::Plan &plan);
/// "bf16, gradients in f32"; gradients of a f32 model are f32.
std::string precisionText(const plan::Plan &plan);

/// What pairs of queries and keys are counted of: where documents begin is known when they are read.
const char *asOneDocument(const plan::Plan &plan);

} // namespace meshwright::report

#endif // MESHWRIGHT_LIB_REPORT_TABLES_H
