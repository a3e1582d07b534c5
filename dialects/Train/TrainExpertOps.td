//===- TrainExpertOps.td - mixtures of experts -----------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
// A router is made of linear, softmax or sigmoid, top_k and element-wise ops; tally says how
// many tokens it has sent where. Tokens go to experts by rows:
//
//   choice   one of the k experts that a token has chosen, [k, b, s]
//   block    consecutive experts; all blocks have equally many
//   row      a token's copy for one choice, in a slot of its block, [x, b, m, h]: x blocks
//            with m slots a sequence. Rows fill the b m slots of a block from the first on, in
//            the order of their experts, then of their choices.
//
// All sizes are static; how many rows an expert has is data. Slots that no row fills have no
// choice, an expert behind those of the block, and zeros. Which row is whose is counted within
// the tensors that the op sees: a device that holds a part of the tokens has the rows of
// those tokens. So sequences may be divided among devices. A sequence is divided too if the ops
// say into pieces of how many tokens (`piece`): a device that has some of the pieces needs as many
// of the slots. Without `piece`, positions stay whole: they are gathered before tokens become rows.
//
// Products take the slots of one block from several devices, one device's behind another's,
// and work on runs of rows of one expert. So a device may have the blocks of all for some
// experts instead of all blocks for its sequences: that change is an all-to-all (Lepikhin et
// al. 2021). Sums over rows, such as the gradients of experts, are partial sums.
//
// Rows may go to their experts in several rounds, each with fewer slots than all rows need in the
// worst case: a repeat whose number of iterations `train.rounds` says (`train.rows_of_round`).
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TRAIN_EXPERT_OPS
#define MESHWRIGHT_TRAIN_EXPERT_OPS

include "Train/TrainOpBase.td"

//===----------------------------------------------------------------------===//
// Routers
//===----------------------------------------------------------------------===//

def Train_SigmoidOp : Train_EinsumOp<"sigmoid", "... -> ...", [
    DeclareOpInterfaceMethods<VJPOpInterface>, DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "1 / (1 + e^-x)";
  let description = [{ Element by element, any shape. }];
  let arguments = (ins Train_Tensor:$x);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
}

def Train_SoftmaxOp : Train_EinsumOp<"softmax", "... v! -> ... v!", [
    DeclareOpInterfaceMethods<VJPOpInterface>, DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "Probabilities of each row's elements";
  let description = [{ y = exp(x - max) / sum(exp(x - max)) along the last dimension. }];
  let arguments = (ins Train_Tensor:$x);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
}

def Train_TopKOp : Train_EinsumOp<"top_k", "... v! -> ... v!", [
    ConstantOpInterface, DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "1 at the k largest elements of each row, else 0";
  let description = [{
    x: [..., v], k from 1 to v. Of equal elements the first ones count. A row with a
    NaN has fewer ones. The result is constant where it is defined, so no gradient
    passes: a router multiplies its probabilities by it.
  }];
  let arguments = (ins Train_Tensor:$x, I64Attr:$k);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = "$x `k` $k attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Train_OneHotOp : Train_TensorOp<"one_hot", "... -> ... v!", [
    DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "1 at each id, else 0";
  let description = [{
    ids: [...] i32, y: [..., v]: 1 in column id, all 0 for an id outside [0, v).
  }];
  let arguments = (ins Train_Ids:$ids);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = "$ids attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Train_LogSumExpOp : Train_EinsumOp<"log_sum_exp", "... v! -> ...", [
    DeclareOpInterfaceMethods<VJPOpInterface>, DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "The logarithm of each row's sum of exponentials";
  let description = [{
    x: [..., v], y: [...] = max + log(sum(exp(x - max))) along the last dimension. The mean of
    its squares keeps routers' logits small (the z-loss of Zoph et al. 2022).
  }];
  let arguments = (ins Train_Tensor:$x);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
}

def Train_TallyOp : Train_EinsumOp<"tally", "~b s e, b s e -> e", [
    ConstantOpInterface, DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "The number of tokens routed to each expert";
  let description = [{
    mask: [b, s, e], 1 where a token is routed to an expert, else 0; logits: [b, s, e], those of
    the router. y: [e], the sum of the mask over all tokens, exact up to 2^24. The count of an
    expert with a logit that is infinite or NaN is NaN, which reveals a router that fails. No
    gradient passes.
  }];
  let arguments = (ins Train_Tensor:$mask, Train_Tensor:$logits);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = "$mask `,` $logits attr-dict `:` functional-type(operands, results)";
}

def Train_BatchSumOp : Train_EinsumOp<"batch_sum", "~... -> ...", [ConstantOpInterface]> {
  let summary = "The sum of a value over all microbatches of the step";
  let description = [{
    x: any shape, a value of one microbatch that does not depend on another `train.batch_sum`; y:
    its sum over all microbatches, which is known only after the forward of all of them.
    `train-count-batch` turns that into a separate counting pass and removes the op. No gradient
    passes.
  }];
  let arguments = (ins Train_Tensor:$x);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
}

def Train_BalanceOp : Train_EinsumOp<"balance", "... e!, ... e! -> ... e!", [
    DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "bias + rate * sign(mean of tokens - tokens)";
  let description = [{
    Auxiliary-loss-free load balancing (Wang et al. 2024). bias: [..., e], added to the scores of
    experts for top-k routing; tokens: [..., e], the number of tokens of a global batch routed to
    each expert. The bias of an expert with more tokens than the mean falls, that of one with fewer
    rises. The sign is that of sum(tokens) - e * tokens, which is exact for counts below 2^24 / e; 0
    for NaN.
  }];
  let arguments = (ins Train_Tensor:$bias, Train_Tensor:$tokens, F64Attr:$rate);
  let results = (outs Train_Tensor:$updated);
  let assemblyFormat = "$bias `by` $tokens `rate` $rate attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Rows of experts
//===----------------------------------------------------------------------===//

def Train_RouteOp : Train_TensorOp<"route",
    "b (g s!) e! -> k! b (g s!), k! b (g s!), x! b (g m!), x! b (g m!)",
    [InferTypeOpAdaptor, DeclareOpInterfaceMethods<SizedOpInterface>]> {
  let summary = "Sorts the tokens' routing choices by expert";
  let description = [{
    mask: [b, s, e], not 0 where a token is routed to an expert, at most k times per token.
    - chosen: [k, b, s], the experts of each token, ascending; e where there are fewer than k;
    - rows: [k, b, s], the row of each choice, as an index into [x, b, m]; -1 if it has none;
    - choices: [x, b, m], the choice of each row, as an index into [k, b, s]; -1 for a slot
      without a row;
    - experts: [x, b, m], the expert of each row, counted from the first of its block; e / x for a
      slot without a row.
    x = `blocks` divides e, and m = `slots` is enough for all rows that the s tokens may have in a
    block, s min(k, e / x). All results are i32.

    With a `capacity` above 0, an expert takes the first `capacity` tokens of a sequence that are
    routed to it, in the order of positions; the other choices have no row (Fedus et al. 2021). Then
    (e / x) capacity slots are enough too.

    With a `piece` above 0, which divides s, a sequence consists of s / piece pieces of `piece`
    tokens, which may be on different devices: g = s / piece divides m. Tokens that a capacity drops
    depend on the whole sequence, so `piece` and `capacity` exclude each other.
  }];
  let arguments = (ins Train_Tensor:$mask, I64Attr:$k, I64Attr:$blocks, I64Attr:$slots,
                       DefaultValuedAttr<I64Attr, "0">:$capacity,
                       DefaultValuedAttr<I64Attr, "0">:$piece);
  let results = (outs Train_Ids:$chosen, Train_Ids:$rows, Train_Ids:$choices, Train_Ids:$experts);
  let assemblyFormat = [{
    $mask `k` $k `blocks` $blocks `slots` $slots attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Train_RoundsOp : Train_TensorOp<"rounds", "x! b m! -> ", [
    InferTypeOpAdaptor, DeclareOpInterfaceMethods<SizedOpInterface>]> {
  let summary = "The number of all-to-all rounds for all rows";
  let description = [{
    choices: [x, b, m] of `train.route`. With `slots` slots per sequence in a round, the rows of the
    fullest block need rounds = ceil(rows / (b slots)), an i32 without dimensions, 0 if there are
    no rows. For devices with different tokens it is the maximum. With `all`, which is m then, a device may
    have pieces of a sequence, with the same share of a round's slots as of all (the rule is "x! b m -> ").
  }];
  let arguments = (ins Train_Ids:$choices, I64Attr:$slots, DefaultValuedAttr<I64Attr, "0">:$all);
  let results = (outs Train_Ids:$rounds);
  let assemblyFormat = "$choices `slots` $slots (`of` $all^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Train_RowsOfRoundOp : Train_TensorOp<"rows_of_round",
    ", k! b (g s!), x! b (g m!), x! b (g m!) -> k! b (g s!), x! b (g c!), x! b (g c!)",
    [InferTypeOpAdaptor, DeclareOpInterfaceMethods<SizedOpInterface>]> {
  let summary = "The rows of each block that belong to one round";
  let description = [{
    round: an i32 without dimensions, at least 0; 0 if it is omitted. rows: [k, b, s],
    choices: [x, b, m] and experts: [x, b, m] of `train.route`. Of each block, round r has the b c rows
    from r b c on, with c = `slots`. A round of `parts` chunks with c slots each has `parts` times as
    many rows; chunk p has the p-th of equal shares of the rows present, rounded up. Results are
    those of `train.route` with c slots per sequence: rows of other rounds and chunks are -1,
    slots without a row have the choice -1 and an expert that the block does not have. `piece` is that of
    `train.route`; g = s / piece divides c.
  }];
  let arguments = (ins Optional<Train_Ids>:$round, Train_Ids:$rows, Train_Ids:$choices, Train_Ids:$experts,
                       I64Attr:$slots, DefaultValuedAttr<I64Attr, "0">:$part,
                       DefaultValuedAttr<I64Attr, "1">:$parts,
                       DefaultValuedAttr<I64Attr, "0">:$piece);
  let results = (outs Train_Ids:$own_rows, Train_Ids:$own_choices, Train_Ids:$own_experts);
  let assemblyFormat = [{
    ($round^)? `of` $rows `,` $choices `,` $experts `slots` $slots (`part` $part `of` $parts^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Train_DispatchOp : Train_TensorOp<"dispatch", "", [InferTypeOpAdaptor, DeclareOpInterfaceMethods<SlotsOpInterface>,
    DeclareOpInterfaceMethods<VJPOpInterface>,
    DeclareOpInterfaceMethods<KernelOpInterface, ["movesElements"]>]> {
  let summary = "Dispatch: a row for each routing choice";
  let description = [{
    x: [b, s, h], one row per token for all of its choices, or [k, b, s, h], one per
    choice; choices: [x, b, m] and rows: [k, b, s] from `train.route`.
    y: [x, b, m, h], y[row] = x[choices[row]], 0 without a choice. Its gradient is
    `train.collect`, summed over the choices where they share a row. `piece` is that of `train.route`.
  }];
  let arguments = (ins Train_Tensor:$x, Train_Ids:$choices, Train_Ids:$rows,
                       DefaultValuedAttr<I64Attr, "0">:$piece);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = "$x `by` $choices `,` $rows attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Train_CollectOp : Train_TensorOp<"collect", "~x! b (g m!) h, k! b (g s!), x! b (g m!) -> k! b (g s!) h", [
    InferTypeOpAdaptor, DeclareOpInterfaceMethods<SlotsOpInterface>, DeclareOpInterfaceMethods<VJPOpInterface>,
    DeclareOpInterfaceMethods<KernelOpInterface, ["movesElements"]>]> {
  let summary = "Combine: the row of each routing choice";
  let description = [{
    x: [x, b, m, h], rows: [k, b, s] and choices: [x, b, m] from `train.route`.
    y: [k, b, s, h], y[choice] = x[rows[choice]], 0 without a row: the inverse of
    `train.dispatch`, which is its gradient. `piece` is that of `train.route`.
  }];
  let arguments = (ins Train_Tensor:$x, Train_Ids:$rows, Train_Ids:$choices,
                       DefaultValuedAttr<I64Attr, "0">:$piece);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = "$x `by` $rows `,` $choices attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

def Train_GroupedLinearOp : Train_TensorOp<"grouped_linear", "", [InferTypeOpAdaptor,
    ZeroPreservingOpInterface, DeclareOpInterfaceMethods<VJPOpInterface>], OwnFlops> {
  let summary = "Grouped GEMM: y = x W^T with the matrix of each row's expert";
  let description = [{
    x: [x, b, m, in], weight: [x e, out, in], experts: [x, b, m] i32;
    y: [x, b, m, out], y[row] = weight[block(row) e + experts[row]] x[row], 0 for an expert
    outside [0, e). With `transposed` the weight is [x e, in, out]. Element types as x;
    sums in f32 at least. Consecutive rows of one expert are one product (Gale et al. 2023).
    `filled` is the average share of slots that rows fill, by which FLOPs are counted.

    `blocks` is as of `train.linear`, for each expert's matrix [out, in]. For the gradient of the weight nothing is rounded
    along rows: which rows are neighbors depends on the mesh.
  }];
  let arguments = (ins Train_Tensor:$x, Train_Tensor:$weight, Train_Ids:$experts, UnitAttr:$transposed,
                       DefaultValuedAttr<F64Attr, "1.0">:$filled, OptionalAttr<DenseI64ArrayAttr>:$blocks);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = [{
    (`transposed` $transposed^)? $x `,` $weight `of` $experts (`blocks` $blocks^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "::mlir::Value":$weight, "::mlir::Value":$experts,
                                 "bool":$transposed, "::llvm::APFloat":$filled), [{
    build($_builder, $_state, x, weight, experts, transposed, filled, ::mlir::DenseI64ArrayAttr());
  }]>];
}

def Train_GroupedLinearGradOp : Train_TensorOp<"grouped_linear_grad", "~x b m o, ~x b m i, @e x b m -> (x e) o i", [
    AccumulatingOpInterface, SumOpInterface, InferTypeOpAdaptor, DeclareOpInterfaceMethods<SizedOpInterface>],
    OwnFlops, "equalButFloats"> {
  let summary = "Gradients of the experts' matrices: a sum of products of rows for each";
  let description = [{
    dy: [x, b, m, o], x: [x, b, m, i], experts: [x, b, m] as of `train.grouped_linear`,
    result: [x e, o, i] with x e = `count`, 0 for an expert without rows. `init` is added to
    the result, see `train.contract`, and so is the result's element type. `filled` as of
    `train.grouped_linear`.
  }];
  let arguments = (ins Train_Tensor:$dy, Train_Tensor:$x, Train_Ids:$experts, I64Attr:$count,
                       Optional<Train_Tensor>:$init, DefaultValuedAttr<F64Attr, "1.0">:$filled);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = [{
    $dy `,` $x `of` $experts (`init` $init^)? `count` $count attr-dict `:` functional-type(operands, results)
  }];
}

#endif // MESHWRIGHT_TRAIN_EXPERT_OPS
