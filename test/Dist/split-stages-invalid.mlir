// RUN: meshwright-opt %s --dist-split-stages -split-input-file -verify-diagnostics
// RUN: sed '/^\/\/ -----/,$d' %s | sed 's/ attributes {train.cuts = array<i64: 2>}//' | not meshwright-opt - --dist-split-stages 2>&1 | FileCheck %s --check-prefix=UNCUT
// RUN: sed '/^\/\/ -----/,$d' %s | not meshwright-opt - --dist-split-stages=schedule=interleaved:2 2>&1 | FileCheck %s --check-prefix=CHUNKS
// UNCUT: has no train.cuts: the layers are not cut into the 2 chunks of the pipeline; train-cut-layers does that, so compile from the model
// CHUNKS: the layers are cut into 2 chunks, but schedule interleaved:2 on 2 stages has 4

module attributes {train.cuts = array<i64: 2>} {
  dist.mesh @mesh ["pipe" = 2]
  func.func private @layer(%x: tensor<2xf32>) -> tensor<2xf32> {
    return %x : tensor<2xf32>
  }
  func.func @eval(%x: tensor<2xf32>) -> (tensor<2xf32> {train.output = "loss"}) {
    // expected-error @below {{runs layers 0 to 2, but a stage begins with layer 2; train-cut-layers cuts them, so compile from the model}}
    %y = train.repeat @layer x 3 carry(%x) each() shared() : (tensor<2xf32>) -> tensor<2xf32>
    return %y : tensor<2xf32>
  }
}

// -----

module attributes {train.cuts = array<i64: 3>} {
  dist.mesh @mesh ["pipe" = 2]
  func.func private @layer(%x: tensor<2xf32>) -> tensor<2xf32> {
    return %x : tensor<2xf32>
  }
  // expected-error @below {{has 3 layers, but a stage begins with layer 3}}
  func.func @eval(%x: tensor<2xf32>) -> (tensor<2xf32> {train.output = "loss"}) {
    %y = train.repeat @layer x 3 carry(%x) each() shared() : (tensor<2xf32>) -> tensor<2xf32>
    return %y : tensor<2xf32>
  }
}

// -----

module attributes {train.cuts = array<i64: 1>} {
  dist.mesh @mesh ["pipe" = 2]
  func.func private @layer(%x: tensor<2xf32>) -> tensor<2xf32> {
    return %x : tensor<2xf32>
  }
  // expected-error @below {{has 2 runs of layers forward, but 1 backward; stages need a backward for each}}
  func.func @step(%x: tensor<2xf32>) -> tensor<2xf32> {
    %y = train.repeat @layer x 1 carry(%x) each() shared() : (tensor<2xf32>) -> tensor<2xf32>
    %z = train.repeat @layer x 1 carry(%y) each() shared() : (tensor<2xf32>) -> tensor<2xf32>
    %d = train.repeat @layer x 1 reverse carry(%z) each() shared() : (tensor<2xf32>) -> tensor<2xf32>
    return %d : tensor<2xf32>
  }
}

// -----

module attributes {train.cuts = array<i64: 1>} {
  dist.mesh @mesh ["pipe" = 2]
  // expected-error @below {{is cut over mesh axis 'pipe', along which the stages of the pipeline are; seeds can use any other axis}}
  train.variable @w : tensor<2xf32> init <"normal", 0.02> {dist.global = tensor<4xf32, #dist.sharding<@mesh, [{pipe}]>>}
}
