//===- OptimizerModels.cpp - norms, clipping, updates -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// An update is the graph of its optimizer's formula, whose ops have models of their own.
//
//===----------------------------------------------------------------------===//
#include "Interpreter/Model.h"

#include "Train/Optimizer.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::interp;

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

static LogicalResult lerp(train::LerpOp op, Operands in, Results &results, RankContext &) {
  double weight = in[2].asFloat();
  ArrayRef<double> from = in[0].floats(), to = in[1].floats();
  Tensor &result = results.emplace_back(op.getType());
  double *out = result.writeFloats();
  for (int64_t i = 0; i < result.size(); ++i)
    out[i] = (1 - weight) * from[i] + weight * to[i];
  return success();
}

static LogicalResult guard(train::GuardOp, Operands in, Results &results, RankContext &) {
  results.push_back(std::isfinite(in[2].asFloat()) ? in[0] : in[1]);
  return success();
}

/// Runs the ops of `block`, of which each has a model, on the values of its arguments.
static LogicalResult runGraph(Block &block, llvm::DenseMap<Value, Tensor> &values,
                              RankContext &context) {
  for (Operation &op : block) {
    auto model = dyn_cast<InterpretableOpInterface>(op);
    if (!model)
      return op.emitError() << "of an optimizer's formula has no model";
    TensorList operands, produced;
    for (Value operand : op.getOperands())
      operands.push_back(values.lookup(operand));
    if (failed(model.interpret(operands, produced, context)))
      return failure();
    for (auto [result, value] : llvm::zip_equal(op.getResults(), produced))
      values[result] = value;
  }
  return success();
}

/// All in f64: results alone are rounded.
static LogicalResult update(train::UpdateOp op, Operands in, Results &results,
                            RankContext &context) {
  Block block;
  llvm::DenseMap<Value, Tensor> values;
  OpBuilder builder(op.getContext());
  builder.setInsertionPointToEnd(&block);
  for (const Tensor &operand : in) {
    auto type = RankedTensorType::get(operand.shape(), builder.getF64Type());
    values[block.addArgument(type, op.getLoc())] = operand;
  }
  SmallVector<Value> updated = train::buildUpdate(op, builder, block.getArguments());
  if (failed(runGraph(block, values, context)))
    return failure();
  for (auto [result, value] : llvm::zip_equal(op.getResults(), updated)) {
    Tensor &tensor = results.emplace_back(result.getType());
    llvm::copy(values.lookup(value).floats(), tensor.writeFloats());
  }
  return success();
}

void interp::attachOptimizerModels(MLIRContext *context) {
  attach<train::SquareSumOp, squareSum>(context);
  attach<train::GlobalNormOp, globalNorm>(context);
  attach<train::ClipFactorOp, clipFactor>(context);
  attach<train::UnscaleOp, unscale>(context);
  attach<train::LerpOp, lerp>(context);
  attach<train::GuardOp, guard>(context);
  attach<train::UpdateOp, update>(context);
}
