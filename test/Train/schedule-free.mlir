// RUN: meshwright-opt %s --train-autodiff --train-accumulate --train-build-optimizer=optimizer=schedule-free-adamw --train-verify -split-input-file | FileCheck %s
// RUN: not meshwright-opt %s --train-autodiff --train-accumulate --train-build-optimizer="optimizer=schedule-free-adamw ema=true" -split-input-file 2>&1 | FileCheck %s --check-prefix=EMA
// RUN: not meshwright-opt %s --train-autodiff --train-accumulate --train-build-optimizer="optimizer=schedule-free-adamw moments-dtype=bf16" -split-input-file 2>&1 | FileCheck %s --check-prefix=NARROW
// EMA: optimizer schedule-free-adamw averages parameters itself; leave out ema
// NARROW: optimizer schedule-free-adamw adds up what bf16 would round away; use moments-dtype f32

// Microbatches share the sum of the parameter and its offset, which is computed once. Evaluation reads the parameter.
module attributes {train.microbatches = 2 : i64} {
  train.variable @v : tensor<4xf32> init <"normal", 0.02> storage <"v">
  func.func @loss(%x: tensor<2x4xf32> {train.input = "x"}) -> tensor<f32> {
    %v = train.get @v : tensor<4xf32>
    %y = train.mul %x, %v : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    %loss = train.reduce sum %y over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK: train.variable @v : tensor<4xf32>
// CHECK: train.variable @v.variance : tensor<4xf32> state "variance" of @v
// CHECK: train.variable @v.y_minus_x : tensor<4xf32> state "y_minus_x" of @v
// CHECK-LABEL: func.func private @microbatch(
// CHECK-SAME: %[[SHARED:[^:]*]]: tensor<4xf32>) ->
// CHECK-NOT: train.get
// CHECK: train.mul %{{.*}}, %[[SHARED]]
// CHECK-LABEL: func.func private @eval.microbatch(
// CHECK: train.get @v :
// CHECK-LABEL: func.func @step
// CHECK-SAME: train.input = "weight_lr_power"
// CHECK-SAME: train.input = "bias_correction2"
// CHECK-SAME: train.input = "average_weight"
// CHECK: %[[X:.*]] = train.get @v :
// CHECK: %[[OFFSET:.*]] = train.get @v.y_minus_x
// CHECK: %[[Y:.*]] = train.add %[[X]], %[[OFFSET]]
// CHECK: train.repeat @microbatch x 2 {{.*}} shared(%[[Y]])
// CHECK: %[[NEW:.*]], %[[STATES:.*]]:2 = train.update "schedule-free-adamw"
// CHECK: %[[KEPT:.*]] = train.guard %[[NEW]]
// CHECK: train.set @v, %[[KEPT]]
// CHECK: %[[KEPT:.*]] = train.guard %[[STATES]]#1
// CHECK: train.set @v.y_minus_x, %[[KEPT]]

// -----

// A narrow parameter's master is what is averaged, and the sum is rounded once.
module attributes {train.microbatches = 1 : i64, train.grad_type = f32, train.precision = "bf16"} {
  train.variable @v : tensor<4xbf16> init <"normal", 0.02> storage <"v">
  func.func @loss(%x: tensor<2x4xbf16> {train.input = "x"}) -> tensor<f32> {
    %v = train.get @v : tensor<4xbf16>
    %y = train.mul %x, %v : (tensor<2x4xbf16>, tensor<4xbf16>) -> tensor<2x4xbf16>
    %loss = train.reduce sum %y over [0, 1] : (tensor<2x4xbf16>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK: train.variable @v.y_minus_x : tensor<4xf32>
// CHECK: train.variable @v.master : tensor<4xf32> state "master" of @v
// CHECK-LABEL: func.func @eval
// CHECK: train.get @v : tensor<4xbf16>
// CHECK-LABEL: func.func @step
// CHECK: %[[X:.*]] = train.get @v.master
// CHECK: %[[OFFSET:.*]] = train.get @v.y_minus_x
// CHECK: %[[SUM:.*]] = train.add %[[X]], %[[OFFSET]] : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK: %[[Y:.*]] = train.cast %[[SUM]] : (tensor<4xf32>) -> tensor<4xbf16>
// CHECK: train.mul %{{.*}}, %[[Y]]
// CHECK-NOT: train.get @v :
