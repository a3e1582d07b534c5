//===- Builder.cpp - ops of StableHLO without its dialect --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/StableHLO/Builder.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace meshwright::codegen::stablehlo;

Operation *HLOBuilder::create(StringRef name, TypeRange results, ValueRange operands,
                           ArrayRef<NamedAttribute> attributes, unsigned regions) {
  std::string full = name.contains('.') ? name.str() : ("stablehlo." + name).str();
  OperationState state(loc, full, operands, results, attributes);
  for (unsigned i = 0; i < regions; ++i)
    state.addRegion();
  return b.create(state);
}

NamedAttribute HLOBuilder::attribute(StringRef name, const Twine &text) {
  return b.getNamedAttr(name, OpaqueAttr::get(b.getStringAttr("stablehlo"), text.str(),
                                              NoneType::get(b.getContext())));
}

Value HLOBuilder::constant(DenseElementsAttr value) {
  return op("constant", value.getType(), {}, b.getNamedAttr("value", value));
}

Value HLOBuilder::splat(RankedTensorType type, double value) {
  Type element = type.getElementType();
  Attribute scalar = isa<FloatType>(element) ? Attribute(b.getFloatAttr(element, value))
                                             : Attribute(b.getIntegerAttr(element, int64_t(value)));
  return constant(DenseElementsAttr::get(type, scalar));
}

Value HLOBuilder::convert(Value x, Type element) {
  if (typeOf(x).getElementType() == element)
    return x;
  return op("convert", RankedTensorType::get(typeOf(x).getShape(), element), x);
}

Value HLOBuilder::bitcast(Value x, Type element) {
  return op("bitcast_convert", RankedTensorType::get(typeOf(x).getShape(), element), x);
}

Value HLOBuilder::reshape(Value x, Shape shape) {
  return typeOf(x).getShape() == shape ? x : op("reshape", withShape(x, shape), x);
}

Value HLOBuilder::transpose(Value x, Shape permutation) {
  if (llvm::equal(permutation, llvm::seq<int64_t>(0, permutation.size())))
    return x;
  SmallVector<int64_t> shape;
  for (int64_t d : permutation)
    shape.push_back(typeOf(x).getDimSize(d));
  return op("transpose", withShape(x, shape), x, numbers("permutation", permutation));
}

Value HLOBuilder::broadcast(Value x, Shape shape, Shape dims) {
  return op("broadcast_in_dim", withShape(x, shape), x, numbers("broadcast_dimensions", dims));
}

Value HLOBuilder::iota(Shape shape, int64_t dim) {
  return op("iota", RankedTensorType::get(shape, b.getI32Type()), {}, number("iota_dimension", dim));
}

Value HLOBuilder::compare(Value x, Value y, StringRef direction, StringRef type) {
  return op("compare", RankedTensorType::get(typeOf(x).getShape(), b.getI1Type()), {x, y},
            {attribute("comparison_direction", "comparison_direction " + direction),
             attribute("compare_type", "comparison_type " + type)});
}

Value HLOBuilder::slice(Value x, Shape begin, Shape end) {
  SmallVector<int64_t> shape, strides(begin.size(), 1);
  for (auto [from, to] : llvm::zip_equal(begin, end))
    shape.push_back(to - from);
  return op("slice", withShape(x, shape), x,
            {numbers("start_indices", begin), numbers("limit_indices", end),
             numbers("strides", strides)});
}

Value HLOBuilder::dynamicSlice(Value x, ValueRange begin, Shape sizes) {
  SmallVector<Value> operands{x};
  llvm::append_range(operands, begin);
  return op("dynamic_slice", withShape(x, sizes), operands, numbers("slice_sizes", sizes));
}

Value HLOBuilder::concatenate(ValueRange parts, int64_t dim) {
  SmallVector<int64_t> shape(typeOf(parts[0]).getShape());
  shape[dim] = 0;
  for (Value part : parts)
    shape[dim] += typeOf(part).getDimSize(dim);
  return op("concatenate", withShape(parts[0], shape), parts, number("dimension", dim));
}

void HLOBuilder::combineWith(Region &region, StringRef name, Type element) {
  OpBuilder::InsertionGuard guard(b);
  Type scalar = RankedTensorType::get({}, element);
  Block *block = b.createBlock(&region, {}, {scalar, scalar}, {loc, loc});
  Value combined = op(name, scalar, block->getArguments());
  create("return", {}, combined);
}

Value HLOBuilder::reduce(Value x, Shape dims, bool max) {
  if (dims.empty())
    return x;
  Type element = typeOf(x).getElementType();
  SmallVector<int64_t> shape;
  for (auto [d, size] : llvm::enumerate(typeOf(x).getShape()))
    if (!llvm::is_contained(dims, int64_t(d)))
      shape.push_back(size);
  auto scalar = RankedTensorType::get({}, element);
  double least = isa<FloatType>(element) ? -INFINITY : -0x1p31;
  Value init = splat(scalar, max ? least : 0);
  Operation *made =
      create("reduce", withShape(x, shape), {x, init}, numbers("dimensions", dims), /*regions=*/1);
  combineWith(made->getRegion(0), max ? "maximum" : "add", element);
  return made->getResult(0);
}

SmallVector<Value> HLOBuilder::sort(ValueRange xs, int64_t dim) {
  Operation *made = create("sort", xs.getTypes(), xs,
                           {number("dimension", dim),
                            b.getNamedAttr("is_stable", b.getBoolAttr(true))},
                           /*regions=*/1);
  OpBuilder::InsertionGuard guard(b);
  SmallVector<Type> scalars; // two of each
  for (Value x : xs)
    scalars.append(2, RankedTensorType::get({}, typeOf(x).getElementType()));
  Block *block = b.createBlock(&made->getRegion(0), {}, scalars,
                               SmallVector<Location>(scalars.size(), loc));
  bool isFloat = isa<FloatType>(typeOf(xs[0]).getElementType());
  create("return", {}, compare(block->getArgument(0), block->getArgument(1), "LT",
                               isFloat ? "FLOAT" : "SIGNED"));
  return made->getResults();
}

Value HLOBuilder::take(Value x, Value ids) {
  RankedTensorType at = typeOf(ids);
  std::string text = "gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = " +
                     std::to_string(at.getRank()) + ">";
  return op("gather", withShape(x, at.getShape()), {x, ids},
            {attribute("dimension_numbers", text), numbers("slice_sizes", {1}),
             b.getNamedAttr("indices_are_sorted", b.getBoolAttr(false))});
}

SmallVector<Value> HLOBuilder::loop(int64_t count, ValueRange start, Turn body,
                                    std::optional<unsigned> times) {
  SmallVector<Value> values{splat(RankedTensorType::get({}, b.getI32Type()), 0)};
  llvm::append_range(values, start);
  SmallVector<Type> types(ValueRange(values).getTypes());
  Operation *made = create("while", types, values, {}, /*regions=*/2);
  auto enter = [&](unsigned region) {
    OpBuilder inner(b.getContext());
    inner.createBlock(&made->getRegion(region), {}, types, SmallVector<Location>(types.size(), loc));
    return HLOBuilder(inner, loc);
  };
  HLOBuilder condition = enter(0);
  Value i = made->getRegion(0).getArgument(0);
  Value end = times ? Value(made->getRegion(0).getArgument(1 + *times))
                    : condition.splat(typeOf(i), double(count));
  condition.create("return", {}, condition.compare(i, end, "LT", "SIGNED"));
  HLOBuilder inside = enter(1);
  auto in = made->getRegion(1).getArguments();
  SmallVector<Value> next{inside.add(in[0], inside.splat(typeOf(in[0]), 1))};
  llvm::append_range(next, body(in[0], in.drop_front(), inside));
  inside.create("return", {}, next);
  return llvm::to_vector_of<Value>(made->getResults().drop_front());
}

static std::string list(Shape values) {
  return "[" + llvm::join(llvm::map_range(values, [](int64_t v) { return std::to_string(v); }), ", ") +
         "]";
}

Value HLOBuilder::dot(Value x, Value y, Shape batchX, Shape batchY, Shape contractX, Shape contractY,
                   Type element) {
  SmallVector<int64_t> shape;
  auto sizes = [&](Value value, auto keep) {
    for (auto [d, size] : llvm::enumerate(typeOf(value).getShape()))
      if (keep(int64_t(d)))
        shape.push_back(size);
  };
  for (int64_t d : batchX)
    shape.push_back(typeOf(x).getDimSize(d));
  sizes(x, [&](int64_t d) {
    return !llvm::is_contained(batchX, d) && !llvm::is_contained(contractX, d);
  });
  sizes(y, [&](int64_t d) {
    return !llvm::is_contained(batchY, d) && !llvm::is_contained(contractY, d);
  });
  std::string dims = "dot<lhs_batching_dimensions = " + list(batchX) +
                     ", rhs_batching_dimensions = " + list(batchY) +
                     ", lhs_contracting_dimensions = " + list(contractX) +
                     ", rhs_contracting_dimensions = " + list(contractY) + ">";
  // The highest precision: f32 stays f32 on devices that would take fewer bits.
  Attribute highest = OpaqueAttr::get(b.getStringAttr("stablehlo"), "precision HIGHEST",
                                      NoneType::get(b.getContext()));
  return op("dot_general", RankedTensorType::get(shape, element), {x, y},
            {attribute("dot_dimension_numbers", dims),
             b.getNamedAttr("precision_config", b.getArrayAttr({highest, highest}))});
}
