// The padding row of an embedding gets no gradient from it.
// RUN: meshwright-opt %s --split-input-file --train-autodiff --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func private @loss.gradients
// CHECK: %[[SUMS:.*]] = train.embedding_grad
// CHECK: %[[UPTO:.*]] = train.fill {{.*}} tensor<4xf32>
// CHECK: %[[PADDED:.*]] = train.pad %[[UPTO]] rows 8
// CHECK: %[[NEGATIVE:.*]] = train.scale %[[PADDED]] by -1.000000e+00
// CHECK: %[[ONES:.*]] = train.fill {{.*}} tensor<8xf32>
// CHECK: %[[LESS:.*]] = train.add %[[ONES]], %[[NEGATIVE]]
// CHECK: %[[BEFORE:.*]] = train.fill {{.*}} tensor<3xf32>
// CHECK: %[[BEFORE8:.*]] = train.pad %[[BEFORE]] rows 8
// CHECK: %[[MASK:.*]] = train.add %[[LESS]], %[[BEFORE8]]
// CHECK: %[[WIDE:.*]] = train.broadcast %[[MASK]] along [1]
// CHECK: train.mul %[[SUMS]], %[[WIDE]]
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

func.func @outside(%table: tensor<8x16xf32>, %ids: tensor<4xi32>) -> tensor<4x16xf32> {
  // expected-error @+1 {{padding must be a row of the table, 0 to 7, or -1, found 8}}
  %x = train.embedding %table, %ids {padding = 8} : (tensor<8x16xf32>, tensor<4xi32>) -> tensor<4x16xf32>
  return %x : tensor<4x16xf32>
}
