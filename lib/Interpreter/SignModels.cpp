//===- SignModels.cpp - signs of numbers as bits ----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Interpreter/Model.h"

#include "Train/Train.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::interp;

static LogicalResult signBits(train::SignBitsOp op, Operands in, Results &results, RankContext &) {
  Tensor bits(op.getType());
  int64_t *bytes = bits.writeIntegers();
  for (int64_t i = 0; i < bits.size(); ++i) {
    int64_t byte = 0;
    for (int64_t j = 0; j < 8; ++j)
      byte |= int64_t(in[0].floats()[i * 8 + j] >= 0) << j;
    bytes[i] = int8_t(byte);
  }
  results.push_back(bits);
  return success();
}

static LogicalResult magnitude(train::MagnitudeOp op, Operands in, Results &results, RankContext &) {
  Tensor y(op.getType());
  double *means = y.writeFloats();
  int64_t n = in[0].shape().back();
  for (int64_t i = 0; i < in[0].size(); ++i)
    means[i / n] += std::fabs(in[0].floats()[i]) / double(n);
  results.push_back(y);
  return success();
}

/// What bit `j` of byte `i` stands for.
static double signedScale(Operands in, int64_t i, int64_t j) {
  double scale = in[1].floats()[i / in[0].shape().back()];
  return in[0].integers()[i] >> j & 1 ? scale : -scale;
}

static LogicalResult signs(train::SignsOp op, Operands in, Results &results, RankContext &) {
  Tensor y(op.getType());
  double *numbers = y.writeFloats();
  for (int64_t i = 0; i < y.size(); ++i)
    numbers[i] = signedScale(in, i / 8, i % 8);
  results.push_back(y);
  return success();
}

static LogicalResult sumSigns(train::SumSignsOp op, Operands in, Results &results, RankContext &) {
  Tensor y(op.getType());
  double *sums = y.writeFloats();
  int64_t dim = op.getDim(), inner = 1;
  for (int64_t size : in[0].shape().slice(dim + 1))
    inner *= size;
  for (int64_t i = 0; i < in[0].size(); ++i) {
    int64_t at = i / inner / in[0].shape()[dim] * inner + i % inner;
    for (int64_t j = 0; j < 8; ++j)
      sums[at * 8 + j] += signedScale(in, i, j);
  }
  results.push_back(y);
  return success();
}

void interp::attachSignModels(MLIRContext *context) {
  attach<train::SignBitsOp, signBits>(context);
  attach<train::MagnitudeOp, magnitude>(context);
  attach<train::SignsOp, signs>(context);
  attach<train::SumSignsOp, sumSigns>(context);
}
