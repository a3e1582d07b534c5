//===- SequenceSeeds.cpp - divided sequences as seeds -----------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Two strategies divide the sequence of the residual stream, so that what layers keep of it
// is shared out.
//
//   sequence parallel  over the devices of tensor parallelism (Korthikanti et al. 2022): the
//                      products between gather the sequence and divide their inner indices
//   context parallel   over an axis of its own, over which parameters are replicated. Only ops
//                      that need a sequence whole, attention, gather it. They divide their heads
//                      instead: two all-to-alls (Ulysses, Jacobs et al. 2023). Or they divide
//                      queries and need keys and values alone whole (Grattafiori et al. 2024), which
//                      a ring need not be at once. Or of two parts of the axis the first divides queries
//                      and the second divides heads (Fang and Zhao 2024).
//
//===----------------------------------------------------------------------===//
#include "Seeds.h"
#include "Train/Redistribution.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

/// The index of a dimension of tokens, counted from behind the last; each program has its own.
static SmallVector<Atoms::List> dimsOfTokens(ModuleOp module, const IndexClasses &classes,
                                             int64_t fromEnd) {
  SmallVector<Atoms::List> dims;
  for (auto function : module.getOps<func::FuncOp>())
    for (BlockArgument argument : function.getArguments())
      if (int64_t rank = cast<RankedTensorType>(argument.getType()).getRank();
          train::inputName(argument) == "tokens" && rank >= fromEnd)
        dims.push_back(classes.of(argument, rank - fromEnd));
  return dims;
}

SmallVector<Atoms::List> dist::sequencesOf(ModuleOp module, const IndexClasses &classes) {
  return dimsOfTokens(module, classes, 1);
}
SmallVector<Atoms::List> dist::batchesOf(ModuleOp module, const IndexClasses &classes) {
  return dimsOfTokens(module, classes, 2);
}

/// The indices that an op that needs a sequence whole can divide instead, in the order of its
/// first result: attention's heads.
static Atoms::List headsOf(Operation *op, const IndexClasses &classes,
                           const TensorClasses &chosen) {
  Atoms::List heads;
  Value result = op->getResult(0);
  for (int64_t d = 0, rank = cast<RankedTensorType>(result.getType()).getRank(); d < rank; ++d)
    for (unsigned id : classes.of(result, d))
      if (const IndexClass &entry = classes[id];
          !entry.inIntegerInputs && !chosen.residual.contains(id) &&
          llvm::none_of(entry.neededWhole, [&](auto need) { return need.first == op; }))
        heads.push_back(id);
  return heads;
}

/// Whether the op needs the factor of a sequence whole, and is not where a recurrence begins, whose channels are
/// chosen apart.
static bool attends(Operation *op, int factor) {
  auto slice = dyn_cast<train::SliceOp>(op);
  return factor >= 0 && !(slice && train::redistributes(slice));
}

/// The ops that need a sequence whole, with their heads. Those without, as a table of positions,
/// do what all devices do.
static llvm::MapVector<Operation *, Atoms::List>
sequenceOps(ModuleOp module, const IndexClasses &classes, const TensorClasses &chosen) {
  llvm::MapVector<Operation *, Atoms::List> ops;
  for (const Atoms::List &sequence : sequencesOf(module, classes))
    for (unsigned id : sequence)
      for (auto [op, factor] : classes[id].neededWhole)
        if (attends(op, factor) && !ops.count(op))
          if (Atoms::List heads = headsOf(op, classes, chosen); !heads.empty())
            ops[op] = heads;
  return ops;
}

FailureOr<TensorClasses> dist::chooseContextClasses(ModuleOp module, const IndexClasses &classes,
                                                    const TensorClasses &tensor,
                                                    const Mesh &mesh, ArrayRef<unsigned> context,
                                                    ContextParallel how) {
  int64_t n = mesh.size(context);
  TensorClasses chosen;
  chosen.residual = tensor.residual;
  if (n == 1)
    return chosen;
  SmallVector<Atoms::List> sequences = sequencesOf(module, classes);
  if (llvm::all_of(sequences, [](const Atoms::List &dim) { return dim.empty(); }))
    return module.emitError("mesh axis 'context' cannot divide sequences of one token; leave it "
                            "out or use a longer --seq");
  for (const Atoms::List &sequence : sequences) {
    int64_t tokens = 1;
    for (unsigned id : sequence)
      tokens *= classes[id].size;
    if (!sequence.empty() && tokens < n)
      return module.emitError("mesh axis 'context' = ")
             << n << " has more devices than sequences have tokens, " << tokens
             << "; use context=" << tokens << " or fewer, or a longer --seq";
  }
  // Devices that divide queries; the others divide heads.
  int64_t queries = how == ContextParallel::ulysses  ? 1
                    : how == ContextParallel::hybrid ? mesh.axes[context.front()].size
                                                     : n;
  for (const Atoms::List &sequence : sequences)
    if (!sequence.empty())
      chosen.inner[sequence.front()] = {1, queries};
  chosen.channels = chooseChannels(module, classes, tensor, n);
  if (queries == n)
    return chosen;
  llvm::MapVector<Operation *, Atoms::List> ops = sequenceOps(module, classes, tensor);
  StringRef flag = how == ContextParallel::hybrid ? "hybrid" : "ulysses";
  if (ops.empty() && !chosen.channels.empty())
    return chosen;
  if (ops.empty())
    return module.emitError("--context-parallel ")
           << flag << " finds no attention with several heads to divide among the " << n / queries
           << " devices of mesh axis 'context'; use " << (queries == 1 ? "data" : "ring");
  for (auto &[op, run] : ops) {
    int64_t done = queries, heads = 1;
    bool even = true;
    for (unsigned id : run) {
      AxisPart part = tensor.inner.lookup(id);
      int64_t left = n / done, parts = part.end / part.begin, size = classes[id].size / parts;
      even &= classes[id].size % parts == 0 && (size % left == 0 || left % size == 0);
      heads *= classes[id].size;
      int64_t take = even ? std::min(left, size) : 1;
      chosen.inner[id] = {done, done * take};
      done *= take;
    }
    if (done != n) {
      bool shared = run.size() > 1;
      InFlightDiagnostic error = op->emitError("--context-parallel ")
                                 << flag << " cannot divide " << heads << " heads of attention";
      if (shared)
        error << ", of which " << heads / classes[run.front()].size << " share each of "
              << classes[run.front()].size << " key heads,";
      error << " among the " << n / queries
            << " devices of mesh axis 'context', beside those of 'tensor'; use a number that "
               "divides the "
            << (shared ? "key heads" : "heads") << " that a tensor rank has";
      if (shared)
        error << ", or a multiple of them that divides its heads";
      return error;
    }
  }
  return chosen;
}

ShardingAttr dist::withOpenDims(ShardingAttr sharding) {
  SmallVector<DimAttr> dims;
  for (DimAttr dim : sharding.getDims())
    dims.push_back(DimAttr::get(sharding.getContext(), dim.getAxes(), dim.getAxes().empty()));
  return ShardingAttr::get(sharding.getContext(), sharding.getMesh(), dims, {}, false);
}

LogicalResult Seeder::sequence(const TensorClasses &chosen, const TensorClasses &context,
                               StringRef axis, bool overTensor) {
  Axes axes;
  if (!context.inner.empty())
    axes = mesh.named("context");
  bool overContext = mesh.size(axes) > 1;
  if (overTensor)
    llvm::append_range(axes, mesh.named(axis));
  llvm::erase_if(axes, [&](unsigned a) { return mesh.axes[a].size == 1; });
  if (axes.empty())
    return success();
  StringRef flag = overTensor ? "--sequence-parallel" : "mesh axis 'context'";
  StringRef why = !overTensor    ? "context parallel"
                  : !overContext ? "sequence parallel"
                                 : "context and sequence parallel";
  auto reason = StringAttr::get(module.getContext(), why);
  SmallVector<Atoms::List> sequences = sequencesOf(module, classes);
  SymbolTable symbols(module);
  bool any = false;
  for (train::RepeatOp repeat : layerCalls(module)) {
    auto layer = symbols.lookup<func::FuncOp>(repeat.getCallee());
    for (BlockArgument argument : layer.getArguments()) {
      auto type = cast<RankedTensorType>(argument.getType());
      int64_t last = type.getRank() - 1;
      if (!isa<FloatType>(type.getElementType()) || last < 1 ||
          !llvm::any_of(classes.of(argument, last),
                        [&](unsigned id) { return chosen.residual.contains(id); }))
        continue;
      Sharding wanted = Sharding::replicated(type.getRank());
      for (int64_t d = 0; d < last; ++d)
        if (Atoms::List dim = classes.of(argument, d);
            !dim.empty() && llvm::is_contained(sequences, dim))
          wanted.dims[d] = axes;
      unsigned i = argument.getArgNumber();
      if (wanted.isReplicated())
        continue;
      any = true;
      if (layer.getArgAttr(i, DistDialect::seedAttr))
        continue;
      layer.setArgAttr(i, DistDialect::seedAttr, withOpenDims(attr(wanted)));
      layer.setArgAttr(i, DistDialect::reasonAttr, reason);
    }
  }
  if (llvm::all_of(sequences, [](const Atoms::List &dim) { return dim.empty(); }))
    return module.emitError() << flag << " cannot divide sequences of one token; leave it out or "
                                         "use a longer --seq";
  if (!any)
    return module.emitError() << flag << " finds no repeated layer that carries [.., sequence, .., "
                                         "features]; leave it out";
  return success();
}

Sharding Seeder::attentionSharding(Value value, const TensorClasses &tensor,
                                   const TensorClasses &context, StringRef axis) {
  Axes tensorAxes = mesh.named(axis), contextAxes = mesh.named("context");
  Sharding sharding = Sharding::replicated(cast<RankedTensorType>(value.getType()).getRank());
  for (size_t d = 0; d < sharding.dims.size(); ++d)
    for (unsigned id : classes.of(value, d)) {
      // A table of pairs of positions has their index twice.
      for (unsigned a : axesOf(mesh, tensorAxes, tensor.inner.lookup(id)))
        if (!sharding.uses(a))
          sharding.dims[d].push_back(a);
      for (unsigned a : axesOf(mesh, contextAxes, context.inner.lookup(id)))
        if (!sharding.uses(a))
          sharding.dims[d].push_back(a);
    }
  return sharding;
}

/// Whether the op needs dimension `d` of its first result whole.
static bool needsWhole(Operation *op, unsigned d) {
  ShardingRule rule = cast<train::ShardingRuleOpInterface>(op).getShardingRule();
  return llvm::any_of(rule.results[0].dims[d], [&](unsigned f) { return rule.factors[f].whole; });
}

LogicalResult Seeder::attention(const TensorClasses &tensor, const TensorClasses &context,
                                StringRef axis) {
  if (context.inner.empty())
    return success();
  SmallVector<Atoms::List> sequences = sequencesOf(module, classes);
  llvm::SetVector<Operation *> ops;
  for (const Atoms::List &sequence : sequences)
    for (unsigned id : sequence)
      for (auto [op, factor] : classes[id].neededWhole)
        if (attends(op, factor))
          ops.insert(op);
  Axes contextAxes = mesh.named("context");
  for (Operation *op : ops) {
    Sharding wanted = attentionSharding(op->getResult(0), tensor, context, axis);
    auto isDivided = [&](unsigned d) {
      return !needsWhole(op, d) && llvm::any_of(wanted.dims[d], [&](unsigned a) {
        return llvm::is_contained(contextAxes, a);
      });
    };
    if (llvm::none_of(llvm::seq<unsigned>(0, wanted.dims.size()), isDivided))
      continue;
    OpBuilder b(op->getContext());
    if (failed(seedOrAgree(op->getResult(0), withOpenDims(attr(wanted)), mesh, "context parallel",
                           "mesh axis 'context'")))
      return failure();
    // Gradients go back to divided sequences at once, so that what is computed from them needs no
    // table for the whole sequence. What the forward keeps for the backward stays as it is, but
    // goes back too where something else is computed of it, as the output's weights' gradient is.
    if (train::roleOf(op->getParentOfType<func::FuncOp>()) != train::Role::Backward)
      continue;
    auto constrained = [&](Value value) {
      Sharding divided = attentionSharding(value, tensor, TensorClasses(), axis);
      for (size_t d = 0; d < divided.dims.size(); ++d)
        if (llvm::is_contained(sequences, classes.of(value, d)))
          divided.dims[d] = contextAxes;
      auto constrain = ConstrainOp::create(b, op->getLoc(), value.getType(), value,
                                           withOpenDims(attr(divided)), /*boundary=*/true);
      constrain->setAttr(DistDialect::reasonAttr, b.getStringAttr("context parallel"));
      return constrain;
    };
    b.setInsertionPointToStart(op->getBlock());
    for (Value kept : op->getOperands())
      if (isa<BlockArgument>(kept) && !kept.hasOneUse() &&
          isa<FloatType>(getElementTypeOrSelf(kept.getType()))) {
        ConstrainOp back = constrained(kept);
        kept.replaceUsesWithIf(
            back, [&](OpOperand &use) { return use.getOwner() != back && use.getOwner() != op; });
      }
    b.setInsertionPointAfter(op);
    for (Value result : op->getResults()) {
      ConstrainOp back = constrained(result);
      result.replaceAllUsesExcept(back, back);
    }
  }
  return success();
}
