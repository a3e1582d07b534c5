//===- Remat.h - what the backward computes again ----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_REMAT_H
#define MESHWRIGHT_REMAT_H

#include "mlir/IR/BuiltinOps.h"

#include "meshwright/PipelineSchedule.h"
#include "meshwright/RematPolicy.h"

#include <memory>
#include <vector>

namespace meshwright::cost {
struct Device;
}

namespace meshwright {

/// A policy and its costs on one device and microbatch, by the graph of the layers:
/// the largest sum of bytes held, and FLOPs run again, with bytes that collectives send as those of
/// the device's flopsPerByteSent.
struct RematCandidate {
  RematPolicy policy;
  double bytes = 0, cost = 0;
};

/// The choices of residuals for the layers of one pipeline stage, or of a whole model, and
/// their costs. For modules after phase `local`.
class RematEstimates {
public:
  /// `held`: whenever a backward begins; a model without stages has one chunk. With `anyGroups` groups may leave a tail, else
  /// they divide the layers.
  RematEstimates(mlir::ModuleOp module, std::vector<schedule::HeldAtBackward> held, bool anyGroups,
                 const cost::Device &device);
  ~RematEstimates();

  /// Every policy with a name, and each policy with a price that no other one beats in
  /// both bytes and cost. Ascending in cost.
  std::vector<RematCandidate> candidates();
  /// A lower bound of the cost of every choice of that kind that holds at most `bytes`.
  double leastCost(double bytes);

private:
  struct Layers;
  RematCandidate estimate(const RematPolicy &policy);
  double dualBound(int64_t every, double bytes);

  std::vector<schedule::HeldAtBackward> held;
  std::unique_ptr<Layers> layers;
};

} // namespace meshwright

#endif // MESHWRIGHT_REMAT_H
