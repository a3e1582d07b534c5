//===- Elementwise.cpp - import of ops that compute element by element -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Importer.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::hlo;
using namespace meshwright::train;

static Type elementOf(Operation *op) { return getElementTypeOrSelf(op->getResult(0).getType()); }
static ArrayRef<int64_t> resultShape(Operation *op) {
  return cast<RankedTensorType>(op->getResult(0).getType()).getShape();
}
/// As StableHLO has them: of a number and NaN both are NaN.
static double larger(double a, double b) { return std::isnan(a) ? a : b <= a ? a : b; }
static double smaller(double a, double b) { return std::isnan(a) ? a : b >= a ? a : b; }
static double infinity() { return std::numeric_limits<double>::infinity(); }

/// The dimensions of `x` but for those that a maximum was taken of.
static Dims without(const Lazy &x, ArrayRef<int64_t> along) {
  Dims kept;
  for (int64_t dim : x.dims)
    if (!llvm::is_contained(along, dim))
      kept.push_back(dim);
  return kept;
}

/// Whether `value` has for each element of x that of its row, in x's shape.
static bool isRowOf(const Lazy &value, const Lazy &x, ArrayRef<int64_t> along) {
  return value.of && isSame(*value.of, x) && value.shape == x.shape &&
         value.dims == without(x, along);
}

/// `x` with a form.
static Ref formed(const Ref &x, Form form, const Ref &of, ArrayRef<int64_t> along = {},
                  double number = 0) {
  Lazy y = *x;
  y.form = form;
  y.of = of;
  y.along = Dims(along);
  y.number = number;
  return std::make_shared<Lazy>(y);
}

/// What `x` is a multiple of, and the factor.
static std::pair<Value, double> multipleOf(const Lazy &x) {
  Value base = x.core;
  double factor = 1;
  while (auto scale = base.getDefiningOp<ScaleOp>()) {
    factor *= scale.getFactor().convertToDouble();
    base = scale.getX();
  }
  return {base, factor};
}

Ref Importer::unknown(Operation *op) const {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  Lazy value{Dims(type.getShape()), {}, type.getElementType(), {}, {}};
  value.form = Form::unknown;
  value.where = op;
  // Errors name the first op that made something unknown of tokens.
  for (Value operand : op->getOperands())
    if (Ref from = values.lookup(operand); from->form == Form::unknown)
      value.where = from->where;
  return std::make_shared<Lazy>(value);
}

FailureOr<Ref> Importer::usable(const Ref &value) {
  switch (value->form) {
  case Form::maximum:
  case Form::shifted:
  case Form::expShifted:
  case Form::sumExp:
  case Form::lessMaximum:
    return graph.error()
           << "uses a maximum, which has a derivative only in softmax, log_softmax and "
              "logsumexp over one dimension, as jax.nn has them; use these";
  case Form::errorFunction:
  case Form::normal:
    return graph.error()
           << "uses an error function, which is imported in x / 2 (1 + erf(x / sqrt 2)) only, as "
              "jax.nn.gelu has it";
  case Form::picked:
    return graph.error()
           << "uses single logits of tokens; log_softmax or logsumexp belongs to them in a loss";
  case Form::bothTokens:
    return graph.error()
           << "uses tokens and targets at once; slice them first: tokens[:, :-1] and tokens[:, 1:]";
  case Form::unknown:
    return value->where->emitError()
           << value->where->getName()
           << " of tokens cannot be imported; tokens may select rows and logits, and nothing else";
  case Form::tokenLoss: {
    if (value->elements() != 1)
      return graph.error() << "computes with losses of single tokens; average them first";
    FailureOr<Value> sum = lossOf(value);
    if (failed(sum))
      return failure();
    return graph.wrap(value->shape, {}, *sum);
  }
  default:
    return value;
  }
}

//===--- sums ---------------------------------------------------------------===//

FailureOr<Ref> Importer::add(Operation *op) {
  Ref a = raw(op, 0), b = raw(op, 1);
  for (auto [erf, one] : {std::pair(a, b), std::pair(b, a)})
    if (erf->form == Form::errorFunction && one->splat() == 1.0)
      return formed(erf, Form::normal, erf->of);
  for (auto [sum, maximum] : {std::pair(a, b), std::pair(b, a)})
    if (sum->form == Form::lessMaximum && maximum->form == Form::maximum &&
        isSame(*sum->of, *maximum->of) && sum->dims == maximum->dims &&
        sum->along == maximum->along) {
      Lazy y{sum->shape,
             sum->dims,
             sum->element,
             AddOp::create(graph.builder, graph.location, sum->core, maximum->core),
             {}};
      return formed(std::make_shared<Lazy>(y), Form::logSumExp, sum->of, sum->along);
    }
  FailureOr<Ref> x = operand(op, 0), y = operand(op, 1);
  if (failed(x) || failed(y))
    return failure();
  return graph.add(*x, *y);
}

FailureOr<Ref> Importer::difference(Operation *op, Ref a, Ref b) {
  FailureOr<Ref> x = usable(a), y = usable(b);
  if (failed(x) || failed(y))
    return failure();
  if ((*x)->isKnown() && (*y)->isKnown())
    return graph.computed({*x, *y}, (*x)->element, [](ArrayRef<double> v) { return v[0] - v[1]; });
  FailureOr<Ref> minus = graph.scaled(*y, -1);
  if (failed(minus))
    return failure();
  return graph.add(*x, *minus);
}

FailureOr<Ref> Importer::subtract(Operation *op) {
  Ref a = raw(op, 0), b = raw(op, 1);
  auto minus = [&](const Ref &x, const Ref &row) -> FailureOr<Ref> {
    Lazy plain = *row, whole = *x;
    plain.form = whole.form = Form::other;
    return difference(op, std::make_shared<Lazy>(whole), std::make_shared<Lazy>(plain));
  };
  if (b->form == Form::maximum && isRowOf(*b, *a, b->along)) {
    FailureOr<Ref> shifted = minus(a, b);
    return failed(shifted) ? shifted : formed(*shifted, Form::shifted, a, b->along);
  }
  if (a->form == Form::shifted && b->form == Form::lessMaximum && a->along == b->along &&
      isRowOf(*b, *a->of, a->along)) {
    FailureOr<Ref> less = minus(a, b);
    return failed(less) ? less : formed(*less, Form::logSoftmax, a->of, a->along);
  }
  // Of a token, log(sum(exp(x))) less its own x.
  if (a->form == Form::logSumExp && b->form == Form::picked && isSame(*a->of, *b->of) &&
      a->along == ArrayRef<int64_t>{int64_t(b->of->shape.size()) - 1} && a->shape == b->shape &&
      a->dims == without(*a->of, a->along)) {
    Lazy y = *b;
    y.form = Form::tokenLoss;
    y.number = 1;
    return Ref(std::make_shared<Lazy>(y));
  }
  return difference(op, a, b);
}

FailureOr<Ref> Importer::negate(Operation *op) {
  Ref a = raw(op, 0);
  if (a->form == Form::tokenLoss)
    return formed(a, Form::tokenLoss, a->of, {}, -a->number);
  FailureOr<Ref> x = usable(a);
  return failed(x) ? x : graph.scaled(*x, -1);
}

//===--- products -----------------------------------------------------------===//

FailureOr<Ref> Importer::multiply(Operation *op) {
  Ref a = raw(op, 0), b = raw(op, 1);
  for (auto [x, factor] : {std::pair(a, b), std::pair(b, a)})
    if (std::optional<double> number = factor->splat(); number && x->form == Form::tokenLoss)
      return formed(x, Form::tokenLoss, x->of, {}, x->number * *number);
  for (auto [x, normal] : {std::pair(a, b), std::pair(b, a)})
    if (normal->form == Form::normal && x->core && x->shape == normal->shape &&
        x->dims == normal->dims)
      if (auto [base, factor] = multipleOf(*x); base == normal->of->core)
        return graph.scaled(
            graph.unary<GeluOp>(graph.wrap(x->shape, x->dims, base), /*tanh=*/false), 2 * factor);
  FailureOr<Ref> x = usable(a), y = usable(b);
  if (failed(x) || failed(y))
    return failure();
  FailureOr<Ref> made = graph.multiply(*x, *y);
  for (auto [scores, factor] : {std::pair(a, b), std::pair(b, a)})
    if (std::optional<double> number = factor->splat(); number && succeeded(made))
      return rescaled(*made, scores, *number);
  return made;
}

Ref Importer::rescaled(const Ref &scaled, const Ref &scores, double factor) {
  if (scores->form != Form::product)
    return scaled;
  Lazy y = *scores;
  y.core = scaled->core;
  y.number *= factor;
  return std::make_shared<Lazy>(y);
}

FailureOr<Ref> Importer::square(Operation *op) {
  FailureOr<Ref> x = operand(op, 0);
  return failed(x) ? x : graph.multiply(*x, *x);
}

FailureOr<Ref> Importer::inverseRoot(const Ref &x) {
  if (x->isKnown())
    return graph.computed({x}, x->element, [](ArrayRef<double> v) { return 1 / std::sqrt(v[0]); });
  if (!x->isPositive && !x->isNotNegative)
    return graph.error()
           << "takes a root of what cannot be shown to be above 0; add a small number to a "
              "sum of squares";
  // 1 / sqrt(x + eps) is one op.
  bool isSum = x->form == Form::sum && x->number > 0 && x->of->core.getType() == x->core.getType();
  Lazy y{x->shape,
         x->dims,
         x->element,
         InverseRootOp::create(graph.builder, graph.location, isSum ? x->of->core : x->core,
                               graph.number(isSum ? x->number : 0)),
         {}};
  y.isPositive = true;
  return Ref(std::make_shared<Lazy>(y));
}

FailureOr<Ref> Importer::root(Operation *op) {
  FailureOr<Ref> x = operand(op, 0);
  if (failed(x))
    return failure();
  bool isInverse = op->getName().getStringRef() == "stablehlo.rsqrt";
  if (!isInverse && (*x)->isKnown())
    return graph.computed({*x}, (*x)->element, [](ArrayRef<double> v) { return std::sqrt(v[0]); });
  return isInverse ? inverseRoot(*x) : rootOf(*x);
}

FailureOr<Ref> Importer::rootOf(const Ref &x) {
  // x times 1 / sqrt(x), which is NaN at 0.
  if (!x->isPositive)
    return graph.error()
           << "takes a root of what cannot be shown to be above 0; add a small number "
              "to what is not negative: jnp.sqrt(jnp.mean(x * x) + 1e-6)";
  FailureOr<Ref> inverse = inverseRoot(x);
  if (failed(inverse))
    return failure();
  FailureOr<Ref> y = graph.multiply(x, *inverse);
  return failed(y) ? y : formed(*y, Form::root, *inverse);
}

FailureOr<Ref> Importer::sigmoid(const Ref &x) {
  // (1 + tanh(x / 2)) / 2, which no x takes out of range.
  FailureOr<Ref> half = graph.scaled(x, 0.5);
  if (failed(half))
    return failure();
  half = graph.scaled(graph.unary<TanhOp>(*half), 0.5);
  if (failed(half))
    return failure();
  half = graph.add(*half, graph.splat(x->shape, x->element, 0.5));
  return failed(half) ? half : formed(*half, Form::sigmoid, x);
}

FailureOr<Ref> Importer::quotient(Operation *op, const Ref &a, const Ref &b) {
  if (a->isKnown() && b->isKnown())
    return graph.computed({a, b}, a->element, [](ArrayRef<double> v) { return v[0] / v[1]; });
  if (std::optional<double> number = b->splat())
    return graph.scaled(a, 1 / *number);
  // 1 / (1 + exp(-x))
  if (a->splat() == 1.0 && b->form == Form::sum && b->number == 1 && b->dims == b->of->dims)
    if (auto exp = b->of->core.getDefiningOp<ExpOp>())
      if (auto minus = exp.getX().getDefiningOp<ScaleOp>();
          minus && minus.getFactor().convertToDouble() == -1)
        return sigmoid(graph.wrap(b->shape, b->dims, minus.getX()));
  if (b->form == Form::root && b->of->core.getType() == b->core.getType()) {
    Lazy inverse = *b;
    inverse.form = Form::other;
    inverse.core = b->of->core;
    return graph.multiply(a, std::make_shared<Lazy>(inverse));
  }
  if (b->isKnown()) {
    FailureOr<Ref> inverse =
        graph.computed({b}, b->element, [](ArrayRef<double> v) { return 1 / v[0]; });
    return failed(inverse) ? inverse : graph.multiply(a, *inverse);
  }
  if (!b->isPositive)
    return graph.error() << "by what cannot be shown to be above 0; divide by sums of "
                            "exponentials, roots of squares plus a small number, or constants";
  Lazy positive = *b;
  positive.form = Form::other;
  FailureOr<Ref> inverse = inverseRoot(std::make_shared<Lazy>(positive));
  if (failed(inverse))
    return failure();
  inverse = graph.multiply(*inverse, *inverse);
  return failed(inverse) ? inverse : graph.multiply(a, *inverse);
}

FailureOr<Ref> Importer::divide(Operation *op) {
  Ref a = raw(op, 0), b = raw(op, 1);
  if (std::optional<double> number = b->splat(); number && a->form == Form::tokenLoss)
    return formed(a, Form::tokenLoss, a->of, {}, a->number / *number);
  if (!a->isFloat())
    return graph.computed({a, b}, a->element,
                          [](ArrayRef<double> v) { return std::trunc(v[0] / v[1]); });
  if (a->form == Form::expShifted && b->form == Form::sumExp && a->along == b->along &&
      isRowOf(*b, *a->of, a->along)) {
    Lazy top = *a, bottom = *b;
    top.form = bottom.form = Form::other;
    FailureOr<Ref> made = quotient(op, std::make_shared<Lazy>(top), std::make_shared<Lazy>(bottom));
    return failed(made) ? made : formed(*made, Form::softmax, a->of, a->along);
  }
  FailureOr<Ref> x = usable(a), y = usable(b);
  if (failed(x) || failed(y))
    return failure();
  FailureOr<Ref> made = quotient(op, *x, *y);
  if (std::optional<double> number = b->splat(); number && succeeded(made))
    return rescaled(*made, a, 1 / *number);
  return made;
}

FailureOr<Ref> Importer::power(Operation *op) {
  FailureOr<Ref> base = operand(op, 0), exponent = operand(op, 1);
  if (failed(base) || failed(exponent))
    return failure();
  if ((*base)->isKnown() && (*exponent)->isKnown())
    return graph.computed({*base, *exponent}, elementOf(op),
                          [](ArrayRef<double> v) { return std::pow(v[0], v[1]); });
  std::optional<double> number = (*exponent)->splat();
  if (number == -0.5)
    return inverseRoot(*base);
  if (number == 0.5)
    return rootOf(*base);
  if (!number || *number != std::floor(*number) || *number < 1 || *number > 8)
    return graph.error() << "is imported with an exponent of -0.5, 0.5 or 1 to 8; write "
                            "others as products and quotients";
  FailureOr<Ref> product = *base;
  for (int i = 1; i < int(*number) && succeeded(product); ++i)
    product = graph.multiply(*product, *base);
  return product;
}

//===--- functions ----------------------------------------------------------===//

FailureOr<Ref> Importer::exponential(Operation *op) {
  Ref a = raw(op, 0);
  bool isShifted = a->form == Form::shifted;
  FailureOr<Ref> x = isShifted ? FailureOr<Ref>(a) : usable(a);
  if (failed(x))
    return failure();
  if ((*x)->isKnown())
    return graph.computed({*x}, (*x)->element, [](ArrayRef<double> v) { return std::exp(v[0]); });
  Lazy y = *graph.unary<ExpOp>(*x);
  y.isPositive = true;
  Ref made = std::make_shared<Lazy>(y);
  return isShifted ? formed(made, Form::expShifted, a->of, a->along) : made;
}

FailureOr<Ref> Importer::logarithm(Operation *op) {
  Ref a = raw(op, 0);
  bool isSum = a->form == Form::sumExp;
  FailureOr<Ref> x = isSum ? FailureOr<Ref>(a) : usable(a);
  if (failed(x))
    return failure();
  if ((*x)->isKnown())
    return graph.computed({*x}, (*x)->element, [](ArrayRef<double> v) { return std::log(v[0]); });
  Ref made = graph.unary<LogOp>(*x);
  return isSum ? formed(made, Form::lessMaximum, a->of, a->along) : made;
}

FailureOr<Ref> Importer::absolute(Operation *op) {
  Ref a = raw(op, 0);
  if (a->isPositive)
    return a;
  if (a->isKnown())
    return graph.computed({a}, a->element, [](ArrayRef<double> v) { return std::abs(v[0]); });
  FailureOr<Ref> x = usable(a);
  if (failed(x))
    return failure();
  FailureOr<Ref> minus = graph.scaled(*x, -1);
  if (failed(minus))
    return failure();
  return graph.add(graph.unary<ReluOp>(*x), graph.unary<ReluOp>(*minus));
}

FailureOr<Ref> Importer::errorFunction(Operation *op) {
  FailureOr<Ref> x = operand(op, 0);
  if (failed(x))
    return failure();
  bool isComplement = op->getName().getStringRef() == "chlo.erfc";
  if ((*x)->isKnown())
    return graph.computed({*x}, (*x)->element, [isComplement](ArrayRef<double> v) {
      return isComplement ? std::erfc(v[0]) : std::erf(v[0]);
    });
  auto [base, factor] = multipleOf(**x);
  // The text has numbers of f32.
  if (std::abs(factor - (isComplement ? -M_SQRT1_2 : M_SQRT1_2)) > 1e-6)
    return graph.error()
           << "is imported in the Gaussian error linear unit only, x / 2 (1 + erf(x / sqrt 2)), as "
              "jax.nn.gelu has it";
  Lazy y{(*x)->shape, (*x)->dims, (*x)->element, {}, {}};
  return formed(std::make_shared<Lazy>(y), isComplement ? Form::normal : Form::errorFunction,
                graph.wrap(y.shape, y.dims, base));
}

FailureOr<Ref> Importer::tanh(Operation *op) {
  FailureOr<Ref> x = operand(op, 0);
  if (failed(x) || !(*x)->isKnown())
    return failed(x) ? x : graph.unary<TanhOp>(*x);
  return graph.computed({*x}, (*x)->element, [](ArrayRef<double> v) { return std::tanh(v[0]); });
}

FailureOr<Ref> Importer::logistic(Operation *op) {
  FailureOr<Ref> x = operand(op, 0);
  if (failed(x) || !(*x)->isKnown())
    return failed(x) ? x : sigmoid(*x);
  return graph.computed({*x}, (*x)->element,
                        [](ArrayRef<double> v) { return 1 / (1 + std::exp(-v[0])); });
}

FailureOr<Ref> Importer::cosine(Operation *op) {
  FailureOr<Ref> x = operand(op, 0);
  if (failed(x))
    return failure();
  if (!(*x)->isKnown())
    return graph.error() << "is imported of constants only: of positions times frequencies";
  bool isSine = op->getName().getStringRef() == "stablehlo.sine";
  FailureOr<Ref> known = graph.computed({*x}, (*x)->element, [&](ArrayRef<double> v) {
    return isSine ? std::sin(v[0]) : std::cos(v[0]);
  });
  if (failed(known))
    return failure();
  Lazy y = **known;
  y.angles = (*x)->data;
  y.isSine = isSine;
  return Ref(std::make_shared<Lazy>(y));
}

FailureOr<Ref> Importer::convert(Operation *op) {
  Ref a = raw(op, 0);
  Type to = elementOf(op);
  if (a->element == to)
    return a;
  if (a->isKnown() || (!a->isFloat() && isa<IntegerType>(to) && a->core)) {
    if (!a->isKnown() && !to.isInteger(32))
      return unknown(op);
    Lazy y = *a;
    y.element = to;
    // Numbers have the text's digits: what it rounds is rounded here.
    if (auto type = dyn_cast<FloatType>(to); type && y.data)
      return graph.computed({a}, to, [&](ArrayRef<double> v) {
        APFloat rounded(v[0]);
        bool isLossy;
        rounded.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &isLossy);
        return rounded.convertToDouble();
      });
    if (isa<IntegerType>(to) && y.data)
      return graph.computed({a}, to, [&](ArrayRef<double> v) {
        return to.isInteger(1) ? v[0] != 0 : std::trunc(v[0]);
      });
    return Ref(std::make_shared<Lazy>(y));
  }
  if (!a->isFloat() || !isa<FloatType>(to))
    return unknown(op);
  if (to.getIntOrFloatBitWidth() > 32)
    return graph.error() << "to " << to << "; the widest type is f32";
  FailureOr<Ref> x = usable(a);
  if (failed(x))
    return failure();
  Lazy y = **x;
  y.form = Form::other;
  y.element = to;
  y.core = CastOp::create(graph.builder, graph.location, RankedTensorType::get(y.coreShape(), to),
                          y.core);
  return Ref(std::make_shared<Lazy>(y));
}

//===--- choices ------------------------------------------------------------===//

FailureOr<Ref> Importer::clamped(const Ref &x, double least, double most) {
  return graph.unary<ClampOp>(x, graph.number(least), graph.number(most));
}

FailureOr<Ref> Importer::maximum(Operation *op) {
  Ref a = raw(op, 0), b = raw(op, 1);
  if (a->isKnown() && b->isKnown())
    return graph.computed({a, b}, a->element,
                          [](ArrayRef<double> v) { return larger(v[0], v[1]); });
  if (a->isKnown())
    std::swap(a, b);
  std::optional<double> least = b->splat();
  if (least == -infinity())
    return a;
  FailureOr<Ref> x = usable(a);
  if (failed(x))
    return failure();
  if (!least)
    return graph.error() << "of two values that depend on parameters is not imported; of "
                            "one and a number it is";
  if (*least == 0) {
    Lazy y = *graph.unary<ReluOp>(*x);
    y.isNotNegative = true;
    return Ref(std::make_shared<Lazy>(y));
  }
  return clamped(*x, *least, infinity());
}

FailureOr<Ref> Importer::minimum(Operation *op) {
  Ref a = raw(op, 0), b = raw(op, 1);
  if (a->isKnown() && b->isKnown())
    return graph.computed({a, b}, a->element,
                          [](ArrayRef<double> v) { return smaller(v[0], v[1]); });
  if (a->isKnown())
    std::swap(a, b);
  FailureOr<Ref> x = usable(a);
  if (failed(x))
    return failure();
  std::optional<double> most = b->splat();
  if (!most)
    return graph.error() << "of two values that depend on parameters is not imported; of "
                            "one and a number it is";
  return clamped(*x, -infinity(), *most);
}

static StringRef stringOf(Operation *op, StringRef name) {
  auto text = op->getAttrOfType<StringAttr>(name);
  return text ? text.getValue() : "";
}

FailureOr<Ref> Importer::compare(Operation *op) {
  Ref a = raw(op, 0), b = raw(op, 1);
  StringRef direction = stringOf(op, "comparison_direction");
  auto holds = [direction](double x, double y) {
    return direction == "LT"   ? x < y
           : direction == "LE" ? x <= y
           : direction == "GT" ? x > y
           : direction == "GE" ? x >= y
           : direction == "EQ" ? x == y
                               : x != y;
  };
  if (a->isKnown() && b->isKnown())
    return graph.computed({a, b}, elementOf(op),
                          [&](ArrayRef<double> v) { return double(holds(v[0], v[1])); });
  // Tokens are from 0 to the vocabulary's last: JAX checks that, and wraps what is below 0.
  std::optional<double> number = b->splat();
  if (a->isFloat() || !a->core || !number)
    return unknown(op);
  if (*number <= 0 && (direction == "LT" || direction == "GE"))
    return graph.splat(resultShape(op), elementOf(op), direction == "GE");
  if (direction != "LE" && direction != "LT" && direction != "GT" && direction != "GE")
    return unknown(op);
  bool isBelow = direction == "LE" || direction == "LT",
       isStrict = direction == "LT" || direction == "GE";
  bounds.push_back({int64_t(*number) + (isStrict ? 0 : 1), op});
  return graph.splat(resultShape(op), elementOf(op), isBelow);
}

FailureOr<Ref> Importer::combine(Operation *op) {
  Ref a = raw(op, 0), b = raw(op, 1);
  bool isAnd = op->getName().getStringRef() == "stablehlo.and";
  if (!a->element.isInteger(1))
    return graph.computed({a, b}, a->element, [&](ArrayRef<double> v) {
      return double(isAnd ? int64_t(v[0]) & int64_t(v[1]) : int64_t(v[0]) | int64_t(v[1]));
    });
  return graph.computed({a, b}, a->element, [&](ArrayRef<double> v) {
    return double(isAnd ? v[0] != 0 && v[1] != 0 : v[0] != 0 || v[1] != 0);
  });
}

FailureOr<Ref> Importer::invert(Operation *op) {
  Ref a = raw(op, 0);
  if (!a->element.isInteger(1))
    return unknown(op);
  return graph.computed({a}, a->element, [](ArrayRef<double> v) { return double(v[0] == 0); });
}

FailureOr<Ref> Importer::isFinite(Operation *op) {
  Ref a = raw(op, 0);
  if (a->isKnown())
    return graph.computed({a}, elementOf(op),
                          [](ArrayRef<double> v) { return double(std::isfinite(v[0])); });
  // logsumexp asks so for rows of nothing but -inf, of which there are none here.
  if (a->form == Form::maximum)
    return graph.splat(resultShape(op), elementOf(op), 1);
  return graph.error() << "is imported in jax.nn.logsumexp only; leave it out";
}

FailureOr<Ref> Importer::select(Operation *op) {
  Ref predicate = raw(op, 0);
  if (std::optional<double> chosen = predicate->splat())
    return raw(op, *chosen != 0 ? 1 : 2);
  FailureOr<Ref> condition = usable(predicate), a = operand(op, 1), b = operand(op, 2);
  if (failed(condition) || failed(a) || failed(b))
    return failure();
  if (!predicate->isKnown())
    return graph.error() << "by what parameters or tokens decide is not imported; masks "
                            "are constants";
  Lazy mask = **condition;
  mask.shape = (*a)->shape;
  Ref asked = std::make_shared<Lazy>(mask);
  if ((*a)->isKnown() && (*b)->isKnown())
    return graph.computed({*a, asked, *b}, (*a)->element,
                          [](ArrayRef<double> v) { return v[1] != 0 ? v[0] : v[2]; });
  if (!(*a)->isFloat())
    return unknown(op);
  // a mask + b (1 - mask). Of numbers the part is computed here, where infinity is a large number:
  // a product with 0 is 0.
  auto part = [&](const Ref &value, bool isTrue) -> FailureOr<Ref> {
    if (value->isKnown())
      return graph.computed({value, asked}, value->element, [&](ArrayRef<double> v) {
        return (v[1] != 0) == isTrue ? std::clamp(v[0], -1e30, 1e30) : 0;
      });
    FailureOr<Ref> kept = graph.computed(
        {asked}, value->element, [&](ArrayRef<double> v) { return double((v[0] != 0) == isTrue); });
    return failed(kept) ? kept : graph.multiply(value, *kept);
  };
  FailureOr<Ref> first = part(*a, true), second = part(*b, false);
  if (failed(first) || failed(second))
    return failure();
  FailureOr<Ref> made = graph.add(*first, *second);
  // Scores that are so low have no weight.
  for (bool isTrue : {true, false}) {
    const Ref &scores = isTrue ? *a : *b, &low = isTrue ? *b : *a;
    if (failed(made) || scores->form != Form::product || low->splat().value_or(0) > -1e9)
      continue;
    FailureOr<Ref> visible = graph.computed({asked}, scores->element, [isTrue](ArrayRef<double> v) {
      return double((v[0] != 0) == isTrue);
    });
    if (failed(visible))
      return failure();
    Lazy y = **made;
    y.form = Form::masked;
    y.of = scores;
    y.mask = *visible;
    return Ref(std::make_shared<Lazy>(y));
  }
  return made;
}
