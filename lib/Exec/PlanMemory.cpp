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
struct ExecPlanMemory : exec::impl::ExecPlanMemoryBase<ExecPlanMemory> {
  void runOnOperation() override {
    if (failed(placePersistent()))
      return signalPassFailure();
    placeScratch();
    report();
  }

private:
  LogicalResult placePersistent();
  void placeScratch();
  void report();

  /// By kind and name, e.g. "variable wte": the uses in all programs.
  llvm::MapVector<StringRef, SmallVector<BufferOp>> persistent;
  SmallVector<BufferOp> scratch;
  SmallVector<Lifetime> lifetimes;
  int64_t persistentBytes = 0;
  OffsetPlan plan;
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

void ExecPlanMemory::placeScratch() {
  // One program after the other on one line of time.
  int64_t start = 0;
  for (auto program : getOperation().getOps<ProgramOp>()) {
    ProgramLiveness liveness(program);
    for (auto buffer : llvm::make_early_inc_range(program.getBody().front().getOps<BufferOp>())) {
      if (buffer.isPersistent())
        continue;
      auto range = liveness.range(buffer);
      if (!range) {
        buffer.erase();
        continue;
      }
      scratch.push_back(buffer);
      lifetimes.push_back({buffer.getBytes(), start + range->first, start + range->second + 1});
    }
    start += liveness.size();
  }
  plan = planOffsets(lifetimes, MW_ALIGNMENT);
  Builder builder(&getContext());
  for (auto [buffer, offset] : llvm::zip(scratch, plan.offsets))
    buffer.setOffsetAttr(builder.getI64IntegerAttr(persistentBytes + offset));
}

void ExecPlanMemory::report() {
  auto [live, when] = largestLiveSum(lifetimes, MW_ALIGNMENT);
  Builder builder(&getContext());
  ModuleOp module = getOperation();
  module->setAttr(arenaBytesAttr, builder.getI64IntegerAttr(persistentBytes + plan.size));
  module->setAttr(liveBytesAttr, builder.getI64IntegerAttr(persistentBytes + live));
  std::map<Category, int64_t> bytes;
  for (auto &[name, uses] : persistent)
    bytes[uses.front().getCategory()] += llvm::alignTo(uses.front().getBytes(), MW_ALIGNMENT);
  for (auto [buffer, lifetime] : llvm::zip(scratch, lifetimes))
    if (lifetime.begin <= when && when < lifetime.end)
      bytes[buffer.getCategory()] += llvm::alignTo(lifetime.size, MW_ALIGNMENT);
  SmallVector<NamedAttribute> memory;
  for (auto [category, size] : bytes)
    memory.push_back(
        builder.getNamedAttr(stringifyCategory(category), builder.getI64IntegerAttr(size)));
  module->setAttr(memoryAttr, builder.getDictionaryAttr(memory));
}
