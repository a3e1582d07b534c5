//===- ReplicaCheck.h - whether replicas are equal ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Ranks update replicas of a variable on their own, from the same sums, so that they have the same
// bits. Where they do not, a device or a link computes or transfers wrong numbers and says nothing
// of it. The plan says which parts of which variables several ranks hold; comparing their
// checksums names the tensor and the rank.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_REPLICACHECK_H
#define MESHWRIGHT_RUNTIME_COMMON_REPLICACHECK_H

#include "common/plan/Plan.h"

#include <string>
#include <utility>
#include <vector>

struct MwContext;

namespace meshwright {

class ReplicaCheck {
public:
  /// Finds what the plan says is equal between ranks; an Error where no value is.
  explicit ReplicaCheck(MwContext &context);

  /// Compares the ranks' checksums of these values. Returns what differs, in words, the same on all
  /// ranks, or an empty text. Collective.
  std::string difference(const VariableAddresses &addresses);

private:
  /// A part of a tensor, as a rank has it in memory.
  struct Part {
    const Variable *variable;
    int64_t number; ///< of the tensor among the variable's
    int64_t offset; ///< of its first element in the rank's part of the variable
    int64_t elements;
  };
  /// What several ranks hold.
  struct Replicas {
    std::string name;
    std::vector<std::pair<int, size_t>> holders; ///< ranks, and the number among their parts
  };

  std::vector<Part> partsOf(int64_t rank) const;

  MwContext &context;
  std::vector<Part> own;
  size_t mostParts = 0; ///< of a rank
  std::vector<Replicas> values;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_REPLICACHECK_H
