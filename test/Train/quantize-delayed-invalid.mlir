// RUN: meshwright-opt %s --train-quantize-products="fp8-recipe=delayed" -verify-diagnostics

// expected-error @+1 {{has no product of a layer's activations and a weight of its own in bf16 to quantize: delayed scaling needs a weight that one product of one layer alone reads; use --fp8-recipe tensor}}
module attributes {train.grad_type = f32, train.precision = "bf16"} {
  train.variable @s : tensor<16x16xbf16> init <"normal", 0.02> storage <"s">
  func.func private @layer(%x: tensor<1x4x16xbf16>, %s: tensor<16x16xbf16>) -> tensor<1x4x16xbf16> {
    %0 = train.linear %x, %s : (tensor<1x4x16xbf16>, tensor<16x16xbf16>) -> tensor<1x4x16xbf16>
    return %0 : tensor<1x4x16xbf16>
  }
  func.func @loss(%x: tensor<1x4x16xbf16>) -> tensor<f32> {
    %s = train.get @s : tensor<16x16xbf16>
    %y = train.repeat @layer x 2 carry(%x) each() shared(%s) : (tensor<1x4x16xbf16>, tensor<16x16xbf16>) -> tensor<1x4x16xbf16>
    %loss = train.reduce sum %y over [0, 1, 2] : (tensor<1x4x16xbf16>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
