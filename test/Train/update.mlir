// RUN: meshwright-opt %s -split-input-file -verify-diagnostics

func.func @unknown(%p: tensor<4xf32>, %s: tensor<f32>) -> tensor<4xf32> {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{optimizer 'adamx' is not supported; did you mean}}
  %0 = train.update "adamx" %p, %p, %s, %s : (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @too_few(%p: tensor<4xf32>, %s: tensor<f32>) -> tensor<4xf32> {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{of "lion" has 2 operands behind the gradient, expected 6: its states (momentum), the clip factor, the learning rate and its scalars (beta1, beta2, weight_decay)}}
  %0 = train.update "lion" %p, %p, %s, %s : (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @shapes(%p: tensor<4xf32>, %g: tensor<3xf32>, %s: tensor<f32>) -> tensor<4xf32> {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{dimension 0 of operand 1 is 3 but dimension 0 of operand 0 is 4}}
  %0 = train.update "sgd" %p, %g, %s, %s : (tensor<4xf32>, tensor<3xf32>, tensor<f32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
