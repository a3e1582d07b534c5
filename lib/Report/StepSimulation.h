//===- StepSimulation.h - how long a step takes ------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A discrete-event simulation of the compiled programs: what they compute runs on one stream,
// what they send on the links of a level, copies from and to the host on theirs.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_REPORT_STEPSIMULATION_H
#define MESHWRIGHT_LIB_REPORT_STEPSIMULATION_H

#include "meshwright/Cost/Cluster.h"
#include "meshwright/StepTime.h"

#include "mlir/IR/BuiltinOps.h"

namespace meshwright::report {

/// Something that takes time in the simulation.
struct SimulatedEvent {
  enum Track { Computing, Communicating } track;
  int64_t program;
  mlir::Operation *op;
  std::string name;
  double begin, end; ///< seconds
};
/// Told of events in the order of their begin within a program and track. Of a loop the first
/// iteration is told of, and of the tasks that call one function the first.
using EventObserver = llvm::function_ref<void(const SimulatedEvent &)>;

/// Simulates one step of a module at phase exec on `cluster`, in which ranks are devices in their
/// order, as the system of `profile` would do it. An error if programs wait for each other for ever, or the mesh has more devices than the
/// cluster.
llvm::Expected<StepTime> simulateStep(mlir::ModuleOp module, const cost::Cluster &cluster,
                                      const cost::Profile &profile, EventObserver observe);

/// A machine of any number of devices, without latencies and launches: where no cluster is known,
/// only the parts of a step can be compared.
cost::Cluster machineOf(const cost::Device &device);

} // namespace meshwright::report

#endif // MESHWRIGHT_LIB_REPORT_STEPSIMULATION_H
