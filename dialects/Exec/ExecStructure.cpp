//===- ExecStructure.cpp - programs and loops -------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Exec/Exec.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

/// `type` without its leading dimension, or null if that is not `count`.
static RankedTensorType sliceType(Type type, int64_t count) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || tensor.getRank() == 0 || tensor.getDimSize(0) != count)
    return {};
  return RankedTensorType::get(tensor.getShape().drop_front(), tensor.getElementType());
}

//===--- programs -----------------------------------------------------------===//

static constexpr StringLiteral segmentNames[] = {"ins", "inouts", "outs"};

void ProgramOp::build(OpBuilder &builder, OperationState &state, StringRef name) {
  auto &properties = state.getOrAddProperties<Properties>();
  properties.setSymName(builder.getStringAttr(name));
  properties.setArgumentSegments(builder.getDenseI32ArrayAttr({0, 0, 0}));
  state.addRegion()->emplaceBlock();
}

// exec.program [private] @name [ins(%x: type, ..)] [inouts(..)] [outs(..)] [attributes {..}] { .. }
ParseResult ProgramOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  auto &properties = result.getOrAddProperties<Properties>();
  if (succeeded(parser.parseOptionalKeyword("private")))
    properties.setSymVisibility(builder.getStringAttr("private"));
  StringAttr name;
  if (parser.parseSymbolName(name))
    return failure();
  properties.setSymName(name);
  SmallVector<OpAsmParser::Argument> arguments;
  int32_t sizes[3] = {0, 0, 0};
  for (unsigned i : {0, 1, 2}) {
    if (failed(parser.parseOptionalKeyword(segmentNames[i])))
      continue;
    auto argument = [&]() -> ParseResult {
      ++sizes[i];
      return parser.parseArgument(arguments.emplace_back(), /*allowType=*/true);
    };
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, argument))
      return failure();
  }
  properties.setArgumentSegments(builder.getDenseI32ArrayAttr(sizes));
  Region *body = result.addRegion();
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.parseRegion(*body, arguments))
    return failure();
  if (body->empty())
    body->emplaceBlock();
  return success();
}

void ProgramOp::print(OpAsmPrinter &p) {
  p << ' ';
  if (isPrivate())
    p << "private ";
  p.printSymbolName(getSymName());
  for (auto [i, keyword] : llvm::enumerate(segmentNames)) {
    auto segment = getSegment(i);
    if (segment.empty())
      continue;
    p << ' ' << keyword << '(';
    llvm::interleaveComma(segment, p, [&](BlockArgument a) { p.printRegionArgument(a); });
    p << ')';
  }
  p.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                     {"sym_name", "sym_visibility", "argumentSegments"});
  p << ' ';
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false, /*printBlockTerminators=*/false);
}

LogicalResult ProgramOp::verify() {
  ArrayRef<int32_t> sizes = getArgumentSegments();
  if (sizes.size() != 3 ||
      int64_t(getBlock().getNumArguments()) != int64_t(sizes[0]) + sizes[1] + sizes[2])
    return emitOpError("has arguments that are neither ins, inouts nor outs");
  if (!isPrivate() && getBlock().getNumArguments())
    return emitOpError("takes arguments but is not private: nothing could give them to it");
  for (BlockArgument argument : getBlock().getArguments())
    if (!isa<MemRefType>(argument.getType()))
      return emitOpError("takes ") << argument.getType() << "; arguments are memory";
  return success();
}

//===--- loops --------------------------------------------------------------===//

void LoopOp::build(OpBuilder &builder, OperationState &state, int64_t count, bool reverse,
                   ValueRange carry, ValueRange each, TypeRange stacks, Value times) {
  auto &properties = state.getOrAddProperties<Properties>();
  properties.setCount(builder.getI64IntegerAttr(count));
  if (reverse)
    properties.setReverse(builder.getUnitAttr());
  properties.setOperandSegmentSizes({int32_t(carry.size()), int32_t(each.size()), times ? 1 : 0});
  state.addOperands(carry);
  state.addOperands(each);
  if (times)
    state.addOperands(times);
  state.addTypes(carry.getTypes());
  state.addTypes(stacks);
  Block &block = state.addRegion()->emplaceBlock();
  block.addArgument(builder.getIndexType(), state.location);
  for (Value value : carry)
    block.addArgument(value.getType(), value.getLoc());
  for (Value value : each)
    block.addArgument(sliceType(value.getType(), count), value.getLoc());
}

// exec.loop %i = N [times(%n : type) [from N]] [reverse] [carry(%a = %x, ..)] [each(%e = %y, ..)]
//           [: (types) -> (types)] { .. }
ParseResult LoopOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  auto &properties = result.getOrAddProperties<Properties>();
  SmallVector<OpAsmParser::Argument> arguments(1);
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  arguments[0].type = builder.getIndexType();
  int64_t count;
  if (parser.parseArgument(arguments[0]) || parser.parseEqual() || parser.parseInteger(count))
    return failure();
  properties.setCount(builder.getI64IntegerAttr(count));
  SmallVector<Value> times;
  if (succeeded(parser.parseOptionalKeyword("times"))) {
    OpAsmParser::UnresolvedOperand operand;
    Type type;
    if (parser.parseLParen() || parser.parseOperand(operand) || parser.parseColonType(type) ||
        parser.parseRParen() || parser.resolveOperand(operand, type, times))
      return failure();
    int64_t from;
    if (succeeded(parser.parseOptionalKeyword("from"))) {
      if (parser.parseInteger(from))
        return failure();
      properties.setFrom(builder.getI64IntegerAttr(from));
    }
  }
  if (succeeded(parser.parseOptionalKeyword("reverse")))
    properties.setReverse(builder.getUnitAttr());
  int32_t sizes[2] = {0, 0};
  static constexpr StringLiteral keywords[] = {"carry", "each"};
  for (unsigned i : {0, 1}) {
    if (failed(parser.parseOptionalKeyword(keywords[i])))
      continue;
    auto binding = [&]() -> ParseResult {
      ++sizes[i];
      return failure(parser.parseArgument(arguments.emplace_back()) || parser.parseEqual() ||
                     parser.parseOperand(operands.emplace_back()));
    };
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, binding))
      return failure();
  }
  properties.setOperandSegmentSizes({sizes[0], sizes[1], int32_t(times.size())});
  if (succeeded(parser.parseOptionalColon())) {
    FunctionType type;
    SMLoc at = parser.getCurrentLocation();
    if (parser.parseType(type) ||
        parser.resolveOperands(operands, type.getInputs(), at, result.operands))
      return failure();
    result.addTypes(type.getResults());
    for (auto [i, input] : llvm::enumerate(type.getInputs())) {
      bool isEach = int32_t(i) >= sizes[0];
      arguments[i + 1].type = isEach ? Type(sliceType(input, count)) : input;
      if (!arguments[i + 1].type)
        return parser.emitError(at, "cannot take ") << count << " slices of " << input;
    }
  } else if (!operands.empty()) {
    return parser.emitError(parser.getCurrentLocation(),
                            "expected the types of the loop's operands");
  }
  result.addOperands(times);
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.parseRegion(*result.addRegion(), arguments))
    return failure();
  Block &block = result.regions[0]->front();
  if (block.empty() || !block.back().hasTrait<OpTrait::IsTerminator>()) {
    OpBuilder b(parser.getContext()); // the block does not know its op yet
    b.setInsertionPointToEnd(&block);
    YieldOp::create(b, result.location, ValueRange());
  }
  return success();
}

void LoopOp::print(OpAsmPrinter &p) {
  p << ' ';
  p.printRegionArgument(getIndex(), {}, /*omitType=*/true);
  p << " = " << getCount();
  if (getTimes())
    p << " times(" << getTimes() << " : " << getTimes().getType() << ")";
  if (getFrom() != 0)
    p << " from " << int64_t(getFrom());
  if (getReverse())
    p << " reverse";
  auto bindings = [&](StringRef keyword, ValueRange outer, ArrayRef<BlockArgument> inner) {
    if (outer.empty())
      return;
    p << ' ' << keyword << '(';
    llvm::interleaveComma(llvm::zip(inner, outer), p, [&](auto pair) {
      p.printRegionArgument(std::get<0>(pair), {}, /*omitType=*/true);
      p << " = " << std::get<1>(pair);
    });
    p << ')';
  };
  bindings("carry", getCarry(), getCarryArguments());
  bindings("each", getEach(), getEachArguments());
  bool tensors = !getCarry().empty() || !getEach().empty() || getNumResults();
  if (tensors) {
    p << " : ";
    p.printFunctionalType(getOperands().drop_back(getTimes() ? 1 : 0).getTypes(),
                          getResultTypes());
  }
  p.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                     {"count", "from", "reverse", "operandSegmentSizes"});
  p << ' ';
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false, /*printBlockTerminators=*/tensors);
}

double LoopOp::getTripCount(train::Rounds rounds) {
  if (getTimes() && rounds == train::Rounds::Expected && !train::isOverMicrobatches(*this))
    return getFrom() == 0 ? 1 : 0; // The first may stand before the loop.
  return double(int64_t(getCount()) - int64_t(getFrom()));
}

LogicalResult LoopOp::verify() {
  Block &block = getBlock();
  if (int64_t(getCount()) < 1)
    return emitOpError("runs ") << int64_t(getCount()) << " times; at least 1 is needed";
  if (int64_t(getFrom()) < 0 || int64_t(getFrom()) >= int64_t(getCount()) ||
      (getFrom() != 0 && !getTimes()))
    return emitOpError("begins at iteration ")
           << int64_t(getFrom()) << " of " << int64_t(getCount())
           << "; only a loop with a number of iterations from data begins behind its first";
  if (getTimes()) {
    auto type = cast<ShapedType>(getTimes().getType());
    if (type.getRank() != 0 || !type.getElementType().isInteger(32))
      return emitOpError("takes the number of its iterations from ") << type << "; expected one i32";
    if ((!getEach().empty() && !train::isOverMicrobatches(*this)) || getNumResults() != getCarry().size() || getReverse())
      return emitOpError("has a number of iterations that is not fixed, which goes with carried values alone, and with "
                         "slices where the iterations are microbatches");
  }
  if (getNumResults() < getCarry().size() ||
      block.getNumArguments() != 1 + getCarry().size() + getEach().size() ||
      !getIndex().getType().isIndex())
    return emitOpError("has a body that does not fit its operands");
  auto end = dyn_cast<YieldOp>(block.getTerminator());
  if (!end || end.getNumOperands() != getNumResults())
    return emitOpError("needs a body that yields one value per result");
  for (auto [in, inside, next, out] :
       llvm::zip(getCarry(), getCarryArguments(), end.getValues(), getCarried()))
    if (in.getType() != inside.getType() || in.getType() != next.getType() ||
        in.getType() != out.getType())
      return emitOpError("carries ") << in.getType() << " in, " << inside.getType() << " inside, "
                                     << next.getType() << " on and " << out.getType() << " out";
  for (auto [outer, slice] : llvm::zip(getEach(), getEachArguments()))
    if (slice.getType() != sliceType(outer.getType(), getCount()))
      return emitOpError("takes ")
             << slice.getType() << " as one of " << getCount() << " slices of " << outer.getType();
  for (auto [slice, stack] : llvm::zip(end.getValues().drop_front(getCarry().size()), getStacks()))
    if (slice.getType() != sliceType(stack.getType(), getCount()))
      return emitOpError("stacks ")
             << slice.getType() << " " << getCount() << " times into " << stack.getType();
  return success();
}

void LoopOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  // As its body: the tensor form has no effects of its own, the memory form
  // those of the buffers used inside, which are not operands of the loop.
  bool inMemory = getTimes() && isa<MemRefType>(getTimes().getType());
  if (inMemory)
    effects.emplace_back(MemoryEffects::Read::get(), &getTimesMutable()[0]);
  if (inMemory || (getNumOperands() == 0 && getNumResults() == 0)) {
    effects.emplace_back(MemoryEffects::Read::get());
    effects.emplace_back(MemoryEffects::Write::get());
  }
}

//===--- conditions ---------------------------------------------------------===//

void WhenOp::build(OpBuilder &builder, OperationState &state, Value index, int64_t begin,
                   int64_t end) {
  auto &properties = state.getOrAddProperties<Properties>();
  properties.setBegin(builder.getI64IntegerAttr(begin));
  properties.setEnd(builder.getI64IntegerAttr(end));
  state.addOperands(index);
  state.addRegion()->emplaceBlock();
}

double WhenOp::getTripCount(train::Rounds) {
  LoopOp loop = getLoop();
  int64_t begin = 0, end = int64_t(loop.getCount());
  auto restrictTo = [&](WhenOp when) {
    begin = std::max<int64_t>(begin, when.getBegin());
    end = std::max(begin, std::min<int64_t>(end, when.getEnd()));
  };
  // Conditions on the same loop leave a share of the iterations that those around them leave.
  for (auto outer = (*this)->getParentOfType<WhenOp>(); outer;
       outer = outer->getParentOfType<WhenOp>())
    if (outer.getLoop() == loop)
      restrictTo(outer);
  int64_t around = end - begin;
  restrictTo(*this);
  return around ? double(end - begin) / double(around) : 0;
}

LogicalResult WhenOp::verify() {
  auto loop = dyn_cast_or_null<LoopOp>(getIndex().getParentBlock()->getParentOp());
  if (!loop || getIndex() != loop.getIndex())
    return emitOpError("needs the iteration number of a loop around it");
  int64_t begin = getBegin(), end = getEnd();
  if (begin < 0 || begin >= end || end > int64_t(loop.getCount()))
    return emitOpError("is about iterations ")
           << begin << " to " << end << " of a loop with " << loop.getCount();
  return success();
}
