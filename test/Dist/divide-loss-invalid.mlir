// RUN: meshwright-opt %s --dist-divide-loss=parts=3 -split-input-file -verify-diagnostics

func.func @step(%x: tensor<2x4x8xf32>, %w: tensor<100x8xf32>, %targets: tensor<2x4xi32>) -> tensor<f32> {
  // expected-error @+1 {{--loss-parts 3 does not divide the 8 tokens that a rank has in a microbatch; 2 does}}
  %logits = train.linear %x, %w : (tensor<2x4x8xf32>, tensor<100x8xf32>) -> tensor<2x4x100xf32>
  %loss, %lse = train.cross_entropy %logits, %targets scale 1.0 : (tensor<2x4x100xf32>, tensor<2x4xi32>) -> (tensor<f32>, tensor<2x4xf32>)
  return %loss : tensor<f32>
}

// -----

// The logits are an output.
// expected-error @+1 {{--loss-parts 3: no loss can be divided; that takes a product whose result only the loss and what is computed token by token read, so leave the flag out}}
module {
  func.func @step(%x: tensor<3x8xf32>, %w: tensor<100x8xf32>, %targets: tensor<3xi32>) -> (tensor<f32>, tensor<3x100xf32>) {
    %logits = train.linear %x, %w : (tensor<3x8xf32>, tensor<100x8xf32>) -> tensor<3x100xf32>
    %loss, %lse = train.cross_entropy %logits, %targets scale 1.0 : (tensor<3x100xf32>, tensor<3xi32>) -> (tensor<f32>, tensor<3xf32>)
    return %loss, %logits : tensor<f32>, tensor<3x100xf32>
  }
}

// -----

// The greatest logit of all tokens is no sum of parts.
// expected-error @+1 {{no loss can be divided}}
module {
  func.func @step(%x: tensor<3x8xf32>, %w: tensor<100x8xf32>, %targets: tensor<3xi32>) -> (tensor<f32>, tensor<100xf32>) {
    %logits = train.linear %x, %w : (tensor<3x8xf32>, tensor<100x8xf32>) -> tensor<3x100xf32>
    %loss, %lse = train.cross_entropy %logits, %targets scale 1.0 : (tensor<3x100xf32>, tensor<3xi32>) -> (tensor<f32>, tensor<3xf32>)
    %greatest = train.reduce max %logits over [0] : (tensor<3x100xf32>) -> tensor<100xf32>
    return %loss, %greatest : tensor<f32>, tensor<100xf32>
  }
}

// -----

// The gradient of the logits waits for the loss of all tokens.
// expected-error @+1 {{no loss can be divided}}
module {
  func.func @step(%x: tensor<3x8xf32>, %w: tensor<100x8xf32>, %targets: tensor<3xi32>) -> tensor<100x8xf32> {
    %logits = train.linear %x, %w : (tensor<3x8xf32>, tensor<100x8xf32>) -> tensor<3x100xf32>
    %loss, %lse = train.cross_entropy %logits, %targets scale 1.0 : (tensor<3x100xf32>, tensor<3xi32>) -> (tensor<f32>, tensor<3xf32>)
    %d = train.cross_entropy_grad %logits, %targets, %lse, %loss scale 1.0 : (tensor<3x100xf32>, tensor<3xi32>, tensor<3xf32>, tensor<f32>) -> tensor<3x100xf32>
    %dw = train.contract "s o, s i -> o i" %d, %x : (tensor<3x100xf32>, tensor<3x8xf32>) -> tensor<100x8xf32>
    return %dw : tensor<100x8xf32>
  }
}

// -----

// Random numbers are those of a token's place in its sequence.
// expected-error @+1 {{no loss can be divided}}
module {
  func.func @step(%x: tensor<1x3x8xf32>, %w: tensor<100x8xf32>, %targets: tensor<1x3xi32>, %key: tensor<2xi32>, %ids: tensor<1xi32>) -> tensor<f32> {
    %logits = train.linear %x, %w : (tensor<1x3x8xf32>, tensor<100x8xf32>) -> tensor<1x3x100xf32>
    %dropped = train.dropout %logits, %ids, %key rate 0.5 stream 1 : (tensor<1x3x100xf32>, tensor<1xi32>, tensor<2xi32>) -> tensor<1x3x100xf32>
    %loss, %lse = train.cross_entropy %dropped, %targets scale 1.0 : (tensor<1x3x100xf32>, tensor<1x3xi32>) -> (tensor<f32>, tensor<1x3xf32>)
    return %loss : tensor<f32>
  }
}

// -----

// A part of the tokens is not compared with all of them.
// expected-error @+1 {{no loss can be divided}}
module {
  func.func @eval(%x: tensor<3x8xf32>, %targets: tensor<3xi32>) -> tensor<f32> {
    %logits = train.linear %x, %x : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x3xf32>
    %loss, %lse = train.cross_entropy %logits, %targets scale 1.0 : (tensor<3x3xf32>, tensor<3xi32>) -> (tensor<f32>, tensor<3xf32>)
    return %loss : tensor<f32>
  }
}

// -----

// Each part would add what was there before.
// expected-error @+1 {{no loss can be divided}}
module {
  func.func @step(%x: tensor<3x8xf32>, %w: tensor<100x8xf32>, %targets: tensor<3xi32>, %one: tensor<f32>, %before: tensor<100x8xf32>) -> (tensor<f32>, tensor<100x8xf32>) {
    %logits = train.linear %x, %w : (tensor<3x8xf32>, tensor<100x8xf32>) -> tensor<3x100xf32>
    %loss, %lse = train.cross_entropy %logits, %targets scale 1.0 : (tensor<3x100xf32>, tensor<3xi32>) -> (tensor<f32>, tensor<3xf32>)
    %d = train.cross_entropy_grad %logits, %targets, %lse, %one scale 1.0 : (tensor<3x100xf32>, tensor<3xi32>, tensor<3xf32>, tensor<f32>) -> tensor<3x100xf32>
    %dw = train.contract "s o, s i -> o i" %d, %x init %before : (tensor<3x100xf32>, tensor<3x8xf32>, tensor<100x8xf32>) -> tensor<100x8xf32>
    return %loss, %dw : tensor<f32>, tensor<100x8xf32>
  }
}

// -----

// That evaluation can be divided does not help the step.
train.variable @w : tensor<100x8xf32> init <"normal", 0.02>
func.func @eval(%x: tensor<3x8xf32>, %targets: tensor<3xi32>) -> tensor<f32> {
  %w = train.get @w : tensor<100x8xf32>
  %logits = train.linear %x, %w : (tensor<3x8xf32>, tensor<100x8xf32>) -> tensor<3x100xf32>
  %loss, %lse = train.cross_entropy %logits, %targets scale 1.0 : (tensor<3x100xf32>, tensor<3xi32>) -> (tensor<f32>, tensor<3xf32>)
  return %loss : tensor<f32>
}
// expected-error @+1 {{--loss-parts 3: no loss can be divided}}
func.func @step(%x: tensor<3x8xf32>, %targets: tensor<3xi32>) -> (tensor<f32>, tensor<3x100xf32>) {
  %w = train.get @w : tensor<100x8xf32>
  %logits = train.linear %x, %w : (tensor<3x8xf32>, tensor<100x8xf32>) -> tensor<3x100xf32>
  %loss, %lse = train.cross_entropy %logits, %targets scale 1.0 : (tensor<3x100xf32>, tensor<3xi32>) -> (tensor<f32>, tensor<3xf32>)
  train.set @w, %w : tensor<100x8xf32>
  return %loss, %logits : tensor<f32>, tensor<3x100xf32>
}
