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
    encoding, with a `dist.reshard` for each use that needs another sharding; then,
    after partitioning, the same ops on one device's local tensors, with explicit
    collectives. All devices run one program, or each the program of its pipeline stage.
  }];
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::meshwright::train::TrainDialect"];
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    /// The sharding that a function argument, a variable or the result of an op should
    /// have (an array if the op has several results): input to propagation.
    static constexpr ::llvm::StringLiteral seedAttr = "dist.seed";
    /// Beside a seed: the strategy that wrote it. A seed without a reason is the user's.
    static constexpr ::llvm::StringLiteral reasonAttr = "dist.reason";
    /// Of a parameter that is replicated over tensor ranks: why it is, for readers of the plan.
    static constexpr ::llvm::StringLiteral copiesAttr = "dist.copies";
    /// Of the module: the user's shardings of parameters, as an array of
    /// ["pattern", "[{axis}, ..]"] in order. Input to dist-apply-strategy.
    static constexpr ::llvm::StringLiteral seedsAttr = "dist.seeds";
    /// Of the mesh: keys and values of attention whose queries are sharded go from device to device
    /// instead of being gathered (dist-ring-attention).
    static constexpr ::llvm::StringLiteral ringAttr = "dist.ring";
    /// Of a sum: its terms are of the steps of a ring (dist-ring-attention), so it is better computed
    /// than what they read is kept.
    static constexpr ::llvm::StringLiteral sumOfStepsAttr = "dist.sum_of_steps";
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
  let summary = "The mesh axes that shard one dimension";
  let description = [{
    `{data, tensor}`, major first. In `{data, ?}`, an open dimension, propagation may add
    axes; only seeds have open dimensions. Printed inside a sharding.
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$axes, "bool":$open);
  let hasCustomAssemblyFormat = 1;
}

def Dist_ShardingAttr : Dist_Attr<"Sharding", "sharding", [
    DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "The sharding of a tensor";
  let description = [{
    `#dist.sharding<@mesh, [ {data}, {}, {tensor} ]>`: dimension 0 is sharded into as
    many equal parts as axis data has devices, dimension 2 likewise along tensor; over
    all other axes the value is replicated. With `partial = {tensor}` each device along
    tensor has one term of a sum instead of the value, with `partial = max {tensor}` one
    candidate for the maximum. With `root = {data}` only the device at coordinate 0 of
    data, such as a parameter server, holds the value, and other devices hold nothing.

    As an encoding it is part of a tensor's type. As the attribute `dist.seed` it is a
    request, in which `?` marks the dimensions that propagation may shard further, except
    along the axes of `replicated = {data}` (Shardy's replicated axes). In a request the
    name of an axis made of parts, `tensor` on a mesh with `tensor.0` and `tensor.1`, means
    all parts, major first.
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
    /// Conversions from and to numbered axes of `mesh`, whose symbol is `name`. All axes
    /// must exist, see `verifyAxes`.
    static ShardingAttr from(::mlir::FlatSymbolRefAttr name, const Mesh &mesh,
                             const Sharding &sharding);
    Sharding on(const Mesh &mesh);
    /// The axes that must not shard open dimensions.
    Axes replicatedOn(const Mesh &mesh);
    /// Whether every axis exists in `mesh`, or has parts that do, and none occurs twice;
    /// reports the first axis that breaks this.
    ::mlir::LogicalResult
    verifyAxes(const Mesh &mesh,
               ::llvm::function_ref<::mlir::InFlightDiagnostic()> emitError);
    bool hasOpenDim();
  }];
}

def Dist_GroupAttr : Dist_Attr<"Group", "group"> {
  let summary = "The group of devices of a collective";
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
