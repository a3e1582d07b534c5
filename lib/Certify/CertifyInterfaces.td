//===- CertifyInterfaces.td - what the checker asks of an op ---------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// Attached from outside (external models), so that the dialects do not depend on the
// checker. See lib/Certify/Rule.h for how to give an op its rule.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_CERTIFY_INTERFACES
#define MESHWRIGHT_CERTIFY_INTERFACES

include "mlir/IR/OpBase.td"

def CertifiableOpInterface : OpInterface<"CertifiableOpInterface"> {
  let description = [{
    Which global value the op's result is a part of, given the same of its operands. The
    same rule runs over the global graph, as the program of one device, and over the
    program of a rank. A rule that cannot say so emits an error and fails.
  }];
  let cppNamespace = "::meshwright::certify";
  let methods = [InterfaceMethod<
      "Pushes one fact per result, from one per operand.",
      "::llvm::LogicalResult", "certify",
      (ins "::llvm::ArrayRef<::meshwright::certify::Fact>":$operands,
           "::llvm::SmallVectorImpl<::meshwright::certify::Fact> &":$results,
           "::meshwright::certify::Checker &":$checker)>,
    InterfaceMethod<
      "Whether the rule says what becomes of padding (Fact.h). Operands of others must have none.",
      "bool", "knowsPadding", (ins), "", "return false;">,
    InterfaceMethod<
      "Whether the rule says what becomes of pieces, terms and chunks (Parts.h). Operands of others must be none.",
      "bool", "knowsParts", (ins), "", "return false;">];
}

#endif // MESHWRIGHT_CERTIFY_INTERFACES
