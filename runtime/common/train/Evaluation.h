//===- Evaluation.h - the loss on --eval-data -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_EVALUATION_H
#define MESHWRIGHT_RUNTIME_COMMON_EVALUATION_H

#include "common/monitor/Metrics.h"
#include "common/train/Batches.h"
#include "common/train/Run.h"
#include "common/train/Saving.h"

namespace meshwright {

/// What `evaluate` will return, without losses.
std::vector<Evaluation> evaluationsOf(Batches &batches);

/// Runs meshwright_eval on all batches of each set of --eval-data. Collective.
std::vector<Evaluation> evaluate(Run &run, Batches &batches, Saving &saving);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_EVALUATION_H
