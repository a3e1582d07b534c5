//===- StepTime.h - how long a step takes, and why --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_STEPTIME_H
#define MESHWRIGHT_STEPTIME_H

#include "meshwright/Cost/Cluster.h"
#include "meshwright/Cost/Profile.h"
#include "meshwright/runtime/PlanSchema.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"

#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace meshwright {

/// What devices wait for that communicate.
struct CommunicationKind {
  std::string axes;  ///< of the mesh, along which it goes, between commas
  std::string what;  ///< the collective as ops are called, or "message"
  std::string level; ///< the links that it uses, as the cluster calls them

  bool operator<(const CommunicationKind &other) const {
    return std::tie(axes, what, level) < std::tie(other.axes, other.what, other.level);
  }
};

/// Seconds of a step on one device, by what they go to. They add up to the step.
struct TimeParts {
  double products = 0;  ///< matrix products, dense and of experts
  double attention = 0; ///< and its gradient
  double kernels = 0;   ///< generated kernels, which memory bounds as a rule
  double optimizer = 0; ///< kernels of the update, norms and casts of parameters
  double launches = 0;  ///< between kernels
  double copies = 0;    ///< waiting for copies from and to offload spaces
  std::map<CommunicationKind, double> communication; ///< waiting for collectives and messages
  double bubble = 0; ///< waiting for other pipeline stages

  /// Calls `visit(name, seconds)` for each, with communication by the axes along which it goes.
  void forEach(llvm::function_ref<void(llvm::StringRef, double)> visit) const;
  double sum() const;
  /// Adds `factor` times `other`.
  void add(const TimeParts &other, double factor = 1);
};

struct StepTime {
  double seconds = 0;
  struct Program {
    std::string name;
    int64_t ranks = 1;
    TimeParts parts;
    double longestWait = 0;  ///< seconds in which it waits for one copy from or to an offload space, at most
    std::string waitsFor;    ///< that copy, and where in the IR it is from; empty if it waits for none
  };
  std::vector<Program> programs;

  /// Over all ranks.
  TimeParts mean() const;
};

/// Seconds as people say them: "1.234 s", "5.678 ms".
std::string timeText(double seconds);

/// What follows from a plan and the time of its step on a cluster.
struct StepRates {
  StepRates(const plan::Plan &plan, const cost::Cluster &cluster, double seconds);

  double ranks;
  double tokensPerDevice; ///< a second
  double peakRate;        ///< FLOPs a second that a device promises, for the plan's precision
  double modelFlops;      ///< of a step, without what is recomputed
  double mfu;
};

/// How long a step of a module at phase exec takes on `cluster`, or would take the system of
/// `profile`. An error if the cluster has fewer devices than the mesh.
llvm::Expected<StepTime> predictStep(mlir::ModuleOp module, const cost::Cluster &cluster,
                                     const cost::Profile &profile = {});

} // namespace meshwright

#endif // MESHWRIGHT_STEPTIME_H
