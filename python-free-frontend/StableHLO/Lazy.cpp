//===- Lazy.cpp - values of an imported function -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Lazy.h"

#include "../Graph.h"

#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::hlo;
using namespace meshwright::train;

/// Known numbers are computed here, element by element.
static constexpr int64_t mostKnown = 1 << 26;

std::optional<double> Lazy::splat() const {
  if (!data || data->empty() || !llvm::all_equal(*data))
    return std::nullopt;
  return data->front();
}

bool hlo::isSame(const Lazy &a, const Lazy &b) {
  return a.core && a.core == b.core && a.dims == b.dims && a.shape == b.shape;
}

static int64_t productOf(ArrayRef<int64_t> sizes) {
  int64_t product = 1;
  for (int64_t size : sizes)
    product *= size;
  return product;
}

static Dims iota(int64_t n) { return llvm::to_vector<6>(llvm::seq<int64_t>(0, n)); }

int64_t hlo::indexOf(ArrayRef<int64_t> list, int64_t value) {
  auto found = llvm::find(list, value);
  return found == list.end() ? -1 : found - list.begin();
}

Dims hlo::dimsOf(Attribute list) {
  auto found = dyn_cast_or_null<DenseI64ArrayAttr>(list);
  return found ? Dims(found.asArrayRef()) : Dims();
}

bool hlo::areEqualButForOnes(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  auto isLong = [](int64_t size) { return size != 1; };
  return llvm::equal(llvm::make_filter_range(a, isLong), llvm::make_filter_range(b, isLong));
}

//===--- making values ------------------------------------------------------===//

Ref Graph::known(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims, Type element,
                 std::vector<double> data) const {
  Lazy value{
      Dims(shape), Dims(dims), element, {}, std::make_shared<std::vector<double>>(std::move(data))};
  return std::make_shared<Lazy>(value);
}

Ref Graph::splat(ArrayRef<int64_t> shape, Type element, double value) const {
  return known(shape, {}, element, {value});
}

Ref Graph::wrap(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims, Value core) const {
  return std::make_shared<Lazy>(
      Lazy{Dims(shape), Dims(dims), getElementTypeOrSelf(core.getType()), core, {}});
}

//===--- cores --------------------------------------------------------------===//

Dims Graph::unionOf(ArrayRef<Ref> values) {
  Dims all;
  const Lazy *widest = nullptr;
  for (const Ref &value : values) {
    if (!widest || value->dims.size() > widest->dims.size())
      widest = value.get();
    for (int64_t dim : value->dims)
      if (!llvm::is_contained(all, dim))
        all.push_back(dim);
  }
  if (widest->dims.size() == all.size())
    return widest->dims;
  llvm::sort(all);
  return all;
}

std::vector<double> Graph::numbers(const Lazy &value, ArrayRef<int64_t> dims) {
  Dims core = value.coreShape(), strides(dims.size(), 0);
  int64_t stride = 1;
  for (int64_t i = int64_t(core.size()) - 1; i >= 0; --i) {
    if (int64_t at = indexOf(dims, value.dims[i]); at >= 0)
      strides[at] = stride;
    stride *= core[i];
  }
  Dims index(dims.size(), 0);
  int64_t total = 1;
  for (int64_t dim : dims)
    total *= value.shape[dim];
  std::vector<double> result(total);
  for (double &element : result) {
    int64_t offset = 0;
    for (auto [i, s] : llvm::zip(index, strides))
      offset += i * s;
    element = (*value.data)[offset];
    for (int64_t d = int64_t(dims.size()) - 1; d >= 0 && ++index[d] == value.shape[dims[d]]; --d)
      index[d] = 0;
  }
  return result;
}

LogicalResult Graph::checkKnown(int64_t elements) const {
  if (elements <= mostKnown)
    return success();
  return error() << "makes " << elements << " different numbers of constants, more than the "
                 << mostKnown << " that are computed here; use a shorter sequence";
}

FailureOr<Ref> Graph::computed(ArrayRef<Ref> operands, Type element,
                               const std::function<double(ArrayRef<double>)> &function) const {
  Dims dims = unionOf(operands);
  int64_t total = 1;
  for (int64_t dim : dims)
    total *= operands.front()->shape[dim];
  if (failed(checkKnown(total)))
    return failure();
  std::vector<std::vector<double>> inputs;
  for (const Ref &operand : operands)
    inputs.push_back(numbers(*operand, dims));
  std::vector<double> result(inputs.front().size());
  SmallVector<double> arguments(operands.size());
  for (auto [i, value] : llvm::enumerate(result)) {
    for (auto [argument, input] : llvm::zip(arguments, inputs))
      argument = input[i];
    value = function(arguments);
  }
  return known(operands.front()->shape, dims, element, std::move(result));
}

Value Graph::fill(double value, ArrayRef<int64_t> shape, Type element) {
  return FillOp::create(builder, location, RankedTensorType::get(shape, element), number(value));
}

Value Graph::permuted(Value core, ArrayRef<int64_t> order) {
  if (llvm::equal(order, iota(order.size())))
    return core;
  auto type = cast<RankedTensorType>(core.getType());
  auto reshaped = [&](Value x, ArrayRef<int64_t> to) -> Value {
    return ReshapeOp::create(builder, location, RankedTensorType::get(to, type.getElementType()),
                             x);
  };
  // One after the other a run of dimensions is brought in front of those before it. What is behind
  // stays.
  Dims have = iota(order.size());
  while (!llvm::equal(have, order)) {
    int64_t end = have.size();
    while (have[end - 1] == order[end - 1])
      --end;
    // The run ends with what is to be the last of all but those in front.
    int64_t begin = indexOf(have, order[end - 1]) + 1;
    auto sizeOf = [&](int64_t from, int64_t to) {
      int64_t product = 1;
      for (int64_t i = from; i < to; ++i)
        product *= type.getDimSize(have[i]);
      return product;
    };
    core = reshaped(core, {sizeOf(0, begin), sizeOf(begin, end), sizeOf(end, have.size())});
    core = TransposeBlocksOp::create(builder, location, core);
    std::rotate(have.begin(), have.begin() + begin, have.begin() + end);
    Dims now =
        llvm::to_vector<6>(llvm::map_range(have, [&](int64_t d) { return type.getDimSize(d); }));
    core = reshaped(core, now);
  }
  return core;
}

/// A square matrix of two numbers: `below` on the diagonal and below it, `above` everywhere else.
/// With `strict` the diagonal has `above`. With `isUpper` this describes the transposed matrix.
namespace {
struct Triangle {
  double below, above;
  bool strict, isUpper;
};
} // namespace

static std::optional<Triangle> triangleOf(ArrayRef<double> data, int64_t n) {
  for (bool isUpper : {false, true})
    for (bool strict : {false, true}) {
      auto at = [&](int64_t row, int64_t column) {
        return isUpper ? data[column * n + row] : data[row * n + column];
      };
      Triangle found{at(n - 1, 0), at(0, n - 1), strict, isUpper};
      bool fits = true;
      for (int64_t row = 0; row < n && fits; ++row)
        for (int64_t column = 0; column < n && fits; ++column)
          fits = at(row, column) == (column < row + (strict ? 0 : 1) ? found.below : found.above);
      if (fits)
        return found;
    }
  return std::nullopt;
}

/// The frequencies of angles [positions, frequencies], position times frequency.
static std::optional<SmallVector<double>> frequenciesOf(ArrayRef<double> angles, int64_t positions,
                                                        int64_t count) {
  SmallVector<double> found(count, 0);
  if (positions > 1)
    found.assign(angles.begin() + count, angles.begin() + 2 * count);
  for (int64_t s = 0; s < positions; ++s)
    for (int64_t f = 0; f < count; ++f)
      if (double exact = double(s) * found[f];
          std::abs(angles[s * count + f] - exact) > 1e-6 * std::max(1.0, std::abs(exact)))
        return std::nullopt;
  return found;
}

FailureOr<Value> Graph::materialize(const Lazy &value, ArrayRef<int64_t> dims) {
  Dims shape = llvm::to_vector<6>(llvm::map_range(dims, [&](int64_t d) { return value.shape[d]; }));
  std::vector<double> data = numbers(value, dims);
  Numbers key({shape.begin(), shape.end()}, data);
  auto found = made.find(key);
  if (found != made.end() && getElementTypeOrSelf(found->second) == value.element)
    return found->second;
  FailureOr<Value> ops = opsOf(value, dims, shape, data);
  if (succeeded(ops))
    made[key] = *ops;
  return ops;
}

FailureOr<Value> Graph::opsOf(const Lazy &value, ArrayRef<int64_t> dims, ArrayRef<int64_t> shape,
                              ArrayRef<double> data) {
  // Masks are beyond the range of f16, angles beyond the digits of bf16.
  frontend::FullPrecision full(builder);
  if (!value.isFloat()) {
    error() << "takes integers that the function computes, which is supported only where they are "
               "indices of consecutive rows";
    return failure();
  }
  if (llvm::all_equal(data))
    return fill(data.front(), shape, value.element);
  auto typed = [&](ArrayRef<int64_t> shape) { return RankedTensorType::get(shape, value.element); };
  if (dims.size() == 2 && value.angles) {
    Lazy angles = value;
    angles.data = value.angles;
    Dims wanted(dims);
    for (bool isMoved : {false, true}) {
      int64_t positions = value.shape[wanted[0]], count = value.shape[wanted[1]];
      std::vector<double> of = numbers(angles, wanted);
      if (auto found = frequenciesOf(of, positions, count)) {
        RopeTableOp &table = tables[{{positions, count}, of}];
        Type type = typed({positions, count});
        if (!table || table.getCos().getType() != type)
          table = RopeTableOp::create(builder, location, type, type, Value(), Value(),
                                      builder.getDenseF64ArrayAttr(*found), number(1));
        Value chosen = value.isSine ? table.getSin() : table.getCos();
        return isMoved ? permuted(chosen, {1, 0}) : chosen;
      }
      std::swap(wanted[0], wanted[1]);
    }
  }
  if (dims.size() == 2 && shape[0] == shape[1]) {
    if (auto found = triangleOf(data, shape[0])) {
      // Both numbers are multiplied by ones and zeros, and 0 times infinity is no number.
      double below = std::clamp(found->below, -1e30, 1e30),
             above = std::clamp(found->above, -1e30, 1e30);
      auto times = [&](Value x, double factor) -> Value {
        return factor == 1 ? x : ScaleOp::create(builder, location, x, number(factor)).getResult();
      };
      auto plus = [&](Value x, double term) -> Value {
        return AddOp::create(builder, location, x, fill(term, {}, value.element));
      };
      Value zeros = fill(0, {shape[0]}, value.element);
      Value ones = DecayOp::create(builder, location, zeros, zeros, found->strict);
      // With two numbers other than 0, a sum of their difference and one of them would round the
      // smaller one.
      Value made = above == 0   ? times(ones, below)
                   : below == 0 ? plus(times(ones, -above), above)
                                : AddOp::create(builder, location, times(ones, below),
                                                times(plus(times(ones, -1), 1), above))
                                      .getResult();
      if (!found->isUpper)
        return made;
      made = TransposeBlocksOp::create(
          builder, location,
          ReshapeOp::create(builder, location, typed({shape[0], shape[1], 1}), made));
      return Value(ReshapeOp::create(builder, location, typed(shape), made));
    }
  }
  error() << "takes numbers that are neither one value, nor a lower or upper triangle of one, nor "
             "cosines "
             "or sines of positions times frequencies; compute them so, or make them a parameter";
  return failure();
}

FailureOr<Value> Graph::fit(const Ref &value, ArrayRef<int64_t> dims, bool isRhs) {
  Dims own; // in the order of `dims`
  for (int64_t dim : dims)
    if (llvm::is_contained(value->dims, dim))
      own.push_back(dim);
  Value core = value->core;
  if (value->isKnown()) {
    if (std::optional<double> one = value->splat()) {
      Dims shape;
      if (!isRhs)
        for (int64_t dim : dims)
          shape.push_back(value->shape[dim]);
      return fill(*one, shape, value->element);
    }
    FailureOr<Value> ops = materialize(*value, own);
    if (failed(ops))
      return failure();
    core = *ops;
  } else {
    Dims order;
    for (int64_t dim : own)
      order.push_back(indexOf(value->dims, dim));
    core = permuted(core, order);
  }
  if (own.size() == dims.size() || (isRhs && ArrayRef(own) == dims.take_back(own.size())))
    return core;
  Dims shape, missing;
  for (auto [i, dim] : llvm::enumerate(dims)) {
    shape.push_back(value->shape[dim]);
    if (!llvm::is_contained(own, dim))
      missing.push_back(i);
  }
  return Value(BroadcastOp::create(builder, location, RankedTensorType::get(shape, value->element),
                                   core, missing));
}

FailureOr<Value> Graph::whole(const Ref &value) { return fit(value, iota(value->shape.size())); }

//===--- element-wise -------------------------------------------------------===//

FailureOr<Ref> Graph::scaled(const Ref &x, double factor) {
  if (factor == 1)
    return x;
  if (x->isKnown())
    return computed({x}, x->element, [&](ArrayRef<double> v) { return v[0] * factor; });
  Lazy y{x->shape,
         x->dims,
         x->element,
         ScaleOp::create(builder, location, x->core, number(factor)),
         {}};
  y.isPositive = x->isPositive && factor > 0;
  y.isNotNegative = x->isNotNegative && factor >= 0;
  return Ref(std::make_shared<Lazy>(y));
}

FailureOr<Ref> Graph::add(Ref a, Ref b) {
  if (a->isKnown() && b->isKnown())
    return computed({a, b}, a->element, [](ArrayRef<double> v) { return v[0] + v[1]; });
  if (a->isKnown())
    std::swap(a, b);
  Dims dims = unionOf({a, b});
  if (a->dims != dims && b->dims == dims)
    std::swap(a, b);
  std::optional<double> number = b->splat();
  if (number == 0.0)
    return a;
  FailureOr<Value> lhs = fit(a, dims), rhs = fit(b, dims, /*isRhs=*/true);
  if (failed(lhs) || failed(rhs))
    return failure();
  Lazy y{a->shape, dims, a->element, AddOp::create(builder, location, *lhs, *rhs), {}};
  auto isLeast0 = [](const Lazy &x) {
    return x.isPositive || x.isNotNegative || x.splat().value_or(-1) >= 0;
  };
  auto isAbove0 = [](const Lazy &x) { return x.isPositive || x.splat().value_or(-1) > 0; };
  y.isNotNegative = isLeast0(*a) && isLeast0(*b);
  y.isPositive = y.isNotNegative && (isAbove0(*a) || isAbove0(*b));
  if (number) {
    y.form = Form::sum;
    y.of = a;
    y.number = *number;
  }
  return Ref(std::make_shared<Lazy>(y));
}

FailureOr<Ref> Graph::multiply(Ref a, Ref b) {
  if (a->isKnown() && b->isKnown())
    return computed({a, b}, a->element, [](ArrayRef<double> v) { return v[0] * v[1]; });
  if (a->splat())
    std::swap(a, b);
  if (std::optional<double> factor = b->splat())
    return scaled(a, *factor);
  for (auto [x, s] : {std::pair(a, b), std::pair(b, a)})
    if (s->form == Form::sigmoid && isSame(*s->of, *x))
      return unary<SiluOp>(x);
  Dims dims = unionOf({a, b});
  if ((a->dims != dims && b->dims == dims) || a->isKnown())
    std::swap(a, b);
  FailureOr<Value> lhs = fit(a, dims), rhs = fit(b, dims, /*isRhs=*/true);
  if (failed(lhs) || failed(rhs))
    return failure();
  Lazy y{a->shape, dims, a->element, MulOp::create(builder, location, *lhs, *rhs), {}};
  y.isPositive = a->isPositive && b->isPositive;
  y.isNotNegative = isSame(*a, *b) ||
                    ((a->isPositive || a->isNotNegative) && (b->isPositive || b->isNotNegative));
  return Ref(std::make_shared<Lazy>(y));
}

//===--- shapes -------------------------------------------------------------===//

/// x, whose dimension `dim` of one element is no dimension of its core.
Ref Graph::withoutDim(const Lazy &x, int64_t dim) {
  Lazy y = x;
  int64_t at = indexOf(x.dims, dim);
  y.dims.erase(y.dims.begin() + at);
  if (y.core)
    y.core = ReshapeOp::create(builder, location, RankedTensorType::get(y.coreShape(), y.element),
                               y.core);
  return std::make_shared<Lazy>(y);
}

/// What is known of scores holds for them as they are.
static void forgetScores(Lazy &value) {
  if (value.form == Form::product || value.form == Form::masked || value.form == Form::softmax)
    value.form = Form::other;
}

FailureOr<Ref> Graph::broadcast(const Ref &x, ArrayRef<int64_t> to, ArrayRef<int64_t> shape) {
  Ref from = x;
  for (auto [d, target] : llvm::enumerate(to))
    if (from->shape[d] != shape[target] && llvm::is_contained(from->dims, int64_t(d)))
      from = withoutDim(*from, d);
  Lazy y = *from;
  forgetScores(y);
  y.shape = Dims(shape);
  for (int64_t &dim : y.dims)
    dim = to[dim];
  bool isScalar = from->form == Form::tokenLoss || from->form == Form::picked;
  if (isScalar && y.elements() != from->elements()) {
    error() << "repeats the losses of tokens, which is not supported; sum them first";
    return failure();
  }
  return Ref(std::make_shared<Lazy>(y));
}

Ref Graph::transpose(const Ref &x, ArrayRef<int64_t> permutation) {
  Lazy y = *x;
  // A product knows where its dimensions are, and sums and roots are facts of the core. All other
  // forms compare elements with those of x at the same places.
  if (!llvm::is_contained({Form::product, Form::sum, Form::root}, y.form))
    y.form = Form::other;
  for (int64_t &axis : y.axes)
    axis = indexOf(permutation, axis);
  for (auto [d, from] : llvm::enumerate(permutation))
    y.shape[d] = x->shape[from];
  for (int64_t &dim : y.dims)
    dim = indexOf(permutation, dim);
  return std::make_shared<Lazy>(y);
}

FailureOr<Ref> Graph::reshape(const Ref &x, ArrayRef<int64_t> shape) {
  if (x->shape == ArrayRef(shape))
    return x;
  if (x->form == Form::tokenLoss) {
    Lazy y = *x;
    y.shape = Dims(shape);
    return Ref(std::make_shared<Lazy>(y));
  }
  if (areEqualButForOnes(x->shape, shape)) {
    Ref from = x;
    for (int64_t d = 0, e = x->shape.size(); d < e; ++d)
      if (x->shape[d] == 1 && llvm::is_contained(from->dims, d))
        from = withoutDim(*from, d);
    Dims target(x->shape.size(), -1);
    int64_t next = 0;
    for (int64_t d = 0, e = x->shape.size(); d < e; ++d)
      if (x->shape[d] != 1) {
        while (shape[next] == 1)
          ++next;
        target[d] = next++;
      }
    Lazy y = *from;
    forgetScores(y);
    y.shape = Dims(shape);
    for (int64_t &dim : y.dims)
      dim = target[dim];
    return Ref(std::make_shared<Lazy>(y));
  }
  if (std::optional<double> one = x->splat())
    return splat(shape, x->element, *one);
  if (x->isKnown()) {
    if (failed(checkKnown(x->elements())))
      return failure();
    return known(shape, iota(shape.size()), x->element, numbers(*x, iota(x->shape.size())));
  }
  FailureOr<Value> all = whole(x);
  if (failed(all))
    return failure();
  Ref y =
      wrap(shape, iota(shape.size()),
           ReshapeOp::create(builder, location, RankedTensorType::get(shape, x->element), *all));
  Lazy facts = *y;
  facts.isPositive = x->isPositive;
  facts.isNotNegative = x->isNotNegative;
  return Ref(std::make_shared<Lazy>(facts));
}

FailureOr<Ref> Graph::slice(const Ref &x, ArrayRef<int64_t> starts, ArrayRef<int64_t> limits,
                            ArrayRef<int64_t> strides) {
  Lazy y = *x;
  y.form = Form::other;
  y.angles = nullptr;
  for (auto [d, size] : llvm::enumerate(y.shape)) {
    int64_t rows = llvm::divideCeil(limits[d] - starts[d], strides[d]), whole = size;
    size = rows;
    int64_t at = indexOf(y.dims, d);
    if (at < 0 || rows == whole)
      continue;
    Dims core = y.coreShape();
    core[at] = whole;
    if (y.isKnown()) {
      int64_t inner = productOf(ArrayRef(core).drop_front(at + 1)),
              outer = productOf(ArrayRef(core).take_front(at));
      std::vector<double> taken;
      for (int64_t o = 0; o < outer; ++o)
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t i = 0; i < inner; ++i)
            taken.push_back((*y.data)[(o * whole + starts[d] + r * strides[d]) * inner + i]);
      y.data = std::make_shared<std::vector<double>>(std::move(taken));
      continue;
    }
    if (strides[d] == 1) {
      y.core = SliceOp::create(builder, location, y.core, rows, at, starts[d]);
      continue;
    }
    // Every k-th is one column of rows of k.
    int64_t k = strides[d];
    if (whole % k != 0 || starts[d] >= k || rows != whole / k) {
      error() << "takes every " << k << "th of " << whole << " elements from " << starts[d]
              << " on, which is supported where the step divides them and all rows are taken";
      return failure();
    }
    Dims split = core;
    split[at] = rows;
    Dims joined = split;
    split.insert(split.begin() + at + 1, k);
    auto shaped = [&](Value v, ArrayRef<int64_t> shape) -> Value {
      return ReshapeOp::create(builder, location, RankedTensorType::get(shape, y.element), v);
    };
    y.core = shaped(SliceOp::create(builder, location, shaped(y.core, split), 1, at + 1, starts[d]),
                    joined);
  }
  return Ref(std::make_shared<Lazy>(y));
}

FailureOr<Ref> Graph::concatenate(ArrayRef<Ref> parts, int64_t dim, ArrayRef<int64_t> shape) {
  Dims dims = unionOf(parts);
  if (!llvm::is_contained(dims, dim))
    dims.push_back(dim);
  auto isKnown = [](const Ref &part) { return part->isKnown(); };
  if (llvm::all_of(parts, isKnown)) {
    // The dimension is the first, for the numbers to follow each other.
    dims.erase(llvm::find(dims, dim));
    dims.insert(dims.begin(), dim);
    std::vector<double> all;
    for (const Ref &part : parts)
      llvm::append_range(all, numbers(*part, dims));
    return known(shape, dims, parts.front()->element, std::move(all));
  }
  // The sum of tensors that are padded with zeros to disjoint rows.
  int64_t at = indexOf(dims, dim), from = 0;
  Value sum;
  for (const Ref &part : parts) {
    FailureOr<Value> core = fit(part, dims);
    if (failed(core))
      return failure();
    Value padded = PadOp::create(builder, location, *core, shape[dim], at, /*value=*/0, from);
    from += part->shape[dim];
    sum = sum ? AddOp::create(builder, location, sum, padded).getResult() : padded;
  }
  return wrap(shape, dims, sum);
}

FailureOr<Ref> Graph::sum(const Ref &x, ArrayRef<int64_t> over) {
  Lazy y{{}, {}, x->element, x->core, x->data};
  Dims position;
  int64_t repeated = 1;
  for (auto [d, size] : llvm::enumerate(x->shape)) {
    position.push_back(y.shape.size());
    if (!llvm::is_contained(over, int64_t(d)))
      y.shape.push_back(size);
    else if (!llvm::is_contained(x->dims, int64_t(d)))
      repeated *= size;
  }
  Dims reduced, kept;
  for (auto [i, dim] : llvm::enumerate(x->dims))
    if (llvm::is_contained(over, dim))
      reduced.push_back(i);
    else
      kept.push_back(dim);
  for (int64_t dim : kept)
    y.dims.push_back(position[dim]);
  if (x->isKnown()) {
    Dims order = kept;
    int64_t terms = 1;
    for (int64_t i : reduced) {
      order.push_back(x->dims[i]);
      terms *= x->shape[x->dims[i]];
    }
    std::vector<double> all = numbers(*x, order), sums(all.size() / terms, 0);
    for (auto [i, value] : llvm::enumerate(all))
      sums[i / terms] += value * double(repeated);
    return known(y.shape, y.dims, x->element, std::move(sums));
  }
  if (!reduced.empty())
    y.core = ReduceOp::create(builder, location, ReduceKind::Sum, y.core, reduced);
  y.isPositive = x->isPositive;
  y.isNotNegative = x->isNotNegative;
  return scaled(std::make_shared<Lazy>(y), double(repeated));
}

/// Orders the dimensions of two operands as libraries multiply: first those that both and the
/// result have, in one order, then those that are added up on one side of all others. Of each
/// operand what fits so stays.
static void arrange(const SmallVector<std::string> (&names)[2], Dims (&dims)[2]) {
  auto isIn = [&](int side, int64_t dim, char kind) { return names[side][dim].front() == kind; };
  auto isBatch = [&](int side, int64_t dim) {
    return isIn(side, dim, 'b') && llvm::any_of(dims[1 - side], [&](int64_t other) {
             return names[1 - side][other] == names[side][dim];
           });
  };
  // The order of the operand that has them all in front; else what is inside moves before what is
  // in front.
  SmallVector<std::string> batch, sums;
  for (int side : {1, 0}) {
    SmallVector<std::string> front, inside;
    bool isFront = true;
    for (int64_t dim : dims[side]) {
      isFront = isFront && isBatch(side, dim);
      if (isBatch(side, dim))
        (isFront ? front : inside).push_back(names[side][dim]);
    }
    if (side == 1 && !inside.empty())
      continue;
    batch = inside;
    batch.append(front);
    if (side == 1)
      break;
  }
  for (int side : {0, 1}) {
    auto dimOf = [&](StringRef name) {
      return *llvm::find_if(dims[side], [&](int64_t dim) { return names[side][dim] == name; });
    };
    Dims ordered, others, own, added;
    for (const std::string &name : batch)
      ordered.push_back(dimOf(name));
    for (int64_t dim : dims[side])
      if (!isBatch(side, dim)) {
        others.push_back(dim);
        (isIn(side, dim, 'k') ? added : own).push_back(dim);
      }
    if (side == 0)
      for (int64_t dim : added)
        sums.push_back(names[side][dim]);
    Dims same = llvm::to_vector<6>(
        llvm::map_range(sums, [&](const std::string &name) { return dimOf(name); }));
    bool isOneRun =
        same == added && (ArrayRef(others).take_front(added.size()) == ArrayRef(added) ||
                          ArrayRef(others).take_back(added.size()) == ArrayRef(added));
    if (!isOneRun) {
      others = own;
      others.append(same);
    }
    ordered.append(others);
    dims[side] = ordered;
  }
}

FailureOr<Ref> Graph::product(const Ref &a, const Ref &b, DictionaryAttr numbers,
                              RankedTensorType type, bool isRhsFirst) {
  auto list = [&](StringRef name) { return dimsOf(numbers.get(name)); };
  Dims batch[] = {list("lhs_batching_dimensions"), list("rhs_batching_dimensions")};
  Dims sums[] = {list("lhs_contracting_dimensions"), list("rhs_contracting_dimensions")};
  Ref operands[] = {a, b};
  Dims dims[] = {a->dims, b->dims};
  SmallVector<std::string> names[2], result;
  for (size_t i = 0; i < batch[0].size(); ++i)
    result.push_back("b" + std::to_string(i));
  for (int side : {0, 1}) {
    names[side].resize(operands[side]->shape.size());
    for (auto [i, dim] : llvm::enumerate(batch[side]))
      names[side][dim] = "b" + std::to_string(i);
    for (auto [i, dim] : llvm::enumerate(sums[side])) {
      names[side][dim] = "k" + std::to_string(i);
      // Both operands say what is added.
      if (!llvm::is_contained(dims[side], dim))
        dims[side].push_back(dim);
    }
    for (auto [i, name] : llvm::enumerate(names[side]))
      if (name.empty()) {
        name = (side ? "n" : "m") + std::to_string(i);
        result.push_back(name);
      }
  }
  arrange(names, dims);
  Value cores[2];
  SmallVector<std::string> texts;
  for (int side : {0, 1}) {
    FailureOr<Value> core = fit(operands[side], dims[side]);
    if (failed(core))
      return failure();
    cores[side] = *core;
    texts.push_back(
        llvm::join(llvm::map_range(dims[side], [&](int64_t d) { return names[side][d]; }), " "));
  }
  // What is not added up, in the order of the operands. What neither has is repeated.
  Dims kept, shape;
  SmallVector<std::string> written;
  const int first = isRhsFirst ? 1 : 0;
  for (int side : {first, 1 - first})
    for (int64_t dim : dims[side]) {
      StringRef name = names[side][dim];
      auto found = llvm::find(result, name);
      if (found == result.end() || llvm::is_contained(written, name))
        continue;
      kept.push_back(found - result.begin());
      shape.push_back(type.getDimSize(kept.back()));
      written.push_back(name.str());
    }
  std::string rule = texts[first] + ", " + texts[1 - first] + " -> " + llvm::join(written, " ");
  Value made = ContractOp::create(
      builder, location, TypeRange(RankedTensorType::get(shape, type.getElementType())),
      builder.getStringAttr(rule), cores[first], cores[1 - first], Value());
  return wrap(type.getShape(), kept, made);
}
