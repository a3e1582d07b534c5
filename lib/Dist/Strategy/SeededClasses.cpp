//===- SeededClasses.cpp - into how many parts seeds shard each index -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "SeededClasses.h"

#include <numeric>

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

llvm::MapVector<unsigned, int64_t> dist::seededClasses(ModuleOp module, const Mesh &mesh,
                                                       const IndexClasses &classes) {
  llvm::MapVector<unsigned, int64_t> parts;
  auto add = [&](Attribute seed, int64_t rank, function_ref<Atoms::List(unsigned)> atomsOf) {
    auto attr = dyn_cast_or_null<ShardingAttr>(seed);
    // What does not fit is reported by propagation.
    auto silent = [&] { return InFlightDiagnostic(); };
    if (!attr || int64_t(attr.getDims().size()) != rank || failed(attr.verifyAxes(mesh, silent)))
      return;
    Sharding sharding = attr.on(mesh);
    for (auto [d, axes] : llvm::enumerate(sharding.dims)) {
      Atoms::List atoms = atomsOf(d);
      if (atoms.empty())
        continue;
      llvm::SmallDenseMap<unsigned, int64_t> here;
      size_t at = 0;
      int64_t left = classes[atoms[0]].size;
      for (unsigned axis : axes) {
        int64_t n = mesh.axes[axis].size;
        while (left == 1 && at + 1 < atoms.size())
          left = classes[atoms[++at]].size;
        here.try_emplace(atoms[at], 1).first->second *= n;
        left = llvm::divideCeil(left, n);
      }
      for (unsigned atom : atoms)
        if (auto it = here.find(atom); it != here.end()) {
          int64_t &all = parts.insert({atom, 1}).first->second;
          all = std::lcm(all, it->second);
        }
    }
  };
  auto rankOf = [](Type type) { return cast<RankedTensorType>(type).getRank(); };
  auto ofValue = [&](Value value) {
    return [&classes, value](unsigned d) { return classes.of(value, d); };
  };
  StringRef seed = DistDialect::seedAttr;
  for (auto variable : module.getOps<train::VariableOp>())
    add(variable->getAttr(seed), rankOf(variable.getType()),
        [&](unsigned d) { return classes.of(variable, d); });
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal())
      continue;
    for (BlockArgument argument : function.getArguments())
      add(function.getArgAttr(argument.getArgNumber(), seed), rankOf(argument.getType()),
          ofValue(argument));
    for (OpOperand &result : function.getBody().front().getTerminator()->getOpOperands())
      add(function.getResultAttr(result.getOperandNumber(), seed),
          rankOf(result.get().getType()), ofValue(result.get()));
    function.walk([&](Operation *op) {
      if (auto constrain = dyn_cast<ConstrainOp>(op))
        add(constrain.getSharding(), rankOf(constrain.getType()), ofValue(constrain.getResult()));
      if (auto seeds = op->getAttrOfType<ArrayAttr>(seed))
        for (auto [attr, result] : llvm::zip(seeds, op->getResults()))
          add(attr, rankOf(result.getType()), ofValue(result));
    });
  }
  parts.remove_if([](auto &entry) { return entry.second == 1; });
  return parts;
}
