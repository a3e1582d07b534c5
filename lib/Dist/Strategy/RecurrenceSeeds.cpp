//===- RecurrenceSeeds.cpp - recurrences over divided sequences as seeds ----===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A recurrence hands a state from position to position, so it needs its sequence whole. Its channels do not need each
// other: along axis `context` they are divided instead, as heads of attention are (Jacobs et al. 2023). All-to-alls
// redistribute what enters and what leaves. Values have heads within those of keys; devices beyond the heads of keys
// divide the former, and then the elements of values. Elements of keys are never divided: a recurrence sums over them.
// Channels that do not divide are gathered, and all devices compute them.
//
//===----------------------------------------------------------------------===//
#include "Seeds.h"
#include "Train/Redistribution.h"

#include <numeric>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

static SmallVector<train::SliceOp> redistributions(ModuleOp module) {
  SmallVector<train::SliceOp> ops;
  module.walk([&](train::SliceOp op) {
    if (train::redistributes(op))
      ops.push_back(op);
  });
  return ops;
}

/// Whether the rows of `op` are divided again, as outside of a recurrence.
static bool leaves(train::SliceOp op, const IndexClasses &classes, ArrayRef<Atoms::List> sequences) {
  return llvm::is_contained(sequences, classes.of(op.getY(), op.getDim()));
}

/// What of a dimension can be divided: its leading indices, of parameters, that nothing needs whole.
static Atoms::List channelsOf(ArrayRef<unsigned> dim, const IndexClasses &classes, const TensorClasses &tensor) {
  Atoms::List run;
  for (unsigned id : dim) {
    const IndexClass &entry = classes[id];
    if (entry.inIntegerInputs || entry.parameters.empty() || tensor.residual.contains(id) ||
        !llvm::all_of(entry.neededWhole, [](auto need) { return canRunSharded(need.first, need.second); }))
      break;
    run.push_back(id);
  }
  return run;
}

llvm::DenseMap<unsigned, AxisPart> dist::chooseChannels(ModuleOp module, const IndexClasses &classes,
                                                        const TensorClasses &tensor, int64_t n) {
  // The results of the forward have all indices that a recurrence does not sum over: groups of heads, heads of a group and
  // elements of values. Keys have elements of their own, which gradients that leave the backward have too.
  SmallVector<Atoms::List> sequences = sequencesOf(module, classes);
  llvm::DenseMap<unsigned, AxisPart> parts;
  for (train::SliceOp op : redistributions(module)) {
    if (!leaves(op, classes, sequences) ||
        train::roleOf(op->getParentOfType<func::FuncOp>()) == train::Role::Backward)
      continue;
    Atoms::List run;
    for (int64_t d = op.getDim() + 1, rank = op.getType().getRank(); d < rank; ++d) {
      Atoms::List dim = classes.of(op.getY(), d), channels = channelsOf(dim, classes, tensor);
      llvm::append_range(run, channels);
      if (channels.size() < dim.size())
        break;
    }
    int64_t done = 1;
    for (unsigned id : run) {
      AxisPart part = tensor.inner.lookup(id);
      int64_t shards = part.end / part.begin, size = classes[id].size / shards;
      int64_t take = classes[id].size % shards == 0 ? std::gcd(n / done, size) : 1;
      if (take > 1)
        parts.try_emplace(id, AxisPart{done, done * take});
      done *= take;
      if (take != size)
        break;
    }
  }
  return parts;
}

void Seeder::redistribute(const TensorClasses &tensor, const TensorClasses &context, StringRef axis) {
  Axes tensorAxes = mesh.named(axis), contextAxes = mesh.named("context");
  bool divides = !context.inner.empty() && mesh.size(contextAxes) > 1;
  SmallVector<Atoms::List> sequences = sequencesOf(module, classes), batches = batchesOf(module, classes);
  for (train::SliceOp op : redistributions(module)) {
    if (!divides) {
      op.replaceAllUsesWith(op.getX());
      op.erase();
      continue;
    }
    int64_t dim = op.getDim();
    bool outside = leaves(op, classes, sequences);
    // A part that the axis does not have, as with R rings of more devices than heads, divides nothing, nor do those within.
    bool hasParts = !outside;
    Sharding wanted = Sharding::replicated(op.getType().getRank());
    for (auto [d, axes] : llvm::enumerate(wanted.dims)) {
      Atoms::List atoms = classes.of(op.getY(), d);
      if (int64_t(d) == dim) {
        if (outside)
          axes = contextAxes;
        continue;
      }
      if (!atoms.empty() && llvm::is_contained(batches, atoms))
        axes = batchAxes(mesh);
      for (unsigned id : atoms) {
        // Elements of heads have a part of the axis for parameters that have no heads.
        auto divideAmong = [&](const Axes &own) {
          if (llvm::none_of(own, [&](unsigned axis) { return wanted.uses(axis); }))
            llvm::append_range(axes, own);
        };
        divideAmong(axesOf(mesh, tensorAxes, tensor.inner.lookup(id)));
        AxisPart part = context.channels.lookup(id);
        Axes ofContext = axesOf(mesh, contextAxes, part);
        hasParts &= mesh.size(ofContext) == part.end / part.begin;
        if (hasParts)
          divideAmong(ofContext);
      }
    }
    // Exactly so: what is inside needs all positions, and what is outside has those of its devices.
    OpBuilder b(op);
    auto constrain = ConstrainOp::create(b, op.getLoc(), op.getType(), op.getX(), attr(wanted), /*boundary=*/true);
    constrain->setAttr(DistDialect::reasonAttr, b.getStringAttr("context parallel"));
    op.replaceAllUsesWith(constrain.getResult());
    op.erase();
  }
}
