//===- UserSeeds.cpp - seeds that a recipe gives by name ---------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A pattern is a parameter's name, or "@function:value" for values: all arguments and results of
// that name and of the sharding's rank, or with "#2" behind the name argument 2 alone. In each name
// * ? [..] {..} are those of globs, and a backslash before a character makes it itself.
//
//===----------------------------------------------------------------------===//
#include "Seeds.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/GlobPattern.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

/// The sharding that `text` says, e.g. "[{tensor}, {?}]", or null.
static ShardingAttr parse(FlatSymbolRefAttr mesh, StringRef text) {
  ScopedDiagnosticHandler quiet(mesh.getContext(), [](Diagnostic &) { return success(); });
  std::string whole = ("#dist.sharding<@" + mesh.getValue() + ", " + text + ">").str();
  return dyn_cast_or_null<ShardingAttr>(parseAttribute(whole, mesh.getContext()));
}

/// Splits "name#2" into the name and the number of an argument; without a number it is none. A
/// name's own # has a backslash before it.
static std::pair<StringRef, std::optional<unsigned>> splitNumber(StringRef pattern) {
  auto [name, digits] = pattern.rsplit('#');
  unsigned number = 0;
  if (name.size() == pattern.size() || name.ends_with("\\") || !llvm::all_of(digits, llvm::isDigit) ||
      digits.getAsInteger(10, number))
    return {pattern, std::nullopt};
  return {name.empty() ? "*" : name, number};
}

/// The name of a value in IR, without the number that tells equal ones apart; arguments without
/// one have their number.
static std::string nameOf(Value value) {
  if (auto name = value.getLoc()->findInstanceOf<NameLoc>())
    return name.getName().str();
  auto argument = dyn_cast<BlockArgument>(value);
  return argument ? std::to_string(argument.getArgNumber()) : "";
}

LogicalResult Seeder::valueSeed(StringRef pattern, ShardingAttr wanted,
                                function_ref<InFlightDiagnostic()> error) {
  auto [functionPattern, value] = pattern.drop_front().split(':');
  if (functionPattern.empty() || value.empty())
    return error() << "names no value; write @function:value, such as @layer.forward:x, or "
                      "@layer.forward:* for all of them";
  auto [valuePattern, number] = splitNumber(value);
  auto functions = llvm::GlobPattern::create(functionPattern);
  auto values = llvm::GlobPattern::create(valuePattern);
  if (!functions || !values)
    return error() << "has a bad pattern: "
                   << llvm::toString(llvm::joinErrors(functions.takeError(), values.takeError()));
  SmallVector<StringRef> all;
  SmallVector<func::FuncOp> found;
  for (auto function : module.getOps<func::FuncOp>()) {
    all.push_back(function.getSymName());
    if (!function.isExternal() && functions->match(function.getSymName()))
      found.push_back(function);
  }
  if (found.empty()) {
    InFlightDiagnostic none = error() << "matches no function; functions are ";
    llvm::interleaveComma(all, none);
    return none;
  }
  bool isNamed = false, any = false;
  auto fits = [&, number = number](Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    if ((number && (!argument || argument.getArgNumber() != *number)) || !values->match(nameOf(value)))
      return false;
    isNamed = true;
    return cast<RankedTensorType>(value.getType()).getRank() == int64_t(wanted.getDims().size());
  };
  auto contradicts = [&](Attribute before) { return before && before != wanted; };
  for (func::FuncOp function : found) {
    bool differs = false;
    for (BlockArgument argument : function.getArguments())
      if (fits(argument)) {
        any = true;
        differs |= contradicts(function.getArgAttr(argument.getArgNumber(), DistDialect::seedAttr));
        function.setArgAttr(argument.getArgNumber(), DistDialect::seedAttr, wanted);
      }
    function.walk([&](train::ShardingRuleOpInterface op) {
      for (OpResult result : op->getResults()) {
        if (!fits(result))
          continue;
        any = true;
        differs |= contradicts(seedOf(result));
        seedResult(result, wanted, /*reason=*/"");
      }
    });
    if (differs)
      return error() << "contradicts another seed of a value in @" << function.getSymName() << "; keep one";
  }
  if (!any && isNamed)
    return error() << "has " << wanted.getDims().size() << " dimensions, but no value of that name has";
  if (!any)
    return error() << "matches no value of @" << found.front().getSymName()
                   << "; names are those of --emit step, without % and the number behind equal ones, "
                      "and #N behind a name means argument N alone";
  return success();
}

LogicalResult Seeder::userSeeds() {
  auto list = module->getAttrOfType<ArrayAttr>(DistDialect::seedsAttr);
  if (!list)
    return success();
  llvm::DenseMap<Operation *, StringRef> seededBy;
  for (Attribute entry : list) {
    auto pair = dyn_cast<ArrayAttr>(entry);
    if (!pair || pair.size() != 2 || !isa<StringAttr>(pair[0]) || !isa<StringAttr>(pair[1]))
      return module.emitError("an entry of ")
             << DistDialect::seedsAttr << " is not [\"pattern\", \"sharding\"]: " << entry;
    StringRef pattern = cast<StringAttr>(pair[0]).getValue();
    StringRef text = cast<StringAttr>(pair[1]).getValue();
    auto error = [&] {
      return module.emitError("seed \"") << pattern << "\" = \"" << text << "\" ";
    };
    ShardingAttr wanted = parse(meshName, text);
    if (!wanted || !wanted.getPartial().empty())
      return error() << "is not a list of dimensions; write it as \"[{tensor}, {}]\"";
    if (failed(wanted.verifyAxes(mesh, error)))
      return failure();
    if (pattern.starts_with("@")) {
      if (failed(valueSeed(pattern, wanted, error)))
        return failure();
      continue;
    }
    auto glob = llvm::GlobPattern::create(pattern);
    if (!glob)
      return error() << "has a bad pattern: " << llvm::toString(glob.takeError());
    bool any = false;
    for (auto variable : module.getOps<train::VariableOp>()) {
      if (!variable.isParameter() || !glob->match(variable.getSymName()))
        continue;
      any = true;
      ShardingAttr fitting = wanted;
      auto type = variable.getTensorType();
      // As one layer's parameter has them; layers are never sharded.
      if (variable.getStacked() && int64_t(wanted.getDims().size()) == type.getRank() - 1) {
        SmallVector<DimAttr> dims = {DimAttr::get(module.getContext(), {}, false)};
        llvm::append_range(dims, wanted.getDims());
        fitting = ShardingAttr::get(module.getContext(), meshName, dims, {}, false,
                                    wanted.getReplicated());
      }
      int64_t layers = variable.getStacked();
      if (int64_t(fitting.getDims().size()) != type.getRank())
        return error() << "has " << wanted.getDims().size() << " dimensions, but @"
                       << variable.getSymName() << " has " << type.getRank() - layers;
      if (layers && !fitting.on(mesh).dims[0].empty())
        return error() << "shards the layers of @" << variable.getSymName()
                       << ", which are one after another; shard another dimension";
      auto [before, isNew] = seededBy.try_emplace(variable, pattern);
      if (!isNew && variable->getAttr(DistDialect::seedAttr) != fitting)
        return error() << "contradicts seed \"" << before->second << "\": both are for @"
                       << variable.getSymName() << "; keep one";
      variable->setAttr(DistDialect::seedAttr, fitting);
    }
    if (!any) {
      InFlightDiagnostic none = error();
      none << "matches no parameter; parameters are ";
      auto all = llvm::make_filter_range(module.getOps<train::VariableOp>(),
                                         [](train::VariableOp v) { return v.isParameter(); });
      llvm::interleaveComma(all, none, [&](train::VariableOp v) { none << v.getSymName(); });
      return none;
    }
  }
  module->removeAttr(DistDialect::seedsAttr);
  return success();
}
