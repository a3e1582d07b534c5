//===- ApplyStrategy.cpp - writes the mesh and the strategy's seeds ---------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/Passes.h"
#include "Seeds.h"
#include "Train/GradientBlocks.h"
#include "meshwright/runtime/ExpertPlacement.h"

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

  void runOnModule() override {
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
    llvm::SmallDenseSet<StringRef> seeded = seededAxes(module);
    auto isSeeded = [&](unsigned a) { return seeded.contains(shape.axes[a].name); };
    ContextParallel how = contextParallelOf(contextParallel, module, shape, isSeeded);
    DistApplyStrategyOptions asked{mesh, zero, dataSync, sequenceParallel, tensor2d, how};
    if (llvm::Error error = checkStrategy(asked, shape, isSeeded))
      return module.emitError(llvm::toString(std::move(error)));
    if (failed(checkBatch(module, shape)) || failed(checkGradientBlocks(module, shape)))
      return failure();
    FailureOr<IndexClasses> classes = IndexClasses::of(module);
    if (failed(classes))
      return failure();

    // Seeds of the tensor axis in the program decide which indices it shards.
    bool users = llvm::any_of(shape.named("tensor"), isSeeded);
    StringRef inner = tensor2d ? "tensor.0" : "tensor";
    FlatSymbolRefAttr name = FlatSymbolRefAttr::get(*op);
    if (failed(Seeder(module, name, shape, *classes).userSeeds()))
      return failure();
    FailureOr<TensorClasses> chosen =
        chooseTensorClasses(module, *classes, users ? 1 : shape.size(shape.named(inner)));
    if (failed(chosen) || (!users && failed(splitAxis(module, *chosen, inner, shape))))
      return failure();
    Axes context = shape.named("context");
    if (llvm::any_of(context, isSeeded))
      context.clear();
    FailureOr<TensorClasses> divided =
        chooseContextClasses(module, *classes, *chosen, shape, context, how);
    if (failed(divided) || failed(splitAxis(module, *divided, "context", shape)))
      return failure();
    write(*op, shape);
    if (isRing(how) && !context.empty() && shape.axes[context.front()].size > 1)
      (*op)->setAttr(DistDialect::ringAttr, UnitAttr::get(module.getContext()));

    Seeder seeds(module, name, shape, *classes);
    if (failed(seeds.batch()) || failed(seeds.tensor(*chosen, inner)) ||
        failed(seeds.sequence(*chosen, *divided, inner, sequenceParallel)))
      return failure();
    if (!users)
      seeds.noteCopies(*chosen);
    if (failed(checkBlocks(module, shape, *classes)) || failed(store(seeds, shape)))
      return failure();
    seeds.compression();
    if (failed(seeds.attention(*chosen, *divided, inner)))
      return failure();
    seeds.redistribute(*chosen, *divided, inner);
    return seeds.experts();
  }

  /// How parameters, gradients and states are stored and added.
  LogicalResult store(Seeder &seeds, const Mesh &shape) {
    if (dataSync == DataSync::parameterServer)
      return seeds.server(batchAxes(shape));
    // The third dimension of tensor=RxCxD stores parameters once.
    Axes data = shape.named("data"), depth = shape.named("tensor.2");
    llvm::append_range(data, shape.named("context"));
    llvm::append_range(data, expertAxes(shape));
    llvm::append_range(data, depth);
    if (!zero && !depth.empty())
      return seeds.zero(3, depth, "tensor=RxCxD");
    return seeds.zero(depth.empty() ? int64_t(zero) : 3, data, "--zero " + std::to_string(zero));
  }

  /// The mesh of the option, or the one that is there.
  FailureOr<MeshOp> makeMesh(ModuleOp module) {
    auto meshes = module.getOps<MeshOp>();
    if (!meshes.empty()) {
      MeshOp found = lookupMesh(module);
      if (!found)
        return failure();
      if (!mesh.axes.empty())
        return found.emitOpError("is there already; leave the mesh option out");
      return found;
    }
    if (Operation *taken = module.lookupSymbol("mesh"))
      return taken->emitError("has the name that the mesh will have; rename it");
    OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
    auto op = MeshOp::create(b, module.getLoc(), b.getStringAttr("mesh"), b.getArrayAttr({}),
                             b.getDenseI64ArrayAttr({}), StringAttr());
    write(op, mesh);
    return op;
  }

  static void write(MeshOp op, const Mesh &shape) {
    Builder b(op.getContext());
    SmallVector<Attribute> names;
    SmallVector<int64_t> sizes;
    for (const MeshAxis &axis : shape.axes) {
      names.push_back(b.getStringAttr(axis.name));
      sizes.push_back(axis.size);
    }
    op.setAxisNamesAttr(b.getArrayAttr(names));
    op.setAxisSizes(sizes);
  }

  /// What `auto` stands for.
  static ContextParallel contextParallelOf(ContextParallel how, ModuleOp module, const Mesh &mesh,
                                           llvm::function_ref<bool(unsigned)> seeded) {
    Axes context = mesh.named("context");
    if (how != ContextParallel::automatic)
      return how;
    if (mesh.size(context) == 1 || llvm::any_of(context, seeded))
      return ContextParallel::none;
    // Distances have a number for each pair, which no ring divides.
    bool hasDistances = module
                            .walk([](train::AttentionOp attention) {
                              return attention.getDistances() ? WalkResult::interrupt()
                                                              : WalkResult::advance();
                            })
                            .wasInterrupted();
    if (hasDistances)
      return ContextParallel::gather;
    return mesh.find("context") < 0 ? ContextParallel::hybrid : ContextParallel::ring;
  }

  /// A device has whole blocks of gradients.
  static LogicalResult checkGradientBlocks(ModuleOp module, const Mesh &mesh) {
    for (auto variable : module.getOps<train::VariableOp>()) {
      if (variable.getRole() != train::residualRole)
        continue;
      int64_t blocks = variable.getTensorType().getDimSize(variable.getStacked()), devices = batchParts(mesh);
      if (blocks % devices != 0)
        return variable.emitError("gradients are compressed in ")
               << blocks << " blocks, which do not divide by the " << devices << " devices along "
               << mesh.str(batchAxes(mesh)) << "; use as many blocks as devices, or a multiple";
    }
    return success();
  }

  static LogicalResult checkBatch(ModuleOp module, const Mesh &mesh) {
    std::optional<int64_t> batch = train::moduleSize(module, train::batchAttr);
    int64_t parts = batchParts(mesh);
    int64_t m = train::moduleSize(module, train::microbatchesAttr).value_or(1);
    if (!batch)
      return success();
    // The two sequences of a pair are in one microbatch of one device.
    if (module->hasAttr(train::dpoBetaAttr) && *batch % (2 * parts * m) != 0)
      return module.emitError("batch ")
             << *batch << " does not divide by " << 2 * parts * m << " (pairs of 2 sequences times "
             << parts << " devices along " << mesh.str(batchAxes(mesh)) << " times " << m
             << " microbatches); the next batch that does is " << llvm::alignTo(*batch, 2 * parts * m);
    if (*batch % (parts * m) == 0)
      return success();
    return module.emitError("batch ")
           << *batch << " does not divide by " << parts * m << " (" << parts
           << " devices along " << mesh.str(batchAxes(mesh)) << " times " << m
           << " microbatches); the next batch that does is "
           << llvm::alignTo(*batch, parts * m);
  }
};
} // namespace

/// Shards the batch of an input that has one: [..., batch, sequence] for inputs by token, [..., batch] for
/// those by sequence.
static LogicalResult seedInput(func::FuncOp function, unsigned i, FlatSymbolRefAttr meshName,
                               const Mesh &mesh) {
  StringRef input = train::inputName(function, i);
  if (input.empty() || function.getArgAttr(i, DistDialect::seedAttr))
    return success();
  if (input == expertPlacementInput) {
    // Each rank is given the whole table.
    auto whole = Sharding::replicated(cast<RankedTensorType>(function.getArgument(i).getType()).getRank());
    function.setArgAttr(i, DistDialect::seedAttr, ShardingAttr::from(meshName, mesh, whole));
    function.setArgAttr(i, DistDialect::reasonAttr, StringAttr::get(function.getContext(), "expert parallel"));
    return success();
  }
  bool ids = train::isBySequence(input);
  if (!ids && !train::isByToken(input))
    return success();
  auto type = cast<RankedTensorType>(function.getArgument(i).getType());
  int64_t dim = type.getRank() - (ids ? 1 : 2);
  if (dim < 0)
    return function.emitOpError("input \"") << input << "\" is " << type << ", without a batch";
  Sharding sharding = Sharding::replicated(type.getRank());
  sharding.dims[dim] = batchAxes(mesh);
  if (firstUneven(type.getShape(), sharding, mesh) >= 0)
    return function.emitOpError("input \"")
           << input << "\" has " << type.getDimSize(dim)
           << " sequences in a microbatch, which do not divide by the " << batchParts(mesh)
           << " devices along " << mesh.str(batchAxes(mesh));
  function.setArgAttr(i, DistDialect::seedAttr, ShardingAttr::from(meshName, mesh, sharding));
  function.setArgAttr(i, DistDialect::reasonAttr,
                      StringAttr::get(function.getContext(), "data parallel"));
  return success();
}

LogicalResult Seeder::batch() {
  for (auto function : module.getOps<func::FuncOp>())
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (failed(seedInput(function, i, meshName, mesh)))
        return failure();
  return success();
}
