//===- Passes.td - the passes of floor 1 ------------------------------------===//
//
// Part of Meshwright, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
#ifndef MESHWRIGHT_TRAIN_PASSES
#define MESHWRIGHT_TRAIN_PASSES

include "mlir/Pass/PassBase.td"

def TrainAutodiff : Pass<"train-autodiff", "::mlir::ModuleOp"> {
  let summary = "Builds the gradients of @loss with respect to every parameter it reads";
  let description = [{
    Adds `@loss.gradients`, which computes the loss and one gradient per parameter
    (results marked `train.gradient_of = @parameter`), by reverse-mode
    differentiation with each op's own `VJPOpInterface`. A function that
    `train.repeat` calls is differentiated once: `@layer` gives `@layer.forward`,
    which also returns what the backward needs, and `@layer.backward`, which a
    reversed `train.repeat` calls.

    What is kept between the two: results of costly ops (contractions, attention)
    and carried values, as they are needed. A memory-bound value (norm, activation,
    bias) is computed again in the backward when what it is computed from is kept
    anyway or no larger, and it is not one that the forward has to write to memory
    in any case (several users, or a library call among them). So neither norm
    outputs nor activation outputs take memory.

    Refuses ops without a derivative on a path from a parameter to the loss.
  }];
}

def TrainAccumulate : Pass<"train-accumulate", "::mlir::ModuleOp"> {
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

def TrainBuildOptimizer : Pass<"train-build-optimizer", "::mlir::ModuleOp"> {
  let summary = "Adds the parameter update";
  let description = [{
    Makes `@step`: gradients, their global norm, the clip factor and the update of
    every parameter. AdamW adds the variables `<parameter>.momentum` and
    `<parameter>.variance`; weight decay applies to parameters with two or more
    dimensions (layers not counted). Learning rate and all other optimizer scalars
    are inputs of `@step`.
  }];
  let options = [Option<"optimizer", "optimizer", "std::string", "\"adamw\"", "sgd or adamw">];
}

def TrainVerify : Pass<"train-verify", "::mlir::ModuleOp"> {
  let summary = "Checks that floor 1 is complete";
  let description = [{
    Closes the floor: `@step` and `@eval` exist and name their inputs and outputs,
    every parameter is written by `@step`, `@eval` writes no variable, and nothing
    belongs to another floor.
  }];
}

#endif // MESHWRIGHT_TRAIN_PASSES
