//===- Orthogonalize.h - the direction of Muon's steps ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_LIB_TRAIN_ORTHOGONALIZE_H
#define MESHWRIGHT_LIB_TRAIN_ORTHOGONALIZE_H

#include "Train/Train.h"
#include "meshwright/OptionValues.h"

namespace meshwright::train {

struct Orthogonalization {
  MuonScale scale = MuonScale::matchRmsAdamw;
  MuonCoefficients coefficients = MuonCoefficients::keller;
  /// The type of the products: f32 or bf16.
  mlir::Type element;
};

/// Whether a parameter is a hidden matrix in each layer, for each expert and each head that has a
/// tensor of its own. Embeddings, heads and learned positions are outside of repeated layers.
bool isHiddenMatrix(VariableOp parameter);

/// What orthogonalized matrices of `parameter` are multiplied by.
double orthogonalFactor(VariableOp parameter, MuonScale scale);

/// Of `value`, of the shape of `parameter`, a hidden matrix, each matrix orthogonalized and multiplied
/// by `factor`.
mlir::Value orthogonalize(VariableOp parameter, mlir::Value value, double factor,
                          const Orthogonalization &how, mlir::OpBuilder &builder);

} // namespace meshwright::train

#endif // MESHWRIGHT_LIB_TRAIN_ORTHOGONALIZE_H
