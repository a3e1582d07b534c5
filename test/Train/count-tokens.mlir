// RUN: meshwright-opt %s --train-autodiff --train-accumulate --train-build-optimizer --train-verify --symbol-dce | FileCheck %s
// RUN: meshwright-opt %s --train-split-layers=chunks=2 | FileCheck %s --check-prefix=SPLIT

// Counts of tokens are a result of @loss. They are summed over microbatches where the layers' repeat has stacked them,
// kept beside the router, and move the bias, which has no gradient. Every variable is guarded. @eval counts nothing.
module attributes {train.microbatches = 2 : i64} {
  train.variable @h.gate : tensor<4x3x8xf32> stacked init <"normal", 0.02> storage <"h.{layer}.gate">
  train.variable @h.bias : tensor<4x3xf32> stacked init <"constant", 0.0> storage <"h.{layer}.bias"> {train.balance_rate = 1.0e-02 : f64}
  func.func private @layer(%x: tensor<2x5x8xf32>, %gate: tensor<3x8xf32>, %bias: tensor<3xf32>) -> (tensor<2x5x8xf32>, tensor<3xf32>) {
    %logits = train.linear %x, %gate : (tensor<2x5x8xf32>, tensor<3x8xf32>) -> tensor<2x5x3xf32>
    %scores = train.sigmoid %logits : (tensor<2x5x3xf32>) -> tensor<2x5x3xf32>
    %choice = train.add %scores, %bias : (tensor<2x5x3xf32>, tensor<3xf32>) -> tensor<2x5x3xf32>
    %mask = train.top_k %choice k 1 : (tensor<2x5x3xf32>) -> tensor<2x5x3xf32>
    %tokens = train.tally %mask, %logits : (tensor<2x5x3xf32>, tensor<2x5x3xf32>) -> tensor<3xf32>
    %weights = train.mul %scores, %mask : (tensor<2x5x3xf32>, tensor<2x5x3xf32>) -> tensor<2x5x3xf32>
    %weight = train.reduce sum %weights over [2] : (tensor<2x5x3xf32>) -> tensor<2x5xf32>
    %wide = train.broadcast %weight along [2] : (tensor<2x5xf32>) -> tensor<2x5x8xf32>
    %y = train.mul %x, %wide : (tensor<2x5x8xf32>, tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
    return %y, %tokens : tensor<2x5x8xf32>, tensor<3xf32>
  }
  func.func @loss(%x: tensor<2x5x8xf32> {train.input = "x"}) -> (tensor<f32> {train.output = "loss"}, tensor<4x3xf32> {train.balances = @h.bias, train.tokens_of = @h.gate}) {
    %gate = train.get @h.gate : tensor<4x3x8xf32>
    %bias = train.get @h.bias : tensor<4x3xf32>
    %y, %tokens = train.repeat @layer x 4 carry(%x) each(%gate, %bias) shared() : (tensor<2x5x8xf32>, tensor<4x3x8xf32>, tensor<4x3xf32>) -> (tensor<2x5x8xf32>, tensor<4x3xf32>)
    %loss = train.reduce sum %y over [0, 1, 2] : (tensor<2x5x8xf32>) -> tensor<f32>
    return %loss, %tokens : tensor<f32>, tensor<4x3xf32>
  }
}

// CHECK: train.variable @h.gate.tokens : tensor<4x3xf32> stacked state "tokens" of @h.gate
// CHECK: train.variable @h.bias :
// CHECK-NOT: @h.bias.momentum
// CHECK-LABEL: func.func private @layer.forward
// CHECK: train.tally
// The backward neither counts again nor gets a cotangent of counts.
// CHECK-LABEL: func.func private @layer.backward
// CHECK-NOT: train.tally
// CHECK-LABEL: func.func private @microbatch
// CHECK-SAME: %[[SUM:[^:]*]]: tensor<4x3xf32>
// CHECK: %[[Y:.*]]:{{[0-9]+}} = train.repeat @layer.forward x 4
// CHECK: train.repeat @layer.backward x 4 reverse
// CHECK: train.accumulate %[[SUM]], %[[Y]]#1 : (tensor<4x3xf32>, tensor<4x3xf32>)
// CHECK-LABEL: func.func private @layer.eval
// CHECK-NOT: train.tally
// CHECK-LABEL: func.func @eval
// CHECK-SAME: -> (tensor<f32> {train.output = "loss"})
// CHECK-LABEL: func.func @step
// CHECK-SAME: -> (tensor<f32> {train.output = "loss"}, tensor<f32> {train.output = "grad_norm"})
// CHECK: %[[SUMS:.*]]:{{[0-9]+}} = train.repeat @microbatch x 2
// CHECK: %[[NORM:.*]] = train.global_norm
// CHECK: %[[OLD:.*]] = train.get @h.gate : tensor<4x3x8xf32>
// CHECK: %[[NEW:[^,]*]], %{{.*}}:2 = train.update "adamw" decay %[[OLD]]
// CHECK: %[[KEPT:.*]] = train.guard %[[NEW]], %[[OLD]] if_finite %[[NORM]]
// CHECK: train.set @h.gate, %[[KEPT]]
// CHECK: train.set @h.gate.tokens, %[[SUMS]]#1
// CHECK: %[[BIAS:.*]] = train.get @h.bias
// CHECK: %[[MOVED:.*]] = train.balance %[[BIAS]] by %[[SUMS]]#1 rate 1.000000e-02
// CHECK: %[[GUARDED:.*]] = train.guard %[[MOVED]], %[[BIAS]] if_finite %[[NORM]]
// CHECK: train.set @h.bias, %[[GUARDED]]

// Of each chunk the counts are a result of their own, of its own variables.
// SPLIT: train.variable @h.0.bias : tensor<2x3xf32> stacked {{.*}} {train.balance_rate = 1.000000e-02 : f64}
// SPLIT: train.variable @h.2.bias : tensor<2x3xf32> stacked
// SPLIT-LABEL: func.func @loss
// SPLIT-SAME: -> (tensor<f32> {train.output = "loss"}, tensor<2x3xf32> {train.balances = @h.0.bias, train.tokens_of = @h.0.gate}, tensor<2x3xf32> {train.balances = @h.2.bias, train.tokens_of = @h.2.gate})
// SPLIT: %[[A:.*]]:2 = train.repeat @layer.0 x 2
// SPLIT: %[[B:.*]]:2 = train.repeat @layer.2 x 2 carry(%[[A]]#0)
// SPLIT: return %{{.*}}, %[[A]]#1, %[[B]]#1
