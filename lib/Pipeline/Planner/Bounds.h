//===- Bounds.h - what a layout takes at least ------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// No compiled and simulated layout takes less than its bounds say, so that one whose bounds are
// above the best step or the memory need not be compiled. `plan --exhaustive` compares.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_PIPELINE_PLANNER_BOUNDS_H
#define MESHWRIGHT_LIB_PIPELINE_PLANNER_BOUNDS_H

#include "Layout.h"

namespace meshwright::planner {

class Bounds {
public:
  explicit Bounds(const Problem &problem) : problem(problem) {}

  /// Seconds that devices compute at least, on average: products and attention of a step at the
  /// best rates of calls as large as those of the layout.
  double computing(const Layout &layout) const;

  /// Seconds of a step at least: of the tasks of the layout's own schedule in their order, with
  /// their products and what tensor parallelism sends in the forward; or of the gradients on their
  /// links.
  double seconds(const Layout &layout);

  /// The same without a walk through the schedule, and not more.
  double quickSeconds(const Layout &layout);

  /// Bytes of the device with the most: weights, gradients and optimizer states that are there at
  /// the same time.
  double bytes(const Layout &layout) const;

  /// Seconds that a step probably takes if devices compute for `computing`: no bound, but the order
  /// in which layouts are worth a compilation.
  double expectedSeconds(const Layout &layout, double computing);

  /// Whether it probably fits with a third of the memory to spare, with the most activation checkpointing.
  bool expectsRoom(const Layout &layout) const;

  /// Whether what layers keep probably does not fit without activation checkpointing.
  bool expectsCheckpointing(const Layout &layout) const;

private:
  /// Estimates of the bytes that layers keep for the backward: without activation checkpointing, with the
  /// most of it, and those that there is room for.
  struct Activations {
    double kept = 0, least = 0, room = 0;
  };
  Activations activationsOf(const Layout &layout) const;
  /// Seconds of the tasks of all stages; 0: not known.
  double ofTasks(const Layout &layout);
  /// The same with the costs of a microbatch.
  double walk(const Layout &layout, const schedule::TaskCosts &costs);
  /// Seconds of products and attention of a microbatch at the best rates.
  double secondsOf(const Layout &layout, const Work &work, bool isForward) const;
  /// Seconds of one gather of a microbatch's tokens along `tensor`.
  double gatherSeconds(const Layout &layout);
  /// Seconds of the all-to-alls of a layer's tokens along `expert` in a microbatch.
  double exchangeSeconds(const Layout &layout);
  /// Bytes of a device's gradients as they are sent: of experts, or of the other parameters.
  double gradientBytes(const Layout &layout, bool ofExperts) const;
  /// Bytes that a device sends to reduce these once over the ranks that shard states, and then its shard
  /// over the replicas; those of experts go along fewer axes.
  double shardedBytes(const Layout &layout, bool ofExperts) const;
  double replicaBytes(const Layout &layout, bool ofExperts) const;
  /// Seconds of reducing the gradients of a step once, at the bandwidth alone.
  double sentSeconds(const Layout &layout);
  const cost::GroupLayout &groupOf(int64_t members, int64_t stride);

  const Problem &problem;
  std::map<std::pair<int64_t, int64_t>, cost::GroupLayout> groups; ///< by members and stride
  std::map<std::string, double> walked; ///< `ofTasks`, which ZeRO does not change
};

} // namespace meshwright::planner

#endif // MESHWRIGHT_LIB_PIPELINE_PLANNER_BOUNDS_H
