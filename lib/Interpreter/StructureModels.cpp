//===- StructureModels.cpp - variables and repetition -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Interpreter/Model.h"

#include "Train/Train.h"
#include "meshwright/runtime/Philox.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::interp;

static LogicalResult get(train::GetOp op, Operands, Results &results, RankContext &context) {
  auto found = context.state().find(op.getVariable());
  if (found == context.state().end())
    return op.emitError() << "variable @" << op.getVariable() << " has no value";
  results.push_back(found->second);
  return success();
}

static LogicalResult set(train::SetOp op, Operands operands, Results &, RankContext &context) {
  context.state()[op.getVariable()] = operands[0];
  return success();
}

static LogicalResult repeat(train::RepeatOp op, Operands operands, Results &results,
                            RankContext &context) {
  func::FuncOp callee = op.lookupCallee(context.symbols());
  size_t carried = op.getCarry().size(), each = op.getEach().size();
  Operands passed = operands.drop_back(op.getTimes() ? 1 : 0);
  Operands slices = passed.slice(carried, each), shared = passed.drop_front(carried + each);
  return runLoop(
      op, operands.take_front(carried), results,
      [&](int64_t iteration, const TensorList &carry, TensorList &produced) {
        TensorList arguments;
        if (op.getIndexed()) {
          Tensor number(IntegerType::get(op.getContext(), 32), ArrayRef<int64_t>());
          *number.writeIntegers() = iteration;
          arguments.push_back(number);
        }
        llvm::append_range(arguments, carry);
        for (const Tensor &whole : slices)
          arguments.push_back(whole.slice(iteration));
        llvm::append_range(arguments, shared);
        return context.call(callee, arguments, produced);
      },
      op.getTimes() ? &operands.back() : nullptr);
}

static LogicalResult foldInKey(train::FoldInOp op, Operands operands, Results &results,
                               RankContext &) {
  Tensor key(op.getType());
  std::array<uint32_t, 2> words =
      foldIn({uint32_t(operands[0].integers()[0]), uint32_t(operands[0].integers()[1])},
             uint32_t(op.getFirst() + operands[1].asInteger()));
  for (int i = 0; i < 2; ++i)
    key.writeIntegers()[i] = int32_t(words[i]);
  results.push_back(key);
  return success();
}

void interp::attachStructureModels(MLIRContext *context) {
  attach<train::GetOp, get>(context);
  attach<train::SetOp, set>(context);
  attach<train::RepeatOp, repeat>(context);
  attach<train::FoldInOp, foldInKey>(context);
}
