//===- ExecFlops.cpp - floating-point operations of exec ops ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Exec/Quantize.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

double MatmulOp::getFlops() {
  return 2.0 * double(getM()) * double(getN()) * double(getK()) * double(getBatch());
}

/// A row is multiplied by the matrix of one expert.
static double groupedFlops(const ProductShape &shape, const APFloat &filled) {
  return 2.0 * double(shape.m) * double(shape.n) * double(shape.k) * filled.convertToDouble();
}
double GroupedMatmulOp::getFlops() { return groupedFlops(getShape(), getFilled()); }
double GroupedMatmulGradOp::getFlops() { return groupedFlops(getShape(), getFilled()); }

/// Products over the elements of q and k, so many of them, and over those of v.
static double flopsOfPair(const MwAttention &shape, int64_t keys, int64_t values) {
  return 2.0 * double(shape.batch) * double(shape.heads) *
         double(keys * shape.headDim + values * shape.valueDim);
}
double AttentionOp::getFlopsOfPair() { return flopsOfPair(getAttention(), 1, 1); }
// The scores again, and two products for each of the two.
double AttentionGradOp::getFlopsOfPair() { return flopsOfPair(getAttention(), 3, 2); }

template <typename Op> static double pairsOf(Op op) {
  MwAttention shape = op.getAttention();
  return shape.partial ? op.getSpec()->pairs
                       : op.getSpec()->visiblePairs(shape.queries, shape.globalQueries, shape.keys);
}
double AttentionOp::getVisiblePairs() { return pairsOf(*this); }
double AttentionGradOp::getVisiblePairs() { return pairsOf(*this); }

double AttentionOp::getFlops() { return getFlopsOfPair() * getVisiblePairs(); }
double AttentionGradOp::getFlops() { return getFlopsOfPair() * getVisiblePairs(); }

/// One for each element that it makes.
double LaunchOp::getFlops() {
  double elements = 0;
  for (Type type : llvm::concat<const Type>(getOutputs().getTypes(), getResultTypes()))
    elements += double(cast<ShapedType>(type).getNumElements());
  return elements;
}
