//===- RecurrenceSeeds.cpp - recurrences over divided sequences as seeds ----===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A recurrence hands a state from position to position, so it needs its sequence whole. Its channels do not need each
// other: along axis `context` they are divided instead, as heads of attention are (Jacobs et al. 2023). All-to-alls
// redistribute what enters and what leaves. Values have heads within those of keys; devices beyond the heads of keys
// divide the former, and then what a head consists of. Channels that do not divide are gathered, and all devices
// compute them.
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
  // Keys, values and steps begin with the same heads. The longest list has all that can be divided; what an element
  // of a list is somewhere else a dimension of its own, as the elements of a head are.
  llvm::MapVector<unsigned, Atoms::List> longest;
  llvm::DenseSet<unsigned> within;
  auto sizeOf = [&](const Atoms::List &run) {
    int64_t size = 1;
    for (unsigned id : run)
      size *= classes[id].size;
    return size;
  };
  for (train::SliceOp op : redistributions(module))
    for (int64_t d = 0, rank = op.getType().getRank(); d < rank; ++d)
      if (Atoms::List run = channelsOf(classes.of(op.getY(), d), classes, tensor); !run.empty()) {
        within.insert_range(ArrayRef(run).drop_front());
        Atoms::List &best = longest[run.front()];
        if (std::pair(best.size(), sizeOf(best)) < std::pair(run.size(), sizeOf(run)))
          best = run;
      }
  llvm::DenseMap<unsigned, AxisPart> parts;
  for (auto &[first, run] : longest) {
    if (within.contains(first))
      continue;
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
    bool leaves = llvm::is_contained(sequences, classes.of(op.getY(), dim));
    Sharding wanted = Sharding::replicated(op.getType().getRank());
    for (auto [d, axes] : llvm::enumerate(wanted.dims)) {
      Atoms::List atoms = classes.of(op.getY(), d);
      if (int64_t(d) == dim) {
        if (leaves)
          axes = contextAxes;
        continue;
      }
      if (!atoms.empty() && llvm::is_contained(batches, atoms))
        axes = batchAxes(mesh);
      for (unsigned id : atoms) {
        Axes own = axesOf(mesh, tensorAxes, tensor.inner.lookup(id));
        AxisPart part = leaves ? AxisPart() : context.channels.lookup(id);
        Axes ofContext = axesOf(mesh, contextAxes, part);
        // Parts that the axis does not have, as with R rings of fewer heads, divide nothing.
        if (mesh.size(ofContext) != part.end / part.begin)
          break;
        llvm::append_range(own, ofContext);
        // Elements of heads have a part of the axis for parameters that have no heads.
        if (llvm::none_of(own, [&](unsigned axis) { return wanted.uses(axis); }))
          llvm::append_range(axes, own);
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
