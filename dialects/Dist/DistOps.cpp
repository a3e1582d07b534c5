//===- DistOps.cpp - checks of meshes, reshards and collectives -------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/Dist.h"

#include "meshwright/ExchangeCheck.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

static ParseResult parseMeshAxes(OpAsmParser &parser, ArrayAttr &names, DenseI64ArrayAttr &sizes) {
  SmallVector<Attribute> axisNames;
  SmallVector<int64_t> axisSizes;
  auto axis = [&]() -> ParseResult {
    std::string name;
    if (parser.parseKeywordOrString(&name) || parser.parseEqual() ||
        parser.parseInteger(axisSizes.emplace_back()))
      return failure();
    axisNames.push_back(parser.getBuilder().getStringAttr(name));
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, axis))
    return failure();
  names = parser.getBuilder().getArrayAttr(axisNames);
  sizes = parser.getBuilder().getDenseI64ArrayAttr(axisSizes);
  return success();
}

static void printMeshAxes(OpAsmPrinter &printer, Operation *, ArrayAttr names,
                          DenseI64ArrayAttr sizes) {
  printer << "[";
  llvm::interleaveComma(llvm::zip(names, sizes.asArrayRef()), printer, [&](auto axis) {
    printer << std::get<0>(axis) << " = " << std::get<1>(axis);
  });
  printer << "]";
}

/// `1`, or `[1, 0]` for several tensors.
static ParseResult parseDims(OpAsmParser &parser, DenseI64ArrayAttr &dims) {
  SmallVector<int64_t> values;
  auto one = [&] { return parser.parseInteger(values.emplace_back()); };
  int64_t single;
  OptionalParseResult first = parser.parseOptionalInteger(single);
  if (first.has_value()) {
    if (failed(*first))
      return failure();
    values.push_back(single);
  } else if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, one)) {
    return failure();
  }
  dims = parser.getBuilder().getDenseI64ArrayAttr(values);
  return success();
}

static void printDims(OpAsmPrinter &printer, Operation *, DenseI64ArrayAttr dims) {
  if (dims.size() == 1) {
    printer << dims[0];
    return;
  }
  printer << "[";
  llvm::interleaveComma(dims.asArrayRef(), printer);
  printer << "]";
}

//===--- collectives --------------------------------------------------------===//

/// The number of devices in the op's group; an error where mesh or axes are not.
static FailureOr<int64_t> groupSize(Operation *op, GroupAttr group,
                                    SymbolTableCollection &symbols) {
  auto meshOp = symbols.lookupNearestSymbolFrom<MeshOp>(op, group.getMesh());
  if (!meshOp)
    return op->emitOpError("names ") << group.getMesh() << ", which is not a dist.mesh";
  Mesh mesh = meshOp.getMesh();
  for (StringAttr axis : group.getAxes())
    if (mesh.find(axis) < 0)
      return op->emitOpError("names axis ")
             << axis << ", which " << group.getMesh() << " does not have";
  return mesh.size(group.on(mesh));
}

/// Checks that y is x with dimension `grow` multiplied and `shrink` divided by `n`.
static LogicalResult verifyTensor(Operation *op, Value from, Value to, int64_t n,
                                  std::optional<int64_t> grow, std::optional<int64_t> shrink) {
  auto x = cast<RankedTensorType>(from.getType()), y = cast<RankedTensorType>(to.getType());
  if (x.getEncoding() || y.getEncoding())
    return op->emitOpError("works on local tensors, which carry no encoding; found ")
           << (x.getEncoding() ? x : y);
  SmallVector<int64_t> shape(x.getShape());
  for (std::optional<int64_t> dim : {grow, shrink})
    if (dim && (*dim < 0 || *dim >= x.getRank()))
      return op->emitOpError("has no dimension ") << *dim << " in " << x;
  if (grow && shrink && *grow == *shrink)
    return op->emitOpError("needs two different dimensions, found ") << *grow << " twice";
  if (grow)
    shape[*grow] *= n;
  if (shrink && shape[*shrink] % n)
    return op->emitOpError("cannot split dimension ")
           << *shrink << " of " << x << " into " << n << " equal parts";
  if (shrink)
    shape[*shrink] /= n;
  auto want = RankedTensorType::get(shape, x.getElementType());
  if (y != want)
    return op->emitOpError("over ")
           << n << " devices makes " << want << " of " << x << ", not " << y;
  return success();
}

static LogicalResult verifyShape(Operation *op, GroupAttr group, std::optional<int64_t> grow,
                                 std::optional<int64_t> shrink, SymbolTableCollection &symbols) {
  FailureOr<int64_t> n = groupSize(op, group, symbols);
  if (failed(n))
    return failure();
  return verifyTensor(op, op->getOperand(0), op->getResult(0), *n, grow, shrink);
}

/// At least one tensor, of one element type, and as many results.
static LogicalResult verifyBucket(Operation *op) {
  unsigned count = op->getNumOperands();
  if (count == 0 || op->getNumResults() != count)
    return op->emitOpError("has ") << count << " operands and " << op->getNumResults()
                                   << " results; it needs as many, at least one";
  for (Value x : op->getOperands())
    if (getElementTypeOrSelf(x) != getElementTypeOrSelf(op->getOperand(0)))
      return op->emitOpError("moves tensors of one element type in a call, found ")
             << op->getOperand(0).getType() << " and " << x.getType();
  return success();
}

/// Checks that `rank`, called `what` in the op, is one of the group.
static LogicalResult verifyRank(Operation *op, GroupAttr group, int64_t rank, StringRef what,
                                SymbolTableCollection &symbols) {
  FailureOr<int64_t> n = groupSize(op, group, symbols);
  if (failed(n))
    return failure();
  if (rank < 0 || rank >= *n)
    return op->emitOpError("has '")
           << what << "' " << rank << ", but the group's ranks are 0 to " << *n - 1;
  return success();
}

/// What the table says of a collective's operands, results and ranks.
static LogicalResult verifyCollective(CollectiveOpInterface op, SymbolTableCollection &symbols) {
  GroupAttr group = op.getGroupAttr();
  FailureOr<int64_t> n = groupSize(op, group, symbols);
  if (failed(n) || failed(verifyBucket(op)))
    return failure();
  if (auto root = op->getAttrOfType<IntegerAttr>("root"))
    if (failed(verifyRank(op, group, root.getInt(), "root", symbols)))
      return failure();
  if (auto from = op->getAttrOfType<DenseI64ArrayAttr>("from")) {
    SmallVector<int64_t> sorted(from.asArrayRef());
    llvm::sort(sorted);
    if (!llvm::equal(sorted, llvm::seq<int64_t>(0, *n)))
      return op->emitOpError("'from' must be a permutation of the ") << *n << " ranks of the group";
  }
  SmallVector<int64_t> grow = op.getGrowingDims(), shrink = op.getShrinkingDims();
  auto named = op->getAttrOfType<DenseI64ArrayAttr>("dims");
  if (named && named.size() != op->getNumOperands())
    return op->emitOpError("names ")
           << named.size() << " dimensions for " << op->getNumOperands() << " tensors";
  auto dim = [](ArrayRef<int64_t> dims, size_t i) {
    return dims.empty() ? std::nullopt : std::optional(dims[i]);
  };
  for (auto [i, x, y] : llvm::enumerate(op->getOperands(), op->getResults()))
    if (failed(verifyTensor(op, x, y, *n, dim(grow, i), dim(shrink, i))))
      return failure();
  return success();
}

/// Bytes of one tensor.
static int64_t bytes(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

static int64_t bytes(ValueRange values) {
  int64_t sum = 0;
  for (Value value : values)
    sum += bytes(value);
  return sum;
}

/// What the table says, of a group in which nobody keeps what is its own: at least so much.
static int64_t sentBytes(CollectiveOpInterface op, int64_t n) {
  int64_t part = bytes(op->getOperands()) / (op.getShrinkingDims().empty() ? 1 : n);
  return sentElements(std::string_view(op->getName().stripDialect()), part, n, /*direct=*/false,
                      /*fixed=*/0, /*rootPart=*/part) /
         n;
}

#define GET_OP_CLASSES
#include "Dist/DistOps.cpp.inc"

unsigned meshwright::dist::onlyTensor(Operation *op) {
  if (op->getNumOperands() != 1 || op->getNumResults() != 1)
    llvm::report_fatal_error(Twine(op->getName().getStringRef()) +
                             " of several tensors is treated as if it had one");
  return 0;
}

LogicalResult MeshOp::verify() {
  if (getAxisNames().size() != getAxisSizes().size())
    return emitOpError("has ") << getAxisNames().size() << " axis names and "
                               << getAxisSizes().size() << " sizes";
  llvm::StringSet<> seen;
  int64_t devices = 1;
  for (auto [name, size] :
       llvm::zip(getAxisNames().getAsValueRange<StringAttr>(), getAxisSizes())) {
    if (name.empty())
      return emitOpError("has an axis without a name");
    if (!seen.insert(name).second)
      return emitOpError("names axis '") << name << "' twice";
    if (size < 1)
      return emitOpError("axis '") << name << "' needs at least one device, found " << size;
    // Before multiplying, which could overflow.
    if (size > Mesh::mostDevices || (devices *= size) > Mesh::mostDevices)
      return emitOpError("has more than 2^20 devices with axis '") << name << "' of " << size;
  }
  return success();
}

Mesh MeshOp::getMesh() {
  Mesh mesh;
  for (auto [name, size] : llvm::zip(getAxisNames().getAsValueRange<StringAttr>(), getAxisSizes()))
    mesh.axes.push_back({name.str(), size});
  return mesh;
}

LogicalResult ReshardOp::verify() {
  for (Type type : {getX().getType(), getY().getType()})
    if (!shardingOf(type))
      return emitOpError("needs a sharding in ") << type;
  if (withSharding(getX().getType(), {}) != withSharding(getY().getType(), {}))
    return emitOpError("cannot make ") << getY().getType() << " of " << getX().getType();
  return success();
}

/// Checks that the distance of two ranks is less than the `n` ranks of the group.
static LogicalResult verifyShift(Operation *op, int64_t shift, int64_t n) {
  if (shift < 0 || shift >= n)
    return op->emitOpError("shifts by ") << shift << " of " << n << " ranks";
  return success();
}

LogicalResult SliceOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<int64_t> n = groupSize(*this, getGroup(), symbols);
  if (failed(n) || failed(verifyShift(*this, getShift(), *n)))
    return failure();
  return verifyShape(*this, getGroup(), {}, getDim(), symbols);
}

LogicalResult ConcatOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<int64_t> n = groupSize(*this, getGroup(), symbols);
  if (failed(n))
    return failure();
  if (int64_t(getXs().size()) != *n)
    return emitOpError("puts ") << getXs().size() << " parts together; the group has " << *n
                                << " devices";
  for (Value x : getXs())
    if (x.getType() != getXs().front().getType())
      return emitOpError("has parts ") << getXs().front().getType() << " and " << x.getType();
  return verifyTensor(*this, getXs().front(), getY(), *n, getDim(), {});
}

LogicalResult TakeOp::verify() {
  auto x = cast<RankedTensorType>(getX().getType()), y = cast<RankedTensorType>(getY().getType());
  if (x.getRank() == 0 || x.getShape().drop_front() != y.getShape() ||
      x.getElementType() != y.getElementType())
    return emitOpError("gives ") << y << ", which is no entry of " << x;
  if (int64_t(getAt()) < 0 || int64_t(getAt()) >= x.getDimSize(0))
    return emitOpError("takes entry ") << int64_t(getAt()) << " of " << x;
  return success();
}

LogicalResult SendOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyRank(*this, getGroup(), getTo(), "to", symbols);
}
LogicalResult RecvOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyRank(*this, getGroup(), getFrom(), "from", symbols);
}

void OffsetOp::build(OpBuilder &builder, OperationState &state, int64_t size, GroupAttr group,
                     int64_t shift) {
  build(builder, state, RankedTensorType::get({}, builder.getI32Type()), size, group, shift);
}

LogicalResult OffsetOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<int64_t> n = groupSize(*this, getGroup(), symbols);
  if (failed(n) || failed(verifyShift(*this, getShift(), *n)))
    return failure();
  int64_t size = getSize();
  if (size < 0 || size > std::numeric_limits<int32_t>::max() / *n)
    return emitOpError("of parts of ") << size << " elements on " << *n
                                       << " devices is not an index of 32 bits";
  return success();
}

LogicalResult ExchangeOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<int64_t> n = groupSize(*this, getGroup(), symbols);
  if (failed(n) || failed(verifyBucket(*this)))
    return failure();
  for (auto [x, y] : llvm::zip(getXs(), getYs()))
    if (failed(verifyTensor(*this, x, y, *n, {}, {})))
      return failure();
  return verifyExchange(*this, getXs(), *n);
}

int64_t ExchangeOp::getSentBytes(int64_t n) {
  int64_t senders = llvm::count_if(getTo(), [](int64_t peer) { return peer >= 0; });
  return bytes(getXs()) / getPieces() * getLength() * senders / n;
}
int64_t SendOp::getSentBytes(int64_t) { return bytes(getX()); }
int64_t RecvOp::getSentBytes(int64_t) { return 0; }
