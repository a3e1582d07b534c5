//===- StageGroups.cpp - stages that are launched together ------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CUDA/StageGroups.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;
using namespace meshwright::codegen::cuda;

/// Whether element i of each tensor belongs to element i of the others, so that their
/// number is all that code depends on.
static bool isFlat(const Stage &stage) {
  if (stage.columns || stage.half || stage.rows(Role::Parallel) != 1)
    return false;
  int64_t elements = stage.columnSize;
  bool flat = llvm::all_of(stage.nodes, [&](const std::unique_ptr<Node> &node) {
    switch (node->kind) {
    case Node::Splat:
    case Node::Compute:
      return node->scope != Scope::Row;
    case Node::Load:
      return node->buffer->kind != Buffer::Constant &&
             node->buffer->type.getNumElements() ==
                 (node->scope == Scope::Column ? elements : 1);
    case Node::Partials:
      return node->scope == Scope::Chunk;
    default:
      return false;
    }
  });
  return flat && llvm::all_of(stage.roots, [&](const Root &root) {
           return root.kind == Root::FullSum ||
                  (root.kind == Root::Store && !root.skipWhenInPlace &&
                   root.dest->type.getNumElements() == elements);
         });
}

/// What `stage` does, whatever the sizes of its tensors.
static std::string describe(const Stage &stage, unsigned lanes) {
  std::string text;
  llvm::raw_string_ostream os(text);
  DenseMap<const Node *, unsigned> numbers;
  DenseMap<const Buffer *, unsigned> buffers;
  auto writeBuffer = [&](const Buffer *buffer) {
    os << " memory " << buffers.try_emplace(buffer, buffers.size()).first->second << " of "
       << buffer->type.getElementType();
  };
  os << "level " << stage.level << " lanes " << lanes << " column " << (stage.mainColumn >= 0)
     << " single " << (stage.columnSize == 1);
  for (auto &node : stage.nodes) {
    numbers[node.get()] = numbers.size();
    os << "\n" << int(node->kind) << " " << int(node->scope) << " " << node->getElementType();
    if (node->kind == Node::Splat)
      os << " "
         << cast<DenseElementsAttr>(cast<arith::ConstantOp>(node->op).getValue())
                .getSplatValue<Attribute>();
    if (node->kind == Node::Compute)
      os << " " << node->op->getName() << " " << node->op->getAttrDictionary() << " "
         << node->resultIndex;
    if (node->kind == Node::Partials)
      os << " " << int(node->primitive.reduction);
    for (const Node *operand : node->operands)
      os << " " << numbers.lookup(operand);
    if (node->buffer)
      writeBuffer(node->buffer);
  }
  for (const Root &root : stage.roots) {
    os << "\nroot " << int(root.kind) << " " << numbers.lookup(root.node) << " "
       << int(root.reduction) << " " << root.row;
    writeBuffer(root.dest);
  }
  return text;
}

std::vector<StageGroup> cuda::groupStages(const KernelPlan &plan, ArrayRef<int64_t> alignment) {
  std::vector<StageGroup> groups;
  SmallVector<unsigned> lanes;
  llvm::StringMap<unsigned> known;
  for (const Stage &stage : plan.stages) {
    unsigned widest = widestVector(stage, plan, alignment), number = groups.size();
    if (isFlat(stage))
      number = known.try_emplace(describe(stage, widest), number).first->second;
    if (number == groups.size()) {
      groups.emplace_back();
      lanes.push_back(widest);
    }
    groups[number].stages.push_back(&stage);
  }
  for (auto [group, widest] : llvm::zip(groups, lanes))
    group.shape = launchShapeOf(group.stages, widest);
  return groups;
}
