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
    The training graph of a transformer, in terms of its layers. Values are
    tensors of static shape, global (floor 1) or local to one device (after
    partitioning: same ops, smaller shapes). Parameters are symbols; a layer that
    repeats is one function that `train.repeat` calls once per layer.
  }];
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::func::FuncDialect"];
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    /// Of a `train.repeat` and the function that it calls: its RoleAttr.
    static constexpr ::llvm::StringLiteral roleAttr = "train.role";
    /// Of a `train.repeat` of layers, where a pipeline splits them into chunks: the chunk, an i64.
    static constexpr ::llvm::StringLiteral chunkAttr = "train.chunk";
  }];
}

class Train_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Train_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def Train_InitAttr : Train_Attr<"Init", "init"> {
  let summary = "The initial value of a variable";
  let description = [{
    `#train.init<"normal", 2.0e-02 : f64>`: mean 0 and that standard deviation;
    `#train.init<"uniform", 0.125 : f64>`: uniform from minus that bound to below it;
    `#train.init<"constant", 1.0 : f64>`: that value everywhere;
    `#train.init<"row_norms", 1.0 : f64>`: the norms of the rows of the weight that an adapter's
    magnitudes are of, as this begins.
  }];
  let parameters = (ins StringRefParameter<"normal, uniform, constant or row_norms">:$kind, "::mlir::FloatAttr":$value);
  let assemblyFormat = "`<` $kind `,` $value `>`";
  let genVerifyDecl = 1;
}

def Train_StorageAttr : Train_Attr<"Storage", "storage"> {
  let summary = "The location of a variable in a safetensors file";
  let description = [{
    `#train.storage<"transformer.h.{layer}.attn.c_attn.weight", transpose = true,
    dim = 1, offset = 0, full = 2304>`: of the file's tensor take, along its
    dimension `dim` (of size `full`), the variable's rows from `offset`; then, if
    `transpose`, swap the last two dimensions. `full = 0`: the whole tensor.
    With `period`, the rows that count from `offset` are those of `runs`, triples of
    begin, count and step, then the same ones `period` rows further on, and so on:
    `period = 24, runs = [0, 4, 2, 1, 4, 2]` takes of each 24 rows the first 8, those with
    even numbers first.
    `{layer}` is the layer's number in a stacked variable; `{layer+6}` where the
    stack begins with the model's layer 6. A file may lack the tensor of an `optional`
    one, whose variable then is zeros.
  }];
  let parameters = (ins StringRefParameter<"tensor name">:$tensor,
                        DefaultValuedParameter<"bool", "false">:$transpose,
                        DefaultValuedParameter<"int64_t", "0">:$dim,
                        DefaultValuedParameter<"int64_t", "0">:$offset,
                        DefaultValuedParameter<"int64_t", "0">:$full,
                        DefaultValuedParameter<"int64_t", "0">:$period,
                        OptionalParameter<"::mlir::DenseI64ArrayAttr">:$runs,
                        DefaultValuedParameter<"bool", "false">:$optional);
  let assemblyFormat = [{
    `<` $tensor (`,` struct($transpose, $dim, $offset, $full, $period, $runs, $optional)^)? `>`
  }];
  let genVerifyDecl = 1;
}

def Train_AttentionSpec : AttrParameter<"::meshwright::train::AttentionSpec", "what is no operand"> {
  let cppAccessorType = "const ::meshwright::train::AttentionSpec &";
}
def Train_AttentionAttr : Train_Attr<"Attention", "attention"> {
  let summary = "What a call of attention computes, beside its operands";
  let description = [{
    `#train.attention<scale 0.125 causal window 512>`: the attribute of `train.attention`, which says what the
    fields mean, of its gradient, and of the calls that both become. Fields with their default are not
    printed; Attention.h lists all.
  }];
  let parameters = (ins Train_AttentionSpec:$value);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    const AttentionSpec *operator->() const { return &getValue(); }
  }];
}

def Train_ReduceKind : I32EnumAttr<"ReduceKind", "reduction", [
    I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Max", 1, "max">]> {
  let cppNamespace = "::meshwright::train";
  let genSpecializedAttr = 0;
}
def Train_ReduceKindAttr : EnumAttr<Train_Dialect, Train_ReduceKind, "reduction"> {
  let summary = "The kind of a reduction";
  let description = [{ `sum` or `max`, element by element. }];
  let assemblyFormat = "`` $value"; // ops put the space before it
}

def Train_Role : I32EnumAttr<"Role", "what a repetition does in a step", [
    I32EnumAttrCase<"Forward", 0, "forward">, I32EnumAttrCase<"Backward", 1, "backward">,
    I32EnumAttrCase<"Weight", 2, "weight">, I32EnumAttrCase<"Update", 3, "update">,
    I32EnumAttrCase<"Microbatch", 4, "microbatch">, I32EnumAttrCase<"Round", 5, "round">,
    I32EnumAttrCase<"Count", 6, "count">, I32EnumAttrCase<"Loss", 7, "loss">]> {
  let cppNamespace = "::meshwright::train";
  let genSpecializedAttr = 0;
}
def Train_RoleAttr : EnumAttr<Train_Dialect, Train_Role, "role"> {
  let summary = "The role of a repeat, or of the function that it calls, in a step";
  let description = [{
    `#train.role<forward>` or `backward` of layers; `weight`: the part of a backward that computes
    only weight gradients; `update` of parameters; `microbatch`: everything for one microbatch; `round`: an
    all-to-all round of experts inside a layer; `count`: the counting pass of one microbatch
    (`train-count-batch`); `loss`: the logits of a chunk of tokens, their loss and, in
    training, their gradients.
    Passes read it from the attribute `train.role`. Loops that floor 3
    adds have no role. If several pipeline chunks read a parameter, the `train.add` of their sums of
    its gradient is an `update` too.
  }];
  let assemblyFormat = "`<` $value `>`";
}

#endif // MESHWRIGHT_TRAIN_DIALECT
