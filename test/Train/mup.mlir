// RUN: meshwright-opt %s --train-autodiff --train-accumulate --train-build-optimizer="optimizer-groups=model.head:lr=3;model.u:decay=0.5,lr=2" | FileCheck %s
// RUN: meshwright-opt %s --train-autodiff --train-accumulate --train-build-optimizer="optimizer=lion" | FileCheck %s --check-prefix=LION
// RUN: meshwright-opt %s --train-autodiff --train-accumulate --train-build-optimizer="optimizer=sgd" | FileCheck %s --check-prefix=SGD
// RUN: meshwright-opt %s --train-autodiff --train-accumulate --train-build-optimizer="optimizer=sgd-momentum" | FileCheck %s --check-prefix=MOMENTUM
// RUN: not meshwright-opt %s --train-autodiff --train-accumulate --train-build-optimizer="optimizer=muon" 2>&1 | FileCheck %s --check-prefix=MUON
// RUN: not meshwright-opt %s --train-autodiff --train-accumulate --train-build-optimizer="optimizer=adafactor" 2>&1 | FileCheck %s --check-prefix=ADAFACTOR
// RUN: not meshwright-opt %s --train-adapt="lora=r=2,alpha=4,targets=w" --train-autodiff --train-accumulate --train-build-optimizer 2>&1 | FileCheck %s --check-prefix=LORA

// Rates of muP: Adam's is divided by the growth of the fan-in, SGD's multiplied by that of the fan-out too; the product of rate and
// decay is the base's. @w is a matrix between widths, @u reads a width and gives none, as a router does.
module attributes {train.microbatches = 1 : i64} {
  train.variable @table : tensor<4x4xf32> init <"normal", 0.02> storage <"model.table"> {train.fan_out_multiplier = 4.0 : f64}
  train.variable @w : tensor<4x4xf32> init <"normal", 0.02> storage <"model.w.weight"> {train.fan_in_multiplier = 8.0 : f64, train.fan_out_multiplier = 4.0 : f64}
  train.variable @u : tensor<4x4xf32> init <"normal", 0.02> storage <"model.u"> {train.fan_in_multiplier = 4.0 : f64}
  train.variable @bias : tensor<4xf32> storage <"model.bias"> {train.fan_out_multiplier = 4.0 : f64}
  train.variable @head : tensor<4x4xf32> init <"normal", 0.02> storage <"model.head">
  func.func @loss(%x: tensor<2x4xf32> {train.input = "x"}) -> tensor<f32> {
    %table = train.get @table : tensor<4x4xf32>
    %w = train.get @w : tensor<4x4xf32>
    %u = train.get @u : tensor<4x4xf32>
    %bias = train.get @bias : tensor<4xf32>
    %head = train.get @head : tensor<4x4xf32>
    %a = train.linear %x, %table : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %b = train.linear %a, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %c = train.linear %b, %u : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %d = train.add %c, %bias : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    %e = train.linear %d, %head : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %loss = train.reduce sum %e over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK-LABEL: func.func @step
// CHECK-SAME: [[EPS:%[a-z0-9_]+]]: tensor<f32> {train.input = "eps"}
// CHECK: train.update "adamw" decay {{[^{]*}}[[EPS]],{{[^{]*$}}
// CHECK-NEXT: train.guard
// CHECK-NEXT: train.set @table,
// CHECK: [[EIGHTH:%[0-9]+]] = train.scale [[EPS]] by 1.250000e-01
// CHECK: train.update "adamw" decay {{.*}}[[EIGHTH]],{{.*}} {decay_factor = 8.000000e+00 : f64, lr_factor = 1.250000e-01 : f64}
// CHECK-NEXT: train.guard
// CHECK-NEXT: train.set @w,
// Factors of a group are multiplied by those of muP.
// CHECK: [[QUARTER:%[0-9]+]] = train.scale [[EPS]] by 2.500000e-01
// CHECK: train.update "adamw" decay {{.*}}[[QUARTER]],{{.*}} {decay_factor = 2.000000e+00 : f64, lr_factor = 5.000000e-01 : f64}
// CHECK-NEXT: train.guard
// CHECK-NEXT: train.set @u,
// CHECK: train.update "adamw" %{{[^{]*$}}
// CHECK-NEXT: train.guard
// CHECK-NEXT: train.set @bias,
// CHECK: train.update "adamw" decay {{.*}} {lr_factor = 3.000000e+00 : f64}
// CHECK-NEXT: train.guard
// CHECK-NEXT: train.set @head,

// LION: train.update "lion" decay {{[^{]*$}}
// LION: train.update "lion" decay {{.*}} {decay_factor = 8.000000e+00 : f64, lr_factor = 1.250000e-01 : f64}
// LION: train.update "lion" decay {{.*}} {decay_factor = 4.000000e+00 : f64, lr_factor = 2.500000e-01 : f64}
// LION: train.update "lion" %{{[^{]*$}}
// LION: train.update "lion" decay {{[^{]*$}}

// SGD: train.update "sgd" {{.*}} {lr_factor = 4.000000e+00 : f64}
// SGD: train.update "sgd" {{.*}} {lr_factor = 5.000000e-01 : f64}
// SGD: train.update "sgd" {{.*}} {lr_factor = 2.500000e-01 : f64}
// SGD: train.update "sgd" {{.*}} {lr_factor = 4.000000e+00 : f64}
// SGD: train.update "sgd" {{[^{]*$}}

// MOMENTUM: train.update "sgd-momentum" decay {{.*}} {decay_factor = 2.500000e-01 : f64, lr_factor = 4.000000e+00 : f64}
// MOMENTUM: train.update "sgd-momentum" decay {{.*}} {decay_factor = 2.000000e+00 : f64, lr_factor = 5.000000e-01 : f64}

// MUON: error: --mup-base: no rule is published for how steps of --optimizer muon depend on the width of a model; there are rules for adamw, adam, lion, sgd, sgd-momentum, sgd-nesterov
// ADAFACTOR: error: --mup-base: no rule is published for how steps of --optimizer adafactor depend
// LORA: error: --mup-base: muP has no rule for adapters; leave it or --lora out
