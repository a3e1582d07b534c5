//===- Communication.cpp - numbers of groups and collectives ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/Communication.h"

#include "Dist/Dist.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;

static int64_t elements(Value memory) {
  return cast<MemRefType>(memory.getType()).getNumElements();
}

Communication::Communication(ModuleOp module) {
  dist::Mesh mesh;
  for (auto op : module.getOps<dist::MeshOp>())
    mesh = op.getMesh();
  auto members = [&](ArrayAttr axes) {
    int64_t count = 1;
    for (Attribute axis : axes)
      if (int number = mesh.find(cast<StringAttr>(axis).getValue()); number >= 0)
        count *= mesh.axes[number].size;
    return count;
  };
  auto number = [&](ArrayAttr axes) {
    unsigned group = groupOf(axes);
    if (group == groups.size())
      groups.push_back(llvm::to_vector(axes.getAsValueRange<StringAttr>()));
    return group;
  };
  auto add = [&](auto op, std::optional<train::ReduceKind> reduction, int64_t count) {
    unsigned group = number(op.getAxes());
    collectives.push_back({op, group, op.getInput(), op.getOutput(), reduction, count});
  };
  module.walk([&](Operation *op) {
    llvm::TypeSwitch<Operation *>(op)
        .Case<exec::WindowOp, exec::StoreBeginOp>([&](auto op) { (void)number(op.getAxes()); })
        .Case<exec::AllReduceOp>(
            [&](auto op) { add(op, op.getReduction(), elements(op.getInput())); })
        .Case<exec::ReduceScatterOp>(
            [&](auto op) { add(op, op.getReduction(), elements(op.getOutput())); })
        .Case<exec::AllGatherOp>([&](auto op) { add(op, std::nullopt, elements(op.getInput())); })
        .Case<exec::AllToAllOp>([&](auto op) {
          add(op, std::nullopt, elements(op.getInput()) / members(op.getAxes()));
        });
  });
}

unsigned Communication::groupOf(ArrayAttr axes) const {
  SmallVector<StringRef> names(axes.getAsValueRange<StringAttr>());
  return llvm::find(groups, names) - groups.begin();
}

int64_t Communication::find(Operation *op) const {
  for (auto [i, collective] : llvm::enumerate(collectives))
    if (collective.op == op)
      return i;
  return -1;
}
