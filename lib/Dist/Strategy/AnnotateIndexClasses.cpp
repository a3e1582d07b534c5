//===- AnnotateIndexClasses.cpp - annotate-index-classes --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/Strategy/IndexClasses.h"
#include "meshwright/Annotations.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

namespace {
struct AnnotateIndexClasses : PassWrapper<AnnotateIndexClasses, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(AnnotateIndexClasses)
  StringRef getArgument() const final { return "annotate-index-classes"; }
  StringRef getDescription() const final {
    return "Number the index classes of each dimension (IndexClasses.h)";
  }

  void runOnOperation() final {
    FailureOr<IndexClasses> classes = IndexClasses::of(getOperation());
    if (failed(classes))
      return signalPassFailure();
    Builder b(&getContext());
    // Numbers in the order of the program; the analysis' own are those of its atoms.
    llvm::DenseMap<unsigned, int64_t> number;
    SmallVector<Attribute> sizes;
    for (auto &[id, found] : classes->all()) {
      number[id] = sizes.size();
      sizes.push_back(b.getI64IntegerAttr(found.size));
    }
    getOperation()->setAttr("dist.index_sizes", b.getArrayAttr(sizes));
    auto dims = [&](auto of, Type type) -> Attribute {
      auto tensor = dyn_cast<RankedTensorType>(type);
      SmallVector<Attribute> dims;
      for (unsigned dim = 0; tensor && dim < tensor.getRank(); ++dim)
        dims.push_back(b.getDenseI64ArrayAttr(llvm::map_to_vector(
            classes->of(of, dim), [&](unsigned id) { return number.lookup(id); })));
      return b.getArrayAttr(dims);
    };
    getOperation().walk([&](Operation *op) {
      if (auto variable = dyn_cast<train::VariableOp>(op)) {
        op->setAttr("dist.indices", dims(variable, variable.getType()));
      } else if (auto function = dyn_cast<func::FuncOp>(op)) {
        for (BlockArgument argument : function.getArguments())
          function.setArgAttr(argument.getArgNumber(), "dist.indices",
                              dims(Value(argument), argument.getType()));
      } else if (op->getNumResults() > 0) {
        op->setAttr("dist.indices", b.getArrayAttr(llvm::map_to_vector(
                                        op->getResults(), [&](OpResult result) {
                                          return dims(Value(result), result.getType());
                                        })));
      }
    });
  }
};
} // namespace

void meshwright::registerAnnotateIndexClasses() { PassRegistration<AnnotateIndexClasses>(); }
