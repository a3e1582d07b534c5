//===- ExecModels.cpp - launches, products and loops on tensors -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Floor 3 is interpreted as long as it holds tensors: kernels have been formed
// and decomposed and repetitions are loops, but values are not memory yet.
//
//===----------------------------------------------------------------------===//
#include "Interpreter/Contraction.h"
#include "Interpreter/Model.h"

#include "Exec/Exec.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::interp;

static LogicalResult launch(exec::LaunchOp op, ArrayRef<Tensor> operands,
                            SmallVectorImpl<Tensor> &results, RankContext &context) {
  if (!op.getOutputs().empty())
    return op.emitError("writes memory: the interpreter runs launches on tensors only");
  auto kernel = context.symbols().lookupNearestSymbolFrom<func::FuncOp>(op, op.getKernelAttr());
  if (!kernel)
    return op.emitError() << "launches " << op.getKernelAttr() << ", which is not a function";
  TensorList values;
  if (failed(context.call(kernel, operands, values)))
    return failure();
  results.append(values.begin(), values.end());
  return success();
}

static LogicalResult loop(exec::LoopOp op, ArrayRef<Tensor> operands,
                          SmallVectorImpl<Tensor> &results, RankContext &context) {
  size_t carried = op.getCarry().size(), each = op.getEach().size();
  return runLoop(
      op, operands.take_front(carried), results,
      [&](int64_t iteration, const TensorList &carry, TensorList &produced) {
        Tensor number(op.getIndex().getType());
        *number.writeIntegers() = iteration;
        TensorList arguments{number};
        llvm::append_range(arguments, carry);
        for (const Tensor &whole : operands.slice(carried, each))
          arguments.push_back(whole.slice(iteration));
        return context.run(op.getBlock(), arguments, produced);
      },
      op.getTimes() ? &operands.back() : nullptr, int64_t(op.getFrom()));
}

static LogicalResult index(exec::IndexOp op, ArrayRef<Tensor> operands,
                           SmallVectorImpl<Tensor> &results, RankContext &) {
  results.emplace_back(op.getType());
  *results.back().writeIntegers() = operands[0].asInteger();
  return success();
}

/// The tanh form of gelu, and its derivative.
static std::pair<double, double> geluTanhAndSlope(double x) {
  double root = std::sqrt(2 / M_PI), t = std::tanh(root * (x + 0.044715 * x * x * x));
  double slope = root * (1 + 3 * 0.044715 * x * x);
  return {x / 2 * (1 + t), (1 + t) / 2 + x / 2 * (1 - t * t) * slope};
}

/// The sums of `value` over some of its dimensions.
static Tensor sumOver(const Tensor &value, ArrayRef<int64_t> dims, Type type) {
  Tensor result(type);
  ArrayRef<int64_t> shape = value.shape();
  double *out = result.writeFloats();
  std::fill_n(out, result.size(), 0.0);
  for (int64_t i = 0; i < value.size(); ++i) {
    // The index of element i without the summed dimensions, from the last one on.
    int64_t rest = i, index = 0, stride = 1;
    for (int64_t dim = int64_t(shape.size()) - 1; dim >= 0; --dim) {
      if (!llvm::is_contained(dims, dim)) {
        index += rest % shape[dim] * stride;
        stride *= shape[dim];
      }
      rest /= shape[dim];
    }
    out[index] += value.floats()[i];
  }
  return result;
}

static LogicalResult productOp(exec::ProductOp op, ArrayRef<Tensor> operands,
                             SmallVectorImpl<Tensor> &results, RankContext &) {
  Tensor result = contract(op, op.getProductRule(), operands[0], operands[1]);
  double *out = result.writeFloats();
  int64_t size = result.floats().size();
  ArrayRef<Tensor> rest = operands.drop_front(2);
  for (Value more : {op.getAddend(), op.getBias()}) {
    if (!more)
      continue;
    ArrayRef<double> values = rest.front().floats();
    for (int64_t i = 0; i < size; ++i)
      out[i] += values[i % values.size()];
    rest = rest.drop_front();
  }
  Tensor before = result;
  if (op.getSlopeAt())
    for (auto [i, x] : llvm::enumerate(rest.front().floats()))
      out[i] *= geluTanhAndSlope(x).second;
  if (op.getGelu()) {
    out = result.writeFloats();
    for (int64_t i = 0; i < size; ++i)
      out[i] = geluTanhAndSlope(out[i]).first;
  }
  results.push_back(result);
  if (op.getPreactivation())
    results.push_back(before);
  if (op.getFactorSums())
    results.push_back(sumOver(operands[*op.getBiasGrad()],
                              exec::summedDims(op.getProductRule(), *op.getBiasGrad()),
                              op.getFactorSums().getType()));
  return success();
}

void interp::attachExecModels(MLIRContext *context) {
  attach<exec::LaunchOp, launch>(context);
  attach<exec::LoopOp, loop>(context);
  attach<exec::ProductOp, productOp>(context);
  attach<exec::IndexOp, index>(context);
}
