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

// -----

// What is marked stays f32, and so does what layers carry of it: here scores, of logits in the narrow type, their sum
// over layers, and a parameter. They are rounded where others read them. The mark is gone.
// CHECK-NOT: full_precision
// CHECK: train.variable @b : tensor<3x4xf32> stacked
// CHECK: train.variable @w : tensor<3x4x4xbf16> stacked
// CHECK-LABEL: func.func private @layer
// CHECK-SAME: (%arg0: tensor<2x4xbf16>, %arg1: tensor<4xf32>, %arg2: tensor<4x4xbf16>, %arg3: tensor<4xf32>) -> (tensor<2x4xbf16>, tensor<4xf32>)
// CHECK-NEXT: %[[LOGITS:.*]] = train.linear %arg0, %arg2 : (tensor<2x4xbf16>, tensor<4x4xbf16>) -> tensor<2x4xbf16>
// CHECK-NEXT: %[[WIDE:.*]] = train.cast %[[LOGITS]] : (tensor<2x4xbf16>) -> tensor<2x4xf32>
// CHECK-NEXT: %[[SCORES:.*]] = train.softmax %[[WIDE]] : (tensor<2x4xf32>) -> tensor<2x4xf32>
// CHECK-NEXT: %[[CHOICE:.*]] = train.add %[[SCORES]], %arg3 : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
// CHECK-NEXT: %[[CHOSEN:.*]] = train.top_k %[[CHOICE]] k 2 : (tensor<2x4xf32>) -> tensor<2x4xf32>
// CHECK-NEXT: %[[COUNT:.*]] = train.reduce sum %[[CHOSEN]] over [0] : (tensor<2x4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[SUM:.*]] = train.add %arg1, %[[COUNT]] : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[ROUNDED:.*]] = train.cast %[[SCORES]] : (tensor<2x4xf32>) -> tensor<2x4xbf16>
// CHECK-NEXT: %[[Y:.*]] = train.mul %arg0, %[[ROUNDED]] : (tensor<2x4xbf16>, tensor<2x4xbf16>) -> tensor<2x4xbf16>
// CHECK-NEXT: return %[[Y]], %[[SUM]] : tensor<2x4xbf16>, tensor<4xf32>
// CHECK-LABEL: func.func @loss
// CHECK: %[[ZEROS:.*]] = train.fill 0.000000e+00 : () -> tensor<4xf32>
// CHECK: %[[Z:.*]]:2 = train.repeat @layer x 3 carry(%{{.*}}, %[[ZEROS]])
// CHECK: train.mul %[[Z]]#1, %[[Z]]#1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// F32-NOT: full_precision
module {
  train.variable @b : tensor<3x4xf32> stacked init <"constant", 0.0> storage <"{layer}.b"> {train.full_precision}
  train.variable @w : tensor<3x4x4xf32> stacked init <"normal", 0.02> storage <"{layer}.w">
  func.func private @layer(%x: tensor<2x4xf32>, %sum: tensor<4xf32>, %w: tensor<4x4xf32>, %b: tensor<4xf32>) -> (tensor<2x4xf32>, tensor<4xf32>) {
    %logits = train.linear %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %scores = train.softmax %logits {train.full_precision} : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %choice = train.add %scores, %b {train.full_precision} : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    %chosen = train.top_k %choice k 2 {train.full_precision} : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %count = train.reduce sum %chosen over [0] {train.full_precision} : (tensor<2x4xf32>) -> tensor<4xf32>
    %next = train.add %sum, %count {train.full_precision} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %y = train.mul %x, %scores : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    return %y, %next : tensor<2x4xf32>, tensor<4xf32>
  }
  func.func @loss(%x: tensor<2x4xf32>) -> tensor<f32> {
    %w = train.get @w : tensor<3x4x4xf32>
    %b = train.get @b : tensor<3x4xf32>
    %none = train.fill 0.0 {train.full_precision} : () -> tensor<4xf32>
    %y, %sum = train.repeat @layer x 3 carry(%x, %none) each(%w, %b) shared() : (tensor<2x4xf32>, tensor<4xf32>, tensor<3x4x4xf32>, tensor<3x4xf32>) -> (tensor<2x4xf32>, tensor<4xf32>)
    %square = train.mul %sum, %sum {train.full_precision} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %part = train.reduce sum %square over [0] {train.full_precision} : (tensor<4xf32>) -> tensor<f32>
    %loss = train.reduce sum %y over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
    %all = train.add %loss, %part : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %all : tensor<f32>
  }
}

// -----

// A sum that other ops read too has the type that they were given.
// CHECK-LABEL: func.func @loss
// CHECK: %[[PART:.*]] = train.reduce sum %{{.*}} over [0, 1] : (tensor<2x4xbf16>) -> tensor<bf16>
// CHECK: train.mul %{{.*}}, %{{.*}} : (tensor<f32>, tensor<f32>) -> tensor<f32>
// CHECK: train.cast %[[PART]] : (tensor<bf16>) -> tensor<f32>
// CHECK: return
module {
  train.variable @w : tensor<4xf32> init <"normal", 0.02>
  func.func @loss(%x: tensor<2x4xf32>) -> (tensor<f32>, tensor<f32>) {
    %w = train.get @w : tensor<4xf32>
    %y = train.mul %x, %w : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    %part = train.reduce sum %y over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
    %square = train.mul %part, %part : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %square, %part : tensor<f32>, tensor<f32>
  }
}

// -----

// What is wider than f32 stays.
// CHECK-LABEL: func.func @loss
// CHECK: train.fill 5.000000e-01 : () -> tensor<4xf64>
module {
  func.func @loss(%x: tensor<4xf32>) -> tensor<f32> {
    %wide = train.fill 0.5 : () -> tensor<4xf64>
    %loss = train.reduce sum %x over [0] : (tensor<4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
