//===- Propagate.cpp - gives every tensor a sharding ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/Passes.h"
#include "Dist/Propagation/PartialFlow.h"
#include "Dist/Propagation/Propagation.h"
#include "Dist/Propagation/ValueBinding.h"
#include "RootFlow.h"
#include "Train/Quantize.h"
#include "Train/TensorType.h"
#include "meshwright/runtime/Suggestion.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

#include <set>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;
using train::tensor;

namespace meshwright::dist {
#define GEN_PASS_DEF_DISTPROPAGATE
#include "Dist/Passes.h.inc"
} // namespace meshwright::dist

/// The rule of a value binding, with `leading` as in ValueBinding.
static ShardingRule bindingRule(ArrayRef<int64_t> used, ArrayRef<int64_t> to, int leading) {
  ShardingRule rule = elementwiseRule(leading > 0 ? used : to, {}, true, false);
  TensorFactors wide = rule.results[0], narrow = wide;
  if (leading != 0) {
    narrow.dims.erase(narrow.dims.begin());
    rule.factors[0].whole = true;
  }
  rule.operands = {leading < 0 ? narrow : wide};
  rule.results = {leading > 0 ? narrow : wide};
  return rule;
}

/// Whether `pattern`, where {layer} stands for a number, stands for the tensor called `name` too.
static bool isStoredAs(StringRef name, StringRef pattern) {
  while (true) {
    auto [text, rest] = pattern.split('{');
    if (!name.consume_front(text))
      return false;
    if (rest.empty())
      return name.empty();
    StringRef number = name.take_while(llvm::isDigit);
    if (number.empty())
      return false;
    name = name.drop_front(number.size());
    pattern = rest.split('}').second;
  }
}

/// The tensor of files that `pattern` stands for with the numbers of `name`, to compare the rest.
static std::string withNumbersOf(StringRef name, StringRef pattern) {
  std::string stored;
  while (true) {
    auto [text, rest] = pattern.split('{');
    stored += text;
    if (rest.empty())
      return stored;
    name = name.drop_until(llvm::isDigit);
    StringRef number = name.take_while(llvm::isDigit);
    stored += number.empty() ? "0" : number;
    name = name.drop_front(number.size());
    pattern = rest.split('}').second;
  }
}

namespace {
class Propagator {
public:
  Propagator(ModuleOp module, MeshOp meshOp)
      : module(module), meshName(FlatSymbolRefAttr::get(meshOp)), mesh(meshOp.getMesh()),
        table(mesh) {}

  LogicalResult run() {
    if (failed(separateCallees(module)))
      return failure();
    FailureOr<Structure> found = structureOf(module);
    if (failed(found))
      return failure();
    structure = std::move(*found);
    if (failed(makeNodes()) || failed(makeLinks()))
      return failure();
    table.run();
    llvm::DenseMap<Value, AxisMask> rootSeeds;
    for (auto [value, node] : nodes)
      rootSeeds[value] = maskOf(table[node].sharding.root);
    roots.run(structure, ops, std::move(rootSeeds));
    assignShardings();
    PartialFlow flow(structure, ops, mesh, [&](Value value) {
      Sharding placement = placementOf(value);
      AxisMask mask = maskOf(placement.root);
      for (const Axes &axes : placement.dims)
        mask |= maskOf(axes);
      return mask;
    });
    reshard(flow);
    writeSignatures();
    return mergeEqualCallees(module);
  }

  /// What the seed of every axis of the thing called `name` is; a tensor of files is all
  /// parameters that lie in it.
  LogicalResult explain(StringRef name) {
    llvm::SetVector<StringRef> names, states;
    std::set<std::string> stored;
    bool any = false;
    for (auto &[node, where] : named) {
      auto variable = module.lookupSymbol<train::VariableOp>(where.second);
      bool isState = variable && !variable.isParameter();
      train::StorageAttr storage = variable ? variable.getStorageAttr() : train::StorageAttr();
      if (where.second == name || (storage && !isState && isStoredAs(name, storage.getTensor()))) {
        emitRemark(where.first) << table.explain(node);
        any = true;
      }
      (isState ? states : names).insert(where.second);
      if (storage && !isState)
        stored.insert(withNumbersOf(name, storage.getTensor()));
    }
    if (any)
      return success();
    InFlightDiagnostic none = module.emitError("no variable and no input is called '")
                              << name << "'; ";
    SmallVector<StringRef> known(names.begin(), names.end());
    known.append(states.begin(), states.end());
    known.append(stored.begin(), stored.end());
    std::string near = nearestName(name, known);
    if (!near.empty())
      return none << "did you mean '" << near << "'?";
    none << "there are ";
    llvm::interleaveComma(names, none);
    return none;
  }

private:
  static constexpr StringLiteral reasonAttr = DistDialect::reasonAttr;

  /// `reason` says which strategy the seed is part of, or for each axis its own; without
  /// one it is the user's.
  LogicalResult seed(unsigned node, Operation *owner, const Twine &what, Attribute attr,
                     Attribute reason) {
    if (!attr)
      return success();
    auto sharding = dyn_cast<ShardingAttr>(attr);
    auto error = [&]() -> InFlightDiagnostic {
      return owner->emitOpError() << "seed of " << what << " ";
    };
    if (!sharding)
      return error() << "must be a #dist.sharding, found " << attr;
    if (sharding.getMesh() != meshName)
      return error() << "is on " << sharding.getMesh() << " but the mesh is " << meshName;
    if (failed(sharding.verifyAxes(mesh, error)))
      return failure();
    if (sharding.getDims().size() != table[node].shape.size())
      return error() << "has " << sharding.getDims().size() << " dimensions, the tensor has "
                     << table[node].shape.size();
    if (!sharding.getPartial().empty())
      return error() << "must not be partial: only reductions make partial values";
    SmallVector<bool> open =
        llvm::map_to_vector(sharding.getDims(), [](DimAttr dim) { return dim.getOpen(); });
    auto reasonOf = [&](unsigned axis) {
      auto byAxis = dyn_cast_or_null<DictionaryAttr>(reason);
      auto said = dyn_cast_or_null<StringAttr>(byAxis ? byAxis.get(mesh.axes[axis].name) : reason);
      return said ? said.str() : "";
    };
    Sharding wanted = sharding.on(mesh);
    table.seed(node, wanted, open, maskOf(sharding.replicatedOn(mesh)) | maskOf(wanted.root),
               reasonOf);
    if (!reason)
      table.raise(node, Propagation::User);
    return success();
  }

  /// Seeds of the results of an op: one sharding, or an array with a unit for each
  /// result that has none. Those are gradients, which stay where parameters are.
  LogicalResult seedResults(Operation *op) {
    Attribute attr = op->getAttr(DistDialect::seedAttr), reason = op->getAttr(reasonAttr);
    if (!attr || isa<train::VariableOp>(op))
      return success();
    auto list = dyn_cast<ArrayAttr>(attr);
    if (list ? list.size() != op->getNumResults() : op->getNumResults() != 1)
      return op->emitOpError("has ")
             << op->getNumResults() << " results and " << (list ? list.size() : 1) << " seeds";
    auto reasons = dyn_cast_or_null<ArrayAttr>(reason);
    if (reasons && reasons.size() != op->getNumResults())
      return op->emitOpError("has ") << op->getNumResults() << " results and " << reasons.size()
                                     << " reasons of seeds";
    for (OpResult result : op->getResults()) {
      unsigned i = result.getResultNumber();
      Attribute one = list ? list[i] : attr;
      if (isa<UnitAttr>(one))
        continue;
      Attribute why = reasons ? reasons[i] : reason;
      if (failed(seed(nodeOf(result), op, "result " + Twine(i), one, isa_and_nonnull<UnitAttr>(why) ? Attribute() : why)))
        return failure();
      table.raise(nodeOf(result), Propagation::Parameter);
    }
    return success();
  }

  /// Gives values that are bound to a parameter the priority of the parameter.
  void raiseParameters() {
    for (bool changed = true; changed;) {
      changed = false;
      for (const ValueBinding &h : structure.bindings) {
        bool down = h.to && (isa<BlockArgument>(h.to) || h.to.getDefiningOp<ConstrainOp>());
        int priority = table[nodeOf(h.use->get())].priority;
        if (!down || !parameters.contains(h.use->get()) || !parameters.insert(h.to).second)
          continue;
        table.raise(nodeOf(h.to), priority);
        changed = true;
      }
    }
    // A parameter's numbers of 8 bits, and what they stand for, are divided as the parameter is.
    for (func::FuncOp function : structure.functions) {
      DenseSet<Value> made;
      function.walk([&](Operation *op) {
        auto reshape = dyn_cast<train::ReshapeOp>(op);
        if (!isa<train::QuantizeOp, train::DequantizeOp>(op) && !(reshape && train::reshapesBlocks(reshape)))
          return;
        Value of = op->getOperand(0), result = op->getResult(0);
        if (!parameters.contains(of) && !made.contains(of))
          return;
        table.raise(nodeOf(result), table[nodeOf(of)].priority);
        made.insert(result);
      });
    }
  }

  unsigned nodeOf(Value value) {
    auto [it, isNew] = nodes.try_emplace(value, 0);
    if (isNew)
      it->second = table.addNode(describe(value), tensor(value).getShape(),
                                 tensor(value).getElementTypeBitWidth());
    return it->second;
  }

  LogicalResult makeNodes() {
    StringRef seedAttr = DistDialect::seedAttr;
    for (auto variable : module.getOps<train::VariableOp>()) {
      std::string name = ("@" + variable.getSymName()).str();
      unsigned node = table.addNode(name, variable.getTensorType().getShape(),
                                    variable.getTensorType().getElementTypeBitWidth());
      table.raise(node, Propagation::Parameter);
      variables[variable] = node;
      named.push_back({node, {variable.getLoc(), variable.getSymName().str()}});
      if (failed(seed(node, variable, "the variable", variable->getAttr(seedAttr),
                      variable->getAttr(reasonAttr))))
        return failure();
    }
    for (auto [value, variable] : structure.reads) {
      nodes[value] = variables[variable];
      parameters.insert(value);
    }
    for (auto [argument, result] : structure.carried)
      nodes[result] = nodeOf(argument);
    for (func::FuncOp function : structure.functions)
      for (BlockArgument argument : function.getArguments()) {
        unsigned i = argument.getArgNumber(), node = nodeOf(argument);
        if (StringRef name = train::inputName(argument); !name.empty())
          named.push_back({node, {argument.getLoc(), name.str()}});
        if (failed(seed(node, function, "argument " + Twine(i), function.getArgAttr(i, seedAttr),
                        function.getArgAttr(i, reasonAttr))))
          return failure();
      }
    return success();
  }

  LogicalResult makeLinks() {
    llvm::SmallPtrSet<Operation *, 16> structural;
    for (const ValueBinding &h : structure.bindings) {
      structural.insert(h.use->getOwner());
      if (h.to && h.to.getDefiningOp())
        structural.insert(h.to.getDefiningOp());
    }
    for (auto [value, variable] : structure.reads)
      structural.insert(value.getDefiningOp());

    for (func::FuncOp function : structure.functions) {
      WalkResult result = function.walk([&](Operation *op) {
        if (auto ruled = dyn_cast<train::ShardingRuleOpInterface>(op)) {
          ShardedOp &sharded = ops.emplace_back(ShardedOp{op, ruled.getShardingRule(), {}});
          SmallVector<unsigned> ends;
          for (Value value : op->getOperands())
            ends.push_back(nodeOf(value));
          for (Value value : op->getResults())
            ends.push_back(nodeOf(value));
          table.addLink((op->getName().getStringRef() + " in @" + function.getSymName()).str(),
                        sharded.rule, ends);
        } else if (op != function && !isa<func::ReturnOp>(op) && !structural.contains(op) &&
                   (op->getNumOperands() || op->getNumResults())) {
          op->emitOpError("has no sharding rule, so it cannot run on a mesh; ops of floor 2 "
                          "implement ShardingRuleOpInterface");
          return WalkResult::interrupt();
        }
        if (auto constrain = dyn_cast<ConstrainOp>(op))
          if (failed(seed(nodeOf(constrain), op, "the result", constrain.getSharding(),
                          op->getAttr(reasonAttr))))
            return WalkResult::interrupt();
        if (failed(seedResults(op)))
          return WalkResult::interrupt();
        return WalkResult::advance();
      });
      if (result.wasInterrupted())
        return failure();
    }
    for (const ValueBinding &h : structure.bindings) {
      Value used = h.use->get();
      ArrayRef<int64_t> shape = tensor(used).getShape();
      unsigned target;
      if (h.to)
        target = nodeOf(h.to);
      else if (h.variable)
        target = variables[h.variable];
      else if (failed(makeOutput(h, target)))
        return failure();
      targets[h.use] = target;
      handedTo[h.use] = h.to;
      // Slices are taken and stacked on every device: layers are never sharded.
      if (h.leading != 0)
        table.close(h.leading > 0 ? nodeOf(used) : target, 0);
      // Both sides of a boundary are sharded independently.
      if (auto constrain = dyn_cast<ConstrainOp>(h.use->getOwner());
          constrain && constrain.getBoundary())
        continue;
      std::string name = h.use->getOwner()->getName().getStringRef().str();
      table.addLink(name, bindingRule(shape, table[target].shape, h.leading),
                    {nodeOf(used), target}, /*binding=*/true);
    }
    raiseParameters();
    return success();
  }

  /// The node of what all devices must have: a result that leaves the program, replicated unless
  /// seeded, or the number of iterations of a repetition.
  LogicalResult makeOutput(const ValueBinding &h, unsigned &node) {
    auto function = h.use->getOwner()->getParentOfType<func::FuncOp>();
    unsigned i = h.use->getOperandNumber();
    bool isResult = h.isOutput();
    ArrayRef<int64_t> shape = tensor(h.use->get()).getShape();
    node = table.addNode(isResult
                             ? ("result " + Twine(i) + " of @" + function.getSymName()).str()
                             : "the number of iterations in @" + function.getSymName().str(),
                         shape);
    table.seed(node, Sharding::replicated(shape.size()), SmallVector<bool>(shape.size(), false));
    if (!isResult)
      return success();
    if (failed(seed(node, function, "result " + Twine(i),
                    function.getResultAttr(i, DistDialect::seedAttr),
                    function.getResultAttr(i, reasonAttr))))
      return failure();
    if (!table[node].sharding.root.empty())
      return function.emitOpError("seed of result ")
             << i << " must have no root: what leaves the program is read on every device";
    return success();
  }

  /// Axes over which all terms of a sum will be partial: they are added first and
  /// completed once, so the sum must not be sharded along them.
  AxisMask partialInAllTerms(const ShardedOp &sharded) {
    AxisMask mask = ~AxisMask(0);
    bool any = false;
    for (auto [value, tensor] : llvm::zip(sharded.op->getOperands(), sharded.rule.operands))
      if (tensor.additive) {
        mask &= willBePartial.lookup(value);
        any = true;
      }
    return any ? mask : 0;
  }

  /// Chooses each op's axes, in program order: what its operands are is known.
  void assignShardings() {
    for (ShardedOp &sharded : ops) {
      AxisMask summed = partialInAllTerms(sharded);
      FactorClaims claims;
      auto add = [&](Value value, const Sharding &sharding) {
        const Propagation::Node &node = table[nodeOf(value)];
        claims.add(sharded.rule, sharding, node.bytes, node.priority, mesh);
      };
      for (Value value : sharded.op->getOperands())
        add(value, placementOf(value));
      for (Value value : sharded.op->getResults()) {
        Sharding wanted = table[nodeOf(value)].sharding;
        for (Axes &axes : wanted.dims)
          axes.erase(llvm::find_if(axes, [&](unsigned a) { return summed >> a & 1; }), axes.end());
        add(value, wanted);
      }
      sharded.axes = chooseFactorAxes(sharded.rule, std::move(claims), mesh);
      for (Axes &axes : sharded.axes)
        dropAxes(axes, sharded.root);
      for (OpResult result : sharded.op->getResults())
        willBePartial[result] =
            summed | partialFromReduction(sharded.rule, result.getResultNumber(), sharded.axes);
      for (auto [value, factors] : llvm::zip(sharded.op->getResults(), sharded.rule.results))
        placements[value] = dist::shardingOf(factors, sharded.axes);
    }
  }

  /// An axis over which only the root has a value does not shard it.
  static void dropAxes(Axes &axes, AxisMask mask) {
    llvm::erase_if(axes, [&](unsigned axis) { return mask >> axis & 1; });
  }

  /// The sharding of a value where it is defined: for results the sharding with which the
  /// op runs, for bound values that of the table.
  Sharding placementOf(Value value) {
    auto it = placements.find(value);
    Sharding sharding = it != placements.end() ? it->second : table[nodeOf(value)].sharding;
    sharding.root = axesOf(roots.of(value));
    for (Axes &axes : sharding.dims)
      dropAxes(axes, roots.of(value));
    return sharding;
  }

  RankedTensorType typed(Value value, const Sharding &sharding) {
    return withSharding(value.getType(), ShardingAttr::from(meshName, mesh, sharding));
  }

  /// The sharding that a use needs of its operand.
  Sharding wantedBy(OpOperand &use, const PartialFlow &flow) {
    Sharding wanted;
    if (const ShardedOp *sharded = shardedOf.lookup(use.getOwner())) {
      wanted = dist::shardingOf(sharded->rule.operands[use.getOperandNumber()], sharded->axes);
      wanted.root = axesOf(sharded->root);
    } else {
      Value to = handedTo.lookup(&use);
      wanted = to ? placementOf(to) : table[targets.lookup(&use)].sharding;
      if (wanted.dims.size() > size_t(tensor(use.get()).getRank()))
        wanted.dims.erase(wanted.dims.begin());
      else if (wanted.dims.size() < size_t(tensor(use.get()).getRank()))
        wanted.dims.insert(wanted.dims.begin(), Axes());
    }
    wanted.partial = axesOf(flow.taken(use));
    return wanted;
  }

  /// Writes the type of every value and inserts a reshard for uses that need another sharding.
  void reshard(const PartialFlow &flow) {
    for (ShardedOp &sharded : ops)
      shardedOf[sharded.op] = &sharded;
    SmallVector<Value> values;
    for (func::FuncOp function : structure.functions)
      function.walk([&](Block *block) {
        llvm::append_range(values, block->getArguments());
        for (Operation &op : *block)
          llvm::append_range(values, op.getResults());
      });
    // Collect all requests before rewriting, because rewriting invalidates use lists.
    SmallVector<llvm::MapVector<Type, SmallVector<OpOperand *>>> wishes(values.size());
    SmallVector<Type> types;
    for (auto [value, wish] : llvm::zip(values, wishes)) {
      Sharding sharding = placementOf(value);
      sharding.partial = axesOf(flow.defined(value));
      const ShardedOp *sharded = shardedOf.lookup(value.getDefiningOp());
      sharding.max = sharded && sharded->rule.max;
      types.push_back(typed(value, sharding));
      for (OpOperand &use : value.getUses())
        wish[typed(value, wantedBy(use, flow))].push_back(&use);
    }
    for (auto [value, type] : llvm::zip(values, types))
      value.setType(type);
    for (auto [value, wish] : llvm::zip(values, wishes))
      serve(value, wish);
    SmallVector<ConstrainOp> constraints;
    module.walk([&](ConstrainOp op) { constraints.push_back(op); });
    for (ConstrainOp op : constraints) {
      op.replaceAllUsesWith(op.getX());
      op.erase();
    }
  }

  /// Whether the op can make any part of its result by itself, from nothing.
  bool isFree(Operation *op) {
    const ShardedOp *sharded = shardedOf.lookup(op);
    return sharded && op->getNumOperands() == 0 && op->getNumResults() == 1 &&
           llvm::none_of(sharded->rule.factors, [](const Factor &f) { return f.whole; });
  }

  void serve(Value value, llvm::MapVector<Type, SmallVector<OpOperand *>> &wish) {
    Operation *maker = value.getDefiningOp();
    if (maker && isFree(maker)) {
      for (auto &[type, uses] : wish)
        if (type != value.getType()) {
          OpBuilder b(maker);
          Operation *copy = b.clone(*maker);
          copy->getResult(0).setType(type);
          for (OpOperand *use : uses)
            use->set(copy->getResult(0));
        }
      if (value.use_empty())
        maker->erase();
      return;
    }
    SmallVector<OpOperand *> all;
    SmallVector<Sharding> wanted;
    for (auto &[type, uses] : wish)
      if (type != value.getType()) {
        llvm::append_range(all, uses);
        wanted.push_back(dist::shardingOf(type).on(mesh));
      }
    if (all.empty())
      return;
    // A partial value is completed once for all: where uses differ, into what
    // all of them can be sliced from.
    Sharding have = dist::shardingOf(value.getType()).on(mesh);
    Value source = value;
    if (!have.partial.empty() && wanted.size() > 1) {
      Sharding common = wanted[0];
      for (const Sharding &other : wanted)
        for (auto [a, b] : llvm::zip(common.dims, other.dims)) {
          size_t n = 0;
          while (n < a.size() && n < b.size() && a[n] == b[n])
            ++n;
          a.truncate(n);
        }
      common.partial = axesOf(partialInAll(wanted));
      llvm::erase_if(common.root, [&](unsigned axis) {
        return !llvm::all_of(wanted, [&](const Sharding &s) { return s.isRoot(axis); });
      });
      source = insertReshard(value, typed(value, common), all);
    }
    for (auto &[type, uses] : wish) {
      if (type == value.getType())
        continue;
      Value served = type == source.getType() ? source : insertReshard(source, type, uses);
      for (OpOperand *use : uses)
        use->set(served);
    }
  }

  /// Axes over which all uses take the value partial.
  static AxisMask partialInAll(ArrayRef<Sharding> shardings) {
    AxisMask mask = ~AxisMask(0);
    for (const Sharding &sharding : shardings)
      mask &= maskOf(sharding.partial);
    return mask;
  }

  /// A reshard right before the first of the uses.
  Value insertReshard(Value value, Type type, ArrayRef<OpOperand *> uses) {
    Operation *first = uses.front()->getOwner();
    for (OpOperand *use : uses)
      if (use->getOwner()->isBeforeInBlock(first))
        first = use->getOwner();
    OpBuilder b(first);
    return ReshardOp::create(b, value.getLoc(), type, value);
  }

  void writeSignatures() {
    for (auto &[variable, node] : variables) {
      auto op = cast<train::VariableOp>(variable);
      op.setType(
          withSharding(op.getType(), ShardingAttr::from(meshName, mesh, table[node].sharding)));
      op->removeAttr(DistDialect::seedAttr);
      op->removeAttr(reasonAttr);
    }
    for (func::FuncOp function : structure.functions) {
      Block &body = function.getBody().front();
      function.setType(FunctionType::get(module.getContext(), body.getArgumentTypes(),
                                         body.getTerminator()->getOperandTypes()));
      for (StringRef name : {DistDialect::seedAttr, reasonAttr}) {
        for (unsigned i = 0; i < function.getNumArguments(); ++i)
          function.removeArgAttr(i, name);
        for (unsigned i = 0; i < function.getNumResults(); ++i)
          function.removeResultAttr(i, StringAttr::get(module.getContext(), name));
        function.walk([&](Operation *op) { op->removeDiscardableAttr(name); });
      }
    }
  }

  ModuleOp module;
  FlatSymbolRefAttr meshName;
  Mesh mesh;
  Propagation table;
  Structure structure;
  SmallVector<ShardedOp, 0> ops;
  llvm::DenseMap<Operation *, ShardedOp *> shardedOf;
  llvm::DenseMap<Value, unsigned> nodes;
  /// Values that are a variable, or slices of one, where they are read.
  llvm::DenseSet<Value> parameters;
  llvm::MapVector<Operation *, unsigned> variables;
  /// The node that a binding's value goes to.
  llvm::DenseMap<OpOperand *, unsigned> targets;
  /// The value it becomes, if it is one.
  llvm::DenseMap<OpOperand *, Value> handedTo;
  RootFlow roots;
  llvm::DenseMap<Value, Sharding> placements;
  llvm::DenseMap<Value, AxisMask> willBePartial;
  SmallVector<std::pair<unsigned, std::pair<Location, std::string>>> named;
};

class PropagatePass : public dist::impl::DistPropagateBase<PropagatePass> {
public:
  using DistPropagateBase::DistPropagateBase;
  void runOnModule() override {
    MeshOp mesh = lookupMesh(getOperation());
    if (!mesh)
      return signalPassFailure();
    if (mesh.getAxisNames().size() > 31) {
      mesh.emitOpError("has more than 31 axes");
      return signalPassFailure();
    }
    Propagator propagator(getOperation(), mesh);
    if (failed(propagator.run()) || (!explain.empty() && failed(propagator.explain(explain))))
      signalPassFailure();
  }
};
} // namespace
