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

static double largestOf(Type element) {
  return APFloat::getLargest(cast<FloatType>(element).getFloatSemantics()).convertToDouble();
}

/// Of each element of a tensor the place of its block among those without `dims`, row by row.
static SmallVector<int64_t> blocksOf(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> blocks(ShapedType::getNumElements(shape), 0);
  int64_t stride = 1, each = 1; // of the dimension among blocks, and among elements
  for (int64_t dim = int64_t(shape.size()) - 1; dim >= 0; --dim) {
    if (!dims.empty() && !llvm::is_contained(dims, dim)) {
      for (int64_t i = 0; i < int64_t(blocks.size()); ++i)
        blocks[i] += i / each % shape[dim] * stride;
      stride *= shape[dim];
    }
    each *= shape[dim];
  }
  return blocks;
}

static LogicalResult amax(train::AmaxOp op, Operands in, Results &results, RankContext &) {
  Tensor result(op.getType());
  double *out = result.writeFloats();
  SmallVector<int64_t> blocks = blocksOf(op.getX().getType().getShape(), op.getDims());
  for (auto [i, x] : llvm::enumerate(in[0].floats()))
    if (double &most = out[blocks[i]]; !(std::fabs(x) <= most)) // also if x is no number, or the greatest is none
      most = std::isnan(most) ? most : std::fabs(x);
  results.push_back(result);
  return success();
}

static LogicalResult quantizationScale(train::QuantizationScaleOp op, Operands in, Results &results,
                                       RankContext &) {
  Tensor result(op.getType());
  double *out = result.writeFloats();
  for (auto [i, x] : llvm::enumerate(in[0].floats())) {
    int exponent;
    double digits = std::frexp(x / largestOf(op.getElement()), &exponent);
    out[i] = std::isfinite(x) ? std::max(std::ldexp(1.0, digits == 0.5 ? exponent - 1 : exponent), 0x1p-126) : NAN;
  }
  results.push_back(result);
  return success();
}

/// Of `train.observe` and `train.quantize_gradient`, which are about gradients.
template <typename OpT> static LogicalResult observer(OpT, Operands in, Results &results, RankContext &) {
  results.push_back(in[0]);
  return success();
}

static LogicalResult quantize(train::QuantizeOp op, Operands in, Results &results, RankContext &) {
  Tensor result(op.getType());
  double *out = result.writeFloats(), largest = largestOf(op.getType().getElementType());
  SmallVector<int64_t> blocks = blocksOf(op.getType().getShape(), op.getDims());
  for (auto [i, x] : llvm::enumerate(in[0].floats())) {
    double y = x / in[1].floats()[blocks[i]];
    out[i] = std::isfinite(x) && !std::isnan(y) ? std::clamp(y, -largest, largest) : NAN;
  }
  results.push_back(result);
  return success();
}

static LogicalResult dequantize(train::DequantizeOp op, Operands in, Results &results, RankContext &) {
  Tensor result(op.getType());
  double *out = result.writeFloats();
  SmallVector<int64_t> blocks = blocksOf(op.getType().getShape(), op.getDims());
  for (auto [i, y] : llvm::enumerate(in[0].floats()))
    out[i] = y * in[1].floats()[blocks[i]];
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

//===--- 8-bit states in blocks ----------------------------------------------===//

/// The 256 numbers of the dynamic map, ascending, as bitsandbytes lists them (create_dynamic_map): of each power of
/// ten the centers of equal cells from a tenth of it on.
static const std::vector<double> &dynamicMap(bool isSigned) {
  static const auto make = [](bool isSigned) {
    std::vector<double> map{0, 1};
    for (int exponent = 0; exponent < 7; ++exponent) {
      int cells = isSigned ? 1 << exponent : 2 << exponent;
      for (int cell = 0; cell < cells; ++cell) {
        double low = 0.1 + 0.9 * cell / cells, high = 0.1 + 0.9 * (cell + 1) / cells;
        double number = std::pow(10, exponent - 6) * (low + high) / 2;
        map.push_back(number);
        if (isSigned)
          map.push_back(-number);
      }
    }
    llvm::sort(map);
    return map;
  };
  static const std::vector<double> withSign = make(true), withoutSign = make(false);
  return isSigned ? withSign : withoutSign;
}

/// The place of zero, from which codes count.
static int64_t zeroOf(bool isSigned) { return isSigned ? 127 : 0; }

static LogicalResult blockAmax(train::BlockAmaxOp op, Operands in, Results &results, RankContext &) {
  Tensor result(op.getType());
  double *out = result.writeFloats();
  int64_t each = in[0].size() / std::max<int64_t>(1, result.size());
  for (auto [i, x] : llvm::enumerate(in[0].floats()))
    if (double &most = out[i / each]; !(std::fabs(x) <= most))
      most = std::isnan(most) ? most : std::fabs(x);
  results.push_back(result);
  return success();
}

static LogicalResult quantizeBlocks(train::QuantizeBlocksOp op, Operands in, Results &results, RankContext &) {
  Tensor result(op.getType());
  const std::vector<double> &map = dynamicMap(op.getIsSigned());
  int64_t *out = result.writeIntegers(), each = in[0].size() / std::max<int64_t>(1, in[1].size());
  for (auto [i, x] : llvm::enumerate(in[0].floats())) {
    double y = x / in[1].floats()[i / each];
    if (std::isnan(y)) {
      out[i] = 0;
      continue;
    }
    int64_t above = std::clamp<int64_t>(llvm::lower_bound(map, y) - map.begin(), 1, int64_t(map.size()) - 1);
    double below = y - map[above - 1], over = map[above] - y;
    bool isBelow = below == over ? y < 0 : below < over; // of two as near the larger in magnitude
    out[i] = wrapTo(op.getType().getElementType(), above - isBelow - zeroOf(op.getIsSigned()));
  }
  results.push_back(result);
  return success();
}

static LogicalResult dequantizeBlocks(train::DequantizeBlocksOp op, Operands in, Results &results, RankContext &) {
  Tensor result(op.getType());
  const std::vector<double> &map = dynamicMap(op.getIsSigned());
  double *out = result.writeFloats();
  int64_t each = in[0].size() / std::max<int64_t>(1, in[1].size());
  for (auto [i, code] : llvm::enumerate(in[0].integers()))
    out[i] = map[uint8_t(code + zeroOf(op.getIsSigned()))] * in[1].floats()[i / each];
  results.push_back(result);
  return success();
}

//===--- weights in 8 bits ----------------------------------------------------===//

static LogicalResult dequantizeRows(train::DequantizeRowsOp op, Operands in, Results &results, RankContext &) {
  Tensor result(op.getType());
  double *out = result.writeFloats();
  int64_t columns = op.getType().getShape().back();
  for (auto [i, code] : llvm::enumerate(in[0].integers()))
    out[i] = double(code) * in[1].floats()[int64_t(i) / columns];
  results.push_back(result);
  return success();
}

void interp::attachQuantizeModels(MLIRContext *context) {
  attach<train::DequantizeRowsOp, dequantizeRows>(context);
  attach<train::BlockAmaxOp, blockAmax>(context);
  attach<train::QuantizeBlocksOp, quantizeBlocks>(context);
  attach<train::DequantizeBlocksOp, dequantizeBlocks>(context);
  attach<train::AmaxOp, amax>(context);
  attach<train::QuantizationScaleOp, quantizationScale>(context);
  attach<train::ObserveOp, observer<train::ObserveOp>>(context);
  attach<train::QuantizeGradientOp, observer<train::QuantizeGradientOp>>(context);
  attach<train::QuantizeOp, ::quantize>(context);
  attach<train::DequantizeOp, ::dequantize>(context);
  attach<train::ScaledContractOp, scaledContract>(context);
}
