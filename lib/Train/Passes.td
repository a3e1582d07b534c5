//===- Passes.td - the passes of floor 1 ------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TRAIN_PASSES
#define MESHWRIGHT_TRAIN_PASSES

include "mlir/Pass/PassBase.td"

/// A pass on the way to a stage; it refuses IR that is past it.
class StagedPass<string argument, string stage>
    : PassBase<argument, "::meshwright::StagedPass<::meshwright::Stage::" # stage # ">">;

def TrainCutLayers : StagedPass<"train-cut-layers", "step"> {
  let summary = "Cuts the layers into runs, one or more for each chunk of a pipeline";
  let description = [{
    Where a chunk begins inside the layers that a `train.repeat` of `@loss` runs, the
    repeat becomes two, each with its own function and its own stacked variables, so
    that gradients, accumulators and optimizer states of different chunks are different
    from the start. Initial weights and dropout stay those of the uncut model: storage
    names and `train.fold_in` count from the chunk's first layer. `dist-split-stages`
    then places whole repeats.

    The cuts are `cuts`, the first layers of the chunks after the first, or those that
    make the most expensive chunk cheapest, and of these the ones most even in work and
    bytes of parameters (dynamic programming over the layers' FLOPs and bytes; the
    embedding counts to the first layer, the head to the last). Each repeat
    has the number of its chunk as the attribute `train.chunk`, if there are several.

    `every` says how many layers rematerialization takes together: one number, or one
    for each chunk. Layers of a run that make no whole group at its end become a run of
    their own, which is a shorter group.

    Refuses more chunks than layers, and cuts that are not ascending layer numbers, one
    fewer than chunks.
  }];
  let options = [
    Option<"chunks", "chunks", "int64_t", "1", "parts: pipeline stages times chunks a stage">,
    Option<"cuts", "cuts", "::meshwright::LayerNumbers", "", "first layers of the parts after the first, e.g. 2,4">,
    ListOption<"every", "every", "int64_t",
           "layers of a group, 0 for the square root of the layers; one number or one a chunk, e.g. 3,1">];
}

def TrainMixedPrecision : StagedPass<"train-mixed-precision", "step"> {
  let summary = "Stores parameters and activations in bf16 or f16";
  let description = [{
    Gives every f32 parameter, and all values of `@loss` and of the functions it
    repeats that depend on one, the narrow type: 2 bytes an element for weights, for
    the residual stream and for what the backward keeps. An element type says how a
    value is stored; every op computes in f32 at least and rounds its results once
    (norms, softmax, sums inside matrix products, the loss), see the dialect. What
    wants another type says so by `PrecisionOpInterface` (the tables of rotary
    positions stay f32); casts are placed where an operand has not the type its op
    wants. Runs before differentiation, so that gradients of activations have the
    types of the activations.

    Gradients of parameters have the type `grad-dtype`, f32 or bf16: in it they are
    summed over microbatches and over devices. `train-build-optimizer` keeps a f32
    copy of each narrow parameter, which is what it updates (Micikevicius et al.
    2018; Rajbhandari et al. 2020 count the bytes: 2 and 12 a parameter, and 2 or 4
    for its gradient). With fp16 the loss is scaled: see `train-autodiff`.

    With precision f32 nothing changes. Refuses parameters that are not f32 and
    repeated functions whose carried values would change type on the way.
  }];
  let options = [
    Option<"precision", "precision", "::meshwright::MixedPrecision", "::meshwright::MixedPrecision::f32", "f32, bf16 or fp16">,
    Option<"gradDtype", "grad-dtype", "::meshwright::GradientType", "::meshwright::GradientType::f32",
           "element type of parameters' gradients: f32, or bf16 with precision bf16">];
}

def TrainAutodiff : StagedPass<"train-autodiff", "step"> {
  let summary = "Builds the gradients of @loss with respect to every parameter it reads";
  let description = [{
    Adds `@loss.gradients`, which computes the loss and one gradient per parameter
    (results marked `train.gradient_of = @parameter`), by reverse-mode
    differentiation with each op's own `VJPOpInterface`. A function that
    `train.repeat` calls is differentiated once: `@layer` gives `@layer.forward`,
    which also returns what the backward needs, and `@layer.backward`, which a
    reversed `train.repeat` calls. Both repeats and both functions say which they
    are: `train.role`, `forward` or `backward`.

    What is kept between the two: results of costly ops (contractions, attention)
    and carried values, as they are needed. A memory-bound value (norm, activation,
    bias) is computed again in the backward when what it is computed from is kept
    anyway. When that would have to be kept for it, what is smaller is kept, and the
    value itself if the forward writes it to memory in any case (several users, or a
    library call among them). So neither norm outputs nor activation outputs take
    memory. With `residuals` `written` they do: every value that the forward writes in
    any case is kept, and the backward writes none of them again.

    The gradient of a parameter has the type that the module's `train.grad_type`
    names (the parameter's own without it). Where it is a sum, the sum is rounded to
    that type; elsewhere it is cast. With `train.loss_scaling` the cotangent of the
    loss is an input, `loss_scale`, instead of 1.

    Refuses ops without a derivative on a path from a parameter to the loss.
  }];
  let options = [
    Option<"residuals", "residuals", "::meshwright::ResidualChoice", "::meshwright::ResidualChoice::automatic",
           "values kept that are cheap to compute again: least, written; auto is least">];
}

def TrainAccumulate : StagedPass<"train-accumulate", "step"> {
  let summary = "Makes the microbatch loop explicit";
  let description = [{
    From `@loss.gradients` over one microbatch makes `@gradients` over
    [microbatches, ...] inputs. With more than one microbatch the body becomes
    `@microbatch`, called by a `train.repeat` that carries the loss and one
    accumulator per gradient; the gradients of a repeated layer are accumulated
    inside its backward function, slice by slice, so that no second set of
    gradients exists. Also makes `@eval`, the loss alone, without dropout.
  }];
}

def TrainBuildOptimizer : StagedPass<"train-build-optimizer", "step"> {
  let summary = "Adds the parameter update";
  let description = [{
    Makes `@step`: gradients, their global norm, the clip factor and the update of
    every parameter. AdamW adds the variables `<parameter>.momentum` and
    `<parameter>.variance`; weight decay applies to parameters with two or more
    dimensions (layers not counted). Learning rate and all other optimizer scalars
    are inputs of `@step`.

    A parameter in bf16 or f16 gets a third state, `<parameter>.master`, in f32: the
    update reads and writes that, and the parameter becomes its rounded value.

    With `train.loss_scaling` gradients come multiplied by the input `loss_scale`. The
    norm and the clip factor are divided by it, so that updates and the output
    `grad_norm` are as without; and when the norm is not finite (some gradient
    overflowed, on whichever device) `train.guard` leaves every variable as it was.
  }];
  let options = [Option<"optimizer", "optimizer", "::meshwright::Optimizer", "::meshwright::Optimizer::adamw", "sgd or adamw">];
}

def TrainVerify : StagedPass<"train-verify", "step"> {
  let summary = "Checks that floor 1 is complete";
  let description = [{
    Closes the floor: `@step` and `@eval` exist and name their inputs and outputs,
    every parameter is written by `@step`, `@eval` writes no variable, repeats have a
    `train.role`, all layers or none a `train.chunk`, and nothing belongs to another floor.
  }];
}

#endif // MESHWRIGHT_TRAIN_PASSES
