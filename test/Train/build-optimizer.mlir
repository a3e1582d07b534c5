// RUN: meshwright-opt %s --train-autodiff --train-accumulate --train-build-optimizer --train-verify -split-input-file -verify-diagnostics | FileCheck %s
// RUN: meshwright-opt %s --train-autodiff --train-accumulate --train-build-optimizer=optimizer=sgd -split-input-file | FileCheck %s --check-prefix=SGD
// RUN: not meshwright-opt %s --train-autodiff --train-accumulate --train-build-optimizer=optimizer=adamx -split-input-file 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: meshwright-opt %s --train-autodiff --train-accumulate --train-build-optimizer=moments-dtype=bf16 -split-input-file | FileCheck %s --check-prefix=NARROW
// RUN: meshwright-opt %s --train-autodiff --train-accumulate --train-build-optimizer=optimizer=lion -split-input-file | FileCheck %s --check-prefix=LION
// UNKNOWN: --optimizer option: 'adamx' is not supported; did you mean adamw? The choices are adamw, adam, lion, sgd, sgd-momentum, sgd-nesterov, muon, normuon, adafactor, adafactor-scaled, schedule-free-adamw, adamw-8bit

// BEGIN EXAMPLE --train-autodiff --train-accumulate --train-build-optimizer --symbol-dce
module attributes {train.microbatches = 1 : i64} {
  train.variable @v : tensor<4xf32> init <"normal", 0.02> storage <"v">
  func.func @loss(%x: tensor<2x4xf32> {train.input = "x"}) -> tensor<f32> {
    %v = train.get @v : tensor<4xf32>
    %y = train.mul %x, %v : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    %loss = train.reduce sum %y over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// END EXAMPLE

// CHECK: train.variable @v.momentum
// CHECK: train.variable @v.variance
// CHECK-LABEL: func.func @step
// CHECK: train.clip_factor
// CHECK: train.update "adamw"
// CHECK: train.set @v,
// CHECK: train.set @v.momentum,
// CHECK: train.set @v.variance,

// SGD-LABEL: func.func @step
// SGD: train.update "sgd"
// SGD: train.set @v,

// Lion has one state, and its inputs are those of its row.
// LION: train.variable @v.momentum
// LION-NOT: variance
// LION-LABEL: func.func @step
// LION-SAME: %[[CLIP:arg[0-9]+]]: tensor<f32> {train.input = "grad_clip"}
// LION-SAME: %[[LR:arg[0-9]+]]: tensor<f32> {train.input = "lr"}, %[[BETA1:arg[0-9]+]]: tensor<f32> {train.input = "beta1"}
// LION-SAME: %[[BETA2:arg[0-9]+]]: tensor<f32> {train.input = "beta2"}, %[[DECAY:arg[0-9]+]]: tensor<f32> {train.input = "weight_decay"})
// LION: %[[M:.*]] = train.get @v.momentum : tensor<4xf32>
// LION: %[[NEW:.*]], %[[M1:.*]] = train.update "lion" %{{.*}}, %{{.*}}, %[[M]], %{{.*}}, %[[LR]], %[[BETA1]], %[[BETA2]], %[[DECAY]] :
// LION: %[[KEPT:.*]] = train.guard %[[NEW]]
// LION: train.set @v, %[[KEPT]]
// LION: %[[KEPT:.*]] = train.guard %[[M1]], %[[M]]
// LION: train.set @v.momentum, %[[KEPT]]

// The update computes in f32, and rounds what it stores once.
// NARROW: train.variable @v.momentum : tensor<4xbf16> state "momentum"
// NARROW: train.variable @v.variance : tensor<4xbf16> state "variance"
// NARROW-LABEL: func.func @step
// NARROW: %[[M:.*]] = train.get @v.momentum : tensor<4xbf16>
// NARROW: %[[V:.*]] = train.get @v.variance : tensor<4xbf16>
// NARROW-DAG: %[[MOMENTUM:.*]] = train.cast %[[M]] : (tensor<4xbf16>) -> tensor<4xf32>
// NARROW-DAG: %[[VARIANCE:.*]] = train.cast %[[V]] : (tensor<4xbf16>) -> tensor<4xf32>
// NARROW: %[[W:.*]], %[[NEW:.*]]:2 = train.update "adamw" %{{.*}}, %{{.*}}, %[[MOMENTUM]], %[[VARIANCE]]
// NARROW: %[[KEPT:.*]] = train.guard %[[W]]
// NARROW: train.set @v, %[[KEPT]] : tensor<4xf32>
// NARROW: %[[M2:.*]] = train.cast %[[NEW]]#0 : (tensor<4xf32>) -> tensor<4xbf16>
// NARROW: %[[KEPT:.*]] = train.guard %[[M2]], %[[M]]
// NARROW: train.set @v.momentum, %[[KEPT]] : tensor<4xbf16>
// NARROW: %[[V2:.*]] = train.cast %[[NEW]]#1 : (tensor<4xf32>) -> tensor<4xbf16>
// NARROW: %[[KEPT:.*]] = train.guard %[[V2]], %[[V]]
// NARROW: train.set @v.variance, %[[KEPT]] : tensor<4xbf16>

// -----

// The matrix decays, the stacked vector does not: layers are not a dimension.
module attributes {train.microbatches = 1 : i64} {
  train.variable @w : tensor<3x4x4xf32> stacked init <"normal", 0.02> storage <"{layer}.w">
  train.variable @v : tensor<3x4xf32> stacked init <"normal", 0.02> storage <"{layer}.v">
  func.func private @layer(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>, %v: tensor<4xf32>) -> tensor<2x4xf32> {
    %y = train.linear %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %z = train.add %y, %v : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    return %z : tensor<2x4xf32>
  }
  func.func @loss(%x: tensor<2x4xf32> {train.input = "x"}) -> tensor<f32> {
    %w = train.get @w : tensor<3x4x4xf32>
    %v = train.get @v : tensor<3x4xf32>
    %y = train.repeat @layer x 3 carry(%x) each(%w, %v) shared() : (tensor<2x4xf32>, tensor<3x4x4xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    %loss = train.reduce sum %y over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK: train.variable @w.momentum : tensor<3x4x4xf32> stacked state "momentum" of @w
// CHECK: train.variable @w.variance
// CHECK-LABEL: func.func @step
// CHECK-SAME: train.input = "x"
// CHECK-SAME: train.input = "grad_clip"
// CHECK-SAME: train.input = "lr"
// CHECK-SAME: -> (tensor<f32> {train.output = "loss"}, tensor<f32> {train.output = "grad_norm"})
// CHECK: train.square_sum
// CHECK: train.square_sum
// CHECK: %[[NORM:.*]] = train.global_norm
// CHECK: %[[CLIP:.*]] = train.clip_factor %[[NORM]]
// CHECK: train.update "adamw" decay {{.*}}, %[[CLIP]], {{.*}} tensor<3x4x4xf32>
// CHECK: train.set @w,
// CHECK: train.update "adamw" %{{.*}} : (tensor<3x4xf32>,
// CHECK: train.set @v,
// CHECK: return %{{.*}}, %[[NORM]]

// SGD-NOT: momentum
// SGD: train.update "sgd"
// SGD: train.update "sgd"

// -----

// A narrow parameter is the rounded value of a master in f32.
module attributes {train.microbatches = 1 : i64, train.grad_type = f32, train.precision = "bf16"} {
  train.variable @v : tensor<4xbf16> init <"normal", 0.02> storage <"v">
  func.func @loss(%x: tensor<2x4xbf16> {train.input = "x"}) -> tensor<f32> {
    %v = train.get @v : tensor<4xbf16>
    %y = train.mul %x, %v : (tensor<2x4xbf16>, tensor<4xbf16>) -> tensor<2x4xbf16>
    %loss = train.reduce sum %y over [0, 1] : (tensor<2x4xbf16>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK: train.variable @v : tensor<4xbf16>
// CHECK: train.variable @v.momentum : tensor<4xf32>
// CHECK: train.variable @v.master : tensor<4xf32> state "master" of @v
// CHECK-LABEL: func.func @step
// CHECK: %[[MASTER:.*]] = train.get @v.master : tensor<4xf32>
// CHECK: %[[NEW:[^,]*]], %{{.*}}:2 = train.update "adamw" %[[MASTER]]
// CHECK: %[[KEPT:.*]] = train.guard %[[NEW]], %[[MASTER]]
// CHECK: train.set @v.master, %[[KEPT]]
// CHECK: %[[ROUNDED:.*]] = train.cast %[[KEPT]] : (tensor<4xf32>) -> tensor<4xbf16>
// CHECK: train.set @v, %[[ROUNDED]]

// SGD: train.variable @v.master
// SGD: %[[NEW:.*]] = train.update "sgd"
// SGD: %[[KEPT:.*]] = train.guard %[[NEW]]
// SGD: train.set @v.master, %[[KEPT]]
// SGD: train.set @v,

// -----

// With loss scaling the gradients of the sums are scaled and the update is not. Where the norm is not finite, here as
// everywhere, nothing changes.
module attributes {train.microbatches = 1 : i64, train.grad_type = f32, train.loss_scaling, train.precision = "fp16"} {
  train.variable @v : tensor<4xf16> init <"normal", 0.02> storage <"v">
  func.func @loss(%x: tensor<2x4xf16> {train.input = "x"}) -> tensor<f32> {
    %v = train.get @v : tensor<4xf16>
    %y = train.mul %x, %v : (tensor<2x4xf16>, tensor<4xf16>) -> tensor<2x4xf16>
    %loss = train.reduce sum %y over [0, 1] : (tensor<2x4xf16>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK-LABEL: func.func @step
// CHECK-SAME: %[[SCALE:arg[0-9]+]]: tensor<f32> {train.input = "loss_scale"}
// CHECK: %[[SCALED:.*]] = train.global_norm
// CHECK: %[[NORM:.*]] = train.unscale %[[SCALED]], %[[SCALE]]
// CHECK: %[[CLIP:.*]] = train.clip_factor %[[NORM]]
// CHECK: %[[FACTOR:.*]] = train.unscale %[[CLIP]], %[[SCALE]]
// CHECK: %[[MASTER:.*]] = train.get @v.master : tensor<4xf32>
// CHECK: %[[M:.*]] = train.get @v.momentum : tensor<4xf32>
// CHECK: %[[NEW:[^,]*]], %[[STATES:.*]]:2 = train.update "adamw" %[[MASTER]], {{.*}}, %[[FACTOR]],
// CHECK: %[[KEPT:.*]] = train.guard %[[NEW]], %[[MASTER]] if_finite %[[NORM]]
// CHECK: train.set @v.master, %[[KEPT]]
// CHECK: train.cast %[[KEPT]]
// CHECK: train.guard %[[STATES]]#0, %[[M]] if_finite %[[NORM]]
// CHECK: return %{{.*}}, %[[NORM]]

// SGD: train.update "sgd"
// SGD: train.guard

// -----

// What else @loss reports is summed over microbatches as the loss is, has no gradient of its own, and is in @eval too.
module attributes {train.microbatches = 2 : i64} {
  train.variable @v : tensor<4xf32> init <"normal", 0.02> storage <"v">
  func.func @loss(%x: tensor<2x4xf32> {train.input = "x"}) -> (tensor<f32> {train.output = "loss"}, tensor<f32> {train.output = "aux_loss"}) {
    %v = train.get @v : tensor<4xf32>
    %y = train.mul %x, %v : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    %part = train.reduce sum %y over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
    %square = train.mul %part, %part : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %loss = train.add %square, %part : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %loss, %part : tensor<f32>, tensor<f32>
  }
}
// CHECK-LABEL: func.func private @microbatch(
// CHECK-SAME: %[[LOSSES:[^:]*]]: tensor<f32>, %[[PARTS:[^:]*]]: tensor<f32>, %[[GRADIENTS:[^:]*]]: tensor<4xf32>
// CHECK: %[[PART:.*]] = train.reduce sum
// CHECK: %[[LOSS:.*]] = train.add %{{.*}}, %[[PART]]
// CHECK: %[[A:.*]] = train.accumulate %[[LOSSES]], %[[LOSS]]
// CHECK: %[[B:.*]] = train.accumulate %[[PARTS]], %[[PART]]
// CHECK: return %[[A]], %[[B]], %{{.*}} : tensor<f32>, tensor<f32>, tensor<4xf32>
// CHECK-LABEL: func.func @eval
// CHECK-SAME: -> (tensor<f32> {train.output = "loss"}, tensor<f32> {train.output = "aux_loss"})
// CHECK-LABEL: func.func @step
// CHECK-SAME: -> (tensor<f32> {train.output = "loss"}, tensor<f32> {train.output = "grad_norm"}, tensor<f32> {train.output = "aux_loss"})
// CHECK: %[[SUMS:.*]]:3 = train.repeat @microbatch x 2
// CHECK: %[[SQUARE:.*]] = train.square_sum %[[SUMS]]#2
// CHECK: %[[NORM:.*]] = train.global_norm %[[SQUARE]]
// CHECK: return %[[SUMS]]#0, %[[NORM]], %[[SUMS]]#1

// SGD: train.update "sgd"

// -----

// A parameter that the loss does not read would silently never train.
module attributes {train.microbatches = 1 : i64} {
  // expected-error @+1 {{is never written by @step: does the loss depend on it?}}
  train.variable @unused : tensor<4xf32> init <"normal", 0.02> storage <"unused">
  train.variable @v : tensor<4xf32> init <"normal", 0.02> storage <"v">
  func.func @loss(%x: tensor<4xf32> {train.input = "x"}) -> tensor<f32> {
    %v = train.get @v : tensor<4xf32>
    %z = train.mul %x, %v : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %loss = train.reduce sum %z over [0] : (tensor<4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
