//===- QuantizeModels.cpp - tensors of 8-bit floats -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Rounding to 8 bits is done by whoever runs these; in f64 a quantized tensor loses nothing.
//
//===----------------------------------------------------------------------===//
#include "Interpreter/Contraction.h"
#include "Interpreter/Model.h"

#include "Train/Quantize.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::interp;

using Operands = ArrayRef<Tensor>;
using Results = SmallVectorImpl<Tensor>;

static double largestOf(Type element) {
  return APFloat::getLargest(cast<FloatType>(element).getFloatSemantics()).convertToDouble();
}

static LogicalResult amax(train::AmaxOp op, Operands in, Results &results, RankContext &) {
  Tensor result(op.getType());
  double &most = *result.writeFloats();
  for (double x : in[0].floats())
    if (!(std::fabs(x) <= most)) // also if x is no number, or the greatest is none
      most = std::isnan(most) ? most : std::fabs(x);
  results.push_back(result);
  return success();
}

static LogicalResult quantizationScale(train::QuantizationScaleOp op, Operands in, Results &results,
                                       RankContext &) {
  Tensor result(op.getType());
  double x = in[0].asFloat(), &scale = *result.writeFloats();
  if (!std::isfinite(x)) {
    scale = NAN;
  } else {
    int exponent;
    double digits = std::frexp(x / largestOf(op.getElement()), &exponent);
    scale = std::max(std::ldexp(1.0, digits == 0.5 ? exponent - 1 : exponent), 0x1p-126);
  }
  results.push_back(result);
  return success();
}

static LogicalResult quantize(train::QuantizeOp op, Operands in, Results &results, RankContext &) {
  Tensor result(op.getType());
  double *out = result.writeFloats(), scale = in[1].asFloat();
  double largest = largestOf(op.getType().getElementType());
  for (auto [i, x] : llvm::enumerate(in[0].floats())) {
    double y = x / scale;
    out[i] = std::isnan(y) ? y : std::clamp(y, -largest, largest);
  }
  results.push_back(result);
  return success();
}

static LogicalResult scaledContract(train::ScaledContractOp op, Operands in, Results &results,
                                    RankContext &) {
  Tensor result = contract(op, op.getShardingRule(), in[0], in[1]);
  double *out = result.writeFloats(), scale = in[2].asFloat() * in[3].asFloat();
  for (int64_t i = 0; i < result.size(); ++i)
    out[i] = out[i] * scale + (op.getInit() ? in[4].floats()[i] : 0);
  results.push_back(result);
  return success();
}

void interp::attachQuantizeModels(MLIRContext *context) {
  attach<train::AmaxOp, amax>(context);
  attach<train::QuantizationScaleOp, quantizationScale>(context);
  attach<train::QuantizeOp, ::quantize>(context);
  attach<train::ScaledContractOp, scaledContract>(context);
}
