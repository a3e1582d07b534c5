//===- TensorSeeds.cpp - tensor and sequence parallelism as seeds -----------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Tensor parallelism (Shoeybi et al. 2019; in two dimensions Xu et al. 2021) shards
// all inner indices, and in two dimensions the residual stream's too. Attention
// heads are two indices, groups of heads that share keys and heads of a group
// (Ainslie et al. 2023): more devices than groups shard heads inside groups, for which
// the axis is made of parts. Sequence parallelism (Korthikanti et al. 2022) shards the
// sequence of the values that layers pass on. Uneven indices are padded (dist-pad).
//
// Experts are divided over axis `expert` (ExpertSeeds.cpp), not over the tensor axis, which divides
// each expert's inner index: ranks then have equal work whatever experts tokens choose.
//
// Of two inner indices of one matrix one is sharded. An index that a norm needs whole is left
// to the devices as it is then: the latents of queries and of keys and values, whose other index
// is attention's heads (DeepSeek-AI 2024). The rank of an adapter (Hu et al. 2021) stays whole too, so
// that its other index is sharded as that of the weight it adds to: sharding the rank instead would
// gather the whole input of a layer whose input is sharded.
//
//===----------------------------------------------------------------------===//
#include "Train/GradientBlocks.h"
#include "Seeds.h"
#include "Train/Quantize.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

bool dist::canRunSharded(Operation *op, int factor) {
  return factor >= 0 && isa<train::SplittableOpInterface>(op);
}

SmallVector<train::RepeatOp> dist::layerCalls(ModuleOp module) {
  SmallVector<train::RepeatOp> calls;
  module.walk([&](train::RepeatOp repeat) {
    if (train::isLayers(repeat))
      calls.push_back(repeat);
  });
  return calls;
}

static bool isFloatTensor(Value value) {
  return isa<FloatType>(cast<RankedTensorType>(value.getType()).getElementType());
}

/// The last dimension of what layers carry forward or, without layers, the class that most
/// parameters have. Backward they also carry gradients of what all of them read, such as distances of heads.
static llvm::DenseSet<unsigned> residualOf(ModuleOp module, const IndexClasses &classes) {
  llvm::DenseSet<unsigned> found;
  for (train::RepeatOp repeat : layerCalls(module))
    for (Value carried : train::roleOf(repeat) == train::Role::Forward ? repeat.getCarry() : ValueRange())
      if (int64_t rank = cast<RankedTensorType>(carried.getType()).getRank();
          isFloatTensor(carried) && rank > 0)
        for (unsigned id : classes.of(carried, rank - 1))
          found.insert(id);
  if (!found.empty())
    return found;
  size_t most = 0;
  unsigned best = 0;
  for (auto &[id, entry] : classes.all())
    if (!entry.inIntegerInputs && entry.parameters.size() > most) {
      most = entry.parameters.size();
      best = id;
    }
  if (most > 0)
    found.insert(best);
  return found;
}

namespace {
/// Gives each inner index of the parameters its part of `n` devices.
class InnerChooser {
public:
  InnerChooser(ModuleOp module, const IndexClasses &classes,
               const llvm::DenseSet<unsigned> &residual)
      : classes(classes), residual(residual) {
    findLatents(module);
    for (auto variable : module.getOps<train::VariableOp>())
      if (variable.isParameter() && !variable->hasAttr(DistDialect::seedAttr))
        for (int64_t d = variable.getCounts(), e = variable.getTensorType().getRank(); d < e; ++d)
          if (Atoms::List run = innerRun(classes.of(variable, d)); !run.empty())
            dims.push_back({variable, unsigned(d), run});
  }

  struct Dim {
    train::VariableOp variable;
    unsigned dim;
    Atoms::List run;
  };

  /// What an index leaves over the next one of the dimension takes. Where an index
  /// is the last of one dimension, another one must go on: keys have no heads inside
  /// groups, queries have. Where no dimension with the same first index gets to n
  /// evenly, that index takes all of the axis and is padded: padding is at the end of
  /// a dimension only.
  void choose(int64_t n, llvm::DenseMap<unsigned, AxisPart> &parts) const {
    llvm::MapVector<unsigned, llvm::DenseMap<unsigned, AxisPart>> even;
    for (const Dim &dim : dims) {
      auto &best = even[dim.run.front()];
      llvm::DenseMap<unsigned, AxisPart> found;
      int64_t done = 1;
      for (unsigned id : dim.run) {
        int64_t left = n / done, size = classes[id].size;
        if (left == 1 || (size % left != 0 && left % size != 0))
          break;
        int64_t take = std::min(left, size);
        found[id] = {done, done * take};
        done *= take;
      }
      if (done == n && best.empty())
        best = found;
    }
    for (auto &[first, found] : even) {
      if (found.empty())
        found[first] = {1, n};
      for (auto [id, part] : found)
        parts.try_emplace(id, part);
    }
  }

  bool empty() const { return dims.empty(); }

  /// Refuses so many devices that some of them would have no part of anything.
  LogicalResult check(ModuleOp module, int64_t n) const {
    const Dim *largest = nullptr;
    int64_t most = 0;
    for (const Dim &dim : dims) {
      int64_t size = 1;
      for (unsigned id : dim.run)
        size *= classes[id].size;
      if (size > most) {
        most = size;
        largest = &dim;
      }
    }
    if (!largest || n <= most)
      return success();
    train::VariableOp variable = largest->variable;
    return module.emitError("mesh axis 'tensor' has ")
           << n
           << " devices, more than any parameter can be divided among: the largest it shards is "
           << "dimension " << largest->dim - variable.getStacked() << " of @"
           << variable.getSymName() << ", of " << most << "; use " << most << " devices or fewer";
  }

private:
  /// Inner indices that are needed whole somewhere and meet, in a parameter, one that is not.
  void findLatents(ModuleOp module) {
    llvm::DenseSet<unsigned> found;
    for (auto variable : module.getOps<train::VariableOp>()) {
      if (!variable.isParameter())
        continue;
      SmallVector<unsigned> needed;
      bool meets = false;
      for (int64_t d = variable.getCounts(), e = variable.getTensorType().getRank(); d < e; ++d) {
        Atoms::List run = innerRun(classes.of(variable, d));
        if (run.empty())
          continue;
        if (classes[run.front()].neededWhole.empty())
          meets = true;
        else
          llvm::append_range(needed, run);
      }
      if (meets)
        found.insert_range(needed);
    }
    latents = found;
  }

  bool isInner(unsigned id) const {
    const IndexClass &entry = classes[id];
    return !residual.contains(id) && !latents.contains(id) && !entry.inIntegerInputs &&
           !entry.isRank() &&
           llvm::all_of(entry.neededWhole,
                        [](auto need) { return canRunSharded(need.first, need.second); });
  }

  Atoms::List innerRun(const Atoms::List &list) const {
    Atoms::List run;
    for (unsigned id : list) {
      if (!isInner(id))
        break;
      run.push_back(id);
    }
    return run;
  }

  const IndexClasses &classes;
  const llvm::DenseSet<unsigned> &residual;
  llvm::DenseSet<unsigned> latents;
  SmallVector<Dim> dims;
};
} // namespace

FailureOr<TensorClasses> dist::chooseTensorClasses(ModuleOp module, const IndexClasses &classes,
                                                   int64_t inner) {
  TensorClasses chosen;
  chosen.residual = residualOf(module, classes);
  InnerChooser chooser(module, classes, chosen.residual);
  // Parameters that are seeded already are in the user's hands.
  bool seeded = llvm::any_of(module.getOps<train::VariableOp>(), [](train::VariableOp variable) {
    return variable->hasAttr(DistDialect::seedAttr);
  });
  if (inner > 1 && chooser.empty() && !seeded) {
    module.emitError("mesh axis 'tensor' = ")
        << inner << " has nothing to divide: no parameter has an index besides the residual "
        << "stream's that every op can run with a part of; use data";
    return failure();
  }
  if (failed(chooser.check(module, inner)))
    return failure();
  chooser.choose(inner, chosen.inner);
  return chosen;
}

LogicalResult dist::splitAxis(ModuleOp module, const TensorClasses &chosen, StringRef name,
                              Mesh &mesh) {
  Axes axes = mesh.named(name);
  if (axes.empty())
    return success();
  // Of the parts that the axis may have already, the last is the one that is sharded further.
  unsigned at = axes.back();
  axes.pop_back();
  int64_t first = mesh.size(axes), n = mesh.axes[at].size;
  auto endsOf = [&](const llvm::DenseMap<unsigned, AxisPart> &parts) {
    SmallVector<int64_t> ends;
    for (auto &[id, part] : parts)
      for (int64_t end : {part.begin, part.end})
        if (end > first && end < first * n)
          ends.push_back(end / first);
    llvm::sort(ends);
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    return ends;
  };
  SmallVector<int64_t> ends = endsOf(chosen.inner);
  if (ends.size() > 1)
    return module.emitError("mesh axis '")
           << name << "' = " << n << " would have to be sharded after both " << ends[0] << " and "
           << ends[1] << " devices, for attentions with different numbers of key heads; use "
           << ends[0];
  // Channels of recurrences are divided along as many parts as nest with attention's.
  for (int64_t end : endsOf(chosen.channels))
    if (llvm::all_of(ends, [&](int64_t other) { return end != other && (end % other == 0 || other % end == 0); }))
      ends.push_back(end);
  llvm::sort(ends);
  if (ends.empty())
    return success();
  std::string whole = mesh.axes[at].name;
  SmallVector<MeshAxis> parts;
  ends.push_back(n);
  for (int64_t done = 1; int64_t end : ends) {
    parts.push_back({whole + "." + std::to_string(parts.size()), end / done});
    done = end;
  }
  mesh.axes.erase(mesh.axes.begin() + at);
  mesh.axes.insert(mesh.axes.begin() + at, parts.begin(), parts.end());
  return success();
}

Axes dist::axesOf(const Mesh &mesh, ArrayRef<unsigned> axis, AxisPart part) {
  Axes axes;
  int64_t done = 1;
  for (unsigned a : axis) {
    if (done >= part.begin && done * mesh.axes[a].size <= part.end && mesh.axes[a].size > 1)
      axes.push_back(a);
    done *= mesh.axes[a].size;
  }
  return axes;
}

/// With two dimensions the first part of tensor is for inner indices, the second for
/// the residual stream.
static std::pair<Axes, Axes> tensorAxes(const Mesh &mesh, StringRef inner) {
  Axes residual;
  if (inner != "tensor")
    residual = mesh.named("tensor.1");
  return {mesh.named(inner), residual};
}

Sharding Seeder::shardingOf(train::VariableOp variable, const TensorClasses &chosen,
                            StringRef axis) {
  auto [innerAxes, residualAxes] = tensorAxes(mesh, axis);
  Sharding sharding = Sharding::replicated(variable.getTensorType().getRank());
  if (variable.getExperts())
    sharding.dims[variable.getStacked()] = expertAxes(mesh);
  for (size_t d = variable.getCounts(); d < sharding.dims.size(); ++d) {
    bool whole = true; // All atoms so far are sharded into single elements.
    for (unsigned id : classes.of(variable, d)) {
      Axes axes = chosen.residual.contains(id) ? residualAxes
                                               : axesOf(mesh, innerAxes, chosen.inner.lookup(id));
      if (!whole || llvm::any_of(axes, [&](unsigned a) { return sharding.uses(a); }))
        break;
      llvm::append_range(sharding.dims[d], axes);
      whole = mesh.size(axes) >= classes[id].size;
    }
  }
  return sharding;
}

void Seeder::seed(Operation *op, ShardingAttr sharding, StringRef reason) {
  op->setAttr(DistDialect::seedAttr, sharding);
  op->setAttr(DistDialect::reasonAttr, StringAttr::get(op->getContext(), reason));
}

LogicalResult Seeder::tensor(const TensorClasses &chosen, StringRef axis) {
  bool shards = mesh.size(mesh.named("tensor")) > 1;
  StringRef ofAll = shards ? "tensor parallel" : "data parallel";
  auto reasonOf = [&](train::VariableOp variable) {
    return variable.getExperts() && !expertAxes(mesh).empty() ? "expert parallel" : ofAll;
  };
  for (auto variable : module.getOps<train::VariableOp>())
    if ((variable.isParameter() || train::isScale(variable)) && !variable->hasAttr(DistDialect::seedAttr))
      seed(variable, attr(shardingOf(variable, chosen, axis)), reasonOf(variable));
  SymbolTable symbols(module);
  for (auto variable : module.getOps<train::VariableOp>())
    if (train::isOfDelayedScaling(variable)) {
      seed(variable, attr(Sharding::replicated(variable.getTensorType().getRank())), "magnitudes of what all devices have");
    } else if (variable.isOptimizerState() && !variable->hasAttr(DistDialect::seedAttr)) {
      auto of = symbols.lookup<train::VariableOp>(*variable.getOf());
      auto sharding = of->getAttrOfType<ShardingAttr>(DistDialect::seedAttr);
      seed(variable,
           train::isOfCompression(variable) ? shardingOfCompression(variable, sharding, mesh, classes)
                                            : shardingOfState(variable, of, sharding),
           reasonOf(of));
    } else if (!variable->hasAttr(DistDialect::seedAttr)) {
      // Every device knows what all tokens chose.
      int64_t rank = variable.getTensorType().getRank();
      seed(variable, attr(Sharding::replicated(rank)), "counts of all tokens");
    }
  if (!shards && mesh.size(mesh.named("context")) == 1 && expertAxes(mesh).empty())
    return success();
  for (Update &update : updatesOf(module)) {
    auto wanted = update.parameter->getAttrOfType<ShardingAttr>(DistDialect::seedAttr);
    forEachRawGradient(symbols, update.op.getGradientMutable(), [&](OpOperand &use, unsigned slices) {
      auto result = dyn_cast<OpResult>(use.get());
      if (result && !userSeedOf(result))
        seedResult(result, withoutLayers(wanted, slices),
                   ("gradient of @" + update.parameter.getSymName()).str());
    });
  }
  return success();
}
