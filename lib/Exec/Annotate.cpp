//===- Annotate.cpp - what analyses of floor 3 find -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Exec/Kernels/RowSpace.h"
#include "Exec/Memory/InPlaceAliases.h"
#include "Exec/Memory/Liveness.h"
#include "meshwright/Annotations.h"
#include "meshwright/MemoryProfile.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

static LogicalResult annotateMemory(ModuleOp module) {
  Builder b(module.getContext());
  for (auto &[name, profile] : profileMemory(module)) {
    SmallVector<Attribute> points;
    for (const MemoryProfile::Point &point : profile.points) {
      SmallVector<NamedAttribute> bytes{b.getNamedAttr("from", b.getI64IntegerAttr(point.op))};
      for (unsigned i = 0; i <= getMaxEnumValForCategory(); ++i)
        if (int64_t held = point.live[Category(i)])
          bytes.push_back(
              b.getNamedAttr(stringifyCategory(Category(i)), b.getI64IntegerAttr(held)));
      points.push_back(b.getDictionaryAttr(bytes));
    }
    Operation *program = module.lookupSymbol(name);
    program->setAttr("exec.profile", b.getArrayAttr(points));
    program->setAttr("exec.peak", b.getDenseI64ArrayAttr({profile.peakOp, profile.peakBytes}));
  }
  module.walk([&](ProgramOp program) {
    ProgramLiveness liveness(program);
    program.walk([&](Operation *op) {
      auto buffer = dyn_cast<BufferOp>(op);
      if (!buffer && op != program)
        op->setAttr("exec.number", b.getI64IntegerAttr(liveness.numberOf(op)));
      Operation *uninitialized = nullptr;
      auto range = buffer ? liveness.range(buffer.getMemory(), &uninitialized) : std::nullopt;
      if (!range)
        return;
      op->setAttr("exec.live", b.getDenseI64ArrayAttr({range->first, range->second}));
      if (uninitialized)
        op->setAttr("exec.read_first_by", b.getI64IntegerAttr(liveness.numberOf(uninitialized)));
    });
  });
  return success();
}

static LogicalResult annotateRowSpaces(ModuleOp module) {
  static constexpr StringLiteral names[] = {"full", "row", "column", "scalar", "other"};
  Builder b(module.getContext());
  auto texts = [&](ArrayRef<Extent> extents) -> Attribute {
    return b.getArrayAttr(llvm::map_to_vector(extents, [&](Extent extent) -> Attribute {
      return b.getStringAttr(names[unsigned(extent)]);
    }));
  };
  module.walk([&](train::KernelOpInterface op) {
    if (!isa<train::ShardingRuleOpInterface>(*op))
      return;
    RowSpace space(op);
    op->setAttr("exec.rows", b.getDenseI64ArrayAttr(space.shape));
    op->setAttr("exec.operands", texts(space.operands));
    op->setAttr("exec.results", texts(space.results));
  });
  return success();
}

static LogicalResult annotateInPlaceAliases(ModuleOp module) {
  llvm::MapVector<StringAttr, SmallVector<func::CallOp>> calls;
  module.walk([&](func::CallOp call) { calls[call.getCalleeAttr().getAttr()].push_back(call); });
  for (auto &[name, callers] : calls) {
    auto callee = module.lookupSymbol<func::FuncOp>(name);
    if (callee && !callee.isExternal())
      callee->setAttr(inPlaceAliasesAttr,
                      Builder(callee).getDenseI64ArrayAttr(findInPlaceAliases(callee, callers)));
  }
  return success();
}

void meshwright::registerExecAnnotations() {
  registerAnnotations({
      {"annotate-memory",
       "Number ops; say from which to which each buffer lives (Liveness.h), and how many bytes "
       "programs hold from which op on (MemoryProfile.h)",
       annotateMemory},
      {"annotate-row-spaces",
       "Say which rows each op of a kernel walks, and how its tensors lie in them (RowSpace.h)",
       annotateRowSpaces},
      {"annotate-inplace-aliases",
       "Say in the place of which argument each result of a called function can be computed, or "
       "-1 (InPlaceAliases.h)",
       annotateInPlaceAliases},
  });
}
