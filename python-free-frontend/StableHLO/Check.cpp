//===- Check.cpp - whether an op's types and attributes agree ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Ops of the text are not registered, so MLIR has not verified them.
//
//===----------------------------------------------------------------------===//
#include "Importer.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::hlo;

/// The shape that the result of an op must have, or nothing where operands or attributes do not
/// fit.
using Expected = std::optional<Dims>;
using Rule = Expected (*)(Operation *);

static ArrayRef<int64_t> shapeOf(Operation *op, unsigned i) {
  return cast<RankedTensorType>(op->getOperand(i).getType()).getShape();
}

static Type elementOf(Operation *op, unsigned i) {
  return getElementTypeOrSelf(op->getOperand(i).getType());
}

/// Whether the dimensions are different ones of a tensor with `rank` of them.
static bool areDims(ArrayRef<int64_t> dims, int64_t rank) {
  llvm::SmallDenseSet<int64_t> seen;
  return llvm::all_of(dims, [&](int64_t d) { return d >= 0 && d < rank && seen.insert(d).second; });
}

static Expected ofNone(Operation *op) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  if (op->getNumOperands() != 0)
    return std::nullopt;
  if (auto value = op->getAttrOfType<TypedAttr>("value"); value && value.getType() != type)
    return std::nullopt;
  if (auto dim = op->getAttrOfType<IntegerAttr>("iota_dimension");
      dim && !areDims(dim.getInt(), type.getRank()))
    return std::nullopt;
  return Dims(type.getShape());
}

template <unsigned operands> static Expected ofEqual(Operation *op) {
  if (op->getNumOperands() != operands)
    return std::nullopt;
  for (unsigned i = 1; i < operands; ++i)
    if (op->getOperand(i).getType() != op->getOperand(0).getType())
      return std::nullopt;
  return Dims(shapeOf(op, 0));
}

static Expected ofSelect(Operation *op) {
  if (op->getNumOperands() != 3 || op->getOperand(1).getType() != op->getOperand(2).getType() ||
      !elementOf(op, 0).isInteger(1) ||
      (!shapeOf(op, 0).empty() && shapeOf(op, 0) != shapeOf(op, 1)))
    return std::nullopt;
  return Dims(shapeOf(op, 1));
}

static Expected ofBroadcast(Operation *op) {
  auto to = cast<RankedTensorType>(op->getResult(0).getType()).getShape();
  Dims dims = dimsOf(op->getAttr("broadcast_dimensions"));
  if (op->getNumOperands() != 1 || dims.size() != shapeOf(op, 0).size() ||
      !areDims(dims, to.size()))
    return std::nullopt;
  for (auto [dim, size] : llvm::zip(dims, shapeOf(op, 0)))
    if (size != 1 && size != to[dim])
      return std::nullopt;
  return Dims(to);
}

static Expected ofReshape(Operation *op) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  if (op->getNumOperands() != 1 ||
      cast<RankedTensorType>(op->getOperand(0).getType()).getNumElements() != type.getNumElements())
    return std::nullopt;
  return Dims(type.getShape());
}

static Expected ofTranspose(Operation *op) {
  Dims order = dimsOf(op->getAttr("permutation")), shape;
  if (op->getNumOperands() != 1 || order.size() != shapeOf(op, 0).size() ||
      !areDims(order, order.size()))
    return std::nullopt;
  for (int64_t dim : order)
    shape.push_back(shapeOf(op, 0)[dim]);
  return shape;
}

static Expected ofSlice(Operation *op) {
  Dims starts = dimsOf(op->getAttr("start_indices")), limits = dimsOf(op->getAttr("limit_indices")),
       strides = dimsOf(op->getAttr("strides")), shape;
  if (op->getNumOperands() != 1)
    return std::nullopt;
  size_t rank = shapeOf(op, 0).size();
  if (starts.size() != rank || limits.size() != rank || strides.size() != rank)
    return std::nullopt;
  for (auto [start, limit, stride, size] : llvm::zip(starts, limits, strides, shapeOf(op, 0))) {
    if (start < 0 || limit <= start || limit > size || stride < 1)
      return std::nullopt;
    shape.push_back(llvm::divideCeil(limit - start, stride));
  }
  return shape;
}

static Expected ofConcatenate(Operation *op) {
  auto dim = op->getAttrOfType<IntegerAttr>("dimension");
  if (op->getNumOperands() == 0 || !dim || !areDims(dim.getInt(), shapeOf(op, 0).size()))
    return std::nullopt;
  Dims shape(shapeOf(op, 0));
  shape[dim.getInt()] = 0;
  for (unsigned i = 0; i < op->getNumOperands(); ++i) {
    Dims part(shapeOf(op, i));
    if (part.size() != shape.size() || elementOf(op, i) != elementOf(op, 0))
      return std::nullopt;
    int64_t size = std::exchange(part[dim.getInt()], shape[dim.getInt()]);
    if (part != shape)
      return std::nullopt;
    shape[dim.getInt()] += size;
  }
  return shape;
}

static Expected ofDotGeneral(Operation *op) {
  auto numbers = op->getAttrOfType<DictionaryAttr>("dot_dimension_numbers");
  if (op->getNumOperands() != 2 || !numbers ||
      isa<FloatType>(elementOf(op, 0)) != isa<FloatType>(elementOf(op, 1)))
    return std::nullopt;
  Dims batch[] = {dimsOf(numbers.get("lhs_batching_dimensions")),
                  dimsOf(numbers.get("rhs_batching_dimensions"))};
  Dims sums[] = {dimsOf(numbers.get("lhs_contracting_dimensions")),
                 dimsOf(numbers.get("rhs_contracting_dimensions"))};
  if (batch[0].size() != batch[1].size() || sums[0].size() != sums[1].size())
    return std::nullopt;
  Dims shape, own;
  for (unsigned side : {0u, 1u}) {
    Dims used = batch[side];
    used.append(sums[side]);
    if (!areDims(used, shapeOf(op, side).size()))
      return std::nullopt;
    for (auto [dim, size] : llvm::enumerate(shapeOf(op, side)))
      if (!llvm::is_contained(used, int64_t(dim)))
        own.push_back(size);
  }
  for (auto *list : {&batch, &sums})
    for (auto [l, r] : llvm::zip((*list)[0], (*list)[1]))
      if (shapeOf(op, 0)[l] != shapeOf(op, 1)[r])
        return std::nullopt;
  for (int64_t dim : batch[0])
    shape.push_back(shapeOf(op, 0)[dim]);
  shape.append(own);
  return shape;
}

static Expected ofReduce(Operation *op) {
  Dims dims = dimsOf(op->getAttr("dimensions")), shape;
  if (op->getNumOperands() != 2 || !areDims(dims, shapeOf(op, 0).size()) ||
      !shapeOf(op, 1).empty() || elementOf(op, 0) != elementOf(op, 1))
    return std::nullopt;
  for (auto [dim, size] : llvm::enumerate(shapeOf(op, 0)))
    if (!llvm::is_contained(dims, int64_t(dim)))
      shape.push_back(size);
  return shape;
}

/// Of the two forms that are imported: rows of a table, and of each row one element.
static Expected ofGather(Operation *op) {
  auto numbers = op->getAttrOfType<DictionaryAttr>("dimension_numbers");
  if (op->getNumOperands() != 2 || !numbers || shapeOf(op, 1).empty() ||
      !isa<IntegerType>(elementOf(op, 1)) ||
      dimsOf(op->getAttr("slice_sizes")).size() != shapeOf(op, 0).size())
    return std::nullopt;
  Dims batch = dimsOf(numbers.get("operand_batching_dims"));
  for (int64_t dim : batch)
    if (dim < 0 || dim >= int64_t(shapeOf(op, 0).size()) ||
        dim >= int64_t(shapeOf(op, 1).size()) - 1 || shapeOf(op, 0)[dim] != shapeOf(op, 1)[dim])
      return std::nullopt;
  Dims shape(shapeOf(op, 1).drop_back());
  for (int64_t dim : dimsOf(numbers.get("offset_dims"))) {
    // Where it is another the handler refuses it.
    if (dim != int64_t(shape.size()) || shapeOf(op, 0).empty())
      return Dims(cast<RankedTensorType>(op->getResult(0).getType()).getShape());
    shape.push_back(dimsOf(op->getAttr("slice_sizes")).back());
  }
  return shape;
}

bool Importer::agrees(Operation *op) {
  auto isStatic = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.hasStaticShape() && tensor.getNumElements() > 0;
  };
  if (!llvm::all_of(op->getOperandTypes(), isStatic) ||
      !llvm::all_of(op->getResultTypes(), isStatic))
    return false;
  static const llvm::StringMap<Rule> rules = [] {
    llvm::StringMap<Rule> found = {
        {"stablehlo.broadcast_in_dim", ofBroadcast},
        {"stablehlo.concatenate", ofConcatenate},
        {"stablehlo.constant", ofNone},
        {"stablehlo.dot_general", ofDotGeneral},
        {"stablehlo.gather", ofGather},
        {"stablehlo.iota", ofNone},
        {"stablehlo.reduce", ofReduce},
        {"stablehlo.reshape", ofReshape},
        {"stablehlo.select", ofSelect},
        {"stablehlo.slice", ofSlice},
        {"stablehlo.transpose", ofTranspose},
    };
    for (const char *name : {"add", "and", "compare", "divide", "maximum", "minimum", "multiply",
                             "or", "power", "subtract"})
      found[(llvm::Twine("stablehlo.") + name).str()] = ofEqual<2>;
    return found;
  }();
  Rule rule = rules.lookup(op->getName().getStringRef());
  Expected shape = rule ? rule(op) : ofEqual<1>(op);
  auto result = cast<RankedTensorType>(op->getResult(0).getType());
  if (!shape || result.getShape() != ArrayRef(*shape))
    return false;
  // Only these give another element type than the last operand's.
  bool isOther = llvm::is_contained({"stablehlo.compare", "stablehlo.convert", "stablehlo.gather",
                                     "stablehlo.is_finite", "stablehlo.dot_general"},
                                    op->getName().getStringRef());
  if (op->getName().getStringRef() == "stablehlo.gather")
    return result.getElementType() == elementOf(op, 0);
  if (op->getName().getStringRef() == "stablehlo.dot_general" &&
      isa<FloatType>(result.getElementType()) != isa<FloatType>(elementOf(op, 0)))
    return false;
  return isOther || op->getNumOperands() == 0 ||
         result.getElementType() == getElementTypeOrSelf(op->getOperands().back().getType());
}
