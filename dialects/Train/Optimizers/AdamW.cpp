//===- AdamW.cpp - Adam with decoupled weight decay -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// As torch.optim.AdamW (Loshchilov and Hutter 2019).
//
//===----------------------------------------------------------------------===//
#include "Moments.h"

using namespace meshwright::train;
using namespace meshwright::train::formula;

static Updated update(const UpdateInputs &in) {
  Expr p = in.parameter;
  Expr decayed = in.decays ? p * (1.0 - in.lr * in.decay()) : p;
  return momentStep(in, decayed, in.clipped());
}

static constexpr Hyperparameter hyperparameters[] = {
    beta1Row,
    beta2Row,
    epsRow,
    {"weight_decay", 0.1, std::nullopt,
     "decoupled weight decay of parameters with two or more dimensions"}};

namespace meshwright::train {
extern const Optimizer adamw = {"adamw",           "Adam with decoupled weight decay",
                                moments,           hyperparameters,
                                momentCorrections, update,
                                scaleUnitSteps};
// Dettmers et al. 2022, "8-bit Optimizers via Block-wise Quantization".
extern const Optimizer adamw8bit = {"adamw-8bit",
                                    "AdamW whose moments have 8 bits per element",
                                    moments,
                                    hyperparameters,
                                    momentCorrections,
                                    update,
                                    scaleUnitSteps,
                                    Direction::none,
                                    /*means=*/{},
                                    /*elsewhere=*/nullptr,
                                    /*quantizesStates=*/true};
} // namespace meshwright::train
