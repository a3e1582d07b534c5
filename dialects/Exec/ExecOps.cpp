//===- ExecOps.cpp - verifiers and effects of exec ops ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Exec/Quantize.h"

#include "meshwright/ExchangeCheck.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

#include "Exec/ExecDialect.cpp.inc"
#include "Exec/ExecEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "Exec/ExecAttrs.cpp.inc"
#include "Exec/ExecInterfaces.cpp.inc"

/// Input and output agree but for the first dimension, which `growth` relates.
static LogicalResult verifyCollective(Operation *op, MemRefType in, MemRefType out,
                                      StringRef growth) {
  if (in.getElementType() != out.getElementType() || in.getRank() != out.getRank())
    return op->emitOpError("turns ") << in << " into " << out;
  bool grows = growth == "Grows";
  if (!grows && growth != "Shrinks"
          ? in != out
          : in.getRank() == 0 || in.getShape().drop_front() != out.getShape().drop_front() ||
                (grows ? out.getDimSize(0) % in.getDimSize(0)
                       : in.getDimSize(0) % out.getDimSize(0)) != 0)
    return op->emitOpError("turns ")
           << in << " into " << out << "; only the first dimension may differ";
  return success();
}

/// Every tensor of a call, each with the one it is moved to.
template <typename Op> static LogicalResult verifyTensors(Op op) {
  SmallVector<Value> sources = op.getSources(), targets = op.getTargets();
  if (sources.empty() || sources.size() != targets.size())
    return op.emitOpError("moves ") << sources.size() << " tensors to " << targets.size();
  for (auto [source, target] : llvm::zip(sources, targets)) {
    auto in = cast<MemRefType>(source.getType()), out = cast<MemRefType>(target.getType());
    if (in.getElementType() != getElementTypeOrSelf(sources[0]))
      return op.emitOpError("moves tensors of one element type in a call, found ")
             << sources[0].getType() << " and " << in;
    if (failed(verifyCollective(op, in, out, Op::growth)))
      return failure();
  }
  return success();
}
#define GET_OP_CLASSES
#include "Exec/ExecOps.cpp.inc"

void ExecDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "Exec/ExecAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "Exec/ExecOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "Exec/ExecQuantizeOps.cpp.inc"
      >();
}

int64_t exec::bytesOf(Type type) {
  auto shaped = cast<ShapedType>(type);
  return shaped.getNumElements() * llvm::divideCeil(shaped.getElementTypeBitWidth(), 8);
}

std::optional<int64_t> exec::asyncTokenOf(Operation *op) {
  auto number = op->getAttrOfType<IntegerAttr>(asyncTokenAttr);
  return number ? std::optional(number.getInt()) : std::nullopt;
}

std::optional<int64_t> exec::collectiveOf(Operation *op) {
  auto number = op->getAttrOfType<IntegerAttr>(collectiveAttr);
  return number ? std::optional(number.getInt()) : std::nullopt;
}

ArrayAttr exec::groupAlong(ArrayAttr axes, int64_t channel) {
  if (channel == 0)
    return axes;
  Builder b(axes.getContext());
  SmallVector<Attribute> group(axes.getValue());
  group.push_back(b.getI64IntegerAttr(channel));
  return b.getArrayAttr(group);
}

ArrayAttr exec::groupOf(Operation *op) {
  if (auto window = dyn_cast<WindowOp>(op))
    return window.getAxes();
  if (auto begin = dyn_cast<StoreOffsetOp>(op))
    return begin.getAxes();
  if (auto collective = dyn_cast<MemoryCollectiveOpInterface>(op))
    return groupAlong(collective.getAxes(), collective.getMessageChannel());
  return {};
}

MemorySpace exec::spaceOf(Type type) {
  auto memory = dyn_cast<MemRefType>(type);
  if (auto name = memory ? dyn_cast_or_null<StringAttr>(memory.getMemorySpace()) : StringAttr())
    for (MemorySpace space : offloadSpaces)
      if (name.getValue() == spaceRow(space).name)
        return space;
  return MemorySpace::Device;
}

MemRefType exec::inSpace(MemRefType type, MemorySpace space) {
  Attribute name;
  if (space != MemorySpace::Device)
    name = StringAttr::get(type.getContext(), spaceRow(space).name);
  return MemRefType::get(type.getShape(), type.getElementType(), MemRefLayoutAttrInterface(), name);
}

std::string exec::arenaText(MemorySpace space) {
  return space == MemorySpace::Device ? "the arena" : std::string(spaceRow(space).text) + "'s arena";
}

std::optional<CopyEngine> exec::copyEngineOf(Operation *op) {
  auto copy = dyn_cast<CopyOp>(op);
  if (!copy || !copy.getTarget())
    return std::nullopt;
  MemorySpace from = spaceOf(copy.getSource().getType()), to = spaceOf(copy.getTarget().getType());
  bool stores = to != MemorySpace::Device;
  return from == to ? std::nullopt : std::optional(CopyEngine{stores ? to : from, stores});
}

std::optional<Queue> exec::queueOf(Operation *op) {
  if (isa<MemoryCollectiveOpInterface, FinishSendsOp>(op))
    return Queue{};
  std::optional<CopyEngine> engine = copyEngineOf(op);
  return engine ? std::optional(Queue{engine}) : std::nullopt;
}

static void addEffect(SmallVectorImpl<MemoryEffects::EffectInstance> &effects,
                      MemoryEffects::Effect *effect, OpOperand &operand) {
  if (isa<MemRefType>(operand.get().getType()))
    effects.emplace_back(effect, &operand);
}

//===--- buffers ------------------------------------------------------------===//

int64_t BufferOp::getBytes() { return bytesOf(getType()); }

LogicalResult BufferOp::verify() {
  if (unsigned(bool(getVariable())) + bool(getInput()) + bool(getOutput()) > 1)
    return emitOpError("'") << getName()
                            << "' can be a variable, an input or an output, not several";
  if (Attribute space = getType().getMemorySpace(); space && !isOffloaded(getType())) {
    auto known = llvm::map_range(offloadSpaces, [](MemorySpace offload) {
      return ("\"" + Twine(spaceRow(offload).name) + "\"").str();
    });
    return emitOpError("'") << getName() << "' is in memory space " << space
                            << "; the arena, without one, and " << llvm::join(known, ", ")
                            << " are what there is";
  }
  if (getOffset() && (int64_t(*getOffset()) < 0 || *getOffset() % MW_ALIGNMENT))
    return emitOpError("'") << getName() << "' lies at " << *getOffset()
                            << ", not at a multiple of " << MW_ALIGNMENT;
  return success();
}

/// The variable in the buffer is declared, and the buffer has room for it alone.
LogicalResult BufferOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!getVariable())
    return success();
  auto variable = symbols.lookupNearestSymbolFrom<train::VariableOp>(*this, getVariableAttr());
  if (!variable)
    return emitOpError("'") << getName() << "' holds " << getVariableAttr()
                            << ", which is not a train.variable";
  auto tensor = variable.getTensorType();
  if (tensor.getShape() != getType().getShape() ||
      tensor.getElementType() != getType().getElementType())
    return emitOpError("'") << getName() << "' is " << getType() << ", but its variable "
                            << getVariableAttr() << " is " << tensor;
  return success();
}

/// The loop whose iteration number `index` is, or null.
static LoopOp loopOf(Value index) {
  auto loop = dyn_cast_or_null<LoopOp>(index.getParentBlock()->getParentOp());
  return loop && index == loop.getIndex() ? loop : LoopOp();
}

LogicalResult ShiftOp::verify() {
  if (!loopOf(getIndex()))
    return emitOpError("needs a loop's iteration number");
  if (getModulo() && int64_t(*getModulo()) < 1)
    return emitOpError("takes the remainder of ") << int64_t(*getModulo());
  return success();
}

int64_t ShiftOp::evaluate(int64_t iteration) {
  if (getMirrored())
    iteration = int64_t(getLoop().getCount()) - 1 - iteration;
  int64_t number = iteration + int64_t(getBy());
  if (!getModulo())
    return number;
  int64_t modulo = *getModulo();
  return (number % modulo + modulo) % modulo;
}

LogicalResult SlotOp::verify() {
  MemRefType base = getBase().getType(), slice = getSlice().getType();
  if (base.getRank() == 0 || base.getShape().drop_front() != slice.getShape() ||
      base.getElementType() != slice.getElementType() ||
      base.getMemorySpace() != slice.getMemorySpace())
    return emitOpError("gives ") << slice << ", which is not a slice of " << base;
  auto shift = getIndex().getDefiningOp<ShiftOp>();
  Value index = shift ? shift.getIndex() : getIndex();
  LoopOp loop = loopOf(index);
  if (!loop)
    return emitOpError("needs a loop's iteration number as index");
  if (shift && shift.getModulo()) {
    if (int64_t(*shift.getModulo()) > base.getDimSize(0))
      return emitOpError("takes ") << *shift.getModulo() << " slots in turns but " << base
                                   << " has " << base.getDimSize(0);
    return success();
  }
  int64_t begin = 0, end = int64_t(loop.getCount());
  for (auto when = (*this)->getParentOfType<WhenOp>(); when;
       when = when->getParentOfType<WhenOp>())
    if (when.getIndex() == index) {
      begin = std::max(begin, int64_t(when.getBegin()));
      end = std::min(end, int64_t(when.getEnd()));
    }
  if (shift && shift.getMirrored())
    std::tie(begin, end) = std::pair(int64_t(loop.getCount()) - end, int64_t(loop.getCount()) - begin);
  int64_t by = shift ? int64_t(shift.getBy()) : 0;
  if (by > base.getDimSize(0) || by < -int64_t(loop.getCount()))
    return emitOpError("is ") << by << " iterations away in a loop with "
                              << int64_t(loop.getCount());
  if (begin + by < 0)
    return emitOpError("counts from ") << begin + by << "; slots are numbered from 0";
  if (end + by > base.getDimSize(0))
    return emitOpError("counts to ")
           << end + by << " but " << base << " has " << base.getDimSize(0) << " slots";
  return success();
}

LogicalResult ViewOp::verify() {
  MemRefType base = getBase().getType(), result = getType();
  if (base.getElementType() != result.getElementType() ||
      base.getMemorySpace() != result.getMemorySpace() || int64_t(getOffset()) < 0 ||
      int64_t(getOffset()) > base.getNumElements() - result.getNumElements())
    return emitOpError("gives ") << result << ", which " << base << " does not hold";
  return success();
}

LogicalResult WindowOp::verify() {
  MemRefType base = getBase().getType(), result = getType();
  if (base.getElementType() != result.getElementType() ||
      base.getMemorySpace() != result.getMemorySpace() || result.getNumElements() == 0 ||
      base.getNumElements() % result.getNumElements())
    return emitOpError("gives ") << result << ", which is no equal part of " << base;
  int64_t parts = base.getNumElements() / result.getNumElements();
  if (int64_t(getShift()) < 0 || int64_t(getShift()) >= parts)
    return emitOpError("shifts by ") << int64_t(getShift()) << " of " << parts << " parts";
  return success();
}

LogicalResult CopyOp::verify() {
  bool inMemory = isa<MemRefType>(getSource().getType());
  if (inMemory != bool(getTarget()) || inMemory == bool(getValue()))
    return emitOpError("has a target exactly when its source is memory and a result otherwise");
  Type to = inMemory ? Type(getTarget().getType()) : Type(getValue().getType());
  Type from = getSource().getType();
  auto inArena = [](Type type) { return inSpace(cast<MemRefType>(type), MemorySpace::Device); };
  if (inMemory ? inArena(from) != inArena(to) : from != to)
    return emitOpError("copies ") << from << " to " << to;
  if (isOffloaded(from) && isOffloaded(to))
    return emitOpError("copies from ") << arenaText(spaceOf(from)) << " to " << arenaText(spaceOf(to))
                                       << "; one end is in the arena";
  return success();
}

void CopyOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  addEffect(effects, MemoryEffects::Read::get(), getSourceMutable());
  for (OpOperand &operand : getTargetMutable())
    addEffect(effects, MemoryEffects::Write::get(), operand);
}

static LogicalResult verifyOneIndex(Operation *op, MemRefType type) {
  if (type.getNumElements() != 1 || !type.getElementType().isInteger(32))
    return op->emitOpError("writes one i32, not ") << type;
  return success();
}
LogicalResult StoreIndexOp::verify() { return verifyOneIndex(*this, getTarget().getType()); }
LogicalResult StoreOffsetOp::verify() {
  int64_t size = getSize();
  if (size < 0 || size > std::numeric_limits<int32_t>::max())
    return emitOpError("of parts of ") << size << " elements is not an index of 32 bits";
  if (int64_t(getShift()) < 0 || int64_t(getShift()) >= int64_t(getMembers()))
    return emitOpError("shifts by ")
           << int64_t(getShift()) << " of " << int64_t(getMembers()) << " ranks";
  return verifyOneIndex(*this, getTarget().getType());
}

//===--- kernels ------------------------------------------------------------===//

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<func::FuncOp>(*this, getKernelAttr());
  if (!kernel || !kernel->hasAttr(kernelAttr))
    return emitOpError("names ") << getKernelAttr() << ", which is not a kernel";
  bool inMemory = getNumResults() == 0;
  if (!inMemory && (!getOutputs().empty() || getWorkspace()))
    return emitOpError("has both results and memory to write to");
  auto check = [&](TypeRange have, TypeRange want, StringRef what) -> LogicalResult {
    if (have.size() != want.size())
      return emitOpError("has ") << have.size() << " " << what << "s but " << getKernelAttr()
                                 << " has " << want.size();
    for (auto [i, pair] : llvm::enumerate(llvm::zip(have, want))) {
      auto [type, tensor] = pair;
      auto shaped = cast<ShapedType>(tensor);
      // A kernel does not know whether its memory is on the device (`exec-offload`).
      if (auto memory = dyn_cast<MemRefType>(type))
        type = inSpace(memory, MemorySpace::Device);
      Type wanted = inMemory
                        ? Type(MemRefType::get(shaped.getShape(), shaped.getElementType()))
                        : Type(RankedTensorType::get(shaped.getShape(), shaped.getElementType()));
      if (type != wanted)
        return emitOpError(what) << " " << i << " is " << type << " but " << getKernelAttr()
                                 << " has " << wanted;
    }
    return success();
  };
  if (failed(check(getInputs().getTypes(), kernel.getArgumentTypes(), "input")) ||
      failed(check(inMemory ? TypeRange(getOutputs().getTypes()) : TypeRange(getResultTypes()),
                   kernel.getResultTypes(), "output")))
    return failure();
  if (!inMemory)
    return success();
  auto bytes = kernel->getAttrOfType<IntegerAttr>(workspaceAttr);
  int64_t wanted = bytes ? bytes.getInt() : 0,
          given = getWorkspace() ? bytesOf(getWorkspace().getType()) : 0;
  if (given != wanted)
    return emitOpError("gives ") << given << " bytes of workspace but " << getKernelAttr()
                                 << " needs " << wanted;
  return success();
}

void LaunchOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  for (OpOperand &operand : getInputsMutable())
    addEffect(effects, MemoryEffects::Read::get(), operand);
  for (OpOperand &operand : getOutputsMutable())
    addEffect(effects, MemoryEffects::Write::get(), operand);
  for (OpOperand &operand : getWorkspaceMutable())
    addEffect(effects, MemoryEffects::Write::get(), operand);
}

//===--- calls --------------------------------------------------------------===//

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto callee = symbols.lookupNearestSymbolFrom<ProgramOp>(*this, getCalleeAttr());
  if (!callee || !callee.isPrivate())
    return emitOpError("names ") << getCalleeAttr() << ", which is not a private program";
  auto check = [&](TypeRange have, ValueRange want, StringRef what) -> LogicalResult {
    if (have == want.getTypes())
      return success();
    return emitOpError("gives ") << have << " as '" << what << "' but " << getCalleeAttr()
                                 << " takes " << want.getTypes();
  };
  if (failed(check(getInputs().getTypes(), callee.getInputs(), "ins")) ||
      failed(check(getUpdated().getTypes(), callee.getUpdated(), "inouts")) ||
      failed(check(getOutputs().getTypes(), callee.getOutputs(), "outs")))
    return failure();
  auto bytes = callee->getAttrOfType<IntegerAttr>(arenaBytesAttr);
  int64_t wanted = bytes ? bytes.getInt() : 0,
          given = getWorkspace() ? bytesOf(getWorkspace().getType()) : 0;
  if (given != wanted)
    return emitOpError("gives ") << given << " bytes of workspace but " << getCalleeAttr()
                                 << " needs " << wanted;
  return success();
}

//===--- library calls ------------------------------------------------------===//

/// What cannot be together in an epilogue.
static LogicalResult verifyEpilogue(Operation *op, bool gelu, Value addend, Value bias, Value slope,
                                    bool sums) {
  if (sums && (gelu || bias || slope))
    return op->emitOpError("makes sums of a factor; nothing else but an addend goes with them");
  if (slope && (gelu || addend || bias))
    return op->emitOpError("multiplies by the derivative of gelu; nothing else is done then");
  return success();
}

SmallVector<int64_t> exec::summedDims(const ShardingRule &rule, unsigned operand) {
  SmallVector<int64_t> dims;
  for (auto [dim, factors] : llvm::enumerate(rule.operands[operand].dims))
    if (llvm::none_of(factors, [&](unsigned factor) {
          return llvm::any_of(rule.results[0].dims,
                              [&](auto &kept) { return llvm::is_contained(kept, factor); });
        }))
      dims.push_back(int64_t(dim));
  return dims;
}

ShardingRule ProductOp::getProductRule() {
  std::string error;
  ArrayRef<int64_t> lhs = cast<RankedTensorType>(getLhs().getType()).getShape();
  ArrayRef<int64_t> rhs = cast<RankedTensorType>(getRhs().getType()).getShape();
  FailureOr<ShardingRule> rule =
      parseShardingRule(getRule(), {int64_t(lhs.size()), int64_t(rhs.size())}, error);
  if (failed(rule) || failed(inferFactorSizes(*rule, {lhs, rhs}, {}, error)))
    return ShardingRule();
  return *rule;
}

LogicalResult ProductOp::verify() {
  Type result = getResult().getType();
  ShardingRule rule = getProductRule();
  if (rule.operands.size() != 2 || rule.results.size() != 1 ||
      ArrayRef(shapeOf(rule, rule.results[0])) != cast<RankedTensorType>(result).getShape())
    return emitOpError("rule '") << getRule() << "' does not make " << result << " of "
                                 << getLhs().getType() << " and " << getRhs().getType();
  if (failed(verifyEpilogue(*this, getGelu(), getAddend(), getBias(), getSlopeAt(),
                            getBiasGrad().has_value())))
    return failure();
  if (bool(getBeside()) != getBiasGrad().has_value() && !getGelu())
    return emitOpError("has a second result with gelu or bias_grad, and with these alone");
  for (Value like : SmallVector<Value>{getAddend(), getSlopeAt(), getPreactivation()})
    if (like && like.getType() != result)
      return emitOpError("has an epilogue on ") << like.getType() << " for a result " << result;
  if (getBias()) {
    auto bias = cast<RankedTensorType>(getBias().getType());
    ArrayRef<int64_t> shape = cast<RankedTensorType>(result).getShape();
    if (bias.getElementType() != getElementTypeOrSelf(result) ||
        bias.getShape() != shape.take_back(bias.getRank()))
      return emitOpError("adds ") << bias << " to " << result;
  }
  if (getBiasGrad()) {
    auto factor = cast<RankedTensorType>(getOperand(*getBiasGrad()).getType());
    SmallVector<int64_t> summed = summedDims(rule, *getBiasGrad()), shape;
    for (auto [dim, size] : llvm::enumerate(factor.getShape()))
      if (!llvm::is_contained(summed, int64_t(dim)))
        shape.push_back(size);
    auto wanted = RankedTensorType::get(shape, getElementTypeOrSelf(result));
    if (getBeside().getType() != wanted)
      return emitOpError("makes ") << wanted << " of factor " << *getBiasGrad() << ", not "
                                   << getBeside().getType();
  }
  return success();
}

void MatmulOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  addEffect(effects, MemoryEffects::Read::get(), getAMutable());
  addEffect(effects, MemoryEffects::Read::get(), getBMutable());
  if (!getBeta().isZero())
    addEffect(effects, MemoryEffects::Read::get(), getCMutable());
  addEffect(effects, MemoryEffects::Write::get(), getCMutable());
  for (MutableOperandRange read : {getAddendMutable(), getBiasMutable(), getSlopeAtMutable()})
    for (OpOperand &operand : read)
      addEffect(effects, MemoryEffects::Read::get(), operand);
  for (MutableOperandRange written : {getPreactivationMutable(), getSumAMutable(),
                                      getSumBMutable(), getWorkspaceMutable()})
    for (OpOperand &operand : written)
      addEffect(effects, MemoryEffects::Write::get(), operand);
}

static bool isComputedWith(Type element) {
  return isa<Float32Type, BFloat16Type, Float16Type>(element);
}

ProductShape MatmulOp::getShape() {
  ProductShape shape{getTransA(), getTransB(), int64_t(getM()), int64_t(getN()), int64_t(getK())};
  shape.ldc = getLdc();
  shape.batch = getBatch();
  shape.mixed = isMixed();
  shape.result = getC().getType().getElementType();
  return shape;
}

SmallVector<Epilogue> MatmulOp::getEpilogues() {
  SmallVector<Epilogue> epilogues;
  auto add = [&](bool there, Epilogue::Kind kind, unsigned factor = 0) {
    if (there)
      epilogues.push_back({kind, /*tanh=*/true, factor});
  };
  add(bool(getAddend()), Epilogue::Addend);
  add(bool(getBias()), Epilogue::Bias);
  add(getGelu(), Epilogue::Gelu);
  add(bool(getSlopeAt()), Epilogue::GeluGrad);
  add(bool(getSumA()), Epilogue::BiasGrad, 0);
  add(bool(getSumB()), Epilogue::BiasGrad, 1);
  return epilogues;
}

bool MatmulOp::isMixed() {
  return !getA().getType().getElementType().isF32() || !getC().getType().getElementType().isF32();
}

/// One behind the last element of `batch` matrices; nothing where that is no number of 64 bits.
static std::optional<int64_t> endOf(int64_t batch, int64_t stride, int64_t rows, int64_t ld,
                                    int64_t columns) {
  int64_t matrix, row, end;
  if (llvm::MulOverflow(batch - 1, stride, matrix) || llvm::MulOverflow(rows - 1, ld, row) ||
      llvm::AddOverflow(matrix, row, end) || llvm::AddOverflow(end, columns, end))
    return {};
  return end;
}

/// Whether matrices have each of `elements` elements once: rows and matrices follow each other without
/// gaps, the one inside the other in either order.
static bool covers(int64_t elements, int64_t batch, int64_t stride, int64_t rows, int64_t ld,
                   int64_t columns) {
  std::pair<int64_t, int64_t> outer[] = {{ld, rows}, {stride, batch}};
  if (batch > 1 && (rows == 1 || stride < ld))
    std::swap(outer[0], outer[1]);
  int64_t covered = columns;
  for (auto [distance, count] : outer) {
    if (count > 1 && distance != covered)
      return false;
    covered *= count;
  }
  return covered == elements;
}

LogicalResult MatmulOp::verify() {
  auto check = [&](StringRef name, Value memory, int64_t rows, int64_t columns, int64_t ld,
                   int64_t stride) -> LogicalResult {
    auto type = cast<MemRefType>(memory.getType());
    if (!isComputedWith(type.getElementType()))
      return emitOpError("multiplies matrices of f32, bf16 or f16, but ") << name << " is " << type;
    if (ld < columns)
      return emitOpError(name) << " has rows of " << columns << " elements, " << ld << " apart";
    if (stride < 0)
      return emitOpError(name) << " has matrices " << stride << " elements apart; they follow each other";
    std::optional<int64_t> end = endOf(getBatch(), stride, rows, ld, columns);
    if (!end || *end > type.getNumElements())
      return emitOpError(name) << " reaches element " << (end ? std::to_string(*end) : "2^63")
                               << " of " << type;
    return success();
  };
  int64_t m = getM(), n = getN(), k = getK();
  if (m < 1 || n < 1 || k < 1 || int64_t(getBatch()) < 1)
    return emitOpError("needs positive sizes");
  if (getA() == getC() || getB() == getC())
    return emitOpError("cannot write over one of its factors");
  if (getA().getType().getElementType() != getB().getType().getElementType())
    return emitOpError("multiplies ")
           << getA().getType() << " by " << getB().getType() << "; factors have one element type";
  const Target &target = targetOf(*this).getTarget();
  ProductShape shape = getShape();
  int64_t wanted = target.getProductWorkspace(shape);
  int64_t given = getWorkspace() ? bytesOf(getWorkspace().getType()) : 0;
  if (given != wanted)
    return emitOpError("gives ") << given << " bytes of workspace where " << wanted
                                 << " are needed";
  if (failed(
          check("a", getA(), getTransA() ? k : m, getTransA() ? m : k, getLda(), getStrideA())) ||
      failed(check("b", getB(), getTransB() ? n : k, getTransB() ? k : n, getLdb(), getStrideB())))
    return failure();
  if (failed(check("c", getC(), m, n, getLdc(), getStrideC())))
    return failure();
  if (!covers(getC().getType().getNumElements(), getBatch(), getStrideC(), m, getLdc(), n))
    return emitOpError("does not write each element of c, ")
           << getC().getType() << ", once: " << int64_t(getBatch()) << " matrices of " << m << " x "
           << n << " with rows " << int64_t(getLdc()) << " and matrices "
           << int64_t(getStrideC()) << " elements apart";
  if (!hasEpilogue())
    return success();
  if (getAlpha().convertToFloat() != 1 || !getBeta().isZero())
    return emitOpError("has an epilogue, which goes with alpha 1 and beta 0");
  for (const Epilogue &epilogue : getEpilogues())
    if (!target.canFuse(epilogue, shape))
      return emitOpError("has an epilogue that target ")
             << target.getName() << " does not make with this product";
  if (failed(verifyEpilogue(*this, bool(getGelu()), getAddend(), getBias(), getSlopeAt(),
                            getSumA() || getSumB())))
    return failure();
  if (getPreactivation() && !getGelu())
    return emitOpError("keeps the input of gelu, but has no gelu");
  for (Value like : {getAddend(), getSlopeAt(), getPreactivation()})
    if (like && cast<MemRefType>(like.getType()).getNumElements() !=
                    getC().getType().getNumElements())
      return emitOpError("has an epilogue on ") << like.getType() << " for a result " << getC().getType();
  for (Value like : {getAddend(), getBias(), getSlopeAt(), getPreactivation(), getSumA(), getSumB()})
    if (like && getElementTypeOrSelf(like) != getElementTypeOrSelf(getC()))
      return emitOpError("has an epilogue on ") << like.getType() << " for a result " << getC().getType();
  if (getBias() && bytesOf(getBias().getType()) != n * bytesOf(getC().getType()) /
                                                       getC().getType().getNumElements())
    return emitOpError("adds ") << getBias().getType() << " to rows of " << n;
  if (getSumA() && getSumB())
    return emitOpError("makes the sums of one factor at most");
  for (auto [sums, size] : {std::pair(getSumA(), m), std::pair(getSumB(), n)})
    if (sums && sums.getType().getNumElements() != size)
      return emitOpError("makes ") << size << " sums, not " << sums.getType();
  return success();
}

LogicalResult TargetAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, StringRef name,
                                 DictionaryAttr parameters) {
  const Target *target = findTarget(name);
  if (!target)
    return emitError() << "target '" << name << "' is unknown; there are " << targetNames();
  return parameters ? target->verify(emitError, parameters) : success();
}

const Target &TargetAttr::getTarget() const { return *findTarget(getName()); }

TargetAttr exec::targetOf(Operation *op) {
  MLIRContext *context = op->getContext();
  for (; op; op = op->getParentOp())
    if (auto target = op->getAttrOfType<TargetAttr>(targetAttr); target && isa<ModuleOp>(op))
      return target;
  return TargetAttr::get(context, getDefaultTarget().getName(), DictionaryAttr());
}

void AttentionOp::build(OpBuilder &b, OperationState &state, Value q, Value k, Value v,
                        const train::AttentionOptions &o, Value before, Value beforeLse, Value out,
                        Value lse, Value workspace, train::AttentionAttr spec, Attribute library,
                        StringAttr reason) {
  build(b, state, q, k, v, o.ids, o.key, o.headOffset, o.queryOffset, o.keyOffset, o.positions,
        o.lengths, o.slopes, o.sinks, o.distances, before, beforeLse, out, lse, workspace, spec,
        library, reason);
}

void AttentionGradOp::build(OpBuilder &b, OperationState &state, ValueRange x,
                            const train::AttentionOptions &o, ValueRange dx, Value dsinks,
                            Value ddistances, Value workspace, train::AttentionAttr spec,
                            Attribute library, StringAttr reason) {
  build(b, state, x[0], x[1], x[2], x[3], x[4], x[5], o.ids, o.key, o.headOffset, o.queryOffset,
        o.keyOffset, o.positions, o.lengths, o.slopes, o.sinks, o.distances, dx[0], dx[1], dx[2],
        dsinks, ddistances, workspace, spec, library, reason);
}

template <typename Op> static MwAttention describe(Op op) {
  return train::describeCall(op.getQ().getType(), op.getK().getType(), op.getV().getType(),
                             op.getSpec().getValue(), op.getOptions());
}

/// `gradients`: of out, q, k, v, and the sinks and the distances, which may be absent; or none.
template <typename Op> static LogicalResult verifyAttention(Op op, ArrayRef<Value> gradients) {
  MemRefType q = op.getQ().getType(), k = op.getK().getType(), v = op.getV().getType(),
             lse = op.getLse().getType();
  if (q.getRank() != 4 || k.getRank() != 4 || v.getRank() != 4)
    return op.emitOpError("needs q, k and v of four dimensions, found ")
           << q << ", " << k << " and " << v;
  if (op.getSpec()->heads < 1 || op.getSpec()->queries < 1)
    return op.emitOpError("says of how many heads and queries of whole sequences it is a part, found ")
           << op.getSpec()->heads << " and " << op.getSpec()->queries;
  auto withDepth = [&](MemRefType like, int64_t depth) -> MemRefType {
    SmallVector<int64_t> shape(like.getShape());
    shape.back() = depth;
    return MemRefType::get(shape, like.getElementType(), like.getLayout(), like.getMemorySpace());
  };
  // What a part of the keys gives is in f32.
  auto result = [&](MemRefType like) -> MemRefType {
    return op.getKeyOffset() ? MemRefType::Builder(like).setElementType(lse.getElementType()) : like;
  };
  auto perHead = [&](Value value) -> Type {
    auto type = value ? cast<MemRefType>(value.getType()) : lse;
    return MemRefType::get({q.getDimSize(2)}, lse.getElementType(), type.getLayout(),
                           type.getMemorySpace());
  };
  SmallVector<std::pair<Value, Type>> wanted = {{op.getV(), withDepth(k, v.getDimSize(3))},
                                                {op.getOut(), gradients.empty() ? result(withDepth(q, v.getDimSize(3))) : withDepth(q, v.getDimSize(3))}};
  if (!gradients.empty())
    wanted.append({{gradients[0], op.getOut().getType()},
                   {gradients[1], result(q)},
                   {gradients[2], result(k)},
                   {gradients[3], result(v)},
                   {gradients[4], perHead(gradients[4])}});
  if (!gradients.empty() && gradients[5] && op.getDistances())
    wanted.push_back({gradients[5], MemRefType::get(op.getDistances().getType().getShape(), lse.getElementType(),
                                                    cast<MemRefType>(gradients[5].getType()).getLayout(),
                                                    lse.getMemorySpace())});
  for (auto [value, type] : wanted)
    if (value && value.getType() != type)
      return op.emitOpError("expects ") << type << ", found " << value.getType();
  if (!gradients.empty() && bool(gradients[4]) != bool(op.getSinks()))
    return op.emitOpError("has a gradient of sinks exactly when it has sinks");
  if (!gradients.empty() && bool(gradients[5]) != bool(op.getDistances()))
    return op.emitOpError("has a gradient of distances exactly when it has distances");
  if (!isComputedWith(q.getElementType()) || k.getElementType() != q.getElementType() ||
      !lse.getElementType().isF32())
    return op.emitOpError("works on q, k and v in f32, bf16 or f16 and lse in f32, found ")
           << q << ", " << k << " and " << lse;
  MwAttention shape = describe(op);
  if (k.getDimSize(0) != shape.batch || k.getDimSize(3) != shape.headDim ||
      shape.kvHeads < 1 || shape.heads % shape.kvHeads != 0)
    return op.emitOpError("queries ") << q << " do not fit keys " << k;
  if (lse.getShape() != ArrayRef<int64_t>{shape.batch, shape.heads, shape.queries})
    return op.emitOpError("lse is ") << lse << ", expected [batch, heads, queries]";
  if (failed(train::verifyAttentionCall([&] { return op.emitOpError(); }, op.getSpec().getValue(), op.getOptions(),
                                    {shape.batch, shape.heads, shape.globalQueries, shape.globalKeys},
                                    lse.getElementType())))
    return failure();
  const Target &target = targetOf(op).getTarget();
  if (shape.partial && !target.hasPartialAttention())
    return op.emitOpError("is of a part of the keys, and target ")
           << target.getName()
           << " computes attention of all keys in one call; compile with --context-parallel gather or ulysses";
  if (Attribute library = op.getLibraryAttr();
      library && failed(target.verifyLibrary([&] { return op.emitOpError(); }, library)))
    return failure();
  if (Attribute library = op.getLibraryAttr()) {
    int64_t wanted = target.getAttentionWorkspace(shape, isa<AttentionGradOp>(op), library);
    int64_t given = op.getWorkspace() ? bytesOf(op.getWorkspace().getType()) : 0;
    if (given < wanted)
      return op.emitOpError("gives ") << given << " bytes of workspace where its library may need "
                                      << wanted;
  }
  return success();
}

MwAttention AttentionOp::getAttention() { return describe(*this); }
MwAttention AttentionGradOp::getAttention() { return describe(*this); }

LogicalResult AttentionOp::verify() {
  if (bool(getBefore()) != bool(getBeforeLse()) || (getBefore() && !getKeyOffset()))
    return emitOpError("takes before and before_lse with key_offset alone, and both");
  if (getBefore() && (getBefore().getType() != getOut().getType() ||
                      getBeforeLse().getType() != getLse().getType()))
    return emitOpError("expects before like ") << getOut().getType() << " and " << getLse().getType();
  return verifyAttention(*this, {});
}
LogicalResult AttentionGradOp::verify() {
  return verifyAttention(*this, {getDout(), getDq(), getDk(), getDv(), getDsinks(), getDdistances()});
}

//===--- communication ------------------------------------------------------===//

LogicalResult SendOp::verify() {
  if (bytesOf(getBuffer().getType()) < bytesOf(getInput().getType()))
    return emitOpError("cannot put ") << getInput().getType() << " into " << getBuffer().getType();
  return success();
}

SmallVector<int64_t> ExchangeOp::getTable() {
  int64_t reduction = !getKind() ? -1 : *getKind() == train::ReduceKind::Max ? MW_MAX : MW_SUM;
  SmallVector<int64_t> table{reduction, int64_t(getPieces()), int64_t(getLength())};
  for (ArrayRef<int64_t> list : {getTo(), getSend(), getFrom(), getReceive()})
    llvm::append_range(table, list);
  return table;
}

int64_t ExchangeOp::getReceivedBytes() {
  SmallVector<int64_t> wide = getTable();
  SmallVector<int32_t> numbers(wide.begin(), wide.end());
  ExchangeTable table{numbers.data(), int64_t(getTo().size())};
  int64_t most = 0;
  for (int64_t rank = 0; rank < table.ranks; ++rank) {
    int64_t sum = 0;
    if (table.from(rank) >= 0)
      for (Value memory : getMemory()) {
        auto type = cast<MemRefType>(memory.getType());
        sum += table.pieces(type.getNumElements(), table.receive(rank)).length() *
               llvm::divideCeil(type.getElementTypeBitWidth(), 8);
      }
    most = std::max(most, sum);
  }
  return most;
}

LogicalResult ExchangeOp::verify() {
  if (getMemory().empty())
    return emitOpError("moves no tensor");
  for (Value memory : getMemory())
    if (getElementTypeOrSelf(memory) != getElementTypeOrSelf(getMemory().front()))
      return emitOpError("moves tensors of one element type in a call, found ")
             << getMemory().front().getType() << " and " << memory.getType();
  if (failed(verifyExchange(*this, getMemory(), getTo().size())))
    return failure();
  int64_t wanted = getKind() ? getReceivedBytes() : 0;
  int64_t given = getWorkspace() ? bytesOf(getWorkspace().getType()) : 0;
  if (given != wanted)
    return emitOpError("gives ") << given << " bytes of workspace where " << wanted
                                 << " are needed";
  return success();
}
