// The padding row of an embedding gets no gradient from it.
// RUN: meshwright-opt %s --split-input-file --train-autodiff --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func private @loss.gradients
// CHECK: %[[IDS:.*]] = train.ignore_id %{{.*}} id 3
// CHECK: train.embedding_grad %{{.*}}, %[[IDS]] rows 8
module {
  train.variable @table : tensor<8x16xf32> init <"normal", 2.0e-02 : f64>
  func.func @loss(%tokens: tensor<2x4xi32> {train.input = "tokens"}, %targets: tensor<2x4xi32> {train.input = "targets"}) -> (tensor<f32> {train.output = "loss"}) {
    %table = train.get @table : tensor<8x16xf32>
    %x = train.embedding %table, %tokens {padding = 3} : (tensor<8x16xf32>, tensor<2x4xi32>) -> tensor<2x4x16xf32>
    %loss, %lse = train.cross_entropy %x, %targets scale 0.125 : (tensor<2x4x16xf32>, tensor<2x4xi32>) -> (tensor<f32>, tensor<2x4xf32>)
    return %loss : tensor<f32>
  }
}

// -----

// The first row may be the padding.
// CHECK-LABEL: func.func private @loss.gradients
// CHECK: %[[IDS:.*]] = train.ignore_id %{{.*}} id 0
// CHECK: train.embedding_grad %{{.*}}, %[[IDS]] rows 8
module {
  train.variable @table : tensor<8x16xf32> init <"normal", 2.0e-02 : f64>
  func.func @loss(%tokens: tensor<2x4xi32> {train.input = "tokens"}, %targets: tensor<2x4xi32> {train.input = "targets"}) -> (tensor<f32> {train.output = "loss"}) {
    %table = train.get @table : tensor<8x16xf32>
    %x = train.embedding %table, %tokens {padding = 0} : (tensor<8x16xf32>, tensor<2x4xi32>) -> tensor<2x4x16xf32>
    %loss, %lse = train.cross_entropy %x, %targets scale 0.125 : (tensor<2x4x16xf32>, tensor<2x4xi32>) -> (tensor<f32>, tensor<2x4xf32>)
    return %loss : tensor<f32>
  }
}

// -----

func.func @outside(%table: tensor<8x16xf32>, %ids: tensor<4xi32>) -> tensor<4x16xf32> {
  // expected-error @+1 {{padding must be a row of the table, 0 to 7, or -1, found 8}}
  %x = train.embedding %table, %ids {padding = 8} : (tensor<8x16xf32>, tensor<4xi32>) -> tensor<4x16xf32>
  return %x : tensor<4x16xf32>
}
