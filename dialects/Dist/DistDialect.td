//===- DistDialect.td - floor 2 ---------------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_DIST_DIALECT
#define MESHWRIGHT_DIST_DIALECT

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/TensorEncoding.td"

def Dist_Dialect : Dialect {
  let name = "dist";
  let cppNamespace = "::meshwright::dist";
  let summary = "Floor 2: where tensors are on a mesh of devices";
  let description = [{
    First the train ops on global tensors whose types carry a `#dist.sharding`
    encoding, with `dist.reshard` where a use wants another; then, partitioned,
    the same ops on one device's plain local tensors, with explicit collectives.
    All devices run one program, or each the one of its pipeline stage.
  }];
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::meshwright::train::TrainDialect"];
  let extraClassDeclaration = [{
    /// A sharding wanted on a function argument, a variable or the result of an
    /// op (an array when it has several): input to propagation.
    static constexpr ::llvm::StringLiteral seedAttr = "dist.seed";
    /// Beside a seed: the strategy it is part of. A seed without is the user's.
    static constexpr ::llvm::StringLiteral reasonAttr = "dist.reason";
    /// Of a parameter that tensor ranks hold copies of: why, for the plan's readers.
    static constexpr ::llvm::StringLiteral copiesAttr = "dist.copies";
    /// Of the module: what the user wants parameters to be, as an array of
    /// ["pattern", "[{axis}, ..]"], first to last. Input to dist-apply-strategy.
    static constexpr ::llvm::StringLiteral seedsAttr = "dist.seeds";
    /// The global type of a partitioned variable or function argument.
    static constexpr ::llvm::StringLiteral globalAttr = "dist.global";
    /// The type of a padded variable as files and users see it, without padding.
    static constexpr ::llvm::StringLiteral logicalAttr = "dist.logical";
  }];
}

class Dist_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Dist_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def Dist_DimAttr : Dist_Attr<"Dim", "dim"> {
  let summary = "The mesh axes that cut one dimension";
  let description = [{
    `{data, tensor}`, major first; `{data, ?}` may be cut further by propagation
    (open), which only a seed can be. Printed inside a sharding.
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$axes, "bool":$open);
  let hasCustomAssemblyFormat = 1;
}

def Dist_ShardingAttr : Dist_Attr<"Sharding", "sharding", [
    DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "Where the elements of a tensor are";
  let description = [{
    `#dist.sharding<@mesh, [ {data}, {}, {tensor} ]>`: dimension 0 is cut into as
    many equal parts as axis data has devices, dimension 2 likewise along tensor;
    over every axis not named the devices hold copies. With
    `partial = {tensor}` each device along tensor has one term of a sum instead
    of the value, with `partial = max {tensor}` one candidate for the maximum.
    With `root = {data}` only the device at coordinate 0 of data holds the value,
    the others nothing, as a parameter server does.
    As an encoding it is part of a tensor's type; as the attribute `dist.seed` it
    is a wish, in which `?` marks the dimensions left to propagation, though not
    along the axes of `replicated = {data}` (Shardy's replicated axes). A wish that
    names an axis made of parts, `tensor` on a mesh with `tensor.0` and `tensor.1`,
    means all of them, major first.
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$mesh, ArrayRefParameter<"DimAttr">:$dims,
                        ArrayRefParameter<"::mlir::StringAttr">:$partial, "bool":$max,
                        ArrayRefParameter<"::mlir::StringAttr">:$replicated,
                        ArrayRefParameter<"::mlir::StringAttr">:$root);
  let builders = [AttrBuilder<(ins "::mlir::FlatSymbolRefAttr":$mesh,
      "::llvm::ArrayRef<DimAttr>":$dims, "::llvm::ArrayRef<::mlir::StringAttr>":$partial,
      "bool":$max, CArg<"::llvm::ArrayRef<::mlir::StringAttr>", "{}">:$replicated),
      [{ return $_get($_ctxt, mesh, dims, partial, max, replicated, ::llvm::ArrayRef<::mlir::StringAttr>()); }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// From and to numbered axes of `mesh`, which is called `name`. All axes
    /// must exist, see `verifyAxes`.
    static ShardingAttr from(::mlir::FlatSymbolRefAttr name, const Mesh &mesh,
                             const Sharding &sharding);
    Sharding on(const Mesh &mesh);
    /// The axes that open dimensions must not be cut along.
    Axes replicatedOn(const Mesh &mesh);
    /// Whether every axis is one of `mesh`, or made of some, and none is meant
    /// twice; reports the first that is not.
    ::mlir::LogicalResult
    verifyAxes(const Mesh &mesh,
               ::llvm::function_ref<::mlir::InFlightDiagnostic()> emitError);
    bool hasOpenDim();
  }];
}

def Dist_GroupAttr : Dist_Attr<"Group", "group"> {
  let summary = "The devices a collective runs among";
  let description = [{
    `#dist.group<@mesh {data, tensor}>`: devices that differ along these axes
    only, numbered with the first axis major.
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$mesh,
                        ArrayRefParameter<"::mlir::StringAttr">:$axes);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static GroupAttr from(::mlir::FlatSymbolRefAttr name, const Mesh &mesh,
                          ::llvm::ArrayRef<unsigned> axes);
    /// The axes' numbers, all of which must exist.
    Axes on(const Mesh &mesh);
  }];
}

#endif // MESHWRIGHT_DIST_DIALECT
