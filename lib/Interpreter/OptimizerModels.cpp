//===- OptimizerModels.cpp - norms, clipping, updates -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// AdamW in the order of torch.optim.AdamW's single-tensor loop.
//
//===----------------------------------------------------------------------===//
#include "Interpreter/Model.h"

#include "Train/Train.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::interp;

using Operands = ArrayRef<Tensor>;
using Results = SmallVectorImpl<Tensor>;

static Tensor scalar(Type type, double value) {
  Tensor result(type);
  *result.writeFloats() = value;
  return result;
}

static LogicalResult squareSum(train::SquareSumOp op, Operands in, Results &results,
                               RankContext &) {
  double sum = 0;
  for (double value : in[0].floats())
    sum += value * value;
  results.push_back(scalar(op.getType(), sum));
  return success();
}

static LogicalResult globalNorm(train::GlobalNormOp op, Operands in, Results &results,
                                RankContext &) {
  double sum = 0;
  for (const Tensor &square : in)
    sum += square.asFloat();
  results.push_back(scalar(op.getType(), std::sqrt(sum)));
  return success();
}

static LogicalResult clipFactor(train::ClipFactorOp op, Operands in, Results &results,
                                RankContext &) {
  double norm = in[0].asFloat(), limit = in[1].asFloat();
  results.push_back(scalar(op.getType(), limit > 0 ? std::min(1.0, limit / (norm + 1e-6)) : 1.0));
  return success();
}

static LogicalResult unscale(train::UnscaleOp, Operands in, Results &results, RankContext &) {
  Tensor result = in[0];
  double *out = result.writeFloats();
  for (int64_t i = 0; i < result.size(); ++i)
    out[i] /= in[1].asFloat();
  results.push_back(result);
  return success();
}

static LogicalResult guard(train::GuardOp, Operands in, Results &results, RankContext &) {
  results.push_back(std::isfinite(in[2].asFloat()) ? in[0] : in[1]);
  return success();
}

static LogicalResult sgd(train::SgdOp op, Operands in, Results &results, RankContext &) {
  Tensor updated = in[0];
  double step = in[2].asFloat() * in[3].asFloat(), *p = updated.writeFloats();
  for (int64_t i = 0; i < updated.size(); ++i)
    p[i] -= step * in[1].floats()[i];
  results.push_back(updated);
  return success();
}

static LogicalResult adamW(train::AdamWOp op, Operands in, Results &results, RankContext &) {
  Tensor parameter = in[0], momentum = in[2], variance = in[3];
  double clip = in[4].asFloat(), lr = in[5].asFloat(), beta1 = in[6].asFloat(),
         beta2 = in[7].asFloat(), eps = in[8].asFloat(), decay = in[9].asFloat(),
         correction1 = in[10].asFloat(), correction2 = in[11].asFloat();
  double *p = parameter.writeFloats(), *m = momentum.writeFloats(), *v = variance.writeFloats();
  for (int64_t i = 0; i < parameter.size(); ++i) {
    double g = clip * in[1].floats()[i];
    if (op.getDecay())
      p[i] *= 1 - lr * decay;
    m[i] += (1 - beta1) * (g - m[i]);
    v[i] = beta2 * v[i] + (1 - beta2) * g * g;
    double denominator = std::sqrt(v[i]) / std::sqrt(correction2) + eps;
    p[i] -= lr / correction1 * m[i] / denominator;
  }
  results.append({parameter, momentum, variance});
  return success();
}

void interp::attachOptimizerModels(MLIRContext *context) {
  attach<train::SquareSumOp, squareSum>(context);
  attach<train::GlobalNormOp, globalNorm>(context);
  attach<train::ClipFactorOp, clipFactor>(context);
  attach<train::UnscaleOp, unscale>(context);
  attach<train::GuardOp, guard>(context);
  attach<train::SgdOp, sgd>(context);
  attach<train::AdamWOp, adamW>(context);
}
