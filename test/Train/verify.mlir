// RUN: meshwright-opt %s --train-verify -split-input-file -verify-diagnostics | FileCheck %s

// BEGIN EXAMPLE --train-verify
module {
  // expected-error @+1 {{is never written by @step: does the loss depend on it?}}
  train.variable @v : tensor<4xf32> init <"normal", 0.02>
  func.func @step(%x: tensor<4xf32> {train.input = "x"}) {
    return
  }
  func.func @eval(%x: tensor<4xf32> {train.input = "x"}) {
    return
  }
}
// END EXAMPLE

// -----

// What is as it should be passes.
// CHECK: train.variable @v
// CHECK: func.func @step
// CHECK: func.func @eval
module {
  train.variable @v : tensor<4xf32> init <"normal", 0.02>
  func.func @step(%x: tensor<4xf32> {train.input = "x"}) -> (tensor<4xf32> {train.output = "loss"}) {
    train.set @v, %x : tensor<4xf32>
    return %x : tensor<4xf32>
  }
  func.func @eval(%x: tensor<4xf32> {train.input = "x"}) -> (tensor<4xf32> {train.output = "loss"}) {
    %v = train.get @v : tensor<4xf32>
    return %v : tensor<4xf32>
  }
}

// -----

// expected-error @+1 {{has no program @step}}
module {
  func.func @eval() {
    return
  }
}

// -----

module {
  // expected-error @+1 {{argument 0 has no train.input}}
  func.func @step(%x: tensor<4xf32>) {
    return
  }
  func.func @eval() {
    return
  }
}

// -----

module {
  func.func @step() {
    return
  }
  // expected-error @+1 {{result 0 has no train.output}}
  func.func @eval(%x: tensor<4xf32> {train.input = "x"}) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}

// -----

// Evaluation must leave the state alone, also through a function it repeats.
module {
  train.variable @v : tensor<4xf32> init <"normal", 0.02>
  func.func private @layer(%x: tensor<4xf32>) -> tensor<4xf32> attributes {train.role = #train.role<forward>} {
    train.set @v, %x : tensor<4xf32>
    return %x : tensor<4xf32>
  }
  func.func @step(%x: tensor<4xf32> {train.input = "x"}) {
    train.set @v, %x : tensor<4xf32>
    return
  }
  // expected-error @+1 {{writes @v}}
  func.func @eval(%x: tensor<4xf32> {train.input = "x"}) {
    %y = train.repeat @layer x 2 carry(%x) each() shared() {train.role = #train.role<forward>} : (tensor<4xf32>) -> tensor<4xf32>
    return
  }
}

// -----

module {
  func.func @step(%x: tensor<4xf32> {train.input = "x"}) {
    // expected-error @+1 {{does not belong on floor 1}}
    %y = math.exp %x : tensor<4xf32>
    return
  }
  func.func @eval() {
    return
  }
}

// -----

// What a repetition does in a step is not guessed.
module {
  func.func private @layer(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
  func.func @step(%x: tensor<4xf32> {train.input = "x"}) {
    // expected-error @below {{has no train.role; train-autodiff and train-accumulate give it one}}
    %y = train.repeat @layer x 2 carry(%x) each() shared() : (tensor<4xf32>) -> tensor<4xf32>
    return
  }
  func.func @eval() {
    return
  }
}

// -----

module {
  func.func private @layer(%x: tensor<4xf32>) -> tensor<4xf32> attributes {train.role = #train.role<forward>} {
    return %x : tensor<4xf32>
  }
  func.func @step(%x: tensor<4xf32> {train.input = "x"}) {
    %y = train.repeat @layer x 2 carry(%x) each() shared() {train.chunk = 0 : i64, train.role = #train.role<forward>} : (tensor<4xf32>) -> tensor<4xf32>
    // expected-error @below {{has no train.chunk, but other layers have one}}
    %z = train.repeat @layer x 2 carry(%y) each() shared() {train.role = #train.role<forward>} : (tensor<4xf32>) -> tensor<4xf32>
    return
  }
  func.func @eval() {
    return
  }
}

// -----

// expected-error @+1 {{train.masked_share must be a number above 0 and below 1}}
module attributes {train.masked_share = 1.5 : f64, train.mask_token = 3 : i64} {
  func.func @step() {
    return
  }
  func.func @eval() {
    return
  }
}

// -----

// expected-error @+1 {{train.mask_token must be a token of the vocabulary (train.vocabulary)}}
module attributes {train.masked_share = 0.15 : f64, train.mask_token = 100 : i64, train.vocabulary = 100 : i64} {
  func.func @step() {
    return
  }
  func.func @eval() {
    return
  }
}

// -----

module {
  // expected-error @+1 {{has no input target_weight, but an input positions: first targets of documents do not count}}
  func.func @step(%p: tensor<1x2x8xi32> {train.input = "positions"}) {
    return
  }
  func.func @eval() {
    return
  }
}

// -----

module attributes {train.masked_share = 0.15 : f64, train.mask_token = 3 : i64, train.vocabulary = 100 : i64} {
  // expected-error @+1 {{has no input target_weight, but the module has train.masked_share}}
  func.func @step() {
    return
  }
  func.func @eval() {
    return
  }
}

// -----

// Counts of tokens are of a router's rows.
module {
  train.variable @gate : tensor<3x8xf32> init <"normal", 0.02>
  // expected-error @+1 {{variable @gate.tokens is 'tensor<4xf32>', another shape than rows of its parameter @gate, 'tensor<3x8xf32>'}}
  train.variable @gate.tokens : tensor<4xf32> state "tokens" of @gate
  func.func @step() {
    return
  }
  func.func @eval() {
    return
  }
}

// -----

module {
  train.variable @v : tensor<4xf32> init <"normal", 0.02>
  func.func @step(%x: tensor<4xf32> {train.input = "x"}) -> (tensor<4xf32> {train.output = "loss"}) {
    // expected-error @+1 {{is of all microbatches, which train-count-batch must see before train-autodiff}}
    %y = train.batch_sum %x : (tensor<4xf32>) -> tensor<4xf32>
    train.set @v, %y : tensor<4xf32>
    return %y : tensor<4xf32>
  }
  func.func @eval(%x: tensor<4xf32> {train.input = "x"}) -> (tensor<4xf32> {train.output = "loss"}) {
    return %x : tensor<4xf32>
  }
}

// -----

// A token beyond the table, or beyond the classes, by one.
module attributes {train.vocabulary = 9 : i64} {
  func.func @step(%tokens: tensor<1x2x4xi32> {train.input = "tokens"}, %table: tensor<8x4xf32> {train.input = "table"}) {
    // expected-error @+1 {{has 8 rows or classes for a vocabulary of 9 (train.vocabulary)}}
    %x = train.embedding %table, %tokens : (tensor<8x4xf32>, tensor<1x2x4xi32>) -> tensor<1x2x4x4xf32>
    return
  }
  func.func @eval() {
    return
  }
}

// -----

module attributes {train.vocabulary = 9 : i64} {
  func.func @step(%x: tensor<2x8xf32> {train.input = "x"}, %t: tensor<2xi32> {train.input = "targets"}) {
    // expected-error @+1 {{has 8 rows or classes for a vocabulary of 9 (train.vocabulary)}}
    %loss, %lse = train.cross_entropy %x, %t scale 1.0 : (tensor<2x8xf32>, tensor<2xi32>) -> (tensor<f32>, tensor<2xf32>)
    return
  }
  func.func @eval() {
    return
  }
}

// -----

// Scales are those of the rows of a frozen weight in 8 bits, which has them.
module {
  train.variable @w : tensor<3x8xi8> init <"normal", 0.02> {train.frozen}
  // expected-error @+1 {{variable @w.scale is 'tensor<8xf32>', another shape than rows of its parameter @w, 'tensor<3x8xi8>'}}
  train.variable @w.scale : tensor<8xf32> state "scale" of @w
  func.func @step() {
    return
  }
  func.func @eval() {
    return
  }
}

// -----

module {
  train.variable @w : tensor<3x8xf32> init <"normal", 0.02> {train.frozen}
  // expected-error @+1 {{variable @w.scale is 'tensor<3xf32>', but scales are f32, of a frozen parameter in 8 bits; its parameter @w is 'tensor<3x8xf32>'}}
  train.variable @w.scale : tensor<3xf32> state "scale" of @w
  func.func @step() {
    return
  }
  func.func @eval() {
    return
  }
}

// -----

module {
  // expected-error @+1 {{variable @w has codes of 8 bits, 'tensor<3x8xi8>', but no variable is its scale}}
  train.variable @w : tensor<3x8xi8> init <"normal", 0.02> {train.frozen}
  func.func @step() {
    return
  }
  func.func @eval() {
    return
  }
}

// -----

// States of delayed scaling are of layers.
module {
  train.variable @w : tensor<2x3x8xf32> stacked init <"normal", 0.02> storage <"{layer}.w">
  // expected-error @+1 {{variable @w.input_amax is 'tensor<3xf32>', but its parameter @w is 'tensor<2x3x8xf32>'; delayed scaling has a number of f32 for each layer}}
  train.variable @w.input_amax : tensor<3xf32> stacked storage <"{layer}.w.input_amax"> state "input_amax" of @w
  func.func @step() {
    return
  }
  func.func @eval() {
    return
  }
}

// -----

module {
  train.variable @w : tensor<2x3x8xf32> stacked init <"normal", 0.02> storage <"{layer}.w">
  // expected-error @+1 {{variable @w.input_amax_history is 'tensor<2xf32>', but its parameter @w is 'tensor<2x3x8xf32>'; delayed scaling has some numbers of f32 for each layer}}
  train.variable @w.input_amax_history : tensor<2xf32> stacked storage <"{layer}.w.input_amax_history"> state "input_amax_history" of @w
  func.func @step() {
    return
  }
  func.func @eval() {
    return
  }
}

// -----

module {
  func.func @step(%x: tensor<2x8xf32> {train.input = "x"}, %amax: tensor<f32> {train.input = "amax"}) {
    // expected-error @+1 {{is removed by train-autodiff, which has to run before}}
    %y = train.observe %x by %amax : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
    return
  }
  func.func @eval() {
    return
  }
}
