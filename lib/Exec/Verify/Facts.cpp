//===- Facts.cpp - what attributes say of kernels and calls -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Facts.h"

#include "Dist/AttentionPairs.h"
#include "Dist/Dist.h"
#include "meshwright/KernelLoops.h"
#include "meshwright/runtime/AttentionMask.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

LogicalResult exec::verifyKernelFacts(func::FuncOp kernel, const ScheduleLimits &limits) {
  if (kernel.isExternal())
    return kernel.emitOpError("is a kernel without a body");
  auto loops = codegen::buildKernelLoops(kernel, limits);
  if (failed(loops))
    return failure();
  auto workspace = kernel->getAttrOfType<IntegerAttr>(workspaceAttr);
  if (int64_t given = workspace ? workspace.getInt() : 0; given != loops->workspace)
    return kernel.emitOpError("attribute '")
           << workspaceAttr << "' is " << given << ", but its loop nests need " << loops->workspace
           << " bytes";
  Builder b(kernel.getContext());
  SmallVector<Attribute> templates;
  SmallVector<int64_t> iterations, chunks;
  for (const codegen::LoopNest &nest : loops->nests) {
    templates.push_back(b.getStringAttr(nest.getTemplate()));
    iterations.push_back(nest.iterations);
    chunks.push_back(nest.chunks);
  }
  for (auto [name, found] :
       {std::pair<StringRef, Attribute>(templateAttr, b.getArrayAttr(templates)),
        {iterationsAttr, b.getDenseI64ArrayAttr(iterations)},
        {chunksAttr, b.getDenseI64ArrayAttr(chunks)}})
    if (Attribute said = kernel->getAttr(name); said && said != found)
      return kernel.emitOpError("attribute '") << name << "' is " << said
                                               << ", but its loop nests are " << found;
  if (auto pairs = kernel->getAttrOfType<ArrayAttr>(inplaceAttr))
    for (Attribute pair : pairs) {
      auto at = [&](unsigned i) { return unsigned(cast<IntegerAttr>(cast<ArrayAttr>(pair)[i]).getInt()); };
      if (!llvm::is_contained(loops->inplace, std::pair(at(0), at(1))))
        return kernel.emitOpError("attribute '")
               << inplaceAttr << "' lets result " << at(1) << " be the same memory as argument "
               << at(0) << ", which is read after it is written, or not as it is written";
    }
  return success();
}

/// Pairs of a query and a key that the device has whose queries and keys begin at these positions.
static int64_t pairsOf(const MwAttention &shape, int64_t firstQuery, int64_t firstKey) {
  int64_t sum = 0,
          pastQuery = std::min(firstQuery + shape.queries * shape.queryStride, shape.globalQueries),
          pastKey = std::min(firstKey + shape.keys * shape.keyStride, shape.globalKeys);
  for (int64_t query = firstQuery; query < pastQuery; query += shape.queryStride)
    sum += attentionMaskOf(shape).visibleKeys(query, pastKey, firstKey, shape.keyStride);
  return sum;
}

template <typename Op> static LogicalResult verifyAttentionFacts(Op op) {
  auto numbers = [&](StringRef name) { return op->template getAttrOfType<DenseI64ArrayAttr>(name); };
  DenseI64ArrayAttr pairs = numbers(dist::attentionPairsAttr),
                    queries = numbers(dist::firstQueriesAttr), keys = numbers(dist::firstKeysAttr);
  if (!pairs && !queries && !keys)
    return success();
  dist::Mesh mesh;
  for (auto found : op->template getParentOfType<ModuleOp>().template getOps<dist::MeshOp>())
    mesh = found.getMesh();
  MwAttention shape = op.getAttention();
  auto axes = op->template getAttrOfType<ArrayAttr>(dist::dividedOverAttr);
  int64_t devices = axes ? 1 : mesh.size();
  for (Attribute name : axes ? axes.getValue() : ArrayRef<Attribute>()) {
    int axis = mesh.find(cast<StringAttr>(name).getValue());
    if (axis < 0)
      return op.emitOpError("attribute '") << dist::dividedOverAttr << "' names axis " << name
                                           << ", which the mesh does not have";
    devices *= mesh.axes[axis].size;
  }
  auto error = [&](StringRef name, DenseI64ArrayAttr list) {
    return op.emitOpError("attribute '") << name << "' is " << Attribute(list) << "; ";
  };
  for (auto [name, list, end] : {std::tuple(StringRef(dist::firstQueriesAttr), queries, shape.globalQueries),
                                 {StringRef(dist::firstKeysAttr), keys, shape.globalKeys}}) {
    if (!list)
      continue;
    if (!axes || list.size() != devices)
      return error(name, list) << "expected a position for each of " << devices << " devices";
    // Some devices may have the padding that makes parts equal, and nothing else.
    int64_t padded = llvm::alignTo(end, mesh.size());
    for (int64_t position : list.asArrayRef())
      if (position < 0 || position >= padded)
        return error(name, list) << "expected positions of a sequence of " << end
                                 << ", or of its padding to " << padded;
  }
  if (!pairs)
    return success();
  if (axes ? pairs.size() != devices : devices % std::max<int64_t>(1, pairs.size()) != 0)
    return error(dist::attentionPairsAttr, pairs)
           << "expected a number for each device of a group of the mesh, which has " << devices;
  for (auto [device, said] : llvm::enumerate(pairs.asArrayRef())) {
    int64_t most = shape.queries * shape.keys;
    if (said < 0 || said > most)
      return error(dist::attentionPairsAttr, pairs)
             << "expected at most " << most << " pairs of " << shape.queries << " queries and "
             << shape.keys << " keys";
    if (!queries)
      continue;
    int64_t found = pairsOf(shape, queries[device], keys ? keys[device] : 0);
    if (said != found)
      return error(dist::attentionPairsAttr, pairs)
             << "expected " << found << " pairs of device " << device
             << ", whose first query is at position " << queries[device];
  }
  return success();
}

LogicalResult exec::verifyAttentionFacts(Operation *op) {
  if (auto forward = dyn_cast<AttentionOp>(op))
    return ::verifyAttentionFacts(forward);
  if (auto backward = dyn_cast<AttentionGradOp>(op))
    return ::verifyAttentionFacts(backward);
  return success();
}

LogicalResult exec::verifyScratchMemory(Operation *op) {
  const Target &target = targetOf(op).getTarget();
  auto check = [](auto call, int64_t needed) -> LogicalResult {
    int64_t given = call.getWorkspace() ? bytesOf(call.getWorkspace().getType()) : 0;
    if (given >= needed)
      return success();
    return call.emitOpError("gives ") << given << " bytes of workspace where " << needed
                                      << " are needed";
  };
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](AttentionOp call) {
        return check(call, target.getAttentionWorkspace(call.getAttention(), /*backward=*/false,
                                                        call.getLibraryAttr()));
      })
      .Case([&](AttentionGradOp call) {
        return check(call, target.getAttentionWorkspace(call.getAttention(), /*backward=*/true,
                                                        call.getLibraryAttr()));
      })
      .Case([&](RouteOp call) { return check(call, target.getRouteWorkspace(call.getShape())); })
      .Case([&](GroupedMatmulOp call) {
        return check(call, target.getGroupedWorkspace(call.getShape(), call.getGroups(),
                                                      /*gradient=*/false));
      })
      .Case([&](GroupedMatmulGradOp call) {
        return check(call, target.getGroupedWorkspace(call.getShape(), call.getGroups(),
                                                      /*gradient=*/true));
      })
      .Default(success());
}
