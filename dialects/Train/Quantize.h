//===- Quantize.h - tensors of 8-bit floats ---------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TRAIN_QUANTIZE_H
#define MESHWRIGHT_TRAIN_QUANTIZE_H

#include "Train/Train.h"

namespace meshwright::train {
/// A dimension that the op's rule composes of blocks is divided for this op alone: blocks are no index of others.
template <typename OpT> class DividesRows : public mlir::OpTrait::TraitBase<OpT, DividesRows> {};
} // namespace meshwright::train

#define GET_OP_CLASSES
#include "Train/TrainQuantizeOps.h.inc"

namespace meshwright::train {

/// A tensor in a type of 8 bits, and what one of its units stands for.
struct Quantized {
  mlir::Value values, scale;
};
/// `x` quantized to `element` by its own amax.
Quantized quantize(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x, mlir::FloatType element);
/// Each block of `x` by its amax; `dims` lie within a block.
Quantized quantize(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x, mlir::FloatType element,
                   llvm::ArrayRef<int64_t> dims);
/// `x` rounded to numbers of `element` in blocks, in its own type. `block` has the length along each dimension, which it
/// divides. Where the block that `b` is in has it already, that is taken.
mlir::Value roundInBlocks(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x, mlir::FloatType element,
                          llvm::ArrayRef<int64_t> block);

/// Checks the `blocks` [m, n] of a product's weight: n columns of one row, or of n.
llvm::LogicalResult verifyBlockShape(mlir::Operation *product, std::optional<llvm::ArrayRef<int64_t>> blocks);

/// Whether `reshape` makes blocks of a tensor's elements, or elements of blocks. Blocks are no index of other ops.
bool reshapesBlocks(ReshapeOp reshape);
/// What `reshape` has the elements of, rounded in blocks, if its ops are beside it; or none.
mlir::Value roundedOf(ReshapeOp reshape);

/// The state of a frozen weight in 8 bits that has the scale of each of its rows.
inline constexpr llvm::StringLiteral scaleRole = "scale";
inline bool isScale(VariableOp variable) { return variable.getRole() == scaleRole; }

/// States of a product's weight for delayed scaling: the largest magnitudes, over the last steps, of what the product
/// reads, of the weight, and of the gradient of what it makes, f32 for each layer. Each has a history, [layers, steps],
/// the last step first.
inline constexpr llvm::StringLiteral observedRoles[] = {"input_amax", "weight_amax", "gradient_amax"};
inline constexpr llvm::StringLiteral historySuffix = "_history";
inline constexpr int64_t stepsOfHistory = 1024;
inline bool isObserved(VariableOp variable) {
  return variable.getRole() && llvm::is_contained(observedRoles, *variable.getRole());
}
inline bool isOfDelayedScaling(llvm::StringRef role) {
  role.consume_back(historySuffix);
  return llvm::is_contained(observedRoles, role);
}
inline bool isOfDelayedScaling(VariableOp variable) { return isOfDelayedScaling(variable.getRole().value_or("")); }
/// The state `role` of `parameter`, a matrix for each layer, of the shape [layers, behind...].
VariableOp makeStateOfScaling(mlir::OpBuilder &b, VariableOp parameter, llvm::StringRef role,
                              llvm::ArrayRef<int64_t> behind);

} // namespace meshwright::train

#endif // MESHWRIGHT_TRAIN_QUANTIZE_H
