//===- LossScaler.h - dynamic loss scaling --------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Gradients in f16 would underflow: the loss is multiplied by a factor that is kept
// as large as they allow. The rule is that of Megatron-LM's DynamicGradScaler, and
// without hysteresis that of torch.amp.GradScaler: a step whose gradients overflow is
// skipped, and `hysteresis` of them since the scale last grew halve it, each further
// one again; `window` good steps in a row double it.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_RUNTIME_COMMON_LOSSSCALER_H
#define MESHWRIGHT_RUNTIME_COMMON_LOSSSCALER_H

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace meshwright {

/// What a checkpoint keeps.
struct LossScale {
  double scale = 65536;  ///< as torch.amp.GradScaler starts
  int64_t goodSteps = 0; ///< in a row since the scale last changed or a step was skipped
  int64_t overflows = 0; ///< since the scale last grew
  int64_t skipped = 0;   ///< steps of the run that updated nothing
};

class LossScaler {
public:
  static constexpr double growth = 2, backoff = 0.5;

  LossScaler() = default;
  LossScaler(LossScale start, int64_t window, int64_t hysteresis, double least)
      : state(start), window(window), hysteresis(hysteresis), least(least) {}

  /// What the next step's loss is multiplied by.
  double scale() const { return state.scale; }
  const LossScale &saved() const { return state; }
  /// Optimizer updates among the first `steps` steps: what AdamW's bias corrections
  /// count.
  int64_t updates(int64_t steps) const { return steps - state.skipped; }
  /// Whether the scale cannot become smaller.
  bool isLeast() const { return state.scale <= least; }

  /// Takes note of how a step went.
  void update(bool overflow) {
    if (overflow) {
      ++state.skipped;
      state.goodSteps = 0;
      if (++state.overflows >= hysteresis)
        state.scale = std::max(state.scale * backoff, least);
      return;
    }
    if (++state.goodSteps < window)
      return;
    state.goodSteps = 0;
    state.overflows = 0;
    // The program reads it as f32.
    if (std::isfinite(float(state.scale * growth)))
      state.scale *= growth;
  }

private:
  LossScale state;
  int64_t window = 1000, hysteresis = 2;
  double least = 1;
};

} // namespace meshwright

#endif // MESHWRIGHT_RUNTIME_COMMON_LOSSSCALER_H
