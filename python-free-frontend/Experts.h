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

/// What the experts of a layer make of h, [rows, sequence, hidden]. Where routers are part of the
/// loss, it adds to the layer's two sums of `balanceLoss`.
Value buildExperts(LayerGraph &g, const Model &m, int64_t rows, int64_t sequence, Value h);

/// The routers' part of the loss, after transformers' load_balancing_loss_func (Fedus et al. 2021):
/// the number of experts times the sum over them of the mean of choices and the mean of
/// probabilities, both over the tokens of all sparse layers: the microbatch's, or one sequence's, of
/// which it is the mean. `sums`: of choices and of probabilities, [experts] or [rows, experts].
Value balanceLoss(ModelGraph &g, const Model &m, ArrayRef<Value> sums);

} // namespace meshwright::frontend

#endif // MESHWRIGHT_FRONTEND_EXPERTS_H
