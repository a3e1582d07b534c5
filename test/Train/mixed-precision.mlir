// RUN: meshwright-opt %s --train-mixed-precision="precision=bf16" -split-input-file -verify-diagnostics | FileCheck %s
// RUN: meshwright-opt %s --train-mixed-precision -split-input-file | FileCheck %s --check-prefix=F32
// RUN: not meshwright-opt %s --train-mixed-precision="precision=fp8" -split-input-file 2>&1 | FileCheck %s --check-prefix=FP8
// FP8: --precision option: 'fp8' is not supported; the choices are f32, bf16, fp16
// RUN: not meshwright-opt %s --train-mixed-precision="precision=fp16 grad-dtype=bf16" -split-input-file 2>&1 | FileCheck %s --check-prefix=GRADIENTS
// GRADIENTS: gradients in bf16 do not go with precision fp16; f32 goes with every precision, bf16 with bf16

// BEGIN EXAMPLE --train-mixed-precision=precision=bf16
module {
  train.variable @w : tensor<8x4xf32> init <"normal", 0.02>
  func.func @loss(%x: tensor<2x4xf32>, %targets: tensor<2xi32>) -> tensor<f32> {
    %w = train.get @w : tensor<8x4xf32>
    %logits = train.linear %x, %w : (tensor<2x4xf32>, tensor<8x4xf32>) -> tensor<2x8xf32>
    %loss, %lse = train.cross_entropy %logits, %targets scale 0.5 : (tensor<2x8xf32>, tensor<2xi32>) -> (tensor<f32>, tensor<2xf32>)
    return %loss : tensor<f32>
  }
}
// END EXAMPLE

// CHECK: module attributes {train.grad_type = f32, train.precision = "bf16"}
// CHECK: train.variable @w : tensor<8x4xbf16>
// CHECK: %[[W:.*]] = train.get @w : tensor<8x4xbf16>
// CHECK: %[[X:.*]] = train.cast %arg0 : (tensor<2x4xf32>) -> tensor<2x4xbf16>
// CHECK: %[[LOGITS:.*]] = train.linear %[[X]], %[[W]] : (tensor<2x4xbf16>, tensor<8x4xbf16>) -> tensor<2x8xbf16>
// CHECK: train.cross_entropy %[[LOGITS]], %arg1 scale 5.000000e-01 : (tensor<2x8xbf16>, tensor<2xi32>) -> (tensor<f32>, tensor<2xf32>)

// F32: module {
// F32: train.variable @w : tensor<8x4xf32>
// F32-NOT: train.cast

// -----

// The residual stream and what the layers take are narrow; the tables of rotary
// positions, attention's lse and a loss that is a sum are not.
module {
  train.variable @w : tensor<3x4x4xf32> stacked init <"normal", 0.02> storage <"{layer}.w">
  func.func private @layer(%x: tensor<1x2x4xf32>, %w: tensor<4x4xf32>, %c: tensor<2x2xf32>, %s: tensor<2x2xf32>) -> tensor<1x2x4xf32> {
    %h = train.linear %x, %w : (tensor<1x2x4xf32>, tensor<4x4xf32>) -> tensor<1x2x4xf32>
    %q = train.reshape %h : (tensor<1x2x4xf32>) -> tensor<1x2x1x4xf32>
    %r = train.rope %q, %c, %s : (tensor<1x2x1x4xf32>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<1x2x1x4xf32>
    %a, %l = train.attention %r, %r, %q scale 0.5 causal : (tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>) -> (tensor<1x2x1x4xf32>, tensor<1x1x2xf32>)
    %o = train.reshape %a : (tensor<1x2x1x4xf32>) -> tensor<1x2x4xf32>
    %y = train.add %x, %o : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    return %y : tensor<1x2x4xf32>
  }
  func.func @loss(%x: tensor<1x2x4xf32>) -> tensor<f32> {
    %w = train.get @w : tensor<3x4x4xf32>
    %c, %s = train.rope_table [1.0, 0.1] : () -> (tensor<2x2xf32>, tensor<2x2xf32>)
    %y = train.repeat @layer x 3 carry(%x) each(%w) shared(%c, %s) : (tensor<1x2x4xf32>, tensor<3x4x4xf32>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<1x2x4xf32>
    %loss = train.reduce sum %y over [0, 1, 2] : (tensor<1x2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK-LABEL: func.func private @layer
// CHECK-SAME: (%arg0: tensor<1x2x4xbf16>, %arg1: tensor<4x4xbf16>, %arg2: tensor<2x2xf32>, %arg3: tensor<2x2xf32>) -> tensor<1x2x4xbf16>
// CHECK-NOT: train.cast
// CHECK: train.rope {{.*}} : (tensor<1x2x1x4xbf16>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<1x2x1x4xbf16>
// CHECK: train.attention {{.*}} -> (tensor<1x2x1x4xbf16>, tensor<1x1x2xf32>)
// CHECK-LABEL: func.func @loss
// CHECK: train.rope_table {{.*}} -> (tensor<2x2xf32>, tensor<2x2xf32>)
// CHECK: %[[X:.*]] = train.cast %arg0
// CHECK: train.repeat @layer x 3 carry(%[[X]])
// CHECK: train.reduce sum {{.*}} : (tensor<1x2x4xbf16>) -> tensor<f32>

// -----

module {
  // expected-error @+1 {{is in 'bf16'; mixed precision starts from parameters in f32}}
  train.variable @w : tensor<4xbf16> init <"normal", 0.02>
  func.func @loss(%x: tensor<4xf32>) -> tensor<f32> {
    %loss = train.reduce sum %x over [0] : (tensor<4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// expected-error @+1 {{has precision "bf16" already}}
module attributes {train.precision = "bf16"} {
  func.func @loss(%x: tensor<4xf32>) -> tensor<f32> {
    %loss = train.reduce sum %x over [0] : (tensor<4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

module {
  func.func private @layer(%x: tensor<4xf32>, %s: tensor<4xf32>) -> tensor<4xf32> {
    %y = train.add %x, %s : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
  train.variable @w : tensor<4xf32> init <"normal", 0.02>
  func.func @loss(%x: tensor<4xf32>) -> tensor<f32> {
    %w = train.get @w : tensor<4xf32>
    %y = train.repeat @layer x 2 carry(%x) each() shared(%w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    // expected-error @+1 {{calls @layer, which another op calls with other element types; give each its own function}}
    %z = train.repeat @layer x 2 carry(%y) each() shared(%x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %loss = train.reduce sum %z over [0] : (tensor<4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// What a loss is multiplied by is not rounded, nor is their product.
// CHECK: %[[LOSS:.*]], %{{.*}} = train.cross_entropy %{{.*}}, %arg1 scale 1.000000e+00 :
// CHECK-NEXT: %[[WEIGHED:.*]] = train.mul %[[LOSS]], %arg2 : (tensor<f32>, tensor<f32>) -> tensor<f32>
// CHECK-NEXT: return %[[WEIGHED]] : tensor<f32>
module {
  train.variable @w : tensor<8x4xf32> init <"normal", 0.02>
  func.func @loss(%x: tensor<2x4xf32>, %targets: tensor<2xi32>, %weight: tensor<f32>) -> tensor<f32> {
    %w = train.get @w : tensor<8x4xf32>
    %logits = train.linear %x, %w : (tensor<2x4xf32>, tensor<8x4xf32>) -> tensor<2x8xf32>
    %loss, %lse = train.cross_entropy %logits, %targets scale 1.0 : (tensor<2x8xf32>, tensor<2xi32>) -> (tensor<f32>, tensor<2xf32>)
    %weighed = train.mul %loss, %weight : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %weighed : tensor<f32>
  }
}
