//===- LaunchShape.cpp - how a loop nest is spread over a GPU's threads -----===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CUDA/LaunchShape.h"

#include <numeric>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;
using namespace meshwright::codegen::cuda;

/// The widest access of a thread, in bytes.
static constexpr int64_t accessBytes = 16;
/// Threads that keep a large GPU busy; with less work than vectors for all of
/// them, vectors are narrower and blocks smaller.
static constexpr int64_t enoughThreads = 32768;
/// Threads that are still enough when each takes twice as many vectors: half of what a
/// large GPU holds.
static constexpr int64_t manyThreads = 1 << 17;
/// Bytes that a thread has on their way before it uses the first: 32 with 2048 threads on a
/// multiprocessor, more in sums, whose threads are as many as chunks.
static constexpr int64_t pointBytes = 32, sumBytes = 64;
static constexpr int64_t mostVectors = 4;
/// Most warps that share partial results.
static constexpr int64_t mostParts = 32;
/// Most pieces of a row a thread holds, and most elements of one tensor in them.
static constexpr int64_t mostSlots = 8, mostElements = 32;
/// Bytes of the rows a multiprocessor works on that are worth finding in the GPU's second
/// level of cache, of 50 MB or more for 132, when rows are read again.
static constexpr int64_t cachedBytes = 256 << 10;
/// Blocks among which a scatter's target is divided, over all tiles of columns: each reads
/// all ids, so one for each multiprocessor of a large GPU. Registers of a thread for the
/// rows that are on their way.
static constexpr int64_t scatterBlocks = 132, scatterRegisters = 96, mostRows = 8;

//===----------------------------------------------------------------------===//
// Vectors
//===----------------------------------------------------------------------===//

/// The greatest common divisor of the distances, in elements, between the starts
/// of vectors in memory of `type` that `map` indexes; 0 without rows.
static int64_t stepOf(const LoopNest &nest, ArrayRef<int> map, RankedTensorType type) {
  int64_t step = 0, stride = 1;
  auto shape = type.getShape().take_back(map.size());
  for (int64_t d = int64_t(map.size()) - 1; d >= 0; stride *= shape[d--])
    if (!nest.isColumn(map[d]))
      step = std::gcd(step, stride);
  return step;
}

static bool hasColumn(const LoopNest &nest, ArrayRef<int> map) {
  return llvm::any_of(map, [&](int dim) { return nest.isColumn(dim); });
}

namespace {
/// Memory that a loop nest reads or writes by vectors.
struct Access {
  const Buffer *buffer;
  int64_t step;
};
} // namespace

/// All accesses of `nest`, or none if it must walk single elements.
static std::optional<SmallVector<Access>> accessesOf(const LoopNest &nest) {
  SmallVector<Access> found;
  auto rowSize = [](RankedTensorType type) { return type.getNumElements() / type.getDimSize(0); };
  for (auto &node : nest.nodes) {
    if (!node->buffer || node->scope != Scope::Column)
      continue;
    auto type = node->buffer->type;
    ArrayRef<int> map = node->map;
    int64_t step = 0;
    if (node->kind == Node::Gather) {
      Node *ids = node->operands[0];
      map = map.drop_front(ids->map.size());
      if (ids->scope == Scope::Column)
        continue; // element by element
      step = 1;
      for (int64_t size : type.getShape().take_back(map.size()))
        step *= size;
    } else if (node->kind == Node::Partials) {
      step = rowSize(type);
    } else if (node->kind == Node::Pad && nest.isColumn(map[node->primitive.dim])) {
      return std::nullopt;
    } else if (node->kind == Node::Window) {
      step = 1;
      for (int64_t size : type.getShape().drop_front(node->primitive.dim + 1))
        step *= size;
    }
    if (hasColumn(nest, map))
      found.push_back({node->buffer, std::gcd(step, stepOf(nest, map, type))});
  }
  for (const Root &root : nest.roots) {
    if (root.row || root.kind == Root::FullSum)
      continue;
    int64_t step = stepOf(nest, root.map, root.dest->type);
    if (root.kind == Root::Scatter || (root.kind == Root::ColumnSum && !nest.columns))
      step = std::gcd(step, rowSize(root.dest->type));
    found.push_back({root.dest, step});
  }
  return found;
}

unsigned cuda::widestVector(const LoopNest &nest, const KernelLoops &kernelLoops,
                            ArrayRef<int64_t> alignment) {
  if (nest.mainColumn < 0)
    return 1;
  auto accesses = accessesOf(nest);
  if (!accesses)
    return 1;
  auto elementBytes = [](const Access &access) {
    return int64_t(access.buffer->type.getElementTypeBitWidth() / 8);
  };
  unsigned arguments = func::FuncOp(kernelLoops.function).getNumArguments();
  auto alignmentOf = [&](const Buffer &buffer) -> int64_t {
    switch (buffer.kind) {
    case Buffer::Argument:
      return alignment[buffer.index];
    case Buffer::Result:
      return alignment[arguments + buffer.index];
    case Buffer::Workspace:
    case Buffer::Constant:
      return 64;
    }
    llvm_unreachable("all kinds of buffers are listed");
  };
  auto fits = [&](int64_t lanes) {
    for (auto [dim, role] : llvm::enumerate(nest.roles))
      if (role == Role::Column && (!nest.isMerged(dim) || int(dim) == nest.mainColumn) &&
          nest.columnsOf(dim) % lanes)
        return false;
    if (nest.half % lanes)
      return false;
    return llvm::all_of(*accesses, [&](const Access &access) {
      int64_t bytes = std::min(accessBytes, lanes * elementBytes(access));
      return alignmentOf(*access.buffer) % bytes == 0 &&
             access.step * elementBytes(access) % bytes == 0;
    });
  };
  int64_t narrowest = 4;
  for (const Access &access : *accesses)
    narrowest = std::min(narrowest, elementBytes(access));
  int64_t lanes = accessBytes / narrowest;
  while (!fits(lanes))
    lanes /= 2;
  return lanes;
}

//===----------------------------------------------------------------------===//
// Points
//===----------------------------------------------------------------------===//

static bool has(const LoopNest &nest, Root::Kind kind) {
  return llvm::any_of(nest.roots, [&](const Root &root) { return root.kind == kind; });
}

static int64_t elementsOf(const LoopNest &nest) {
  return nest.rows(Role::Parallel) * nest.columnSize;
}

/// One thread for each of the vectors of columns, fewer columns a vector if threads are few.
static void spread(LaunchShape &shape, int64_t elements) {
  while (shape.lanes > 1 && elements / shape.lanes < enoughThreads)
    shape.lanes /= 2;
  shape.threads = elements / shape.lanes < enoughThreads ? 64 : 256;
}

/// Bytes that each thread must load for its vector from memory as large as the loop nest; what
/// many rows share is in caches.
static int64_t loadedBytes(const LoopNest &nest, unsigned lanes) {
  int64_t bytes = 0;
  for (auto &node : nest.nodes)
    if (node->buffer && node->scope == Scope::Column &&
        node->buffer->type.getNumElements() >= elementsOf(nest))
      bytes += lanes * node->getElementType().getIntOrFloatBitWidth() / 8;
  return bytes;
}

/// Warps that share the partial results of a loop nest with few columns, of which one thread
/// each would add hundreds; 1 if there are none.
static int64_t partsOf(const LoopNest &nest) {
  int64_t parts = 1;
  if (nest.half || nest.rows(Role::Parallel) != 1 || elementsOf(nest) >= enoughThreads)
    return parts;
  for (auto &node : nest.nodes)
    if (node->kind == Node::Partials && node->scope == Scope::Column)
      parts = std::max(parts, std::min<int64_t>(
                                  mostParts,
                                  llvm::bit_floor(uint64_t(node->buffer->type.getDimSize(0) / 4))));
  return parts;
}

static bool sharesScalars(const LoopNest &nest) {
  return llvm::any_of(nest.nodes, [](const std::unique_ptr<Node> &node) {
    return node->kind == Node::Partials && node->scope == Scope::Chunk;
  });
}

static void shapePoints(LaunchShape &shape, ArrayRef<const LoopNest *> members) {
  const LoopNest &first = *members.front();
  if (has(first, Root::FullSum)) {
    shape.threads = 256;
    if (!first.half)
      shape.vectors = std::clamp<int64_t>(
          sumBytes / std::max<int64_t>(loadedBytes(first, shape.lanes), 1), 1, mostVectors);
    return;
  }
  int64_t elements = 0;
  shape.parts = members.size() == 1 ? partsOf(first) : 1;
  for (const LoopNest *member : members)
    elements += elementsOf(*member);
  if (shape.parts > 1) {
    shape.lanes = 1;
    shape.threads = shape.parts * warpSize;
    return;
  }
  // All threads read what is one for all rows: none may be written by another in its
  // place, which only a single result can be.
  if (elementsOf(first) == 1) {
    shape.threads = sharesScalars(first) ? 256 : 1;
    return;
  }
  spread(shape, elements);
  if (!first.half)
    while (shape.vectors < mostVectors &&
           2 * shape.vectors * loadedBytes(first, shape.lanes) <= pointBytes &&
           elements / shape.lanes / (2 * shape.vectors) >= manyThreads)
      shape.vectors *= 2;
}

int64_t cuda::blocksOf(const LoopNest &member, const LaunchShape &shape) {
  if (shape.kind != LaunchShape::Points)
    return shape.blocks;
  if (has(member, Root::FullSum))
    return member.chunks;
  if (shape.parts > 1)
    return llvm::divideCeil(elementsOf(member), warpSize);
  return llvm::divideCeil(elementsOf(member) / shape.lanes, shape.threads * shape.vectors);
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// Blocks that a multiprocessor should hold when blocks are chunks, of which each has about
/// four: enough for `threads` threads.
static int64_t residentBlocks(int64_t group, int64_t threads) {
  return std::clamp<int64_t>(threads / group, 1, 4);
}

static void shapeRows(LaunchShape &shape, const LoopNest &nest, bool partial) {
  int64_t widest = 1;
  for (auto [dim, role] : llvm::enumerate(nest.roles))
    if (role == Role::Column && (!nest.isMerged(dim) || int(dim) == nest.mainColumn))
      widest = std::max(widest, nest.columnsOf(dim));
  auto fits = [&](int64_t group, int64_t elements) {
    int64_t slots = slotsOf(widest, group, shape.lanes);
    return slots <= mostSlots && slots * shape.lanes <= elements;
  };
  int64_t rows = nest.rows(Role::Parallel);
  if (!partial && fits(warpSize, mostElements)) {
    shape.inRegisters = true;
    shape.group = warpSize;
    // A single row has a block of its own, for the reason below.
    int64_t together = std::min<int64_t>(rows, 4);
    shape.threads = together * warpSize;
    shape.blocks = llvm::divideCeil(rows, together);
    return;
  }
  // Where nothing is summed along rows, threads need not share one: a block has some of the
  // columns, one vector a thread.
  bool along = !rowReductions(nest).empty() || has(nest, Root::FullSum) ||
               llvm::any_of(nest.roots, [](const Root &root) { return root.row; });
  if (partial && !along && !nest.half) {
    int64_t vectors = widest / shape.lanes;
    shape.tiles = llvm::divideCeil(vectors, 256);
    shape.group = llvm::alignTo(llvm::divideCeil(vectors, shape.tiles), warpSize);
    shape.inRegisters = true;
    shape.threads = shape.group;
    shape.blocks = nest.chunks * shape.tiles;
    shape.residentBlocks = residentBlocks(shape.group, 1024);
    return;
  }
  // Sums of columns stay in registers beside the row.
  int64_t sums =
      llvm::count_if(nest.roots, [](const Root &root) { return root.kind == Root::ColumnSum; });
  int64_t elements = std::min(mostElements / 2, mostElements / std::max<int64_t>(sums, 1));
  for (shape.group = partial ? warpSize : 2 * warpSize; shape.group < 512; shape.group *= 2)
    if (fits(shape.group, sums ? std::min<int64_t>(elements, 8) : elements))
      break;
  shape.inRegisters = fits(shape.group, elements);
  // As many threads for one row as for two, where two would not stay in caches.
  if (!shape.inRegisters) {
    if (2 * widest * accessBytes / shape.lanes > cachedBytes)
      shape.group = 1024;
    shape.residentBlocks = 1024 / shape.group;
  }
  // No more warps than the row fills: the others would hold registers for nothing.
  if (shape.inRegisters && !nest.half) {
    int64_t slots = slotsOf(widest, shape.group, shape.lanes);
    shape.group = llvm::alignTo(llvm::divideCeil(widest, slots * shape.lanes), warpSize);
    // Blocks are as many as chunks, some for each multiprocessor: registers must not leave
    // one of them for a last round. Threads with many sums are few, and load further ahead.
    if (sums) {
      bool many = sums * slots * shape.lanes > 16;
      shape.residentBlocks = residentBlocks(shape.group, many ? 512 : 1024);
      shape.rowsAhead = many ? 2 : 1;
    }
  }
  shape.threads = shape.group;
  shape.blocks = partial ? nest.chunks : rows;
}

//===----------------------------------------------------------------------===//
// Scatters
//===----------------------------------------------------------------------===//

static void shapeOwners(LaunchShape &shape, const LoopNest &nest) {
  shape.kind = LaunchShape::Owners;
  auto target = nest.roots.front().dest->type;
  int64_t vectors = nest.columnSize / shape.lanes;
  int64_t tiles = llvm::divideCeil(vectors, 256);
  shape.threads = llvm::alignTo(llvm::divideCeil(vectors, tiles), warpSize);
  shape.owners = std::clamp<int64_t>(scatterBlocks / tiles, 1, target.getDimSize(0));
  shape.blocks = tiles * shape.owners;
  // Of each row that is on its way a thread holds a vector of it and one of the target.
  int64_t bytes =
      loadedBytes(nest, shape.lanes) + shape.lanes * target.getElementTypeBitWidth() / 8;
  shape.vectors = std::clamp<int64_t>(scatterRegisters * 4 / bytes, 1, mostRows);
}

//===----------------------------------------------------------------------===//
// All
//===----------------------------------------------------------------------===//

LaunchShape cuda::launchShapeOf(ArrayRef<const LoopNest *> members, unsigned lanes) {
  LaunchShape shape;
  shape.lanes = lanes;
  const LoopNest &nest = *members.front();
  if (has(nest, Root::Scatter)) {
    shapeOwners(shape, nest);
    return shape;
  }
  if (nest.columns) {
    shape.kind = LaunchShape::Columns;
    int64_t elements = elementsOf(nest);
    spread(shape, elements);
    shape.blocks = llvm::divideCeil(elements / shape.lanes, shape.threads);
    return shape;
  }
  bool rowRoots = llvm::any_of(nest.roots, [](const Root &root) { return root.row; });
  if (!rowReductions(nest).empty() || has(nest, Root::ColumnSum) ||
      (rowRoots && nest.mainColumn >= 0)) {
    shape.kind = LaunchShape::Rows;
    shapeRows(shape, nest, has(nest, Root::ColumnSum) || has(nest, Root::FullSum));
    return shape;
  }
  shapePoints(shape, members);
  shape.blocks = 0;
  for (const LoopNest *member : members)
    shape.blocks += blocksOf(*member, shape);
  return shape;
}
