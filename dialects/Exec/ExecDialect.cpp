//===- ExecDialect.cpp - attributes that ops do not declare -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Exec/Exec.h"
#include "meshwright/AttributeTable.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::exec;
using namespace meshwright::attributes;

/// Whether an attribute is an array of numbers of an argument and a result.
static bool arePairs(Attribute attribute) {
  return allElements(attribute, [](Attribute one) {
    auto pair = dyn_cast<ArrayAttr>(one);
    return pair && pair.size() == 2 && allElements(pair, Number.fits);
  });
}
/// Whether it is a list of mesh axes, and the channel behind them if that is not 0.
static bool isGroup(Attribute attribute) {
  auto group = dyn_cast<ArrayAttr>(attribute);
  if (!group)
    return false;
  ArrayRef<Attribute> axes = group.getValue();
  if (!axes.empty() && Size.fits(axes.back()))
    axes = axes.drop_back();
  return llvm::all_of(axes, String.fits);
}
static bool isBytesByCategory(Attribute attribute) {
  auto bytes = dyn_cast<DictionaryAttr>(attribute);
  return bytes && llvm::all_of(bytes, [](NamedAttribute line) {
           return symbolizeCategory(line.getName()) && Number.fits(line.getValue());
         });
}

static constexpr AttributeType
    TargetDescription{"e.g. #exec.target<\"cpu\">", "#exec.target<\"cpu\">",
                      [](Attribute a) { return isa<TargetAttr>(a); }},
    Pairs{"an array of [argument, result]", "[[0, 0]]", arePairs},
    TwoSymbols{"an array of two symbols", "[@a, @b]",
               [](Attribute a) {
                 return allElements(a, Symbol.fits) && cast<ArrayAttr>(a).size() == 2;
               }},
    Groups{"an array of lists of mesh axes", "[[\"data\"]]",
           [](Attribute a) { return allElements(a, isGroup); }},
    BytesByCategory{"a dictionary of bytes by category", "{parameter = 64 : i64}",
                    isBytesByCategory},
    List{"an array", "[]", [](Attribute a) { return isa<ArrayAttr>(a); }};
static constexpr AttributePlace OnLaunch{"an exec.launch", isOn<LaunchOp>},
    OnModuleOrProgram{"a module or an exec.program", isOn<ModuleOp, ProgramOp>};

#define MESHWRIGHT_ATTRIBUTE(name, type, place, first, last, writer, meaning)                      \
  {name, type, place, Phase::first, Phase::last, writer, meaning},
static constexpr KnownAttribute execAttributes[] = {
#include "Exec/ExecAttributes.def"
};

ArrayRef<KnownAttribute> exec::knownAttributes() { return execAttributes; }

/// Numbers in an attribute are those of operands and results.
static LogicalResult verifyNumbers(Operation *op, NamedAttribute attribute) {
  auto refuse = [&](const Twine &what) {
    return op->emitOpError("attribute '") << attribute.getName().getValue() << "' is "
                                          << attribute.getValue() << "; expected numbers of " << what;
  };
  auto below = [](ArrayRef<int64_t> numbers, int64_t end) {
    return llvm::all_of(numbers, [&](int64_t n) { return n >= 0 && n < end; });
  };
  if (auto launch = dyn_cast<LaunchOp>(op)) {
    int64_t inputs = launch.getInputs().size(), results = launch.getNumResults();
    if (attribute.getName() == gradientsAttr &&
        !below(cast<DenseI64ArrayAttr>(attribute.getValue()), inputs))
      return refuse("the " + Twine(inputs) + " inputs of a launch");
    if (attribute.getName() == movesAttr &&
        !below(cast<DenseI64ArrayAttr>(attribute.getValue()), results))
      return refuse("the " + Twine(results) + " results of a launch");
  }
  if (auto function = dyn_cast<func::FuncOp>(op); function && attribute.getName() == inplaceAttr)
    for (Attribute pair : cast<ArrayAttr>(attribute.getValue())) {
      auto at = [&](unsigned i) { return cast<IntegerAttr>(cast<ArrayAttr>(pair)[i]).getInt(); };
      if (!below(at(0), function.getNumArguments()) || !below(at(1), function.getNumResults()))
        return refuse("the " + Twine(function.getNumArguments()) + " arguments and " +
                      Twine(function.getNumResults()) + " results of a kernel");
    }
  if (auto call = dyn_cast<func::CallOp>(op);
      call && attribute.getName() == inPlaceAliasesAttr) {
    ArrayRef<int64_t> aliases = cast<DenseI64ArrayAttr>(attribute.getValue());
    int64_t operands = call.getNumOperands();
    if (aliases.size() != call.getNumResults() ||
        llvm::any_of(aliases, [&](int64_t n) { return n < -1 || n >= operands; }))
      return refuse("the " + Twine(operands) + " operands of a call, or -1, for each of its " +
                    Twine(call.getNumResults()) + " results");
  }
  return success();
}

LogicalResult ExecDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (failed(verifyAttribute(execAttributes, op, Holder::Op, attribute)))
    return failure();
  return verifyNumbers(op, attribute);
}
LogicalResult ExecDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned,
                                                    NamedAttribute attribute) {
  return verifyAttribute(execAttributes, op, Holder::Argument, attribute);
}
LogicalResult ExecDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned,
                                                       NamedAttribute attribute) {
  return verifyAttribute(execAttributes, op, Holder::Result, attribute);
}
