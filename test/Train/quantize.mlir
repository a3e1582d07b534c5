// What the ops of quantized tensors refuse, and what they are differentiated to.
// RUN: meshwright-opt %s -split-input-file -verify-diagnostics --train-autodiff | FileCheck %s

// The gradient of a product is quantized once for both of its factors'; that of a quantized tensor is what it stands for.
module attributes {train.grad_type = f32, train.precision = "fp8"} {
  train.variable @w : tensor<32x16xbf16> init <"normal", 0.02>
  func.func @loss(%x: tensor<8x16xbf16>) -> tensor<f32> {
    %w = train.get @w : tensor<32x16xbf16>
    %xa = train.amax %x : (tensor<8x16xbf16>) -> tensor<f32>
    %xs = train.quantization_scale %xa to f8E4M3FN : (tensor<f32>) -> tensor<f32>
    %xq = train.quantize %x by %xs : (tensor<8x16xbf16>, tensor<f32>) -> tensor<8x16xf8E4M3FN>
    %wa = train.amax %w : (tensor<32x16xbf16>) -> tensor<f32>
    %ws = train.quantization_scale %wa to f8E4M3FN : (tensor<f32>) -> tensor<f32>
    %wq = train.quantize %w by %ws : (tensor<32x16xbf16>, tensor<f32>) -> tensor<32x16xf8E4M3FN>
    %y = train.scaled_contract "b i, o i -> b o" %xq, %wq scales(%xs, %ws) : (tensor<8x16xf8E4M3FN>, tensor<32x16xf8E4M3FN>, tensor<f32>, tensor<f32>) -> tensor<8x32xbf16>
    %z = train.gelu %y : (tensor<8x32xbf16>) -> tensor<8x32xbf16>
    %loss = train.reduce sum %z over [0, 1] : (tensor<8x32xbf16>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK-LABEL: func.func private @loss.gradients
// CHECK: %[[XQ:.*]] = train.quantize %{{.*}} by %[[XS:.*]] : (tensor<8x16xbf16>
// CHECK: %[[DY:.*]] = train.gelu_grad
// CHECK: %[[AMAX:.*]] = train.amax %[[DY]]
// CHECK: %[[S:.*]] = train.quantization_scale %[[AMAX]] to f8E5M2
// CHECK: %[[DYQ:.*]] = train.quantize %[[DY]] by %[[S]] : (tensor<8x32xbf16>, tensor<f32>) -> tensor<8x32xf8E5M2>
// CHECK: %[[DW:.*]] = train.scaled_contract "b o, b i -> o i" %[[DYQ]], %[[XQ]] scales(%[[S]], %[[XS]]) : (tensor<8x32xf8E5M2>, tensor<8x16xf8E4M3FN>, tensor<f32>, tensor<f32>) -> tensor<32x16xf32>
// CHECK: return %{{.*}}, %[[DW]]

// -----

func.func @f(%a: tensor<f32>) -> tensor<f32> {
  // expected-error @+1 {{is of tensors of 'bf16'; f8E4M3FN and f8E5M2 are the types of 8 bits}}
  %s = train.quantization_scale %a to bf16 : (tensor<f32>) -> tensor<f32>
  return %s : tensor<f32>
}

// -----

func.func @f(%x: tensor<4x8xf32>, %s: tensor<f32>) -> tensor<8x4xf8E5M2> {
  // expected-error @+1 {{changes the shape of 'tensor<4x8xf32>' to 'tensor<8x4xf8E5M2>'}}
  %y = train.quantize %x by %s : (tensor<4x8xf32>, tensor<f32>) -> tensor<8x4xf8E5M2>
  return %y : tensor<8x4xf8E5M2>
}

// -----

func.func @f(%x: tensor<4x8xf8E5M2>, %s: tensor<f32>) -> tensor<4x5xf32> {
  // expected-error @+1 {{makes 'tensor<4x4xf8E5M2>', not 'tensor<4x5xf32>'}}
  %y = train.scaled_contract "b i, o i -> b o" %x, %x scales(%s, %s) : (tensor<4x8xf8E5M2>, tensor<4x8xf8E5M2>, tensor<f32>, tensor<f32>) -> tensor<4x5xf32>
  return %y : tensor<4x5xf32>
}

// -----

func.func @f(%x: tensor<4x8xf8E5M2>, %w: tensor<4x8xf32>, %s: tensor<f32>) -> tensor<4x4xf32> {
  // expected-error @+1 {{operand #1 must be statically shaped tensor of f8E4M3FN type or f8E5M2 type values}}
  %y = train.scaled_contract "b i, o i -> b o" %x, %w scales(%s, %s) : (tensor<4x8xf8E5M2>, tensor<4x8xf32>, tensor<f32>, tensor<f32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----

func.func @f(%x: tensor<4x8xf32>) -> tensor<4x3xf32> {
  // expected-error @+1 {{'tensor<4x3xf32>' is not the amax of blocks of 'tensor<4x8xf32>': its last dimension has to divide that of the blocks, or to be left out}}
  %a = train.block_amax %x of 2 : (tensor<4x8xf32>) -> tensor<4x3xf32>
  return %a : tensor<4x3xf32>
}

// -----

func.func @f(%x: tensor<4x8xf32>) -> tensor<4x2xf32> {
  // expected-error @+1 {{has blocks of 4 elements, not of 8}}
  %a = train.block_amax %x of 8 : (tensor<4x8xf32>) -> tensor<4x2xf32>
  return %a : tensor<4x2xf32>
}

// -----

func.func @f(%x: tensor<4x8xf32>, %a: tensor<4x2xf32>) -> tensor<4x4xi8> {
  // expected-error @+1 {{changes the shape of 'tensor<4x8xf32>' to 'tensor<4x4xi8>'}}
  %y = train.quantize_blocks %x by %a : (tensor<4x8xf32>, tensor<4x2xf32>) -> tensor<4x4xi8>
  return %y : tensor<4x4xi8>
}

// -----

func.func @dequantize_shape(%codes: tensor<3x4xi8>, %scale: tensor<3xf32>) -> tensor<4x3xf32> {
  // expected-error @+1 {{changes the shape of 'tensor<3x4xi8>' to 'tensor<4x3xf32>'}}
  %w = train.dequantize_rows %codes by %scale : (tensor<3x4xi8>, tensor<3xf32>) -> tensor<4x3xf32>
  return %w : tensor<4x3xf32>
}

// -----

func.func @dequantize_scale(%codes: tensor<3x4xi8>, %scale: tensor<4xf32>) -> tensor<3x4xf32> {
  // expected-error @+1 {{'tensor<4xf32>' is not a scale for each row of 'tensor<3x4xi8>'}}
  %w = train.dequantize_rows %codes by %scale : (tensor<3x4xi8>, tensor<4xf32>) -> tensor<3x4xf32>
  return %w : tensor<3x4xf32>
}

// -----

func.func @f(%x: tensor<4x2x32xf32>) -> tensor<4x2xf32> {
  // expected-error @+1 {{needs ascending dimensions below 3, found 2, 1}}
  %a = train.amax %x over [2, 1] : (tensor<4x2x32xf32>) -> tensor<4xf32>
  return %a : tensor<4xf32>
}

// -----

func.func @f(%x: tensor<4x2x32xf32>, %s: tensor<4xf32>) -> tensor<4x2x32xf8E4M3FN> {
  // expected-error @+1 {{'tensor<4xf32>' is not a scale for each block of 'tensor<4x2x32xf32>'}}
  %q = train.quantize %x by %s along [2] : (tensor<4x2x32xf32>, tensor<4xf32>) -> tensor<4x2x32xf8E4M3FN>
  return %q : tensor<4x2x32xf8E4M3FN>
}

// -----

func.func @f(%x: tensor<4x32xf32>, %w: tensor<32x32xf32>) -> tensor<4x32xf32> {
  // expected-error @+1 {{has blocks 2, 32; they are [1, n] or [n, n] with n above 1}}
  %y = train.linear %x, %w blocks [2, 32] : (tensor<4x32xf32>, tensor<32x32xf32>) -> tensor<4x32xf32>
  return %y : tensor<4x32xf32>
}

// -----

module attributes {train.grad_type = f32, train.precision = "fp8"} {
  train.variable @w : tensor<32x32xbf16> init <"normal", 0.02>
  func.func @loss(%x: tensor<20x32xbf16>) -> tensor<f32> {
    %w = train.get @w : tensor<32x32xbf16>
    // expected-error @+1 {{has blocks of 32 elements, which do not divide the last two dimensions of 'tensor<20x32xbf16>' and 'tensor<32x32xbf16>'}}
    %y = train.linear %x, %w blocks [1, 32] : (tensor<20x32xbf16>, tensor<32x32xbf16>) -> tensor<20x32xbf16>
    %loss = train.reduce sum %y over [0, 1] : (tensor<20x32xbf16>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
