//===- NumberCollectives.cpp - exec-number-collectives ----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Exec/Passes.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

namespace meshwright::exec {
#define GEN_PASS_DEF_EXECNUMBERCOLLECTIVES
#include "Exec/Passes.h.inc"
} // namespace meshwright::exec

namespace {
struct ExecNumberCollectives : exec::impl::ExecNumberCollectivesBase<ExecNumberCollectives> {
  void runOnModule() override {
    Builder b(&getContext());
    llvm::SetVector<Attribute> groups;
    int64_t count = 0;
    getOperation().walk([&](Operation *op) {
      if (ArrayAttr group = groupOf(op))
        groups.insert(group);
      if (isa<MemoryCollectiveOpInterface>(op))
        op->setAttr(collectiveAttr, b.getI64IntegerAttr(count++));
    });
    if (!groups.empty())
      getOperation()->setAttr(groupsAttr, b.getArrayAttr(groups.getArrayRef()));
  }
};
} // namespace
