//===- SeedTables.cpp - a strategy as seeds ----------------------------------===//
//
// A strategy shards a few tensors; propagation derives all other shardings. Before
// dist-apply-strategy, `dist.seeds` of the module has the seeds of parameters, as a recipe's table
// [seeds] writes them.
//
//===----------------------------------------------------------------------===//
#include "MyPasses.h"

#include "Dist/Dist.h"
#include "Train/Train.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace meshwright;

namespace {
struct SeedTablesPass : PassWrapper<SeedTablesPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SeedTablesPass)

  SeedTablesPass() = default;
  SeedTablesPass(const SeedTablesPass &other) : PassWrapper(other) {}

  StringRef getArgument() const override { return "my-seed-tables"; }
  StringRef getDescription() const override { return "Shards tables of embeddings by rows"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<dist::DistDialect>();
  }

  Option<std::string> axis{*this, "axis", llvm::cl::desc("the mesh axis that shards the rows"),
                           llvm::cl::init("tensor")};

  void runOnOperation() override {
    llvm::SetVector<StringRef> tables;
    getOperation().walk([&](train::EmbeddingOp embedding) {
      if (auto table = embedding.getTable().getDefiningOp<train::GetOp>())
        tables.insert(table.getVariable());
    });
    if (tables.empty()) {
      getOperation().emitError("has no train.embedding of a parameter, whose table could be sharded");
      return signalPassFailure();
    }
    Builder b(&getContext());
    SmallVector<Attribute> seeds;
    // Those of a recipe come first: a contradiction names them.
    if (auto before = getOperation()->getAttrOfType<ArrayAttr>(dist::DistDialect::seedsAttr))
      llvm::append_range(seeds, before);
    for (StringRef table : tables)
      seeds.push_back(b.getStrArrayAttr({table, "[{" + axis.getValue() + "}, {}]"}));
    getOperation()->setAttr(dist::DistDialect::seedsAttr, b.getArrayAttr(seeds));
  }
};
} // namespace

std::unique_ptr<Pass> createSeedTables() { return std::make_unique<SeedTablesPass>(); }
