//===- Primitives.cpp - what kernels decompose into, as StableHLO -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/StableHLO/Export.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;
using stablehlo::HLOBuilder;
using stablehlo::plain;
using stablehlo::Results;

/// The op of the same operands and result that an op of arith or math is; empty if none is.
static StringRef sameNamed(StringRef name) {
  return llvm::StringSwitch<StringRef>(name)
      .Cases({"arith.addf", "arith.addi"}, "add")
      .Cases({"arith.subf", "arith.subi"}, "subtract")
      .Cases({"arith.mulf", "arith.muli"}, "multiply")
      .Case("arith.divf", "divide")
      .Case("arith.remsi", "remainder")
      .Case("arith.negf", "negate")
      .Case("arith.maximumf", "maximum")
      .Case("arith.minimumf", "minimum")
      .Case("arith.select", "select")
      .Cases({"arith.extf", "arith.truncf", "arith.sitofp", "arith.extui"}, "convert")
      .Case("arith.andi", "and")
      .Case("arith.ori", "or")
      .Case("arith.xori", "xor")
      .Case("math.absf", "abs")
      .Case("math.exp", "exponential")
      .Case("math.log", "log")
      .Case("math.tanh", "tanh")
      .Case("math.sqrt", "sqrt")
      .Case("math.cos", "cosine")
      .Case("math.sin", "sine")
      .Case("math.erf", "chlo.erf")
      .Default("");
}

static FailureOr<Value> compareFloats(arith::CmpFOp op, ValueRange x, HLOBuilder &b) {
  switch (op.getPredicate()) {
  case arith::CmpFPredicate::OGT:
    return b.compare(x[0], x[1], "GT", "FLOAT");
  case arith::CmpFPredicate::OLT:
    return b.compare(x[0], x[1], "LT", "FLOAT");
  case arith::CmpFPredicate::OEQ:
    return b.compare(x[0], x[1], "EQ", "FLOAT");
  default:
    return failure();
  }
}

static FailureOr<Value> compareIntegers(arith::CmpIOp op, ValueRange x, HLOBuilder &b) {
  auto as = [&](StringRef direction) { return b.compare(x[0], x[1], direction, "SIGNED"); };
  // Signless integers are signed there: unsigned order is that of another type's elements.
  auto asUnsigned = [&](StringRef direction) {
    Type element = IntegerType::get(op.getContext(), HLOBuilder::typeOf(x[0]).getElementTypeBitWidth(),
                                    IntegerType::Unsigned);
    return b.compare(b.bitcast(x[0], element), b.bitcast(x[1], element), direction, "UNSIGNED");
  };
  switch (op.getPredicate()) {
  case arith::CmpIPredicate::eq:
    return as("EQ");
  case arith::CmpIPredicate::ne:
    return as("NE");
  case arith::CmpIPredicate::slt:
    return as("LT");
  case arith::CmpIPredicate::sge:
    return as("GE");
  case arith::CmpIPredicate::ult:
    return asUnsigned("LT");
  case arith::CmpIPredicate::uge:
    return asUnsigned("GE");
  default:
    return failure();
  }
}

/// Low and high words of products of 32-bit words.
static Results multiplyWide(ValueRange x, HLOBuilder &b) {
  MLIRContext *context = b.builder().getContext();
  Type word = b.builder().getI32Type();
  Type word32 = IntegerType::get(context, 32, IntegerType::Unsigned);
  Type word64 = IntegerType::get(context, 64, IntegerType::Unsigned);
  auto widen = [&](Value value) { return b.convert(b.bitcast(value, word32), word64); };
  Value product = b.mul(widen(x[0]), widen(x[1]));
  Value shift = b.splat(b.typeOf(product), 32);
  Value high = b.op("shift_right_logical", product.getType(), {product, shift});
  auto narrow = [&](Value value) { return b.bitcast(b.convert(value, word32), word); };
  return {narrow(product), narrow(high)};
}

/// Dimension d of `x` is dimension dims[d] of the result, along one dimension from an index on.
static Value view(const train::Primitive &op, Value x, RankedTensorType type, HLOBuilder &b) {
  ArrayRef<int64_t> dims = op.dims;
  if (int64_t(dims.size()) < type.getRank())
    return b.broadcast(x, type.getShape(), dims);
  if (llvm::is_sorted(dims)) {
    SmallVector<int64_t> begin(dims.size(), 0), end(type.getShape());
    if (op.from) {
      begin[op.dim] += op.from;
      end[op.dim] += op.from;
    }
    return b.slice(x, begin, end);
  }
  SmallVector<int64_t> permutation(dims.size());
  for (auto [d, dim] : llvm::enumerate(dims))
    permutation[dim] = d;
  return b.transpose(x, permutation);
}

/// Rows of `inner` dimensions of the table where ids say, zeros where an id is no row.
static Value gatherRows(Value table, Value ids, int64_t inner, HLOBuilder &b) {
  auto rowShape = HLOBuilder::typeOf(table).getShape().take_back(inner);
  SmallVector<int64_t> matrix{HLOBuilder::typeOf(table).getNumElements()};
  for (int64_t size : rowShape)
    matrix[0] /= size;
  llvm::append_range(matrix, rowShape);
  table = b.reshape(table, matrix);
  RankedTensorType from = HLOBuilder::typeOf(table), at = HLOBuilder::typeOf(ids);
  SmallVector<int64_t> shape(at.getShape()), sizes{1}, offsets, own;
  for (int64_t d = 1; d < from.getRank(); ++d) {
    offsets.push_back(at.getRank() + d - 1);
    sizes.push_back(from.getDimSize(d));
    shape.push_back(from.getDimSize(d));
  }
  for (int64_t d = 0; d < at.getRank(); ++d)
    own.push_back(d);
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "gather<offset_dims = [";
  llvm::interleaveComma(offsets, os);
  os << "], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = " << at.getRank()
     << ">";
  Value rows = b.op("gather", b.withShape(table, shape), {table, ids},
                    {b.attribute("dimension_numbers", text), b.numbers("slice_sizes", sizes),
                     b.builder().getNamedAttr("indices_are_sorted", b.builder().getBoolAttr(false))});
  Type element = IntegerType::get(b.builder().getContext(), 32, IntegerType::Unsigned);
  Value position = b.bitcast(ids, element);
  Value known = b.compare(position, b.splat(b.typeOf(position), double(from.getDimSize(0))), "LT",
                          "UNSIGNED");
  return b.select(b.broadcast(known, shape, own), rows, b.splat(b.typeOf(rows), 0));
}

/// Rows of `x` added to `init`, or to zeros, where ids say.
static Value scatterRows(Value x, Value ids, Value init, RankedTensorType type, HLOBuilder &b) {
  RankedTensorType at = HLOBuilder::typeOf(ids);
  Value to = init ? init : b.splat(type, 0);
  std::string text = "scatter<update_window_dims = [" + std::to_string(at.getRank()) +
                     "], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
                     "index_vector_dim = " +
                     std::to_string(at.getRank()) + ">";
  OpBuilder &plainBuilder = b.builder();
  Operation *made =
      b.create("scatter", type, {to, ids, b.convert(x, type.getElementType())},
               {b.attribute("scatter_dimension_numbers", text),
                plainBuilder.getNamedAttr("indices_are_sorted", plainBuilder.getBoolAttr(false)),
                plainBuilder.getNamedAttr("unique_indices", plainBuilder.getBoolAttr(false))},
               /*regions=*/1);
  b.combineWith(made->getRegion(0), "add", type.getElementType());
  return made->getResult(0);
}

/// Each half of the last dimension is a half of that of `x`, which may have one alone.
static Value halves(const train::Primitive &op, Value x, RankedTensorType type, HLOBuilder &b) {
  int64_t half = type.getShape().back() / 2;
  SmallVector<Value> parts;
  for (auto [from, negated] : op.halves) {
    SmallVector<int64_t> begin(type.getRank(), 0), end(b.typeOf(x).getShape());
    begin.back() = from * half;
    end.back() = begin.back() + half;
    Value part = b.typeOf(x).getShape().back() == half ? x : b.slice(x, begin, end);
    parts.push_back(negated ? b.op("negate", part.getType(), part) : part);
  }
  return b.concatenate(parts, type.getRank() - 1);
}

static Value pad(const train::Primitive &op, Value x, RankedTensorType type, HLOBuilder &b) {
  SmallVector<int64_t> none(type.getRank(), 0), low(none), high(none);
  low[op.dim] = op.from;
  high[op.dim] = type.getDimSize(op.dim) - op.from - b.typeOf(x).getDimSize(op.dim);
  Value value = b.splat(RankedTensorType::get({}, type.getElementType()), double(op.value));
  return b.op("pad", type, {x, value},
              {b.numbers("edge_padding_low", low), b.numbers("edge_padding_high", high),
               b.numbers("interior_padding", none)});
}

static Value exportAs(const train::Primitive &op, RankedTensorType type, ValueRange x,
                      HLOBuilder &b) {
  switch (op.kind) {
  case train::Primitive::View:
    return view(op, x[0], type, b);
  case train::Primitive::Reduce:
    return b.convert(b.reduce(x[0], op.dims, op.reduction == train::ReduceKind::Max),
                     type.getElementType());
  case train::Primitive::Iota:
    return b.iota(type.getShape(), op.dim);
  case train::Primitive::Gather:
    return gatherRows(x[0], x[1], type.getRank() - HLOBuilder::typeOf(x[1]).getRank(), b);
  case train::Primitive::Scatter:
    return scatterRows(x[0], x[1], x.size() > 2 ? x[2] : Value(), type, b);
  case train::Primitive::Pad:
    return pad(op, x[0], type, b);
  case train::Primitive::Window: {
    SmallVector<Value> begin(type.getRank(), b.splat(b.typeOf(x[1]), 0));
    begin[op.dim] = x[1];
    return b.dynamicSlice(x[0], begin, type.getShape());
  }
  case train::Primitive::Halves:
    return halves(op, x[0], type, b);
  }
  llvm_unreachable("all primitives are listed");
}

FailureOr<Results> stablehlo::exportPrimitive(Operation *op, ValueRange x, HLOBuilder &b) {
  if (StringRef name = sameNamed(op->getName().getStringRef()); !name.empty())
    return Results{b.op(name, plain(op->getResult(0).getType()), x)};
  auto one = [](FailureOr<Value> value) -> FailureOr<Results> {
    return failed(value) ? FailureOr<Results>(failure()) : Results{*value};
  };
  return llvm::TypeSwitch<Operation *, FailureOr<Results>>(op)
      .Case([&](arith::ConstantOp op) -> FailureOr<Results> {
        auto value = dyn_cast<DenseElementsAttr>(op.getValue());
        if (!value)
          return failure();
        return Results{b.constant(value.reshape(plain(value.getType())))};
      })
      .Case([&](arith::CmpFOp op) { return one(compareFloats(op, x, b)); })
      .Case([&](arith::CmpIOp op) { return one(compareIntegers(op, x, b)); })
      .Case([&](arith::MulUIExtendedOp) { return multiplyWide(x, b); })
      .Case([&](train::ReshapeOp op) -> FailureOr<Results> {
        return Results{b.reshape(x[0], plain(op.getType()).getShape())};
      })
      .Case([&](train::PrimitiveOpInterface op) -> FailureOr<Results> {
        return Results{exportAs(op.getPrimitive(), plain(op->getResult(0).getType()), x, b)};
      })
      .Default([](Operation *) -> FailureOr<Results> { return failure(); });
}
