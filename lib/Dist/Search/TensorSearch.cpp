//===- TensorSearch.cpp - how each tensor of a step is sharded --------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Train/GradientBlocks.h"
#include "Train/Quantize.h"
#include "TensorSearch.h"
#include "Train/TensorType.h"

#include "Dist/Partition/ReshardPath.h"
#include "Dist/Strategy/Seeds.h"
#include "meshwright/Cost/TripCount.h"

#include "llvm/ADT/SetVector.h"

#include <numeric>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;
using train::tensor;

static bool isFloat(Value value) { return isa<FloatType>(tensor(value).getElementType()); }

//===----------------------------------------------------------------------===//
// Seconds
//===----------------------------------------------------------------------===//

/// Elements of one device's part; what does not divide evenly is padded.
double TensorSearch::elements(Type type, const Sharding &sharding) const {
  double elements = 1;
  for (auto [size, axes] : llvm::zip(cast<RankedTensorType>(type).getShape(), sharding.dims))
    elements *= double(llvm::divideCeil(size, mesh.size(axes)));
  return elements;
}

/// The bytes from which on exec-slice-collectives makes a call for each slice.
static constexpr double smallestSlice = double(1 << 20);

static double bytesPerElement(Type type) {
  return cast<RankedTensorType>(type).getElementTypeBitWidth() / 8.0;
}

double TensorSearch::collectiveSeconds(StringRef name, double bytes, ArrayRef<unsigned> axes) {
  auto [entry, isNew] = layouts.try_emplace(std::vector<unsigned>(axes.begin(), axes.end()));
  if (isNew)
    entry->second = cluster.layoutOf(mesh.group(0, axes));
  return cluster.collectiveSeconds(name, bytes, entry->second);
}

double TensorSearch::reshardSeconds(const Sharding &from, const Sharding &to,
                                    RankedTensorType type) {
  if (from == to)
    return 0;
  SmallVector<int64_t> shape;
  for (auto [size, a, b] : llvm::zip(type.getShape(), from.dims, to.dims))
    shape.push_back(llvm::alignTo(size, std::lcm(mesh.size(a), mesh.size(b))));
  double bytes = bytesPerElement(type);
  std::string key = from.str(mesh) + to.str(mesh) + std::to_string(bytes);
  for (int64_t size : shape)
    key += "x" + std::to_string(size);
  auto [known, isNew] = reshards.try_emplace(key, 0);
  if (!isNew)
    return known->second;
  auto path = findReshardPath(from, to, shape, mesh);
  if (!path) {
    llvm::consumeError(path.takeError());
    return known->second = TableSum::never;
  }
  SmallVector<int64_t> part = localShape(shape, from, mesh);
  double seconds = 0;
  for (const ReshardStep &step : *path) {
    int64_t slices = part.empty() ? 1 : part.front(), before = ShapedType::getNumElements(part);
    double sent = step.sent(double(before), mesh) * bytes;
    bool hasRows = step.dim > 0 && llvm::any_of(ArrayRef(part).take_front(step.dim),
                                                [](int64_t size) { return size > 1; });
    step.resize(part, mesh);
    if (sent == 0)
      continue;
    // Parts that are pieces of rows are sent slice by slice where slices are large, and else made
    // contiguous first (exec-slice-collectives, exec-contiguous-collectives).
    double larger = double(std::max(before, ShapedType::getNumElements(part))) * bytes, calls = 1;
    bool isGather = step.kind == ReshardStep::AllGather || step.kind == ReshardStep::ReduceScatter;
    if (isGather && hasRows && slices > 1 && larger / double(slices) >= smallestSlice)
      calls = double(slices);
    else if (hasRows && step.kind != ReshardStep::AllReduce)
      seconds += 2 * larger / cluster.devices.front().device.memory.peak();
    seconds += calls * collectiveSeconds(StringRef(step.str(mesh)).split(' ').first, sent / calls,
                                         step.axes);
  }
  return known->second = seconds;
}

/// What the gradient of a parameter sends to devices along the other axes, once a step.
double TensorSearch::gradientSeconds(train::VariableOp variable, const Sharding &sharding) {
  Axes others;
  for (auto [i, axis] : llvm::enumerate(mesh.axes))
    if (axis.size > 1 && !llvm::is_contained(searched, i))
      others.push_back(i);
  if (others.empty() || !variable.isParameter() || variable->hasAttr(train::frozenAttr))
    return 0;
  double n = double(mesh.size(others));
  double bytes =
      elements(variable.getTensorType(), sharding) * bytesPerElement(variable.getTensorType());
  return collectiveSeconds("all_reduce", 2 * (n - 1) / n * bytes, others);
}

/// Seconds of one run of an op, with the sums and maxima over factors in `completed`, which the op
/// needs at once: at most two for each element that is left. A memory-bound op is one kernel with
/// its neighbours, so that it only reads what others write and only writes what others read.
double TensorSearch::secondsOf(Operation *op, const ShardingRule &rule, const State &state,
                               const FactorAxes &axes, ArrayRef<unsigned> completed) {
  const cost::Device &device = cluster.devices.front().device;
  auto isKernel = [](Operation *other) { return isa_and_nonnull<train::KernelOpInterface>(other); };
  double bytes = 0, largest = 0, parts = 1, seconds = 0;
  for (auto [value, sharding] : llvm::zip(op->getOperands(), state.wants)) {
    double count = elements(value.getType(), sharding);
    largest = std::max(largest, count);
    if (!isKernel(op) || !isKernel(value.getDefiningOp()))
      bytes += count * bytesPerElement(value.getType());
  }
  for (auto [value, sharding] : llvm::zip(op->getResults(), state.makes))
    if (!isKernel(op) || !llvm::all_of(value.getUsers(), isKernel))
      bytes += elements(value.getType(), sharding) * bytesPerElement(value.getType());
  for (const Axes &list : axes)
    parts *= double(mesh.size(list));
  for (unsigned f : completed) {
    double n = double(mesh.size(axes[f]));
    double each = largest / std::max(1.0, double(rule.factors[f].size) / n);
    seconds += 2 * collectiveSeconds("all_reduce", 2 * (n - 1) / n * 4 * each, axes[f]);
  }
  auto cost = dyn_cast<train::CostOpInterface>(op);
  double flops = cost ? cost.getFlops() / parts : 0, moves = bytes / device.memory.peak();
  if (isKernel(op) || !cost || cost.getFlops() <= train::defaultFlops(op))
    return seconds + std::max(moves, flops / device.kernels.peak());
  unsigned bits = tensor(op->getOperand(0)).getElementTypeBitWidth();
  return seconds + std::max(moves, device.products.ofBits(bits).seconds(flops));
}

//===----------------------------------------------------------------------===//
// States of ops and of values that are kept
//===----------------------------------------------------------------------===//

/// Whether an index of a parameter may be padded: one that is a dimension of its own everywhere.
bool TensorSearch::isPadded(Value value, unsigned dim) const {
  Atoms::List atoms = classes->of(value, dim);
  if (atoms.size() != 1)
    return false;
  const IndexClass &index = (*classes)[atoms.front()];
  return !index.parameters.empty() && !index.inIntegerInputs && !index.isRank();
}

bool TensorSearch::canHave(const ShardingRule &rule, const FactorAxes &axes, unsigned factor,
                           unsigned axis, ArrayRef<bool> padded) const {
  if (canExtend(rule, axes, factor, axis, mesh))
    return true;
  int64_t n = mesh.axes[axis].size;
  return padded[factor] && !rule.factors[factor].whole && n > 1 && axes[factor].empty() &&
         rule.factors[factor].size >= n;
}

void TensorSearch::addOp(train::ShardingRuleOpInterface op) {
  ShardingRule rule = op.getShardingRule();
  // What an op needs whole for sums and maxima alone it can be split for.
  SmallVector<unsigned> split;
  for (auto [f, factor] : llvm::enumerate(rule.factors))
    if (factor.whole && isa<train::SplittableOpInterface>(*op)) {
      split.push_back(f);
      factor.whole = false;
    }
  SmallVector<bool> padded(rule.factors.size(), true), occurs(rule.factors.size(), false);
  auto look = [&](Value value, const TensorFactors &factors) {
    for (auto [d, dim] : llvm::enumerate(factors.dims))
      for (unsigned f : dim) {
        occurs[f] = true;
        padded[f] = padded[f] && dim.size() == 1 && isPadded(value, d);
      }
  };
  for (auto [value, factors] : llvm::zip(op->getOperands(), rule.operands))
    look(value, factors);
  for (auto [value, factors] : llvm::zip(op->getResults(), rule.results))
    look(value, factors);

  Variable variable;
  FactorAxes axes(rule.factors.size());
  enum : int { nowhere = -1, allTerms = -2 };
  SmallVector<int> through(searched.size(), nowhere); // of each axis the operand that is partial
  double times = runsOf(op);
  auto addState = [&] {
    State state;
    FactorAxes summed = axes;
    SmallVector<unsigned> completed;
    for (auto [f, list] : llvm::enumerate(axes)) {
      bool isReduced = llvm::any_of(llvm::seq<unsigned>(0, rule.results.size()), [&](unsigned i) {
        FactorAxes only(axes.size());
        only[f] = list;
        return partialFromReduction(rule, i, only) != 0;
      });
      if (!list.empty() && (llvm::is_contained(split, f) || (rule.max && isReduced))) {
        completed.push_back(f);
        summed[f].clear();
        if (llvm::is_contained(split, f))
          state.split.push_back(f);
      }
    }
    for (auto [j, factors] : llvm::enumerate(rule.operands)) {
      Sharding &want = state.wants.emplace_back(dist::shardingOf(factors, axes));
      for (auto [axis, operand] : llvm::zip(searched, through))
        if (operand == int(j) || (operand == allTerms && factors.additive))
          want.partial.push_back(axis);
      want.normalize();
    }
    for (auto [i, factors] : llvm::enumerate(rule.results)) {
      Sharding &make = state.makes.emplace_back(dist::shardingOf(factors, axes));
      make.partial = axesOf(partialFromReduction(rule, i, summed));
      for (auto [axis, operand] : llvm::zip(searched, through))
        if (operand != nowhere)
          make.partial.push_back(axis);
      make.normalize();
    }
    state.seconds = times * secondsOf(op, rule, state, axes, completed);
    variable.states.push_back(std::move(state));
  };
  auto choose = [&](auto &choose, size_t i) -> void {
    if (i == searched.size())
      return addState();
    unsigned axis = searched[i];
    choose(choose, i + 1);
    for (unsigned f = 0; f < rule.factors.size(); ++f)
      if (occurs[f] && canHave(rule, axes, f, axis, padded)) {
        axes[f].push_back(axis);
        choose(choose, i + 1);
        axes[f].pop_back();
      }
    bool anyTerm = false, makesFloats = llvm::all_of(op->getResults(), isFloat);
    for (auto [j, factors] : llvm::enumerate(rule.operands)) {
      anyTerm |= factors.additive;
      if (!factors.linear || !makesFloats || !isFloat(op->getOperand(j)))
        continue;
      through[i] = int(j);
      choose(choose, i + 1);
    }
    if (anyTerm && makesFloats) {
      through[i] = allTerms;
      choose(choose, i + 1);
    }
    through[i] = nowhere;
  };
  choose(choose, 0);

  std::vector<double> costs;
  for (const State &state : variable.states)
    costs.push_back(state.seconds);
  unsigned number = tables.addVariable(costs.size());
  tables.addTable(number, std::move(costs));
  bool isFree = op->getNumOperands() == 0 &&
                llvm::none_of(rule.factors, [](const Factor &factor) { return factor.whole; });
  for (OpResult result : op->getResults())
    makers[result] = {number, result.getResultNumber(), isFree};
  ofOp[op] = number;
  variables.push_back(std::move(variable));
  ++opCount;
}

unsigned TensorSearch::addKept(RankedTensorType type, bool mayBePartial, bool isFixed,
                               bool isStacked, function_ref<bool(unsigned)> isPadded) {
  Variable variable;
  Sharding sharding = Sharding::replicated(type.getRank());
  auto choose = [&](auto &choose, size_t i) -> void {
    if (i == searched.size()) {
      State state;
      state.makes.push_back(sharding);
      state.makes.back().normalize();
      variable.states.push_back(std::move(state));
      return;
    }
    unsigned axis = searched[i];
    choose(choose, i + 1);
    if (isFixed || mesh.axes[axis].size == 1)
      return;
    for (int64_t d = isStacked; d < type.getRank(); ++d) {
      int64_t size = type.getDimSize(d), n = mesh.axes[axis].size,
              before = mesh.size(sharding.dims[d]);
      if (size % (n * before) != 0 && !(before == 1 && size >= n && isPadded(d)))
        continue;
      sharding.dims[d].push_back(axis);
      choose(choose, i + 1);
      sharding.dims[d].pop_back();
    }
    if (!mayBePartial)
      return;
    sharding.partial.push_back(axis);
    choose(choose, i + 1);
    sharding.partial.pop_back();
  };
  choose(choose, 0);
  variables.push_back(std::move(variable));
  return tables.addVariable(variables.back().states.size());
}

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

/// Counts how often the step runs each function.
void TensorSearch::countRuns(ModuleOp module) {
  SymbolTableCollection symbols;
  llvm::DenseSet<Operation *> called;
  for (func::FuncOp function : structure.functions)
    function.walk([&](Operation *op) {
      if (Operation *callee = cost::calleeOf(op, symbols))
        called.insert(callee);
    });
  // Programs have a step; other modules are whatever nobody calls.
  auto step = module.lookupSymbol<func::FuncOp>("step");
  for (func::FuncOp function : llvm::reverse(structure.functions)) {
    if (step ? function == step : !called.contains(function))
      runs[function] = 1;
    double times = runs.lookup(function);
    if (times == 0)
      continue;
    function.walk([&](Operation *op) {
      if (Operation *callee = cost::calleeOf(op, symbols))
        runs[callee] += times * double(cost::runsOf(op, cost::Rounds::Expected)) *
                        cost::tripCount(op, cost::Rounds::Expected);
    });
  }
}

double TensorSearch::runsOf(Operation *op) const {
  auto function = op->getParentOfType<func::FuncOp>();
  return runs.lookup(function) * double(cost::runsOf(op, cost::Rounds::Expected));
}

LogicalResult TensorSearch::read(ModuleOp module) {
  if (failed(separateCallees(module, &originals)))
    return failure();
  FailureOr<Structure> found = structureOf(module);
  FailureOr<IndexClasses> indices = IndexClasses::of(module);
  if (failed(found) || failed(indices))
    return failure();
  structure = std::move(*found);
  classes = std::move(*indices);
  batches = batchesOf(module, *classes);
  countRuns(module);
  auto isReached = [&](Operation *op) {
    return runs.lookup(op->getParentOfType<func::FuncOp>()) > 0;
  };

  llvm::DenseSet<Value> stacked, inputs;
  for (const ValueBinding &h : structure.bindings) {
    bindings[h.use] = &h;
    if (h.leading > 0)
      stacked.insert(h.use->get());
    else if (h.leading < 0)
      stacked.insert(h.to);
  }
  inputs.insert_range(structure.inputs);
  auto keep = [&](Value value) {
    auto [maker, isNew] = makers.try_emplace(value);
    if (isNew)
      maker->second.variable =
          addKept(tensor(value), isFloat(value), inputs.contains(value), stacked.contains(value),
                  [&](unsigned d) { return isPadded(value, d); });
    return maker->second;
  };
  for (auto [value, variable] : structure.reads) {
    if (!isReached(value.getDefiningOp()))
      continue;
    auto [entry, isNew] = ofVariable.try_emplace(variable);
    if (isNew) {
      entry->second = addKept(variable.getTensorType(), false, false, variable.getStacked(),
                              [&](unsigned d) { return isPadded(value, d); });
      std::vector<double> costs;
      for (const State &state : variables[entry->second].states)
        costs.push_back(gradientSeconds(variable, state.makes.front()));
      tables.addTable(entry->second, std::move(costs));
      kept.push_back({entry->second, variable.getTensorType()});
    }
    makers[value] = {entry->second, 0};
  }
  for (auto [argument, result] : structure.carried)
    if (isReached(result.getDefiningOp()))
      makers[result] = keep(argument);
  for (func::FuncOp function : structure.functions)
    if (runs.lookup(function) > 0)
      for (BlockArgument argument : function.getArguments())
        keep(argument);
  for (const ValueBinding &h : structure.bindings)
    if (h.to && isReached(h.use->getOwner())) {
      unsigned variable = keep(h.to).variable;
      if (h.leading < 0)
        kept.push_back({variable, tensor(h.to)});
    }
  for (func::FuncOp function : structure.functions) {
    if (runs.lookup(function) == 0)
      continue;
    WalkResult result = function.walk([&](Operation *op) {
      if (auto ruled = dyn_cast<train::ShardingRuleOpInterface>(op)) {
        addOp(ruled);
        return WalkResult::advance();
      }
      bool isBound =
          llvm::any_of(op->getOpOperands(),
                       [&](OpOperand &use) { return bindings.contains(&use); }) ||
          llvm::any_of(op->getResults(), [&](Value value) { return makers.contains(value); });
      if (op == function || isa<func::ReturnOp>(op) || isBound ||
          (!op->getNumOperands() && !op->getNumResults()))
        return WalkResult::advance();
      op->emitOpError("has no sharding rule, so it cannot run on a mesh; ops of floor 2 implement "
                      "ShardingRuleOpInterface");
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      return failure();
  }
  for (func::FuncOp function : structure.functions)
    if (runs.lookup(function) > 0)
      function.walk([&](Block *block) {
        llvm::for_each(block->getArguments(), [&](Value value) { addUses(value); });
        for (Operation &op : *block)
          llvm::for_each(op.getResults(), [&](Value value) { addUses(value); });
      });
  tieToParameters(module);
  tieCopies();
  addSplits(module);
  return success();
}

/// dist-split-reductions: a split op reads its operands once more.
void TensorSearch::addSplits(ModuleOp module) {
  for (auto &[id, index] : classes->all()) {
    SmallVector<std::pair<Operation *, unsigned>> needs;
    for (auto [op, factor] : index.neededWhole)
      if (canRunSharded(op, factor) && ofOp.contains(op))
        needs.push_back({op, unsigned(factor)});
    if (needs.empty())
      continue;
    unsigned isSplit = tables.addVariable(2);
    variables.emplace_back();
    for (auto [op, factor] : needs) {
      std::vector<double> costs;
      const std::vector<State> &states = variables[ofOp[op]].states;
      for (const State &state : states)
        costs.push_back(llvm::is_contained(state.split, factor) ? TableSum::never : 0);
      for (const State &state : states) {
        double bytes = 0;
        for (auto [value, sharding] : llvm::zip(op->getOperands(), state.wants))
          bytes += elements(value.getType(), sharding) * bytesPerElement(value.getType());
        costs.push_back(runsOf(op) * bytes / cluster.devices.front().device.memory.peak());
      }
      tables.addTable({isSplit, ofOp[op]}, std::move(costs));
    }
    auto splits = [&](unsigned variable, function_ref<Atoms::List(unsigned)> atomsOf) {
      SmallVector<unsigned> dims;
      for (unsigned d = 0; d < variables[variable].states.front().makes.front().dims.size(); ++d)
        if (Atoms::List atoms = atomsOf(d); !atoms.empty() && atoms.front() == id)
          dims.push_back(d);
      std::vector<double> costs;
      for (const State &state : variables[variable].states) {
        bool isSharded =
            llvm::any_of(dims, [&](unsigned d) { return !state.makes.front().dims[d].empty(); });
        costs.push_back(isSharded ? TableSum::never : 0);
        costs.push_back(0);
      }
      if (!dims.empty())
        tables.addTable({variable, isSplit}, std::move(costs));
    };
    for (auto variable : module.getOps<train::VariableOp>())
      if (variable.isParameter() && variableOf(variable) >= 0)
        splits(variableOf(variable), [&](unsigned d) { return classes->of(variable, d); });
    for (BlockArgument carried : carriedByLayers())
      splits(variableOf(carried), [&](unsigned d) { return classes->of(carried, d); });
  }
}

/// Forbids combinations in which the two are not alike.
void TensorSearch::tie(unsigned parameter, unsigned other,
                       function_ref<bool(const Sharding &, const State &)> areAlike) {
  std::vector<double> costs;
  for (const State &of : variables[parameter].states)
    for (const State &state : variables[other].states)
      costs.push_back(areAlike(of.makes.front(), state) ? 0 : TableSum::never);
  tables.addTable({parameter, other}, std::move(costs));
}

void TensorSearch::tieToParameters(ModuleOp module) {
  SymbolTable symbols(module);
  for (auto state : module.getOps<train::VariableOp>()) {
    if (!state.isOptimizerState() || train::isOfCompression(state) || train::isOfDelayedScaling(state) || variableOf(state) < 0)
      continue;
    auto parameter = symbols.lookup<train::VariableOp>(*state.getOf());
    ArrayRef<int64_t> own = state.getTensorType().getShape(),
                      whole = parameter.getTensorType().getShape();
    if (variableOf(parameter) >= 0 && own.size() == whole.size())
      tie(variableOf(parameter), variableOf(state), [&](const Sharding &of, const State &kept) {
        Sharding wanted = of;
        for (size_t d = 0; d < own.size(); ++d)
          if (own[d] != whole[d] && own[d] == 1)
            wanted.dims[d].clear();
        return kept.makes.front() == wanted;
      });
  }
  for (Update &update : updatesOf(module)) {
    int parameter = variableOf(update.parameter);
    if (parameter < 0)
      continue;
    if (auto op = ofOp.find(update.op); op != ofOp.end())
      tie(parameter, op->second, [&](const Sharding &of, const State &state) {
        unsigned at = update.op.getParameterMutable().getOperandNumber();
        return state.wants[at] == of;
      });
    // A gradient is made as its parameter is sharded; a sum of terms that are partial is completed
    // later.
    forEachRawGradient(
        symbols, update.op.getGradientMutable(), [&](OpOperand &use, unsigned slices) {
          auto made = makers.find(use.get());
          auto op = use.get().getDefiningOp<train::ShardingRuleOpInterface>();
          if (made == makers.end())
            return;
          bool adds = op && llvm::any_of(op.getShardingRule().operands,
                                         [](const TensorFactors &t) { return t.additive; });
          tie(parameter, made->second.variable, [&](const Sharding &of, const State &state) {
            const Sharding &gradient = state.makes[made->second.index];
            bool isLeft = adds && !gradient.partial.empty() && gradient.complete().isReplicated();
            return of.isReplicated() || isLeft ||
                   llvm::equal(gradient.dims, ArrayRef(of.dims).drop_front(slices));
          });
        });
  }
}

/// Of a function that is called several times, seeds of what layers pass on are for all calls.
void TensorSearch::tieCopies() {
  llvm::SetVector<std::pair<Operation *, unsigned>> seeded;
  for (BlockArgument carried : carriedByLayers())
    seeded.insert({originalOf(cast<func::FuncOp>(carried.getOwner()->getParentOp())),
                   carried.getArgNumber()});
  for (auto [original, number] : seeded) {
    int first = -1;
    for (func::FuncOp function : structure.functions) {
      if (originalOf(function) != original)
        continue;
      int variable = variableOf(function.getArgument(number));
      if (first >= 0 && variable >= 0 && variable != first)
        tie(first, variable, [](const Sharding &of, const State &state) {
          return state.makes.front() == of;
        });
      if (first < 0)
        first = variable;
    }
  }
}

/// Adds what a value's reshards cost.
void TensorSearch::addUses(Value value) {
  auto found = makers.find(value);
  if (found == makers.end() || found->second.isFree)
    return;
  Maker maker = found->second;
  auto replicated = Sharding::replicated(tensor(value).getRank());
  SmallVector<Use> uses;
  for (OpOperand &operand : value.getUses()) {
    Operation *owner = operand.getOwner();
    Use use{-1, {}, runsOf(owner)};
    if (auto op = ofOp.find(owner); op != ofOp.end()) {
      use.variable = op->second;
      for (const State &state : variables[op->second].states)
        use.wants.push_back(state.wants[operand.getOperandNumber()]);
    } else if (const ValueBinding *h = bindings.lookup(&operand)) {
      if (h->to)
        use.variable = makers.find(h->to)->second.variable;
      else if (auto entry = h->variable ? ofVariable.find(h->variable) : ofVariable.end();
               entry != ofVariable.end())
        use.variable = entry->second;
      if (use.variable < 0) {
        use.wants = {replicated};
      } else {
        for (const State &state : variables[use.variable].states) {
          Sharding want = state.makes.front();
          if (h->leading > 0)
            want.dims.insert(want.dims.begin(), Axes());
          else if (h->leading < 0)
            want.dims.erase(want.dims.begin());
          use.wants.push_back(std::move(want));
        }
      }
    } else {
      continue;
    }
    if (use.variable != int(maker.variable))
      uses.push_back(std::move(use));
  }
  const std::vector<State> &made = variables[maker.variable].states;
  auto seconds = [&](const Sharding &from, const Sharding &to) {
    return reshardSeconds(from, to, tensor(value));
  };
  // The other sharding that the value may have, too.
  std::vector<Sharding> others;
  if (uses.size() > 1)
    for (const Use &use : uses)
      for (const Sharding &want : use.wants)
        if (want.partial.empty() && !llvm::is_contained(others, want))
          others.push_back(want);
  int copy = -1;
  if (!others.empty()) {
    copy = tables.addVariable(1 + others.size());
    variables.emplace_back();
    std::vector<double> costs;
    for (const State &state : made) {
      costs.push_back(0);
      for (const Sharding &other : others)
        costs.push_back(uses.front().runs * seconds(state.makes[maker.index], other));
    }
    tables.addTable({maker.variable, unsigned(copy)}, std::move(costs));
  }
  for (const Use &use : uses) {
    std::vector<double> costs;
    for (const State &state : made)
      for (size_t c = 0; c < 1 + others.size(); ++c)
        for (const Sharding &want : use.wants) {
          double least = seconds(state.makes[maker.index], want);
          if (c > 0)
            least = std::min(least, seconds(others[c - 1], want));
          costs.push_back(least == 0 ? 0 : use.runs * least);
        }
    SmallVector<unsigned> of = {maker.variable};
    if (copy >= 0)
      of.push_back(copy);
    if (use.variable >= 0)
      of.push_back(use.variable);
    tables.addTable(of, std::move(costs));
  }
  allUses.push_back({value, maker, copy, std::move(others), std::move(uses)});
}

//===----------------------------------------------------------------------===//
// What was chosen
//===----------------------------------------------------------------------===//

int TensorSearch::variableOf(Value value) const {
  auto found = makers.find(value);
  return found == makers.end() ? -1 : int(found->second.variable);
}

int TensorSearch::variableOf(train::VariableOp variable) const {
  auto found = ofVariable.find(variable);
  return found == ofVariable.end() ? -1 : int(found->second);
}

Sharding TensorSearch::shardingOf(train::VariableOp variable, ArrayRef<unsigned> values) const {
  auto found = ofVariable.find(variable);
  if (found == ofVariable.end()) // Nothing that a step does depends on it.
    return Sharding::replicated(variable.getTensorType().getRank());
  return variables[found->second].states[values[found->second]].makes.front();
}

Sharding TensorSearch::shardingOf(Value value, ArrayRef<unsigned> values) const {
  Maker maker = makers.lookup(value);
  return variables[maker.variable].states[values[maker.variable]].makes[maker.index];
}

int TensorSearch::valueWith(int variable, ArrayRef<Sharding> operands,
                            ArrayRef<Sharding> results) const {
  for (auto [i, state] : llvm::enumerate(variables[variable].states))
    if (llvm::equal(state.makes, results) &&
        (state.wants.empty() || llvm::equal(state.wants, operands)))
      return int(i);
  return -1;
}

TableSum TensorSearch::sumWithBytes(double secondsPerByte) const {
  TableSum sum = tables;
  for (auto [variable, type] : kept) {
    std::vector<double> costs;
    for (const State &state : variables[variable].states)
      costs.push_back(secondsPerByte * elements(type, state.makes.front()) * bytesPerElement(type));
    sum.addTable(variable, std::move(costs));
  }
  return sum;
}

double TensorSearch::bytesOf(ArrayRef<unsigned> values) const {
  double bytes = 0;
  for (auto [variable, type] : kept)
    bytes += elements(type, variables[variable].states[values[variable]].makes.front()) *
             bytesPerElement(type);
  return bytes;
}

std::vector<TensorSearch::Sent> TensorSearch::sent(ArrayRef<unsigned> values) {
  std::vector<Sent> all;
  for (const Uses &of : allUses) {
    const Sharding &made =
        variables[of.maker.variable].states[values[of.maker.variable]].makes[of.maker.index];
    const Sharding *other =
        of.copy >= 0 && values[of.copy] > 0 ? &of.others[values[of.copy] - 1] : nullptr;
    auto add = [&](const Sharding &from, const Sharding &to, double runs) {
      if (double seconds = reshardSeconds(from, to, tensor(of.value)); seconds > 0)
        all.push_back({of.value, from, to, seconds * runs});
    };
    if (other)
      add(made, *other, of.uses.front().runs);
    for (const Use &use : of.uses) {
      const Sharding &want = use.wants[use.variable < 0 ? 0 : values[use.variable]];
      bool isNearer = other && reshardSeconds(*other, want, tensor(of.value)) <
                                   reshardSeconds(made, want, tensor(of.value));
      add(isNearer ? *other : made, want, use.runs);
    }
  }
  llvm::stable_sort(all, [](const Sent &a, const Sent &b) { return a.seconds > b.seconds; });
  return all;
}

func::FuncOp TensorSearch::originalOf(func::FuncOp function) const {
  func::FuncOp original = originals.lookup(function);
  return original ? original : function;
}

bool TensorSearch::isOfBatch(Value value, unsigned dim) const {
  Atoms::List atoms = classes->of(value, dim);
  return !atoms.empty() && llvm::any_of(batches, [&](const Atoms::List &batch) {
    return !batch.empty() && batch.front() == atoms.front();
  });
}

SmallVector<BlockArgument> TensorSearch::carriedByLayers() const {
  SmallVector<BlockArgument> carried;
  for (auto [argument, result] : structure.carried)
    if (auto repeat = result.getDefiningOp<train::RepeatOp>();
        repeat && train::isLayers(repeat) && isFloat(result) && variableOf(argument) >= 0)
      carried.push_back(cast<BlockArgument>(argument));
  return carried;
}
