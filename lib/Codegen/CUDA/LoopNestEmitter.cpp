//===- LoopNestEmitter.cpp - one loop nest of a kernel as a GPU function ----===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CUDA/LoopNestEmitter.h"
#include "Codegen/CUDA/KernelEmitter.h"
#include "Codegen/CUDA/LoopNestGroups.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;
using namespace meshwright::codegen::cuda;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value LoopNestEmitter::pointer(Buffer *buffer) {
  Value &known = pointers[buffer];
  if (known)
    return known;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&function.getBody().front());
  auto ptr = LLVM::LLVMPointerType::get(b.getContext(), globalSpace);
  if (buffer->kind == Buffer::Constant) {
    int64_t count = buffer->type.getNumElements();
    auto type = LLVM::LLVMArrayType::get(buffer->type.getElementType(), count);
    std::string name = (function.getName() + "$constant" + Twine(pointers.size())).str();
    OpBuilder atModule = OpBuilder::atBlockBegin(module.getBody());
    auto flat =
        buffer->constant.reshape(RankedTensorType::get({count}, buffer->type.getElementType()));
    LLVM::GlobalOp::create(atModule, loc, type, /*isConstant=*/true, LLVM::Linkage::Internal, name,
                           flat, /*alignment=*/64, globalSpace);
    return known = LLVM::AddressOfOp::create(b, loc, ptr, name);
  }
  func::FuncOp kernel = kernelLoops.function;
  unsigned index = buffer->index;
  if (buffer->kind == Buffer::Result)
    index += kernel.getNumArguments();
  if (buffer->kind == Buffer::Workspace)
    index = kernel.getNumArguments() + kernel.getNumResults();
  known = function.getArgument(index);
  if (buffer->kind == Buffer::Workspace && buffer->offset)
    known = LLVM::GEPOp::create(b, loc, ptr, b.getI8Type(), known,
                                ValueRange{constant(buffer->offset)});
  return known;
}

/// One element's alignment is its size; a vector is as LaunchShape.cpp made sure.
static unsigned alignmentOf(Type type) {
  unsigned bytes = getElementTypeOrSelf(type).getIntOrFloatBitWidth() / 8;
  if (auto vector = dyn_cast<VectorType>(type))
    bytes *= vector.getNumElements();
  return std::min(bytes, 16u);
}

Value LoopNestEmitter::load(Value address, Type type, const Columns *columns, Value extraMask) {
  if (!columns)
    return LLVM::LoadOp::create(b, loc, type, address, alignmentOf(type));
  auto vector = vectorOf(type);
  Value mask = columns->mask;
  if (extraMask) {
    // Padding of columns, which is walked element by element.
    Value bit = vector::ExtractOp::create(b, loc, extraMask, 0);
    mask = mask ? Value(arith::AndIOp::create(b, loc, mask, bit)) : bit;
  }
  if (!mask)
    return LLVM::LoadOp::create(b, loc, vector, address, alignmentOf(vector));
  auto branch = scf::IfOp::create(b, loc, TypeRange{vector}, mask, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  Value loaded = LLVM::LoadOp::create(b, loc, vector, address, alignmentOf(vector));
  scf::YieldOp::create(b, loc, loaded);
  b.setInsertionPointToStart(branch.elseBlock());
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(vector));
  scf::YieldOp::create(b, loc, zero);
  return branch.getResult(0);
}

void LoopNestEmitter::store(Value value, Value address, const Columns *columns) {
  if (columns)
    value = splat(value);
  guarded(columns ? columns->mask : Value(),
          [&] { LLVM::StoreOp::create(b, loc, value, address, alignmentOf(value.getType())); });
}

Value LoopNestEmitter::loadLanes(Value base, Type type, Value offsets, const Columns &columns) {
  // Columns that do not exist have offset 0: ids loaded under a mask are 0.
  SmallVector<Value> elements;
  for (unsigned lane = 0; lane < lanes; ++lane) {
    Value offset = vector::ExtractOp::create(b, loc, offsets, lane);
    if (columns.mask)
      offset = arith::SelectOp::create(b, loc, columns.mask, offset, constant(0));
    elements.push_back(load(element(base, type, offset), type, nullptr));
  }
  return vector::FromElementsOp::create(b, loc, vectorOf(type), elements);
}

Value LoopNestEmitter::extend(FloatType from, Value value) {
  return arith::ExtFOp::create(b, loc, withElement(value.getType(), b.getF32Type()), value);
}

Value LoopNestEmitter::round(FloatType to, Value value) {
  return arith::TruncFOp::create(b, loc, withElement(value.getType(), to), value);
}

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

Value LoopNestEmitter::less(Value x, Value y) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, x, y);
}

Value LoopNestEmitter::isFirst(Value index) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, index, constant(0));
}

SmallVector<const Root *> LoopNestEmitter::rootsOf(Root::Kind kind) const {
  SmallVector<const Root *> roots;
  for (const Root &root : nest.roots)
    if (root.kind == kind)
      roots.push_back(&root);
  return roots;
}

void LoopNestEmitter::storeFullSums(ArrayRef<Value> sums) {
  guarded(isFirst(thread), [&] {
    for (auto [root, sum] : llvm::zip(rootsOf(Root::FullSum), sums)) {
      Root scalar = *root;
      scalar.map.clear();
      store(sum, destination(scalar, nullptr), nullptr);
    }
  });
}

//===----------------------------------------------------------------------===//
// Columns
//===----------------------------------------------------------------------===//

LoopNestEmitter::Carried LoopNestEmitter::emitSequentialRow(Value row, const Columns &columns,
                                                            ArrayRef<Value> sums) {
  decompose(row, Role::Sequential);
  auto outer = scalars;
  Memo memo;
  Columns here = columns;
  here.memo = &memo;
  Carried next;
  for (const Root &root : nest.roots)
    next.push_back(
        combine(root.reduction, sums[next.size()], splat(eval(root.node, &here))));
  scalars = outer;
  return next;
}

void LoopNestEmitter::emitColumns() {
  int64_t perRow = nest.columnSize / lanes, points = nest.rows(Role::Parallel) * perRow;
  Value point = arith::MulIOp::create(b, loc, block, constant(shape.threads));
  point = arith::AddIOp::create(b, loc, point, thread);
  Value exists = points % shape.threads ? less(point, constant(points)) : Value();
  guarded(exists, [&] {
    decompose(arith::DivUIOp::create(b, loc, point, constant(perRow)), Role::Parallel);
    Columns columns;
    columns.index = arith::MulIOp::create(
        b, loc, arith::RemUIOp::create(b, loc, point, constant(perRow)), constant(lanes));
    auto sums = rootsOf(Root::ColumnSum);
    Carried start;
    for (const Root *root : sums)
      start.push_back(neutral(root->reduction, vectorOf(root->dest->type.getElementType())));
    // Several rows at once, so that their loads overlap.
    int64_t rows = nest.rows(Role::Sequential), unroll = 8;
    while (rows % unroll)
      unroll /= 2;
    Carried ends = forLoop(constant(0), constant(rows), constant(unroll), start,
                           [&](Value row, ValueRange in) {
                             Carried carried(in);
                             for (int64_t u = 0; u < unroll; ++u) {
                               Value at = row;
                               if (u)
                                 at = arith::AddIOp::create(b, loc, row, constant(u));
                               carried = emitSequentialRow(at, columns, carried);
                             }
                             return carried;
                           });
    for (auto [root, end] : llvm::zip(sums, ends))
      store(end, destination(*root, &columns), &columns);
  });
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// Vectors of all rows of `member`.
int64_t LoopNestEmitter::pointsOf(const LoopNest &member) const {
  return member.rows(Role::Parallel) * member.columnSize / lanes;
}

/// Finds the member of the launch that this block works on, by halving: its memory and its
/// sizes, as constants where all members agree.
void LoopNestEmitter::selectMember() {
  // Of each member, in the same order: addresses (the function's argument and bytes
  // from there), then numbers (no argument).
  using Slot = std::pair<int, int64_t>;
  SmallVector<SmallVector<Slot>> members;
  SmallVector<int64_t> firstBlocks;
  SmallVector<Buffer *> buffers;
  int64_t blocks = 0;
  func::FuncOp kernel = kernelLoops.function;
  auto slotOf = [&](const Buffer *buffer) -> Slot {
    int arguments = kernel.getNumArguments(), results = kernel.getNumResults();
    if (buffer->kind == Buffer::Argument)
      return {int(buffer->index), 0};
    if (buffer->kind == Buffer::Result)
      return {arguments + int(buffer->index), 0};
    return {arguments + results, buffer->offset};
  };
  for (const LoopNest *member : nests) {
    SmallVector<Slot> &slots = members.emplace_back();
    firstBlocks.push_back(blocks);
    slots.push_back({-1, blocks});
    blocks += blocksOf(*member, shape);
    slots.push_back({-1, pointsOf(*member)});
    slots.push_back({-1, llvm::divideCeil(pointsOf(*member), member->chunks)});
    for (auto [node, own] : llvm::zip_equal(nest.nodes, member->nodes)) {
      if (!node->buffer)
        continue;
      if (member == &nest)
        buffers.push_back(node->buffer);
      slots.push_back(slotOf(own->buffer));
      slots.push_back({-1, own->kind == Node::Partials ? own->buffer->type.getDimSize(0) : 0});
    }
    for (auto [root, own] : llvm::zip_equal(nest.roots, member->roots)) {
      if (member == &nest)
        buffers.push_back(root.dest);
      slots.push_back(slotOf(own.dest));
      slots.push_back({-1, 0});
    }
  }
  unsigned count = members.front().size();
  auto materialize = [&](Slot slot) -> Value {
    if (slot.first < 0)
      return constant(slot.second);
    Value base = function.getArgument(slot.first);
    return slot.second == 0 ? base
                            : Value(LLVM::GEPOp::create(b, loc, base.getType(), b.getI8Type(), base,
                                                        ValueRange{constant(slot.second)}));
  };
  SmallVector<Value> values(count);
  SmallVector<unsigned> different;
  for (unsigned i = 0; i < count; ++i) {
    if (llvm::all_of(members, [&](auto &slots) { return slots[i] == members.front()[i]; }))
      values[i] = materialize(members.front()[i]);
    else
      different.push_back(i);
  }
  auto pick = [&](auto &&self, unsigned low, unsigned high) -> SmallVector<Value> {
    if (high - low == 1)
      return llvm::map_to_vector(different,
                                 [&](unsigned i) { return materialize(members[low][i]); });
    unsigned middle = (low + high) / 2;
    SmallVector<Type> types;
    for (unsigned i : different)
      types.push_back(members.front()[i].first < 0 ? Type(b.getI64Type())
                                                   : function.getArgument(0).getType());
    auto branch =
        scf::IfOp::create(b, loc, types, less(block, constant(firstBlocks[middle])), true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(branch.thenBlock());
    scf::YieldOp::create(b, loc, self(self, low, middle));
    b.setInsertionPointToEnd(branch.elseBlock());
    scf::YieldOp::create(b, loc, self(self, middle, high));
    return SmallVector<Value>(branch.getResults());
  };
  if (!different.empty())
    for (auto [i, value] : llvm::zip(different, pick(pick, 0, members.size())))
      values[i] = value;

  block = chunk = arith::SubIOp::create(b, loc, block, values[0]);
  points = values[1];
  chunkSize = values[2];
  for (auto [i, buffer] : llvm::enumerate(buffers))
    pointers[buffer] = values[3 + 2 * i];
  unsigned i = 0;
  for (auto &node : nest.nodes)
    if (node->buffer)
      partialCounts[node.get()] = values[3 + 2 * i++ + 1];
}

LogicalResult LoopNestEmitter::emit(StringRef name) {
  func::FuncOp kernel = kernelLoops.function;
  if (shape.blocks > INT32_MAX)
    return kernel.emitError("kernel @") << kernel.getName() << " would need " << shape.blocks
                                        << " blocks of threads, but a GPU runs at most 2147483647";
  auto ptr = LLVM::LLVMPointerType::get(b.getContext(), globalSpace);
  unsigned operands =
      kernel.getNumArguments() + kernel.getNumResults() + (kernelLoops.workspace != 0);
  b.setInsertionPointToEnd(module.getBody());
  function = gpu::GPUFuncOp::create(
      b, loc, name, b.getFunctionType(SmallVector<Type>(operands, ptr), {}), TypeRange(),
      TypeRange(), {b.getNamedAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr())});
  function.setKnownBlockSizeAttr(b.getDenseI32ArrayAttr({int32_t(shape.threads), 1, 1}));
  function.setKnownGridSizeAttr(b.getDenseI32ArrayAttr({int32_t(shape.blocks), 1, 1}));
  // Without a number ptxas may spill to make room for more blocks.
  function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                    b.getI32IntegerAttr(int32_t(shape.residentBlocks)));
  b.setInsertionPointToStart(&function.getBody().front());
  auto number = [&](Value index) {
    // Known to be small and not negative: divisions become 32-bit ones.
    Value narrow = arith::IndexCastOp::create(b, loc, b.getI32Type(), index);
    return Value(arith::ExtUIOp::create(b, loc, b.getI64Type(), narrow));
  };
  block = number(gpu::BlockIdOp::create(b, loc, gpu::Dimension::x));
  thread = number(gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x));
  inGroup = thread;
  chunk = block;
  if (shape.tiles > 1) {
    chunk = arith::DivUIOp::create(b, loc, block, constant(shape.tiles));
    Value tile = arith::RemUIOp::create(b, loc, block, constant(shape.tiles));
    inGroup = arith::AddIOp::create(
        b, loc, thread, arith::MulIOp::create(b, loc, tile, constant(shape.threads)));
  }
  points = constant(pointsOf(nest));
  chunkSize = constant(llvm::divideCeil(pointsOf(nest), nest.chunks));
  if (nests.size() > 1)
    selectMember();

  // The start of a scatter may be in place already.
  const Root &first = nest.roots.front();
  Value needed;
  if (first.skipWhenInPlace && first.node->kind == Node::Load) {
    Value from = pointer(first.node->buffer), to = pointer(first.dest);
    auto number = [](Value pointer) { return cast<BlockArgument>(pointer).getArgNumber(); };
    if (isa<BlockArgument>(from) && isa<BlockArgument>(to))
      function->setAttr(inPlaceAttr, b.getDenseI32ArrayAttr(
                                         {int32_t(number(from)), int32_t(number(to))}));
    needed = LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::ne, from, to);
  }
  guarded(needed, [&] {
    if (shape.kind == LaunchShape::Points && nest.rows(Role::Parallel) * nest.columnSize == 1)
      evalSharedPartials(); // the one thread that stores evaluates the rest
    else
      evalChunkValues();
    switch (shape.kind) {
    case LaunchShape::Points:
      return emitPoints();
    case LaunchShape::Rows:
      return emitRows();
    case LaunchShape::Columns:
      return emitColumns();
    case LaunchShape::Owners:
      return emitScatter();
    }
  });
  b.setInsertionPointToEnd(&function.getBody().front());
  gpu::ReturnOp::create(b, loc);
  return success();
}

std::string cuda::loopNestName(StringRef kernel, unsigned index) {
  std::string name = index == 0 ? kernel.str() : (kernel + "." + Twine(index)).str();
  // PTX has no dots in names.
  std::replace(name.begin(), name.end(), '.', '$');
  return name;
}

LogicalResult cuda::emitKernel(const KernelLoops &kernelLoops, gpu::GPUModuleOp module,
                               ArrayRef<int64_t> alignment) {
  func::FuncOp kernel = kernelLoops.function;
  for (auto [i, group] : llvm::enumerate(groupLoopNests(kernelLoops, alignment)))
    if (failed(LoopNestEmitter(kernelLoops, group, module).emit(loopNestName(kernel.getName(), i))))
      return failure();
  return success();
}
