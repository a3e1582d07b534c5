//===- VJPTest.cpp - derivatives against finite differences -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "OpCases.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::interp;

/// @vjp: the arguments of `function`, then the cotangent of its op's first
/// result (others, such as lse, have no derivative) -> the gradients wanted.
/// `places` tells which argument each result is the gradient of.
static func::FuncOp buildVJP(func::FuncOp function, Operation *op, ArrayRef<bool> needed,
                             SmallVectorImpl<unsigned> &places) {
  OpBuilder b(function);
  SmallVector<Type> types(function.getArgumentTypes());
  types.push_back(op->getResult(0).getType());
  auto vjp = func::FuncOp::create(b, function.getLoc(), "vjp", b.getFunctionType(types, {}));
  Block *block = vjp.addEntryBlock();
  b.setInsertionPointToEnd(block);
  IRMapping mapping;
  mapping.map(function.getArguments(), block->getArguments().drop_back());
  Operation *clone = b.clone(*op, mapping);
  SmallVector<Value> cotangents(op->getNumResults()), grads, results;
  cotangents[0] = block->getArguments().back();
  EXPECT_TRUE(succeeded(cast<train::VJPOpInterface>(clone).buildVJP(b, cotangents, needed, grads)));
  EXPECT_EQ(grads.size(), op->getNumOperands());
  for (auto [i, grad] : llvm::enumerate(grads)) {
    if (!grad || !needed[i])
      continue;
    // What stands for a gradient of numbers of 8 bits has more.
    auto is8Bits = [](Type type) { return getElementTypeOrSelf(type).getIntOrFloatBitWidth() == 8; };
    if (!is8Bits(grad.getType()) && !is8Bits(op->getOperand(i).getType()))
      EXPECT_EQ(grad.getType(), op->getOperand(i).getType());
    results.push_back(grad);
    places.push_back(cast<BlockArgument>(op->getOperand(i)).getArgNumber());
  }
  func::ReturnOp::create(b, function.getLoc(), results);
  vjp.setType(b.getFunctionType(types, ValueRange(results).getTypes()));
  return vjp;
}

TEST(VJP, AgreesWithFiniteDifferences) {
  OpCases cases;
  cases.forEach<train::VJPOpInterface>([&](func::FuncOp function, Operation *op) {
    TensorList at = OpCases::arguments(function);
    Tensor cotangent =
        randomTensor(cast<RankedTensorType>(op->getResult(0).getType()), "cotangent", 2, 2);
    TensorList inputs = at;
    inputs.push_back(cotangent);

    SmallVector<bool> needed;
    for (Value operand : op->getOperands())
      needed.push_back(
          isa<FloatType>(getElementTypeOrSelf(operand.getType())) &&
          !function.getArgAttr(cast<BlockArgument>(operand).getArgNumber(), "test.constant"));
    SmallVector<unsigned> places;
    func::FuncOp vjp = buildVJP(function, op, needed, places);
    TensorList grads = cases.run(vjp, inputs);
    vjp.erase();
    EXPECT_EQ(int64_t(places.size()), llvm::count(needed, true)) << "gradients are missing";

    // <cotangent, f(x + h e_i) - f(x - h e_i)> / 2h is element i of the gradient.
    const double h = 1e-5;
    auto valueAt = [&](unsigned argument, int64_t i, double step) {
      TensorList moved = at;
      moved[argument].writeFloats()[i] += step;
      Tensor y = cases.run(function, moved)[0];
      double sum = 0;
      for (auto [a, b] : llvm::zip(y.floats(), cotangent.floats()))
        sum += a * b;
      return sum;
    };
    for (auto [argument, grad] : llvm::zip(places, grads)) {
      Tensor expected = at[argument];
      for (int64_t i = 0; i < expected.size(); ++i)
        expected.writeFloats()[i] = (valueAt(argument, i, h) - valueAt(argument, i, -h)) / (2 * h);
      Difference apart = difference(grad, expected);
      EXPECT_GT(norm(expected), 0) << "argument " << argument << " does not matter: weak case";
      EXPECT_TRUE(apart.finite && apart.relative < 1e-8)
          << "argument " << argument << " differs by " << apart.relative;
    }

    // Asked for one gradient alone, an op gives the same.
    for (auto [i, argument, grad] : llvm::enumerate(places, grads)) {
      SmallVector<bool> one(needed.size(), false);
      for (auto [j, operand] : llvm::enumerate(op->getOperands()))
        one[j] = cast<BlockArgument>(operand).getArgNumber() == argument;
      SmallVector<unsigned> oneIndex;
      func::FuncOp single = buildVJP(function, op, one, oneIndex);
      TensorList alone = cases.run(single, inputs);
      single.erase();
      ASSERT_EQ(oneIndex.size(), 1u);
      EXPECT_EQ(difference(alone[0], grad).largest, 0) << "argument " << argument;
    }
  });
}
