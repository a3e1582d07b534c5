//===- TrainDialect.td - floor 1 --------------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TRAIN_DIALECT
#define MESHWRIGHT_TRAIN_DIALECT

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Train_Dialect : Dialect {
  let name = "train";
  let cppNamespace = "::meshwright::train";
  let summary = "Floor 1: what is computed, on global tensors";
  let description = [{
    A transformer's training graph at the level a person draws it. Values are
    static-shaped tensors, whole (floor 1) or one device's part of them (after
    partitioning: same ops, smaller shapes). Parameters are symbols; a layer that
    repeats is one function that `train.repeat` calls once per layer.
  }];
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::func::FuncDialect"];
  let extraClassDeclaration = [{
    /// Of the module: the first layers of the chunks of a pipeline after the first.
    static constexpr ::llvm::StringLiteral cutsAttr = "train.cuts";
  }];
}

class Train_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Train_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def Train_InitAttr : Train_Attr<"Init", "init"> {
  let summary = "How a variable starts when no file gives it";
  let description = [{
    `#train.init<"normal", 2.0e-02 : f64>`: mean 0 and that standard deviation;
    `#train.init<"constant", 1.0 : f64>`: that value everywhere.
  }];
  let parameters = (ins StringRefParameter<"normal or constant">:$kind, "::mlir::FloatAttr":$value);
  let assemblyFormat = "`<` $kind `,` $value `>`";
  let genVerifyDecl = 1;
}

def Train_StorageAttr : Train_Attr<"Storage", "storage"> {
  let summary = "Where a variable lives in a safetensors file";
  let description = [{
    `#train.storage<"transformer.h.{layer}.attn.c_attn.weight", transpose = true,
    dim = 1, begin = 0, full = 2304>`: of the file's tensor take, along its
    dimension `dim` (of size `full`), the variable's rows from `begin`; then, if
    `transpose`, swap the last two dimensions. `full = 0`: the whole tensor.
    `{layer}` is the layer's number in a stacked variable; `{layer+6}` where the
    stack begins with the model's layer 6.
  }];
  let parameters = (ins StringRefParameter<"tensor name">:$tensor,
                        DefaultValuedParameter<"bool", "false">:$transpose,
                        DefaultValuedParameter<"int64_t", "0">:$dim,
                        DefaultValuedParameter<"int64_t", "0">:$begin,
                        DefaultValuedParameter<"int64_t", "0">:$full);
  let assemblyFormat = "`<` $tensor (`,` struct($transpose, $dim, $begin, $full)^)? `>`";
}

def Train_ReduceKind : I32EnumAttr<"ReduceKind", "reduction", [
    I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Max", 1, "max">]> {
  let cppNamespace = "::meshwright::train";
  let genSpecializedAttr = 0;
}
def Train_ReduceKindAttr : EnumAttr<Train_Dialect, Train_ReduceKind, "reduction"> {
  let summary = "How values are put together";
  let description = [{ `sum` or `max`, element by element. }];
  let assemblyFormat = "`` $value"; // ops put the space before it
}

#endif // MESHWRIGHT_TRAIN_DIALECT
