//===- ElementwiseModels.cpp - sums, products, activations, dropout ---------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Interpreter/Model.h"

#include "Train/Train.h"
#include "meshwright/runtime/Philox.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::interp;

/// f(x) for each element.
template <typename F> static Tensor map(Type type, const Tensor &x, F f) {
  Tensor result(type);
  double *out = result.writeFloats();
  const double *in = x.floats().data();
  for (int64_t i = 0; i < result.size(); ++i)
    out[i] = f(in[i]);
  return result;
}

/// f(x, y) for each element of x; y is repeated along leading dimensions.
template <typename F> static Tensor map(Type type, const Tensor &x, const Tensor &y, F f) {
  Tensor result(type);
  double *out = result.writeFloats();
  const double *a = x.floats().data(), *b = y.floats().data();
  for (int64_t i = 0, n = y.size(); i < result.size(); ++i)
    out[i] = f(a[i], b[n == result.size() ? i : i % n]);
  return result;
}

static LogicalResult add(train::AddOp op, Operands in, Results &results, RankContext &) {
  results.push_back(map(op.getType(), in[0], in[1], [](double x, double y) { return x + y; }));
  return success();
}
static LogicalResult mul(train::MulOp op, Operands in, Results &results, RankContext &) {
  results.push_back(map(op.getType(), in[0], in[1], [](double x, double y) { return x * y; }));
  return success();
}
static LogicalResult accumulate(train::AccumulateOp op, Operands in, Results &results,
                                RankContext &) {
  results.push_back(map(op.getType(), in[0], in[1], [](double x, double y) { return x + y; }));
  return success();
}
static LogicalResult maximum(train::MaximumOp op, Operands in, Results &results, RankContext &) {
  results.push_back(map(op.getType(), in[0], in[1],
                        [](double x, double y) { return std::isnan(x) || x > y ? x : y; }));
  return success();
}
/// Rounding to the result's type is done by whoever runs us.
static LogicalResult castOp(train::CastOp op, Operands in, Results &results, RankContext &) {
  results.push_back(map(op.getType(), in[0], [](double x) { return x; }));
  return success();
}
static LogicalResult scale(train::ScaleOp op, Operands in, Results &results, RankContext &) {
  double factor = op.getFactor().convertToDouble();
  results.push_back(map(op.getType(), in[0], [=](double x) { return factor * x; }));
  return success();
}

//===--- activations --------------------------------------------------------===//

static double geluErf(double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); }
static double geluErfSlope(double x) {
  return (1 + std::erf(x / std::sqrt(2.0))) / 2 + x * std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
}
static double geluTanh(double x) {
  return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
static double geluTanhSlope(double x) {
  double t = std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
  return (1 + t) / 2 + x / 2 * (1 - t * t) * std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
}
static double silu(double x) { return x / (1 + std::exp(-x)); }
static double siluSlope(double x) {
  double s = 1 / (1 + std::exp(-x));
  return s + x * s * (1 - s);
}

static LogicalResult gelu(train::GeluOp op, Operands in, Results &results, RankContext &) {
  results.push_back(map(op.getType(), in[0], op.getTanh() ? geluTanh : geluErf));
  return success();
}
static LogicalResult geluGrad(train::GeluGradOp op, Operands in, Results &results, RankContext &) {
  auto slope = op.getTanh() ? geluTanhSlope : geluErfSlope;
  results.push_back(
      map(op.getType(), in[0], in[1], [=](double dy, double x) { return dy * slope(x); }));
  return success();
}
static LogicalResult siluOp(train::SiluOp op, Operands in, Results &results, RankContext &) {
  results.push_back(map(op.getType(), in[0], silu));
  return success();
}
static LogicalResult siluGrad(train::SiluGradOp op, Operands in, Results &results, RankContext &) {
  results.push_back(
      map(op.getType(), in[0], in[1], [](double dy, double x) { return dy * siluSlope(x); }));
  return success();
}
static LogicalResult relu(train::ReluOp op, Operands in, Results &results, RankContext &) {
  results.push_back(map(op.getType(), in[0], [](double x) { return x > 0 ? x : 0; }));
  return success();
}
static LogicalResult reluGrad(train::ReluGradOp op, Operands in, Results &results, RankContext &) {
  results.push_back(
      map(op.getType(), in[0], in[1], [](double dy, double x) { return x > 0 ? dy : 0; }));
  return success();
}

static LogicalResult clamp(train::ClampOp op, Operands in, Results &results, RankContext &) {
  double least = op.getLeast().convertToDouble(), most = op.getMost().convertToDouble();
  results.push_back(map(op.getType(), in[0], [=](double x) {
    return x < least ? least : x > most ? most : x;
  }));
  return success();
}
static LogicalResult clampGrad(train::ClampGradOp op, Operands in, Results &results,
                               RankContext &) {
  double least = op.getLeast().convertToDouble(), most = op.getMost().convertToDouble();
  results.push_back(map(op.getType(), in[0], in[1],
                        [=](double dy, double x) { return x < least || x > most ? 0 : dy; }));
  return success();
}

//===--- dropout ------------------------------------------------------------===//

static LogicalResult dropout(train::DropoutOp op, Operands in, Results &results, RankContext &) {
  Tensor result(op.getType());
  double rate = op.getRate().convertToDouble();
  std::array<uint32_t, 2> key = {uint32_t(in[2].integers()[0]), uint32_t(in[2].integers()[1])};
  SmallVector<int64_t> sizes = op.getLogicalSizes(), offsets(in[0].rank(), 0);
  for (int64_t d = 1, next = 3; d < in[0].rank(); ++d)
    if (op.getOffset(d))
      offsets[d] = in[next++].integers()[0];
  int64_t inner = in[0].size() / in[1].size();
  double *out = result.writeFloats();
  for (int64_t i = 0; i < result.size(); ++i) {
    // The index in x, dimension by dimension, as an index in the logical tensor.
    auto index = uint64_t(in[1].integers()[i / inner]);
    for (int64_t d = 1, rest = inner; d < in[0].rank(); ++d) {
      rest /= in[0].dim(d);
      index = index * uint64_t(sizes[d - 1]) + uint64_t(offsets[d] + i / rest % in[0].dim(d));
    }
    bool kept = keeps(randomBits(key, uint32_t(op.getStream()), index), float(rate));
    out[i] = kept ? in[0].floats()[i] / (1 - rate) : 0;
  }
  results.push_back(result);
  return success();
}

static LogicalResult mask(train::MaskOp op, Operands in, Results &results, RankContext &) {
  Tensor result(op.getType());
  int64_t size = in[0].dim(op.getDim()), offset = op.getOffset() ? in[1].integers()[0] : 0;
  int64_t inner = product(in[0].shape().drop_front(op.getDim() + 1));
  double value = op.getValue().convertToDouble();
  for (int64_t i = 0; i < result.size(); ++i) {
    bool isBelow = offset + i / inner % size < int64_t(op.getBelow());
    if (result.isFloat())
      result.writeFloats()[i] = isBelow ? in[0].floats()[i] : value;
    else
      result.writeIntegers()[i] = isBelow ? in[0].integers()[i] : int64_t(value);
  }
  results.push_back(result);
  return success();
}

static LogicalResult decay(train::DecayOp op, Operands in, Results &results, RankContext &) {
  Tensor result(op.getType());
  int64_t last = in[0].rank() - 1, rows = in[0].dim(last), columns = in[1].dim(last);
  double *out = result.writeFloats();
  for (int64_t i = 0; i < result.size(); ++i) {
    int64_t n = i / (rows * columns), t = i / columns % rows, u = i % columns;
    bool retained = op.getStrict() ? u < t : u <= t;
    out[i] = retained ? std::exp(in[0].floats()[n * rows + t] - in[1].floats()[n * columns + u]) : 0;
  }
  results.push_back(result);
  return success();
}

static LogicalResult partOffsetOp(train::PartOffsetOp op, Operands in, Results &results,
                                  RankContext &) {
  Tensor result(op.getType());
  int64_t part = in[0].integers()[0] / int64_t(op.getEvery()) % int64_t(op.getParts());
  int64_t offset = op.getOffset() ? in[1].integers()[0] : 0;
  *result.writeIntegers() = int32_t(offset + part * int64_t(op.getSize()));
  results.push_back(result);
  return success();
}

static LogicalResult hyperbolicTangent(train::TanhOp op, Operands in, Results &results,
                                       RankContext &) {
  results.push_back(map(op.getType(), in[0], [](double x) { return std::tanh(x); }));
  return success();
}

static LogicalResult exponential(train::ExpOp op, Operands in, Results &results, RankContext &) {
  results.push_back(map(op.getType(), in[0], [](double x) { return std::exp(x); }));
  return success();
}
static LogicalResult logarithm(train::LogOp op, Operands in, Results &results, RankContext &) {
  results.push_back(map(op.getType(), in[0], [](double x) { return std::log(x); }));
  return success();
}
static LogicalResult inverseRoot(train::InverseRootOp op, Operands in, Results &results,
                                 RankContext &) {
  double eps = op.getEps().convertToDouble();
  results.push_back(map(op.getType(), in[0], [=](double x) { return 1 / std::sqrt(x + eps); }));
  return success();
}

void interp::attachElementwiseModels(MLIRContext *context) {
  attach<train::AddOp, add>(context);
  attach<train::MulOp, mul>(context);
  attach<train::AccumulateOp, accumulate>(context);
  attach<train::MaximumOp, maximum>(context);
  attach<train::CastOp, castOp>(context);
  attach<train::ScaleOp, scale>(context);
  attach<train::GeluOp, gelu>(context);
  attach<train::GeluGradOp, geluGrad>(context);
  attach<train::SiluOp, siluOp>(context);
  attach<train::SiluGradOp, siluGrad>(context);
  attach<train::ReluOp, relu>(context);
  attach<train::ReluGradOp, reluGrad>(context);
  attach<train::ClampOp, clamp>(context);
  attach<train::ClampGradOp, clampGrad>(context);
  attach<train::DropoutOp, dropout>(context);
  attach<train::MaskOp, mask>(context);
  attach<train::DecayOp, decay>(context);
  attach<train::PartOffsetOp, partOffsetOp>(context);
  attach<train::TanhOp, hyperbolicTangent>(context);
  attach<train::ExpOp, exponential>(context);
  attach<train::LogOp, logarithm>(context);
  attach<train::InverseRootOp, inverseRoot>(context);
}
