//===- Tensor.h - the interpreter's values ----------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TENSOR_H
#define MESHWRIGHT_TENSOR_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <memory>
#include <vector>

namespace meshwright::interp {

/// A tensor, row-major. Copies share their elements until one of them is written
/// to. Elements of float types are kept as f64; whether they are rounded to the
/// element type is the run's choice (Precision). Elements of integer types are
/// kept as sign-extended 64-bit numbers, i1 as 0 or 1.
class Tensor {
public:
  /// No tensor.
  Tensor() = default;
  /// Zeros. A type that is not a tensor makes a tensor of rank 0.
  explicit Tensor(mlir::Type type);
  Tensor(mlir::Type elementType, llvm::ArrayRef<int64_t> shape);

  /// What nobody may use: not-a-number, or the least integer, everywhere.
  static Tensor undefined(mlir::Type type);
  bool isUndefined() const { return nobodys; }

  explicit operator bool() const { return bool(element); }
  mlir::Type elementType() const { return element; }
  bool isFloat() const { return mlir::isa<mlir::FloatType>(element); }
  llvm::ArrayRef<int64_t> shape() const { return sizes; }
  int64_t rank() const { return int64_t(sizes.size()); }
  int64_t dim(int64_t i) const { return sizes[i]; }
  int64_t size() const { return count; }
  mlir::RankedTensorType type() const { return mlir::RankedTensorType::get(sizes, element); }

  /// The elements; only for tensors of float (integer) types.
  llvm::ArrayRef<double> floats() const;
  llvm::ArrayRef<int64_t> integers() const;
  /// ... to write to. Pointers obtained before are invalid.
  double *writeFloats();
  int64_t *writeIntegers();

  /// The only element.
  double asFloat() const { return floats().front(); }
  int64_t asInteger() const { return integers().front(); }

  /// The same elements under another shape of the same size.
  Tensor reshaped(llvm::ArrayRef<int64_t> shape) const;
  /// The elements of `index` along the first dimension, without that dimension.
  Tensor slice(int64_t index) const;
  /// Writes what `slice(index)` reads.
  void setSlice(int64_t index, const Tensor &value);
  /// The box of `sizes` elements from `offsets`; what lies outside is zero.
  Tensor box(llvm::ArrayRef<int64_t> offsets, llvm::ArrayRef<int64_t> sizes) const;
  /// Writes `value` at `offsets`; what would lie outside is left out.
  void setBox(llvm::ArrayRef<int64_t> offsets, const Tensor &value);

  /// Rounds every element to the element type, to nearest, ties to even.
  void round();

private:
  mlir::Type element;
  llvm::SmallVector<int64_t, 4> sizes;
  int64_t count = 0;
  bool nobodys = false;
  std::shared_ptr<std::vector<double>> floatData;
  std::shared_ptr<std::vector<int64_t>> integerData;
};

using TensorList = llvm::SmallVector<Tensor>;

/// `value` rounded to the nearest number of `type`, ties to even.
double roundTo(mlir::FloatType type, double value);

/// `value` cut to the bits of `type` and sign-extended; i1 becomes 0 or 1.
int64_t wrapTo(mlir::Type type, int64_t value);

/// The number of elements of a shape.
int64_t product(llvm::ArrayRef<int64_t> shape);

/// How far two tensors are apart.
struct Difference {
  double largest = 0;   ///< of the elements' distances
  double norm = 0;      ///< of the difference
  double relative = 0;  ///< that over the norm of the second
  bool sameKind = true; ///< shapes and kinds of element agree
  bool finite = true;   ///< not-a-number and infinity at the same places
};
/// The root of the sum of squares.
double norm(const Tensor &x);
Difference difference(const Tensor &a, const Tensor &b);

} // namespace meshwright::interp

#endif // MESHWRIGHT_TENSOR_H
