//===- Lazy.h - values of an imported function -------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// JAX's text broadcasts and transposes every operand to its result's shape. Floor 1 wants neither:
// a bias stays a vector, of which all sequences have one, and products take their operands in any
// order. So a value is kept as the tensor that it repeats, its core, and where the core's
// dimensions are. Values that no parameter and no token changes are numbers, computed here.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_FRONTEND_STABLEHLO_LAZY_H
#define MESHWRIGHT_FRONTEND_STABLEHLO_LAZY_H

#include "Train/Train.h"

#include "mlir/IR/Builders.h"

#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace meshwright::hlo {

using llvm::ArrayRef;
using llvm::SmallVector;
using llvm::Twine;
using mlir::FailureOr;
using mlir::Value;

struct Lazy;
using Ref = std::shared_ptr<const Lazy>;
using Dims = SmallVector<int64_t, 6>;

/// What a value is known to be of another value x, `Lazy::of`. The maximum of a softmax has no
/// derivative of its own; up to `lessMaximum` the forms may be used for nothing but the next one,
/// in which it cancels.
enum class Form {
  other,
  maximum,       ///< max x, along `along`
  shifted,       ///< x - max x
  expShifted,    ///< exp of that
  sumExp,        ///< the sum of that along `along`
  lessMaximum,   ///< the logarithm of that
  logSumExp,     ///< ... plus max x
  logSoftmax,    ///< x less that
  root,          ///< sqrt x
  sum,           ///< x + `number`
  sigmoid,       ///< 1 / (1 + exp(-x))
  product,       ///< x times `other` with the numbers `product`, times `number`
  masked,        ///< a product where `mask` is 1, and of no weight elsewhere
  softmax,       ///< softmax x, along `along`
  errorFunction, ///< erf(x / sqrt 2)
  normal,        ///< 1 + erf(x / sqrt 2): with x / 2 as the other factor a product is gelu
  picked,        ///< of each row of x the element of a token, `other`
  tokenLoss,  ///< `number` times the cross-entropies of the rows of x and `other`, or sums of some
              ///< of them
  bothTokens, ///< tokens, of which all but the last are inputs and all but the first are targets
  unknown,    ///< what depends on the op `where`, which is refused if it is used
};

struct Lazy {
  Dims shape;
  Dims dims; ///< for each dimension of the core that of `shape`; along all others the core is
             ///< repeated
  mlir::Type element;
  Value core; ///< null where the numbers are known, and of some forms
  std::shared_ptr<std::vector<double>> data; ///< known numbers, of the core's dimensions in order
  bool isPositive = false, isNotNegative = false;
  Form form = Form::other;
  Ref of = {}; ///< x
  Dims along = {};
  double number = 0;
  Ref other = {}, mask = {};
  mlir::DictionaryAttr product = {};
  Dims axes = {}; ///< for each dimension of the product's result where it is now
  mlir::Operation *where = nullptr;
  /// Of known cosines or sines: of what. Where dimensions were moved, so were these.
  std::shared_ptr<std::vector<double>> angles = {};
  bool isSine = false;

  int64_t size(int64_t dim) const { return shape[dim]; }
  Dims coreShape() const {
    return llvm::to_vector<6>(llvm::map_range(dims, [&](int64_t d) { return shape[d]; }));
  }
  int64_t elements() const {
    int64_t product = 1;
    for (int64_t size : shape)
      product *= size;
    return product;
  }
  bool isKnown() const { return bool(data); }
  /// The one number that all elements are.
  std::optional<double> splat() const;
  bool isFloat() const { return llvm::isa<mlir::FloatType>(element); }
};

/// Where `value` is in the list, or -1.
int64_t indexOf(ArrayRef<int64_t> list, int64_t value);

/// The numbers of an attribute that is a list of integers; none where it is missing.
Dims dimsOf(mlir::Attribute list);

/// Whether the shapes differ in nothing but dimensions of one element.
bool areEqualButForOnes(ArrayRef<int64_t> a, ArrayRef<int64_t> b);

/// Whether both are one core at the same dimensions.
bool isSame(const Lazy &a, const Lazy &b);

/// Builds floor 1 of lazy values.
class Graph {
public:
  explicit Graph(mlir::MLIRContext *context)
      : builder(context), location(mlir::UnknownLoc::get(context)) {}

  mlir::OpBuilder builder;
  mlir::Location location;
  /// The op that is being imported, which errors name.
  mlir::Operation *at = nullptr;

  mlir::InFlightDiagnostic error() const { return at->emitError() << at->getName() << " "; }

  //===--- making values ----------------------------------------------------===//

  Ref known(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims, mlir::Type element,
            std::vector<double> data) const;
  Ref splat(ArrayRef<int64_t> shape, mlir::Type element, double value) const;
  Ref wrap(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims, Value core) const;

  //===--- cores --------------------------------------------------------------===//

  /// The dimensions that any of `values` has, in the order of the one that has the most.
  static Dims unionOf(ArrayRef<Ref> values);
  /// The tensor with the dimensions `dims`, or where `isRhs`, for the right side of a sum or a
  /// product, with the last of them.
  FailureOr<Value> fit(const Ref &value, ArrayRef<int64_t> dims, bool isRhs = false);
  /// The whole tensor.
  FailureOr<Value> whole(const Ref &value);
  /// Known numbers, of the dimensions `dims`.
  static std::vector<double> numbers(const Lazy &value, ArrayRef<int64_t> dims);
  /// `function` of the elements of known operands.
  FailureOr<Ref> computed(ArrayRef<Ref> operands, mlir::Type element,
                          const std::function<double(ArrayRef<double>)> &function) const;

  //===--- ops ----------------------------------------------------------------===//

  FailureOr<Ref> add(Ref a, Ref b);
  FailureOr<Ref> multiply(Ref a, Ref b);
  FailureOr<Ref> scaled(const Ref &x, double factor);
  /// `Op` of one operand and attributes.
  template <typename Op, typename... Attributes> Ref unary(const Ref &x, Attributes... attributes) {
    Lazy y = *x;
    y = Lazy{y.shape, y.dims, y.element, {}, {}};
    y.core = Op::create(builder, location, x->core, attributes...);
    return std::make_shared<Lazy>(y);
  }
  mlir::FloatAttr number(double value) { return builder.getF64FloatAttr(value); }

  FailureOr<Ref> broadcast(const Ref &x, ArrayRef<int64_t> to, ArrayRef<int64_t> shape);
  Ref transpose(const Ref &x, ArrayRef<int64_t> permutation);
  FailureOr<Ref> reshape(const Ref &x, ArrayRef<int64_t> shape);
  FailureOr<Ref> slice(const Ref &x, ArrayRef<int64_t> starts, ArrayRef<int64_t> limits,
                       ArrayRef<int64_t> strides);
  FailureOr<Ref> concatenate(ArrayRef<Ref> parts, int64_t dim, ArrayRef<int64_t> shape);
  FailureOr<Ref> sum(const Ref &x, ArrayRef<int64_t> dims);
  /// `isRhsFirst`: rows of the result are b's.
  FailureOr<Ref> product(const Ref &a, const Ref &b, mlir::DictionaryAttr numbers,
                         mlir::RankedTensorType type, bool isRhsFirst);

private:
  Value permuted(Value core, ArrayRef<int64_t> order);
  /// Known numbers as ops.
  FailureOr<Value> materialize(const Lazy &value, ArrayRef<int64_t> dims);
  FailureOr<Value> opsOf(const Lazy &value, ArrayRef<int64_t> dims, ArrayRef<int64_t> shape,
                         ArrayRef<double> data);
  Value fill(double value, ArrayRef<int64_t> shape, mlir::Type element);
  Ref withoutDim(const Lazy &x, int64_t dim);
  /// Whether the compiler computes so many numbers, or an error.
  mlir::LogicalResult checkKnown(int64_t elements) const;

  /// Known numbers that are ops already, and tables of cosines and sines by their angles.
  using Numbers = std::pair<std::vector<int64_t>, std::vector<double>>;
  std::map<Numbers, Value> made;
  std::map<Numbers, train::RopeTableOp> tables;
};

} // namespace meshwright::hlo

#endif // MESHWRIGHT_FRONTEND_STABLEHLO_LAZY_H
