//===- LoopNestGroups.cpp - loop nests that are launched together -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CUDA/LoopNestGroups.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;
using namespace meshwright::codegen::cuda;

/// Whether element i of each tensor belongs to element i of the others, so that their
/// number is all that code depends on.
static bool isFlat(const LoopNest &nest) {
  if (nest.columns || nest.half || nest.rows(Role::Parallel) != 1)
    return false;
  int64_t elements = nest.columnSize;
  bool flat = llvm::all_of(nest.nodes, [&](const std::unique_ptr<Node> &node) {
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
  return flat && llvm::all_of(nest.roots, [&](const Root &root) {
           return root.kind == Root::FullSum ||
                  (root.kind == Root::Store && !root.skipWhenInPlace &&
                   root.dest->type.getNumElements() == elements);
         });
}

/// What `nest` does, whatever the sizes of its tensors.
static std::string describe(const LoopNest &nest, unsigned lanes) {
  std::string text;
  llvm::raw_string_ostream os(text);
  DenseMap<const Node *, unsigned> numbers;
  DenseMap<const Buffer *, unsigned> buffers;
  auto writeBuffer = [&](const Buffer *buffer) {
    os << " memory " << buffers.try_emplace(buffer, buffers.size()).first->second << " of "
       << buffer->type.getElementType();
  };
  os << "level " << nest.level << " lanes " << lanes << " column " << (nest.mainColumn >= 0)
     << " single " << (nest.columnSize == 1);
  for (auto &node : nest.nodes) {
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
  for (const Root &root : nest.roots) {
    os << "\nroot " << int(root.kind) << " " << numbers.lookup(root.node) << " "
       << int(root.reduction) << " " << root.row;
    writeBuffer(root.dest);
  }
  return text;
}

std::vector<LoopNestGroup> cuda::groupLoopNests(const KernelLoops &kernelLoops,
                                                ArrayRef<int64_t> alignment) {
  std::vector<LoopNestGroup> groups;
  SmallVector<unsigned> lanes;
  llvm::StringMap<unsigned> known;
  for (const LoopNest &nest : kernelLoops.nests) {
    unsigned widest = widestVector(nest, kernelLoops, alignment), number = groups.size();
    if (isFlat(nest))
      number = known.try_emplace(describe(nest, widest), number).first->second;
    if (number == groups.size()) {
      groups.emplace_back();
      lanes.push_back(widest);
    }
    groups[number].nests.push_back(&nest);
  }
  for (auto [group, widest] : llvm::zip(groups, lanes))
    group.shape = launchShapeOf(group.nests, widest);
  return groups;
}
