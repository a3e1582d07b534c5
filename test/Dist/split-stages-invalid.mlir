// RUN: meshwright-opt %s --dist-split-stages -split-input-file -verify-diagnostics
// RUN: sed '/^\/\/ -----/,$d' %s | sed 's/train.chunk = . : i64, //' | not meshwright-opt - --dist-split-stages 2>&1 | FileCheck %s --check-prefix=UNCUT
// RUN: sed '/^\/\/ -----/,$d' %s | not meshwright-opt - --dist-split-stages=schedule=interleaved:2 2>&1 | FileCheck %s --check-prefix=CHUNKS
// UNCUT: the layers are split into 1 chunk (train.chunk), but schedule 1f1b on 2 stages has 2; train-split-layers splits them, so compile from the model
// CHUNKS: the layers are split into 2 chunks (train.chunk), but schedule interleaved:2 on 2 stages has 4; train-split-layers splits them

module {
  dist.mesh @mesh ["pipe" = 2]
  func.func private @layer(%x: tensor<2xf32>) -> tensor<2xf32> attributes {train.role = #train.role<forward>} {
    return %x : tensor<2xf32>
  }
  func.func @eval(%x: tensor<2xf32>) -> (tensor<2xf32> {train.output = "loss"}) {
    %y = train.repeat @layer x 1 carry(%x) each() shared() {train.chunk = 0 : i64, train.role = #train.role<forward>} : (tensor<2xf32>) -> tensor<2xf32>
    %z = train.repeat @layer x 1 carry(%y) each() shared() {train.chunk = 1 : i64, train.role = #train.role<forward>} : (tensor<2xf32>) -> tensor<2xf32>
    // expected-error @below {{runs layers of chunk 0, but 2 chunks have begun before it; chunks are in order}}
    %o = train.repeat @layer x 1 carry(%z) each() shared() {train.chunk = 0 : i64, train.role = #train.role<forward>} : (tensor<2xf32>) -> tensor<2xf32>
    return %o : tensor<2xf32>
  }
}

// -----

module {
  dist.mesh @mesh ["pipe" = 2]
  func.func private @layer(%x: tensor<2xf32>) -> tensor<2xf32> attributes {train.role = #train.role<forward>} {
    return %x : tensor<2xf32>
  }
  func.func @eval(%x: tensor<2xf32>) -> (tensor<2xf32> {train.output = "loss"}) {
    // expected-error @below {{runs layers of chunk 1, but 0 chunks have begun before it; chunks are in order}}
    %y = train.repeat @layer x 1 carry(%x) each() shared() {train.chunk = 1 : i64, train.role = #train.role<forward>} : (tensor<2xf32>) -> tensor<2xf32>
    return %y : tensor<2xf32>
  }
}

// -----

module {
  dist.mesh @mesh ["pipe" = 2]
  func.func private @layer(%x: tensor<2xf32>) -> tensor<2xf32> attributes {train.role = #train.role<forward>} {
    return %x : tensor<2xf32>
  }
  func.func @eval(%x: tensor<2xf32>) -> (tensor<2xf32> {train.output = "loss"}) {
    %y = train.repeat @layer x 1 carry(%x) each() shared() {train.chunk = 0 : i64, train.role = #train.role<forward>} : (tensor<2xf32>) -> tensor<2xf32>
    // expected-error @below {{has no train.chunk, by which stages get their layers; train-split-layers gives it, so compile from the model}}
    %z = train.repeat @layer x 1 carry(%y) each() shared() {train.role = #train.role<forward>} : (tensor<2xf32>) -> tensor<2xf32>
    %o = train.repeat @layer x 1 carry(%z) each() shared() {train.chunk = 1 : i64, train.role = #train.role<forward>} : (tensor<2xf32>) -> tensor<2xf32>
    return %o : tensor<2xf32>
  }
}

// -----

// One function has the layers of both chunks, the other of the first alone.
module {
  dist.mesh @mesh ["pipe" = 2]
  func.func private @layer(%x: tensor<2xf32>) -> tensor<2xf32> attributes {train.role = #train.role<forward>} {
    return %x : tensor<2xf32>
  }
  func.func @eval(%x: tensor<2xf32>) -> (tensor<2xf32> {train.output = "loss"}) {
    %y = train.repeat @layer x 1 carry(%x) each() shared() {train.chunk = 0 : i64, train.role = #train.role<forward>} : (tensor<2xf32>) -> tensor<2xf32>
    %z = train.repeat @layer x 1 carry(%y) each() shared() {train.chunk = 1 : i64, train.role = #train.role<forward>} : (tensor<2xf32>) -> tensor<2xf32>
    return %z : tensor<2xf32>
  }
  // expected-error @below {{has layers of 1 of the pipeline's 2 chunks, as train.role and train.chunk of its repeats say}}
  func.func @step(%x: tensor<2xf32>) -> (tensor<2xf32>) {
    %y = train.repeat @layer x 1 carry(%x) each() shared() {train.chunk = 0 : i64, train.role = #train.role<forward>} : (tensor<2xf32>) -> tensor<2xf32>
    return %y : tensor<2xf32>
  }
}

// -----

module {
  dist.mesh @mesh ["pipe" = 2]
  func.func private @layer(%x: tensor<2xf32>) -> tensor<2xf32> attributes {train.role = #train.role<forward>} {
    return %x : tensor<2xf32>
  }
  func.func private @back(%x: tensor<2xf32>) -> tensor<2xf32> attributes {train.role = #train.role<backward>} {
    return %x : tensor<2xf32>
  }
  // expected-error @below {{has 2 runs of layers forward, but 1 backward; stages need a backward for each}}
  func.func @eval(%x: tensor<2xf32>) -> (tensor<2xf32> {train.output = "loss"}) {
    %y = train.repeat @layer x 1 carry(%x) each() shared() {train.chunk = 0 : i64, train.role = #train.role<forward>} : (tensor<2xf32>) -> tensor<2xf32>
    %z = train.repeat @layer x 1 carry(%y) each() shared() {train.chunk = 1 : i64, train.role = #train.role<forward>} : (tensor<2xf32>) -> tensor<2xf32>
    %d = train.repeat @back x 1 reverse carry(%z) each() shared() {train.chunk = 1 : i64, train.role = #train.role<backward>} : (tensor<2xf32>) -> tensor<2xf32>
    return %d : tensor<2xf32>
  }
}

// -----

module {
  dist.mesh @mesh ["pipe" = 2, "tensor" = 2]
  func.func private @layer(%x: tensor<2xf32>) -> tensor<2xf32> attributes {train.role = #train.role<forward>} {
    return %x : tensor<2xf32>
  }
  func.func @eval(%x: tensor<2xf32>) -> (tensor<2xf32> {train.output = "loss"}) {
    // expected-error @below {{has no dist.replicated, by which devices share out sending what they have copies of; dist-partition gives it}}
    %y = train.repeat @layer x 1 carry(%x) each() shared() {train.chunk = 0 : i64, train.role = #train.role<forward>} : (tensor<2xf32>) -> tensor<2xf32>
    %z = train.repeat @layer x 1 carry(%y) each() shared() {train.chunk = 1 : i64, train.role = #train.role<forward>} : (tensor<2xf32>) -> tensor<2xf32>
    return %z : tensor<2xf32>
  }
}

// -----

module {
  dist.mesh @mesh ["pipe" = 2]
  // expected-error @below {{is sharded over mesh axis 'pipe', along which the stages of the pipeline are; seeds can use any other axis}}
  train.variable @w : tensor<2xf32> init <"normal", 0.02> {dist.global = tensor<4xf32, #dist.sharding<@mesh, [{pipe}]>>}
}

// -----

module {
  dist.mesh @mesh ["pipe" = 2]
  train.variable @h.0.w : tensor<1x4x4xf32> stacked init <"normal", 0.02> storage <"h.{layer}.w">
  train.variable @h.1.w : tensor<1x4x4xf32> stacked init <"normal", 0.02> storage <"h.{layer+1}.w">
  func.func private @layer(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> attributes {train.role = #train.role<forward>} {
    %y = train.linear %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    return %y : tensor<2x4xf32>
  }
  func.func private @count(%sum: tensor<4xf32>, %x: tensor<2x4xf32>) -> tensor<4xf32> attributes {train.role = #train.role<count>} {
    %w0 = train.get @h.0.w : tensor<1x4x4xf32>
    %w1 = train.get @h.1.w : tensor<1x4x4xf32>
    %y = train.repeat @layer x 1 carry(%x) each(%w0) shared() {train.chunk = 0 : i64, train.role = #train.role<forward>} : (tensor<2x4xf32>, tensor<1x4x4xf32>) -> tensor<2x4xf32>
    %z = train.repeat @layer x 1 carry(%y) each(%w1) shared() {train.chunk = 1 : i64, train.role = #train.role<forward>} : (tensor<2x4xf32>, tensor<1x4x4xf32>) -> tensor<2x4xf32>
    %c = train.reduce sum %z over [0] : (tensor<2x4xf32>) -> tensor<4xf32>
    %new = train.accumulate %sum, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %new : tensor<4xf32>
  }
  func.func private @microbatch(%sum: tensor<f32>, %x: tensor<2x4xf32>, %c: tensor<4xf32>) -> tensor<f32> attributes {train.role = #train.role<microbatch>} {
    %w0 = train.get @h.0.w : tensor<1x4x4xf32>
    %w1 = train.get @h.1.w : tensor<1x4x4xf32>
    %v = train.mul %x, %c : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    %y = train.repeat @layer x 1 carry(%v) each(%w0) shared() {train.chunk = 0 : i64, train.role = #train.role<forward>} : (tensor<2x4xf32>, tensor<1x4x4xf32>) -> tensor<2x4xf32>
    %l = train.repeat @layer x 1 carry(%y) each(%w1) shared() {train.chunk = 1 : i64, train.role = #train.role<forward>} : (tensor<2x4xf32>, tensor<1x4x4xf32>) -> tensor<2x4xf32>
    %loss = train.reduce sum %l over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
    %new = train.accumulate %sum, %loss : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %new : tensor<f32>
  }
  func.func @step(%x: tensor<2x2x4xf32>) -> (tensor<f32> {train.output = "loss"}) {
    %zero = train.fill 0.0 : () -> tensor<f32>
    %none = train.fill 0.0 : () -> tensor<4xf32>
    // expected-error @below {{counts on stage 1 what stage 0 reads; a stage can only read what its own layers count}}
    %c = train.repeat @count x 2 carry(%none) each(%x) shared() {train.role = #train.role<count>} : (tensor<4xf32>, tensor<2x2x4xf32>) -> tensor<4xf32>
    %d = train.scale %c by 2.0 : (tensor<4xf32>) -> tensor<4xf32>
    %loss = train.repeat @microbatch x 2 carry(%zero) each(%x) shared(%d) {train.role = #train.role<microbatch>} : (tensor<f32>, tensor<2x2x4xf32>, tensor<4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// expected-error @below {{steps may have fewer microbatches than the program (input microbatches of @loss), but the schedule of a pipeline is of a fixed number: use a mesh without the axis 'pipe', or leave out --batch-ramp}}
module attributes {train.microbatches = 2 : i64} {
  dist.mesh @mesh ["pipe" = 2]
  func.func private @microbatch(%sum: tensor<f32>, %x: tensor<f32>) -> tensor<f32> attributes {train.role = #train.role<microbatch>} {
    %next = train.accumulate %sum, %x : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %next : tensor<f32>
  }
  func.func @step(%zero: tensor<f32> {train.input = "lr"}, %x: tensor<2xf32> {train.input = "x"}, %n: tensor<i32> {train.input = "microbatches"}) -> (tensor<f32> {train.output = "loss"}) {
    %y = train.repeat @microbatch x 2 times %n carry(%zero) each(%x) shared() {train.role = #train.role<microbatch>} : (tensor<f32>, tensor<2xf32>, tensor<i32>) -> tensor<f32>
    return %y : tensor<f32>
  }
}
