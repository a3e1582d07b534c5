//===- ExecInterfaces.td - what is asked of a call to a communicator --------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_EXEC_INTERFACES
#define MESHWRIGHT_EXEC_INTERFACES

include "mlir/IR/OpBase.td"

def MemoryCollectiveOpInterface : OpInterface<"MemoryCollectiveOpInterface"> {
  let description = [{
    A call of the runtime's function "mw_" and the op's name, among the ranks that
    differ only along some mesh axes. An optional value is an argument of the functions
    that take it.
  }];
  let cppNamespace = "::meshwright::exec";
  let methods = [
    InterfaceMethod<"The mesh axes.", "::mlir::ArrayAttr", "getAxes">,
    InterfaceMethod<"Memory that is sent; empty where nothing is.", "::mlir::SmallVector<::mlir::Value>",
                    "getSources", (ins), "", [{
      return ::llvm::to_vector(::llvm::map_range(
          $_op.getODSOperands(0), [](::mlir::Value value) { return value; }));
    }]>,
    InterfaceMethod<"Memory that receives; empty where none does.", "::mlir::SmallVector<::mlir::Value>",
                    "getTargets", (ins), "", [{
      return ::llvm::to_vector(::llvm::map_range(
          $_op.getODSOperands(1), [](::mlir::Value value) { return value; }));
    }]>,
    InterfaceMethod<"The number of parts of the larger of source and target, as the call counts them.",
                    "int64_t", "getParts", (ins "int64_t":$members), "", [{ return 1; }]>,
    InterfaceMethod<"Whether a call takes several tensors.", "bool", "isBucket", (ins), "",
                    [{ return false; }]>,
    InterfaceMethod<"Sum or maximum.", "::std::optional<::meshwright::train::ReduceKind>",
                    "getReductionKind", (ins), "", [{ return ::std::nullopt; }]>,
    InterfaceMethod<"The rank in the group of the root, or of the peer of a message.",
                    "::std::optional<int64_t>", "getRootOrPeer", (ins), "", [{ return ::std::nullopt; }]>,
    InterfaceMethod<"Which ranks send to which, as numbers in the order of the runtime's function.",
                    "::llvm::SmallVector<int64_t>", "getTable", (ins), "", [{ return {}; }]>,
    InterfaceMethod<"Whether each rank gets what one other rank has, as where parts go around a ring.", "bool",
                    "isPermutation", (ins), "", [{ return false; }]>,
    InterfaceMethod<"Scratch memory: nothing if the call never takes any, null if this call needs none.",
                    "::std::optional<::mlir::Value>", "getScratch", (ins), "",
                    [{ return ::std::nullopt; }]>,
    InterfaceMethod<"Messages of different channels do not wait for each other, nor for collectives, of channel 0.", "int64_t",
                    "getMessageChannel", (ins), "", [{ return 0; }]>];
}

#endif // MESHWRIGHT_EXEC_INTERFACES
