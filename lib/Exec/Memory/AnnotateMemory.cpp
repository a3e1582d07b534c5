//===- AnnotateMemory.cpp - annotate-memory ---------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Liveness.h"
#include "MemoryProfile.h"
#include "meshwright/Annotations.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;

namespace {
struct AnnotateMemory : PassWrapper<AnnotateMemory, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(AnnotateMemory)
  StringRef getArgument() const final { return "annotate-memory"; }
  StringRef getDescription() const final {
    return "Number ops; say from which to which each buffer lives (Liveness.h), and how many "
           "bytes programs hold from which op on (MemoryProfile.h)";
  }

  void runOnOperation() final {
    Builder b(&getContext());
    for (auto &[name, profile] : profileMemory(getOperation())) {
      SmallVector<Attribute> points;
      for (const MemoryProfile::Point &point : profile.points) {
        SmallVector<NamedAttribute> bytes{b.getNamedAttr("from", b.getI64IntegerAttr(point.op))};
        for (unsigned i = 0; i <= getMaxEnumValForCategory(); ++i)
          if (int64_t held = point.live[Category(i)])
            bytes.push_back(
                b.getNamedAttr(stringifyCategory(Category(i)), b.getI64IntegerAttr(held)));
        points.push_back(b.getDictionaryAttr(bytes));
      }
      Operation *program = getOperation().lookupSymbol(name);
      program->setAttr("exec.profile", b.getArrayAttr(points));
      program->setAttr("exec.peak", b.getDenseI64ArrayAttr({profile.peakOp, profile.peakBytes}));
    }
    getOperation().walk([&](ProgramOp program) {
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
          op->setAttr("exec.read_first_by",
                      b.getI64IntegerAttr(liveness.numberOf(uninitialized)));
      });
    });
  }
};
} // namespace

void meshwright::registerAnnotateMemory() { PassRegistration<AnnotateMemory>(); }
