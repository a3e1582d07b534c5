//===- KernelSchedule.cpp - loops, costs and chunks of a loop nest ----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Kernels/KernelSchedule.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;

/// From this cost on a value is worth a store and a load.
static constexpr int64_t expensive = 14;
/// Scratch a row may take on a thread's stack, in bytes.
static constexpr int64_t scratchLimit = 64 << 10;
/// Rows without reductions longer than this are walked in blocks.
static constexpr int64_t longRow = 8192, blockOfRow = 4096;

//===----------------------------------------------------------------------===//
// Properties of nodes
//===----------------------------------------------------------------------===//

static int64_t instructions(Operation *op) {
  // Of bf16 and f16 without instructions of the processor's own.
  if (isa<arith::TruncFOp>(op))
    return 6;
  if (isa<math::ErfOp, math::TanhOp, math::SinOp, math::CosOp>(op))
    return 25;
  if (isa<math::ExpOp, math::LogOp>(op))
    return 14;
  if (isa<math::SqrtOp, math::RsqrtOp, arith::DivFOp, arith::MulUIExtendedOp>(op))
    return 4;
  return 1;
}

/// The row's greatest x, if `sum` adds exp(x - that).
static Node *greatestOf(Node *sum) {
  auto is = [](Node *node, auto op) {
    return node->kind == Node::Compute && isa<decltype(op)>(node->op);
  };
  auto reduces = [](Node *node, train::ReduceKind kind) {
    return node->kind == Node::RowReduce && node->primitive.reduction == kind;
  };
  if (!reduces(sum, train::ReduceKind::Sum) || !is(sum->operands[0], math::ExpOp()))
    return nullptr;
  Node *difference = sum->operands[0]->operands[0];
  if (!is(difference, arith::SubFOp()))
    return nullptr;
  Node *x = difference->operands[0], *greatest = difference->operands[1];
  return reduces(greatest, train::ReduceKind::Max) && greatest->operands[0] == x &&
                 greatest->column == sum->column && greatest->map == sum->map
             ? greatest
             : nullptr;
}

/// Nodes are created after their operands, so one walk suffices.
static void fillProperties(LoopNest &nest, const exec::ScheduleLimits &options) {
  for (auto &node : nest.nodes) {
    auto scopeOf = [&](int dim) { return nest.isColumn(dim) ? Scope::Column : Scope::Row; };
    auto cover = [&](Scope scope) { node->scope = std::max(node->scope, scope); };
    ArrayRef<int> map = node->map;
    if (node->kind == Node::Iota)
      map = map.slice(node->primitive.dim, 1);
    else if (node->kind == Node::Gather)
      map = map.drop_front(node->operands[0]->map.size());
    if (node->kind != Node::Splat && node->kind != Node::Compute)
      for (int dim : map)
        cover(scopeOf(dim));
    if (node->kind == Node::RowReduce) {
      cover(Scope::Row);
      node->depth = node->operands[0]->depth + 1;
      if (nest.columnsOf(node->column) > options.heldRow)
        node->greatest = greatestOf(node.get());
      if (node->greatest) // Milakov and Gimelshein, arXiv:1805.02867
        node->depth = node->greatest->depth;
      continue;
    }
    node->cost = node->kind == Node::Compute ? instructions(node->op)
                 : node->kind == Node::Splat ? 0
                                             : 1;
    for (Node *operand : node->operands) {
      cover(operand->scope);
      node->depth = std::max(node->depth, operand->depth);
      if (operand->scope == Scope::Column)
        node->cost = std::min<int64_t>(node->cost + operand->cost, 1000);
    }
  }
}

SmallVector<Node *> codegen::rowReductions(const LoopNest &nest) {
  SmallVector<Node *> found;
  unsigned last = 0;
  for (unsigned depth = 1; depth <= last + 1; ++depth)
    for (auto &node : nest.nodes)
      if (node->kind == Node::RowReduce && node->depth == depth) {
        found.push_back(node.get());
        last = depth;
      }
  return found;
}

unsigned codegen::loopOf(const LoopNest &nest, const Root &root) {
  if (!root.row)
    return root.node->depth;
  unsigned last = root.node->depth;
  for (auto &node : nest.nodes)
    last = std::max(last, node->depth + 1);
  return last;
}

static void visitFrom(Node *node, unsigned loop, bool shifted,
                      DenseSet<std::pair<Node *, unsigned>> &seen,
                      llvm::function_ref<bool(Node *, unsigned, bool)> visit) {
  if (!seen.insert({node, shifted}).second || !visit(node, loop, shifted))
    return;
  if (node->kind == Node::RowReduce)
    return; // an item of its own
  shifted |= node->kind == Node::Halves;
  for (Node *operand : node->operands)
    visitFrom(operand, loop, shifted, seen, visit);
}

void codegen::forEachEvaluation(const LoopNest &nest,
                                llvm::function_ref<bool(Node *, unsigned, bool)> visit) {
  std::map<unsigned, SmallVector<Node *>> items;
  for (Node *reduce : rowReductions(nest))
    items[reduce->depth - 1].push_back(reduce->operands[0]);
  for (const Root &root : nest.roots) {
    items[loopOf(nest, root)].push_back(root.node);
    if (root.ids)
      items[loopOf(nest, root)].push_back(root.ids);
  }
  for (auto &[loop, nodes] : items) {
    DenseSet<std::pair<Node *, unsigned>> seen;
    for (Node *node : nodes)
      visitFrom(node, loop, false, seen, visit);
  }
}

//===----------------------------------------------------------------------===//
// Merging row dimensions into the column dimension
//===----------------------------------------------------------------------===//

/// Whether memory indexed by `map` (dimensions of `type` after `skip`) runs on
/// from dimension `inner` to `outer`, or has neither.
static bool runsOn(ArrayRef<int> map, RankedTensorType type, int outer, int inner,
                   ArrayRef<int64_t> sizes) {
  auto at = llvm::find(map, inner), before = llvm::find(map, outer);
  if (at == map.end() || before == map.end())
    return at == map.end() && before == map.end();
  int64_t position = at - map.begin() + (type.getRank() - int64_t(map.size()));
  return before + 1 == at && type.getDimSize(position) == sizes[inner];
}

static bool canMerge(const LoopNest &nest, int outer, int inner) {
  if (nest.roles[outer] != Role::Parallel || nest.half)
    return false;
  for (auto &node : nest.nodes) {
    switch (node->kind) {
    case Node::RowReduce:
      return false;
    case Node::Load:
    case Node::Partials:
    case Node::Window:
      if (!runsOn(node->map, node->buffer->type, outer, inner, nest.sizes))
        return false;
      break;
    case Node::Gather: {
      auto rest = ArrayRef<int>(node->map).drop_front(node->operands[0]->map.size());
      if (!runsOn(rest, node->buffer->type, outer, inner, nest.sizes))
        return false;
      break;
    }
    case Node::Pad:
      if (node->map[node->primitive.dim] == outer ||
          !runsOn(node->map, node->buffer->type, outer, inner, nest.sizes))
        return false;
      break;
    case Node::Iota: {
      int dim = node->map[node->primitive.dim];
      if (dim == outer || dim == inner || nest.isMerged(dim))
        return false;
      break;
    }
    default:
      break;
    }
  }
  for (const Root &root : nest.roots)
    if (root.row || (root.kind != Root::FullSum &&
                     !runsOn(root.map, root.dest->type, outer, inner, nest.sizes)))
      return false;
  return true;
}

static void mergeColumns(LoopNest &nest) {
  if (nest.mainColumn < 0)
    return;
  nest.columnSize = nest.sizes[nest.mainColumn];
  nest.merged = {nest.mainColumn};
  for (int inner = nest.mainColumn; inner > 0 && canMerge(nest, inner - 1, inner); --inner) {
    nest.merged.push_back(inner - 1);
    nest.columnSize *= nest.sizes[inner - 1];
  }
  for (int dim : nest.merged)
    nest.roles[dim] = Role::Column;
}

//===----------------------------------------------------------------------===//
// Splitting the work
//===----------------------------------------------------------------------===//

static void keepExpensive(LoopNest &nest) {
  DenseMap<Node *, unsigned> first;
  int64_t bytes = 0;
  forEachEvaluation(nest, [&](Node *node, unsigned loop, bool shifted) {
    if (node->scope != Scope::Column || node->keptBy >= 0)
      return false;
    auto [it, fresh] = first.insert({node, loop});
    int64_t size = 0;
    for (int dim : node->map)
      if (nest.isColumn(dim))
        size = nest.columnsOf(dim) * 4;
    if (fresh || size == 0 || it->second == loop || shifted || node->cost < expensive ||
        bytes + size > scratchLimit || node->getElementType().getIntOrFloatBitWidth() != 32)
      return true;
    node->keptBy = it->second;
    bytes += size;
    return false;
  });
}

void codegen::setChunks(LoopNest &nest, int64_t chunks) {
  chunks = std::clamp<int64_t>(chunks, 1, std::max<int64_t>(nest.iterations, 1));
  int64_t size = llvm::divideCeil(nest.iterations, chunks);
  nest.chunks = std::max<int64_t>(1, llvm::divideCeil(nest.iterations, std::max<int64_t>(size, 1)));
}

void codegen::scheduleLoopNest(LoopNest &nest, const exec::ScheduleLimits &options) {
  mergeColumns(nest);
  fillProperties(nest, options);

  bool wholeRows = nest.half != 0, partialRows = false;
  int64_t width = nest.columnSize, cost = 1;
  for (auto &node : nest.nodes)
    if (node->kind == Node::RowReduce) {
      wholeRows = true;
      width = std::max(width, nest.columnsOf(node->column));
    }
  for (const Root &root : nest.roots) {
    wholeRows |= root.row;
    partialRows |= root.kind == Root::ColumnSum;
    cost += root.node->cost;
  }
  keepExpensive(nest);

  int64_t parallel = nest.rows(Role::Parallel), sequential = nest.rows(Role::Sequential);
  if (nest.columns) {
    // Enough blocks for many threads, each at least 64 columns wide: four lines of cache in f32.
    nest.block = std::max<int64_t>(64, llvm::alignTo(llvm::divideCeil(nest.columnSize, 64), 64));
  } else if (!wholeRows && !partialRows && nest.columnSize > longRow) {
    nest.block = blockOfRow;
  } else {
    nest.block = nest.columnSize;
  }
  nest.block = std::max<int64_t>(1, std::min(nest.block, nest.columnSize));
  nest.blocks = llvm::divideCeil(nest.columnSize, nest.block);
  nest.iterations = parallel * nest.blocks;

  int64_t work = parallel * sequential * width * std::max<int64_t>(1, cost / 8);
  int64_t chunks = std::min(options.maxChunks, work / options.chunkWork);
  if (partialRows && !nest.columns)
    // A row of partial sums is worth at least eight rows of input.
    chunks = std::min(chunks, parallel / 8);
  setChunks(nest, chunks);
}
