//===- NarrowReductions.cpp - sums whose terms are sent narrow ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Each sum becomes ops that both targets have kernels and calls for, so what is sent, and the memory that it
// takes, is in the program like everything else.
//
//===----------------------------------------------------------------------===//
#include "NarrowReductions.h"

#include "Dist/Dist.h"
#include "Dist/Wire.h"
#include "Train/Quantize.h"
#include "Train/TensorType.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;
using train::tensor;

namespace {
/// Tensors of n parts, [n, 1, elements] where they are sent and [1, n, elements] where they arrive.
class NarrowReduction {
public:
  NarrowReduction(Operation *op, dist::GroupAttr group, StringRef wire)
      : b(op), loc(op->getLoc()), group(group), isQuantized(wire == "fp8") {
    dist::Mesh mesh = SymbolTable::lookupNearestSymbolFrom<dist::MeshOp>(op, group.getMesh()).getMesh();
    n = mesh.size(group.on(mesh));
  }

  void run(dist::AllReduceOp sum) {
    // Rounded to bf16 at once, or later by a scale that follows from the sum.
    Type element = isQuantized ? Type(b.getF32Type()) : b.getBF16Type();
    SmallVector<Value> terms = llvm::map_to_vector(sum.getXs(), [&](Value x) { return divided(x); });
    SmallVector<Value> whole = gathered(reduced(terms, element));
    for (auto [y, value] : llvm::zip_equal(sum.getYs(), whole)) {
      int64_t elements = tensor(y).getNumElements();
      value = reshape(value, tensor(value).getNumElements());
      if (tensor(value).getNumElements() > elements)
        value = train::SliceOp::create(b, loc, value, elements, /*dim=*/0, /*from=*/0);
      y.replaceAllUsesWith(as(tensor(y).getElementType(), reshape(value, tensor(y).getShape())));
    }
    sum.erase();
  }

  void run(dist::ReduceScatterOp sum) {
    SmallVector<Value> terms;
    for (auto [x, dim] : llvm::zip_equal(sum.getXs(), sum.getDims()))
      terms.push_back(partsOf(x, dim));
    Type element = tensor(sum.getYs().front()).getElementType();
    for (auto [y, value] : llvm::zip_equal(sum.getYs(), reduced(terms, element)))
      y.replaceAllUsesWith(reshape(value, tensor(y).getShape()));
    sum.erase();
  }

private:
  /// Numbers as they are sent, and their scale if they are quantized.
  struct Sent {
    Value values, scale;
  };

  Value reshape(Value x, ArrayRef<int64_t> shape) {
    return b.createOrFold<train::ReshapeOp>(loc, RankedTensorType::get(shape, tensor(x).getElementType()), x);
  }
  Value as(Type element, Value x) {
    return b.createOrFold<train::CastOp>(loc, RankedTensorType::get(tensor(x).getShape(), element), x);
  }

  /// All elements in n parts of equal size, the last filled with zeros.
  Value divided(Value x) {
    int64_t elements = tensor(x).getNumElements(), part = llvm::divideCeil(elements, n);
    x = reshape(x, elements);
    if (part * n > elements)
      x = train::PadOp::create(b, loc, x, part * n, /*dim=*/0, /*value=*/0, /*from=*/0);
    return reshape(x, {n, 1, part});
  }
  /// [.., n k, ..], the n parts of each row part by part.
  Value partsOf(Value x, int64_t dim) {
    ArrayRef<int64_t> shape = tensor(x).getShape();
    int64_t outer = llvm::product_of(shape.take_front(dim)), part = tensor(x).getNumElements() / n;
    if (outer > 1)
      x = train::TransposeBlocksOp::create(b, loc, reshape(x, {outer, n, part / outer}));
    return reshape(x, {n, 1, part});
  }

  /// `xs` as all devices send them. One scale holds for the terms of all devices.
  SmallVector<Sent> narrowed(ArrayRef<Value> xs) {
    if (!isQuantized)
      return llvm::map_to_vector(xs, [&](Value x) { return Sent{as(b.getBF16Type(), x), Value()}; });
    auto number = Float8E4M3FNType::get(b.getContext());
    SmallVector<Value> amaxes = llvm::map_to_vector(xs, [&](Value x) -> Value { return train::AmaxOp::create(b, loc, x); });
    auto largest = dist::AllReduceOp::create(b, loc, ValueRange(amaxes).getTypes(), train::ReduceKind::Max, amaxes, group);
    SmallVector<Sent> sent;
    for (auto [x, amax] : llvm::zip_equal(xs, largest.getYs())) {
      Value scale = train::QuantizationScaleOp::create(b, loc, amax, TypeAttr::get(number));
      sent.push_back({quantized(x, scale), scale});
    }
    return sent;
  }
  Value quantized(Value x, Value scale) {
    auto type = RankedTensorType::get(tensor(x).getShape(), Float8E4M3FNType::get(b.getContext()));
    return train::QuantizeOp::create(b, loc, type, x, scale);
  }
  /// Sums of `sent` in f32 over dimension n of `rule`, as "n c, n -> c": of numbers of 8 bits a product with
  /// ones. All are multiples of 2^-9 and at most 448, so sums of up to 73 are not rounded.
  Value summed(const Sent &sent, StringRef rule, int64_t terms, RankedTensorType type) {
    Value one = constant({});
    return train::ScaledContractOp::create(b, loc, type, b.getStringAttr(rule), sent.values,
                                           quantized(constant(terms), one), sent.scale, one, Value());
  }
  Value constant(ArrayRef<int64_t> shape) {
    return train::FillOp::create(b, loc, RankedTensorType::get(shape, b.getF32Type()), b.getF64FloatAttr(1));
  }

  /// The device's part of each sum, [1, elements], rounded to `element`.
  SmallVector<Value> reduced(ArrayRef<Value> terms, Type element) {
    SmallVector<Value> parts;
    for (const Sent &sent : narrowed(terms)) {
      RankedTensorType type = tensor(sent.values);
      int64_t elements = type.getDimSize(2);
      Value arrived = dist::AllToAllOp::create(b, loc, RankedTensorType::get({1, n, elements}, type.getElementType()),
                                               sent.values, /*split=*/0, /*concat=*/1, group);
      auto part = RankedTensorType::get({1, elements}, element);
      parts.push_back(isQuantized ? summed({arrived, sent.scale}, "a n c, n -> a c", n, part)
                                  : Value(train::ReduceOp::create(b, loc, part, train::ReduceKind::Sum, arrived,
                                                                  ArrayRef<int64_t>{1})));
    }
    return parts;
  }
  /// The parts of all devices, [n, elements].
  SmallVector<Value> gathered(ArrayRef<Value> parts) {
    SmallVector<Sent> sent = narrowed(llvm::map_to_vector(parts, [&](Value x) {
      return isQuantized ? reshape(x, {1, tensor(x).getDimSize(1), 1}) : x;
    }));
    SmallVector<Value> values;
    SmallVector<Type> types;
    for (const Sent &s : sent) {
      SmallVector<int64_t> shape(tensor(s.values).getShape());
      shape.front() = n;
      values.push_back(s.values);
      types.push_back(RankedTensorType::get(shape, tensor(s.values).getElementType()));
    }
    auto all = dist::AllGatherOp::create(b, loc, types, values, SmallVector<int64_t>(values.size(), 0), group);
    SmallVector<Value> whole;
    for (auto [s, x] : llvm::zip_equal(sent, all.getYs())) {
      auto type = RankedTensorType::get(tensor(x).getShape().take_front(2), b.getF32Type());
      whole.push_back(isQuantized ? summed({x, s.scale}, "p c n, n -> p c", 1, type) : x);
    }
    return whole;
  }

  OpBuilder b;
  Location loc;
  dist::GroupAttr group;
  bool isQuantized;
  int64_t n;
};
} // namespace

LogicalResult exec::narrowReductions(ModuleOp module) {
  SmallVector<Operation *> sums;
  module.walk([&](Operation *op) {
    if (op->hasAttr(dist::wireAttr))
      sums.push_back(op);
  });
  for (Operation *op : sums) {
    StringRef wire = op->getAttrOfType<StringAttr>(dist::wireAttr).getValue();
    if (wire != "bf16" && wire != "fp8")
      return op->emitOpError("has ") << dist::wireAttr << " '" << wire << "'; sums are sent in bf16 or fp8";
    if (auto sum = dyn_cast<dist::AllReduceOp>(op); sum && sum.getKind() == train::ReduceKind::Sum)
      NarrowReduction(op, sum.getGroup(), wire).run(sum);
    else if (auto sum = dyn_cast<dist::ReduceScatterOp>(op); sum && sum.getKind() == train::ReduceKind::Sum)
      NarrowReduction(op, sum.getGroup(), wire).run(sum);
    else
      return op->emitOpError("has ") << dist::wireAttr << ", which is for all_reduce and reduce_scatter of sums";
  }
  return success();
}
