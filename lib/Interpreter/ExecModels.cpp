//===- ExecModels.cpp - launches of kernels on tensors ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Floor 3 is interpreted as long as it holds tensors: kernels have been formed
// and decomposed, but values are not memory yet.
//
//===----------------------------------------------------------------------===//
#include "Interpreter/Model.h"

#include "Exec/Exec.h"

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

void interp::attachExecModels(MLIRContext *context) { attach<exec::LaunchOp, launch>(context); }
