//===- Builder.h - ops of StableHLO without its dialect ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Debian's MLIR has no StableHLO dialect. Ops are built as unregistered ones, which print
// in the generic form that StableHLO's own parser reads. Names and attributes are those of
// the StableHLO specification, version 1.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CODEGEN_STABLEHLO_BUILDER_H
#define MESHWRIGHT_CODEGEN_STABLEHLO_BUILDER_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace meshwright::codegen::stablehlo {

using Shape = llvm::ArrayRef<int64_t>;

/// Appends ops at an insertion point. Tensors have static shapes and no encoding.
class HLOBuilder {
public:
  HLOBuilder(mlir::OpBuilder builder, mlir::Location loc) : b(builder), loc(loc) {}

  mlir::OpBuilder &builder() { return b; }
  mlir::Location getLoc() const { return loc; }

  static mlir::RankedTensorType typeOf(mlir::Value value) {
    return llvm::cast<mlir::RankedTensorType>(value.getType());
  }
  static mlir::RankedTensorType withShape(mlir::Value value, Shape shape) {
    return mlir::RankedTensorType::get(shape, typeOf(value).getElementType());
  }

  //===--- any op -----------------------------------------------------------===//

  mlir::Operation *create(llvm::StringRef name, mlir::TypeRange results, mlir::ValueRange operands,
                          llvm::ArrayRef<mlir::NamedAttribute> attributes = {},
                          unsigned regions = 0);
  mlir::Value op(llvm::StringRef name, mlir::Type result, mlir::ValueRange operands,
                 llvm::ArrayRef<mlir::NamedAttribute> attributes = {}) {
    return create(name, result, operands, attributes)->getResult(0);
  }
  /// An attribute of StableHLO's dialect, as text: `dot<..>` is #stablehlo.dot<..>.
  mlir::NamedAttribute attribute(llvm::StringRef name, const llvm::Twine &text);
  mlir::NamedAttribute numbers(llvm::StringRef name, Shape values) {
    return b.getNamedAttr(name, b.getDenseI64ArrayAttr(values));
  }
  mlir::NamedAttribute number(llvm::StringRef name, int64_t value) {
    return b.getNamedAttr(name, b.getI64IntegerAttr(value));
  }

  //===--- what is needed often ---------------------------------------------===//

  mlir::Value constant(mlir::DenseElementsAttr value);
  /// A tensor of `type` whose elements are all `value`, rounded to its element type.
  mlir::Value splat(mlir::RankedTensorType type, double value);
  mlir::Value add(mlir::Value x, mlir::Value y) { return op("add", x.getType(), {x, y}); }
  mlir::Value sub(mlir::Value x, mlir::Value y) { return op("subtract", x.getType(), {x, y}); }
  mlir::Value mul(mlir::Value x, mlir::Value y) { return op("multiply", x.getType(), {x, y}); }
  mlir::Value exp(mlir::Value x) { return op("exponential", x.getType(), x); }
  mlir::Value convert(mlir::Value x, mlir::Type element);
  mlir::Value bitcast(mlir::Value x, mlir::Type element);
  mlir::Value reshape(mlir::Value x, Shape shape);
  mlir::Value transpose(mlir::Value x, Shape permutation);
  /// Dimension d of `x` becomes dimension dims[d] of `shape`.
  mlir::Value broadcast(mlir::Value x, Shape shape, Shape dims);
  mlir::Value iota(Shape shape, int64_t dim);
  /// `direction`: EQ, NE, LT, LE, GT or GE; `type`: FLOAT, SIGNED or UNSIGNED.
  mlir::Value compare(mlir::Value x, mlir::Value y, llvm::StringRef direction,
                      llvm::StringRef type);
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y) {
    return op("select", x.getType(), {condition, x, y});
  }
  mlir::Value slice(mlir::Value x, Shape begin, Shape end);
  mlir::Value dynamicSlice(mlir::Value x, mlir::ValueRange begin, Shape sizes);
  mlir::Value concatenate(mlir::ValueRange parts, int64_t dim);
  /// Over `dims`, which disappear.
  mlir::Value reduce(mlir::Value x, Shape dims, bool max);
  /// Sorts `xs` along `dim` by the first of them, stably, smallest first.
  llvm::SmallVector<mlir::Value> sort(mlir::ValueRange xs, int64_t dim);
  /// Elements of `x`, of one dimension, where `ids` say, which are in range.
  mlir::Value take(mlir::Value x, mlir::Value ids);
  /// `count` turns of `body`, which makes the next values of a number and these; it sees no others. With
  /// `times` as many turns as that one of these values says, an i32.
  using Turn = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value i, mlir::ValueRange in,
                                                                 HLOBuilder &inside)>;
  llvm::SmallVector<mlir::Value> loop(int64_t count, mlir::ValueRange start, Turn body,
                                      std::optional<unsigned> times = std::nullopt);
  /// A region that combines two scalars of `element` by `name` (add, maximum).
  void combineWith(mlir::Region &region, llvm::StringRef name, mlir::Type element);
  /// Sums of products over the contracted dimensions, in `element`: first the batch's
  /// dimensions, then those of `x` alone, then those of `y` alone.
  mlir::Value dot(mlir::Value x, mlir::Value y, Shape batchX, Shape batchY, Shape contractX,
                  Shape contractY, mlir::Type element);

private:
  mlir::OpBuilder b;
  mlir::Location loc;
};

} // namespace meshwright::codegen::stablehlo

#endif // MESHWRIGHT_CODEGEN_STABLEHLO_BUILDER_H
