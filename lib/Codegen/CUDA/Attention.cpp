//===- Attention.cpp - generated kernels of attention -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CUDA/Attention.h"
#include "Codegen/CUDA/AttentionEmitter.h"
#include "Codegen/CUDA/Attentions.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen::cuda;

static bool hasBefore(exec::AttentionOp op) { return bool(op.getBefore()); }
static bool hasBefore(exec::AttentionGradOp) { return false; }

template <typename Op> static AttentionShape describe(Op op, bool aligned) {
  AttentionShape shape;
  shape.sizes = op.getAttention();
  shape.element = cast<MemRefType>(op.getQ().getType()).getElementType();
  shape.dropout = bool(op.getIds());
  shape.headOffset = bool(op.getHeadOffset());
  shape.queryOffset = bool(op.getQueryOffset());
  shape.keyOffset = bool(op.getKeyOffset());
  shape.positions = bool(op.getPositions());
  shape.lengths = bool(op.getLengths());
  shape.distances = bool(op.getDistances());
  shape.slopes = bool(op.getSlopes());
  shape.sinks = bool(op.getSinks());
  shape.before = hasBefore(op);
  // So are all rows then, to four elements in f32.
  shape.aligned = aligned && shape.sizes.headDim % 4 == 0 && shape.sizes.valueDim % 4 == 0;
  return shape;
}

/// What the functions of `op` compute, as text: the call's attribute and the types and shapes of its operands, but
/// for scratch memory that is cuDNN's.
template <typename Op> static std::string keyOf(Op op, const AttentionShape &shape) {
  std::string text;
  llvm::raw_string_ostream os(text);
  // No kernel reads how many pairs there are.
  train::AttentionSpec spec = op.getSpec().getValue();
  spec.pairs = 0;
  os << op->getName() << " aligned " << shape.aligned << " "
     << Attribute(train::AttentionAttr::get(op.getContext(), spec));
  train::AttentionOptions options = op.getOptions();
  for (const train::AttentionOption &option : train::attentionOptions)
    if (options.*option.member)
      os << " " << option.name;
  os << " before " << shape.before;
  for (Value operand : AttentionKernels::operandsOf(op)) {
    auto type = cast<MemRefType>(operand.getType());
    os << " " << type.getElementType();
    for (int64_t size : type.getShape())
      os << "x" << size;
  }
  return text;
}

/// Whether cuDNN makes the call or the run ends.
template <typename Op> static bool isCudnnAlone(Op op) {
  std::optional<Library> library = libraryOf(op.getLibraryAttr());
  return library && !library->fallback;
}

SmallVector<Value> AttentionKernels::operandsOf(Operation *op) {
  SmallVector<Value> operands(op->getOperands());
  if (auto forward = dyn_cast<exec::AttentionOp>(op); forward && forward.getWorkspace())
    operands.pop_back();
  return operands;
}

static LogicalResult check(Operation *op, AttentionEmitter &emitter, const AttentionShape &shape) {
  if (emitter.fits())
    return success();
  return op->emitOpError("has heads of ")
         << std::max(shape.sizes.headDim, shape.sizes.valueDim)
         << " elements, too large for a block of threads; up to 352 work";
}

LogicalResult AttentionKernels::add(exec::AttentionOp op, bool aligned,
                                    gpu::GPUModuleOp target) {
  if (isCudnnAlone(op))
    return success();
  AttentionShape shape = describe(op, aligned);
  std::string key = calls[op] = keyOf(op, shape);
  if (functions.count(key))
    return success();
  AttentionEmitter emitter(target, op.getLoc(), shape);
  if (failed(check(op, emitter, shape)))
    return failure();
  std::string name = "attention$" + std::to_string(functions.size());
  functions[key] = emitter.emitForward(name);
  return success();
}

LogicalResult AttentionKernels::add(exec::AttentionGradOp op, bool aligned,
                                    gpu::GPUModuleOp target) {
  if (isCudnnAlone(op))
    return success();
  if (op.getDistances())
    return op.emitOpError("has a gradient of distances (relative position bias), for which target cuda "
                          "has no kernel; compile with --target cpu");
  AttentionShape shape = describe(op, aligned);
  std::string key = calls[op] = keyOf(op, shape);
  if (functions.count(key))
    return success();
  AttentionEmitter emitter(target, op.getLoc(), shape);
  if (failed(check(op, emitter, shape)))
    return failure();
  std::string name = "attention_grad$" + std::to_string(functions.size());
  functions[key] = emitter.emitBackward(name);
  return success();
}
