//===- Model.h - attaching models to ops ------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A model is a function
//   LogicalResult f(OpT op, Operands operands, Results &results, RankContext &)
// that pushes one tensor per result, and attach<OpT, f>(context) gives it to the
// op. Operands of optional and variadic groups come in the op's operand order.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_INTERPRETER_MODEL_H
#define MESHWRIGHT_INTERPRETER_MODEL_H

#include "meshwright/Interpreter.h"

namespace meshwright::interp {

using Operands = llvm::ArrayRef<Tensor>;
using Results = llvm::SmallVectorImpl<Tensor>;

template <typename OpT>
using ModelFunction = llvm::LogicalResult (*)(OpT, Operands, Results &, RankContext &);

template <typename OpT, ModelFunction<OpT> function>
struct Model : InterpretableOpInterface::ExternalModel<Model<OpT, function>, OpT> {
  llvm::LogicalResult interpret(mlir::Operation *op, llvm::ArrayRef<Tensor> operands,
                                llvm::SmallVectorImpl<Tensor> &results,
                                RankContext &context) const {
    return function(mlir::cast<OpT>(op), operands, results, context);
  }
};

template <typename OpT, ModelFunction<OpT> function> void attach(mlir::MLIRContext *context) {
  OpT::template attachInterface<Model<OpT, function>>(*context);
}

/// The element type of a result.
inline mlir::Type elementTypeOf(mlir::Value value) {
  return mlir::getElementTypeOrSelf(value.getType());
}

/// Runs a loop's body `count` times, from the end if `reverse`. `body(iteration, carry, produced)`
/// produces the next carried values, then a slice of each stack. Results are the carried values and
/// the stacks.
template <typename OpT>
llvm::LogicalResult
runLoop(OpT op, llvm::ArrayRef<Tensor> carried, llvm::SmallVectorImpl<Tensor> &results,
        llvm::function_ref<llvm::LogicalResult(int64_t, const TensorList &, TensorList &)> body,
        const Tensor *times = nullptr, int64_t from = 0) {
  TensorList carry(carried), stacks;
  for (mlir::Value stack : op.getStacks())
    stacks.emplace_back(stack.getType());
  int64_t count = op.getCount();
  if (times) {
    if (times->asInteger() < 0 || times->asInteger() > count)
      return op.emitOpError("is to run ") << times->asInteger() << " times, but at most " << count
                                          << " are possible";
    count = times->asInteger();
  }
  for (int64_t i = from; i < count; ++i) {
    int64_t iteration = op.getReverse() ? count - 1 - i : i;
    TensorList produced;
    if (failed(body(iteration, carry, produced)))
      return llvm::failure();
    carry.assign(produced.begin(), produced.begin() + carry.size());
    for (size_t s = 0; s < stacks.size(); ++s)
      stacks[s].setSlice(iteration, produced[carry.size() + s]);
  }
  llvm::append_range(results, carry);
  llvm::append_range(results, stacks);
  return llvm::success();
}

// The models of each group of ops; registerModels calls them all.
void attachArithModels(mlir::MLIRContext *context);
void attachStructureModels(mlir::MLIRContext *context);
void attachContractionModels(mlir::MLIRContext *context);
void attachAttentionModels(mlir::MLIRContext *context);
void attachRowModels(mlir::MLIRContext *context);
void attachExpertModels(mlir::MLIRContext *context);
void attachElementwiseModels(mlir::MLIRContext *context);
void attachShapeModels(mlir::MLIRContext *context);
void attachQuantizeModels(mlir::MLIRContext *context);
void attachSignModels(mlir::MLIRContext *context);
void attachSparseModels(mlir::MLIRContext *context);
void attachOptimizerModels(mlir::MLIRContext *context);
void attachDistModels(mlir::MLIRContext *context);
void attachExecModels(mlir::MLIRContext *context);

} // namespace meshwright::interp

#endif // MESHWRIGHT_INTERPRETER_MODEL_H
