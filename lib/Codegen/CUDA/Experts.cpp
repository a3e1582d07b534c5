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
                                                        int64_t capacity) {
  // What functions compute depends on types, on the capacity, and on attributes that are alone in
  // being units.
  std::string key;
  llvm::raw_string_ostream os(key);
  os << op->getName() << " aligned " << aligned << " capacity " << capacity;
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

LogicalResult cuda::ExpertKernels::add(exec::RouteOp op, bool aligned, gpu::GPUModuleOp target) {
  exec::RouteShape shape = op.getShape();
  if (shape.experts > 4096 || shape.k > 64)
    return op.emitOpError("has ") << shape.experts << " experts, of which a token chooses "
                                  << shape.k << ", too many for a block of threads; up to 4096 "
                                  << "experts and 64 choices work";
  if (auto name = nameFor(op, aligned, shape.capacity))
    functions[calls[op]] = emitRoute(op, *name, target);
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
  if (auto name = nameFor(op, aligned))
    functions[calls[op]] = emitGrouped(op, aligned, *name, target);
  return success();
}
