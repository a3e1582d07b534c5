//===- MeasuredCalls.h - how long the calls of a program took -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_MEASUREDCALLS_H
#define MESHWRIGHT_MEASUREDCALLS_H

#include "meshwright/Cost/CallWork.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace meshwright::report {

/// The middle of `values`, of an even number the upper one; 0 of none.
double median(std::vector<double> values);

/// A kernel, a product or a call of attention.
struct MeasuredCall {
  std::string name, location;
  cost::CallWork work;
  double seconds; ///< the mean of its runs on all ranks
  double runs;    ///< in a step of a rank
};

/// A collective, or the sending of a message.
struct MeasuredCollective {
  std::string name; ///< as ops are called
  int64_t members;
  double bytes;   ///< that a member sends
  double seconds; ///< the mean of its runs, of the member that came last
};

/// Means leave out what took more than twice as long as the median, which something interrupted.
struct MeasuredRun {
  std::vector<MeasuredCall> calls;
  std::vector<MeasuredCollective> collectives;
  double step = 0;    ///< seconds, the mean over steps and ranks
  double between = 0; ///< of a step, in which no call ran and nothing was waited for
  double launches = 0; ///< calls of a step
  double beside = 0;   ///< of a step, in which collectives ran beside computation

  /// Takes the shorter times of `other`, a run of the same executable.
  void keepShorter(const MeasuredRun &other);
};

/// Reads what `--trace` of an executable wrote that was compiled from `module`, which is at phase
/// exec. The first of several steps is left out.
llvm::Expected<MeasuredRun> readMeasuredCalls(llvm::StringRef path, mlir::ModuleOp module);

} // namespace meshwright::report

#endif // MESHWRIGHT_MEASUREDCALLS_H
