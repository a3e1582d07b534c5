//===- TrainLossOps.td - the loss and the optimizer ------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TRAIN_LOSS_OPS
#define MESHWRIGHT_TRAIN_LOSS_OPS

include "Train/TrainOpBase.td"

//===----------------------------------------------------------------------===//
// Loss
//===----------------------------------------------------------------------===//

def Train_CrossEntropyOp : Train_TensorOp<"cross_entropy", "... v!, @v ... -> , ...", [InferTypeOpAdaptor,
    DeclareOpInterfaceMethods<VJPOpInterface>, DeclareOpInterfaceMethods<SplittableOpInterface>,
    DeclareOpInterfaceMethods<NeutralPaddingOpInterface>, DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "Scaled sum of the tokens' cross-entropies";
  let description = [{
    logits: [..., v], targets: [...] i32. loss = scale * sum over tokens
    of (lse - logits[target]); with scale = 1 / tokens of the global batch, the
    sum over devices and microbatches is the mean. lse: [...], the log of the sum
    of exponentials, saved for the gradient instead of probabilities. Both are
    f32 if the logits are narrower. A target outside [0, v) adds no loss (torch's
    ignore_index), and its lse is infinite, which makes its gradient 0.
    With `per_token` the loss is [...], scale * (lse - logits[target]) of each token, for
    losses that are no sum over tokens (torch's reduction="none").
  }];
  let arguments = (ins Train_Tensor:$logits, Train_Ids:$targets, F64Attr:$scale, UnitAttr:$per_token);
  let results = (outs Train_Tensor:$loss, Train_Tensor:$lse);
  let assemblyFormat = [{
    $logits `,` $targets `scale` $scale (`per_token` $per_token^)? attr-dict `:` functional-type(operands, results)
  }];
}

def Train_CrossEntropyGradOp : Train_TensorOp<"cross_entropy_grad", "... v, @v ..., ..., -> ... v", [
    InferTypeOpAdaptor, DeclareOpInterfaceMethods<ZeroPreservingOpInterface, ["preservesZero"]>,
    DeclareOpInterfaceMethods<NeutralPaddingOpInterface>, DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "dlogits = dloss * scale * (exp(logits - lse) - onehot(target))";
  let description = [{
    logits and the result: [..., v], targets and lse: [...] as `train.cross_entropy`
    had and gave them, dloss: a scalar, or [...] if the loss was per token. Probabilities exist one
    row at a time. A target outside [0, v) is no column of these logits; where lse is infinite all
    of the row is 0.
  }];
  let arguments = (ins Train_Tensor:$logits, Train_Ids:$targets, Train_Tensor:$lse,
                       Train_Tensor:$dloss, F64Attr:$scale);
  let results = (outs Train_Tensor:$dlogits);
  let assemblyFormat = "$logits `,` $targets `,` $lse `,` $dloss `scale` $scale attr-dict `:` functional-type(operands, results)";
}

def Train_PickOp : Train_EinsumOp<"pick", "~... v, @v ... -> ...", [
    ZeroPreservingOpInterface, DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "One element of each row";
  let description = [{
    x: [..., v], ids: [...] i32, y: [...]: x[.., id], 0 for an id outside [0, v).
    Cross-entropy's part of a sharded vocabulary; made after differentiation.
  }];
  let arguments = (ins Train_Tensor:$x, Train_Ids:$ids);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = "$x `,` $ids attr-dict `:` functional-type(operands, results)";
}

def Train_TokenLossOp : Train_TensorOp<"token_loss", "..., ..., ... -> , ...", [
    InferTypeOpAdaptor, DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "Cross-entropy's last steps, from each token's two logarithms";
  let description = [{
    log_sum: [...], the logarithm of the token's sum of exponentials; picked: [...],
    its target's logit; targets: [...] i32. loss and lse as of
    `train.cross_entropy` with `below` columns: loss = scale * sum of (log_sum -
    picked) over targets in [0, below), lse = log_sum for those, else infinite. With `per_token`
    the loss is that of each token, 0 for the others.
  }];
  let arguments = (ins Train_Tensor:$log_sum, Train_Tensor:$picked, Train_Ids:$targets,
                       I64Attr:$below, F64Attr:$scale, UnitAttr:$per_token);
  let results = (outs Train_Tensor:$loss, Train_Tensor:$lse);
  let assemblyFormat = [{
    $log_sum `,` $picked `,` $targets `below` $below `scale` $scale (`per_token` $per_token^)? attr-dict `:` functional-type(operands, results)
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
    Scalars; the factor of gradients in gradient clipping, as in
    torch.nn.utils.clip_grad_norm_.
  }];
  let arguments = (ins Train_ScalarTensor:$norm, Train_ScalarTensor:$limit);
  let results = (outs Train_ScalarTensor:$factor);
  let assemblyFormat = "$norm `,` $limit attr-dict `:` functional-type(operands, results)";
}

def Train_UnscaleOp : Train_EinsumOp<"unscale", "~..., -> ...", [DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "x / scale: undoes loss scaling";
  let description = [{
    x of any shape, scale a scalar: the loss scale, which keeps gradients
    in the range of f16 (Micikevicius et al. 2018).
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
    global gradient norm, which is infinite or NaN if any gradient is. This skips
    the updates of a step that overflows.
  }];
  let arguments = (ins Train_Any:$updated, Train_Any:$previous, Train_ScalarTensor:$check);
  let results = (outs Train_Any:$y);
  let assemblyFormat = "$updated `,` $previous `if_finite` $check attr-dict `:` functional-type(operands, results)";
}

def Train_LerpOp : Train_EinsumOp<"lerp", "..., ..., -> ...", [ZeroPreservingOpInterface,
    DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "Linear interpolation: (1 - weight) from + weight to";
  let description = [{
    from, to and the result have one shape; weight is a scalar. The average of gradients and the
    average of weights are steps of it.
  }];
  let arguments = (ins Train_Tensor:$from, Train_Tensor:$to, Train_ScalarTensor:$weight);
  let results = (outs Train_Tensor:$y);
  let assemblyFormat = "$from `to` $to `by` $weight attr-dict `:` functional-type(operands, results)";
}

def Train_UpdateOp : Train_TensorOp<"update", "", [InferTypeOpAdaptor, UpdateOpInterface, ZeroPreservingOpInterface,
    DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "An optimizer's update of a parameter and its states";
  let description = [{
    `optimizer` is a row of the table of optimizers (dialects/Train/Optimizer.h), which has
    the formula. The operands are the parameter, its gradient, the states of the row in its order,
    the direction if the row steps along one that whole matrices have (Muon, Adafactor), and scalars: the factor that clips the gradient, the learning rate, and the row's
    hyperparameters and bias corrections. The parameter, its gradient, its states, the direction and the results
    have one shape. Weights decay only with `decay`. The gradient may have another float type.
    `lr_factor` and `decay_factor` multiply the learning rate and the weight decay; both are 1 where
    they are not given.

    ```mlir
    %new, %new_momentum = train.update "lion" decay %w, %g, %momentum, %clip, %lr, %beta1, %beta2, %weight_decay : ...
    ```
  }];
  let arguments = (ins StrAttr:$optimizer, Train_Tensor:$parameter, Train_Tensor:$gradient, Variadic<Train_Tensor>:$others,
                       UnitAttr:$decay, OptionalAttr<F64Attr>:$lr_factor, OptionalAttr<F64Attr>:$decay_factor);
  let results = (outs Train_Tensor:$updated, Variadic<Train_Tensor>:$states);
  let assemblyFormat = [{
    $optimizer (`decay` $decay^)? $parameter `,` $gradient `,` $others attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    static bool isCompatibleReturnTypes(::mlir::TypeRange inferred, ::mlir::TypeRange actual) {
      return equalButEncoding(inferred, actual);
    }
    ::mlir::OpOperand *getDirection();
  }];
}

#endif // MESHWRIGHT_TRAIN_LOSS_OPS
