// Products of experts in recipes of fp8.
// RUN: meshwright-opt %s --train-quantize-products="fp8-recipe=mxfp8" --train-autodiff="residuals=written" | FileCheck %s
// RUN: not meshwright-opt %s --train-quantize-products="fp8-recipe=block" 2>&1 | FileCheck %s --check-prefix=WIDTHS
// RUN: not meshwright-opt %s --train-quantize-products 2>&1 | FileCheck %s --check-prefix=TENSOR
// WIDTHS: error: has no product of a layer's activations and weights in bf16 to quantize: widths, and numbers of tokens in a sequence, have to be multiples of 128; use --fp8-recipe mxfp8, whose blocks are of 32, or --fp8-recipe tensor
// TENSOR: error: has no product of a layer's activations and weights in bf16 to quantize: widths have to be multiples of 16; use --precision bf16

// Experts' rows and matrices are rounded too, and the gradient of a row; the gradient of a matrix is of the gradient itself.
module attributes {train.grad_type = f32, train.precision = "bf16"} {
  train.variable @w : tensor<2x4x64x32xbf16> stacked init <"normal", 0.02> storage <"{layer}.w">
  func.func private @layer(%x: tensor<1x1x8x32xbf16>, %w: tensor<4x64x32xbf16>, %e: tensor<1x1x8xi32>) -> tensor<1x1x8x32xbf16> {
    %0 = train.grouped_linear %x, %w of %e : (tensor<1x1x8x32xbf16>, tensor<4x64x32xbf16>, tensor<1x1x8xi32>) -> tensor<1x1x8x64xbf16>
    %1 = train.slice %0 dim 3 from 0 rows 32 : (tensor<1x1x8x64xbf16>) -> tensor<1x1x8x32xbf16>
    return %1 : tensor<1x1x8x32xbf16>
  }
  func.func @loss(%x: tensor<1x1x8x32xbf16>, %e: tensor<1x1x8xi32>) -> tensor<f32> {
    %w = train.get @w : tensor<2x4x64x32xbf16>
    %y = train.repeat @layer x 2 carry(%x) each(%w) shared(%e) : (tensor<1x1x8x32xbf16>, tensor<2x4x64x32xbf16>, tensor<1x1x8xi32>) -> tensor<1x1x8x32xbf16>
    %loss = train.reduce sum %y over [0, 1, 2, 3] : (tensor<1x1x8x32xbf16>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK-LABEL: func.func private @layer(
// CHECK: train.amax %{{.*}} over [4] : (tensor<1x1x8x1x32xbf16>) -> tensor<1x1x8x1xf32>
// CHECK: train.amax %{{.*}} over [3] : (tensor<4x64x1x32xbf16>) -> tensor<4x64x1xf32>
// CHECK: train.grouped_linear %{{.*}}, %{{.*}} of %{{.*}} blocks [1, 32]
// CHECK-LABEL: func.func private @layer.backward(
// CHECK: %[[DY:.*]] = train.{{pad|slice_grad}}
// CHECK: train.amax %{{.*}} over [4] : (tensor<1x1x8x2x32xbf16>) -> tensor<1x1x8x2xf32>
// CHECK: train.amax %{{.*}} over [2] : (tensor<4x2x32x32xbf16>) -> tensor<4x2x32xf32>
// CHECK: train.grouped_linear transposed
// CHECK: train.grouped_linear_grad %[[DY]], %{{.*}} of
