//===- LoopNestEmitter.cpp - one loop nest of a kernel as loops over vectors ---===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Codegen/CPU/LoopNestEmitter.h"
#include "Codegen/CPU/NarrowFloats.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;
using namespace meshwright::codegen::cpu;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value LoopNestEmitter::pointer(Buffer *buffer) {
  Value &known = pointers[buffer];
  if (known)
    return known;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&function.getBody().front());
  auto ptr = LLVM::LLVMPointerType::get(b.getContext());
  if (buffer->kind == Buffer::Constant) {
    auto type =
        LLVM::LLVMArrayType::get(buffer->type.getElementType(), buffer->type.getNumElements());
    std::string name = (function.getName() + ".constant" + Twine(pointers.size())).str();
    OpBuilder atModule = OpBuilder::atBlockBegin(module.getBody());
    auto flat = buffer->constant.reshape(
        RankedTensorType::get({buffer->type.getNumElements()}, buffer->type.getElementType()));
    LLVM::GlobalOp::create(atModule, loc, type, /*isConstant=*/true, LLVM::Linkage::Private, name,
                           flat, /*alignment=*/64);
    return known = LLVM::AddressOfOp::create(b, loc, ptr, name);
  }
  func::FuncOp kernel = kernelLoops.function;
  unsigned index = buffer->index;
  if (buffer->kind == Buffer::Result)
    index += kernel.getNumArguments();
  if (buffer->kind == Buffer::Workspace)
    index = kernel.getNumArguments() + kernel.getNumResults();
  Value slot =
      LLVM::GEPOp::create(b, loc, ptr, ptr, buffers, ArrayRef<LLVM::GEPArg>{int32_t(index)});
  known = LLVM::LoadOp::create(b, loc, ptr, slot);
  if (buffer->kind == Buffer::Workspace && buffer->offset)
    known = LLVM::GEPOp::create(b, loc, ptr, b.getI8Type(), known,
                                ValueRange{constant(buffer->offset)});
  return known;
}

Type LoopNestEmitter::registerType(Type element) { return cpu::registerType(element); }

Value LoopNestEmitter::extend(FloatType from, Value value) {
  return extendBits(b, loc, from, value, target);
}

Value LoopNestEmitter::round(FloatType to, Value value) {
  return roundToBits(b, loc, to, value, target);
}

/// Memory is aligned to its elements only: rows may begin anywhere.
static unsigned alignmentOf(Type type) {
  return getElementTypeOrSelf(type).getIntOrFloatBitWidth() / 8;
}

Value LoopNestEmitter::load(Value address, Type type, const Columns *columns, Value extraMask) {
  unsigned alignment = alignmentOf(type);
  if (!columns)
    return LLVM::LoadOp::create(b, loc, type, address, alignment);
  auto vector = vectorOf(type);
  Value mask = columns->mask;
  if (extraMask)
    mask = mask ? Value(arith::AndIOp::create(b, loc, mask, extraMask)) : extraMask;
  if (!mask)
    return LLVM::LoadOp::create(b, loc, vector, address, alignment);
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(vector));
  return LLVM::MaskedLoadOp::create(b, loc, vector, address, mask, zero, alignment);
}

void LoopNestEmitter::store(Value value, Value address, const Columns *columns) {
  unsigned alignment = alignmentOf(value.getType());
  if (columns && columns->mask)
    LLVM::MaskedStoreOp::create(b, loc, value, address, columns->mask,
                                b.getI32IntegerAttr(alignment));
  else
    LLVM::StoreOp::create(b, loc, value, address, alignment);
}

Value LoopNestEmitter::kept(Node *node, const Columns &columns) {
  Type type = node->getElementType();
  return load(element(scratch.lookup(node), type, columns.index), type, &columns);
}

Value LoopNestEmitter::loadLanes(Value base, Type type, Value offsets, const Columns &columns) {
  auto pointersType = vectorOf(LLVM::LLVMPointerType::get(b.getContext()));
  Value addresses = LLVM::GEPOp::create(b, loc, pointersType, type, base, ValueRange{offsets});
  auto vector = vectorOf(type);
  Value mask = columns.mask;
  if (!mask)
    mask = arith::ConstantOp::create(b, loc, DenseElementsAttr::get(vectorOf(b.getI1Type()), true));
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(vector));
  return LLVM::masked_gather::create(b, loc, vector, addresses, mask, ValueRange{zero},
                                     b.getI32IntegerAttr(alignmentOf(type)));
}

//===----------------------------------------------------------------------===//
// Columns
//===----------------------------------------------------------------------===//

LoopNestEmitter::Carried LoopNestEmitter::walkColumns(Value low, Value high, int64_t staticLow,
                                                      int64_t staticHigh, unsigned unroll,
                                                      Columns columns, ArrayRef<Value> start,
                                                      ArrayRef<train::ReduceKind> kinds,
                                                      Body body) {
  bool dynamic = bool(low);
  int64_t wide = int64_t(lanes) * unroll, count = staticHigh - staticLow;
  auto at = [&](Value index, Value mask, ArrayRef<Value> carried) {
    Columns here = columns;
    here.index = index;
    here.mask = mask;
    Memo memo;
    here.memo = &memo;
    return body(here, carried);
  };
  auto plus = [&](Value index, int64_t offset) -> Value {
    return offset ? Value(arith::AddIOp::create(b, loc, index, constant(offset))) : index;
  };
  // [begin, mainEnd) in steps of several vectors, [mainEnd, vectorEnd) in steps of
  // one, then the rest under a mask.
  Value begin = dynamic ? low : constant(staticLow), limit = dynamic ? high : constant(staticHigh);
  auto roundDown = [&](int64_t step) -> Value {
    if (!dynamic)
      return constant(staticLow + count / step * step);
    Value length = arith::SubIOp::create(b, loc, limit, begin);
    Value rest = arith::RemUIOp::create(b, loc, length, constant(step));
    return arith::SubIOp::create(b, loc, limit, rest);
  };

  // Each of the unrolled vectors accumulates for itself.
  Carried sums;
  for (unsigned u = 0; u < unroll; ++u)
    for (auto [i, value] : llvm::enumerate(start))
      sums.push_back(u == 0 ? value : neutral(kinds[i], value.getType()));
  Value mainEnd = begin;
  if (dynamic || count >= wide) {
    mainEnd = roundDown(wide);
    sums = forLoop(begin, mainEnd, constant(wide), sums, [&](Value index, ValueRange in) {
      Carried next;
      SmallVector<Value> carried(in);
      for (unsigned u = 0; u < unroll; ++u)
        llvm::append_range(next, at(plus(index, int64_t(u) * lanes), {},
                                    ArrayRef(carried).slice(u * start.size(), start.size())));
      return next;
    });
  }
  Carried result(ArrayRef(sums).take_front(start.size()));
  for (unsigned u = 1; u < unroll; ++u)
    for (unsigned i = 0; i < start.size(); ++i)
      result[i] = combine(kinds[i], result[i], sums[u * start.size() + i]);

  Value vectorEnd = mainEnd;
  if (unroll > 1 && (dynamic || count % wide >= lanes)) {
    vectorEnd = roundDown(lanes);
    result = forLoop(mainEnd, vectorEnd, constant(lanes), result, [&](Value index, ValueRange in) {
      return at(index, {}, SmallVector<Value>(in));
    });
  }
  if (!dynamic && count % lanes == 0)
    return result;
  if (!dynamic) {
    SmallVector<bool> exists(lanes);
    for (unsigned lane = 0; lane < lanes; ++lane)
      exists[lane] = int64_t(lane) < count % lanes;
    Value mask =
        arith::ConstantOp::create(b, loc, DenseElementsAttr::get(vectorOf(b.getI1Type()), exists));
    return at(vectorEnd, mask, result);
  }
  Value some = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, vectorEnd, limit);
  auto branch = scf::IfOp::create(b, loc, ValueRange(result).getTypes(), some,
                                  /*withElseRegion=*/!result.empty());
  OpBuilder::InsertionGuard guard(b);
  auto fill = [&](Block *block, llvm::function_ref<Carried()> make) {
    if (result.empty())
      b.setInsertionPoint(block->getTerminator());
    else
      b.setInsertionPointToEnd(block);
    Carried values = make();
    if (!result.empty())
      scf::YieldOp::create(b, loc, values);
  };
  fill(branch.thenBlock(), [&] {
    Columns here = columns;
    here.index = vectorEnd;
    Value mask = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                       laneIndex(here, b.getI64Type()), splat(limit));
    return at(vectorEnd, mask, result);
  });
  if (result.empty())
    return result;
  fill(branch.elseBlock(), [&] { return result; });
  return Carried(branch.getResults());
}

/// Light bodies need several vectors in flight, heavy ones have enough to do.
unsigned LoopNestEmitter::unrollOf(unsigned loop) {
  int64_t cost = 0;
  for (Node *reduce : rowReductions(nest))
    if (reduce->depth == loop + 1)
      cost += reduce->operands[0]->cost + 1;
  for (const Root &root : nest.roots)
    if (!root.row && loopOf(nest, root) == loop)
      cost += root.node->cost + 1;
  return cost <= 12 ? 4 : cost <= 40 ? 2 : 1;
}

/// The loop over the columns of dimension `column`. Sums of full reductions go
/// through `sums`, one a root.
LoopNestEmitter::Carried LoopNestEmitter::emitLoop(unsigned loop, int column, Carried sums) {
  SmallVector<Node *> reduces, kept;
  SmallVector<const Root *> roots;
  for (Node *reduce : rowReductions(nest))
    if (reduce->depth == loop + 1 && reduce->column == column)
      reduces.push_back(reduce);
  if (column == nest.mainColumn)
    for (const Root &root : nest.roots)
      if (!root.row && loopOf(nest, root) == loop)
        roots.push_back(&root);
  for (auto &node : nest.nodes)
    if (node->keptBy == int(loop) && llvm::is_contained(node->map, column))
      kept.push_back(node.get());
  if (reduces.empty() && roots.empty() && kept.empty())
    return sums;

  evalRowValues(loop);

  SmallVector<train::ReduceKind> kinds;
  Carried start;
  for (Node *reduce : reduces)
    kinds.push_back(reduce->primitive.reduction);
  for (const Root *root : roots)
    if (root->kind == Root::FullSum)
      kinds.push_back(root->reduction);
  for (auto [i, kind] : llvm::enumerate(kinds)) {
    Type element = i < reduces.size() ? reduces[i]->getElementType() : Type(b.getF32Type());
    start.push_back(neutral(kind, vectorOf(element)));
  }

  auto body = [&](const Columns &columns, ArrayRef<Value> carried) {
    // All values before any store: a result may lie where an argument does.
    Carried next;
    SmallVector<Value> values;
    auto accumulate = [&](Value value) {
      unsigned i = next.size();
      if (columns.mask)
        value = arith::SelectOp::create(b, loc, columns.mask, value,
                                        neutral(kinds[i], value.getType()));
      next.push_back(combine(kinds[i], carried[i], value));
    };
    for (Node *reduce : reduces)
      accumulate(splat(eval(reduce->operands[0], &columns)));
    for (const Root *root : roots)
      values.push_back(splat(eval(root->node, &columns)));
    for (Node *node : kept)
      store(splat(eval(node, &columns)),
            element(scratch.lookup(node), node->getElementType(), columns.index), &columns);
    for (auto [root, value] : llvm::zip(roots, values)) {
      if (root->kind == Root::FullSum)
        accumulate(value);
      else
        emitRoot(*root, columns, value);
    }
    return next;
  };

  Columns columns;
  columns.loop = loop;
  int64_t width = nest.columnsOf(column);
  bool halves = nest.half && width == 2 * nest.half;
  Carried ends = start;
  for (int half = 0; half < (halves ? 2 : 1); ++half) {
    columns.half = half;
    ends = walkColumns(low, high, half * nest.half, half || !halves ? width : nest.half,
                       unrollOf(loop), columns, ends, kinds, body);
  }
  for (auto [reduce, end] : llvm::zip(reduces, ends))
    scalars[reduce] = horizontal(reduce->primitive.reduction, end);
  unsigned next = reduces.size();
  unsigned sum = 0;
  for (const Root &root : nest.roots)
    if (root.kind == Root::FullSum) {
      if (llvm::is_contained(roots, &root))
        sums[sum] = combine(root.reduction, sums[sum], horizontal(root.reduction, ends[next++]));
      ++sum;
    }
  return sums;
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// One row: its loops over columns, then what is stored once a row.
LoopNestEmitter::Carried LoopNestEmitter::emitRow(Carried sums) {
  // Rows are emitted once, but chunk-level values stay known.
  for (unsigned loop = 0, loops = loopCount(); loop < loops; ++loop)
    for (auto [dim, role] : llvm::enumerate(nest.roles))
      if (role == Role::Column && (!nest.isMerged(dim) || int(dim) == nest.mainColumn))
        sums = emitLoop(loop, dim, sums);

  SmallVector<std::pair<const Root *, Value>> values;
  for (const Root &root : nest.roots)
    if (root.row)
      values.push_back({&root, eval(root.node, nullptr)});
  for (auto [root, value] : values) {
    if (root->kind == Root::Store) {
      store(value, destination(*root, nullptr), nullptr);
      continue;
    }
    unsigned sum = 0;
    for (const Root &other : nest.roots) {
      if (&other == root)
        sums[sum] = combine(root->reduction, sums[sum], value);
      sum += other.kind == Root::FullSum;
    }
  }
  return sums;
}

void LoopNestEmitter::initPartialSums(Value low, Value high) {
  SmallVector<const Root *> roots;
  for (const Root &root : nest.roots)
    if (root.kind == Root::ColumnSum)
      roots.push_back(&root);
  if (roots.empty())
    return;
  walkColumns(low, high, 0, nest.columnSize, 1, Columns(), {}, {},
              [&](const Columns &columns, ArrayRef<Value>) -> Carried {
                for (const Root *root : roots)
                  store(neutral(root->reduction, vectorOf(root->dest->type.getElementType())),
                        destination(*root, &columns), &columns);
                return {};
              });
}

void LoopNestEmitter::emitNest() {
  for (auto &node : nest.nodes)
    if (node->keptBy >= 0) {
      int64_t width = 0;
      for (int dim : node->map)
        if (nest.isColumn(dim))
          width = nest.columnsOf(dim);
      scratch[node.get()] =
          LLVM::AllocaOp::create(b, loc, LLVM::LLVMPointerType::get(b.getContext()),
                                 node->getElementType(), constant(width), /*alignment=*/64);
    }
  chunk = arith::DivUIOp::create(
      b, loc, begin,
      constant(std::max<int64_t>(1, llvm::divideCeil(nest.iterations, nest.chunks))));
  if (!nest.columns)
    initPartialSums({}, {});

  evalChunkValues();

  Carried sums;
  for (const Root &root : nest.roots)
    if (root.kind == Root::FullSum)
      sums.push_back(neutral(root.reduction, root.dest->type.getElementType()));

  sums = forLoop(begin, end, constant(1), sums, [&](Value iteration, ValueRange in) {
    Carried carried(in);
    if (nest.blocks > 1) {
      Value block = arith::RemUIOp::create(b, loc, iteration, constant(nest.blocks));
      iteration = arith::DivUIOp::create(b, loc, iteration, constant(nest.blocks));
      low = arith::MulIOp::create(b, loc, block, constant(nest.block));
      high =
          arith::MinSIOp::create(b, loc, arith::AddIOp::create(b, loc, low, constant(nest.block)),
                                 constant(nest.columnSize));
    }
    decompose(iteration, Role::Parallel);
    if (!nest.columns)
      return emitRow(carried);
    initPartialSums(low, high);
    forLoop(constant(0), constant(nest.rows(Role::Sequential)), constant(1), {},
            [&](Value row, ValueRange) -> Carried {
              decompose(row, Role::Sequential);
              return emitRow({});
            });
    return carried;
  });
  unsigned sum = 0;
  for (const Root &root : nest.roots)
    if (root.kind == Root::FullSum) {
      Root scalar = root;
      scalar.map.clear();
      store(sums[sum++], destination(scalar, nullptr), nullptr);
    }
}

void LoopNestEmitter::emit(StringRef name) {
  MLIRContext *context = b.getContext();
  auto ptr = LLVM::LLVMPointerType::get(context);
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context),
                                          {ptr, b.getI64Type(), b.getI64Type()});
  b.setInsertionPointToEnd(module.getBody());
  function = LLVM::LLVMFuncOp::create(b, loc, name, type);
  Block *entry = function.addEntryBlock(b);
  buffers = entry->getArgument(0);
  begin = entry->getArgument(1);
  end = entry->getArgument(2);
  b.setInsertionPointToStart(entry);

  const Root &first = nest.roots.front();
  if (first.skipWhenInPlace && first.node->kind == Node::Load) {
    // The start of a scatter, in place already.
    Value differs = LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::ne,
                                         pointer(first.node->buffer), pointer(first.dest));
    auto branch = scf::IfOp::create(b, loc, differs);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(branch.thenBlock()->getTerminator());
    emitNest();
  } else {
    emitNest();
  }
  b.setInsertionPointToEnd(entry);
  LLVM::ReturnOp::create(b, loc, ValueRange());
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

std::string cpu::loopNestName(StringRef kernel, unsigned index) {
  return index == 0 ? kernel.str() : (kernel + "." + Twine(index)).str();
}

LogicalResult cpu::emitKernel(const KernelLoops &kernelLoops, ModuleOp module,
                              const VectorTarget &target) {
  func::FuncOp kernel = kernelLoops.function;
  for (auto [i, nest] : llvm::enumerate(kernelLoops.nests))
    LoopNestEmitter(kernelLoops, nest, module, target).emit(loopNestName(kernel.getName(), i));
  return success();
}
