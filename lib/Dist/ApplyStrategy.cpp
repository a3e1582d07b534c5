//===- ApplyStrategy.cpp - writes the mesh and the strategy's seeds ---------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/Passes.h"
#include "meshwright/Strategy.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

namespace meshwright::dist {
#define GEN_PASS_DEF_DISTAPPLYSTRATEGY
#include "Dist/Passes.h.inc"
} // namespace meshwright::dist

namespace {
class ApplyStrategyPass : public dist::impl::DistApplyStrategyBase<ApplyStrategyPass> {
public:
  using DistApplyStrategyBase::DistApplyStrategyBase;

  void runOnOperation() override {
    if (failed(run()))
      signalPassFailure();
  }

private:
  LogicalResult run() {
    ModuleOp module = getOperation();
    FailureOr<MeshOp> op = makeMesh(module);
    if (failed(op))
      return failure();
    Mesh shape = op->getMesh();
    Strategy strategy;
    strategy.zero = zero;
    strategy.sequenceParallel = sequenceParallel;
    llvm::SmallDenseSet<StringRef> seeded = seededAxes(module);
    if (llvm::Error error = checkStrategy(
            strategy, shape, [&](unsigned a) { return seeded.contains(shape.axes[a].name); }))
      return module.emitError(llvm::toString(std::move(error)));
    if (failed(checkBatch(module, shape)))
      return failure();

    auto name = FlatSymbolRefAttr::get(*op);
    for (auto function : module.getOps<func::FuncOp>())
      for (unsigned i = 0; i < function.getNumArguments(); ++i)
        if (failed(seedInput(function, i, name, shape)))
          return failure();
    for (auto variable : module.getOps<train::VariableOp>())
      if (!variable->hasAttr(DistDialect::seedAttr))
        variable->setAttr(
            DistDialect::seedAttr,
            ShardingAttr::from(name, shape,
                               Sharding::replicated(variable.getTensorType().getRank())));
    return success();
  }

  /// The mesh of the option, or the one that is there.
  FailureOr<MeshOp> makeMesh(ModuleOp module) {
    auto meshes = module.getOps<MeshOp>();
    if (!meshes.empty()) {
      MeshOp found = lookupMesh(module);
      if (!found)
        return failure();
      if (!mesh.empty())
        return found.emitOpError("is there already; leave the mesh option out");
      return found;
    }
    llvm::Expected<Mesh> shape = parseMesh(mesh);
    if (!shape)
      return module.emitError(llvm::toString(shape.takeError()));
    SmallVector<Attribute> names;
    SmallVector<int64_t> sizes;
    OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
    for (const MeshAxis &axis : shape->axes) {
      names.push_back(b.getStringAttr(axis.name));
      sizes.push_back(axis.size);
    }
    return MeshOp::create(b, module.getLoc(), b.getStringAttr("mesh"), b.getArrayAttr(names),
                          b.getDenseI64ArrayAttr(sizes), StringAttr());
  }

  /// Axes that some seed of the program names.
  static llvm::SmallDenseSet<StringRef> seededAxes(ModuleOp module) {
    llvm::SmallDenseSet<StringRef> axes;
    module->walk([&](Operation *op) {
      op->getAttrDictionary().walk([&](DimAttr dim) {
        for (StringAttr axis : dim.getAxes())
          axes.insert(axis.getValue());
      });
    });
    return axes;
  }

  static LogicalResult checkBatch(ModuleOp module, const Mesh &mesh) {
    auto batch = module->getAttrOfType<IntegerAttr>("train.batch");
    auto microbatches = module->getAttrOfType<IntegerAttr>("train.microbatches");
    if (!batch)
      return success();
    int64_t parts = batchParts(mesh), m = microbatches ? microbatches.getInt() : 1;
    if (batch.getInt() % (parts * m) == 0)
      return success();
    return module.emitError("batch ")
           << batch.getInt() << " does not divide by " << parts * m << " (" << parts
           << " devices along " << mesh.str(batchAxes(mesh)) << " times " << m
           << " microbatches); the next batch that does is "
           << llvm::alignTo(batch.getInt(), parts * m);
  }

  /// Cuts the batch of an input that has one: tokens and targets are [...,
  /// batch, sequence], sequence_ids [..., batch].
  static LogicalResult seedInput(func::FuncOp function, unsigned i, FlatSymbolRefAttr meshName,
                                 const Mesh &mesh) {
    auto input = function.getArgAttrOfType<StringAttr>(i, "train.input");
    if (!input || function.getArgAttr(i, DistDialect::seedAttr))
      return success();
    bool ids = input.getValue() == "sequence_ids";
    if (!ids && input.getValue() != "tokens" && input.getValue() != "targets")
      return success();
    auto type = cast<RankedTensorType>(function.getArgument(i).getType());
    int64_t dim = type.getRank() - (ids ? 1 : 2);
    if (dim < 0)
      return function.emitOpError("input ") << input << " is " << type << ", without a batch";
    Sharding sharding = Sharding::replicated(type.getRank());
    sharding.dims[dim] = batchAxes(mesh);
    if (firstUneven(type.getShape(), sharding, mesh) >= 0)
      return function.emitOpError("input ")
             << input << " has " << type.getDimSize(dim)
             << " sequences in a microbatch, which do not divide by the " << batchParts(mesh)
             << " devices along " << mesh.str(batchAxes(mesh));
    function.setArgAttr(i, DistDialect::seedAttr, ShardingAttr::from(meshName, mesh, sharding));
    return success();
  }
};
} // namespace
