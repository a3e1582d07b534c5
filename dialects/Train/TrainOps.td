//===- TrainOps.td - the ops of floor 1 ------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TRAIN_OPS
#define MESHWRIGHT_TRAIN_OPS

include "Train/TrainElementwiseOps.td"
include "Train/TrainExpertOps.td"
include "Train/TrainLossOps.td"
include "Train/TrainOpBase.td"
include "Train/TrainShapeOps.td"
include "Train/TrainSignOps.td"
include "Train/TrainSparseOps.td"

//===----------------------------------------------------------------------===//
// Variables and structure
//===----------------------------------------------------------------------===//

def Train_VariableOp : Train_Op<"variable", [Symbol, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Persistent state: a parameter or an optimizer state";
  let description = [{
    A parameter, or a state of one (`of`). `stacked` variables hold one
    slice a layer along their first dimension. The type has a static shape. Read with
    `train.get`, written with `train.set`. `role` says which state it is exactly when `of` names a
    parameter: `momentum`, `variance` or `master` of the optimizer, of the parameter's shape or, as a mean
    over dimensions, of one element there (`row` and `column` of Adafactor); `momentum_amax` and `variance_amax`, where these are
    codes of 8 bits (i8), of one number for each block of the last dimension; `scale`, a number for each row
    of a frozen weight in 8 bits; `input_amax`, `weight_amax` and `gradient_amax` of delayed scaling, a number for each layer, and
    their histories, with `_history` behind; or
    `tokens`, the number of tokens of the last step routed to each expert, of the shape of the router's
    weight without its last dimension. The storage
    name of a stacked variable holds `{layer}`, or `{layer+K}` if its first layer is the
    model's layer K. Without a storage name it is the variable's, with `.{layer}` behind it
    if the variable is stacked. With `experts K` the first dimension behind that of layers counts
    experts, of which a token uses K; with `{expert}` in its storage name each of them has a tensor of
    its own. With `{head}` in it the first dimension behind that of layers counts heads, each with such
    a tensor. Without `init` a variable starts at 0, but the state
    `master` starts as its parameter.

    ```mlir
    train.variable @h.ln_1.weight : tensor<12x768xf32> stacked
        init #train.init<"constant", 1.0 : f64> storage #train.storage<"transformer.h.{layer}.ln_1.weight">
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<AnyRankedTensor>:$type, UnitAttr:$stacked,
                       OptionalAttr<I64Attr>:$experts, Train_InitAttr:$init, OptionalAttr<Train_StorageAttr>:$storage,
                       OptionalAttr<FlatSymbolRefAttr>:$of, OptionalAttr<StrAttr>:$role,
                       OptionalAttr<StrAttr>:$sym_visibility);
  let assemblyFormat = [{
    $sym_name `:` $type (`stacked` $stacked^)? (`experts` $experts^)? `` custom<Init>($init) (`storage` $storage^)?
    (`state` $role^ `of` $of)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    bool isParameter() { return !getOf(); }
    /// Whether it is one of its parameter's states, which go where it goes, not a count.
    bool isOptimizerState();
    /// How many of the first dimensions count layers and experts.
    int64_t getCounts() { return int64_t(getStacked()) + getExperts().has_value(); }
    /// How many of them count tensors of files.
    int64_t getNumbered();
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
    DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    DeclareOpInterfaceMethods<TripCountOpInterface, ["getTripCount"]>]> {
  let summary = "Calls one function repeatedly, like a scan";
  let description = [{
    Calls `callee` `count` times (JAX calls this a scan). The callee's arguments
    are, in order: the iteration's number (`tensor<i32>`, only with `indexed`),
    the carried values, this iteration's slice of each `each` operand along its
    first dimension (of size `count`), and the shared operands. Its results are
    the next carried values (same types), then values that are stacked along a
    new first dimension. With `reverse` the iterations run from `count`-1 to 0.
    Results of the op: the last carried values, then the stacks.

    With `times`, a `tensor<i32>`, as many iterations run as it says, at most `count`. So nothing
    is stacked, and `reverse` is not possible. All devices that communicate in the
    function must have the same number: it is replicated. A loop over microbatches (`train.role`
    `microbatch` or `count`) takes the slices of the first iterations, at least of one. Without these roles
    the number follows from data, as that of experts' rounds does, and nothing is sliced.

    The attribute `train.role`, the same on the op and on its callee, says what it
    does in a step (`#train.role<forward>`, see `RoleAttr`), and `train.chunk` on
    layers which chunk of a pipeline they are: the passes that make repetitions set
    them. Chunks may call one function, so functions of layers have no chunk.

    ```mlir
    %y, %kept = train.repeat @layer x 12 carry(%x) each(%w) shared(%cos)
        : (tensor<4x64xf32>, tensor<12x64x64xf32>, tensor<64xf32>) -> (tensor<4x64xf32>, tensor<12x4x64xf32>)
    %z = train.repeat @round x 4 times %n carry(%y) each() shared(%x)
        : (tensor<4x64xf32>, tensor<4x64xf32>, tensor<i32>) -> tensor<4x64xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, I64Attr:$count, UnitAttr:$reverse,
                       UnitAttr:$indexed, Variadic<AnyRankedTensor>:$carry,
                       Variadic<AnyRankedTensor>:$each, Variadic<AnyRankedTensor>:$shared,
                       Optional<Train_Ids>:$times);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let builders = [OpBuilder<(ins "::mlir::TypeRange":$types, "::llvm::StringRef":$callee, "uint64_t":$count,
                                 "bool":$reverse, "bool":$indexed, "::mlir::ValueRange":$carry,
                                 "::mlir::ValueRange":$each, "::mlir::ValueRange":$shared), [{
    build($_builder, $_state, types, callee, count, reverse, indexed, carry, each, shared, ::mlir::Value());
  }]>];
  let assemblyFormat = [{
    $callee `x` $count (`times` $times^)? (`reverse` $reverse^)? (`indexed` $indexed^)?
    `carry` `(` $carry `)` `each` `(` $each `)` `shared` `(` $shared `)` attr-dict
    `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// The results that are carried values, and those that are stacks.
    ::mlir::ResultRange getCarried() { return getResults().take_front(getCarry().size()); }
    ::mlir::ResultRange getStacks() { return getResults().drop_front(getCarry().size()); }
    /// The operands that the callee has arguments for: all but `times`.
    ::mlir::OperandRange getPassed() {
      return getOperands().drop_back(getTimes() ? 1 : 0);
    }
    /// The callee's argument for operand `index` of this op, one of `getPassed`.
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

    `blocks` [m, n] says that both are numbers of 8 bits in blocks, dequantized: the weight's of m rows and n columns,
    x's of n elements of a row. The gradient's products then read such numbers too, in f8E4M3FN and in blocks of n along
    what they sum. For the gradient of x, dy is rounded along `out`, and so is the weight, again, unless its blocks are
    squares. For the gradient of the weight, dy and x (its rounded numbers) are rounded along the last dimension but one.
  }];
  let arguments = (ins Train_Tensor:$x, Train_Tensor:$weight, OptionalAttr<DenseI64ArrayAttr>:$blocks);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = "$x `,` $weight (`blocks` $blocks^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "::mlir::Value":$weight), [{
    build($_builder, $_state, x, weight, ::mlir::DenseI64ArrayAttr());
  }]>];
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
    ids - offset; ids: any shape, offset: a scalar, both i32. Where a table is sharded,
    ids that point into a device's part become its local rows, all others lie
    outside [0, rows).
  }];
  let arguments = (ins Train_Ids:$ids, Train_Ids:$offset);
  let results = (outs Train_Ids:$result);
  let assemblyFormat = "$ids `,` $offset attr-dict `:` functional-type(operands, results)";
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

/// What is added to a variance. Of a row of zeros, as padding is, a norm without it is no number.
def Train_Epsilon : ConfinedAttr<F64Attr, [AttrConstraint<
    CPred<"::llvm::cast<::mlir::FloatAttr>($_self).getValueAsDouble() > 0">, "above 0">]>;

def Train_LayerNormOp : Train_EinsumOp<"layer_norm", "... d!, d!, d! -> ... d!", [
    DeclareOpInterfaceMethods<VJPOpInterface>, DeclareOpInterfaceMethods<SplittableOpInterface>,
    DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "LayerNorm over the last dimension";
  let description = [{
    y = (x - mean) / sqrt(var + eps) * weight + bias, var the biased variance
    (Ba et al. 2016). x: [..., d], weight, bias: [d].
  }];
  let arguments = (ins Train_Tensor:$x, Train_Tensor:$weight, Train_Tensor:$bias, Train_Epsilon:$eps);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = "$x `,` $weight `,` $bias `eps` $eps attr-dict `:` functional-type(operands, results)";
}

def Train_LayerNormGradOp : Train_EinsumOp<"layer_norm_grad", "~... d!, ... d!, d! -> ... d!, d!, d!", [
    DeclareOpInterfaceMethods<SplittableOpInterface>, DeclareOpInterfaceMethods<KernelOpInterface>,
    DeclareOpInterfaceMethods<SumOpInterface, ["isSum"]>], [CostOpInterface], "equalButFloats"> {
  let summary = "Gradients of LayerNorm's input, weight and bias";
  let description = [{
    From dy and x, both [..., d]: dx like x, dweight and dbias: [d], sums of any
    float type. Mean and variance are recomputed, since the row is read anyway.
  }];
  let arguments = (ins Train_Tensor:$dy, Train_Tensor:$x, Train_Tensor:$weight, Train_Epsilon:$eps);
  let results = (outs Train_Tensor:$dx, Train_Tensor:$dweight, Train_Tensor:$dbias);
  let assemblyFormat = "$dy `,` $x `,` $weight `eps` $eps attr-dict `:` functional-type(operands, results)";
}

def Train_RmsNormOp : Train_EinsumOp<"rms_norm", "... d!, d! -> ... d!", [
    ZeroPreservingOpInterface, DeclareOpInterfaceMethods<VJPOpInterface>, DeclareOpInterfaceMethods<SplittableOpInterface>,
    DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "RMSNorm over the last dimension";
  let description = [{ y = x / sqrt(mean(x^2) + eps) * weight (Zhang and Sennrich 2019). x: [..., d], weight: [d]. }];
  let arguments = (ins Train_Tensor:$x, Train_Tensor:$weight, Train_Epsilon:$eps);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = "$x `,` $weight `eps` $eps attr-dict `:` functional-type(operands, results)";
}

def Train_RmsNormGradOp : Train_EinsumOp<"rms_norm_grad", "~... d!, ... d!, d! -> ... d!, d!", [
    DeclareOpInterfaceMethods<SplittableOpInterface>, DeclareOpInterfaceMethods<KernelOpInterface>,
    DeclareOpInterfaceMethods<SumOpInterface, ["isSum"]>], [CostOpInterface], "equalButFloats"> {
  let summary = "Gradients of RMSNorm's input and weight";
  let description = [{
    From dy and x, both [..., d]: dx like x, dweight: [d], a sum of any float type.
    The row's mean square is recomputed.
  }];
  let arguments = (ins Train_Tensor:$dy, Train_Tensor:$x, Train_Tensor:$weight, Train_Epsilon:$eps);
  let results = (outs Train_Tensor:$dx, Train_Tensor:$dweight);
  let assemblyFormat = "$dy `,` $x `,` $weight `eps` $eps attr-dict `:` functional-type(operands, results)";
}

//===----------------------------------------------------------------------===//
// Rotary positions
//===----------------------------------------------------------------------===//

def Train_RopeTableOp : Train_TensorOp<"rope_table", " -> s f!, s f!", [
    AttrSizedOperandSegments, DeclareOpInterfaceMethods<KernelOpInterface>,
    DeclareOpInterfaceMethods<IndexedOpInterface>,
    DeclareOpInterfaceMethods<PrecisionOpInterface, ["getResultPrecision"]>]> {
  let summary = "Cosines and sines of rotary position angles";
  let description = [{
    angle[s, f] = s * frequencies[f]; results [positions, frequencies], scaled by
    `scale` (1 except for some long-context variants). A frequency of 0 rotates nothing and
    is not scaled: partial rotary embeddings use it for the rest of a head. Frequencies are the
    model's, with scaling for long context already applied (Su et al. 2021). Angles
    and tables are computed in the result's element type from unrounded
    frequencies: in f64 nothing passes through f32, as in the
    float64 reference runs (their losses agree to the last bit). `offset`
    (tensor<i32>) is the position of the first row, 0 without it: the tables of a
    part of the positions. With `positions` [b, s] in place of it, which restart in
    packed sequences, angle[b, s, f] = positions[b, s] * frequencies[f] and results are
    [b, s, frequencies].
  }];
  let arguments = (ins Optional<Train_Ids>:$offset, Optional<Train_Ids>:$positions,
                       DenseF64ArrayAttr:$frequencies,
                       DefaultValuedAttr<F64Attr, "1.0">:$scale);
  let results = (outs Train_Tensor:$cos, Train_Tensor:$sin);
  // A dense array's own printing keeps six digits only.
  let assemblyFormat = "custom<Doubles>($frequencies) (`offset` $offset^)? (`positions` $positions^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Train_RopeOp : Train_TensorOp<"rope", "~b s h d!, s f!, s f! -> b s h d!", [
    InferTypeOpAdaptor, DeclareOpInterfaceMethods<VJPOpInterface>, DeclareOpInterfaceMethods<KernelOpInterface>,
    DeclareOpInterfaceMethods<PrecisionOpInterface, ["getOperandPrecision"]>]> {
  let summary = "Rotary position embedding, half-split layout";
  let description = [{
    x: [b, s, heads, d], cos, sin: [s, d/2], or [b, s, d/2] where sequences have positions of
    their own. With x = (a, c) split in halves along
    d: y = (a cos - c sin, c cos + a sin). `inverse` rotates in the other direction, which is
    also the gradient. The tables stay in f32 whatever x is: rounded to bf16, nearby
    positions would have equal angles.
  }];
  let arguments = (ins Train_Tensor:$x, Train_Tensor:$cos, Train_Tensor:$sin, UnitAttr:$inverse);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = "(`inverse` $inverse^)? $x `,` $cos `,` $sin attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

def Train_AlibiSlopesOp : Train_TensorOp<"alibi_slopes", " -> h", [
    DeclareOpInterfaceMethods<KernelOpInterface>,
    DeclareOpInterfaceMethods<IndexedOpInterface, ["keepLogicalSizes"]>,
    DeclareOpInterfaceMethods<PrecisionOpInterface, ["getResultPrecision"]>]> {
  let summary = "Slopes of linear biases, one for each head";
  let description = [{
    y[h] = 2^-(`bias` (h + 1) / n) for heads h below n, the largest power of two that is
    not above the number of heads; the others have those between, 2^-(`bias` (2 (h - n) + 1)
    / 2n) (Press et al. 2022, with `bias` 8). Where the result is padded or a part of the
    heads, `heads` is their logical number (0: as many as the result has) and `offset`
    (tensor<i32>) the first one's.
  }];
  let arguments = (ins Optional<Train_Ids>:$offset, F64Attr:$bias,
                       DefaultValuedAttr<I64Attr, "0">:$heads);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = "`bias` $bias (`offset` $offset^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Train_DistanceBucketsOp : Train_TensorOp<"distance_buckets", " -> n", [
    DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "The bucket of each distance between a query and a key";
  let description = [{
    result [queries + keys - 1], i32: element i is the bucket of the distance i - (queries - 1) of a key from
    a query, which `train.attention`'s distances are made of. Half of the `buckets` (with `causal`, of all; else of
    the half for each side) have one distance each; the others divide those up to `max_distance` by
    their logarithm, and the last has all beyond. Without `causal` the second half is for keys behind the query; with it
    these are all in bucket 0. Computed as transformers does, in f32 (T5, Raffel et al. 2020).
  }];
  let arguments = (ins I64Attr:$buckets, I64Attr:$max_distance, I64Attr:$queries, I64Attr:$keys,
                       UnitAttr:$causal);
  let results = (outs Train_Ids:$y);
  let assemblyFormat = "$buckets `to` $max_distance `queries` $queries `keys` $keys (`causal` $causal^)? attr-dict `:` type($y)";
  let hasVerifier = 1;
  let declarations = [{
    /// All elements of the result.
    ::llvm::SmallVector<int32_t> getNumbers();
  }];
}

/// The optional operands that attention and its gradient have in common, as Attention.h lists them, and their
/// text.
defvar AttentionOptions = (ins Optional<Train_Ids>:$ids, Optional<Train_Ids>:$key, Optional<Train_Ids>:$head_offset,
                               Optional<Train_Ids>:$query_offset, Optional<Train_Ids>:$key_offset,
                               Optional<Train_Ids>:$positions, Optional<Train_Ids>:$lengths,
                               Optional<Train_Tensor>:$slopes, Optional<Train_Tensor>:$sinks,
                               Optional<Train_Tensor>:$distances);
defvar AttentionOptionsText = [{
    (`dropout` `(` $ids^ `,` $key `)`)? (`head_offset` $head_offset^)? (`query_offset` $query_offset^)?
    (`key_offset` $key_offset^)? (`positions` $positions^)? (`lengths` $lengths^)? (`slopes` $slopes^)?
    (`sinks` $sinks^)? (`distances` $distances^)?
}];

defvar AttentionDeclarations = [{
    AttentionOptions getOptions() { return attentionOptionsOf(*this); }
    /// Changes the attribute.
    void setSpec(const AttentionSpec &spec) { setSpecAttr(AttentionAttr::get(getContext(), spec)); }
    /// How many heads, queries and keys whole sequences have.
    AttentionSizes getSizes();
}];

def Train_AttentionOp : Train_TensorOp<"attention", "b s (g r) d!, b t! g d!, b t! g e! -> b s (g r) e!, b (g r) s", [
    InferTypeOpAdaptor, AttrSizedOperandSegments, DeclareOpInterfaceMethods<RandomOpInterface>,
    DeclareOpInterfaceMethods<PrecisionOpInterface, ["getOperandPrecision"]>,
    DeclareOpInterfaceMethods<IndexedOpInterface, ["keepLogicalSizes"]>,
    DeclareOpInterfaceMethods<ZeroPreservingOpInterface, ["preservesZero"]>,
    DeclareOpInterfaceMethods<VJPOpInterface>], OwnFlops> {
  let summary = "Scaled dot-product attention";
  let description = [{
    out = dropout(softmax(scale * q k^T + mask)) v per head. All that is no operand is one attribute,
    `#train.attention`, written as `scale 0.125 causal window 512`: the scale first, then the fields that are not
    0 or false, or, of the strides, 1. q: [b, s, heads, d],
    k: [b, t, kv_heads, d], v: [b, t, kv_heads, e], out: [b, s, heads, e]; query head
    h reads key head h / (heads / kv_heads) (GQA, Ainslie et al. 2023). `causal`: key
    position <= query position. `window` w > 0: also |query - key| < w
    (Mistral; without `causal` on both sides, as in ModernBERT). `chunk` c > 0: also query / c = key / c,
    rounded down, where positions are counted from the begin of the document (Llama 4). `cap`
    c > 0: scores are c tanh(scores / c), before the mask (Gemma 2). `slopes` [heads]:
    slopes[h] * (key - query position) is added to scores, after the cap (ALiBi, Press et
    al. 2022); they are constants. `sinks` [heads]: each softmax has one more score, its
    head's, whose value is 0 (gpt-oss). `distances` [queries + keys - 1, heads]: row key - query
    + queries - 1 is added to the score of a query and a key, after the cap, where queries and keys
    count the whole sequences; unlike slopes they have a gradient (T5's relative position bias, Raffel et
    al. 2020: one row of a small table for each range of distances, see
    `train.distance_buckets`). `lse`: [b, heads, s], the
    logarithm of the softmax's denominator, saved for the gradient. It is computed in f32 at least,
    and so are scores, softmax and sums, whatever the element type of q. With
    `dropout` > 0: `ids` [b] numbers each sequence in the step's batch and `key`
    [2] is the step's random key; the mask is a function of (key, stream,
    sequence, head, query, key position). Scores are never stored (Dao et al.
    2022).

    `positions` [b, t] restart at 0 with each document of a packed sequence: token t is in
    the document that begins at t - positions[t], and a query sees the keys of its own
    document alone. The op is `causal` then, so these are begin <= key <= query (Krell et
    al. 2021). Queries behind the last key, which are padding, are in its document.
    `lengths` [b]: keys of a sequence from its length on are padding, which no query sees.

    Heads are counted in the logical global tensor. If q holds a part of its
    heads or is padded, `heads` is their logical number (0: as many as q has) and
    `head_offset` (tensor<i32>) the index of the first. `queries` and `query_offset` are
    the same for positions of queries: q may hold a part of a sequence whose keys are
    complete. Queries are `query_stride` positions apart, keys `key_stride`.

    If k and v hold a part of the keys, `key_offset` is the position of the first and `keys`
    the number of all. Then the results are partial, in f32 at least, and never rounded:
    out is the mean over these keys, lse the logarithm of their part of the denominator,
    -inf for a query that sees none of them. `before` are the results for other keys, which
    are merged like one more key with the score before_lse and the value before: parts can follow each
    other in any order, and the last result is that of all keys (ring attention, Liu et al. 2023).
    `positions` are those of all keys. `pairs` is the number of visible query-key pairs in one head of
    one sequence, as a mean over devices, which may see different numbers; without it they are counted.
    Passes that introduce these attributes run after differentiation.
  }];
  let arguments = !con((ins Train_Tensor:$q, Train_Tensor:$k, Train_Tensor:$v), AttentionOptions,
                       (ins Optional<Train_Tensor>:$before, Optional<Train_Tensor>:$before_lse,
                            Train_AttentionAttr:$spec));
  let results = (outs Train_Tensor:$out, Train_Tensor:$lse);
  let builders = [OpBuilder<(ins "::mlir::Value":$q, "::mlir::Value":$k, "::mlir::Value":$v,
                                 "const AttentionOptions &":$options, "::mlir::Value":$before,
                                 "::mlir::Value":$before_lse, "const AttentionSpec &":$spec)>];
  let declarations = AttentionDeclarations;
  let assemblyFormat = !strconcat("$q `,` $k `,` $v ", AttentionOptionsText, [{
    (`before` `(` $before^ `,` $before_lse `)`)? custom<AttentionSpec>($spec) attr-dict
    `:` functional-type(operands, results)
  }]);
  let hasVerifier = 1;
}

def Train_AttentionGradOp : Train_TensorOp<"attention_grad",
    "~b s (g r) e!, b s (g r) d!, b t! g d!, b t! g e!, b s (g r) e!, b (g r) s -> b s (g r) d!, b t! g d!, b t! g e!", [
    InferTypeOpAdaptor, AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<IndexedOpInterface, ["keepLogicalSizes"]>], OwnFlops> {
  let summary = "Gradients of attention's q, k, v, sinks and distances";
  let description = [{
    dout, out: [b, s, heads, e], the other operands and the attributes as
    `train.attention` had them, lse as it gave it; dq, dk, dv like q, k, v, then the gradients
    of sinks and of distances, like these, where there are any. Scores are recomputed, tile by tile, from q, k
    and lse (FlashAttention, Dao et al. 2022). With `key_offset`, k and v are a part of the keys; out and lse
    are of all. dk and dv are of the part, dq is what the part adds to it; all are in f32 at
    least, to be added up. With delta = sum(dout out), dsinks is the sum of
    -exp(sink - lse) delta over sequences and queries; that of distances is the sum of the scores'
    gradients at each distance.
  }];
  let arguments = !con((ins Train_Tensor:$dout, Train_Tensor:$q, Train_Tensor:$k, Train_Tensor:$v,
                            Train_Tensor:$out, Train_Tensor:$lse),
                       AttentionOptions, (ins Train_AttentionAttr:$spec));
  let results = (outs Train_Tensor:$dq, Train_Tensor:$dk, Train_Tensor:$dv, Variadic<Train_Tensor>:$doptions);
  let builders = [OpBuilder<(ins "::mlir::Value":$dout, "::mlir::Value":$q, "::mlir::Value":$k,
                                 "::mlir::Value":$v, "::mlir::Value":$out, "::mlir::Value":$lse,
                                 "const AttentionOptions &":$options, "const AttentionSpec &":$spec)>];
  let declarations = !strconcat(AttentionDeclarations, [{
    /// The gradient of an option that has one, null where the call does not have the option.
    ::mlir::Value getGradientOf(::mlir::Value AttentionOptions::*option);
    ::mlir::Value getDsinks() { return getGradientOf(&AttentionOptions::sinks); }
    ::mlir::Value getDdistances() { return getGradientOf(&AttentionOptions::distances); }
  }]);
  let assemblyFormat = !strconcat("$dout `,` $q `,` $k `,` $v `,` $out `,` $lse ", AttentionOptionsText, [{
    custom<AttentionSpec>($spec) attr-dict `:` functional-type(operands, results)
  }]);
  let hasVerifier = 1;
}

#endif // MESHWRIGHT_TRAIN_OPS
