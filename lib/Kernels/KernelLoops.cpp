//===- KernelLoops.cpp - how a decomposed kernel is computed ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "meshwright/KernelLoops.h"
#include "Train/TensorType.h"
#include "Kernels/KernelGraph.h"
#include "Kernels/KernelSchedule.h"

#include "llvm/ADT/EquivalenceClasses.h"

#include <deque>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::codegen;
using train::tensor;

int64_t LoopNest::rows(Role role) const {
  int64_t count = 1;
  for (auto [dim, size] : llvm::enumerate(sizes))
    if (roles[dim] == role && role != Role::Column)
      count *= size;
  return count;
}

StringRef LoopNest::getTemplate() const {
  if (columns)
    return llvm::any_of(roots, [](const Root &root) { return root.kind == Root::Scatter; })
               ? "scatter"
               : "columns";
  if (!rowReductions(*this).empty())
    return "row-reduce";
  if (llvm::any_of(roots, [](const Root &root) { return root.kind != Root::Store; }))
    return "partials";
  return mainColumn < 0 ? "scalars" : "elementwise";
}

namespace {
class LoopBuilder {
public:
  LoopBuilder(func::FuncOp kernel, const exec::ScheduleLimits &options) : options(options) {
    kernelLoops.function = kernel;
  }
  FailureOr<KernelLoops> run();

private:
  LogicalResult checkTypes();
  Buffer *buffer(Buffer::Kind kind, RankedTensorType type);
  Buffer *find(Value value, DenseElementsAttr constant);
  FailureOr<Materialized> materialize(Value value);
  FailureOr<Materialized> materializeReduce(Value value, const train::Primitive &reduce);
  FailureOr<Materialized> materializeScatter(Value value);
  /// Sets the level of a root, and whether it is computed by rows.
  LogicalResult settle(RootSpec &spec);
  LogicalResult store(Value value, Buffer *dest);
  /// Memory for a value: its index among the results, or workspace.
  Buffer *home(Value value);
  KernelGraph graph(LoopNest &nest) {
    return KernelGraph(
        nest, [this](Value value) { return materialize(value); },
        [this](Value value, DenseElementsAttr constant) { return find(value, constant); });
  }
  LogicalResult formLoopNests();
  LogicalResult formLoopNest(unsigned level, ArrayRef<RootSpec *> members);
  void layOutWorkspace();
  void findInplace();

  const exec::ScheduleLimits &options;
  KernelLoops kernelLoops;
  llvm::MapVector<Value, Materialized> materialized;
  llvm::DenseMap<Value, Buffer *> results, known;
  /// Grows while roots are settled: pointers into it must stay good.
  std::deque<RootSpec> specs;
};
} // namespace

LogicalResult LoopBuilder::checkTypes() {
  func::FuncOp kernel = kernelLoops.function;
  auto check = [&](Type type) -> LogicalResult {
    auto ranked = dyn_cast<RankedTensorType>(type);
    if (!ranked || !ranked.hasStaticShape() ||
        !(isa<Float32Type, BFloat16Type, Float16Type, Float8E4M3FNType, Float8E5M2Type>(
              ranked.getElementType()) ||
          ranked.getElementType().isInteger(32) || ranked.getElementType().isInteger(16) ||
          ranked.getElementType().isInteger(8)))
      return kernel.emitError("kernel @")
             << kernel.getName() << " touches memory of type " << type
             << "; generated kernels hold statically shaped tensors of f32, bf16, f16, f8E4M3FN, f8E5M2, "
                "i32, i16 or i8";
    return success();
  };
  if (!kernel.getBody().hasOneBlock())
    return kernel.emitError("kernel @") << kernel.getName() << " must have one block";
  for (Type type : kernel.getArgumentTypes())
    if (failed(check(type)))
      return failure();
  for (Type type : kernel.getResultTypes())
    if (failed(check(type)))
      return failure();
  return success();
}

Buffer *LoopBuilder::buffer(Buffer::Kind kind, RankedTensorType type) {
  kernelLoops.buffers.push_back(std::make_unique<Buffer>());
  Buffer *buffer = kernelLoops.buffers.back().get();
  buffer->kind = kind;
  buffer->type = type;
  return buffer;
}

Buffer *LoopBuilder::find(Value value, DenseElementsAttr constant) {
  Buffer *&found = known[value];
  if (!found) {
    found = buffer(constant ? Buffer::Constant : Buffer::Argument, tensor(value));
    found->constant = constant;
    if (auto argument = dyn_cast<BlockArgument>(value))
      found->index = argument.getArgNumber();
  }
  return found;
}

Buffer *LoopBuilder::home(Value value) {
  auto it = results.find(value);
  return it != results.end() ? it->second : buffer(Buffer::Workspace, tensor(value));
}

LogicalResult LoopBuilder::settle(RootSpec &spec) {
  if (!spec.columns && !spec.row && (spec.kind == Root::Store || spec.kind == Root::FullSum)) {
    LoopNest nest;
    KernelGraph probe = graph(nest);
    probe.probing = true;
    if (failed(probe.add(spec)) && !probe.reducedAlongColumns)
      return failure();
    spec.row = probe.reducedAlongColumns;
  }
  LoopNest nest;
  KernelGraph nodes = graph(nest);
  if (failed(nodes.add(spec)))
    return failure();
  spec.level = nodes.level;
  spec.half = nest.half;
  return success();
}

/// Whether computing `value` means reducing rows on the way.
static bool reducesRows(Value value, DenseSet<Value> &seen) {
  Operation *op = value.getDefiningOp();
  if (!op || !seen.insert(value).second)
    return false;
  if (auto primitive = primitiveOf(op); primitive && primitive->kind == train::Primitive::Reduce)
    return isRowReduce(op);
  return llvm::any_of(op->getOperands(), [&](Value operand) { return reducesRows(operand, seen); });
}

FailureOr<Materialized> LoopBuilder::materializeReduce(Value value,
                                                       const train::Primitive &reduce) {
  Operation *op = value.getDefiningOp();
  Value x = op->getOperand(0);
  auto type = tensor(x);
  RootSpec spec{Root::Store, x};
  spec.reduction = reduce.reduction;
  spec.reduced = reduce.dims;
  int64_t rank = type.getRank(), reduced = spec.reduced.size();
  if (reduced == rank) {
    spec.kind = Root::FullSum;
    spec.partial = true;
  } else if (spec.reduced.back() == rank - 1 && reduced > 1) {
    return op->emitOpError("reduces rows and over rows at once, found dimensions ")
           << reduce.dims << ": make it one reduction over the last and one over the others";
  } else if (spec.reduced.back() == rank - 1) {
    // A reduction of rows whose result another loop nest wants.
    spec = RootSpec{Root::Store, value};
    spec.row = true;
  } else {
    spec.kind = Root::ColumnSum;
    int64_t columns = type.getShape().back(), rows = 1;
    for (int64_t dim : spec.reduced)
      rows *= type.getDimSize(dim);
    // Sums of long columns are split into chunks of rows; where rows are few,
    // each thread walks all of them for its own columns.
    DenseSet<Value> seen;
    spec.partial = reduced == rank - 1 && (reducesRows(x, seen) || rows >= 256 || columns < 1024);
    spec.columns = !spec.partial;
  }
  if (failed(settle(spec)))
    return failure();
  spec.dest = spec.partial ? buffer(Buffer::Workspace, tensor(value)) : home(value);
  specs.push_back(spec);
  return Materialized{spec.dest, spec.level, spec.partial};
}

FailureOr<Materialized> LoopBuilder::materializeScatter(Value value) {
  Operation *op = value.getDefiningOp();
  Value x = op->getOperand(0), ids = op->getOperand(1);
  int64_t rank = tensor(ids).getRank();
  if (tensor(x).getRank() != rank + 1)
    return op->emitOpError("adds rows of one dimension, found rows ")
           << x.getType() << " for ids " << ids.getType();
  Buffer *dest = home(value);
  OpBuilder b(op);
  Value start = op->getNumOperands() > 2 ? op->getOperand(2) : Value();
  if (!start) {
    auto type = tensor(value);
    start = arith::ConstantOp::create(
        b, op->getLoc(), DenseElementsAttr::get(type, b.getZeroAttr(type.getElementType())));
  }
  RootSpec fill{Root::Store, start};
  fill.dest = dest;
  fill.skipWhenInPlace = true;
  if (failed(settle(fill)))
    return failure();
  specs.push_back(fill);

  RootSpec spec{Root::Scatter, x, ids, dest};
  spec.columns = true;
  spec.reduced = llvm::to_vector<6>(llvm::seq<int64_t>(0, rank));
  if (failed(settle(spec)))
    return failure();
  spec.level = std::max(spec.level, fill.level + 1);
  specs.push_back(spec);
  return Materialized{dest, spec.level};
}

FailureOr<Materialized> LoopBuilder::materialize(Value value) {
  if (auto it = materialized.find(value); it != materialized.end())
    return it->second;
  FailureOr<Materialized> result = failure();
  auto primitive = primitiveOf(value.getDefiningOp());
  if (primitive && primitive->kind == train::Primitive::Reduce) {
    result = materializeReduce(value, *primitive);
  } else if (primitive && primitive->kind == train::Primitive::Scatter) {
    result = materializeScatter(value);
  } else {
    RootSpec spec{Root::Store, value};
    if (failed(settle(spec)))
      return failure();
    spec.dest = home(value);
    specs.push_back(spec);
    result = Materialized{spec.dest, spec.level};
  }
  if (succeeded(result))
    materialized[value] = *result;
  return result;
}

LogicalResult LoopBuilder::store(Value value, Buffer *dest) {
  Operation *op = value.getDefiningOp();
  auto primitive = primitiveOf(op);
  if (primitive && (primitive->kind == train::Primitive::Scatter ||
                    (primitive->kind == train::Primitive::Reduce && !isRowReduce(op)))) {
    FailureOr<Materialized> where = materialize(value);
    if (failed(where))
      return failure();
    if (where->buffer == dest)
      return success();
  } else if (auto it = materialized.find(value);
             it != materialized.end() && it->second.buffer == dest) {
    return success();
  }
  RootSpec spec{Root::Store, value};
  spec.dest = dest;
  if (failed(settle(spec)))
    return failure();
  specs.push_back(spec);
  if (results.lookup(value) == dest)
    materialized.insert({value, {dest, spec.level}});
  return success();
}

/// The tensors of the kernel's arguments that `value` is made of.
static void argumentsOf(Value value, DenseSet<Value> &seen, SmallVectorImpl<Value> &found) {
  if (!value || !seen.insert(value).second)
    return;
  if (isa<BlockArgument>(value) && tensor(value).getRank() > 0)
    found.push_back(value);
  if (Operation *op = value.getDefiningOp())
    for (Value operand : op->getOperands())
      argumentsOf(operand, seen, found);
}

LogicalResult LoopBuilder::formLoopNests() {
  // Roots over the same rows and columns share a loop nest, unless nothing connects what they
  // read. Scalars do not join long rows, which they would keep from being split; each
  // scatter is divided by its own target.
  struct Group {
    RootSpec *first;
    int64_t width, half;
    Value reads;
    SmallVector<RootSpec *> members;
  };
  llvm::EquivalenceClasses<Value> connected;
  DenseMap<RootSpec *, Value> readsOf;
  for (RootSpec &spec : specs) {
    SmallVector<Value> arguments;
    DenseSet<Value> seen;
    argumentsOf(spec.value, seen, arguments);
    argumentsOf(spec.ids, seen, arguments);
    for (Value argument : arguments)
      connected.unionSets(arguments.front(), argument);
    if (!arguments.empty())
      readsOf[&spec] = arguments.front();
  }
  auto agree = [](int64_t a, int64_t b, int64_t none) { return a == none || b == none || a == b; };
  std::vector<Group> groups;
  for (RootSpec &spec : specs) {
    Value reads = readsOf.lookup(&spec);
    auto it = llvm::find_if(groups, [&](Group &group) {
      const RootSpec &first = *group.first;
      return first.level == spec.level && first.columns == spec.columns &&
             !first.skipWhenInPlace && !spec.skipWhenInPlace && !first.ids && !spec.ids &&
             first.rowDims() == spec.rowDims() &&
             (first.getType().getRank() == 0) == (spec.getType().getRank() == 0) &&
             agree(group.width, spec.columnSize(), -1) && agree(group.half, spec.half, 0) &&
             (!group.reads || !reads || connected.isEquivalent(group.reads, reads));
    });
    if (it == groups.end())
      it = groups.insert(it, Group{&spec, -1, 0, reads, {}});
    it->width = std::max(it->width, spec.columnSize());
    it->half = std::max(it->half, spec.half);
    it->reads = it->reads ? it->reads : reads;
    it->members.push_back(&spec);
  }
  unsigned last = 0;
  for (Group &group : groups)
    last = std::max(last, group.first->level);
  for (unsigned level = 0; level <= last; ++level)
    for (Group &group : groups)
      if (group.first->level == level && failed(formLoopNest(level, group.members)))
        return failure();
  return success();
}

LogicalResult LoopBuilder::formLoopNest(unsigned level, ArrayRef<RootSpec *> members) {
  LoopNest &nest = kernelLoops.nests.emplace_back();
  nest.level = level;
  KernelGraph nodes = graph(nest);
  for (auto &[value, where] : materialized)
    if (where.level < level)
      nodes.available[value] = where;
  // Roots with columns come first: they say which dimension is the main one.
  for (bool columns : {true, false})
    for (RootSpec *spec : members)
      if ((spec->columnSize() >= 0) == columns && failed(nodes.add(*spec)))
        return failure();
  if (nest.mainColumn < 0)
    for (auto [dim, role] : llvm::enumerate(nest.roles))
      if (role == Role::Column && nest.mainColumn < 0)
        nest.mainColumn = dim;
  return success();
}

void LoopBuilder::layOutWorkspace() {
  for (LoopNest &nest : kernelLoops.nests)
    for (Root &root : nest.roots)
      if (root.dest->kind == Buffer::Workspace && !nest.columns && root.kind != Root::Store) {
        // One partial result a chunk.
        SmallVector<int64_t> shape{nest.chunks};
        llvm::append_range(shape, root.dest->type.getShape());
        root.dest->type = RankedTensorType::get(shape, root.dest->type.getElementType());
      }
  for (auto &buffer : kernelLoops.buffers)
    if (buffer->kind == Buffer::Workspace) {
      buffer->offset = kernelLoops.workspace;
      int64_t bits = buffer->type.getNumElements() * buffer->type.getElementTypeBitWidth();
      kernelLoops.workspace += llvm::alignTo(llvm::divideCeil(bits, 8), 64);
    }
}

/// An argument and a result may be the same memory if every read of the argument
/// is at the element about to be written, or has happened at a level before: loop nests of
/// one level may run side by side.
void LoopBuilder::findInplace() {
  struct Read {
    Node *node;
    unsigned nest, loop;
    bool shifted;
  };
  /// The first root by which a result is written.
  struct Write {
    const Root *root;
    unsigned nest, loop;
  };
  llvm::DenseMap<Buffer *, SmallVector<Read, 2>> reads;
  llvm::DenseMap<Buffer *, Write> writes;
  for (unsigned i = 0; i < kernelLoops.nests.size(); ++i) {
    LoopNest &nest = kernelLoops.nests[i];
    for (Root &root : nest.roots)
      if (root.dest->kind == Buffer::Result && !writes.contains(root.dest))
        writes[root.dest] = {&root, i, loopOf(nest, root)};
    forEachEvaluation(nest, [&](Node *node, unsigned loop, bool shifted) {
      if (node->buffer && node->buffer->kind == Buffer::Argument)
        reads[node->buffer].push_back({node, i, loop, shifted});
      return true;
    });
  }
  auto mayShare = [&](const Read &read, const Write &write) {
    if (read.nest != write.nest)
      return read.nest < write.nest &&
             kernelLoops.nests[read.nest].level != kernelLoops.nests[write.nest].level;
    return read.node->kind == Node::Load && write.root->kind == Root::Store && !read.shifted &&
           read.loop <= write.loop &&
           ArrayRef<int>(read.node->map) == ArrayRef<int>(write.root->map);
  };
  for (auto &argument : kernelLoops.buffers)
    for (auto &result : kernelLoops.buffers) {
      if (argument->kind != Buffer::Argument || result->kind != Buffer::Result ||
          argument->type != result->type)
        continue;
      auto write = writes.find(result.get());
      if (write != writes.end() && llvm::all_of(reads[argument.get()], [&](const Read &read) {
            return mayShare(read, write->second);
          }))
        kernelLoops.inplace.push_back({argument->index, result->index});
    }
  llvm::sort(kernelLoops.inplace);
}

FailureOr<KernelLoops> LoopBuilder::run() {
  func::FuncOp kernel = kernelLoops.function;
  if (failed(checkTypes()))
    return failure();
  auto returned = kernel.getBody().front().getTerminator()->getOperands();
  SmallVector<std::pair<Value, Buffer *>> stores;
  for (auto [i, value] : llvm::enumerate(returned)) {
    Buffer *dest = buffer(Buffer::Result, tensor(value));
    dest->index = i;
    stores.push_back({value, dest});
    if (!isa<BlockArgument>(value))
      results.insert({value, dest});
  }
  for (auto [value, dest] : stores)
    if (failed(store(value, dest)))
      return failure();
  if (failed(formLoopNests()))
    return failure();

  auto chosen = kernel->getAttrOfType<DenseI64ArrayAttr>("exec.chunks");
  if (chosen && chosen.size() != int64_t(kernelLoops.nests.size()))
    return kernel.emitError("kernel @") << kernel.getName() << " has " << kernelLoops.nests.size()
                                        << " loop nests, but exec.chunks names " << chosen.size();
  for (auto [i, nest] : llvm::enumerate(kernelLoops.nests)) {
    scheduleLoopNest(nest, options);
    if (chosen)
      setChunks(nest, chosen[i]);
  }
  layOutWorkspace();
  findInplace();
  return std::move(kernelLoops);
}

FailureOr<KernelLoops> codegen::buildKernelLoops(func::FuncOp kernel,
                                                 const exec::ScheduleLimits &options) {
  return LoopBuilder(kernel, options).run();
}
