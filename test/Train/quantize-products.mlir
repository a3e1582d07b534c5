// RUN: meshwright-opt %s --train-quantize-products -split-input-file -verify-diagnostics | FileCheck %s
// RUN: not meshwright-opt %s --train-quantize-products="fp8-recipe=rowwise" -split-input-file 2>&1 | FileCheck %s --check-prefix=RECIPE
// RECIPE: --fp8-recipe option: 'rowwise' is not supported; the choices are tensor, block, delayed, mxfp8

// BEGIN EXAMPLE --train-quantize-products
module attributes {train.grad_type = f32, train.precision = "bf16"} {
  train.variable @q : tensor<2x16x16xbf16> stacked init <"normal", 0.02> storage <"{layer}.q">
  train.variable @k : tensor<2x32x16xbf16> stacked init <"normal", 0.02> storage <"{layer}.k">
  func.func private @layer(%x: tensor<1x4x16xbf16>, %q: tensor<16x16xbf16>, %k: tensor<32x16xbf16>) -> tensor<1x4x16xbf16> {
    %0 = train.linear %x, %q : (tensor<1x4x16xbf16>, tensor<16x16xbf16>) -> tensor<1x4x16xbf16>
    %1 = train.linear %x, %k : (tensor<1x4x16xbf16>, tensor<32x16xbf16>) -> tensor<1x4x32xbf16>
    %2 = train.slice %1 dim 2 from 16 rows 16 : (tensor<1x4x32xbf16>) -> tensor<1x4x16xbf16>
    %3 = train.add %0, %2 : (tensor<1x4x16xbf16>, tensor<1x4x16xbf16>) -> tensor<1x4x16xbf16>
    return %3 : tensor<1x4x16xbf16>
  }
  func.func @loss(%x: tensor<1x4x16xbf16>) -> tensor<f32> {
    %q = train.get @q : tensor<2x16x16xbf16>
    %k = train.get @k : tensor<2x32x16xbf16>
    %y = train.repeat @layer x 2 carry(%x) each(%q, %k) shared() : (tensor<1x4x16xbf16>, tensor<2x16x16xbf16>, tensor<2x32x16xbf16>) -> tensor<1x4x16xbf16>
    %loss = train.reduce sum %y over [0, 1, 2] : (tensor<1x4x16xbf16>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// END EXAMPLE

// CHECK: module attributes {train.grad_type = f32, train.precision = "fp8"}
// What both products read is quantized once.
// CHECK-LABEL: func.func private @layer
// CHECK-SAME: (%[[X:.*]]: tensor<1x4x16xbf16>, %[[Q:.*]]: tensor<16x16xbf16>, %[[K:.*]]: tensor<32x16xbf16>)
// CHECK: %[[XMAX:.*]] = train.amax %[[X]] : (tensor<1x4x16xbf16>) -> tensor<f32>
// CHECK: %[[XS:.*]] = train.quantization_scale %[[XMAX]] to f8E4M3FN
// CHECK: %[[X8:.*]] = train.quantize %[[X]] by %[[XS]] : (tensor<1x4x16xbf16>, tensor<f32>) -> tensor<1x4x16xf8E4M3FN>
// CHECK: %[[QMAX:.*]] = train.amax %[[Q]]
// CHECK: %[[QS:.*]] = train.quantization_scale %[[QMAX]] to f8E4M3FN
// CHECK: %[[Q8:.*]] = train.quantize %[[Q]] by %[[QS]]
// CHECK: train.scaled_contract "r0 r1 i, o i -> r0 r1 o" %[[X8]], %[[Q8]] scales(%[[XS]], %[[QS]]) : (tensor<1x4x16xf8E4M3FN>, tensor<16x16xf8E4M3FN>, tensor<f32>, tensor<f32>) -> tensor<1x4x16xbf16>
// CHECK-NOT: train.quantize %[[X]]
// CHECK: train.scaled_contract {{.*}} %[[X8]],
// CHECK-LABEL: func.func @loss
// CHECK-NOT: quantize

// -----

// A router and a product whose width is no multiple of 16 stay in bf16, and so does the output layer.
// expected-remark @+1 {{fp8: products of layers with weights 8 x 16 stay in bf16; widths have to be multiples of 16}}
module attributes {train.grad_type = f32, train.precision = "bf16"} {
  func.func private @layer(%x: tensor<4x16xbf16>, %r: tensor<16x16xbf16>, %u: tensor<8x16xbf16>, %w: tensor<16x16xbf16>) -> tensor<4x16xbf16> {
    %0 = train.linear %x, %r : (tensor<4x16xbf16>, tensor<16x16xbf16>) -> tensor<4x16xbf16>
    %p = train.softmax %0 : (tensor<4x16xbf16>) -> tensor<4x16xbf16>
    %m = train.top_k %p k 2 : (tensor<4x16xbf16>) -> tensor<4x16xbf16>
    %1 = train.mul %p, %m : (tensor<4x16xbf16>, tensor<4x16xbf16>) -> tensor<4x16xbf16>
    %2 = train.linear %x, %u : (tensor<4x16xbf16>, tensor<8x16xbf16>) -> tensor<4x8xbf16>
    %3 = train.pad %2 dim 1 rows 16 : (tensor<4x8xbf16>) -> tensor<4x16xbf16>
    %4 = train.linear %1, %w : (tensor<4x16xbf16>, tensor<16x16xbf16>) -> tensor<4x16xbf16>
    %5 = train.add %3, %4 : (tensor<4x16xbf16>, tensor<4x16xbf16>) -> tensor<4x16xbf16>
    return %5 : tensor<4x16xbf16>
  }
  func.func @loss(%x: tensor<4x16xbf16>, %r: tensor<1x16x16xbf16>, %u: tensor<1x8x16xbf16>, %w: tensor<1x16x16xbf16>, %h: tensor<32x16xbf16>) -> tensor<f32> {
    %y = train.repeat @layer x 1 carry(%x) each(%r, %u, %w) shared() : (tensor<4x16xbf16>, tensor<1x16x16xbf16>, tensor<1x8x16xbf16>, tensor<1x16x16xbf16>) -> tensor<4x16xbf16>
    %logits = train.linear %y, %h : (tensor<4x16xbf16>, tensor<32x16xbf16>) -> tensor<4x32xbf16>
    %loss = train.reduce sum %logits over [0, 1] : (tensor<4x32xbf16>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK-LABEL: func.func private @layer
// CHECK: train.linear {{.*}} -> tensor<4x16xbf16>
// CHECK: train.linear {{.*}} -> tensor<4x8xbf16>
// CHECK: train.scaled_contract
// CHECK-LABEL: func.func @loss
// CHECK: train.linear

// -----

// expected-error @+1 {{is not in bf16, of which fp8 is a variant; run train-mixed-precision with precision bf16 before}}
module {
}

// -----

// expected-error @+1 {{has no product of a layer's activations and weights in bf16 to quantize: widths have to be multiples of 16; use --precision bf16}}
module attributes {train.precision = "bf16"} {
  func.func private @layer(%x: tensor<4x16xf32>, %w: tensor<16x16xf32>) -> tensor<4x16xf32> {
    %0 = train.linear %x, %w : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
    return %0 : tensor<4x16xf32>
  }
  func.func @loss(%x: tensor<4x16xf32>, %w: tensor<1x16x16xf32>) -> tensor<f32> {
    %y = train.repeat @layer x 1 carry(%x) each(%w) shared() : (tensor<4x16xf32>, tensor<1x16x16xf32>) -> tensor<4x16xf32>
    %loss = train.reduce sum %y over [0, 1] : (tensor<4x16xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
