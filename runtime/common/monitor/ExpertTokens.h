//===- ExpertTokens.h - how many tokens chose each expert ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A step leaves the counts of its batch in the program's variables of role `tokens`, the same on
// all ranks that have them. The count of an expert whose router's logits were not finite is no
// number.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_EXPERTTOKENS_H
#define MESHWRIGHT_RUNTIME_COMMON_EXPERTTOKENS_H

#include "common/plan/Plan.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace meshwright {

class RankGroup;

/// Of one layer, numbered as in the model.
struct LayerTokens {
  int64_t layer = 0;
  std::string router;       ///< the name of its weight in files
  std::vector<float> counts; ///< of each expert

  bool isFinite() const;
};

class ExpertTokens {
public:
  /// `idleSteps` without a token in a row are worth a word; 0: none are.
  ExpertTokens(const Plan &plan, int64_t rank, int64_t idleSteps);

  /// Whether the model has experts.
  static bool isCounted(const Plan &plan) {
    for (const Variable &variable : plan.allVariables)
      if (variable.role == Variable::Tokens)
        return true;
    return false;
  }

  /// How many experts each layer of all ranks has, by its number in the model.
  static std::map<int64_t, int64_t> expertsOf(const Plan &plan);

  /// Where the arena has the counts that this rank is to read.
  std::vector<ArenaRange> ranges() const;

  /// The counts of the layers of all ranks, in the order of layers. Collective.
  std::vector<LayerTokens> gather(RankGroup &world, const VariableAddresses &addresses) const;

  /// Takes note of the step that has been made and says what is worth a word, once for each
  /// expert: each layer's first rank does.
  std::vector<std::string> note(const VariableAddresses &addresses);

private:
  /// Counts of consecutive layers.
  struct Counter {
    const Variable *variable = nullptr;
    int64_t holder = 0;        ///< the first rank that has them
    std::vector<int64_t> idle; ///< steps without a token, until now; of the holder
  };
  static LayerTokens layerOf(const Variable &variable, int64_t index);
  static int64_t elementsOf(const Variable &variable);

  int64_t rank, idleSteps;
  std::vector<Counter> counters;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_EXPERTTOKENS_H
