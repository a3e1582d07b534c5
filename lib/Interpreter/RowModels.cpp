//===- RowModels.cpp - ops that work along rows -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Embedding, normalization, rotary positions, cross-entropy: formulas as the
// papers write them.
//
//===----------------------------------------------------------------------===//
#include "Interpreter/Model.h"

#include "Train/Train.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::interp;

/// Whether an id numbers one of `rows` rows; ops do nothing for those that do not.
static bool inside(int64_t id, int64_t rows) { return id >= 0 && id < rows; }

//===--- embedding ----------------------------------------------------------===//

static LogicalResult embedding(train::EmbeddingOp op, Operands operands, Results &results,
                               RankContext &) {
  Tensor result(op.getType());
  int64_t d = operands[0].dim(1);
  double *out = result.writeFloats();
  for (auto [i, id] : llvm::enumerate(operands[1].integers()))
    if (inside(id, operands[0].dim(0)))
      std::copy_n(operands[0].floats().data() + id * d, d, out + i * d);
  results.push_back(result);
  return success();
}

static LogicalResult embeddingGrad(train::EmbeddingGradOp op, Operands operands, Results &results,
                                   RankContext &) {
  Tensor result = op.getInit() ? operands[2] : Tensor(op.getType());
  int64_t d = result.dim(1);
  double *out = result.writeFloats();
  const double *dy = operands[0].floats().data();
  for (auto [i, id] : llvm::enumerate(operands[1].integers()))
    for (int64_t j = 0; j < d && inside(id, result.dim(0)); ++j)
      out[id * d + j] += dy[i * d + j];
  results.push_back(result);
  return success();
}

static LogicalResult shiftIds(train::ShiftIdsOp op, Operands operands, Results &results,
                              RankContext &) {
  Tensor result(op.getType());
  for (auto [i, id] : llvm::enumerate(operands[0].integers()))
    result.writeIntegers()[i] = id - operands[1].integers()[0];
  results.push_back(result);
  return success();
}

static LogicalResult ignoreId(train::IgnoreIdOp op, Operands operands, Results &results,
                              RankContext &) {
  Tensor result(op.getType());
  for (auto [i, id] : llvm::enumerate(operands[0].integers()))
    result.writeIntegers()[i] = id == int64_t(op.getId()) ? -1 : id;
  results.push_back(result);
  return success();
}

//===--- normalization ------------------------------------------------------===//

namespace {
/// y = (x - mean) * scale of one row, and what its gradient needs.
struct Normal {
  double mean = 0, scale;
  Normal(const double *x, int64_t n, double eps, bool centered) {
    if (centered) {
      for (int64_t i = 0; i < n; ++i)
        mean += x[i];
      mean /= double(n);
    }
    double variance = 0;
    for (int64_t i = 0; i < n; ++i)
      variance += (x[i] - mean) * (x[i] - mean);
    scale = 1 / std::sqrt(variance / double(n) + eps);
  }
};
} // namespace

static Tensor normalize(Type type, const Tensor &x, const Tensor &weight, const Tensor *bias,
                        double eps) {
  Tensor result(type);
  int64_t n = x.shape().back();
  double *y = result.writeFloats();
  for (int64_t row = 0; row < x.size(); row += n) {
    const double *in = x.floats().data() + row;
    Normal normal(in, n, eps, bias != nullptr);
    for (int64_t i = 0; i < n; ++i)
      y[row + i] = (in[i] - normal.mean) * normal.scale * weight.floats()[i] +
                   (bias ? bias->floats()[i] : 0);
  }
  return result;
}

/// The Jacobian of a row's normal z is scale (I - 1/n [centered] - z z^T / n).
static void normalizeGrad(Operation *op, const Tensor &dy, const Tensor &x, const Tensor &weight,
                          double eps, bool centered, Results &results) {
  for (Type type : op->getResultTypes())
    results.emplace_back(type);
  int64_t n = x.shape().back();
  double *dx = results[0].writeFloats(), *dweight = results[1].writeFloats();
  double *dbias = centered ? results[2].writeFloats() : nullptr;
  for (int64_t row = 0; row < x.size(); row += n) {
    const double *in = x.floats().data() + row, *grad = dy.floats().data() + row;
    Normal normal(in, n, eps, centered);
    double sum = 0, sumZ = 0;
    for (int64_t i = 0; i < n; ++i) {
      double z = (in[i] - normal.mean) * normal.scale, g = grad[i] * weight.floats()[i];
      sum += g;
      sumZ += g * z;
      dweight[i] += grad[i] * z;
      if (dbias)
        dbias[i] += grad[i];
    }
    for (int64_t i = 0; i < n; ++i) {
      double z = (in[i] - normal.mean) * normal.scale, g = grad[i] * weight.floats()[i];
      dx[row + i] = normal.scale / double(n) * (double(n) * g - (centered ? sum : 0) - z * sumZ);
    }
  }
}

static LogicalResult layerNorm(train::LayerNormOp op, Operands operands, Results &results,
                               RankContext &) {
  results.push_back(normalize(op.getType(), operands[0], operands[1], &operands[2],
                              op.getEps().convertToDouble()));
  return success();
}
static LogicalResult layerNormGrad(train::LayerNormGradOp op, Operands operands, Results &results,
                                   RankContext &) {
  normalizeGrad(op, operands[0], operands[1], operands[2], op.getEps().convertToDouble(), true,
                results);
  return success();
}
static LogicalResult rmsNorm(train::RmsNormOp op, Operands operands, Results &results,
                             RankContext &) {
  results.push_back(
      normalize(op.getType(), operands[0], operands[1], nullptr, op.getEps().convertToDouble()));
  return success();
}
static LogicalResult rmsNormGrad(train::RmsNormGradOp op, Operands operands, Results &results,
                                 RankContext &) {
  normalizeGrad(op, operands[0], operands[1], operands[2], op.getEps().convertToDouble(), false,
                results);
  return success();
}

//===--- rotary positions ---------------------------------------------------===//

static LogicalResult ropeTable(train::RopeTableOp op, Operands operands, Results &results,
                               RankContext &) {
  Tensor cos(op.getCos().getType()), sin(op.getSin().getType());
  double *c = cos.writeFloats(), *s = sin.writeFloats();
  std::vector<int64_t> positions;
  if (op.getPositions()) {
    positions = operands[0].integers().vec();
  } else {
    positions.resize(cos.dim(0));
    std::iota(positions.begin(), positions.end(), op.getOffset() ? operands[0].integers()[0] : 0);
  }
  for (int64_t position : positions)
    for (double frequency : op.getFrequencies()) {
      double scale = frequency == 0 ? 1.0 : op.getScale().convertToDouble();
      *c++ = scale * std::cos(double(position) * frequency);
      *s++ = scale * std::sin(double(position) * frequency);
    }
  results.append({cos, sin});
  return success();
}

/// The largest power of two of heads have every second of twice as many slopes, the others
/// those between.
static LogicalResult alibiSlopes(train::AlibiSlopesOp op, Operands operands, Results &results,
                                 RankContext &) {
  Tensor result(op.getType());
  double *y = result.writeFloats();
  int64_t heads = op.getHeads() ? int64_t(op.getHeads()) : result.size(), regular = 1;
  while (2 * regular <= heads)
    regular *= 2;
  int64_t offset = op.getOffset() ? operands[0].integers()[0] : 0;
  for (int64_t i = 0; i < result.size(); ++i) {
    int64_t head = offset + i;
    int64_t place = head < regular ? 2 * (head + 1) : 2 * (head - regular) + 1;
    y[i] = std::pow(2.0, -op.getBias().convertToDouble() * double(place) / double(2 * regular));
  }
  results.push_back(result);
  return success();
}

static LogicalResult distanceBuckets(train::DistanceBucketsOp op, Operands, Results &results,
                                     RankContext &) {
  Tensor result(op.getType());
  llvm::copy(op.getNumbers(), result.writeIntegers());
  results.push_back(result);
  return success();
}

static LogicalResult rope(train::RopeOp op, Operands operands, Results &results, RankContext &) {
  const Tensor &x = operands[0];
  Tensor result(op.getType());
  int64_t heads = x.dim(2), d = x.dim(3), half = d / 2;
  // Sequences have a table in common, or each its own.
  int64_t rows = operands[1].size() / half;
  double *y = result.writeFloats();
  double sign = op.getInverse() ? -1 : 1;
  for (int64_t row = 0; row < x.size() / d; ++row) {
    int64_t position = row / heads % rows;
    const double *in = x.floats().data() + row * d;
    for (int64_t i = 0; i < half; ++i) {
      double c = operands[1].floats()[position * half + i];
      double s = sign * operands[2].floats()[position * half + i];
      y[row * d + i] = in[i] * c - in[half + i] * s;
      y[row * d + half + i] = in[half + i] * c + in[i] * s;
    }
  }
  results.push_back(result);
  return success();
}

//===--- loss ---------------------------------------------------------------===//

/// Losses of tokens times `scale`, each or added up, as `type` is.
static Tensor lossOf(ArrayRef<double> losses, Type type, const APFloat &scale) {
  Tensor result(cast<RankedTensorType>(type));
  double factor = scale.convertToDouble(), *out = result.writeFloats();
  if (result.rank() == 0)
    *out = std::accumulate(losses.begin(), losses.end(), 0.0) * factor;
  else
    for (double loss : losses)
      *out++ = loss * factor;
  return result;
}

static LogicalResult crossEntropy(train::CrossEntropyOp op, Operands operands, Results &results,
                                  RankContext &) {
  int64_t v = operands[0].shape().back();
  Tensor lse(op.getLse().getType());
  std::vector<double> losses;
  double *logSums = lse.writeFloats();
  for (auto [row, target] : llvm::enumerate(operands[1].integers())) {
    ArrayRef<double> logits = operands[0].floats().slice(row * v, v);
    double most = *llvm::max_element(logits), sum = 0;
    for (double logit : logits)
      sum += std::exp(logit - most);
    double logSum = most + std::log(sum);
    bool counts = inside(target, v);
    losses.push_back(counts ? logSum - logits[target] : 0);
    logSums[row] = counts ? logSum : INFINITY;
  }
  Tensor loss = lossOf(losses, op.getLoss().getType(), op.getScale());
  results.append({loss, lse});
  return success();
}

static LogicalResult crossEntropyGrad(train::CrossEntropyGradOp op, Operands operands,
                                      Results &results, RankContext &) {
  int64_t v = operands[0].shape().back();
  Tensor result(op.getType());
  double scale = op.getScale().convertToDouble();
  bool perToken = operands[3].rank() > 0;
  double *out = result.writeFloats();
  for (auto [row, target] : llvm::enumerate(operands[1].integers()))
    for (int64_t i = 0; i < v; ++i) {
      double factor = operands[3].floats()[perToken ? row : 0] * scale;
      double p = std::exp(operands[0].floats()[row * v + i] - operands[2].floats()[row]);
      out[row * v + i] = factor * (i == target ? p - 1 : p);
    }
  results.push_back(result);
  return success();
}

static LogicalResult pick(train::PickOp op, Operands operands, Results &results, RankContext &) {
  Tensor result(op.getType());
  int64_t v = operands[0].shape().back();
  double *out = result.writeFloats();
  for (auto [row, id] : llvm::enumerate(operands[1].integers()))
    out[row] = inside(id, v) ? operands[0].floats()[row * v + id] : 0;
  results.push_back(result);
  return success();
}

static LogicalResult tokenLoss(train::TokenLossOp op, Operands operands, Results &results,
                               RankContext &) {
  Tensor lse(op.getLse().getType());
  std::vector<double> losses;
  double *logSums = lse.writeFloats();
  for (auto [i, target] : llvm::enumerate(operands[2].integers())) {
    bool counts = inside(target, op.getBelow());
    logSums[i] = counts ? operands[0].floats()[i] : INFINITY;
    losses.push_back(counts ? operands[0].floats()[i] - operands[1].floats()[i] : 0);
  }
  Tensor loss = lossOf(losses, op.getLoss().getType(), op.getScale());
  results.append({loss, lse});
  return success();
}

void interp::attachRowModels(MLIRContext *context) {
  attach<train::EmbeddingOp, embedding>(context);
  attach<train::EmbeddingGradOp, embeddingGrad>(context);
  attach<train::ShiftIdsOp, shiftIds>(context);
  attach<train::IgnoreIdOp, ignoreId>(context);
  attach<train::LayerNormOp, layerNorm>(context);
  attach<train::LayerNormGradOp, layerNormGrad>(context);
  attach<train::RmsNormOp, rmsNorm>(context);
  attach<train::RmsNormGradOp, rmsNormGrad>(context);
  attach<train::DistanceBucketsOp, distanceBuckets>(context);
  attach<train::RopeTableOp, ropeTable>(context);
  attach<train::AlibiSlopesOp, alibiSlopes>(context);
  attach<train::RopeOp, rope>(context);
  attach<train::CrossEntropyOp, crossEntropy>(context);
  attach<train::CrossEntropyGradOp, crossEntropyGrad>(context);
  attach<train::PickOp, pick>(context);
  attach<train::TokenLossOp, tokenLoss>(context);
}
