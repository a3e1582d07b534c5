//===- Experts.cpp - kernels of mixtures of experts -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CUDA/Experts.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;

std::optional<std::string> cuda::ExpertKernels::nameFor(Operation *op, bool aligned,
                                                        int64_t size) {
  // What functions compute depends on types, on a number that these do not say, and on attributes that
  // are alone in being units.
  std::string key;
  llvm::raw_string_ostream os(key);
  os << op->getName() << " aligned " << aligned << " size " << size;
  for (Type type : op->getOperandTypes())
    os << " " << type;
  for (NamedAttribute attribute : op->getAttrs())
    if (isa<UnitAttr>(attribute.getValue()))
      os << " " << attribute.getName();
  calls[op] = key;
  if (functions.count(key))
    return std::nullopt;
  return (op->getName().stripDialect() + "$" + Twine(functions.size())).str();
}

/// Whether there is scratch memory of `bytes`; IR that was written by hand may have less.
static LogicalResult checkWorkspace(Operation *op, Value workspace, int64_t bytes) {
  int64_t there = workspace ? exec::bytesOf(workspace.getType()) : 0;
  if (there >= bytes)
    return success();
  return op->emitOpError("needs a workspace of ") << bytes << " bytes, and has one of " << there;
}

LogicalResult cuda::ExpertKernels::add(exec::RouteOp op, bool aligned, gpu::GPUModuleOp target) {
  exec::RouteShape shape = op.getShape();
  if (shape.experts > 4096 || shape.k > 64)
    return op.emitOpError("has ") << shape.experts << " experts, of which a token chooses "
                                  << shape.k << ", too many for a block of threads; up to 4096 "
                                  << "experts and 64 choices work";
  if (failed(checkWorkspace(op, op.getWorkspace(), routeWorkspace(shape))))
    return failure();
  if (auto name = nameFor(op, aligned, shape.capacity))
    functions[calls[op]] = emitRoute(op, *name, target);
  return success();
}

LogicalResult cuda::ExpertKernels::add(exec::RoundsOp op, bool aligned, gpu::GPUModuleOp target) {
  if (auto name = nameFor(op, aligned, int64_t(op.getSlots())))
    functions[calls[op]] = emitRounds(op, *name, target);
  return success();
}

LogicalResult cuda::ExpertKernels::add(exec::RowsOfRoundOp op, bool aligned,
                                       gpu::GPUModuleOp target) {
  if (auto name = nameFor(op, aligned, int64_t(op.getParts()) << 32 | int64_t(op.getPart())))
    functions[calls[op]] = emitRounds(op, *name, target);
  return success();
}

LogicalResult cuda::ExpertKernels::add(exec::GroupedMatmulOp op, bool aligned,
                                       gpu::GPUModuleOp target) {
  if (auto name = nameFor(op, aligned))
    functions[calls[op]] = emitGrouped(op, aligned, *name, target);
  return success();
}

LogicalResult cuda::ExpertKernels::add(exec::GroupedMatmulGradOp op, bool aligned,
                                       gpu::GPUModuleOp target) {
  if (failed(checkWorkspace(op, op.getWorkspace(), groupedGradWorkspace(op.getGroups()))))
    return failure();
  if (auto name = nameFor(op, aligned))
    functions[calls[op]] = emitGrouped(op, aligned, *name, target);
  return success();
}
