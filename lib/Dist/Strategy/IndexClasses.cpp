//===- IndexClasses.cpp - which dimensions are one index --------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/Strategy/IndexClasses.h"
#include "Train/Quantize.h"
#include "Train/Storage.h"
#include "Train/TensorType.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;
using train::tensor;

//===--- atoms --------------------------------------------------------------===//

Atoms::List Atoms::make(int64_t size) {
  if (size == 1)
    return {};
  atoms.push_back({size, unsigned(atoms.size()), {}});
  return {unsigned(atoms.size() - 1)};
}

unsigned Atoms::leader(unsigned atom) const {
  while (atoms[atom].leader != atom)
    atom = atoms[atom].leader;
  return atom;
}

void Atoms::resolve(unsigned atom, List &to) const {
  atom = leader(atom);
  if (atoms[atom].parts.empty())
    to.push_back(atom);
  for (unsigned part : atoms[atom].parts)
    resolve(part, to);
}

Atoms::List Atoms::resolve(ArrayRef<unsigned> list) const {
  List finest;
  for (unsigned atom : list)
    resolve(atom, finest);
  return finest;
}

bool Atoms::join(ArrayRef<unsigned> a, ArrayRef<unsigned> b) {
  // A contradiction may show only after some splits: they are then taken back.
  SmallVector<std::pair<unsigned, Atom>> changed;
  size_t before = atoms.size();
  auto change = [&](unsigned atom) -> Atom & {
    changed.push_back({atom, atoms[atom]});
    return atoms[atom];
  };
  // One split can refine what is still to come, so the walk begins anew after each.
  auto step = [&]() -> std::optional<bool> {
    List left = resolve(a), right = resolve(b);
    for (auto [x, y] : llvm::zip(left, right)) {
      if (x == y)
        continue;
      unsigned large = x, small = y;
      if (atoms[large].size < atoms[small].size)
        std::swap(large, small);
      int64_t major = atoms[small].size, minor = atoms[large].size / major;
      if (atoms[large].size % major)
        return false;
      if (minor == 1) {
        // The older one leads: classes keep their order.
        change(std::max(x, y)).leader = std::min(x, y);
        return std::nullopt;
      }
      List parts = make(major);
      parts.append(make(minor));
      change(large).parts = parts;
      return std::nullopt;
    }
    return left.size() == right.size();
  };
  for (;;)
    if (std::optional<bool> done = step()) {
      if (!*done) {
        for (auto &[atom, old] : llvm::reverse(changed))
          atoms[atom] = old;
        atoms.truncate(before);
      }
      return *done;
    }
}

//===--- the program --------------------------------------------------------===//

const SmallVector<Atoms::List> &IndexClasses::dimsOf(Value value) {
  auto [it, isNew] = ofValue.try_emplace(value);
  if (isNew)
    for (int64_t size : tensor(value).getShape())
      it->second.push_back(atoms.make(size));
  return it->second;
}

void IndexClasses::joinDims(ArrayRef<Atoms::List> a, ArrayRef<Atoms::List> b) {
  for (auto [x, y] : llvm::zip_equal(a, b))
    atoms.join(x, y);
}

bool IndexClass::isRank() const {
  return !parameters.empty() && llvm::all_of(parameters, [](auto parameter) {
    return train::isAddedByAdapter(parameter.first);
  });
}

FailureOr<IndexClasses> IndexClasses::of(ModuleOp module) {
  FailureOr<Structure> structure = structureOf(module);
  if (failed(structure))
    return failure();
  IndexClasses result;
  result.build(module, *structure);
  return result;
}

void IndexClasses::build(ModuleOp module, const Structure &structure) {
  for (auto variable : module.getOps<train::VariableOp>())
    for (int64_t size : variable.getTensorType().getShape())
      ofVariable[variable].push_back(atoms.make(size));
  for (auto [value, variable] : structure.reads)
    ofValue[value] = ofVariable[variable];
  for (auto [argument, result] : structure.carried) {
    SmallVector<Atoms::List> dims(dimsOf(argument));
    joinDims(dims, dimsOf(result));
  }

  // What must be whole is known by lists of atoms until all are as fine as they get.
  SmallVector<std::pair<Atoms::List, std::pair<Operation *, int>>> whole;
  for (const ValueBinding &h : structure.bindings) {
    bool boundary = h.to && isa_and_nonnull<ConstrainOp>(h.to.getDefiningOp()) &&
                    cast<ConstrainOp>(h.to.getDefiningOp()).getBoundary();
    if (boundary || (!h.to && !h.variable))
      continue;
    SmallVector<Atoms::List> used(dimsOf(h.use->get()));
    SmallVector<Atoms::List> target(h.to ? dimsOf(h.to) : ofVariable[h.variable]);
    if (h.leading != 0) {
      SmallVector<Atoms::List> &stacked = h.leading > 0 ? used : target;
      whole.push_back({stacked.front(), {h.use->getOwner(), -1}});
      stacked.erase(stacked.begin());
    }
    joinDims(used, target);
  }
  for (func::FuncOp function : structure.functions)
    function.walk([&](train::ShardingRuleOpInterface op) {
      ShardingRule rule = op.getShardingRule();
      auto reshape = dyn_cast<train::ReshapeOp>(op.getOperation());
      bool divides = op->hasTrait<train::DividesRows>() || (reshape && train::reshapesBlocks(reshape));
      SmallVector<Atoms::List> factors;
      for (const Factor &factor : rule.factors)
        factors.push_back(atoms.make(factor.size));
      auto joinTensor = [&](Value value, const TensorFactors &tensor) {
        SmallVector<Atoms::List> dims(dimsOf(value));
        for (auto [dim, inside] : llvm::zip_equal(dims, tensor.dims)) {
          Atoms::List composed;
          for (unsigned f : inside)
            llvm::append_range(composed, factors[f]);
          // A reshape whose parts interleave says nothing about its dimension, and blocks do not.
          if (!inside.empty() && !(inside.size() > 1 && divides))
            atoms.join(dim, composed);
        }
      };
      for (auto [value, tensor] : llvm::zip_equal(op->getOperands(), rule.operands))
        joinTensor(value, tensor);
      for (auto [value, tensor] : llvm::zip_equal(op->getResults(), rule.results))
        joinTensor(value, tensor);
      for (auto [f, factor] : llvm::enumerate(rule.factors))
        if (factor.whole)
          whole.push_back({factors[f], {op, int(f)}});
      // What is rounded in blocks has the indices that it had before.
      if (Value of = reshape ? train::roundedOf(reshape) : Value()) {
        SmallVector<Atoms::List> dims(dimsOf(of));
        joinDims(dims, dimsOf(reshape));
      }
    });

  for (auto &[op, dims] : ofVariable) {
    auto variable = cast<train::VariableOp>(op);
    for (auto [d, dim] : llvm::enumerate(dims))
      for (unsigned id : atoms.resolve(dim)) {
        IndexClass &found = classes[id];
        found.size = atoms.size(id);
        if (variable.isParameter())
          found.parameters.push_back({variable, unsigned(d)});
      }
  }
  // In program order, not in that of a hash table.
  auto add = [&](Value value) {
    for (const Atoms::List &dim : dimsOf(value))
      for (unsigned id : atoms.resolve(dim))
        classes[id].size = atoms.size(id);
  };
  for (func::FuncOp function : structure.functions)
    function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      for (Region &region : op->getRegions())
        for (BlockArgument argument : region.getArguments())
          add(argument);
      llvm::for_each(op->getResults(), add);
    });
  for (auto &[list, need] : whole)
    for (unsigned id : atoms.resolve(list))
      if (auto it = classes.find(id); it != classes.end())
        it->second.neededWhole.push_back(need);
  for (BlockArgument input : structure.inputs)
    if (tensor(input).getElementType().isInteger())
      for (const Atoms::List &dim : dimsOf(input))
        for (unsigned id : atoms.resolve(dim))
          classes[id].inIntegerInputs = true;
}

Atoms::List IndexClasses::of(Value value, unsigned dim) const {
  return atoms.resolve(ofValue.find(value)->second[dim]);
}

Atoms::List IndexClasses::of(train::VariableOp variable, unsigned dim) const {
  return atoms.resolve(ofVariable.find(variable)->second[dim]);
}
