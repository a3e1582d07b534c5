//===- Experts.h - layers with experts in place of the MLP ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_FRONTEND_EXPERTS_H
#define MESHWRIGHT_FRONTEND_EXPERTS_H

#include "Graph.h"
#include "Model.h"

namespace meshwright::frontend {

/// The sums over layers that `routerLoss` is made of. Where it has the balance of experts, that is of
/// choices and of probabilities, [experts] or [rows, experts], if their statistics are of all layers
/// together, and of their products, a scalar, if each layer has its own. Where it has the z-loss, it is
/// of squared log-sum-exps, a scalar.
llvm::SmallVector<Value, 3> routerSums(ModelGraph &g, const Model &m);

/// Gives @loss the placement of copies of experts as an input, where experts may have some.
void addExpertInputs(ModelGraph &g, const Model &m);

/// What the experts of a layer make of h, [rows, sequence, hidden]. It adds to the layer's sums and
/// reports how many tokens chose each expert.
/// Routers read `routed`, where that is not h.
Value buildExperts(LayerGraph &g, const Model &m, int64_t rows, int64_t sequence, Value h, Value routed = {});

/// The routers' part of the loss, null if there is none. The balance of experts is the number of
/// experts times the sum over them of the product of two means over tokens: of choices, and of scores.
/// transformers' load_balancing_loss_func has means over the tokens of all sparse layers; Switch
/// Transformers (Fedus et al. 2021) and DeepSeek-V3 have a loss of each layer, and the loss is their sum.
/// The tokens are the batch's, or those of a microbatch or a sequence, of which it is the mean.
/// The z-loss (Zoph et al. 2022) is the mean over the batch's tokens of squared log-sum-exps of logits,
/// summed over layers.
Value routerLoss(ModelGraph &g, const Model &m, ArrayRef<Value> sums);

} // namespace meshwright::frontend

#endif // MESHWRIGHT_FRONTEND_EXPERTS_H
