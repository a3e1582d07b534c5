// RUN: meshwright-opt %s --train-autodiff --train-accumulate --train-build-optimizer="optimizer=sgd ema=true" --train-verify | FileCheck %s
// RUN: meshwright-opt %s --train-autodiff --train-accumulate --train-build-optimizer="optimizer=sgd ema=true eval-ema=true" --train-verify | FileCheck %s --check-prefix=EVAL
// RUN: sed 's/microbatches = 1/microbatches = 2/' %s | meshwright-opt --train-autodiff --train-accumulate --train-build-optimizer="optimizer=sgd ema=true eval-ema=true" --train-verify | FileCheck %s --check-prefix=LOOP
// RUN: not meshwright-opt %s --train-autodiff --train-accumulate --train-build-optimizer="optimizer=sgd eval-ema=true" 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: eval-ema needs ema

// The average moves towards what is stored as the parameter, and stays where the step is not finite.
module attributes {train.microbatches = 1 : i64} {
  train.variable @v : tensor<4xbf16> init <"normal", 0.02> storage <"v">
  train.variable @w : tensor<4xf32> init <"normal", 0.02> storage <"w">
  func.func @loss(%x: tensor<2x4xf32> {train.input = "x"}) -> tensor<f32> {
    %v = train.get @v : tensor<4xbf16>
    %w = train.get @w : tensor<4xf32>
    %wide = train.cast %v : (tensor<4xbf16>) -> tensor<4xf32>
    %y = train.mul %x, %wide : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    %z = train.mul %y, %w : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    %loss = train.reduce sum %z over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK: train.variable @v.ema : tensor<4xf32> state "ema" of @v
// CHECK: train.variable @v.master
// CHECK: train.variable @w.ema : tensor<4xf32> state "ema" of @w
// CHECK-LABEL: func.func @step
// CHECK-SAME: train.input = "ema_decay"
// CHECK-SAME: train.input = "ema_correction"
// CHECK: %[[NEW:.*]] = train.update "sgd"
// CHECK: %[[MASTER:.*]] = train.guard %[[NEW]]
// CHECK: train.set @v.master, %[[MASTER]]
// CHECK: %[[OLD:.*]] = train.get @v.ema
// CHECK: %[[ONE:.*]] = train.fill 1.0
// CHECK: %[[LESS:.*]] = train.scale %{{.*}} by -1.0
// CHECK: %[[REST:.*]] = train.add %[[ONE]], %[[LESS]]
// CHECK: %[[WEIGHT:.*]] = train.unscale %[[REST]],
// CHECK: %[[MOVED:.*]] = train.lerp %[[OLD]] to %[[MASTER]] by %[[WEIGHT]]
// CHECK: %[[KEPT:.*]] = train.guard %[[MOVED]], %[[OLD]]
// CHECK: train.set @v.ema, %[[KEPT]]
// CHECK: %[[KEPT:.*]] = train.guard
// CHECK: train.set @w, %[[KEPT]]
// CHECK: %[[OLD:.*]] = train.get @w.ema
// CHECK: train.lerp %[[OLD]] to %[[KEPT]] by %[[WEIGHT]]

// Evaluations compute with the averages, rounded as the parameters are; steps with the parameters.
// EVAL-LABEL: func.func @eval
// EVAL: %[[V:.*]] = train.get @v.ema : tensor<4xf32>
// EVAL: %[[NARROW:.*]] = train.cast %[[V]] : (tensor<4xf32>) -> tensor<4xbf16>
// EVAL: %[[W:.*]] = train.get @w.ema : tensor<4xf32>
// EVAL: train.cast %[[NARROW]]
// EVAL: train.mul %{{.*}}, %[[W]]
// EVAL-LABEL: func.func @step
// EVAL: train.get @v : tensor<4xbf16>
// EVAL: train.get @w : tensor<4xf32>

// LOOP-LABEL: func.func private @eval.microbatch
// LOOP: train.get @v.ema
// LOOP: train.get @w.ema
