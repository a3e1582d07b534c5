//===- LowerToMemory.cpp - tensor ops as calls on memory --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "LowerToMemory.h"
#include "Exec/Quantize.h"
#include "Train/Quantize.h"
#include "Dist/AttentionPairs.h"
#include "Dist/Programs.h"
#include "Exec/Kernels/Contraction.h"
#include "InsertCopies.h"
#include "Scratch.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

/// The call says so too if its op runs again what has run before.
static void markLike(Operation *op, Operation *call) {
  for (StringRef name : {train::recomputedAttr, dist::repeatedAttr})
    if (Attribute mark = op->getAttr(name))
      call->setAttr(name, mark);
}

/// Scratch memory of a call; null of none.
static Value workspaceOf(OpBuilder &builder, Operation *op, MemoryMap &map, int64_t bytes) {
  return bytes ? map.workspace(builder, op->getLoc(), bytes) : Value();
}

static LogicalResult refuseProduct(Operation *op, const std::string &error) {
  return op->emitOpError("is not one matrix product of its operands as they lie in memory: ")
         << error << "; reorder the dimensions of an operand or split the op";
}

/// A product as the library takes it, of operands 0 and 1 of `op`, or an error.
static FailureOr<MatrixProduct> productOf(Operation *op, const ShardingRule &rule) {
  std::string error;
  FailureOr<MatrixProduct> product = matrixProductOf(rule, error);
  if (failed(product))
    return refuseProduct(op, error);
  Type left = op->getOperand(0).getType(), right = op->getOperand(1).getType();
  for (Type type : {left, right, op->getResult(0).getType()})
    if (!isa<Float32Type, BFloat16Type, Float16Type>(getElementTypeOrSelf(type)))
      return op->emitOpError("has ") << type << "; matrices are multiplied in f32, bf16 or f16";
  if (getElementTypeOrSelf(left) != getElementTypeOrSelf(right))
    return op->emitOpError("multiplies ") << left << " by " << right
                                          << "; cast one of them to the element type of the other";
  return product;
}

namespace {
/// What is done with a product beside writing it.
struct FusedValues {
  Value addend, bias, slopeAt, preactivation;
  bool gelu = false;
  Value sums; ///< of operand `summed`
  unsigned summed = 0;
};
} // namespace

static void emitProduct(Operation *op, const MatrixProduct &product, bool accumulates,
                        const FusedValues &epilogue, OpBuilder &builder, MemoryMap &map) {
  auto memory = [&](Value value) { return value ? map.memory(builder, value) : Value(); };
  Value a = memory(op->getOperand(product.swapped ? 1 : 0));
  Value b = memory(op->getOperand(product.swapped ? 0 : 1));
  Value c = memory(op->getResult(0));
  Value addend = memory(epilogue.addend), bias = memory(epilogue.bias),
        slopeAt = memory(epilogue.slopeAt), preactivation = memory(epilogue.preactivation);
  Value sums = memory(epilogue.sums);
  bool ofA = product.swapped == (epilogue.summed == 1);
  ProductShape shape = shapeOf(product, getElementTypeOrSelf(a), getElementTypeOrSelf(c));
  Value workspace =
      workspaceOf(builder, op, map, targetOf(op).getTarget().getProductWorkspace(shape));
  auto call = MatmulOp::create(
      builder, op->getLoc(), a, b, c, addend, bias, slopeAt, preactivation,
      ofA ? sums : Value(), ofA ? Value() : sums, workspace,
      epilogue.gelu, product.transA, product.transB, product.m, product.n, product.k, product.lda,
      product.ldb, product.ldc, product.batch, product.strideA, product.strideB, product.strideC,
      APFloat(1.0f), APFloat(accumulates ? 1.0f : 0.0f));
  markLike(op, call);
}

static LogicalResult lowerContraction(train::ContractionOpInterface op, OpBuilder &builder,
                                      MemoryMap &map) {
  FailureOr<MatrixProduct> product = productOf(
      op, cast<train::ShardingRuleOpInterface>(op.getOperation()).getShardingRule());
  if (failed(product))
    return failure();
  auto accumulating = dyn_cast<train::AccumulatingOpInterface>(op.getOperation());
  bool accumulates = accumulating && !accumulating.getInitMutable().empty();
  emitProduct(op, *product, accumulates, FusedValues(), builder, map);
  return success();
}

static LogicalResult lowerScaledContraction(train::ScaledContractOp op, OpBuilder &builder,
                                            MemoryMap &map) {
  std::string error;
  FailureOr<MatrixProduct> product = matrixProductOf(op.getShardingRule(), error);
  if (failed(product))
    return refuseProduct(op, error);
  Value a = map.memory(builder, op.getLhs()), b = map.memory(builder, op.getRhs());
  Value scaleA = map.memory(builder, op.getLhsScale()), scaleB = map.memory(builder, op.getRhsScale());
  if (product->swapped) {
    std::swap(a, b);
    std::swap(scaleA, scaleB);
  }
  Value c = map.memory(builder, op.getResult());
  ProductShape shape = shapeOf(*product, getElementTypeOrSelf(a), getElementTypeOrSelf(c));
  Value workspace =
      workspaceOf(builder, op, map, targetOf(op).getTarget().getProductWorkspace(shape));
  auto call = ScaledMatmulOp::create(
      builder, op->getLoc(), a, b, c, scaleA, scaleB, workspace, product->transA, product->transB,
      product->m, product->n, product->k, product->lda, product->ldb, product->ldc, product->batch,
      product->strideA, product->strideB, product->strideC, APFloat(op.getInit() ? 1.0f : 0.0f));
  markLike(op, call);
  return success();
}

static LogicalResult lowerProduct(ProductOp op, OpBuilder &builder, MemoryMap &map) {
  FailureOr<MatrixProduct> product = productOf(op, op.getProductRule());
  if (failed(product))
    return failure();
  emitProduct(op, *product, /*accumulates=*/false,
              {op.getAddend(), op.getBias(), op.getSlopeAt(), op.getPreactivation(), op.getGelu(),
               op.getFactorSums(), unsigned(op.getBiasGrad().value_or(0))},
              builder, map);
  return success();
}

static LogicalResult lowerLaunch(LaunchOp op, OpBuilder &builder, MemoryMap &map) {
  auto bytes = map.kernelOf(op)->getAttrOfType<IntegerAttr>(workspaceAttr);
  Value workspace;
  if (bytes && bytes.getInt() > 0)
    workspace = map.workspace(builder, op.getLoc(), bytes.getInt());
  auto memory = [&](Value value) { return map.memory(builder, value); };
  LaunchOp::create(builder, op.getLoc(), TypeRange(), op.getKernel(),
                   llvm::map_to_vector(op.getInputs(), memory),
                   llvm::map_to_vector(op.getResults(), memory), workspace);
  return success();
}

/// The attribute with the numbers of heads and of queries, which floor 3 always has.
template <typename Op> static train::AttentionAttr specOf(Op op) {
  train::AttentionSpec spec = op.getSpec().getValue();
  spec.queries = op.getSizes().queries;
  if (spec.heads == 0)
    spec.heads = op.getSizes().heads;
  return train::AttentionAttr::get(op.getContext(), spec);
}

static Value memoryOrNull(OpBuilder &builder, MemoryMap &map, Value value) {
  return value ? map.memory(builder, value) : Value();
}

/// What each device has of the call, for the plan.
static void keepPairs(Operation *op, Operation *call) {
  for (StringRef name :
       {dist::attentionPairsAttr, dist::firstQueriesAttr, dist::firstKeysAttr})
    if (Attribute value = op->getAttr(name))
      call->setAttr(name, value);
  if (auto group = op->getAttrOfType<dist::GroupAttr>(dist::dividedOverAttr))
    call->setAttr(dist::dividedOverAttr, axesOf(group));
}

template <typename Op>
static train::AttentionOptions memoryOfOptions(Op op, OpBuilder &builder, MemoryMap &map) {
  train::AttentionOptions options = op.getOptions();
  for (const train::AttentionOption &option : train::attentionOptions)
    options.*option.member = memoryOrNull(builder, map, options.*option.member);
  return options;
}

static LogicalResult lowerAttention(train::AttentionOp op, OpBuilder &builder, MemoryMap &map) {
  auto memory = [&](Value value) { return memoryOrNull(builder, map, value); };
  // Created with no scratch first: its size is a function of the op.
  auto create = [&](Value workspace) {
    return AttentionOp::create(
        builder, op.getLoc(), memory(op.getQ()), memory(op.getK()), memory(op.getV()),
        memoryOfOptions(op, builder, map), memory(op.getBefore()), memory(op.getBeforeLse()),
        memory(op.getOut()), memory(op.getLse()), workspace, specOf(op), op->getAttr(libraryAttr),
        op->getAttrOfType<StringAttr>(reasonAttr));
  };
  auto probe = create(Value());
  int64_t bytes = scratchBytes(probe);
  probe.erase();
  AttentionOp call = create(workspaceOf(builder, op, map, bytes));
  markLike(op, call);
  keepPairs(op, call);
  return success();
}

static LogicalResult lowerAttentionGrad(train::AttentionGradOp op, OpBuilder &builder,
                                        MemoryMap &map) {
  auto memory = [&](Value value) { return memoryOrNull(builder, map, value); };
  auto create = [&](Value workspace) {
    SmallVector<Value> operands{op.getDout(), op.getQ(),   op.getK(),
                                op.getV(),    op.getOut(), op.getLse()};
    return AttentionGradOp::create(
        builder, op.getLoc(), llvm::map_to_vector(operands, memory),
        memoryOfOptions(op, builder, map),
        ValueRange{memory(op.getDq()), memory(op.getDk()), memory(op.getDv())},
        memory(op.getDsinks()), memory(op.getDdistances()), workspace, specOf(op),
        op->getAttr(libraryAttr), op->getAttrOfType<StringAttr>(reasonAttr));
  };
  auto probe = create(Value());
  int64_t bytes = scratchBytes(probe);
  probe.erase();
  keepPairs(op, create(workspaceOf(builder, op, map, bytes)));
  return success();
}

//===--- mixtures of experts ------------------------------------------------===//

/// Creates the call without scratch memory first: its size is a function of the call.
template <typename Create>
static void createWithScratch(Operation *op, OpBuilder &builder, MemoryMap &map, Create create) {
  auto probe = create(Value());
  int64_t bytes = scratchBytes(probe);
  probe.erase();
  markLike(op, create(workspaceOf(builder, op, map, bytes)));
}

static LogicalResult lowerExperts(Operation *op, OpBuilder &builder, MemoryMap &map) {
  auto memory = [&](Value value) { return map.memory(builder, value); };
  if (auto route = dyn_cast<train::RouteOp>(op)) {
    auto create = [&](Value workspace) {
      return RouteOp::create(builder, op->getLoc(), memory(route.getMask()),
                             memory(route.getChosen()), memory(route.getRows()),
                             memory(route.getChoices()), memory(route.getExperts()), workspace,
                             route.getCapacity());
    };
    createWithScratch(op, builder, map, create);
  } else if (auto rounds = dyn_cast<train::RoundsOp>(op)) {
    markLike(op, RoundsOp::create(builder, op->getLoc(), memory(rounds.getChoices()),
                                  memory(rounds.getRounds()), rounds.getSlots()));
  } else if (auto rows = dyn_cast<train::RowsOfRoundOp>(op)) {
    markLike(op, RowsOfRoundOp::create(
                     builder, op->getLoc(), rows.getRound() ? memory(rows.getRound()) : Value(),
                     memory(rows.getRows()), memory(rows.getChoices()), memory(rows.getExperts()),
                     memory(rows.getOwnRows()), memory(rows.getOwnChoices()),
                     memory(rows.getOwnExperts()), rows.getPart(), rows.getParts()));
  } else if (auto product = dyn_cast<train::GroupedLinearOp>(op)) {
    auto create = [&](Value workspace) {
      return GroupedMatmulOp::create(builder, op->getLoc(), memory(product.getX()),
                                     memory(product.getWeight()), memory(product.getExperts()),
                                     memory(product.getY()), workspace, product.getTransposed(),
                                     product.getFilled());
    };
    createWithScratch(op, builder, map, create);
  } else {
    auto grad = cast<train::GroupedLinearGradOp>(op);
    auto create = [&](Value workspace) {
      return GroupedMatmulGradOp::create(
          builder, op->getLoc(), memory(grad.getDy()), memory(grad.getX()),
          memory(grad.getExperts()), memory(grad.getResult()), workspace, bool(grad.getInit()),
          grad.getFilled());
    };
    createWithScratch(op, builder, map, create);
  }
  return success();
}

//===--- communication ------------------------------------------------------===//

ArrayAttr meshwright::exec::axesOf(dist::GroupAttr group) {
  SmallVector<Attribute> axes(group.getAxes().begin(), group.getAxes().end());
  return ArrayAttr::get(group.getContext(), axes);
}

LogicalResult meshwright::exec::checkContiguous(Operation *op, Value value, int64_t dim) {
  auto type = cast<RankedTensorType>(value.getType());
  for (int64_t size : type.getShape().take_front(dim))
    if (size != 1)
      return op->emitOpError("works along dimension ")
             << dim << " of " << type
             << ", the parts of which are not contiguous; see exec-contiguous-collectives";
  return success();
}

static SmallVector<Value> memoryOf(ValueRange values, OpBuilder &builder, MemoryMap &map) {
  return llvm::map_to_vector(values, [&](Value v) { return map.memory(builder, v); });
}

/// The call of the same name: attributes are called as the op's, but for group and reduction.
static LogicalResult lowerCollective(dist::CollectiveOpInterface op, OpBuilder &builder,
                                     MemoryMap &map) {
  SmallVector<int64_t> grow = op.getGrowingDims(), shrink = op.getShrinkingDims();
  // Blocks are exchanged: both sides have as many.
  int64_t blocks = 0;
  if (!grow.empty() && !shrink.empty()) {
    auto size = [&](Value v) { return cast<RankedTensorType>(v.getType()).getDimSize(shrink[0]); };
    blocks = size(op->getOperand(0)) / size(op->getResult(0));
  }
  auto partsOf = [&](ValueRange values, ArrayRef<int64_t> dims) -> FailureOr<SmallVector<Value>> {
    SmallVector<Value> memory;
    for (auto [i, value] : llvm::enumerate(values)) {
      int64_t dim = dims.empty() ? 0 : dims[i];
      if (failed(checkContiguous(op, value, dim)))
        return failure();
      memory.push_back(map.memory(builder, value));
      auto type = cast<MemRefType>(memory.back().getType());
      SmallVector<int64_t> shape(type.getShape().drop_front(dim));
      if (blocks)
        shape = {blocks, type.getNumElements() / blocks};
      else if (dim == 0)
        continue;
      memory.back() = ViewOp::create(builder, op.getLoc(),
                                     MemRefType::get(shape, type.getElementType()), memory.back());
    }
    return memory;
  };
  auto xs = partsOf(op->getOperands(), shrink.empty() ? grow : shrink);
  if (failed(xs))
    return failure();
  auto ys = partsOf(op->getResults(), grow.empty() ? shrink : grow);
  if (failed(ys))
    return failure();
  OperationState state(op.getLoc(), ("exec." + op->getName().stripDialect()).str());
  state.addOperands(*xs);
  state.addOperands(*ys);
  state.addAttribute("axes", axesOf(op.getGroupAttr()));
  for (StringRef same : {"root", "from"})
    if (Attribute value = op->getAttr(same))
      state.addAttribute(same, value);
  if (Attribute kind = op->getAttr("kind"))
    state.addAttribute("reduction", kind);
  if (op->hasAttr(dist::slotsAttr))
    state.addAttribute(rowAttr, builder.getI64IntegerAttr(
                                    cast<RankedTensorType>(op->getOperand(0).getType()).getShape().back()));
  if (state.name.hasTrait<OpTrait::AttrSizedOperandSegments>())
    state.addAttribute("operandSegmentSizes", builder.getDenseI32ArrayAttr(
                                                  {int32_t(xs->size()), int32_t(ys->size())}));
  builder.create(state);
  return success();
}

static LogicalResult lower(dist::ExchangeOp op, OpBuilder &builder, MemoryMap &map) {
  // Created without a workspace first: its size is a function of the op.
  auto create = [&](Value workspace) {
    return ExchangeOp::create(builder, op.getLoc(), op.getKindAttr(),
                              memoryOf(op.getYs(), builder, map), workspace, op.getPieces(),
                              op.getLength(), op.getTo(), op.getSend(), op.getFrom(),
                              op.getReceive(), axesOf(op.getGroup()));
  };
  ExchangeOp exchange = create(Value());
  int64_t bytes = exchange.getReceivedBytes();
  if (op.getKind() && bytes > 0) {
    exchange.erase();
    create(map.workspace(builder, op.getLoc(), bytes));
  }
  return success();
}

static LogicalResult lower(dist::SendOp op, OpBuilder &builder, MemoryMap &map) {
  SendOp::create(builder, op.getLoc(), map.memory(builder, op.getX()), map.sendBuffer(op),
                 op.getTo(), op.getChannel(), axesOf(op.getGroup()));
  return success();
}

static LogicalResult lower(dist::RecvOp op, OpBuilder &builder, MemoryMap &map) {
  RecvOp::create(builder, op.getLoc(), map.memory(builder, op.getY()), op.getFrom(),
                 op.getChannel(), axesOf(op.getGroup()));
  return success();
}

static LogicalResult lower(dist::OffsetOp op, OpBuilder &builder, MemoryMap &map) {
  int64_t members = 1;
  if (op.getShift()) {
    auto meshOp = SymbolTable::lookupNearestSymbolFrom<dist::MeshOp>(op, op.getGroup().getMesh());
    dist::Mesh mesh = meshOp.getMesh();
    members = mesh.size(op.getGroup().on(mesh));
  }
  StoreOffsetOp::create(builder, op.getLoc(), op.getSize(), axesOf(op.getGroup()),
                        map.memory(builder, op.getValue()), op.getShift(), members);
  return success();
}

static LogicalResult lower(func::CallOp op, OpBuilder &builder, MemoryMap &map) {
  ArrayRef<int64_t> aliases = inPlaceAliasesOf(op);
  SmallVector<Value> segments[3];
  for (OpOperand &operand : op->getOpOperands())
    segments[llvm::is_contained(aliases, int64_t(operand.getOperandNumber()))].push_back(
        map.memory(builder, operand.get()));
  for (OpResult result : op.getResults())
    if (aliases.empty() || aliases[result.getResultNumber()] < 0)
      segments[2].push_back(map.memory(builder, result));
  auto call = CallOp::create(builder, op.getLoc(), op.getCallee(), segments[0], segments[1],
                             segments[2], Value());
  if (Attribute task = op->getAttr(dist::taskAttr))
    call->setAttr(dist::taskAttr, task);
  return success();
}

LogicalResult meshwright::exec::lowerToMemory(Operation *op, OpBuilder &builder, MemoryMap &map) {
  if (auto product = dyn_cast<ProductOp>(op))
    return lowerProduct(product, builder, map);
  if (auto scaled = dyn_cast<train::ScaledContractOp>(op))
    return lowerScaledContraction(scaled, builder, map);
  if (auto contraction = dyn_cast<train::ContractionOpInterface>(op))
    return lowerContraction(contraction, builder, map);
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](LaunchOp launch) { return lowerLaunch(launch, builder, map); })
      .Case([&](train::AttentionOp attention) { return lowerAttention(attention, builder, map); })
      .Case([&](train::AttentionGradOp attention) {
        return lowerAttentionGrad(attention, builder, map);
      })
      .Case<train::RouteOp, train::RoundsOp, train::RowsOfRoundOp, train::GroupedLinearOp,
            train::GroupedLinearGradOp>(
          [&](auto experts) { return lowerExperts(experts, builder, map); })
      .Case<dist::ExchangeOp, dist::SendOp, dist::RecvOp, dist::OffsetOp, func::CallOp>(
          [&](auto local) { return lower(local, builder, map); })
      .Case([&](dist::CollectiveOpInterface op) { return lowerCollective(op, builder, map); })
      .Default([](Operation *other) {
        InFlightDiagnostic error = other->emitOpError("has no form in memory");
        if (isa<train::KernelOpInterface>(other))
          error << "; memory-bound ops are put into kernels by exec-form-kernels";
        else if (isa<dist::DistDialect>(other->getDialect()))
          error << "; of floor 2 only what is left by dist-partition has one";
        return error;
      });
}
