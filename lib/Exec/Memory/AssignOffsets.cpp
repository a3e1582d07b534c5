//===- AssignOffsets.cpp - exec-assign-offsets ------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Exec/Passes.h"
#include "Liveness.h"
#include "OffsetAssigner.h"
#include "meshwright/runtime/Staging.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

namespace meshwright::exec {
#define GEN_PASS_DEF_EXECASSIGNOFFSETS
#include "Exec/Passes.h.inc"
} // namespace meshwright::exec

static int64_t alignmentOf(MemorySpace space) {
  static_assert([] {
    for (MemorySpace space : memorySpaces)
      if (spaceRow(space).alignment % MW_ALIGNMENT)
        return false;
    return true;
  }());
  return spaceRow(space).alignment;
}

/// The bytes of a buffer with those that nothing else uses behind it.
static int64_t alignedBytes(BufferOp buffer) {
  return llvm::alignTo(buffer.getBytes(), alignmentOf(spaceOf(buffer.getType())));
}

namespace {
/// Buffers that share memory by lifetime: of a called program, or of all others, one
/// after the other on one line of time.
struct Scratch {
  struct Entry {
    BufferOp buffer;
    ProgramOp callee; ///< whose workspace it is, or null
    Lifetime lifetime;
  };
  SmallVector<Entry> entries;
  int64_t time = 0;
  OffsetAssignment assignment;

  void assign(int64_t base, int64_t alignment) {
    SmallVector<Lifetime> lifetimes;
    for (Entry &entry : entries)
      lifetimes.push_back(entry.lifetime);
    assignment = computeOffsets(lifetimes, alignment);
    for (auto [entry, offset] : llvm::zip(entries, assignment.offsets))
      entry.buffer.setOffset(base + offset);
  }
};

struct ExecAssignOffsets : exec::impl::ExecAssignOffsetsBase<ExecAssignOffsets> {
  void runOnModule() override {
    persistent.clear();
    persistentBytes = {};
    for (MemorySpace space : memorySpaces)
      getOperation()->removeAttr(memoryAttributes[space].bytes);
    if (failed(assignPersistentOffsets()))
      return signalPassFailure();
    // Callees before callers, in whose workspaces their buffers are.
    SmallVector<ProgramOp> entries;
    for (auto program : getOperation().getOps<ProgramOp>())
      if (!program.isPrivate())
        entries.push_back(program);
      else if (failed(assignCalled(program)))
        return signalPassFailure();
    BySpace<Scratch> scratch;
    for (ProgramOp program : entries)
      addTo(scratch, program);
    BySpace<std::map<Category, int64_t>> bytes;
    for (auto &[name, uses] : persistent)
      bytes[spaceOf(uses.front().getType())][uses.front().getCategory()] += alignedBytes(uses.front());
    BySpace<int64_t> arenas = {};
    for (MemorySpace space : memorySpaces) {
      scratch[space].assign(persistentBytes[space], alignmentOf(space));
      arenas[space] = persistentBytes[space] + scratch[space].assignment.size;
    }
    if (int64_t staging = stagingBytes(arenas)) {
      int64_t &host = arenas[MemorySpace::Host];
      host = llvm::alignTo(host, stagingAlignment) + staging;
      bytes[MemorySpace::Host][Category::Workspace] += staging;
    }
    for (MemorySpace space : memorySpaces)
      if (space == MemorySpace::Device || arenas[space])
        report(getOperation(), space, scratch[space], persistentBytes[space], arenas[space], bytes[space]);
  }

private:
  LogicalResult assignPersistentOffsets();
  LogicalResult assignCalled(ProgramOp program);
  void addTo(BySpace<Scratch> &scratch, ProgramOp program);
  static void report(Operation *op, MemorySpace space, Scratch &scratch, int64_t base, int64_t size,
                     std::map<Category, int64_t> bytes);

  /// By kind and name, e.g. "variable wte": the uses in all programs.
  llvm::MapVector<StringRef, SmallVector<BufferOp>> persistent;
  BySpace<int64_t> persistentBytes = {};
};
} // namespace

LogicalResult ExecAssignOffsets::assignPersistentOffsets() {
  // Variables in the module's order, then inputs, then outputs.
  ModuleOp module = getOperation();
  llvm::MapVector<StringAttr, SmallVector<BufferOp>> groups[3];
  for (auto variable : module.getOps<train::VariableOp>())
    groups[0][variable.getSymNameAttr()];
  WalkResult result = module.walk([&](BufferOp buffer) {
    if (!buffer.isPersistent())
      return WalkResult::advance();
    unsigned kind = buffer.getVariable() ? 0 : buffer.getInput() ? 1 : 2;
    StringAttr name = kind == 0   ? buffer.getVariableAttr().getAttr()
                      : kind == 1 ? buffer.getInputAttr()
                                  : buffer.getOutputAttr();
    auto &uses = groups[kind][name];
    if (!uses.empty() && uses.front().getType() != buffer.getType()) {
      buffer.emitOpError("'") << buffer.getName() << "' is " << buffer.getType() << " here and "
                              << uses.front().getType() << " in another program";
      return WalkResult::interrupt();
    }
    uses.push_back(buffer);
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  Builder builder(&getContext());
  for (auto &group : groups)
    for (auto &[name, uses] : group) {
      if (uses.empty())
        continue;
      int64_t &end = persistentBytes[spaceOf(uses.front().getType())];
      for (BufferOp buffer : uses)
        buffer.setOffsetAttr(builder.getI64IntegerAttr(end));
      end += alignedBytes(uses.front());
      persistent[name] = uses;
    }
  return success();
}

static int64_t numberOf(Operation *op, StringRef attr) {
  auto number = op->getAttrOfType<IntegerAttr>(attr);
  return number ? number.getInt() : 0;
}

LogicalResult ExecAssignOffsets::assignCalled(ProgramOp program) {
  if (program->hasAttr(arenaBytesAttr))
    return success();
  BySpace<Scratch> scratch;
  addTo(scratch, program);
  for (MemorySpace space : offloadSpaces)
    if (!scratch[space].entries.empty()) {
      BufferOp first = scratch[space].entries.front().buffer;
      return first.emitOpError("'") << first.getName() << "' is memory of " << spaceRow(space).text
                                    << " that a called program has for itself; its callers can "
                                       "give it as an argument";
    }
  Scratch &own = scratch[MemorySpace::Device];
  own.assign(0, MW_ALIGNMENT);
  report(program, MemorySpace::Device, own, 0, own.assignment.size, {});
  return success();
}

void ExecAssignOffsets::addTo(BySpace<Scratch> &scratch, ProgramOp program) {
  SymbolTableCollection symbols;
  Block &top = program.getBlock();
  llvm::DenseMap<BufferOp, ProgramOp> workspaces;
  program.walk([&](CallOp call) {
    auto callee = symbols.lookupNearestSymbolFrom<ProgramOp>(call, call.getCalleeAttr());
    (void)assignCalled(callee); // which refuses itself in its turn
    int64_t bytes = numberOf(callee, arenaBytesAttr);
    if (bytes == 0 || call.getWorkspace())
      return;
    OpBuilder builder = OpBuilder::atBlockBegin(&top);
    auto type = MemRefType::get({bytes}, builder.getI8Type());
    std::string name = ("call." + Twine(workspaces.size())).str();
    auto buffer = BufferOp::create(builder, call.getLoc(), type, name, Category::Workspace, nullptr,
                                   nullptr, nullptr, nullptr);
    call.getWorkspaceMutable().assign(buffer.getMemory());
    workspaces[buffer] = callee;
  });
  ProgramLiveness liveness(program);
  for (auto buffer : llvm::make_early_inc_range(top.getOps<BufferOp>())) {
    if (buffer.isPersistent())
      continue;
    std::optional<Lifetime> life = liveness.life(buffer);
    if (!life) {
      buffer.erase();
      continue;
    }
    Scratch &of = scratch[spaceOf(buffer.getType())];
    of.entries.push_back({buffer, workspaces.lookup(buffer), life->after(of.time)});
  }
  for (Scratch &of : scratch.values)
    of.time += liveness.size();
}

/// Writes what `op`, a module or a called program, needs of a space: `size` bytes, of which `base` by category
/// `bytes`, and then what `scratch` takes.
void ExecAssignOffsets::report(Operation *op, MemorySpace space, Scratch &scratch, int64_t base, int64_t size,
                               std::map<Category, int64_t> bytes) {
  int64_t alignment = alignmentOf(space);
  // Of a callee's workspace counts what is live in it, not which offsets it could have.
  SmallVector<Lifetime> needed;
  for (Scratch::Entry &entry : scratch.entries) {
    needed.push_back(entry.lifetime);
    if (entry.callee)
      needed.back().size = numberOf(entry.callee, liveBytesAttr);
  }
  LiveSum live = largestLiveSum(needed, alignment);
  for (auto [entry, need] : llvm::zip(scratch.entries, needed)) {
    int64_t held = need.bytesAt(live.time, live.iterations, alignment);
    if (held == 0)
      continue;
    if (!entry.callee) {
      bytes[entry.buffer.getCategory()] += held;
      continue;
    }
    for (NamedAttribute line : entry.callee->getAttrOfType<DictionaryAttr>(memoryAttr))
      bytes[*symbolizeCategory(line.getName())] += cast<IntegerAttr>(line.getValue()).getInt();
  }
  Builder builder(op->getContext());
  const MemoryAttributes &names = memoryAttributes[space];
  op->setAttr(names.bytes, builder.getI64IntegerAttr(size));
  if (!names.live.empty())
    op->setAttr(names.live, builder.getI64IntegerAttr(base + live.bytes));
  SmallVector<NamedAttribute> memory;
  for (auto [category, held] : bytes)
    memory.push_back(
        builder.getNamedAttr(stringifyCategory(category), builder.getI64IntegerAttr(held)));
  op->setAttr(names.memory, builder.getDictionaryAttr(memory));
}
