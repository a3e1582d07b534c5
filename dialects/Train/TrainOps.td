//===- TrainOps.td - the ops of floor 1 -------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TRAIN_OPS
#define MESHWRIGHT_TRAIN_OPS

include "Train/TrainDialect.td"
include "Train/TrainInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/CallInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Train_Float : AnyTypeOf<[F32, BF16, F16, F64], "float">;
def Train_Tensor : StaticShapeTensorOf<[Train_Float]>;
def Train_Ids : StaticShapeTensorOf<[I32]>;
def Train_Any : StaticShapeTensorOf<[Train_Float, I32, I1]>;
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
  let extraClassDeclaration = [{
    static ::llvm::StringRef einsumText() { return "}] # rule # [{"; }
    /// A sharding in the type is floor 2's business, checked there.
    static bool isCompatibleReturnTypes(::mlir::TypeRange inferred, ::mlir::TypeRange actual) {
      return }] # compatible # [{(inferred, actual);
    }
  }];
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

//===----------------------------------------------------------------------===//
// Variables and structure
//===----------------------------------------------------------------------===//

def Train_VariableOp : Train_Op<"variable", [Symbol]> {
  let summary = "State that outlives a step";
  let description = [{
    A parameter, or an optimizer state of one (`of`). `stacked` variables hold one
    slice a layer along their first dimension. The type has a static shape. Read with
    `train.get`, written with `train.set`. `role` says which state it is
    (`momentum`, `variance`) exactly when `of` names a parameter. The storage name of
    a stacked variable holds `{layer}`.

    ```mlir
    train.variable @h.ln_1.weight : tensor<12x768xf32> stacked
        init #train.init<"constant", 1.0 : f64> storage #train.storage<"transformer.h.{layer}.ln_1.weight">
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<AnyRankedTensor>:$type, UnitAttr:$stacked,
                       Train_InitAttr:$init, OptionalAttr<Train_StorageAttr>:$storage,
                       OptionalAttr<FlatSymbolRefAttr>:$of, OptionalAttr<StrAttr>:$role,
                       OptionalAttr<StrAttr>:$sym_visibility);
  let assemblyFormat = [{
    $sym_name `:` $type (`stacked` $stacked^)? `init` $init (`storage` $storage^)?
    (`state` $role^ `of` $of)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    bool isParameter() { return !getOf(); }
    ::mlir::RankedTensorType getTensorType() {
      return ::llvm::cast<::mlir::RankedTensorType>(getType());
    }
  }];
}

def Train_GetOp : Train_Op<"get", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "The value of a variable";
  let description = [{
    Reads what the last `train.set` in program order wrote, or the step's initial
    value. The result has the variable's type.
  }];
  let arguments = (ins FlatSymbolRefAttr:$variable);
  let results = (outs AnyRankedTensor:$value);
  let assemblyFormat = "$variable attr-dict `:` type($value)";
}

def Train_SetOp : Train_Op<"set", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Writes a variable";
  let description = [{
    The variable has `value`, of its type, from here on and in the next step.
  }];
  let arguments = (ins FlatSymbolRefAttr:$variable, AnyRankedTensor:$value);
  let assemblyFormat = "$variable `,` $value attr-dict `:` type($value)";
}

def Train_RepeatOp : Train_Op<"repeat", [AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Calls one function several times in a row";
  let description = [{
    Calls `callee` `count` times (JAX calls this a scan). The callee's arguments
    are, in order: the iteration's number (`tensor<i32>`, only with `indexed`),
    the carried values, this iteration's slice of each `each` operand along its
    first dimension (of size `count`), and the shared operands. Its results are
    the next carried values (same types), then values that are stacked along a
    new first dimension. With `reverse` the iterations run from `count`-1 to 0.
    Results of the op: the last carried values, then the stacks.

    ```mlir
    %y, %kept = train.repeat @layer x 12 carry(%x) each(%w) shared(%cos)
        : (tensor<4x64xf32>, tensor<12x64x64xf32>, tensor<64xf32>) -> (tensor<4x64xf32>, tensor<12x4x64xf32>)
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, I64Attr:$count, UnitAttr:$reverse,
                       UnitAttr:$indexed, Variadic<AnyRankedTensor>:$carry,
                       Variadic<AnyRankedTensor>:$each, Variadic<AnyRankedTensor>:$shared);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $callee `x` $count (`reverse` $reverse^)? (`indexed` $indexed^)?
    `carry` `(` $carry `)` `each` `(` $each `)` `shared` `(` $shared `)` attr-dict
    `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// The results that are carried values, and those that are stacks.
    ::mlir::ResultRange getCarried() { return getResults().take_front(getCarry().size()); }
    ::mlir::ResultRange getStacks() { return getResults().drop_front(getCarry().size()); }
    /// The callee's argument for operand `index` of this op.
    unsigned getCalleeArgument(unsigned index) { return index + (getIndexed() ? 1 : 0); }
    ::mlir::func::FuncOp lookupCallee(::mlir::SymbolTableCollection &symbols);
  }];
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

def Train_LinearOp : Train_EinsumOp<"linear", "~... i, ~o i -> ... o", [
    ContractionOpInterface, DeclareOpInterfaceMethods<VJPOpInterface>], OwnFlops> {
  let summary = "y = x W^T";
  let description = [{
    x: [..., in], weight: [out, in] (as torch.nn.Linear stores it), result:
    [..., out]; element types as x. The sum is taken in f32 at least. A bias is a
    `train.add` after it.
  }];
  let arguments = (ins Train_Tensor:$x, Train_Tensor:$weight);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = "$x `,` $weight attr-dict `:` functional-type(operands, results)";
}

def Train_ContractOp : Train_TensorOp<"contract", "", [ContractionOpInterface, AccumulatingOpInterface, SumOpInterface,
    InferTypeOpAdaptor, DeclareOpInterfaceMethods<VJPOpInterface>], OwnFlops, "equalButFloats"> {
  let summary = "A two-operand einsum: sums of products";
  let description = [{
    `rule` is the einsum, e.g. `"b s o, o i -> b s i"`: plain factor names, no
    factor twice in one tensor. `init` (same type as the result) is added to the
    sum; formed after partitioning, where it means accumulation in place. The sum
    is taken in f32 at least, then rounded to the result's element type, which need
    not be that of the operands.
  }];
  let arguments = (ins StrAttr:$rule, Train_Tensor:$lhs, Train_Tensor:$rhs, Optional<Train_Tensor>:$init);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = [{
    $rule $lhs `,` $rhs (`init` $init^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Embedding
//===----------------------------------------------------------------------===//

def Train_EmbeddingOp : Train_EinsumOp<"embedding", "~v d, @v ... -> ... d", [
    ZeroPreservingOpInterface, DeclareOpInterfaceMethods<SizedOpInterface>,
    DeclareOpInterfaceMethods<VJPOpInterface>,
    DeclareOpInterfaceMethods<KernelOpInterface, ["movesElements"]>]> {
  let summary = "Rows of a table";
  let description = [{
    table: [rows, d], ids: [...] i32, result: [..., d]; an id outside [0, rows)
    gives zeros. The row `padding` gets no gradient from here
    (torch.nn.Embedding's padding_idx); -1: every row does.
  }];
  let arguments = (ins Train_Tensor:$table, Train_Ids:$ids, DefaultValuedAttr<I64Attr, "-1">:$padding);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$table `,` $ids attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Train_EmbeddingGradOp : Train_TensorOp<"embedding_grad", "~... d, @v ... -> v d", [
    AccumulatingOpInterface, SumOpInterface, InferTypeOpAdaptor, DeclareOpInterfaceMethods<SizedOpInterface>,
    DeclareOpInterfaceMethods<KernelOpInterface>], [CostOpInterface], "equalButFloats"> {
  let summary = "Gradient of the table: rows of dy added where ids say";
  let description = [{
    dy: [..., d], ids: [...], result: [rows, d], zero where no id points; sums in
    the order of the ids, in f32 at least. Ids outside [0, rows) add nothing. `init`
    is added to the result, see `train.contract`, and so is the result's element type.
  }];
  let arguments = (ins Train_Tensor:$dy, Train_Ids:$ids, I64Attr:$rows, Optional<Train_Tensor>:$init);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = [{
    $dy `,` $ids (`init` $init^)? `rows` $rows attr-dict `:` functional-type(operands, results)
  }];
}

def Train_ShiftIdsOp : Train_EinsumOp<"shift_ids", "..., -> ...", [
    ZeroPreservingOpInterface, DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "Ids counted from another beginning";
  let description = [{
    ids - begin; ids: any shape, begin: a scalar, both i32. Where a table is cut,
    ids that point into a device's part become its local rows, all others lie
    outside [0, rows).
  }];
  let arguments = (ins Train_Ids:$ids, Train_Ids:$begin);
  let results = (outs Train_Ids:$result);
  let assemblyFormat = "$ids `,` $begin attr-dict `:` functional-type(operands, results)";
}

def Train_IgnoreIdOp : Train_EinsumOp<"ignore_id", "... -> ...", [
    ZeroPreservingOpInterface, DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "-1 in place of one id";
  let description = [{ ids of any shape, i32; those equal to `id` become -1, which points nowhere. }];
  let arguments = (ins Train_Ids:$ids, I64Attr:$id);
  let results = (outs Train_Ids:$result);
  let assemblyFormat = "$ids `id` $id attr-dict `:` functional-type(operands, results)";
}

//===----------------------------------------------------------------------===//
// Normalization
//===----------------------------------------------------------------------===//

def Train_LayerNormOp : Train_EinsumOp<"layer_norm", "... d!, d!, d! -> ... d!", [
    DeclareOpInterfaceMethods<VJPOpInterface>, DeclareOpInterfaceMethods<SplittableOpInterface>,
    DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "LayerNorm over the last dimension";
  let description = [{
    y = (x - mean) / sqrt(var + eps) * weight + bias, var the biased variance
    (Ba et al. 2016). x: [..., d], weight, bias: [d].
  }];
  let arguments = (ins Train_Tensor:$x, Train_Tensor:$weight, Train_Tensor:$bias, F64Attr:$eps);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = "$x `,` $weight `,` $bias `eps` $eps attr-dict `:` functional-type(operands, results)";
}

def Train_LayerNormGradOp : Train_EinsumOp<"layer_norm_grad", "~... d!, ... d!, d! -> ... d!, d!, d!", [
    DeclareOpInterfaceMethods<SplittableOpInterface>, DeclareOpInterfaceMethods<KernelOpInterface>,
    DeclareOpInterfaceMethods<SumOpInterface, ["isSum"]>], [CostOpInterface], "equalButFloats"> {
  let summary = "Gradients of LayerNorm's input, weight and bias";
  let description = [{
    From dy and x, both [..., d]: dx like x, dweight and dbias: [d], sums of any
    float type. Mean and variance are computed again: the row is at hand anyway.
  }];
  let arguments = (ins Train_Tensor:$dy, Train_Tensor:$x, Train_Tensor:$weight, F64Attr:$eps);
  let results = (outs Train_Tensor:$dx, Train_Tensor:$dweight, Train_Tensor:$dbias);
  let assemblyFormat = "$dy `,` $x `,` $weight `eps` $eps attr-dict `:` functional-type(operands, results)";
}

def Train_RmsNormOp : Train_EinsumOp<"rms_norm", "... d!, d! -> ... d!", [
    ZeroPreservingOpInterface, DeclareOpInterfaceMethods<VJPOpInterface>, DeclareOpInterfaceMethods<SplittableOpInterface>,
    DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "RMSNorm over the last dimension";
  let description = [{ y = x / sqrt(mean(x^2) + eps) * weight (Zhang and Sennrich 2019). x: [..., d], weight: [d]. }];
  let arguments = (ins Train_Tensor:$x, Train_Tensor:$weight, F64Attr:$eps);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = "$x `,` $weight `eps` $eps attr-dict `:` functional-type(operands, results)";
}

def Train_RmsNormGradOp : Train_EinsumOp<"rms_norm_grad", "~... d!, ... d!, d! -> ... d!, d!", [
    DeclareOpInterfaceMethods<SplittableOpInterface>, DeclareOpInterfaceMethods<KernelOpInterface>,
    DeclareOpInterfaceMethods<SumOpInterface, ["isSum"]>], [CostOpInterface], "equalButFloats"> {
  let summary = "Gradients of RMSNorm's input and weight";
  let description = [{
    From dy and x, both [..., d]: dx like x, dweight: [d], a sum of any float type.
    The row's mean square is computed again.
  }];
  let arguments = (ins Train_Tensor:$dy, Train_Tensor:$x, Train_Tensor:$weight, F64Attr:$eps);
  let results = (outs Train_Tensor:$dx, Train_Tensor:$dweight);
  let assemblyFormat = "$dy `,` $x `,` $weight `eps` $eps attr-dict `:` functional-type(operands, results)";
}

//===----------------------------------------------------------------------===//
// Rotary positions
//===----------------------------------------------------------------------===//

def Train_RopeTableOp : Train_TensorOp<"rope_table", " -> s f!, s f!", [
    DeclareOpInterfaceMethods<KernelOpInterface>, DeclareOpInterfaceMethods<IndexedOpInterface>,
    DeclareOpInterfaceMethods<PrecisionOpInterface, ["getResultPrecision"]>]> {
  let summary = "Cosines and sines of rotary position angles";
  let description = [{
    angle[s, f] = s * frequencies[f]; results [positions, frequencies], scaled by
    `scale` (1 but for some long-context variants). Frequencies are the
    model's, scaling for long context already applied (Su et al. 2021). Angles
    and tables are computed in the result's element type from frequencies that
    are not rounded before: in f64 nothing passes through f32, which is what the
    float64 reference runs do (their losses agree to the last bit). `begin`
    (tensor<i32>) is the position of the first row, 0 without it: the tables of a
    part of the positions.
  }];
  let arguments = (ins Optional<Train_Ids>:$begin, DenseF64ArrayAttr:$frequencies,
                       DefaultValuedAttr<F64Attr, "1.0">:$scale);
  let results = (outs Train_Tensor:$cos, Train_Tensor:$sin);
  // A dense array's own printing keeps six digits only.
  let assemblyFormat = "custom<Doubles>($frequencies) (`begin` $begin^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Train_RopeOp : Train_EinsumOp<"rope", "~b s h d!, s f!, s f! -> b s h d!", [
    DeclareOpInterfaceMethods<VJPOpInterface>, DeclareOpInterfaceMethods<KernelOpInterface>,
    DeclareOpInterfaceMethods<PrecisionOpInterface, ["getOperandPrecision"]>]> {
  let summary = "Rotary position embedding, half-split layout";
  let description = [{
    x: [b, s, heads, d], cos, sin: [s, d/2]. With x = (a, c) split in halves along
    d: y = (a cos - c sin, c cos + a sin). `inverse` turns the other way, which is
    also the gradient. The tables keep f32 whatever x is: rounded to bf16, positions
    that are close would turn alike.
  }];
  let arguments = (ins Train_Tensor:$x, Train_Tensor:$cos, Train_Tensor:$sin, UnitAttr:$inverse);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = "(`inverse` $inverse^)? $x `,` $cos `,` $sin attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

def Train_AttentionOp : Train_TensorOp<"attention", "b s! (g r) d!, b t! g d!, b t! g e! -> b s! (g r) e!, b (g r) s!", [
    InferTypeOpAdaptor, AttrSizedOperandSegments, DeclareOpInterfaceMethods<RandomOpInterface>,
    DeclareOpInterfaceMethods<IndexedOpInterface, ["keepLogicalSizes"]>,
    DeclareOpInterfaceMethods<ZeroPreservingOpInterface, ["preservesZero"]>,
    DeclareOpInterfaceMethods<VJPOpInterface>], OwnFlops> {
  let summary = "Scaled dot-product attention";
  let description = [{
    out = dropout(softmax(scale * q k^T + mask)) v per head. q: [b, s, heads, d],
    k, v: [b, t, kv_heads, d]; query head h reads key head h / (heads / kv_heads)
    (GQA, Ainslie et al. 2023). `causal`: key position <= query position.
    `window` w > 0: also query - key < w (Mistral). `lse`: [b, heads, s], the
    logarithm of the softmax's denominator, kept for the gradient in f32 at least;
    so are scores, softmax and sums, whatever the element type of q. With
    `dropout` > 0: `ids` [b] numbers each sequence in the step's batch and `key`
    [2] is the step's random key; the mask is a function of (key, stream,
    sequence, head, query, key position). Scores are never stored (Dao et al.
    2022).

    The head is counted in the logical global tensor. Where q holds a part of its
    heads or is padded, `heads` is their logical number (0: as many as q has) and
    `head_begin` (tensor<i32>) the first one's number.
  }];
  let arguments = (ins Train_Tensor:$q, Train_Tensor:$k, Train_Tensor:$v, Optional<Train_Ids>:$ids,
                       Optional<Train_Ids>:$key, Optional<Train_Ids>:$head_begin,
                       F64Attr:$scale, UnitAttr:$causal,
                       DefaultValuedAttr<I64Attr, "0">:$window, DefaultValuedAttr<F64Attr, "0.0">:$dropout,
                       DefaultValuedAttr<I32Attr, "0">:$stream, DefaultValuedAttr<I64Attr, "0">:$heads);
  let results = (outs Train_Tensor:$out, Train_Tensor:$lse);
  let assemblyFormat = [{
    $q `,` $k `,` $v (`dropout` `(` $ids^ `,` $key `)`)? (`head_begin` $head_begin^)? `scale` $scale (`causal` $causal^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Train_AttentionGradOp : Train_TensorOp<"attention_grad",
    "~b s! (g r) e!, b s! (g r) d!, b t! g d!, b t! g e!, b s! (g r) e!, b (g r) s! -> b s! (g r) d!, b t! g d!, b t! g e!", [
    InferTypeOpAdaptor, AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<IndexedOpInterface, ["keepLogicalSizes"]>], OwnFlops> {
  let summary = "Gradients of attention's q, k and v";
  let description = [{
    dout, out: [b, s, heads, e], the other operands and the attributes as
    `train.attention` had them, lse as it gave it; dq, dk, dv like q, k, v. Scores
    are computed again, tile by tile, from q, k and lse (Dao et al. 2022).
  }];
  let arguments = (ins Train_Tensor:$dout, Train_Tensor:$q, Train_Tensor:$k, Train_Tensor:$v,
                       Train_Tensor:$out, Train_Tensor:$lse, Optional<Train_Ids>:$ids,
                       Optional<Train_Ids>:$key, Optional<Train_Ids>:$head_begin,
                       F64Attr:$scale, UnitAttr:$causal,
                       DefaultValuedAttr<I64Attr, "0">:$window, DefaultValuedAttr<F64Attr, "0.0">:$dropout,
                       DefaultValuedAttr<I32Attr, "0">:$stream, DefaultValuedAttr<I64Attr, "0">:$heads);
  let results = (outs Train_Tensor:$dq, Train_Tensor:$dk, Train_Tensor:$dv);
  let assemblyFormat = [{
    $dout `,` $q `,` $k `,` $v `,` $out `,` $lse (`dropout` `(` $ids^ `,` $key `)`)? (`head_begin` $head_begin^)? `scale` $scale (`causal` $causal^)?
    attr-dict `:` functional-type(operands, results)
  }];
}

//===----------------------------------------------------------------------===//
// Element-wise
//===----------------------------------------------------------------------===//

class Train_BinaryOp<string mnemonic, string linear, string additive, list<Trait> traits = []>
    : Train_TensorOp<mnemonic, "", !listconcat(traits, [InferTypeOpAdaptor,
        DeclareOpInterfaceMethods<VJPOpInterface>, DeclareOpInterfaceMethods<KernelOpInterface>])> {
  let arguments = (ins Train_Tensor:$lhs, Train_Tensor:$rhs);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
  let extraClassDefinition = [{
    ::meshwright::ShardingRule $cppClass::getShardingRule() {
      return elementwiseRuleOf(getOperation(), }] # linear # [{, }] # additive # [{);
    }
    ::mlir::LogicalResult $cppClass::inferReturnTypes(
        ::mlir::MLIRContext *context, std::optional<::mlir::Location> location, Adaptor adaptor,
        ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      return inferBroadcast("}] # mnemonic # [{", location, adaptor.getLhs().getType(),
                            adaptor.getRhs().getType(), types);
    }
  }];
}

def Train_AddOp : Train_BinaryOp<"add", "false", "true"> {
  let summary = "Sum";
  let description = [{
    Element by element. rhs may have fewer dimensions than lhs, matched from the
    last (a bias [d], a position table [s, d]); sizes equal, never 1 against n;
    element types equal.
  }];
  let hasFolder = 1;
}

def Train_MulOp : Train_BinaryOp<"mul", "true", "false"> {
  let summary = "Product";
  let description = [{ Element by element; shapes as in `train.add`. }];
}

def Train_AccumulateOp : Train_TensorOp<"accumulate", "", [InferTypeOpAdaptor, DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "Adds a gradient to its accumulator";
  let description = [{
    accumulator + value, of one shape; the result has the accumulator's element
    type.
  }];
  let arguments = (ins Train_Tensor:$accumulator, Train_Tensor:$value);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$accumulator `,` $value attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Train_CastOp : Train_TensorOp<"cast", "", [DeclareOpInterfaceMethods<VJPOpInterface>,
    DeclareOpInterfaceMethods<KernelOpInterface, ["movesElements"]>]> {
  let summary = "Another float element type";
  let description = [{
    The same shape; each element rounded to the nearest number of the result's type,
    ties to even. A partial sum may pass: the sum is then completed in the type it
    was cast to. The gradient is cast back.
  }];
  let arguments = (ins Train_Tensor:$x);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Train_ScaleOp : Train_EinsumOp<"scale", "~... -> ...", [
    DeclareOpInterfaceMethods<VJPOpInterface>, DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "x times a constant";
  let description = [{ Any shape; `factor` is rounded to the element type. }];
  let arguments = (ins Train_Tensor:$x, F64Attr:$factor);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = "$x `by` $factor attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

class Train_ActivationOp<string mnemonic> : Train_EinsumOp<mnemonic, "... -> ...", [
    ZeroPreservingOpInterface, DeclareOpInterfaceMethods<VJPOpInterface>, DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let results = (outs Train_Tensor:$y);
}
class Train_ActivationGradOp<string mnemonic> : Train_EinsumOp<mnemonic, "~..., ... -> ...", [
    DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let results = (outs Train_Tensor:$dx);
}

def Train_GeluOp : Train_ActivationOp<"gelu"> {
  let summary = "Gaussian error linear unit";
  let description = [{
    x/2 (1 + erf(x/sqrt 2)), or with `tanh` its approximation
    x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) (Hendrycks and Gimpel 2016).
    Element by element, any shape.
  }];
  let arguments = (ins Train_Tensor:$x, UnitAttr:$tanh);
  let assemblyFormat = "(`tanh` $tanh^)? $x attr-dict `:` functional-type(operands, results)";
}
def Train_GeluGradOp : Train_ActivationGradOp<"gelu_grad"> {
  let summary = "dy times the derivative of gelu at x";
  let description = [{ dy, x and the result have one shape; `tanh` as in `train.gelu`. }];
  let arguments = (ins Train_Tensor:$dy, Train_Tensor:$x, UnitAttr:$tanh);
  let assemblyFormat = "(`tanh` $tanh^)? $dy `,` $x attr-dict `:` functional-type(operands, results)";
}
def Train_SiluOp : Train_ActivationOp<"silu"> {
  let summary = "x sigmoid(x)";
  let description = [{ Element by element, any shape; also called swish (Elfwing et al. 2017). }];
  let arguments = (ins Train_Tensor:$x);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
}
def Train_SiluGradOp : Train_ActivationGradOp<"silu_grad"> {
  let summary = "dy times the derivative of silu at x";
  let description = [{ dy, x and the result have one shape. }];
  let arguments = (ins Train_Tensor:$dy, Train_Tensor:$x);
  let assemblyFormat = "$dy `,` $x attr-dict `:` functional-type(operands, results)";
}
def Train_ReluOp : Train_ActivationOp<"relu"> {
  let summary = "max(x, 0)";
  let description = [{ Element by element, any shape. }];
  let arguments = (ins Train_Tensor:$x);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
}
def Train_ReluGradOp : Train_ActivationGradOp<"relu_grad"> {
  let summary = "dy where x > 0, else 0";
  let description = [{ dy, x and the result have one shape. The derivative at 0 is 0. }];
  let arguments = (ins Train_Tensor:$dy, Train_Tensor:$x);
  let assemblyFormat = "$dy `,` $x attr-dict `:` functional-type(operands, results)";
}

class Train_FunctionOp<string mnemonic> : Train_EinsumOp<mnemonic, "... -> ...", [
    DeclareOpInterfaceMethods<VJPOpInterface>, DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let results = (outs Train_Tensor:$y);
}
def Train_ExpOp : Train_FunctionOp<"exp"> {
  let summary = "e to the x";
  let description = [{ Element by element, any shape. }];
  let arguments = (ins Train_Tensor:$x);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
}
def Train_LogOp : Train_FunctionOp<"log"> {
  let summary = "Natural logarithm";
  let description = [{ Element by element, any shape; x is positive. }];
  let arguments = (ins Train_Tensor:$x);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
}
def Train_InverseRootOp : Train_FunctionOp<"inverse_root"> {
  let summary = "1 / sqrt(x + eps)";
  let description = [{ Element by element, any shape; x + eps is positive. }];
  let arguments = (ins Train_Tensor:$x, F64Attr:$eps);
  let assemblyFormat = "$x `eps` $eps attr-dict `:` functional-type(operands, results)";
}

def Train_DropoutOp : Train_TensorOp<"dropout", "", [InferTypeOpAdaptor,
    DeclareOpInterfaceMethods<RandomOpInterface>, DeclareOpInterfaceMethods<VJPOpInterface>, DeclareOpInterfaceMethods<KernelOpInterface>,
    DeclareOpInterfaceMethods<IndexedOpInterface, ["keepLogicalSizes"]>]> {
  let summary = "Zeroes elements at random and scales the rest by 1/(1-rate)";
  let description = [{
    x: [b, ...], ids: [b] numbers each sequence in the step's global batch, key:
    [2]. Element i of x, where i is the row-major index with ids[n] in place of n,
    is kept when Philox4x32-10 with counter (i low, i high, stream, 0) gives at
    least rate * 2^32 in its first word. Equal on every mesh and in every
    recomputation; its own gradient.

    The index is that of the logical global tensor. Where x is padded or a part of
    it, `sizes` are the logical sizes of the dimensions after the first, and
    `begins` (tensor<i32>) the indices at which the part begins in the dimensions
    `begin_dims`.
  }];
  let arguments = (ins Train_Tensor:$x, Train_Ids:$ids, Train_Ids:$key, Variadic<Train_Ids>:$begins,
                       F64Attr:$rate, I32Attr:$stream, OptionalAttr<DenseI64ArrayAttr>:$sizes,
                       OptionalAttr<DenseI64ArrayAttr>:$begin_dims);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = [{
    $x `,` $ids `,` $key (`begins` `(` $begins^ `)`)? `rate` $rate `stream` $stream (`sizes` $sizes^)?
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "::mlir::Value":$ids, "::mlir::Value":$key,
                                 "::mlir::FloatAttr":$rate, "::mlir::IntegerAttr":$stream)>];
  let extraClassDeclaration = [{
    static bool isCompatibleReturnTypes(::mlir::TypeRange inferred, ::mlir::TypeRange actual) {
      return equalButEncoding(inferred, actual);
    }
    /// The logical size of each dimension after the first.
    ::llvm::SmallVector<int64_t> getLogicalSizes();
    /// The index at which dimension `dim` begins, or null for 0.
    ::mlir::Value getBegin(int64_t dim);
  }];
}

def Train_MaskOp : Train_TensorOp<"mask", "", [InferTypeOpAdaptor, DeclareOpInterfaceMethods<VJPOpInterface>,
    DeclareOpInterfaceMethods<KernelOpInterface, ["movesElements"]>, DeclareOpInterfaceMethods<IndexedOpInterface>]> {
  let summary = "x where an index is below a limit, else a value";
  let description = [{
    y = x where the index along `dim` is less than `below`, else `value`; any shape
    with that dimension. The index is that of the logical global tensor: where x is
    a part of it, `begin` (tensor<i32>) is the index at which the part begins.
    Takes padding out before sums and maxima (`dist-pad`). Differentiable where
    `value` is 0.
  }];
  let arguments = (ins Train_Tensor:$x, Optional<Train_Ids>:$begin, I64Attr:$dim, I64Attr:$below,
                       DefaultValuedAttr<F64Attr, "0.0">:$value);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = [{
    $x (`begin` $begin^)? `dim` $dim `below` $below attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Train_FoldInOp : Train_Op<"fold_in", [Pure, InferTypeOpAdaptor,
    DeclareOpInterfaceMethods<ShardingRuleOpInterface>, DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "The random key of one iteration";
  let description = [{
    key: tensor<2xi32>, index: tensor<i32>; result: tensor<2xi32>, two words of
    Philox4x32-10 (Salmon et al. 2011) with counter (first + index, 0, 0xF01D, 1).
    `first` is the number of the iteration called 0: not 0 where one run of layers was
    cut into several, each with its own numbers.
  }];
  let arguments = (ins Train_Ids:$key, Train_Ids:$index, DefaultValuedAttr<I64Attr, "0">:$first);
  let results = (outs Train_Ids:$result);
  let assemblyFormat = "$key `,` $index (`from` $first^)? attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = [{
    static bool isCompatibleReturnTypes(::mlir::TypeRange inferred, ::mlir::TypeRange actual) {
      return equalButEncoding(inferred, actual);
    }
  }];
}

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

def Train_ReshapeOp : Train_TensorOp<"reshape", "", [DeclareOpInterfaceMethods<VJPOpInterface>]> {
  let summary = "Same elements in row-major order under another shape";
  let description = [{
    As [b, s, heads*d] to [b, s, heads, d] and back; as many elements in as out.
    Costs nothing.
  }];
  let arguments = (ins Train_Any:$x);
  let results = (outs Train_Any:$y);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Train_SliceOp : Train_TensorOp<"slice", "", [InferTypeOpAdaptor, DeclareOpInterfaceMethods<VJPOpInterface>,
    DeclareOpInterfaceMethods<SizedOpInterface>, DeclareOpInterfaceMethods<KernelOpInterface, ["movesElements"]>]> {
  let summary = "The first rows of a tensor";
  let description = [{
    x: [.., n, ..] to [.., rows, ..] along dimension `dim`, the first if it does not
    say, rows at most n: the positions a sequence uses, or a tensor without its
    padding. Refuses more rows than there are.
  }];
  let arguments = (ins Train_Any:$x, I64Attr:$rows, DefaultValuedAttr<I64Attr, "0">:$dim);
  let results = (outs Train_Any:$y);
  let assemblyFormat = "$x (`dim` $dim^)? `rows` $rows attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let extraClassDeclaration = [{
    static bool isCompatibleReturnTypes(::mlir::TypeRange inferred, ::mlir::TypeRange actual) {
      return equalButEncoding(inferred, actual);
    }
    /// Whether the result is the beginning of x in row-major order.
    bool isPrefix();
  }];
}

def Train_PadOp : Train_TensorOp<"pad", "", [InferTypeOpAdaptor, DeclareOpInterfaceMethods<SizedOpInterface>,
    DeclareOpInterfaceMethods<KernelOpInterface, ["movesElements"]>]> {
  let summary = "Rows of one value appended: with zeros the gradient of slice";
  let description = [{
    x: [.., n, ..] to [.., rows, ..] along dimension `dim`, the first if it does not
    say, rows at least n: x, then `value`, 0 if it does not say; i32 ids that point
    nowhere are -1. Refuses fewer rows.
  }];
  let arguments = (ins Train_Any:$x, I64Attr:$rows, DefaultValuedAttr<I64Attr, "0">:$dim,
                       DefaultValuedAttr<I64Attr, "0">:$value);
  let results = (outs Train_Any:$y);
  let assemblyFormat = "$x (`dim` $dim^)? `rows` $rows attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Train_DynamicSliceOp : Train_TensorOp<"dynamic_slice", "", [
    DeclareOpInterfaceMethods<KernelOpInterface, ["movesElements"]>]> {
  let summary = "A part of a tensor that begins at a place known at run time";
  let description = [{
    x: [.., n, ..] to y: [.., k, ..] along `dim`: the k from `begin`, a tensor<i32>
    of 0 to n - k, on. A begin outside this range is an error in the interpreter and
    undefined elsewhere. Made on floor 3 of a device's own part of a value.
  }];
  let arguments = (ins Train_Any:$x, 0DTensorOf<[I32]>:$begin, I64Attr:$dim);
  let results = (outs Train_Any:$y);
  let assemblyFormat = "$x `dim` $dim `at` $begin attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Train_TransposeBlocksOp : Train_EinsumOp<"transpose_blocks", "~a n k -> n a k", [
    DeclareOpInterfaceMethods<VJPOpInterface>,
    DeclareOpInterfaceMethods<KernelOpInterface, ["movesElements"]>]> {
  let summary = "Blocks of k elements transposed";
  let description = [{
    x: [a, n, k] to y: [n, a, k], y[j, i, :] = x[i, j, :]. On floor 3 it makes one
    piece of parts that lie inside rows, so that collectives can move them.
  }];
  let arguments = (ins Train_Any:$x);
  let results = (outs Train_Any:$y);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
}

def Train_ReduceOp : Train_TensorOp<"reduce", "", [InferTypeOpAdaptor, SumOpInterface,
    DeclareOpInterfaceMethods<VJPOpInterface>, DeclareOpInterfaceMethods<KernelOpInterface>],
    [CostOpInterface], "equalButFloats"> {
  let summary = "Sum or maximum over dimensions";
  let description = [{
    `dims`, ascending, disappear from the shape. Computed in f32 at least; the result
    may have another float type than x. Only `sum` is differentiable. Of cut
    dimensions a device has a partial sum or maximum.
  }];
  let arguments = (ins Train_ReduceKindAttr:$kind, Train_Tensor:$x, DenseI64ArrayAttr:$dims);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = "$kind $x `over` $dims attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Train_BroadcastOp : Train_TensorOp<"broadcast", "", [DeclareOpInterfaceMethods<VJPOpInterface>,
    DeclareOpInterfaceMethods<KernelOpInterface, ["movesElements"]>]> {
  let summary = "Repeats a tensor along new dimensions";
  let description = [{ `dims` (ascending) are the result's dimensions that x does not have. }];
  let arguments = (ins Train_Any:$x, DenseI64ArrayAttr:$dims);
  let results = (outs Train_Any:$y);
  let assemblyFormat = "$x `along` $dims attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Train_FillOp : Train_TensorOp<"fill", "", [DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "A tensor of one value";
  let description = [{ Any shape, float element type; `value` is rounded to it. }];
  let arguments = (ins F64Attr:$value);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = "$value attr-dict `:` functional-type(operands, results)";
}

//===----------------------------------------------------------------------===//
// Kernel primitives: what memory-bound ops decompose into, beside arith and math
//===----------------------------------------------------------------------===//

def Train_IotaOp : Train_Op<"iota", [Pure]> {
  let summary = "Each element's own index along one dimension";
  let description = [{ i32, any shape. Only inside kernels. }];
  let arguments = (ins I64Attr:$dim);
  let results = (outs Train_Ids:$y);
  let assemblyFormat = "$dim attr-dict `:` functional-type(operands, results)";
}

def Train_GatherRowsOp : Train_Op<"gather_rows", [Pure]> {
  let summary = "y[r.., c] = table[ids[r..], c]";
  let description = [{ table: [rows, d], ids: [...], y: [..., d]. Only inside kernels. }];
  let arguments = (ins Train_Any:$table, Train_Ids:$ids);
  let results = (outs Train_Any:$y);
  let assemblyFormat = "$table `,` $ids attr-dict `:` functional-type(operands, results)";
}

def Train_ScatterRowsOp : Train_Op<"scatter_rows", [Pure]> {
  let summary = "y = init or 0; y[ids[r..], c] += x[r.., c] in the order of r";
  let description = [{ x: [..., d], ids: [...], y and init: [rows, d]. Only inside kernels. }];
  let arguments = (ins Train_Tensor:$x, Train_Ids:$ids, Optional<Train_Tensor>:$init);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = "$x `,` $ids (`init` $init^)? attr-dict `:` functional-type(operands, results)";
}

def Train_RotateHalfOp : Train_Op<"rotate_half", [Pure, SameOperandsAndResultType]> {
  let summary = "(a, c) -> (-c, a), the halves of the last dimension";
  let description = [{ The last dimension is even. Only inside kernels. }];
  let arguments = (ins Train_Tensor:$x);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
}

def Train_DuplicateHalfOp : Train_Op<"duplicate_half", [Pure]> {
  let summary = "y = (x, x) along the last dimension";
  let description = [{ x: [..., d], y: [..., 2 d]. Only inside kernels. }];
  let arguments = (ins Train_Tensor:$x);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
}

//===----------------------------------------------------------------------===//
// Loss
//===----------------------------------------------------------------------===//

def Train_CrossEntropyOp : Train_TensorOp<"cross_entropy", "... v!, @v ... -> , ...", [InferTypeOpAdaptor,
    DeclareOpInterfaceMethods<VJPOpInterface>, DeclareOpInterfaceMethods<SplittableOpInterface>,
    DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "Scaled sum of the tokens' cross-entropies";
  let description = [{
    logits: [..., v], targets: [...] i32. loss = scale * sum over tokens
    of (lse - logits[target]); with scale = 1 / tokens of the global batch, the
    sum over devices and microbatches is the mean. lse: [...], the log of the sum
    of exponentials, kept for the gradient so that probabilities never are. Both are
    f32 where the logits are narrower. A target outside [0, v) adds no loss (torch's
    ignore_index) and its lse is infinite, of which the gradient makes 0.
  }];
  let arguments = (ins Train_Tensor:$logits, Train_Ids:$targets, F64Attr:$scale);
  let results = (outs Train_ScalarTensor:$loss, Train_Tensor:$lse);
  let assemblyFormat = "$logits `,` $targets `scale` $scale attr-dict `:` functional-type(operands, results)";
}

def Train_CrossEntropyGradOp : Train_EinsumOp<"cross_entropy_grad", "... v, @v ..., ..., -> ... v", [
    DeclareOpInterfaceMethods<ZeroPreservingOpInterface, ["preservesZero"]>,
    DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "dlogits = dloss * scale * (exp(logits - lse) - onehot(target))";
  let description = [{
    logits and the result: [..., v], targets and lse: [...] as `train.cross_entropy`
    had and gave them, dloss: a scalar. Probabilities exist one row at a time. A
    target outside [0, v) is no column of these logits; where lse is infinite all
    of the row is 0.
  }];
  let arguments = (ins Train_Tensor:$logits, Train_Ids:$targets, Train_Tensor:$lse,
                       Train_ScalarTensor:$dloss, F64Attr:$scale);
  let results = (outs Train_Tensor:$dlogits);
  let assemblyFormat = "$logits `,` $targets `,` $lse `,` $dloss `scale` $scale attr-dict `:` functional-type(operands, results)";
}

def Train_PickOp : Train_EinsumOp<"pick", "~... v, @v ... -> ...", [
    ZeroPreservingOpInterface, DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "One element of each row";
  let description = [{
    x: [..., v], ids: [...] i32, y: [...]: x[.., id], 0 for an id outside [0, v).
    Cross-entropy's part of a cut vocabulary; made after differentiation.
  }];
  let arguments = (ins Train_Tensor:$x, Train_Ids:$ids);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = "$x `,` $ids attr-dict `:` functional-type(operands, results)";
}

def Train_TokenLossOp : Train_EinsumOp<"token_loss", "..., ..., ... -> , ...", [
    DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "Cross-entropy's last steps, from each token's two logarithms";
  let description = [{
    log_sum: [...], the logarithm of the token's sum of exponentials; picked: [...],
    its target's logit; targets: [...] i32. loss and lse as of
    `train.cross_entropy` with `below` columns: loss = scale * sum of (log_sum -
    picked) over targets in [0, below), lse = log_sum for those, else infinite.
  }];
  let arguments = (ins Train_Tensor:$log_sum, Train_Tensor:$picked, Train_Ids:$targets,
                       I64Attr:$below, F64Attr:$scale);
  let results = (outs Train_ScalarTensor:$loss, Train_Tensor:$lse);
  let assemblyFormat = [{
    $log_sum `,` $picked `,` $targets `below` $below `scale` $scale attr-dict `:` functional-type(operands, results)
  }];
}

//===----------------------------------------------------------------------===//
// Optimizer
//===----------------------------------------------------------------------===//

def Train_SquareSumOp : Train_TensorOp<"square_sum", "", [InferTypeOpAdaptor, ZeroPreservingOpInterface, DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "Sum of squares of all elements, in f32";
  let description = [{ Any shape to a scalar of type f32: a gradient's part of the global norm. }];
  let arguments = (ins Train_Tensor:$x);
  let results = (outs Train_ScalarTensor:$y);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
}

def Train_GlobalNormOp : Train_TensorOp<"global_norm", "", [InferTypeOpAdaptor, DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "Square root of the sum of scalars";
  let description = [{
    f32 scalars, one a gradient (`train.square_sum`), at least one, to one: the norm
    over all parameters.
  }];
  let arguments = (ins Variadic<Train_ScalarTensor>:$squares);
  let results = (outs Train_ScalarTensor:$norm);
  let assemblyFormat = "$squares attr-dict `:` functional-type(operands, results)";
}

def Train_ClipFactorOp : Train_EinsumOp<"clip_factor", ", -> ", [DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "min(1, limit / (norm + 1e-6)), or 1 when limit is 0";
  let description = [{
    Scalars; what gradients are multiplied by, as torch.nn.utils.clip_grad_norm_
    does.
  }];
  let arguments = (ins Train_ScalarTensor:$norm, Train_ScalarTensor:$limit);
  let results = (outs Train_ScalarTensor:$factor);
  let assemblyFormat = "$norm `,` $limit attr-dict `:` functional-type(operands, results)";
}

def Train_UnscaleOp : Train_EinsumOp<"unscale", "~..., -> ...", [DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "x / scale: undoes loss scaling";
  let description = [{
    x of any shape, scale a scalar: what the loss was multiplied by so that gradients
    stay inside f16's range (Micikevicius et al. 2018).
  }];
  let arguments = (ins Train_Tensor:$x, Train_ScalarTensor:$scale);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = "$x `,` $scale attr-dict `:` functional-type(operands, results)";
}

def Train_GuardOp : Train_EinsumOp<"guard", "..., ..., -> ...", [ZeroPreservingOpInterface,
    DeclareOpInterfaceMethods<KernelOpInterface, ["movesElements"]>]> {
  let summary = "The new value if a scalar is finite, else the old one";
  let description = [{
    updated, previous and the result have one shape; check is a scalar, such as the
    global norm of the gradients: infinite or not a number when one of them is. How a
    step that overflows is skipped.
  }];
  let arguments = (ins Train_Tensor:$updated, Train_Tensor:$previous, Train_ScalarTensor:$check);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = "$updated `,` $previous `if_finite` $check attr-dict `:` functional-type(operands, results)";
}

def Train_SgdOp : Train_EinsumOp<"sgd", "..., ..., , -> ...", [
    UpdateOpInterface, ZeroPreservingOpInterface, DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "parameter - lr * clip * gradient";
  let description = [{
    parameter, gradient and the result have one shape; clip and lr are scalars.
    Without momentum or weight decay. The gradient may have another float type.
  }];
  let arguments = (ins Train_Tensor:$parameter, Train_Tensor:$gradient, Train_ScalarTensor:$clip, Train_ScalarTensor:$lr);
  let results = (outs Train_Tensor:$updated);
  let assemblyFormat = "$parameter `,` $gradient `,` $clip `,` $lr attr-dict `:` functional-type(operands, results)";
}

def Train_AdamWOp : Train_EinsumOp<"adamw", "..., ..., ..., ..., , , , , , , ,  -> ..., ..., ...", [
    UpdateOpInterface, ZeroPreservingOpInterface, DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "AdamW with decoupled weight decay";
  let description = [{
    As torch.optim.AdamW (Loshchilov and Hutter 2019): with g = clip * gradient,
    p -= lr * weight_decay * p (only with `decay`); m = beta1 m + (1-beta1) g;
    v = beta2 v + (1-beta2) g^2;
    p -= lr / bias_correction1 * m / (sqrt(v / bias_correction2) + eps).
    parameter, gradient, momentum, variance and the results have one shape; the
    others are scalars. The gradient may have another float type.
  }];
  let arguments = (ins Train_Tensor:$parameter, Train_Tensor:$gradient, Train_Tensor:$momentum,
                       Train_Tensor:$variance, Train_ScalarTensor:$clip, Train_ScalarTensor:$lr,
                       Train_ScalarTensor:$beta1, Train_ScalarTensor:$beta2, Train_ScalarTensor:$eps,
                       Train_ScalarTensor:$weight_decay, Train_ScalarTensor:$bias_correction1,
                       Train_ScalarTensor:$bias_correction2, UnitAttr:$decay);
  let results = (outs Train_Tensor:$updated, Train_Tensor:$new_momentum, Train_Tensor:$new_variance);
  let assemblyFormat = [{
    $parameter `,` $gradient `,` $momentum `,` $variance (`decay` $decay^)? `clip` $clip `lr` $lr `betas` $beta1 `,` $beta2
    `eps` $eps `weight_decay` $weight_decay `bias_corrections` $bias_correction1 `,` $bias_correction2 attr-dict `:` functional-type(operands, results)
  }];
}

#endif // MESHWRIGHT_TRAIN_OPS
