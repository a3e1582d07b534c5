// RUN: meshwright-opt %s --train-accumulate -split-input-file -verify-diagnostics
module attributes {train.microbatches = 2 : i64} {
  func.func @loss(%x: tensor<3xf32> {train.input = "x"}, %sum: tensor<3xf32> {train.batch_sum = 0 : i64}) -> tensor<f32> {
    %z = train.mul %x, %sum : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %loss = train.reduce sum %z over [0] : (tensor<3xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
  // expected-error @below {{argument 0 is no input of @loss}}
  func.func private @loss.counts(%x: tensor<3xf32> {train.input = "other"}) -> tensor<3xf32> {
    return %x : tensor<3xf32>
  }
  func.func private @loss.gradients(%x: tensor<3xf32> {train.input = "x"}, %sum: tensor<3xf32> {train.batch_sum = 0 : i64}) -> tensor<f32> {
    %z = train.mul %x, %sum : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %loss = train.reduce sum %z over [0] : (tensor<3xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

module attributes {train.microbatches = 2 : i64} {
  func.func @loss(%x: tensor<3xf32> {train.input = "x"}, %sum: tensor<3xf32> {train.batch_sum = 0 : i64}) -> tensor<f32> {
    %z = train.mul %x, %sum : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %loss = train.reduce sum %z over [0] : (tensor<3xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
  // expected-error @below {{has no body; train-count-batch makes one}}
  func.func private @loss.counts(tensor<3xf32>) -> tensor<3xf32>
  func.func private @loss.gradients(%x: tensor<3xf32> {train.input = "x"}, %sum: tensor<3xf32> {train.batch_sum = 0 : i64}) -> tensor<f32> {
    %z = train.mul %x, %sum : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %loss = train.reduce sum %z over [0] : (tensor<3xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
