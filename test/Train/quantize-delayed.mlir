// Scales that are made of what earlier steps observed.
// RUN: meshwright-opt %s --train-quantize-products="fp8-recipe=delayed" -verify-diagnostics | FileCheck %s --check-prefix=PRODUCTS
// RUN: meshwright-opt %s --train-quantize-products="fp8-recipe=delayed" --train-count-batch --train-autodiff="residuals=written" --train-accumulate --train-build-optimizer --train-verify --canonicalize -verify-diagnostics > %t.step
// RUN: meshwright-opt %s --train-quantize-products="fp8-recipe=delayed" --train-count-batch --train-autodiff --train-accumulate --train-build-optimizer="optimizer=schedule-free-adamw" --train-verify -verify-diagnostics | FileCheck %s --check-prefix=AVERAGES
// AVERAGES-NOT: amax.y_minus_x
// AVERAGES: train.variable @k.y_minus_x
// RUN: FileCheck %s --check-prefix=STEP < %t.step

// What two products read is quantized once; each product has a gradient of its own. A weight that layers share stays in bf16.
// expected-remark @+1 {{fp8: products of layers with weights 64 x 16 stay in bf16; delayed scaling needs a weight that one product of one layer alone reads}}
module attributes {train.grad_type = f32, train.precision = "bf16", train.batch = 2 : i64, train.microbatches = 2 : i64, train.sequence = 4 : i64, train.vocabulary = 8 : i64} {
  train.variable @q : tensor<2x16x16xbf16> stacked init <"normal", 0.02> storage <"{layer}.qk", dim = 0, offset = 0, full = 48>
  train.variable @k : tensor<2x32x16xbf16> stacked init <"normal", 0.02> storage <"{layer}.qk", dim = 0, offset = 16, full = 48>
  train.variable @s : tensor<64x16xbf16> init <"normal", 0.02> storage <"s">
  func.func private @layer(%x: tensor<1x4x16xbf16>, %q: tensor<16x16xbf16>, %k: tensor<32x16xbf16>, %s: tensor<64x16xbf16>) -> tensor<1x4x16xbf16> {
    %0 = train.linear %x, %q : (tensor<1x4x16xbf16>, tensor<16x16xbf16>) -> tensor<1x4x16xbf16>
    %1 = train.linear %x, %k : (tensor<1x4x16xbf16>, tensor<32x16xbf16>) -> tensor<1x4x32xbf16>
    %2 = train.slice %1 dim 2 from 16 rows 16 : (tensor<1x4x32xbf16>) -> tensor<1x4x16xbf16>
    %3 = train.linear %x, %s : (tensor<1x4x16xbf16>, tensor<64x16xbf16>) -> tensor<1x4x64xbf16>
    %4 = train.slice %3 dim 2 rows 16 : (tensor<1x4x64xbf16>) -> tensor<1x4x16xbf16>
    %5 = train.add %0, %2 : (tensor<1x4x16xbf16>, tensor<1x4x16xbf16>) -> tensor<1x4x16xbf16>
    %6 = train.add %5, %4 : (tensor<1x4x16xbf16>, tensor<1x4x16xbf16>) -> tensor<1x4x16xbf16>
    return %6 : tensor<1x4x16xbf16>
  }
  func.func @loss(%tokens: tensor<1x4xi32> {train.input = "tokens"}) -> tensor<f32> {
    %q = train.get @q : tensor<2x16x16xbf16>
    %k = train.get @k : tensor<2x32x16xbf16>
    %s = train.get @s : tensor<64x16xbf16>
    %x = train.fill 1.0 : () -> tensor<1x4x16xbf16>
    %y = train.repeat @layer x 2 carry(%x) each(%q, %k) shared(%s) : (tensor<1x4x16xbf16>, tensor<2x16x16xbf16>, tensor<2x32x16xbf16>, tensor<64x16xbf16>) -> tensor<1x4x16xbf16>
    %loss = train.reduce sum %y over [0, 1, 2] : (tensor<1x4x16xbf16>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// PRODUCTS: train.variable @k.gradient_amax : tensor<2xf32> stacked storage <"{layer}.qk.16.gradient_amax"> state "gradient_amax" of @k
// PRODUCTS-NOT: @k.input_amax
// PRODUCTS-LABEL: func.func private @layer(
// PRODUCTS-SAME: %[[X:[a-z0-9]*]]: tensor<1x4x16xbf16>, %[[Q:[a-z0-9]*]]: tensor<16x16xbf16>, %[[K:[a-z0-9]*]]: tensor<32x16xbf16>, %[[XA:[a-z0-9]*]]: tensor<f32>, %[[QA:[a-z0-9]*]]: tensor<f32>, %[[QG:[a-z0-9]*]]: tensor<f32>, %[[KA:[a-z0-9]*]]: tensor<f32>, %[[KG:[a-z0-9]*]]: tensor<f32>
// PRODUCTS: %[[XS:.*]] = train.quantization_scale %[[XA]] to f8E4M3FN
// PRODUCTS: %[[XO:.*]] = train.observe %[[X]] by %[[XA]]
// PRODUCTS: %[[X8:.*]] = train.quantize %[[XO]] by %[[XS]]
// PRODUCTS: %[[QS:.*]] = train.quantization_scale %[[QA]] to f8E4M3FN
// PRODUCTS: %[[QO:.*]] = train.observe %[[Q]] by %[[QA]]
// PRODUCTS: %[[Q8:.*]] = train.quantize %[[QO]] by %[[QS]]
// PRODUCTS: %[[QY:.*]] = train.scaled_contract "r0 r1 i, o i -> r0 r1 o" %[[X8]], %[[Q8]] scales(%[[XS]], %[[QS]])
// PRODUCTS: train.quantize_gradient %[[QY]] by %[[QG]] to f8E5M2
// PRODUCTS: %[[KY:.*]] = train.scaled_contract "r0 r1 i, o i -> r0 r1 o" %[[X8]],
// PRODUCTS: train.quantize_gradient %[[KY]] by %[[KG]] to f8E5M2
// PRODUCTS: train.linear %[[X]], %{{.*}} : (tensor<1x4x16xbf16>, tensor<64x16xbf16>)
// PRODUCTS-LABEL: func.func @loss
// PRODUCTS: train.repeat @layer x 2 carry({{.*}}) each(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) shared(

// The forward measures what it has, and the backward what it gets; that is rounded once for both products of the gradient. The largest
// of all microbatches becomes the first of the history, whose largest is the state.
// STEP: train.variable @q.input_amax_history : tensor<2x1024xf32> stacked storage <"{layer}.qk.0.input_amax_history"> state "input_amax_history" of @q
// STEP-NOT: train.observe
// STEP-NOT: train.quantize_gradient
// STEP-LABEL: func.func private @layer(
// STEP-NOT: train.amax
// STEP-LABEL: func.func private @layer.forward(
// STEP-COUNT-3: train.amax
// STEP-LABEL: func.func private @layer.backward(
// STEP-NOT: tensor<16x16xbf16>
// STEP: %[[GK:.*]] = train.pad %{{.*}} dim 2 from 16 rows 32
// STEP: %[[GKS:.*]] = train.quantization_scale %{{.*}} to f8E5M2
// STEP: %[[GK8:.*]] = train.quantize %[[GK]] by %[[GKS]] : (tensor<1x4x32xbf16>, tensor<f32>) -> tensor<1x4x32xf8E5M2>
// STEP: %[[SEEN:.*]] = train.amax %[[GK]]
// STEP: train.scaled_contract "r0 r1 o, o i -> r0 r1 i" %[[GK8]], %{{.*}} scales(%[[GKS]],
// STEP: train.scaled_contract "r0 r1 o, r0 r1 i -> o i" %[[GK8]], %{{.*}} scales(%[[GKS]],
// STEP: train.maximum %{{.*}}, %[[SEEN]]
// STEP-LABEL: func.func @step(
// STEP: %[[SUMS:.*]]:9 = train.repeat @microbatch x 2
// STEP: %[[NORM:.*]] = train.global_norm %{{[0-9]*}}, %{{[0-9]*}}, %{{[0-9]*}} :
// STEP: %[[OLD:.*]] = train.get @q.gradient_amax_history
// STEP: %[[COLUMN:.*]] = train.reshape %[[SUMS]]#2 : (tensor<2xf32>) -> tensor<2x1xf32>
// STEP: %[[LAST:.*]] = train.pad %[[COLUMN]] dim 1 rows 1024
// STEP: %[[KEPT:.*]] = train.slice %[[OLD]] dim 1 rows 1023
// STEP: %[[BEFORE:.*]] = train.pad %[[KEPT]] dim 1 from 1 rows 1024
// STEP: %[[NEW:.*]] = train.add %[[BEFORE]], %[[LAST]]
// STEP: %[[MOST:.*]] = train.reduce max %[[NEW]] over [1]
// STEP: %[[HISTORY:.*]] = train.guard %[[NEW]], %[[OLD]] if_finite %[[NORM]]
// STEP: train.set @q.gradient_amax_history, %[[HISTORY]]
// STEP: %[[STATE:.*]] = train.guard %[[MOST]], %{{.*}} if_finite %[[NORM]]
// STEP: train.set @q.gradient_amax, %[[STATE]]
