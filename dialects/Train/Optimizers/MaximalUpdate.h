//===- MaximalUpdate.h - steps of wider parameters in muP -------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Maximal update parametrization (Yang et al. 2022, "Tensor Programs V", table 8): a step must change what
// a layer gives by as much at every width. The weight decay is divided by the factor of the learning rate,
// so that the product of both, by which a step shrinks a weight, is that of the base model, as in
// Microsoft's package mup (mup/optim.py).
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_DIALECTS_TRAIN_OPTIMIZERS_MAXIMALUPDATE_H
#define MESHWRIGHT_DIALECTS_TRAIN_OPTIMIZERS_MAXIMALUPDATE_H

#include "Train/Optimizer.h"

namespace meshwright::train {

/// Of optimizers whose steps have the same size however large gradients are (Adam, Lion): the sum over a
/// fan-in of steps of one sign grows with it. Gradients of such a weight shrink as its fan-in grows, and
/// so must the eps that is added to their size (appendix B.3; Megatron-LM does the same).
inline UpdateFactors scaleUnitSteps(WidthMultipliers width) {
  return {1 / width.fanIn, width.fanIn, 1 / width.fanIn};
}

/// Of optimizers whose steps are multiples of gradients (SGD).
inline UpdateFactors scaleGradientSteps(WidthMultipliers width) {
  return {width.fanOut / width.fanIn, width.fanIn / width.fanOut, 1};
}

} // namespace meshwright::train

#endif // MESHWRIGHT_DIALECTS_TRAIN_OPTIMIZERS_MAXIMALUPDATE_H
