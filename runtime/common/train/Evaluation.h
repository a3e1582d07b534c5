//===- Evaluation.h - the loss on --eval-data -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_EVALUATION_H
#define MESHWRIGHT_RUNTIME_COMMON_EVALUATION_H

#include "common/train/Batches.h"
#include "common/train/Run.h"
#include "common/train/Saving.h"

namespace meshwright {

/// The mean loss over the tokens evaluated, the same for every batch size and mesh: without the
/// routers' part, which is no mean over tokens.
struct Evaluation {
  double loss = 0;
  int64_t targets = 0; ///< that counted
  /// What the loss is for a byte of text, where files say how many bytes their tokens are and all
  /// tokens count.
  std::optional<double> bitsPerByte;
};

/// Runs meshwright_eval on all of the evaluation's batches. Collective.
Evaluation evaluate(Run &run, Batches &batches, Saving &saving);

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_EVALUATION_H
