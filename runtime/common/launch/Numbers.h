//===- Numbers.h - what changes the numbers of a run ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A run knows all that changes what it computes, beyond rounding: what the compiler says of the program
// (plan::Header::numbers), flags, seed, and data. Runs with the same hash of these compute the same losses up to
// rounding, on whatever mesh.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_NUMBERS_H
#define MESHWRIGHT_RUNTIME_COMMON_NUMBERS_H

#include "common/checkpoint/Checkpoint.h"
#include "common/launch/Options.h"

#include <map>
#include <string>

namespace meshwright {

/// What changes numbers, as text, by name.
using Numbers = std::map<std::string, std::string>;

/// Those of a run with this state, whose data and seed are set. Of a resumed run the initial weights are those that the
/// checkpoint `saved` names.
Numbers numbersOf(const Plan &plan, const Options &options, const TrainingState &state, const Numbers &saved);

/// 16 hexadecimal digits.
std::string numbersHash(const Numbers &numbers);

/// What the program computes otherwise than that of the run that left `saved`: "precision bf16, was f32; model ..,
/// was ..". Batch, flags of the run and data are not among it.
std::string changedProgram(const Plan &plan, const Numbers &saved);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_NUMBERS_H
