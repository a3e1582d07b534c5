//===- Annotate.cpp - what analyses of floor 2 find -------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/Dist.h"
#include "Dist/Partition/ReshardPath.h"
#include "Dist/Pipeline/StageParts.h"
#include "Dist/Remat/LayerPairs.h"
#include "Dist/Strategy/IndexClasses.h"
#include "meshwright/Annotations.h"
#include "meshwright/Cost/CostTable.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

static LogicalResult annotateIndexClasses(ModuleOp module) {
  FailureOr<IndexClasses> classes = IndexClasses::of(module);
  if (failed(classes))
    return failure();
  Builder b(module.getContext());
  // Numbers in the order of the program; the analysis' own are those of its atoms.
  llvm::DenseMap<unsigned, int64_t> number;
  SmallVector<Attribute> sizes;
  for (auto &[id, found] : classes->all()) {
    number[id] = sizes.size();
    sizes.push_back(b.getI64IntegerAttr(found.size));
  }
  module->setAttr("dist.index_sizes", b.getArrayAttr(sizes));
  auto dims = [&](auto of, Type type) -> Attribute {
    auto tensor = dyn_cast<RankedTensorType>(type);
    SmallVector<Attribute> dims;
    for (unsigned dim = 0; tensor && dim < tensor.getRank(); ++dim)
      dims.push_back(b.getDenseI64ArrayAttr(llvm::map_to_vector(
          classes->of(of, dim), [&](unsigned id) { return number.lookup(id); })));
    return b.getArrayAttr(dims);
  };
  module.walk([&](Operation *op) {
    if (auto variable = dyn_cast<train::VariableOp>(op)) {
      op->setAttr("dist.indices", dims(variable, variable.getType()));
    } else if (auto function = dyn_cast<func::FuncOp>(op)) {
      for (BlockArgument argument : function.getArguments())
        function.setArgAttr(argument.getArgNumber(), "dist.indices",
                            dims(Value(argument), argument.getType()));
    } else if (op->getNumResults() > 0) {
      op->setAttr("dist.indices",
                  b.getArrayAttr(llvm::map_to_vector(op->getResults(), [&](OpResult result) {
                    return dims(Value(result), result.getType());
                  })));
    }
  });
  return success();
}

static LogicalResult annotateReshards(ModuleOp module) {
  MeshOp meshOp = lookupMesh(module);
  if (!meshOp)
    return failure();
  Mesh mesh = meshOp.getMesh();
  Builder b(module.getContext());
  WalkResult result = module.walk([&](ReshardOp op) {
    ArrayRef<int64_t> shape = op.getX().getType().getShape();
    Sharding from = dist::shardingOf(op.getX().getType()).on(mesh);
    Sharding to = dist::shardingOf(op.getY().getType()).on(mesh);
    auto steps = findReshardPath(from, to, shape, mesh);
    if (!steps) {
      op.emitOpError() << llvm::toString(steps.takeError());
      return WalkResult::interrupt();
    }
    SmallVector<int64_t> local(localShape(shape, from, mesh));
    SmallVector<Attribute> texts;
    double sent = 0;
    for (const ReshardStep &step : *steps) {
      texts.push_back(b.getStringAttr(step.str(mesh)));
      sent += step.sent(double(ShapedType::getNumElements(local)), mesh);
      step.resize(local, mesh);
    }
    op->setAttr("dist.steps", b.getArrayAttr(texts));
    op->setAttr("dist.sent", b.getF64FloatAttr(sent));
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

static LogicalResult annotateRecompute(ModuleOp module) {
  Builder b(module.getContext());
  for (const LayerPair &pair : findLayerPairs(module)) {
    LayerGraph layer(pair, *cost::DeviceChoice());
    for (auto [op, node] : llvm::zip(layer.ops, layer.graph.ops))
      if (node.cost < anyPrice)
        op->setAttr("dist.flops", b.getF64FloatAttr(node.cost));
    for (auto [value, number] : layer.values)
      if (layer.graph.values[number].needed && value.getDefiningOp())
        value.getDefiningOp()->setAttr("dist.needed", b.getUnitAttr());
    SmallVector<Attribute> choices;
    for (const PricedChoice &found : efficientChoices(layer.graph)) {
      SmallVector<int64_t> recomputed;
      for (unsigned op : found.choice.recomputed.set_bits())
        recomputed.push_back(op);
      choices.push_back(
          b.getDictionaryAttr({b.getNamedAttr("bytes", b.getI64IntegerAttr(found.choice.bytes)),
                               b.getNamedAttr("flops", b.getF64FloatAttr(found.choice.cost)),
                               b.getNamedAttr("redone", b.getDenseI64ArrayAttr(recomputed))}));
    }
    func::FuncOp function = pair.forwardFunction();
    function->setAttr("dist.backward", FlatSymbolRefAttr::get(pair.backwardFunction()));
    function->setAttr("dist.choices", b.getArrayAttr(choices));
  }
  return success();
}

static LogicalResult annotateParts(ModuleOp module) {
  static constexpr StringLiteral taskKinds[] = {"forward", "backward", "weight"};
  Builder b(module.getContext());
  int64_t chunks = chunkCount(module);
  for (auto function : llvm::to_vector(module.getOps<func::FuncOp>())) {
    if (!function.isPublic())
      continue;
    FailureOr<MicrobatchOps> ops = findParts(function, chunks);
    if (failed(ops))
      return failure();
    for (Operation &op : ops->block->without_terminator()) {
      auto part = ops->parts.find(&op);
      std::string text =
          part != ops->parts.end()
              ? (taskKinds[unsigned(part->second.kind)] + " " + llvm::Twine(part->second.chunk))
                    .str()
          : ops->isFree(&op) ? "free"
                             : "after";
      op.setAttr("dist.part", b.getStringAttr(text));
    }
  }
  return success();
}

void meshwright::registerDistAnnotations() {
  registerAnnotations({
      {"annotate-index-classes", "Number the index classes of each dimension (IndexClasses.h)",
       annotateIndexClasses},
      {"annotate-reshards",
       "Say for each reshard its collectives and the elements that a device sends "
       "(ReshardPath.h)",
       annotateReshards},
      {"annotate-recompute",
       "Say of layers what running each op again costs, where it can, what the backward needs, and "
       "all choices that are cheapest at some price of a byte (LayerPairs.h, RecomputeGraph.h)",
       annotateRecompute},
      {"annotate-parts", "Say which task of which pipeline chunk each op belongs to (StageParts.h)",
       annotateParts},
  });
}
