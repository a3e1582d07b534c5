// Parameters that are averages (schedule-free AdamW): steps compute with the sum of a parameter and its offset, which is gathered where
// others gather the parameter. Only updates and evaluations read the parameter, so it is stored in parts from level 1 on.
// DEFINE: %{step} = meshwright-opt %s --train-autodiff --train-accumulate --train-build-optimizer=optimizer=schedule-free-adamw --symbol-dce
// RUN: %{step} --dist-apply-strategy="mesh=data=2 zero=1" | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: %{step} --dist-apply-strategy="mesh=data=2 zero=3" | FileCheck %s --check-prefixes=CHECK,THREE
// RUN: not %{step} --dist-apply-strategy="mesh=data=2 data-sync=parameter-server" 2>&1 | FileCheck %s --check-prefix=SERVER
// SERVER: parameter @w has its state y - x on one device, but all devices compute with y: --data-sync parameter-server does not go with --optimizer schedule-free-adamw; use --data-sync all-reduce

// CHECK: @w : tensor<3x8x8xf32> {{.*}}dist.seed = #R_data_R}
// CHECK: @w.y_minus_x : {{.*}}dist.seed = #R_data_R}
// THREE-LABEL: func.func private @layer.forward(
// THREE: dist.constrain %{{.*}} to #R_R boundary
// CHECK-LABEL: func.func @eval
// CHECK-LABEL: func.func @step
// CHECK: %[[X:.*]] = train.get @w :
// CHECK: %[[OFFSET:.*]] = train.get @w.y_minus_x
// CHECK: %[[SUM:.*]] = train.add %[[X]], %[[OFFSET]]
// ONE: %[[WHOLE:.*]] = dist.constrain %[[SUM]] to #R_R_R boundary
// ONE: train.repeat @microbatch x 2 {{.*}} shared(%[[WHOLE]])
// THREE: train.repeat @microbatch x 2 {{.*}} shared(%[[SUM]])
// CHECK: %[[OLD:.*]] = train.get @w :
// CHECK: train.update "schedule-free-adamw" decay %[[OLD]],
// CHECK: %[[NEW:.*]] = train.guard
// CHECK: train.set @w, %[[NEW]]
module attributes {train.microbatches = 2 : i64} {
  train.variable @w : tensor<3x8x8xf32> stacked init <"normal", 0.02> storage <"{layer}.w">
  func.func private @layer(%x: tensor<2x8xf32>, %w: tensor<8x8xf32>) -> tensor<2x8xf32> {
    %y = train.linear %x, %w : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
    return %y : tensor<2x8xf32>
  }
  func.func @loss(%x: tensor<2x8xf32> {train.input = "x"}) -> tensor<f32> {
    %w = train.get @w : tensor<3x8x8xf32>
    %y = train.repeat @layer x 3 carry(%x) each(%w) shared() : (tensor<2x8xf32>, tensor<3x8x8xf32>) -> tensor<2x8xf32>
    %loss = train.reduce sum %y over [0, 1] : (tensor<2x8xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
