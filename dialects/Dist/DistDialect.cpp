//===- DistDialect.cpp - attributes and registration ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#include "Dist/Dist.h"
#include "Dist/AttentionPairs.h"
#include "meshwright/AttributeTable.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace meshwright;
using namespace meshwright::dist;

#include "Dist/DistDialect.cpp.inc"
#include "Dist/DistInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "Dist/DistAttrs.cpp.inc"

/// What a sharding does to one dimension, or over axes: their names; `R` without any, as in
/// Zheng et al. (2022).
static void printWords(ArrayRef<StringAttr> axes, raw_ostream &os) {
  if (axes.empty())
    os << "R";
  // Names of aliases are letters, digits, $, _ and -.
  llvm::interleave(
      axes, os,
      [&](StringAttr axis) {
        for (char c : axis.getValue())
          os << (llvm::isAlnum(c) ? c : '_');
      },
      "-");
}

namespace {
/// Shardings have names in printed IR that say what they are: #data_R_tensor cuts dimension 0
/// along data and dimension 2 along tensor.
struct ShardingNames : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;

  AliasResult getAlias(Attribute attr, raw_ostream &os) const override {
    auto sharding = dyn_cast<ShardingAttr>(attr);
    if (!sharding || sharding.hasOpenDim() || !sharding.getReplicated().empty())
      return AliasResult::NoAlias; // What a seed leaves open is seen where the seed is.
    if (sharding.getDims().empty())
      os << "scalar";
    llvm::interleave(
        sharding.getDims(), os, [&](DimAttr dim) { printWords(dim.getAxes(), os); }, "_");
    if (!sharding.getPartial().empty())
      printWords(sharding.getPartial(), os << (sharding.getMax() ? "_max_" : "_partial_"));
    if (!sharding.getRoot().empty())
      printWords(sharding.getRoot(), os << "_root_");
    return AliasResult::FinalAlias;
  }
};
} // namespace

//===--- attributes that ops do not declare ---------------------------------===//

using namespace meshwright::attributes;

/// Whether all entries of a dictionary are a coordinate or a list of them.
static bool areCoordinates(Attribute attribute) {
  auto at = dyn_cast<DictionaryAttr>(attribute);
  return at && llvm::all_of(at, [](NamedAttribute entry) {
           return Number.fits(entry.getValue()) || allElements(entry.getValue(), Number.fits);
         });
}
static bool isSharding(Attribute attribute) { return isa<ShardingAttr>(attribute); }
static bool isReason(Attribute attribute) {
  auto byAxis = dyn_cast<DictionaryAttr>(attribute);
  return isa<StringAttr>(attribute) || (byAxis && llvm::all_of(byAxis, [](NamedAttribute one) {
                                          return isa<StringAttr>(one.getValue());
                                        }));
}
static bool isUserSeed(Attribute attribute) {
  auto pair = dyn_cast<ArrayAttr>(attribute);
  return pair && pair.size() == 2 && Strings.fits(pair);
}

static constexpr AttributeType
    Seed{"a #dist.sharding, or an array of one or unit for each result",
         "#dist.sharding<@mesh, [{}]>",
         [](Attribute a) {
           return isSharding(a) ||
                  allElements(a, [](Attribute one) { return isSharding(one) || isa<UnitAttr>(one); });
         }},
    Reason{"a string, a dictionary of one for each mesh axis, or an array of one or unit for each result",
           "\"tensor parallel\"",
           [](Attribute a) {
             return isReason(a) ||
                    allElements(a, [](Attribute one) { return isReason(one) || isa<UnitAttr>(one); });
           }},
    UserSeeds{"an array of [\"pattern\", \"sharding\"]", "[[\"*.weight\", \"[{}]\"]]",
              [](Attribute a) { return allElements(a, isUserSeed); }},
    ListsOfStrings{"an array of arrays of strings", "[[\"data\"]]",
                   [](Attribute a) { return allElements(a, Strings.fits); }},
    GroupOrAxes{"a #dist.group or an array of strings", "[\"context\"]",
                [](Attribute a) { return isa<GroupAttr>(a) || Strings.fits(a); }},
    Coordinates{"a dictionary of a coordinate, or a list of them, by mesh axis",
                "{pipe = 0 : i64}", areCoordinates},
    List{"an array", "[]", [](Attribute a) { return isa<ArrayAttr>(a); }};
static constexpr AttributePlace
    OnVariable{"a train.variable", isOn<train::VariableOp>},
    OnMesh{"a dist.mesh", isOn<MeshOp>},
    OnVariablesAndFunctions{"a train.variable, an argument or a result",
                            [](Operation *op, Holder holder) {
                              return holder != Holder::Op || isa<train::VariableOp>(op);
                            }},
    Anywhere{"an op that is no module, an argument or a result",
             [](Operation *op, Holder holder) { return holder != Holder::Op || !isa<ModuleOp>(op); }};

#define MESHWRIGHT_ATTRIBUTE(name, type, place, first, last, writer, meaning)                      \
  {name, type, place, Phase::first, Phase::last, writer, meaning},
static constexpr KnownAttribute distAttributes[] = {
#include "Dist/DistAttributes.def"
};

ArrayRef<KnownAttribute> dist::knownAttributes() { return distAttributes; }

LogicalResult DistDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (failed(verifyAttribute(distAttributes, op, Holder::Op, attribute)))
    return failure();
  if (attribute.getName() == firstQueriesAttr && !op->hasAttr(dividedOverAttr))
    return op->emitOpError("has '") << firstQueriesAttr << "' of a group of devices without '"
                                    << dividedOverAttr << "', which names the group";
  return success();
}
LogicalResult DistDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned,
                                                    NamedAttribute attribute) {
  return verifyAttribute(distAttributes, op, Holder::Argument, attribute);
}
LogicalResult DistDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned,
                                                       NamedAttribute attribute) {
  return verifyAttribute(distAttributes, op, Holder::Result, attribute);
}

void DistDialect::initialize() {
  addInterfaces<ShardingNames>();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "Dist/DistAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "Dist/DistOps.cpp.inc"
      >();
}

//===--- parsing and printing -----------------------------------------------===//

/// `{a, "odd name", ?}`; `open` null where no question mark is allowed.
static ParseResult parseAxes(AsmParser &parser, SmallVectorImpl<StringAttr> &axes, bool *open) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces, [&]() -> ParseResult {
    if (open && *open)
      return parser.emitError(parser.getCurrentLocation(), "expected '}' after '?'");
    if (open && succeeded(parser.parseOptionalQuestion())) {
      *open = true;
      return success();
    }
    std::string name;
    if (parser.parseKeywordOrString(&name))
      return failure();
    axes.push_back(StringAttr::get(parser.getContext(), name));
    return success();
  });
}

static void printAxes(AsmPrinter &printer, ArrayRef<StringAttr> axes, bool open = false) {
  auto &os = printer.getStream();
  os << "{";
  llvm::interleaveComma(axes, os,
                        [&](StringAttr a) { printer.printKeywordOrString(a.getValue()); });
  if (open)
    os << (axes.empty() ? "?" : ", ?");
  os << "}";
}

Attribute DimAttr::parse(AsmParser &parser, Type) {
  SmallVector<StringAttr> axes;
  bool open = false;
  if (parseAxes(parser, axes, &open))
    return {};
  return get(parser.getContext(), axes, open);
}

void DimAttr::print(AsmPrinter &printer) const { printAxes(printer, getAxes(), getOpen()); }

Attribute ShardingAttr::parse(AsmParser &parser, Type) {
  FlatSymbolRefAttr mesh;
  SmallVector<DimAttr> dims;
  SmallVector<StringAttr> partial, replicated, root;
  bool max = false;
  auto dim = [&]() -> ParseResult {
    Attribute attr = DimAttr::parse(parser, {});
    if (!attr)
      return failure();
    dims.push_back(cast<DimAttr>(attr));
    return success();
  };
  if (parser.parseLess() || parser.parseAttribute(mesh) || parser.parseComma() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, dim))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    SmallVector<StringAttr> *list = &partial;
    if (replicated.empty() && succeeded(parser.parseOptionalKeyword("replicated")))
      list = &replicated;
    else if (root.empty() && succeeded(parser.parseOptionalKeyword("root")))
      list = &root;
    else if (parser.parseKeyword("partial"))
      return {};
    if (parser.parseEqual())
      return {};
    if (list == &partial)
      max = succeeded(parser.parseOptionalKeyword("max"));
    if (parseAxes(parser, *list, nullptr))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<ShardingAttr>(parser.getContext(), mesh, dims, partial, max, replicated,
                                          root);
}

void ShardingAttr::print(AsmPrinter &printer) const {
  auto &os = printer.getStream();
  os << "<";
  printer.printAttribute(getMesh());
  os << ", [";
  llvm::interleaveComma(getDims(), os, [&](DimAttr dim) { dim.print(printer); });
  os << "]";
  if (!getReplicated().empty()) {
    os << ", replicated = ";
    printAxes(printer, getReplicated());
  }
  if (!getPartial().empty()) {
    os << ", partial = " << (getMax() ? "max " : "");
    printAxes(printer, getPartial());
  }
  if (!getRoot().empty()) {
    os << ", root = ";
    printAxes(printer, getRoot());
  }
  os << ">";
}

Attribute GroupAttr::parse(AsmParser &parser, Type) {
  FlatSymbolRefAttr mesh;
  SmallVector<StringAttr> axes;
  if (parser.parseLess() || parser.parseAttribute(mesh) || parseAxes(parser, axes, nullptr) ||
      parser.parseGreater())
    return {};
  return parser.getChecked<GroupAttr>(parser.getContext(), mesh, axes);
}

void GroupAttr::print(AsmPrinter &printer) const {
  printer.getStream() << "<";
  printer.printAttribute(getMesh());
  printer.getStream() << " ";
  printAxes(printer, getAxes());
  printer.getStream() << ">";
}

//===--- checks -------------------------------------------------------------===//

LogicalResult ShardingAttr::verify(function_ref<InFlightDiagnostic()> emitError, FlatSymbolRefAttr,
                                   ArrayRef<DimAttr> dims, ArrayRef<StringAttr> partial, bool,
                                   ArrayRef<StringAttr> replicated, ArrayRef<StringAttr> root) {
  llvm::SmallPtrSet<Attribute, 4> seen;
  auto add = [&](StringAttr axis) -> LogicalResult {
    if (seen.insert(axis).second)
      return success();
    return emitError() << "axis " << axis << " appears twice in a sharding";
  };
  for (DimAttr dim : dims)
    for (StringAttr axis : dim.getAxes())
      if (failed(add(axis)))
        return failure();
  for (ArrayRef<StringAttr> list : {partial, replicated, root})
    for (StringAttr axis : list)
      if (failed(add(axis)))
        return failure();
  return success();
}

LogicalResult ShardingAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                                           function_ref<InFlightDiagnostic()> emitError) const {
  if (shape.size() != getDims().size())
    return emitError() << "a sharding of " << getDims().size()
                       << " dimensions cannot be that of a tensor with " << shape.size();
  for (DimAttr dim : getDims())
    if (dim.getOpen())
      return emitError() << "'?' is for seeds; the sharding of a type leaves nothing open";
  if (!getReplicated().empty())
    return emitError() << "'replicated' is for seeds; a type's tensor has copies over every axis "
                          "that it does not name";
  return success();
}

LogicalResult GroupAttr::verify(function_ref<InFlightDiagnostic()> emitError, FlatSymbolRefAttr,
                                ArrayRef<StringAttr> axes) {
  llvm::SmallPtrSet<Attribute, 4> seen;
  for (StringAttr axis : axes)
    if (!seen.insert(axis).second)
      return emitError() << "axis " << axis << " appears twice in a group";
  return success();
}

LogicalResult ShardingAttr::verifyAxes(const Mesh &mesh,
                                       function_ref<InFlightDiagnostic()> emitError) {
  llvm::SmallDenseSet<unsigned> seen;
  auto check = [&](ArrayRef<StringAttr> axes) -> LogicalResult {
    for (StringAttr axis : axes) {
      Axes parts = mesh.named(axis);
      if (parts.empty())
        return emitError() << "names axis " << axis << ", which " << getMesh()
                           << " does not have; its axes are "
                           << mesh.str(llvm::to_vector(llvm::seq<unsigned>(0, mesh.axes.size())));
      for (unsigned part : parts)
        if (!seen.insert(part).second)
          return emitError() << "means axis " << mesh.str({part}) << " twice, once as " << axis;
    }
    return success();
  };
  for (DimAttr dim : getDims())
    if (failed(check(dim.getAxes())))
      return failure();
  return failure(failed(check(getPartial())) || failed(check(getReplicated())) ||
                 failed(check(getRoot())));
}

//===--- between names and numbers ------------------------------------------===//

static Axes numbers(const Mesh &mesh, ArrayRef<StringAttr> names) {
  Axes axes;
  for (StringAttr name : names)
    llvm::append_range(axes, mesh.named(name));
  return axes;
}

static SmallVector<StringAttr> names(MLIRContext *context, const Mesh &mesh,
                                     ArrayRef<unsigned> axes) {
  return llvm::map_to_vector(
      axes, [&](unsigned a) { return StringAttr::get(context, mesh.axes[a].name); });
}

Sharding ShardingAttr::on(const Mesh &mesh) {
  Sharding sharding;
  for (DimAttr dim : getDims())
    sharding.dims.push_back(numbers(mesh, dim.getAxes()));
  sharding.partial = numbers(mesh, getPartial());
  sharding.max = getMax();
  sharding.root = numbers(mesh, getRoot());
  sharding.normalize();
  return sharding;
}

ShardingAttr ShardingAttr::from(FlatSymbolRefAttr name, const Mesh &mesh,
                                const Sharding &sharding) {
  MLIRContext *context = name.getContext();
  SmallVector<DimAttr> dims;
  for (const Axes &axes : sharding.dims)
    dims.push_back(DimAttr::get(context, names(context, mesh, axes), false));
  return get(context, name, dims, names(context, mesh, sharding.partial),
             !sharding.partial.empty() && sharding.max, {}, names(context, mesh, sharding.root));
}

Axes ShardingAttr::replicatedOn(const Mesh &mesh) { return numbers(mesh, getReplicated()); }

bool ShardingAttr::hasOpenDim() {
  return llvm::any_of(getDims(), [](DimAttr dim) { return dim.getOpen(); });
}

Axes GroupAttr::on(const Mesh &mesh) { return numbers(mesh, getAxes()); }

GroupAttr GroupAttr::from(FlatSymbolRefAttr name, const Mesh &mesh, ArrayRef<unsigned> axes) {
  return get(name.getContext(), name, names(name.getContext(), mesh, axes));
}

//===--- types --------------------------------------------------------------===//

ShardingAttr dist::shardingOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? dyn_cast_or_null<ShardingAttr>(tensor.getEncoding()) : ShardingAttr();
}

RankedTensorType dist::withSharding(Type type, ShardingAttr sharding) {
  auto tensor = cast<RankedTensorType>(type);
  return RankedTensorType::get(tensor.getShape(), tensor.getElementType(), sharding);
}

MeshOp dist::lookupMesh(Operation *module) {
  MeshOp found;
  for (Operation &op : module->getRegion(0).front()) {
    auto mesh = dyn_cast<MeshOp>(op);
    if (!mesh)
      continue;
    if (found) {
      mesh.emitOpError("is the second of this module; one mesh is used");
      return {};
    }
    found = mesh;
  }
  if (!found)
    module->emitError("has no dist.mesh; dist-apply-strategy writes one");
  return found;
}
