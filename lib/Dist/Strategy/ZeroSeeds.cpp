//===- ZeroSeeds.cpp - sharded storage as seeds -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// ZeRO (Rajbhandari et al. 2020), FSDP (Zhao et al. 2023): what ranks that compute
// with the same parameters need not store twice. A tensor is stored as it is computed
// with and, beyond that, sharded along the data axes. Updates run on the stored shards.
//
//   level 1  optimizer states; the gradient, summed, and the parameter go into that
//            sharding before the update, the parameter back after it
//   level 2  also the accumulators: each microbatch's gradient goes into it
//   level 3  also parameters: every use gets the whole one, layer by layer
//
// Where gradients are taken at the sum of a parameter and an offset (schedule-free AdamW), the sum is what a
// step computes with. It takes the place of the parameter in this list, which only updates and evaluations read,
// so the parameter is stored as at level 3 from level 1 on.
//
// An update along a direction that whole matrices have (Muon) gathers what that is computed from, layer by
// layer, and every data rank computes it. Mean squares of rows and columns are those of shards, added.
//
// At level 0 nothing is shared out, so the update runs on whole states. Where sequences are divided,
// the gradient of learned positions is too: it is gathered before the update, because the parameter
// and its states would be three times as much to gather after it.
//
// A narrow parameter's f32 copy, its master, is one more state. It is what is updated;
// its parts are rounded, and what devices send each other has the narrow type.
//
// Each change is a `dist.constrain` with `boundary`, so that the sharding for storage does
// not spread into what is computed.
//
//===----------------------------------------------------------------------===//
#include "SeededClasses.h"
#include "Seeds.h"

#include "Train/GradientBlocks.h"
#include "Train/Optimizer.h"
#include "Train/Quantize.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

ShardingAttr dist::shardingOfState(train::VariableOp state, train::VariableOp parameter,
                                   ShardingAttr sharding) {
  SmallVector<DimAttr> dims(sharding.getDims());
  ArrayRef<int64_t> own = state.getTensorType().getShape(),
                    whole = parameter.getTensorType().getShape();
  for (size_t d = 0; d < dims.size(); ++d)
    if (own[d] != whole[d] && own[d] == 1)
      dims[d] = DimAttr::get(sharding.getContext(), {}, false);
  return ShardingAttr::get(sharding.getContext(), sharding.getMesh(), dims, sharding.getPartial(),
                           sharding.getMax(), sharding.getReplicated(), sharding.getRoot());
}

ShardingAttr dist::withoutLayers(ShardingAttr sharding, unsigned slices) {
  return ShardingAttr::get(sharding.getContext(), sharding.getMesh(),
                           sharding.getDims().drop_front(slices), sharding.getPartial(),
                           sharding.getMax(), sharding.getReplicated(), sharding.getRoot());
}

VariableIndex::VariableIndex(ModuleOp module) {
  for (auto variable : module.getOps<train::VariableOp>())
    if (variable.isOptimizerState() && !train::isOfCompression(variable) && !train::isOfDelayedScaling(variable))
      states[variable.getOfAttr().getAttr()].push_back(variable);
  module.walk([&](Operation *op) {
    if (auto get = dyn_cast<train::GetOp>(op))
      gets[get.getVariableAttr().getAttr()].push_back(get);
    else if (auto set = dyn_cast<train::SetOp>(op))
      sets[set.getVariableAttr().getAttr()].push_back(set);
  });
}

template <typename Map>
static auto listOf(const Map &map, train::VariableOp variable) {
  auto found = map.find(variable.getSymNameAttr());
  return found == map.end() ? ArrayRef<typename Map::mapped_type::value_type>() : ArrayRef(found->second);
}
ArrayRef<train::VariableOp> VariableIndex::statesOf(train::VariableOp parameter) const {
  return listOf(states, parameter);
}
ArrayRef<train::GetOp> VariableIndex::getsOf(train::VariableOp variable) const { return listOf(gets, variable); }
ArrayRef<train::SetOp> VariableIndex::setsOf(train::VariableOp variable) const { return listOf(sets, variable); }

int64_t dist::blocksOf(train::VariableOp parameter, const VariableIndex &index) {
  bool areCodes = false;
  int64_t blocks = 0;
  for (train::VariableOp state : index.statesOf(parameter)) {
    areCodes |= state.getTensorType().getElementType().isInteger(8);
    if (state.getRole()->ends_with("_amax"))
      blocks = state.getTensorType().getShape().back();
  }
  return areCodes ? blocks : 0;
}

LogicalResult dist::checkBlocks(ModuleOp module, const Mesh &mesh, const IndexClasses &classes) {
  llvm::MapVector<unsigned, int64_t> parts = seededClasses(module, mesh, classes);
  VariableIndex index(module);
  for (auto parameter : module.getOps<train::VariableOp>()) {
    int64_t blocks = parameter.isParameter() ? blocksOf(parameter, index) : 0;
    auto seed = parameter->getAttrOfType<ShardingAttr>(DistDialect::seedAttr);
    if (!blocks || !seed)
      continue;
    int64_t last = parameter.getTensorType().getRank() - 1, row = parameter.getTensorType().getDimSize(last);
    for (unsigned id : classes.of(parameter, last))
      if (int64_t n = std::max<int64_t>(1, parts.lookup(id)); classes[id].size % n)
        return parameter.emitError("parameter @")
               << parameter.getSymName() << " has states of 8 bits, but its rows would be padded, because "
               << classes[id].size << " does not divide by " << n << " devices; use a number of devices that divides "
               << classes[id].size << ", or --optimizer adamw";
    Axes axes = seed.on(mesh).dims.back();
    if (blocks == 1 || blocks % mesh.size(axes) == 0)
      continue;
    return parameter.emitError("parameter @")
           << parameter.getSymName() << " has states of 8 bits in " << blocks << " blocks of " << row / blocks
           << " elements per row, which " << mesh.size(axes) << " devices along " << mesh.str(axes)
           << " would cut; use a number of devices that divides " << blocks << ", or --optimizer adamw";
  }
  return success();
}

SmallVector<Update> dist::updatesOf(ModuleOp module) {
  SymbolTable symbols(module);
  SmallVector<Update> updates;
  module.walk([&](train::UpdateOpInterface op) {
    auto get = op.getParameterMutable().get().getDefiningOp<train::GetOp>();
    if (!get)
      return;
    auto variable = symbols.lookup<train::VariableOp>(get.getVariable());
    if (auto of = variable.getOf())
      variable = symbols.lookup<train::VariableOp>(*of);
    updates.push_back({op, variable});
  });
  return updates;
}

train::AddOp dist::gradientOffsetOf(Update update, const VariableIndex &index) {
  auto op = dyn_cast<train::UpdateOp>(update.op.getOperation());
  const train::Optimizer *optimizer = op ? train::findOptimizer(op.getOptimizer()) : nullptr;
  const train::OptimizerState *offset = optimizer ? optimizer->gradientOffset() : nullptr;
  if (!offset)
    return {};
  for (train::VariableOp state : index.statesOf(update.parameter)) {
    if (state.getRole() != offset->name)
      continue;
    for (train::GetOp get : index.getsOf(state))
      for (Operation *user : get->getUsers())
        if (auto add = dyn_cast<train::AddOp>(user); add && add.getRhs() == get.getValue())
          return add;
  }
  return {};
}

void dist::forEachRawGradient(const SymbolTable &symbols, OpOperand &use,
                              function_ref<void(OpOperand &, unsigned)> visit) {
  auto go = [&](auto &self, OpOperand &at, unsigned slices) -> void {
    Operation *op = at.get().getDefiningOp();
    if (auto accumulate = dyn_cast_or_null<train::AccumulateOp>(op))
      return self(self, accumulate.getValueMutable(), slices);
    auto repeat = dyn_cast_or_null<train::RepeatOp>(op);
    // A sum over rounds is reduced once, after the last of them.
    if (!repeat || (repeat.getTimes() && !train::isOverMicrobatches(repeat)))
      return visit(at, slices);
    unsigned i = cast<OpResult>(at.get()).getResultNumber();
    auto callee = symbols.lookup<func::FuncOp>(repeat.getCallee());
    self(self, callee.getBody().front().getTerminator()->getOpOperand(i),
         slices + unsigned(i >= repeat.getCarry().size()));
  };
  go(go, use, 0);
}

namespace {
class ZeroSeeder {
public:
  ZeroSeeder(ModuleOp module, const Mesh &mesh, const IndexClasses &classes, int64_t level,
             ArrayRef<unsigned> axes, StringRef cause)
      : module(module), mesh(mesh), classes(classes), parts(seededClasses(module, mesh, classes)),
        level(level), axes(axes), cause(cause), symbols(module), index(module),
        context(module.getContext()) {}

  /// Level 0: a gradient has its parameter's sharding, except where sequences are divided and the
  /// parameter has an index of tokens. There it is gathered.
  void wholePositions() {
    for (Update &update : updatesOf(module)) {
      auto seed = update.parameter->getAttrOfType<ShardingAttr>(DistDialect::seedAttr);
      // Where a user has seeded the states otherwise, the update runs as these are stored.
      bool together = llvm::all_of(index.statesOf(update.parameter), [&](train::VariableOp state) {
        return state->getAttr(DistDialect::seedAttr) == shardingOfState(state, update.parameter, seed);
      });
      if (seed && together && hasTokens(update.parameter))
        gradient(update, seed);
    }
  }

  LogicalResult run() {
    if (failed(check()))
      return failure();
    for (Update &update : updatesOf(module)) {
      train::VariableOp parameter = update.parameter;
      auto computed = parameter->getAttrOfType<ShardingAttr>(DistDialect::seedAttr);
      FailureOr<ShardingAttr> stored = storageOf(parameter, computed);
      if (failed(stored))
        return failure();
      for (train::VariableOp state : index.statesOf(parameter)) {
        seed(state, shardingOfState(state, parameter, *stored),
             shardingOfState(state, parameter, computed));
        gatherElsewhere(state, computed, update.op->getParentOfType<func::FuncOp>());
      }
      gradient(update, *stored);
      findDirection(update.op);
      direction(update, computed, *stored);
      if (train::AddOp sum = gradientOffsetOf(update, index)) {
        shardParameter(parameter, *stored, computed, &update.op.getParameterMutable(), sum);
        shareSum(sum, computed);
        continue;
      }
      if (level < 3) {
        OpOperand &use = update.op.getParameterMutable();
        if (Value whole = use.get();
            whole.getDefiningOp<train::GetOp>().getVariable() == parameter.getSymName()) {
          bool isForDirection = llvm::any_of(
              whole.getUsers(), [&](Operation *user) { return directionOps.contains(user); });
          use.set(constrain(whole, *stored, isForDirection ? nextOf(whole) : update.op));
          whole.replaceUsesWithIf(use.get(), [&](OpOperand &other) {
            return isBesideUpdated(other, update.op);
          });
        }
        for (train::SetOp set : index.setsOf(parameter))
          set.getValueMutable().assign(constrain(set.getValue(), computed, set));
        continue;
      }
      shardParameter(parameter, *stored, computed, &update.op.getParameterMutable());
    }
    // A frozen parameter has no states and no gradient that a lower level would shard.
    for (auto variable : module.getOps<train::VariableOp>()) {
      if (level < 3 || !variable->hasAttr(train::frozenAttr))
        continue;
      auto computed = variable->getAttrOfType<ShardingAttr>(DistDialect::seedAttr);
      FailureOr<ShardingAttr> stored = storageOf(variable, computed);
      if (failed(stored))
        return failure();
      shardParameter(variable, *stored, computed, /*updated=*/nullptr);
    }
    return success();
  }

private:
  /// Stores `parameter` as `stored` says. Uses that compute get it as it is computed with; `updated`
  /// is that of its update, if it has one, and `sum` adds its offset to it.
  void shardParameter(train::VariableOp parameter, ShardingAttr stored, ShardingAttr computed,
                      OpOperand *updated, train::AddOp sum = {}) {
    seed(parameter, stored, computed);
    for (train::GetOp get : index.getsOf(parameter))
      if (!sum || get != sum.getLhs().getDefiningOp())
        gather(get, computed, updated);
  }

  /// Gives uses of a state outside of `step` the whole one: evaluations may read averages of parameters.
  void gatherElsewhere(train::VariableOp state, ShardingAttr computed, func::FuncOp step) {
    for (train::GetOp get : index.getsOf(state)) {
      if (get->getParentOfType<func::FuncOp>() == step)
        continue;
      Value value = get.getValue();
      if (auto cast = value.hasOneUse() ? dyn_cast<train::CastOp>(*value.user_begin()) : train::CastOp())
        value = cast.getResult(); // What devices send each other has the narrow type.
      gather(value, computed, /*updated=*/nullptr);
    }
  }

  /// Gives uses of the sum of a parameter and its offset, which is computed as these are stored, the whole one:
  /// once, or at level 3 layer by layer.
  void shareSum(train::AddOp sum, ShardingAttr computed) {
    Value value = sum.getResult();
    if (auto cast = value.hasOneUse() ? dyn_cast<train::CastOp>(*value.user_begin()) : train::CastOp())
      value = cast.getResult(); // What devices send each other has the narrow type.
    if (level == 3)
      return gather(value, computed, /*updated=*/nullptr);
    Value all = constrain(value, whole(computed), nextOf(value));
    value.replaceAllUsesExcept(all, all.getDefiningOp());
  }

  /// Whether one of its indices is that of the tokens of a sequence.
  bool hasTokens(train::VariableOp variable) {
    int64_t rank = variable.getTensorType().getRank();
    return llvm::any_of(llvm::seq<int64_t>(variable.getStacked(), rank), [&](int64_t d) {
      return llvm::any_of(classes.of(variable, d),
                          [&](unsigned id) { return classes[id].inIntegerInputs; });
    });
  }

  /// Refuses so many devices that some of them would store no part of anything.
  LogicalResult check() {
    train::VariableOp largest;
    int64_t most = 0, n = mesh.size(axes), dim = 0;
    for (Update &update : updatesOf(module)) {
      train::VariableOp variable = update.parameter;
      for (int64_t d = variable.getStacked(); d < variable.getTensorType().getRank(); ++d)
        if (int64_t size = variable.getTensorType().getDimSize(d); size > most) {
          most = size;
          largest = variable;
          dim = d - variable.getStacked();
        }
    }
    if (n <= most || !largest)
      return success();
    return module.emitError()
           << cause << " cannot share parameters out over the " << n << " devices along "
           << mesh.str(axes) << ": the largest dimension is " << dim << " of @"
           << largest.getSymName() << ", of " << most << "; use " << most
           << " devices or fewer, and e.g. replica=2 for others";
  }

  /// Axes that shard for storage alone have ZeRO as their reason, all others keep theirs.
  void seed(Operation *op, ShardingAttr sharding, ShardingAttr computed) {
    op->setAttr(DistDialect::seedAttr, sharding);
    if (sharding == computed)
      return;
    Attribute before = op->getAttr(DistDialect::reasonAttr);
    Sharding inside = computed.on(mesh), stored = sharding.on(mesh);
    SmallVector<NamedAttribute> reasons;
    for (auto [a, axis] : llvm::enumerate(mesh.axes))
      if (Attribute why = inside.uses(a) ? before : reason(); why && stored.uses(a))
        reasons.emplace_back(StringAttr::get(context, axis.name), why);
    op->setAttr(DistDialect::reasonAttr, DictionaryAttr::get(context, reasons));
  }
  StringAttr reason() {
    return StringAttr::get(context, level == 0 ? "updated whole" : "ZeRO level " + std::to_string(level));
  }

  Value constrain(Value value, ShardingAttr sharding, Operation *before) {
    OpBuilder b(before);
    auto op = ConstrainOp::create(b, value.getLoc(), value.getType(), value, sharding,
                                  /*boundary=*/true);
    op->setAttr(DistDialect::reasonAttr, reason());
    return op;
  }

  /// The data axes, but for those that a seed has sharded or kept from sharding it, added to the
  /// first dimension they divide, never to layers'. Where there is none, to the one that padding
  /// makes least larger, if possible one that computing leaves whole: padding lies at the end of
  /// all parts, not of each. A dimension of one element is not sharded, since each part would be as
  /// large as the whole, and neither is one whose parts would cut blocks of states; a parameter that has no other
  /// stays as it is, and so does a frozen number.
  FailureOr<ShardingAttr> storageOf(train::VariableOp variable, ShardingAttr computed) {
    int64_t rank = variable.getTensorType().getRank(), first = variable.getStacked();
    Sharding sharding = computed.on(mesh);
    Axes axes(this->axes);
    Axes copies = computed.replicatedOn(mesh);
    llvm::erase_if(axes, [&](unsigned axis) {
      return sharding.uses(axis) || llvm::is_contained(copies, axis);
    });
    if (axes.empty())
      return computed;
    std::optional<std::tuple<bool, double, int64_t>> best;
    for (int64_t d = first; d < rank; ++d) {
      if (variable.getTensorType().getDimSize(d) == 1 || (d == rank - 1 && cutsBlocks(variable, sharding, axes)))
        continue;
      int64_t size = computedSize(variable, d);
      int64_t padded = llvm::alignTo(size, mesh.size(sharding.dims[d]) * mesh.size(axes));
      bool moved = padded != size && mesh.size(sharding.dims[d]) > 1;
      std::tuple<bool, double, int64_t> found(moved, double(padded) / double(size), d);
      best = best ? std::min(*best, found) : found;
    }
    if (!best && (first < rank || variable->hasAttr(train::frozenAttr)))
      return computed;
    if (!best)
      return variable.emitError("parameter @")
             << variable.getSymName() << " has no dimension that " << cause
             << " could divide by the " << mesh.size(axes) << " devices along " << mesh.str(axes)
             << "; leave it out";
    SmallVector<DimAttr> dims(computed.getDims());
    DimAttr &dim = dims[std::get<int64_t>(*best)];
    SmallVector<StringAttr> sharded(dim.getAxes());
    for (unsigned axis : axes)
      sharded.push_back(StringAttr::get(context, mesh.axes[axis].name));
    dim = DimAttr::get(context, sharded, false);
    return ShardingAttr::get(context, computed.getMesh(), dims, {}, false,
                             computed.getReplicated());
  }

  /// Whether parts of the last dimension, sharded along `axes` as well, would cut blocks of states or pad them.
  bool cutsBlocks(train::VariableOp variable, const Sharding &sharding, ArrayRef<unsigned> axes) {
    int64_t blocks = blocksOf(variable, index), devices = mesh.size(sharding.dims.back()) * mesh.size(axes);
    return blocks && (blocks == 1 ? variable.getTensorType().getShape().back() : blocks) % devices != 0;
  }

  /// The size of a dimension, padded as computing needs it.
  int64_t computedSize(train::VariableOp variable, int64_t dim) {
    int64_t size = 1;
    for (unsigned id : classes.of(variable, dim))
      size *= llvm::alignTo(classes[id].size, std::max<int64_t>(1, parts.lookup(id)));
    return size;
  }

  /// What a value goes back to for computing: as its seed says; dimensions the seed
  /// leaves open get no data axes.
  ShardingAttr whole(ShardingAttr computed) {
    if (!computed.hasOpenDim())
      return computed;
    SmallVector<StringAttr> names(computed.getReplicated());
    Sharding used = computed.on(mesh);
    for (unsigned axis : axes)
      if (auto name = StringAttr::get(context, mesh.axes[axis].name);
          !used.uses(axis) && !llvm::is_contained(names, name))
        names.push_back(name);
    return ShardingAttr::get(context, computed.getMesh(), computed.getDims(), {}, false, names);
  }

  void gradient(Update &update, ShardingAttr stored) {
    OpOperand &use = update.op.getGradientMutable();
    if (level <= 1) {
      // The norm reads what the update reads: then one reduction serves both.
      Value value = use.get();
      if (ConstrainOp done = constrained.lookup(value)) {
        use.set(done);
        return;
      }
      Value sharded = constrain(value, stored, nextOf(value));
      constrained[value] = cast<ConstrainOp>(sharded.getDefiningOp());
      // What compression leaves out of a block is the rest of all of the approximation.
      value.replaceUsesWithIf(sharded, [&](OpOperand &other) {
        return other.getOwner() != sharded.getDefiningOp() && !isForResidual(other.getOwner());
      });
      return;
    }
    SmallVector<std::pair<OpOperand *, unsigned>> raw;
    forEachRawGradient(symbols, use, [&](OpOperand &at, unsigned slices) {
      raw.push_back({&at, slices});
    });
    for (auto [at, slices] : raw) {
      Value value = at->get();
      Value sharded = constrain(value, withoutLayers(stored, slices), nextOf(value));
      value.replaceAllUsesExcept(sharded, sharded.getDefiningOp());
    }
  }

  /// A direction that needs whole matrices is computed with these as the parameter is computed with: its
  /// function gathers one layer at a time, and keeps the stored part of the result. Where experts are
  /// shared out, matrices are whole already.
  void direction(Update &update, ShardingAttr computed, ShardingAttr stored) {
    train::RepeatOp repeat;
    for (Operation *op : directionOps)
      if (auto found = dyn_cast<train::RepeatOp>(op))
        repeat = found;
    if (!repeat)
      return;
    SmallVector<DimAttr> dims(stored.getDims());
    for (size_t d = dims.size() - 2; d < dims.size(); ++d)
      dims[d] = computed.getDims()[d];
    auto matrices = ShardingAttr::get(context, stored.getMesh(), dims, {}, false,
                                      stored.getReplicated());
    if (matrices == stored)
      return;
    for (Value slices : repeat.getEach())
      gather(slices, matrices, /*updated=*/nullptr);
    auto layer = symbols.lookup<func::FuncOp>(repeat.getCallee());
    Operation *end = layer.getBody().front().getTerminator();
    end->setOperand(0, constrain(end->getOperand(0), withoutLayers(stored), end));
  }

  /// The ops that compute the update's direction from its other operands.
  void findDirection(train::UpdateOpInterface update) {
    directionOps.clear();
    OpOperand *direction = update.getDirection();
    if (!direction)
      return;
    llvm::DenseSet<Value> given;
    for (OpOperand &operand : update->getOpOperands())
      if (&operand != direction)
        given.insert(operand.get());
    SmallVector<Value> work{direction->get()};
    while (!work.empty()) {
      Value value = work.pop_back_val();
      Operation *op = given.contains(value) ? nullptr : value.getDefiningOp();
      if (op && directionOps.insert(op))
        llvm::append_range(work, op->getOperands());
    }
  }

  /// Whether `op` takes a gradient's approximation off its blocks.
  static bool isForResidual(Operation *op) {
    return isa<train::ScaleOp>(op) && op->hasOneUse() && isa<train::BroadcastOp>(*op->user_begin());
  }

  /// Whether this use of a parameter reads it as it is stored: that of an op that computes the direction of
  /// its update, or that has the updated one too, to choose between them.
  bool isBesideUpdated(OpOperand &use, train::UpdateOpInterface update) {
    return directionOps.contains(use.getOwner()) ||
           llvm::is_contained(use.getOwner()->getOperands(), update.getUpdated());
  }

  static Operation *nextOf(Value value) {
    Operation *op = value.getDefiningOp();
    return op ? op->getNextNode() : &value.getParentBlock()->front();
  }

  /// Gives all uses of a stored parameter but the update the whole one: in a layer
  /// that gets slices, inside it.
  void gather(Value value, ShardingAttr computed, OpOperand *updated) {
    SmallVector<OpOperand *> here;
    for (OpOperand &use : value.getUses()) {
      if (updated && (&use == updated ||
                      isBesideUpdated(use, cast<train::UpdateOpInterface>(updated->getOwner()))))
        continue;
      auto repeat = dyn_cast<train::RepeatOp>(use.getOwner());
      unsigned i = use.getOperandNumber();
      bool isSliced = repeat && i >= repeat.getCarry().size() &&
                      i < repeat.getCarry().size() + repeat.getEach().size();
      // A loop over microbatches shares it with the layers inside.
      std::optional<train::Role> role = repeat ? train::roleOf(repeat) : std::nullopt;
      bool isPassed = role == train::Role::Microbatch || role == train::Role::Count;
      if (!isSliced && !isPassed) {
        here.push_back(&use);
        continue;
      }
      auto layer = symbols.lookup<func::FuncOp>(repeat.getCallee());
      BlockArgument argument = layer.getArgument(repeat.getCalleeArgument(i));
      if (gathered.insert(argument).second)
        gather(argument, isSliced ? withoutLayers(computed) : computed, updated);
    }
    if (here.empty())
      return;
    Operation *first = here.front()->getOwner();
    for (OpOperand *use : here)
      if (use->getOwner()->isBeforeInBlock(first))
        first = use->getOwner();
    Value all = constrain(value, whole(computed), first);
    for (OpOperand *use : here)
      use->set(all);
  }

  ModuleOp module;
  const Mesh &mesh;
  const IndexClasses &classes;
  /// The number of parts of each index in computation.
  llvm::MapVector<unsigned, int64_t> parts;
  int64_t level;
  ArrayRef<unsigned> axes;
  StringRef cause; ///< what asks for it, as the user has written it
  SymbolTable symbols;
  VariableIndex index;
  MLIRContext *context;
  llvm::DenseMap<Value, ConstrainOp> constrained;
  llvm::DenseSet<Value> gathered;
  llvm::SetVector<Operation *> directionOps; ///< of the current update
};
} // namespace

LogicalResult Seeder::zero(int64_t level, ArrayRef<unsigned> axes, StringRef cause) {
  if (level > 0 && mesh.size(axes) > 1)
    return ZeroSeeder(module, mesh, classes, level, axes, cause).run();
  ZeroSeeder(module, mesh, classes, /*level=*/0, axes, cause).wholePositions();
  return success();
}
