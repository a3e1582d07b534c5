// RUN: meshwright-opt %s --train-verify-model -split-input-file -verify-diagnostics

// BEGIN EXAMPLE --train-verify-model
module {
  train.variable @w : tensor<2x4x4xf32> stacked init <"normal", 0.02> storage <"h.{layer}.w">
  // expected-error @+1 {{is repeated, so it must be private: public functions are programs; write func.func private @layer}}
  func.func @layer(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> {
    %y = train.linear %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    return %y : tensor<2x4xf32>
  }
  func.func @loss(%x: tensor<2x4xf32> {train.input = "x"}) -> (tensor<f32> {train.output = "loss"}) {
    %w = train.get @w : tensor<2x4x4xf32>
    %y = train.repeat @layer x 2 carry(%x) each(%w) shared() : (tensor<2x4xf32>, tensor<2x4x4xf32>) -> tensor<2x4xf32>
    %loss = train.reduce sum %y over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// END EXAMPLE

// -----

func.func private @layer(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{repeats @layer, which repeats itself, directly or through others; make what is repeated inside it another function}}
  %y = train.repeat @layer x 2 carry(%x) each() shared() : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// Through another function too.
func.func @loss(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = train.repeat @a x 2 carry(%x) each() shared() : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func private @a(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = train.repeat @b x 2 carry(%x) each() shared() : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func private @b(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{repeats @a, which repeats itself}}
  %y = train.repeat @a x 2 carry(%x) each() shared() : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func private @layer(%x: tensor<4xf32>) -> tensor<4xf32>
func.func @loss(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{repeats @layer, which has no body; give it one}}
  %y = train.repeat @layer x 2 carry(%x) each() shared() : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

train.variable @b : tensor<4xf32> init <"constant", 0.0>
func.func private @layer(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{is in @layer, which is repeated; read variables in @loss and give them to the repeat as each or shared}}
  %b = train.get @b : tensor<4xf32>
  %y = train.add %x, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func @loss(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = train.repeat @layer x 2 carry(%x) each() shared() : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func private @layer(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func @loss(%x: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
  %y = train.repeat @layer x 2 carry(%x) each() shared() : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error @+1 {{repeats @layer as often as data says, but others repeat it a given number of times; make it two functions}}
  %z = train.repeat @layer x 2 times %n carry(%y) each() shared() : (tensor<4xf32>, tensor<i32>) -> tensor<4xf32>
  return %z : tensor<4xf32>
}

// -----

// expected-error @+1 {{is 'tensor<0x4xf32>', which has no elements}}
train.variable @w : tensor<0x4xf32> init <"normal", 0.02>

// -----

func.func @loss() -> tensor<0xf32> {
  // expected-error @+1 {{makes 'tensor<0xf32>', which has no elements}}
  %x = train.fill 0.0 : () -> tensor<0xf32>
  return %x : tensor<0xf32>
}

// -----

train.variable @x : tensor<4xf32> init <"normal", 0.02>
// expected-error @+1 {{input 0 of @loss and a variable are both called 'x'; rename one}}
func.func @loss(%x: tensor<4xf32> {train.input = "x"}) -> (tensor<4xf32> {train.output = "loss"}) {
  return %x : tensor<4xf32>
}

// -----

// expected-error @+1 {{output 1 of @loss and output 0 of @loss are both called 'loss'; rename one}}
func.func @loss(%x: tensor<f32> {train.input = "x"}) -> (tensor<f32> {train.output = "loss"}, tensor<f32> {train.output = "loss"}) {
  return %x, %x : tensor<f32>, tensor<f32>
}

// -----

// expected-error @+1 {{a variable is called 'lr', as an input of the optimizer may be; rename it}}
train.variable @lr : tensor<4xf32> init <"normal", 0.02>
func.func @loss(%x: tensor<4xf32> {train.input = "x"}) -> (tensor<4xf32> {train.output = "loss"}) {
  return %x : tensor<4xf32>
}

// -----

// expected-error @+1 {{output 1 of @loss is called 'grad_norm', as the norm of the gradients may be; rename it}}
func.func @loss(%x: tensor<f32> {train.input = "x"}) -> (tensor<f32> {train.output = "loss"}, tensor<f32> {train.output = "grad_norm"}) {
  return %x, %x : tensor<f32>, tensor<f32>
}

// -----

train.variable @k : tensor<3x4xf32> stacked init <"normal", 0.02> storage <"h.{layer}.v">
// expected-error @+1 {{is stored in tensor 'h.2.v', in rows where @k is; give it a storage of its own}}
train.variable @v : tensor<2x4xf32> stacked init <"normal", 0.02> storage <"h.{layer+2}.v">

// -----

train.variable @q : tensor<4x4xf32> init <"normal", 0.02> storage <"qk", full = 8>
// expected-error @+1 {{is stored in tensor 'qk', in rows where @q is}}
train.variable @k : tensor<4x4xf32> init <"normal", 0.02> storage <"qk", offset = 2, full = 8>

// -----

// expected-error @+1 {{is stored in tensor 'qkv' of 12 rows, of which no variable has row 4; a file of it could not be written}}
train.variable @q : tensor<4x4xf32> init <"normal", 0.02> storage <"qkv", full = 12>
train.variable @v : tensor<4x4xf32> init <"normal", 0.02> storage <"qkv", offset = 8, full = 12>

// -----

// expected-error @+1 {{is stored in tensor 'qk' up to row 9, but that has 8}}
train.variable @q : tensor<4x4xf32> init <"normal", 0.02> storage <"qk", offset = 6, full = 8>

// -----

// One takes all.
train.variable @q : tensor<4x4xf32> init <"normal", 0.02> storage <"qk", full = 8>
// expected-error @+1 {{is stored in tensor 'qk', in rows where @q is}}
train.variable @k : tensor<8x4xf32> init <"normal", 0.02> storage <"qk">

// -----

// expected-error @+1 {{argument 0 is 'tensor<0xf32>', which has no elements}}
func.func @loss(%x: tensor<0xf32>) {
  return
}

// -----

train.variable @w : tensor<4xf32> init <"normal", 0.02>
// expected-error @+1 {{results 1 and 2 both have train.tokens_of = @w; add them up and return one}}
func.func @loss(%x: tensor<f32>, %n: tensor<4xi32>) -> (tensor<f32>, tensor<4xi32> {train.tokens_of = @w}, tensor<4xi32> {train.tokens_of = @w}) {
  return %x, %n, %n : tensor<f32>, tensor<4xi32>, tensor<4xi32>
}

// -----

// expected-error @+1 {{result 1 has train.balances = @w, which is no variable}}
func.func @loss(%x: tensor<f32>, %n: tensor<4xi32>) -> (tensor<f32>, tensor<4xi32> {train.balances = @w}) {
  return %x, %n : tensor<f32>, tensor<4xi32>
}

// -----

train.variable @b : tensor<4xf32> init <"constant", 0.0>
func.func private @layer(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{is in @layer, which is repeated}}
  train.set @b, %x : tensor<4xf32>
  return %x : tensor<4xf32>
}
func.func @loss(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = train.repeat @layer x 2 carry(%x) each() shared() : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @loss(%x: tensor<2x4xf32>, %w: tensor<3x4xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{has an init, which passes give it once tensors are sharded; write a train.add after it}}
  %z = train.contract "b i, o i -> b o" %x, %w init %y : (tensor<2x4xf32>, tensor<3x4xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %z : tensor<2x3xf32>
}

// -----

func.func @loss(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // expected-error @+1 {{has no dimensions and does nothing; leave it out}}
  %y = train.reduce sum %x over [] : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// -----

// Parts of one tensor are not the same, even where they take turns, nor are layers that follow others.
train.variable @q : tensor<2x4xf32> stacked init <"normal", 0.02> storage <"h.{layer}.qk", full = 8>
train.variable @k : tensor<2x4xf32> stacked init <"normal", 0.02> storage <"h.{layer}.qk", offset = 4, full = 8>
train.variable @more.q : tensor<2x4xf32> stacked init <"normal", 0.02> storage <"h.{layer+2}.qk", full = 8>
train.variable @more.k : tensor<2x4xf32> stacked init <"normal", 0.02> storage <"h.{layer+2}.qk", offset = 4, full = 8>
train.variable @even : tensor<4x4xf32> init <"normal", 0.02> storage <"turns", full = 8, period = 2, runs = [0, 1, 1]>
train.variable @odd : tensor<4x4xf32> init <"normal", 0.02> storage <"turns", full = 8, period = 2, runs = [1, 1, 1]>
