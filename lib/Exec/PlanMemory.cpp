//===- PlanMemory.cpp - exec-plan-memory ------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Exec/Passes.h"
#include "Liveness.h"
#include "OffsetPlanner.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

namespace meshwright::exec {
#define GEN_PASS_DEF_EXECPLANMEMORY
#include "Exec/Passes.h.inc"
} // namespace meshwright::exec

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
  OffsetPlan plan;

  void place(int64_t base) {
    SmallVector<Lifetime> lifetimes;
    for (Entry &entry : entries)
      lifetimes.push_back(entry.lifetime);
    plan = planOffsets(lifetimes, MW_ALIGNMENT);
    for (auto [entry, offset] : llvm::zip(entries, plan.offsets))
      entry.buffer.setOffset(base + offset);
  }
};

struct ExecPlanMemory : exec::impl::ExecPlanMemoryBase<ExecPlanMemory> {
  void runOnOperation() override {
    persistent.clear();
    persistentBytes = 0;
    if (failed(placePersistent()))
      return signalPassFailure();
    // Callees before callers, in whose workspaces their buffers are.
    SmallVector<ProgramOp> entries;
    for (auto program : getOperation().getOps<ProgramOp>())
      if (program.isPrivate())
        planCalled(program);
      else
        entries.push_back(program);
    Scratch scratch;
    for (ProgramOp program : entries)
      addTo(scratch, program);
    scratch.place(persistentBytes);
    std::map<Category, int64_t> bytes;
    for (auto &[name, uses] : persistent)
      bytes[uses.front().getCategory()] += llvm::alignTo(uses.front().getBytes(), MW_ALIGNMENT);
    report(getOperation(), scratch, persistentBytes, std::move(bytes));
  }

private:
  LogicalResult placePersistent();
  void planCalled(ProgramOp program);
  void addTo(Scratch &scratch, ProgramOp program);
  static void report(Operation *op, Scratch &scratch, int64_t base,
                     std::map<Category, int64_t> bytes);

  /// By kind and name, e.g. "variable wte": the uses in all programs.
  llvm::MapVector<StringRef, SmallVector<BufferOp>> persistent;
  int64_t persistentBytes = 0;
};
} // namespace

LogicalResult ExecPlanMemory::placePersistent() {
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
      for (BufferOp buffer : uses)
        buffer.setOffsetAttr(builder.getI64IntegerAttr(persistentBytes));
      persistentBytes += llvm::alignTo(uses.front().getBytes(), MW_ALIGNMENT);
      persistent[name] = uses;
    }
  return success();
}

static int64_t numberOf(Operation *op, StringRef attr) {
  auto number = op->getAttrOfType<IntegerAttr>(attr);
  return number ? number.getInt() : 0;
}

void ExecPlanMemory::planCalled(ProgramOp program) {
  if (program->hasAttr(arenaBytesAttr))
    return;
  Scratch scratch;
  addTo(scratch, program);
  scratch.place(0);
  report(program, scratch, 0, {});
}

void ExecPlanMemory::addTo(Scratch &scratch, ProgramOp program) {
  SymbolTableCollection symbols;
  Block &top = program.getBlock();
  llvm::DenseMap<BufferOp, ProgramOp> workspaces;
  program.walk([&](CallOp call) {
    auto callee = symbols.lookupNearestSymbolFrom<ProgramOp>(call, call.getCalleeAttr());
    planCalled(callee);
    int64_t bytes = numberOf(callee, arenaBytesAttr);
    if (bytes == 0 || call.getWorkspace())
      return;
    OpBuilder builder = OpBuilder::atBlockBegin(&top);
    auto type = MemRefType::get({bytes}, builder.getI8Type());
    std::string name = ("call." + Twine(workspaces.size())).str();
    auto buffer = BufferOp::create(builder, call.getLoc(), type, name, Category::Workspace,
                                   nullptr, nullptr, nullptr, nullptr);
    call.getWorkspaceMutable().assign(buffer.getMemory());
    workspaces[buffer] = callee;
  });
  ProgramLiveness liveness(program);
  for (auto buffer : llvm::make_early_inc_range(top.getOps<BufferOp>())) {
    if (buffer.isPersistent())
      continue;
    auto range = liveness.range(buffer);
    if (!range) {
      buffer.erase();
      continue;
    }
    scratch.entries.push_back(
        {buffer,
         workspaces.lookup(buffer),
         {buffer.getBytes(), scratch.time + range->first, scratch.time + range->second + 1}});
  }
  scratch.time += liveness.size();
}

/// Writes what `op`, a module or a called program, needs: `base` bytes, by category
/// `bytes`, and then what `scratch` takes.
void ExecPlanMemory::report(Operation *op, Scratch &scratch, int64_t base,
                            std::map<Category, int64_t> bytes) {
  // Of a callee's workspace counts what is live in it, not how it could be placed.
  SmallVector<Lifetime> needed;
  for (Scratch::Entry &entry : scratch.entries) {
    needed.push_back(entry.lifetime);
    if (entry.callee)
      needed.back().size = numberOf(entry.callee, liveBytesAttr);
  }
  auto [live, when] = largestLiveSum(needed, MW_ALIGNMENT);
  for (auto [entry, need] : llvm::zip(scratch.entries, needed)) {
    if (when < need.begin || need.end <= when)
      continue;
    if (!entry.callee) {
      bytes[entry.buffer.getCategory()] += llvm::alignTo(need.size, MW_ALIGNMENT);
      continue;
    }
    for (NamedAttribute line : entry.callee->getAttrOfType<DictionaryAttr>(memoryAttr))
      bytes[*symbolizeCategory(line.getName())] += cast<IntegerAttr>(line.getValue()).getInt();
  }
  Builder builder(op->getContext());
  op->setAttr(arenaBytesAttr, builder.getI64IntegerAttr(base + scratch.plan.size));
  op->setAttr(liveBytesAttr, builder.getI64IntegerAttr(base + live));
  SmallVector<NamedAttribute> memory;
  for (auto [category, size] : bytes)
    memory.push_back(
        builder.getNamedAttr(stringifyCategory(category), builder.getI64IntegerAttr(size)));
  op->setAttr(memoryAttr, builder.getDictionaryAttr(memory));
}
