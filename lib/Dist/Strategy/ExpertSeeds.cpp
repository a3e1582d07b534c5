//===- ExpertSeeds.cpp - expert parallelism as seeds ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// The devices along axis `expert` are data parallel but for experts, of which each device
// stores and computes a part (Lepikhin et al. 2021; Rajbhandari et al. 2022). Rows of experts
// are [blocks, b, slots, ..]. Ops between tokens and rows need all blocks of their sequences;
// the others, products above all, can have all sequences of some blocks:
//
//   between tokens and rows   blocks whole, b along the axes of the batch
//   products                  blocks along `expert`, b along the other axes
//
// The reshard planner finds the all-to-all from one to the other. Where pieces of a sequence have slots of their
// own, both are divided along `context` alike.
//
//===----------------------------------------------------------------------===//
#include "Seeds.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

namespace {
class ExpertSeeder {
public:
  ExpertSeeder(ModuleOp module, FlatSymbolRefAttr meshName, const Mesh &mesh,
               const IndexClasses &classes)
      : module(module), meshName(meshName), mesh(mesh), classes(classes),
        batches(batchesOf(module, classes)) {}

  LogicalResult run() {
    if (failed(findBlocks()))
      return failure();
    findPieces();
    for (auto function : module.getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      for (BlockArgument argument : function.getArguments())
        divide(argument);
      WalkResult seeded = function.walk([&](Operation *op) {
        if (!exchanging.contains(op))
          return WalkResult::advance();
        if (failed(gather(op)))
          return WalkResult::interrupt();
        for (Value result : op->getResults())
          divide(result);
        return WalkResult::advance();
      });
      if (seeded.wasInterrupted())
        return failure();
    }
    return success();
  }

private:
  /// The index of blocks: the major one of experts in parameters. The ops that need it whole are
  /// those between tokens and rows.
  LogicalResult findBlocks() {
    int64_t n = mesh.size(expertAxes(mesh));
    for (auto variable : module.getOps<train::VariableOp>()) {
      if (!variable.isParameter() || !variable.getExperts())
        continue;
      Atoms::List experts = classes.of(variable, variable.getStacked());
      if (experts.empty())
        continue;
      const IndexClass &index = classes[experts.front()];
      bool any = false;
      for (auto [op, factor] : index.neededWhole)
        if (factor >= 0)
          any |= exchanging.insert(op) || true;
      int64_t found = any ? index.size : 1;
      if (found % n)
        return variable.emitError("mesh axis 'expert' = ")
               << n << " cannot divide the experts of @" << variable.getSymName() << ", whose rows are in "
               << found << (found == 1 ? " block" : " blocks")
               << "; import the model with --mesh expert=" << n;
      blocks.insert(experts.front());
    }
    if (blocks.empty())
      return module.emitError("mesh axis 'expert' = ")
             << n << " finds no experts to divide; use data";
    return success();
  }

  /// The index of pieces of sequences: it is not needed whole between tokens and rows.
  void findPieces() {
    context = mesh.named("context");
    llvm::erase_if(context, [&](unsigned axis) { return mesh.axes[axis].size == 1; });
    for (const Atoms::List &sequence : sequencesOf(module, classes))
      if (!sequence.empty() &&
          llvm::none_of(classes[sequence.front()].neededWhole,
                        [&](auto need) { return exchanging.contains(need.first); }))
        pieces.insert(sequence.front());
  }

  bool isBlocks(Value value, unsigned d) {
    return llvm::any_of(classes.of(value, d), [&](unsigned id) { return blocks.contains(id); });
  }
  bool isOfBatch(Value value, unsigned d) {
    Atoms::List dim = classes.of(value, d);
    return !dim.empty() && llvm::is_contained(batches, dim);
  }
  /// Whether `value` has rows of experts, or numbers of them: not experts' parameters or gradients,
  /// which are where their variables are, and may be partial sums.
  bool hasRows(Value value) {
    return cast<RankedTensorType>(value.getType()).getRank() >= 3 && isBlocks(value, 0) &&
           isOfBatch(value, 1);
  }

  /// `value` with blocks along `ofBlocks` and sequences along `ofBatch`, open otherwise.
  ShardingAttr shardingOf(Value value, const Axes &ofBlocks, const Axes &ofBatch) {
    Sharding sharding = Sharding::replicated(cast<RankedTensorType>(value.getType()).getRank());
    for (unsigned d = 0; d < sharding.dims.size(); ++d)
      if (isBlocks(value, d))
        sharding.dims[d] = ofBlocks;
      else if (isOfBatch(value, d))
        sharding.dims[d] = ofBatch;
      else if (Atoms::List dim = classes.of(value, d); !dim.empty() && pieces.contains(dim.front()))
        sharding.dims[d] = context;
    return withOpenDims(ShardingAttr::from(meshName, mesh, sharding));
  }

  /// Results between tokens and rows have parts of the batch, whatever products have.
  LogicalResult gather(Operation *op) {
    for (OpResult result : op->getResults())
      if (cast<RankedTensorType>(result.getType()).getRank() &&
          failed(seedOrAgree(result, shardingOf(result, {}, batchAxes(mesh)), mesh,
                             "expert parallel", "mesh axis 'expert'")))
        return failure();
    return success();
  }

  /// What computes with the rows gets those of its blocks.
  void divide(Value value) {
    if (!hasRows(value))
      return;
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : value.getUses())
      if (Operation *op = use.getOwner();
          !exchanging.contains(op) && isa<train::ShardingRuleOpInterface>(op))
        uses.push_back(&use);
    if (uses.empty())
      return;
    OpBuilder b(module.getContext());
    b.setInsertionPointAfterValue(value);
    Axes ofBlocks = expertAxes(mesh), ofBatch = batchAxes(mesh);
    llvm::erase_if(ofBatch, [&](unsigned axis) { return llvm::is_contained(ofBlocks, axis); });
    auto divided = ConstrainOp::create(b, value.getLoc(), value.getType(), value,
                                       shardingOf(value, ofBlocks, ofBatch), /*boundary=*/true);
    divided->setAttr(DistDialect::reasonAttr, b.getStringAttr("expert parallel"));
    for (OpOperand *use : uses)
      use->set(divided);
  }

  ModuleOp module;
  FlatSymbolRefAttr meshName;
  const Mesh &mesh;
  const IndexClasses &classes;
  SmallVector<Atoms::List> batches;
  llvm::SmallDenseSet<unsigned> blocks, pieces;
  Axes context;
  /// The ops between tokens and rows.
  llvm::SetVector<Operation *> exchanging;
};
} // namespace

LogicalResult Seeder::experts() {
  if (expertAxes(mesh).empty())
    return success();
  return ExpertSeeder(module, meshName, mesh, classes).run();
}
