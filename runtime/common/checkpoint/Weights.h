//===- Weights.h - filling a rank's variables -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_WEIGHTS_H
#define MESHWRIGHT_RUNTIME_COMMON_WEIGHTS_H

#include "common/plan/Plan.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace meshwright {

class Rounds;

/// Where a rank's variables go.
struct WeightTarget {
  const Plan &plan;
  int64_t rank;
  VariableAddresses addresses; ///< zeroed
  int threads;
  /// Called, if there is one, with each part of a variable that has been filled, one after the
  /// other, and its bytes.
  std::function<void(const Variable &, const char *data, int64_t bytes)> filled = {};
  /// The ranks, this one among them, that see the same files: each verifies its share of what
  /// any of them reads. Empty: this rank verifies all that it reads.
  std::vector<int> sharing = {};
  /// Gets the names of tensors that the file has with the prefix of the text part of a larger model, by those of
  /// the plan, if there is one.
  std::map<std::string, std::string> *names = nullptr;
  /// Gets the first state that a checkpoint lacks, as it lacks all that begin with zeros then, if there is one.
  std::string *begun = nullptr;
  /// Told of what is done, if there is one.
  Rounds *rounds = nullptr;
};

/// Bytes of the variables that `initializeWeights` and `readWeights` fill, with those of files
/// that this rank verifies: what `target.rounds` will be told of.
int64_t weightBytes(const WeightTarget &target);

/// What files hold: the model's parameters, those of adapters, and the optimizer's states.
enum class WeightKind { Parameters, Adapters, OptimizerStates };

/// Whether `variable` is in the file of these; counts of tokens are in none. Parameters of modules that are trained
/// whole beside adapters are in both.
inline bool isOf(const Variable &variable, WeightKind kind) {
  if (kind == WeightKind::OptimizerStates)
    return variable.isOptimizerState();
  return variable.isWeight() && (variable.isAdapter == (kind == WeightKind::Adapters) || variable.isOfModel);
}

/// What precedes the names of a model's modules in the files of adapters.
inline constexpr char adapterPrefix[] = "base_model.model.";

/// The name of tensor `number` of `variable` in the file of these, or of the parameter that it is an average of.
std::string tensorName(const Variable &variable, int64_t number, WeightKind kind);

/// The weights that a step changes, which checkpoints hold: adapters' where there are any.
inline WeightKind trainedWeights(const Plan &plan) {
  return plan.adapterConfig ? WeightKind::Adapters : WeightKind::Parameters;
}

/// Fills the parameters of `kind`, their masters and their averages with their initial values, a function of
/// (seed, name, global index). Padding stays zero. The model's parameters come first: with them the magnitudes of
/// adapters are filled, which begin as norms of rows, and modules that are trained whole beside them.
void initializeWeights(const WeightTarget &target, uint64_t seed,
                       WeightKind kind = WeightKind::Parameters);

/// Reads the parameters or the adapters (with their masters and averages, as above) or the optimizer states from a safetensors file that
/// `flag` named: this rank's parts only. All tensors must be there with the right
/// shapes, have the checksums that the file says they have, and the file must be the one
/// of `id`, unless that is empty. Returns a note on tensors in the file that the model does not
/// use, or an empty string.
std::string readWeights(const WeightTarget &target, WeightKind kind, const std::string &path,
                        const std::string &flag, const std::string &id = "");

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_WEIGHTS_H
