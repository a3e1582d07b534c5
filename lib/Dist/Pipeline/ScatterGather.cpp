//===- ScatterGather.cpp - who sends which part of a value to another stage ---===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "StagePrograms.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

double StageLinks::whole(double bytes) const { return between.seconds(bytes); }

double StageLinks::shared(double bytes, int64_t devices) const {
  double part = bytes / double(devices), others = double(devices - 1);
  return between.seconds(part) + inside.seconds(others * part, others);
}

/// The axes along which devices have the same `value`, as dist-partition says.
static Axes replicatedAxes(Value value, const Mesh &mesh) {
  Operation *op = value.getDefiningOp();
  unsigned number = cast<OpResult>(value).getResultNumber();
  auto results = op->getAttrOfType<ArrayAttr>(replicatedAttr);
  Axes axes;
  if (results && number < results.size())
    for (Attribute name : cast<ArrayAttr>(results[number]))
      axes.push_back(mesh.find(cast<StringAttr>(name).getValue()));
  return axes;
}

llvm::DenseMap<Value, StageInputs::Shares> dist::findShares(const PartFunctions &functions,
                                                            MeshOp mesh, GroupAttr pipeline,
                                                            std::optional<StageLinks> links) {
  Mesh shape = mesh.getMesh();
  unsigned pipe = pipeline.on(shape)[0];
  llvm::DenseMap<Value, StageInputs::Shares> shares;
  for (auto &[part, function] : functions)
    for (Value value : function.results) {
      Axes axes = replicatedAxes(value, shape);
      // Axes further in are the faster ones.
      llvm::erase_if(axes, [&](unsigned axis) { return links ? axis <= pipe : axis == pipe; });
      int64_t devices = shape.size(axes);
      auto type = cast<RankedTensorType>(value.getType());
      ArrayRef<int64_t> sizes = type.getShape();
      const auto *dim = llvm::find_if(sizes, [&](int64_t n) { return n % devices == 0; });
      if (devices == 1 || dim == sizes.end())
        continue;
      double bytes = double(type.getNumElements()) * type.getElementTypeBitWidth() / 8;
      if (!links || links->shared(bytes, devices) < links->whole(bytes))
        shares[value] = {GroupAttr::from(pipeline.getMesh(), shape, axes), dim - sizes.begin()};
    }
  return shares;
}
