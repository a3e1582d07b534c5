//===- InterpreterInterfaces.td - what the interpreter asks of an op -------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Both interfaces are attached from outside (external models), so that the
// dialects do not depend on the interpreter. See include/meshwright/Interpreter.h
// for how to give a new op its meaning.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_INTERPRETER_INTERFACES
#define MESHWRIGHT_INTERPRETER_INTERFACES

include "mlir/IR/OpBase.td"

def InterpretableOpInterface : OpInterface<"InterpretableOpInterface"> {
  let description = [{
    What the op computes, on one rank. Arithmetic is in f64; the interpreter
    rounds each result to its element type afterwards where the run asks for it,
    and checks its shape. On failure the model has emitted an error.
  }];
  let cppNamespace = "::meshwright::interp";
  let methods = [InterfaceMethod<
      "Computes one tensor per result from one per operand.",
      "::llvm::LogicalResult", "interpret",
      (ins "::llvm::ArrayRef<::meshwright::interp::Tensor>":$operands,
           "::llvm::SmallVectorImpl<::meshwright::interp::Tensor> &":$results,
           "::meshwright::interp::RankContext &":$context)>];
}

def InterpretableCollectiveOpInterface : OpInterface<"InterpretableCollectiveOpInterface"> {
  let description = [{
    An op in which several ranks take part. All ranks of its group meet at it;
    then it is computed once, for all of them.
  }];
  let cppNamespace = "::meshwright::interp";
  let methods = [
    InterfaceMethod<"The ranks taking part with `context.rank()`, in group order.",
                    "::llvm::FailureOr<::llvm::SmallVector<int64_t>>", "getGroup",
                    (ins "::meshwright::interp::RankContext &":$context)>,
    InterfaceMethod<"Computes the results of every member from the operands of every member.",
                    "::llvm::LogicalResult", "interpretCollective",
                    (ins "::llvm::ArrayRef<int64_t>":$group,
                         "::llvm::ArrayRef<::meshwright::interp::TensorList>":$operands,
                         "::llvm::MutableArrayRef<::meshwright::interp::TensorList>":$results,
                         "::meshwright::interp::RankContext &":$context)>];
}

#endif // MESHWRIGHT_INTERPRETER_INTERFACES
