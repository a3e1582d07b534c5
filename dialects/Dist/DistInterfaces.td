//===- DistInterfaces.td - what passes ask of a collective -----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_DIST_INTERFACES
#define MESHWRIGHT_DIST_INTERFACES

include "mlir/IR/OpBase.td"

def CollectiveOpInterface : OpInterface<"CollectiveOpInterface"> {
  let description = [{
    An op in which the devices of a group communicate: all of them must run it, in the
    same order among the group's other collectives.
  }];
  let cppNamespace = "::meshwright::dist";
  let methods = [
    InterfaceMethod<"The devices that communicate.", "::meshwright::dist::GroupAttr", "getGroupAttr">,
    InterfaceMethod<"Bytes a device sends at least, on average over a group of `n`.", "int64_t",
                    "getSentBytes", (ins "int64_t":$n)>,
    InterfaceMethod<"The dimension of each tensor along which parts are put together, if any.",
                    "::llvm::SmallVector<int64_t>", "getGrowingDims", (ins), "", [{ return {}; }]>,
    InterfaceMethod<"The dimension of each tensor that is divided into parts, if any.",
                    "::llvm::SmallVector<int64_t>", "getShrinkingDims", (ins), "", [{ return {}; }]>,
    InterfaceMethod<"Whether each rank gets what one other rank has, as where parts go around a ring.", "bool",
                    "isPermutation", (ins), "", [{ return false; }]>];
}

#endif // MESHWRIGHT_DIST_INTERFACES
