//===- ExpertCopies.h - which experts have copies on other devices --------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Programs with slots for copies of experts take the placement of these as an input. It is chosen by loads of experts, the
// same on all ranks, so that each computes it for itself, and a run that goes on from a checkpoint, which has the loads, has the
// placement that it had.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_EXPERTCOPIES_H
#define MESHWRIGHT_RUNTIME_COMMON_EXPERTCOPIES_H

#include "common/plan/Plan.h"
#include "meshwright/runtime/ExpertPlacement.h"

#include <map>
#include <string>
#include <vector>

namespace meshwright {

/// By layer, numbered as in the model, the tokens of each expert in a step.
using ExpertLoads = std::map<int64_t, std::vector<double>>;

/// Those of the last step in the file `path` of --metrics that has some.
ExpertLoads readExpertLoads(const std::string &path);

class ExpertCopies {
public:
  /// Whether a program of the plan has slots for copies.
  static bool arePossible(const Plan &plan) { return plan.inputNames.count(expertPlacementInput) != 0; }

  /// Of this rank's program; no expert has copies.
  explicit ExpertCopies(const Plan &plan);

  /// Chooses copies by `loads`, of which `source` is for errors. Layers without loads have no copies.
  void place(const ExpertLoads &loads, const std::string &source);

  /// The input of the program; empty if it has none.
  const std::vector<int32_t> &table() const { return all; }

private:
  PlacementSizes sizes;
  int64_t layers = 0;
  std::map<int64_t, int64_t> experts; ///< of each layer of all programs that has some
  std::vector<int32_t> all;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_EXPERTCOPIES_H
