// Recipes of fp8 with a scale for each block.
// RUN: meshwright-opt %s --train-quantize-products="fp8-recipe=block" -split-input-file | FileCheck %s --check-prefix=BLOCK
// RUN: meshwright-opt %s --train-quantize-products="fp8-recipe=mxfp8" --train-autodiff="residuals=written" -split-input-file | FileCheck %s --check-prefix=MX

// The weight's blocks are squares, an activation's are parts of rows; what two products read is rounded once. A product
// whose width is no multiple of the block stays in bf16.
module attributes {train.grad_type = f32, train.precision = "bf16"} {
  train.variable @q : tensor<2x256x128xbf16> stacked init <"normal", 0.02> storage <"{layer}.q">
  train.variable @o : tensor<2x128x256xbf16> stacked init <"normal", 0.02> storage <"{layer}.o">
  train.variable @n : tensor<2x96x128xbf16> stacked init <"normal", 0.02> storage <"{layer}.n">
  func.func private @layer(%x: tensor<1x128x128xbf16>, %q: tensor<256x128xbf16>, %o: tensor<128x256xbf16>, %n: tensor<96x128xbf16>) -> tensor<1x128x128xbf16> {
    %0 = train.linear %x, %q : (tensor<1x128x128xbf16>, tensor<256x128xbf16>) -> tensor<1x128x256xbf16>
    %1 = train.gelu %0 : (tensor<1x128x256xbf16>) -> tensor<1x128x256xbf16>
    %2 = train.linear %1, %o : (tensor<1x128x256xbf16>, tensor<128x256xbf16>) -> tensor<1x128x128xbf16>
    %3 = train.linear %x, %n : (tensor<1x128x128xbf16>, tensor<96x128xbf16>) -> tensor<1x128x96xbf16>
    %4 = train.pad %3 dim 2 rows 128 : (tensor<1x128x96xbf16>) -> tensor<1x128x128xbf16>
    %5 = train.add %2, %4 : (tensor<1x128x128xbf16>, tensor<1x128x128xbf16>) -> tensor<1x128x128xbf16>
    return %5 : tensor<1x128x128xbf16>
  }
  func.func @loss(%x: tensor<1x128x128xbf16>) -> tensor<f32> {
    %q = train.get @q : tensor<2x256x128xbf16>
    %o = train.get @o : tensor<2x128x256xbf16>
    %n = train.get @n : tensor<2x96x128xbf16>
    %y = train.repeat @layer x 2 carry(%x) each(%q, %o, %n) shared() : (tensor<1x128x128xbf16>, tensor<2x256x128xbf16>, tensor<2x128x256xbf16>, tensor<2x96x128xbf16>) -> tensor<1x128x128xbf16>
    %loss = train.reduce sum %y over [0, 1, 2] : (tensor<1x128x128xbf16>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// BLOCK: module attributes {train.grad_type = f32, train.precision = "fp8"}
// BLOCK-LABEL: func.func private @layer(
// BLOCK-SAME: %[[X:.*]]: tensor<1x128x128xbf16>, %[[Q:.*]]: tensor<256x128xbf16>, %[[O:.*]]: tensor<128x256xbf16>, %[[N:.*]]: tensor<96x128xbf16>)
// BLOCK: %[[XB:.*]] = train.reshape %[[X]] : (tensor<1x128x128xbf16>) -> tensor<1x128x1x128xbf16>
// BLOCK: %[[XMAX:.*]] = train.amax %[[XB]] over [3] : (tensor<1x128x1x128xbf16>) -> tensor<1x128x1xf32>
// BLOCK: %[[XS:.*]] = train.quantization_scale %[[XMAX]] to f8E4M3FN
// BLOCK: %[[X8:.*]] = train.quantize %[[XB]] by %[[XS]] along [3]
// BLOCK: %[[XD:.*]] = train.dequantize %[[X8]] by %[[XS]] along [3] : (tensor<1x128x1x128xf8E4M3FN>, tensor<1x128x1xf32>) -> tensor<1x128x1x128xbf16>
// BLOCK: %[[XR:.*]] = train.reshape %[[XD]] : (tensor<1x128x1x128xbf16>) -> tensor<1x128x128xbf16>
// BLOCK: %[[QB:.*]] = train.reshape %[[Q]] : (tensor<256x128xbf16>) -> tensor<2x128x1x128xbf16>
// BLOCK: train.amax %[[QB]] over [1, 3] : (tensor<2x128x1x128xbf16>) -> tensor<2x1xf32>
// BLOCK: %[[QR:.*]] = train.reshape %{{.*}} : (tensor<2x128x1x128xbf16>) -> tensor<256x128xbf16>
// BLOCK: train.linear %[[XR]], %[[QR]] blocks [128, 128]
// BLOCK-NOT: train.reshape %[[X]]
// BLOCK: train.linear %[[X]], %[[N]] : (tensor<1x128x128xbf16>

// The forward keeps x's numbers of 8 bits and amaxes, and what gelu reads; the backward rounds the gradient of a product along its columns for
// x's, and along tokens for the weight's, with x's numbers; each weight is rounded again along its rows.
// MX-LABEL: func.func private @layer.forward(
// MX-SAME: -> (tensor<1x128x128xbf16>, tensor<1x128x256xbf16>, tensor<1x128x4xf32>, tensor<1x128x4x32xf8E4M3FN>)
// MX-LABEL: func.func private @layer.backward(
// MX: %[[X:.*]] = train.dequantize %{{.*}} along [3] : (tensor<1x128x8x32xf8E4M3FN>, tensor<1x128x8xf32>) -> tensor<1x128x8x32xbf16>
// MX: train.amax %{{.*}} over [1] : (tensor<4x32x256xbf16>) -> tensor<4x256xf32>
// MX: train.contract "_0 _1 o, o i -> _0 _1 i" %{{.*}} : (tensor<1x128x128xbf16>, tensor<128x256xbf16>) -> tensor<1x128x256xbf16>
// MX: train.amax %{{.*}} over [2] : (tensor<1x4x32x128xbf16>) -> tensor<1x4x128xf32>
// MX: train.amax %{{.*}} over [2] : (tensor<1x4x32x256xbf16>) -> tensor<1x4x256xf32>
// MX: train.contract "_0 _1 o, _0 _1 i -> o i" %{{.*}} : (tensor<1x128x128xbf16>, tensor<1x128x256xbf16>) -> tensor<128x256xf32>

// -----

// What the module itself rounds by another scale, or reshapes alike after a product, is not taken for the product's.
module attributes {train.grad_type = f32, train.precision = "bf16"} {
  train.variable @q : tensor<2x128x128xbf16> stacked init <"normal", 0.02> storage <"{layer}.q">
  func.func private @layer(%x: tensor<1x128x128xbf16>, %q: tensor<128x128xbf16>) -> tensor<1x128x128xbf16> {
    %xb = train.reshape %x : (tensor<1x128x128xbf16>) -> tensor<1x128x1x128xbf16>
    %twice = train.add %xb, %xb : (tensor<1x128x1x128xbf16>, tensor<1x128x1x128xbf16>) -> tensor<1x128x1x128xbf16>
    %a = train.amax %twice over [3] : (tensor<1x128x1x128xbf16>) -> tensor<1x128x1xf32>
    %s = train.quantization_scale %a to f8E4M3FN : (tensor<1x128x1xf32>) -> tensor<1x128x1xf32>
    %x8 = train.quantize %xb by %s along [3] : (tensor<1x128x1x128xbf16>, tensor<1x128x1xf32>) -> tensor<1x128x1x128xf8E4M3FN>
    %xd = train.dequantize %x8 by %s along [3] : (tensor<1x128x1x128xf8E4M3FN>, tensor<1x128x1xf32>) -> tensor<1x128x1x128xbf16>
    %0 = train.linear %x, %q : (tensor<1x128x128xbf16>, tensor<128x128xbf16>) -> tensor<1x128x128xbf16>
    %later = train.reshape %q : (tensor<128x128xbf16>) -> tensor<1x128x1x128xbf16>
    %1 = train.add %xd, %later : (tensor<1x128x1x128xbf16>, tensor<1x128x1x128xbf16>) -> tensor<1x128x1x128xbf16>
    %2 = train.reshape %1 : (tensor<1x128x1x128xbf16>) -> tensor<1x128x128xbf16>
    %3 = train.add %0, %2 : (tensor<1x128x128xbf16>, tensor<1x128x128xbf16>) -> tensor<1x128x128xbf16>
    return %3 : tensor<1x128x128xbf16>
  }
  func.func @loss(%x: tensor<1x128x128xbf16>) -> tensor<f32> {
    %q = train.get @q : tensor<2x128x128xbf16>
    %y = train.repeat @layer x 2 carry(%x) each(%q) shared() : (tensor<1x128x128xbf16>, tensor<2x128x128xbf16>) -> tensor<1x128x128xbf16>
    %loss = train.reduce sum %y over [0, 1, 2] : (tensor<1x128x128xbf16>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// BLOCK-LABEL: func.func private @layer(
// BLOCK-SAME: %[[X:.*]]: tensor<1x128x128xbf16>, %[[Q:.*]]: tensor<128x128xbf16>)
// BLOCK: train.dequantize
// BLOCK: %[[XB:.*]] = train.reshape %[[X]]
// BLOCK: %[[A:.*]] = train.amax %[[XB]] over [3]
// BLOCK: %[[S:.*]] = train.quantization_scale %[[A]]
// BLOCK: %[[X8:.*]] = train.quantize %[[XB]] by %[[S]]
// BLOCK: %[[XD:.*]] = train.dequantize %[[X8]] by %[[S]]
// BLOCK: %[[XR:.*]] = train.reshape %[[XD]]
// BLOCK: train.linear %[[XR]], %{{.*}} blocks [128, 128]
