//===- TrainOpBase.td - what the ops of floor 1 are made of ----------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TRAIN_OP_BASE
#define MESHWRIGHT_TRAIN_OP_BASE

include "Train/TrainDialect.td"
include "Train/TrainInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/CallInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Train_Float : AnyTypeOf<[F32, BF16, F16, F64, F8E4M3FN, F8E5M2], "float">;
def Train_Tensor : StaticShapeTensorOf<[Train_Float]>;
def Train_Ids : StaticShapeTensorOf<[I32]>;
def Train_Any : StaticShapeTensorOf<[Train_Float, I32, I8, I1]>;
def Train_Scalar : And<[Train_Tensor.predicate, CPred<"::llvm::cast<::mlir::RankedTensorType>($_self).getRank() == 0">]>;
def Train_ScalarTensor : Type<Train_Scalar, "scalar float tensor", "::mlir::RankedTensorType">;

class Train_Op<string mnemonic, list<Trait> traits = []> : Op<Train_Dialect, mnemonic, traits>;

/// A pure op on tensors with a sharding rule. Most state the rule as text, from
/// which result types are inferred and operand shapes are checked.
class Train_TensorOp<string mnemonic, string rule, list<Trait> traits = [],
                     list<Trait> cost = [CostOpInterface], string compatible = "equalButEncoding">
    : Train_Op<mnemonic, !listconcat([Pure, DeclareOpInterfaceMethods<ShardingRuleOpInterface>],
                                     cost, traits)> {
  string einsum = rule;
  /// Declarations of one op's own.
  code declarations = "";
  let extraClassDeclaration = [{
    static ::llvm::StringRef einsumText() { return "}] # rule # [{"; }
    /// A sharding in the type is floor 2's business, checked there.
    static bool isCompatibleReturnTypes(::mlir::TypeRange inferred, ::mlir::TypeRange actual) {
      return }] # compatible # [{(inferred, actual);
    }
  }] # declarations;
}
defvar OwnFlops = [DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>];

/// ... whose rule is the text alone; result element types follow operand 0.
class Train_EinsumOp<string mnemonic, string rule, list<Trait> traits = [],
                     list<Trait> cost = [CostOpInterface], string compatible = "equalButEncoding">
    : Train_TensorOp<mnemonic, rule, !listconcat(traits, [InferTypeOpAdaptor]), cost, compatible> {
  let extraClassDefinition = [{
    ::meshwright::ShardingRule $cppClass::getShardingRule() {
      return ruleOf(getOperation(), "}] # einsum # [{");
    }
    ::mlir::LogicalResult $cppClass::inferReturnTypes(
        ::mlir::MLIRContext *context, std::optional<::mlir::Location> location, Adaptor adaptor,
        ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      return inferFromRule("}] # mnemonic # [{", "}] # einsum # [{", location,
                           adaptor.getOperands().getTypes(), types);
    }
  }];
}

#endif // MESHWRIGHT_TRAIN_OP_BASE
