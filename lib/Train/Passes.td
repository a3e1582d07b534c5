//===- Passes.td - the passes of floor 1 ------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TRAIN_PASSES
#define MESHWRIGHT_TRAIN_PASSES

include "mlir/Pass/PassBase.td"

/// A pass on the way to a phase; it refuses IR that is past it.
class PhasePass<string argument, string phase>
    : PassBase<argument, "::meshwright::PhasePass<::meshwright::Phase::" # phase # ">">;

def TrainVerifyModel : PhasePass<"train-verify-model", "train"> {
  let summary = "Checks the properties of a model that passes rely on, beyond those of single ops";
  let description = [{
    The pass refuses models that later passes would misread. Functions that `train.repeat` calls
    have a body, do not repeat themselves, are private, and neither read nor write variables:
    `@loss` reads them and passes them on. A function is repeated either a fixed or a
    data-dependent number of times, not both. No tensor is empty. Variables, inputs and outputs
    have different names, and no two parameters are stored in the same rows of a file's tensor.
    Each router's tokens are counted by one result.
  }];
}

def TrainAdapt : PhasePass<"train-adapt", "step"> {
  let summary = "Adds low-rank adapters (LoRA) and freezes everything else";
  let description = [{
    Each matrix product y = x W^T whose W is a target gets an adapter (Hu et al. 2022):
    y = x W^T + scale (dropout(x) A^T) B^T, with A [r, in] and B [out, r]. The scale is alpha / r, with
    `rslora` alpha / sqrt(r) (Kalajdzievski 2023). A starts uniform in [-1/sqrt(in), 1/sqrt(in)), B as
    zeros, so the first step computes the model as it was. All other parameters become
    `train.frozen`. Adapters of stacked weights are stacked. They have the names of PEFT in files and
    the mark `train.adapter`; `train.adapter_config` of the module is the text of adapter_config.json.

    A target names modules as PEFT's target_modules do: those whose path is the name or ends in it,
    behind a dot. `all-linear` stands for the weights of all products but those of experts, routers and
    the output layer. Weights that files have in one tensor, such as GPT-2's c_attn, are one module:
    they share A, and B is divided as the weights are.

    With `dora` (Liu et al. 2024) the rows of W + scale B A are divided by their norms and multiplied by
    magnitudes, which begin as the norms of W's rows. The ops that compute norms are f32, and
    differentiation takes them for constants (`train.constant`). Modules of `modules_to_save` are trained
    whole and stored with the adapters, by names in which PEFT's prefix precedes the model's.

    The pass refuses a target that names no module, or some layers of a stack only, and modules whose
    weights are used by anything but such products, or belong to experts. Of `modules_to_save` it refuses
    those with adapters, experts, and embeddings that are the head, too.
  }];
  let options = [Option<"lora", "lora", "::meshwright::Adapters", "",
                        "adapters, e.g. r=8,alpha=16,targets=q_proj+v_proj">];
}

def TrainFreeze : PhasePass<"train-freeze", "step"> {
  let summary = "Freezes parameters by their names in files";
  let description = [{
    Parameters whose tensors' names in files match one of `patterns` get the mark `train.frozen`: a
    step does not change them. `train-autodiff` computes no gradient of them, so they are in no norm,
    have no update, no states and no master, and nothing of them is communicated but what computing
    with them needs. A frozen bias that balances experts is not moved either.

    The pass refuses a pattern that matches no parameter, or some of the tensors of one only, such as
    one layer of a stack, and patterns that leave nothing to train.
  }];
  let options = [Option<"patterns", "patterns", "::meshwright::NamePatterns", "",
                        "names of parameters, e.g. *embed*;*.mlp.*">];
}

def TrainSplitLayers : PhasePass<"train-split-layers", "step"> {
  let summary = "Splits the layers into the chunks of a pipeline";
  let description = [{
    If a chunk begins inside the layers that a `train.repeat` of `@loss` runs, the repeat
    becomes two, each with its own function and its own stacked variables, so that
    gradients, accumulators and optimizer states of different chunks are separate from the
    start. Initial weights and dropout stay those of the unsplit model: storage names and
    `train.fold_in` count from the chunk's first layer. `dist-split-stages` later assigns
    whole repeats to stages.

    The split points are `cuts`, the first layers of the chunks after the first. If the last
    one is the number of layers, the last chunk has the head alone, behind a layer `@head.pass`
    that returns its arguments. Without them the pass chooses those that minimize the cost of the most expensive chunk, and among
    these the ones that balance FLOPs and bytes of parameters best (dynamic programming over
    the layers; the embedding counts towards the first layer, the head towards the last). If
    there are several chunks, each repeat has the number of its chunk in `train.chunk`.

    `every` is the number of layers in a group of activation checkpointing: one number, or one
    for each chunk. Layers at the end of a run that do not fill a group become a run of their
    own, which is a shorter group.

    The pass refuses more chunks than layers (and a head alone), and split points that are not ascending layer
    numbers, one fewer than chunks.
  }];
  let options = [
    Option<"chunks", "chunks", "int64_t", "1", "total number of chunks: pipeline stages times chunks per stage">,
    Option<"cuts", "cuts", "::meshwright::LayerNumbers", "", "first layers of the chunks after the first, e.g. 2,4">,
    ListOption<"every", "every", "int64_t",
           "layers of a group, 0 for the square root of the layers; one number, or one for each chunk, e.g. 3,1">];
}

def TrainMixedPrecision : PhasePass<"train-mixed-precision", "step"> {
  let summary = "Stores parameters and activations in bf16 or f16";
  let description = [{
    The pass gives every f32 parameter the narrow type, and every value of `@loss` and of
    the functions it repeats that depends on a parameter: 2 bytes an element for weights,
    for the residual stream and for residuals. An element type says how a value is stored;
    every op computes in f32 at least and rounds its results once (norms, softmax, sums
    inside matrix products, the loss), see the dialect. An op that needs another type says
    so by `PrecisionOpInterface` (the tables of rotary positions stay f32), and the pass
    inserts a cast for each operand of another type. Ops and parameters that a model marks with
    `train.full_precision`, such as routers, stay f32, and so do values that layers carry if they
    come from such ops; the pass removes the mark. Scalars of scalars stay f32. It runs
    before differentiation, so that gradients of activations have the types of the activations.

    Gradients of parameters have the type `grad-dtype`, f32 or bf16, in which they are
    summed over microbatches and over devices. `train-build-optimizer` keeps an f32 copy of
    each narrow parameter and updates that copy (Micikevicius et al. 2018; Rajbhandari et
    al. 2020 count the bytes: 2 and 12 a parameter, and 2 or 4 for its gradient). With fp16
    the loss is scaled: see `train-autodiff`. fp8 is bf16 here:
    `train-quantize-products` quantizes the factors of products.

    With precision f32 no type changes. The pass refuses parameters that are not f32 and
    repeated functions whose carried values would change type.
  }];
  let options = [
    Option<"precision", "precision", "::meshwright::MixedPrecision", "::meshwright::MixedPrecision::f32", "f32, bf16 or fp16">,
    Option<"gradDtype", "grad-dtype", "::meshwright::GradientType", "::meshwright::GradientType::f32",
           "element type of parameters' gradients: f32, or bf16 with precision bf16">];
}

def TrainQuantizeProducts : PhasePass<"train-quantize-products", "step"> {
  let summary = "Quantizes activations and weights for matrix products in 8 bits (fp8)";
  let description = [{
    In each layer, that is in functions that `train.repeat` calls, a `train.linear` of bf16 whose widths are
    multiples of 16, which matrix units need, becomes a product of its quantized operands. Everything else
    stays in bf16: embedding and output layer, which are no part of a layer,
    norms, attention, routers (products on whose results `train.top_k` depends) and adapters (`--lora`).

    With the recipe `tensor` (per-tensor current scaling) an operand is quantized to f8E4M3FN with one scale,
    a power of two that its largest magnitude (amax) gives, and the product is a `train.scaled_contract`; the gradients
    of products are quantized to f8E5M2. What several products read is quantized once. An amax is a maximum over the
    whole tensor: where devices have parts of it, it becomes a partial maximum that `dist-partition` completes, so
    that no mesh changes a scale. Products of experts (`train.grouped_linear`) stay in bf16: their rows come in rounds,
    which are others on every mesh, and so would be their amax.

    With the recipe `delayed` (Transformer Engine's `DelayedScaling`; Micikevicius et al. 2022, section 3.3) the types are the same,
    but a scale is made of the largest amax of the last 1,024 steps: no product waits for an amax, and a number beyond what
    its scale allows saturates. A weight has states, `input_amax`, `weight_amax` and `gradient_amax`, of a number for
    each layer, from which scales are made; `train.observe` and `train.quantize_gradient` say of what each is the largest
    magnitude. An input that several products read belongs to the first one's weight. Differentiation makes that the state's gradient, `train-accumulate` takes the largest of all
    microbatches, and `train-build-optimizer` adds histories, `input_amax_history` and so on, of 1,024 numbers. A state
    that is 0, as in the first step, gives the scale 1. Products stay in bf16 if another layer or product reads their weight.

    With the recipes `block` (DeepSeek-AI 2024, "DeepSeek-V3 Technical Report", section 3.3) and `mxfp8` (Rouhani et al.
    2023, "Microscaling Data Formats for Deep Learning") blocks have a scale each, and everything is f8E4M3FN: with
    `block` 128 elements of an activation or a gradient and 128 x 128 of a weight, with `mxfp8` 32 elements of each,
    along what is summed. Products are exact in bf16, so operands are dequantized for them, and `blocks` of
    `train.linear` and `train.grouped_linear` makes the gradient's products read such numbers too, but for those of
    experts' weights. Products whose widths, or whose numbers of tokens in a sequence, are no multiple of the block stay in bf16.

    The pass runs before differentiation, so that gradients read the
    quantized operands, which the forward may keep in place of those in bf16.

    `train.precision` of the module becomes "fp8". The pass refuses a module with another precision than bf16,
    and a model without such products.
  }];
  let options = [Option<"recipe", "fp8-recipe", "::meshwright::Fp8Recipe", "::meshwright::Fp8Recipe::tensor",
                        "how operands are scaled: tensor, block, delayed or mxfp8">];
}

def TrainQuantizeWeights : PhasePass<"train-quantize-weights", "step"> {
  let summary = "Stores frozen weights of layers in 8 bits (weight-only int8)";
  let description = [{
    A frozen weight [out, in] that layers, functions that `train.repeat` calls, use in products `train.linear` becomes codes of
    8 bits (`i8`) with a scale in f32 for each row, an output channel: its state `scale`. Layers get a slice of both, and
    `train.dequantize_rows` makes the weight, in the type that it had, beside the op that uses it. So codes are what
    is stored and what devices send each other, and one layer's weights at a time are dequantized. No gradient
    passes to a frozen weight, and the backward dequantizes again.

    Embedding and output layer, which are no part of a layer, routers (products on whose results `train.top_k` depends),
    vectors and weights of experts stay as they are. Who loads weights quantizes them
    (`include/meshwright/runtime/Int8Weights.h`): by rows of the whole model's weight, so that no mesh changes a number.

    The pass runs after `train-mixed-precision` and before differentiation. It refuses a model without such weights.
  }];
}

def TrainCountBatch : PhasePass<"train-count-batch", "step"> {
  let summary = "Computes statistics of the whole batch before the first microbatch is trained on";
  let description = [{
    A `train.batch_sum` is the sum of a value, such as the number of tokens routed to each expert,
    over all microbatches. With one microbatch it is that value. With several, the pass creates
    `@loss.counts`, the part of `@loss` on which these values depend, which returns them; in `@loss`
    their sums become arguments, marked `train.batch_sum = N` for result N. `train-accumulate` runs
    `@loss.counts` for all microbatches before it trains on the first. If layers have a
    `train.batch_sum`, functions `@layer.counts` stack its operand, and layers receive slices of the
    sums.

    Other values that layers carry, such as sums of losses, are not computed. The counts come from
    the same forward that is differentiated, with the same dropout.

    The pass refuses a `train.batch_sum` that depends on another one, and one in a function that
    layers themselves repeat.
  }];
}

def TrainAutodiff : PhasePass<"train-autodiff", "step"> {
  let summary = "Builds the gradients of @loss with respect to every parameter it reads";
  let description = [{
    The pass adds `@loss.gradients`, which computes the loss and one gradient per parameter
    (results marked `train.gradient_of = @parameter`), by reverse-mode differentiation with
    each op's own `VJPOpInterface`. A function that `train.repeat` calls is differentiated
    once: `@layer` yields `@layer.forward`, which also returns the residuals, and
    `@layer.backward`, which a reversed `train.repeat` calls. Both repeats and both functions
    say which they are: `train.role` is `forward` or `backward`.

    Residuals, the values saved for the backward, are the results of costly ops (contractions,
    attention) and carried values that the backward needs. A memory-bound value (norm,
    activation function, bias) is recomputed in the backward if its operands are saved anyway.
    If an operand would have to be saved for it, the smaller of the two is saved, or the value
    itself if the forward writes it to memory anyway (because it has several users, or a library
    call among them). Outputs of norms and activation functions therefore take no memory. With
    `residuals` `written` they do: the pass saves what the forward writes to memory anyway and
    the backward would write again, for an op that is not fused with it.

    The gradient of a parameter has the type that the module's `train.grad_type` names (the
    parameter's own type without it). A gradient that is a sum is rounded to that type;
    other gradients are cast. With `train.loss_scaling` the cotangent of the loss is an
    input, `loss_scale`, instead of 1.

    Differentiation ends at ops that are constant where they are defined
    (`ConstantOpInterface`), such as counts of tokens, and a bias with a `train.balance_rate` has
    no gradient.

    Nothing is saved for a repeat whose count is a value (`times`): its backward runs as many
    iterations, in the same order, and recomputes what it needs. Therefore an iteration may not
    depend on carried values, and one that reads its index may only add to them. Gradients of
    values that its iterations share are accumulated in f32 and rounded, if at all, after the last
    iteration.

    The pass refuses other repeats of this kind, and ops without a derivative on a path from a
    parameter to the loss.
  }];
  let options = [
    Option<"residuals", "residuals", "::meshwright::ResidualChoice", "::meshwright::ResidualChoice::automatic",
           "cheap values that are saved instead of recomputed: least, written; auto is least">];
}

def TrainBlockGradients : PhasePass<"train-block-gradients", "step"> {
  let summary = "Computes gradients of matrices for each block of the batch";
  let description = [{
    For gradient compression, which `train-build-optimizer` adds. The gradient of a matrix [m, n] is a sum of products over
    the sequences of a microbatch. The pass divides these into the blocks of `method`, in order, and makes the blocks an index of the product, so
    that the gradient is [blocks, m, n], of repeated layers [layers, blocks, m, n]. Block d of a program on that many
    data-parallel devices is what device d computes.

    It does so for parameters that are a matrix (in each layer) of which compression makes less: of m n > 2 RANK (m + n) elements with powersgd:RANK, and with
    topk:DENSITY where elements and their columns are fewer numbers than a row has; with onebit rows have a multiple of 8 elements. Their gradient has to be one `train.contract` whose operands have sequences
    first. Others stay sums over the batch: of vectors, of embeddings that are looked up, of experts, and of adapters
    of adapted weights.

    The pass refuses a program without such a matrix, and microbatches that do not divide by `blocks`.
  }];
  let options = [
    Option<"method", "method", "::meshwright::GradientCompression", "",
           "the compression that the blocks are for, and how many they are, e.g. powersgd:4,blocks=2">,
  ];
}

def TrainAccumulate : PhasePass<"train-accumulate", "step"> {
  let summary = "Makes the microbatch loop explicit";
  let description = [{
    The pass turns `@loss.gradients` over one microbatch into `@gradients` over
    [microbatches, ...] inputs. With more than one microbatch the body becomes
    `@microbatch`, which a `train.repeat` calls; the repeat carries the loss and one
    accumulator per gradient. The gradients of a repeated layer are accumulated inside its
    backward function, slice by slice, so that no second set of gradients exists. The pass
    also makes `@eval`, which computes the loss alone, without dropout and without counts of tokens.

    If `@loss` has the input `microbatches`, a `tensor<i32>` that it does not use, the loops of `@gradients` run
    over as many microbatches as that says, from 1 to the module's number: the batch of a step may be smaller than
    the program's. `@eval` always reads all of them and has no such input.

    Arguments marked `train.batch_sum` receive the sums of `@loss.counts` over all microbatches,
    from a separate loop before the other one, whose role is `count`. `@eval` has zeros there,
    because losses that depend on them are not part of an evaluation's loss.
  }];
}

def TrainBuildOptimizer : PhasePass<"train-build-optimizer", "step"> {
  let summary = "Adds the optimizer";
  let description = [{
    The pass makes `@step`: gradients, their global norm, the clip factor and the update of
    every parameter, by the row of `optimizer` in the table of optimizers. Each of the row's
    states is a variable, as `<parameter>.momentum` and `<parameter>.variance` of AdamW. Weight decay
    applies to parameters with two or more dimensions (the layer dimension not counted). The learning
    rate, the row's hyperparameters and its bias corrections are inputs of `@step`.

    `optimizer-groups` changes that by the names of parameters in files: a group is a pattern and the
    factors of the learning rate and of the weight decay, which updates of its parameters have in
    `lr_factor` and `decay_factor`. The pass refuses a group without parameters, and one with some
    of a variable's tensors only, such as one layer of a stack.

    Parameters that are wider than those of the base model of muP say so (`train.fan_in_multiplier`,
    `train.fan_out_multiplier`). The optimizer's rule gives them factors, which multiply those of their
    group, and one of the input `eps`. The pass refuses optimizers without a rule.

    `optimizer` muon updates matrices inside of repeated layers along their orthogonalized momentum and
    all other parameters (embeddings, the head, vectors) by AdamW. For each such parameter the pass makes
    a repeat over its layers with the role `update`, whose function has five Newton-Schulz steps of
    contractions, in f32, or in bf16 where the model computes in bf16. Experts, and heads with tensors
    of their own, are matrices of their own. `muon-scale` and `muon-coefficients` are its options. `normuon`
    divides the rows of each result by the root of an average of their mean squares, the state `<parameter>.row`.

    `optimizer` adafactor keeps averages of squared gradients by row and column of each matrix, as
    `<parameter>.row` and `<parameter>.column`, and of vectors by element. Reductions over the last dimensions of
    all layers at once compute them, and bound the root mean square of each direction by 1; `adafactor-scaled`
    multiplies it by that of the matrix. A state that is a mean over a dimension has one element there.

    `optimizer` schedule-free-adamw takes gradients at the sum of each parameter and its state
    `<parameter>.y_minus_x`. The sums are computed once, at the start of `@step`, in the type of the parameter;
    loops over microbatches share them. `@eval` reads parameters. The pass refuses `ema` and `moments-dtype` bf16
    with it.

    `optimizer` adamw-8bit stores the moments of parameters whose tensors in files have 4096 elements or more as codes,
    `<parameter>.momentum` of i8, with the largest magnitude of each block, `<parameter>.momentum_amax`, and the variance likewise.
    A block is a part of a row: its length is the largest divisor up to 256 of an eighth of the row, or of the row where that is
    below 64. Rows without blocks of 8 elements stay in f32. The update computes in f32. The pass refuses `moments-dtype` bf16 with it.

    A parameter in bf16 or f16 gets one more state, its master weights `<parameter>.master` in
    f32: the update reads and writes the master, and the parameter becomes its rounded value. With
    `moments-dtype` bf16, the optimizer's states are stored in bf16: the update computes in f32 and
    rounds each of them once.

    With `ema` each parameter gets the state `<parameter>.ema`, the average of its values after updates, in
    f32: the t-th of them moves it by (1 - d) / (1 - d^t) of the difference, d being the input `ema_decay` and
    1 - d^t the input `ema_correction`. With `eval-ema` too, `@eval` reads the averages in place of the parameters.

    A gradient in blocks (`train-block-gradients`) is compressed as `grad-compression` says. Norm, clip factor and update are of what this makes. What it leaves
    out of each block is added to the block of the next step: the state `<parameter>.grad_residual`. With topk:DENSITY the gradient is the sum of the
    blocks' largest elements in magnitude. With onebit it is the one with which the optimizer's average of gradients becomes signs of one magnitude for each group of elements
    (1-bit Adam, Tang et al. 2021), or where the optimizer has no such average the sum of such signs; the state `<parameter>.grad_server_residual` is what is left out of the sum,
    and gradients are not clipped. With powersgd:RANK it is approximated by two factors of RANK columns (PowerSGD, Vogels et al. 2019): the
    state `<parameter>.grad_factor` is the right factor, with which the next step begins, at first normal random numbers. The left factor is made orthonormal by a
    repeat over its columns, whose role is `update`.

    With `train.loss_scaling` gradients arrive multiplied by the input `loss_scale`. The
    pass divides the norm and the clip factor by it, so that updates and the output
    `grad_norm` are those of an unscaled loss.

    If the norm is not finite, because a gradient overflowed on some device, a router failed or training
    diverged, `train.guard` leaves every variable unchanged: a step that fails leaves the last good state.

    Counts of tokens (results of `@loss` marked `train.tokens_of = @router`, one per layer and
    expert) are stored in the state `<router>.tokens`. If they balance a bias
    (`train.balances = @bias`), `train.balance` updates it at the rate `train.balance_rate` of
    the bias.
  }];
  let options = [
    Option<"optimizer", "optimizer", "const ::meshwright::train::Optimizer *",
           "::meshwright::train::optimizers().front()", "row of the table of optimizers">,
    Option<"momentsDtype", "moments-dtype", "::meshwright::MomentType", "::meshwright::MomentType::f32",
           "type in which the optimizer's states are stored: f32 or bf16">,
    Option<"groups", "optimizer-groups", "::meshwright::ParameterGroups", "",
           "parameter groups, e.g. *.bias:lr=2,decay=0;lm_head.*:lr=0.5">,
    Option<"muonScale", "muon-scale", "::meshwright::MuonScale", "::meshwright::MuonScale::matchRmsAdamw",
           "factor of orthogonalized matrices: match-rms-adamw or keller">,
    Option<"muonCoefficients", "muon-coefficients", "::meshwright::MuonCoefficients",
           "::meshwright::MuonCoefficients::keller",
           "polynomials of Newton-Schulz steps: keller or polar-express">,
    Option<"ema", "ema", "bool", "false", "keep an exponential moving average of each parameter">,
    Option<"evalEma", "eval-ema", "bool", "false", "have `@eval` read these averages">,
    Option<"gradCompression", "grad-compression", "::meshwright::GradientCompression", "",
           "how gradients in blocks are added, e.g. powersgd:4, topk:0.01 or onebit">,
  ];
}

def TrainBuildDecoder : PhasePass<"train-build-decoder", "step"> {
  let summary = "Makes the program that generates tokens";
  let description = [{
    The pass makes `@step` of `@loss`: it returns the logits of its tokens, and keeps keys and values
    in variables `cache.N`, which hold `length` tokens. The model is one sequence's, imported with
    --packed for its positions, and without dropout.

    A call reads some tokens of the sequence: `tokens`, their `positions`, and the first of these,
    `first_position`. Their keys and values are added to rows of the caches, which are zero before,
    and attention reads all rows up to its query's position. A token that pads the call has a
    position outside of the caches: its row goes nowhere, and its logits mean nothing. Recurrences read and write
    variables `state.NAME`, which the model is imported with. `train.max_positions` becomes `length`.

    Of an encoder-decoder model, `@encode` computes what depends on `source` and `source_lengths` alone:
    the encoder, and the keys and values of each layer's attention to what it gives. `@step` reads these from
    variables `source.N`, and of the inputs the lengths alone. Numbers that attention adds to scores by distance
    are made for `length` tokens.

    The pass is not in the order of passes: `compile` makes an executable's second program by it, a
    rank's own, for `--generate`. It refuses models that are not causal, and what is for training alone.
  }];
  let options = [Option<"length", "length", "int64_t", "1024", "tokens that caches hold">];
}

def TrainVerify : PhasePass<"train-verify", "step"> {
  let summary = "Checks that floor 1 is complete";
  let description = [{
    The verifier of the floor: `@step` and `@eval` exist and name their inputs and outputs, states have
    the shapes of their parameters,
    `@step` writes every parameter that is not frozen and no other, `@eval` writes no variable, repeats have a `train.role`,
    all layers or none have a `train.chunk`, tokens are masked by a share and a mask token and
    `@step` counts their targets, no `train.batch_sum` is left, and no op belongs to another floor.
  }];
}

#endif // MESHWRIGHT_TRAIN_PASSES
