//===- StepTime.h - how long a step takes, and why --------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_STEPTIME_H
#define MESHWRIGHT_STEPTIME_H

#include "meshwright/Cost/Cluster.h"
#include "meshwright/Cost/Profile.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"

#include <map>
#include <string>
#include <vector>

namespace meshwright {

/// Seconds of a step on one device, by what they go to. They add up to the step.
struct TimeParts {
  double products = 0;  ///< matrix products, dense and of experts
  double attention = 0; ///< and its gradient
  double kernels = 0;   ///< generated kernels, which memory bounds as a rule
  double optimizer = 0; ///< kernels of the update, norms and casts of parameters
  double launches = 0;  ///< between kernels
  double copies = 0;    ///< waiting for copies from and to the host
  /// Waiting for collectives and messages, by the mesh axes along which they go.
  std::map<std::string, double> communication;
  double bubble = 0; ///< waiting for other pipeline stages

  /// Calls `visit(name, seconds)` for each.
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
  };
  std::vector<Program> programs;

  /// Over all ranks.
  TimeParts mean() const;
};

/// How long a step of a module at phase exec takes on `cluster`, or would take the system of
/// `profile`. An error if the cluster has fewer devices than the mesh.
llvm::Expected<StepTime> predictStep(mlir::ModuleOp module, const cost::Cluster &cluster,
                                     const cost::Profile &profile = {});

} // namespace meshwright

#endif // MESHWRIGHT_STEPTIME_H
