// RUN: meshwright-opt --split-input-file --exec-schedule-kernels --verify-diagnostics %s | FileCheck %s

// BEGIN EXAMPLE --exec-schedule-kernels
func.func private @column_sums(%x: tensor<2048x768xf32>) -> tensor<768xf32> attributes {exec.kernel} {
  %0 = train.reduce sum %x over [0] : (tensor<2048x768xf32>) -> tensor<768xf32>
  return %0 : tensor<768xf32>
}
// END EXAMPLE

// Sums over many rows: a row of partial sums a chunk, added up by a second stage
// in the order of the chunks. 64 chunks of 768 floats are 196608 bytes.
// CHECK-LABEL: func.func private @column_sums
// CHECK-SAME: exec.chunks = array<i64: 64, 1>
// CHECK-SAME: exec.iterations = array<i64: 2048, 1>
// CHECK-SAME: exec.template = ["partials", "elementwise"], exec.workspace = 196608

// -----

// Element-wise kernels walk memory as one long row, in blocks.
// CHECK-LABEL: func.func private @residual
// CHECK-SAME: exec.chunks = array<i64: 64>
// CHECK-SAME: exec.inplace = {{\[\[}}0, 0], [1, 0]]
// CHECK-SAME: exec.iterations = array<i64: 384>
// CHECK-SAME: exec.template = ["elementwise"], exec.workspace = 0
func.func private @residual(%x: tensor<4x512x768xf32>, %y: tensor<4x512x768xf32>)
    -> tensor<4x512x768xf32> attributes {exec.kernel} {
  %0 = arith.addf %x, %y : tensor<4x512x768xf32>
  return %0 : tensor<4x512x768xf32>
}

// -----

// A vector of another shape keeps the rows apart, and is no place for the result.
// CHECK-LABEL: func.func private @bias
// CHECK-SAME: exec.inplace = {{\[\[}}0, 0]]
// CHECK-SAME: exec.iterations = array<i64: 2048>
func.func private @bias(%x: tensor<4x512x768xf32>, %b: tensor<768xf32>)
    -> tensor<4x512x768xf32> attributes {exec.kernel} {
  %0 = train.broadcast %b along [0, 1] : (tensor<768xf32>) -> tensor<4x512x768xf32>
  %1 = arith.addf %x, %0 : tensor<4x512x768xf32>
  return %1 : tensor<4x512x768xf32>
}

// -----

// One small tensor is not worth a second thread.
// CHECK-LABEL: func.func private @small
// CHECK-SAME: exec.chunks = array<i64: 1>
func.func private @small(%x: tensor<16x64xf32>) -> tensor<16x64xf32> attributes {exec.kernel} {
  %0 = arith.mulf %x, %x : tensor<16x64xf32>
  return %0 : tensor<16x64xf32>
}

// -----

// Sums over few rows need no partial sums: each thread has its columns.
// CHECK-LABEL: func.func private @batch_sums
// CHECK-SAME: exec.template = ["columns"], exec.workspace = 0
func.func private @batch_sums(%x: tensor<4x512x768xf32>) -> tensor<512x768xf32>
    attributes {exec.kernel} {
  %0 = train.reduce sum %x over [0] : (tensor<4x512x768xf32>) -> tensor<512x768xf32>
  return %0 : tensor<512x768xf32>
}

// -----

// The row's sum is needed before its elements: the argument is read twice, the
// second time at the element that is about to be written.
// CHECK-LABEL: func.func private @center
// CHECK-SAME: exec.inplace = {{\[\[}}0, 0]]
// CHECK-SAME: exec.template = ["row-reduce"]
func.func private @center(%x: tensor<64x32xf32>) -> tensor<64x32xf32> attributes {exec.kernel} {
  %0 = train.reduce sum %x over [1] : (tensor<64x32xf32>) -> tensor<64xf32>
  %1 = train.broadcast %0 along [1] : (tensor<64xf32>) -> tensor<64x32xf32>
  %2 = arith.subf %x, %1 : tensor<64x32xf32>
  return %2 : tensor<64x32xf32>
}

// -----

// Half of a row is read from the other half: never in place.
// CHECK-LABEL: func.func private @rotate
// CHECK-SAME: exec.inplace = []
func.func private @rotate(%x: tensor<64x32xf32>) -> tensor<64x32xf32> attributes {exec.kernel} {
  %0 = train.rotate_half %x : (tensor<64x32xf32>) -> tensor<64x32xf32>
  return %0 : tensor<64x32xf32>
}

// -----

// The product is wanted after the argument's memory has the sum: x may become the
// sum only if both are computed in one loop, not across the row's total.
// CHECK-LABEL: func.func private @late_reader
// CHECK-SAME: exec.inplace = {{\[\[}}0, 1]]
func.func private @late_reader(%x: tensor<64x32xf32>) -> (tensor<64x32xf32>, tensor<64x32xf32>)
    attributes {exec.kernel} {
  %0 = arith.addf %x, %x : tensor<64x32xf32>
  %1 = train.reduce sum %x over [1] : (tensor<64x32xf32>) -> tensor<64xf32>
  %2 = train.broadcast %1 along [1] : (tensor<64xf32>) -> tensor<64x32xf32>
  %3 = arith.mulf %x, %2 : tensor<64x32xf32>
  return %0, %3 : tensor<64x32xf32>, tensor<64x32xf32>
}

// -----

// A scatter first fills its result, which costs nothing in place.
// CHECK-LABEL: func.func private @scatter
// CHECK-SAME: exec.inplace = {{\[\[}}2, 0]]
// CHECK-SAME: exec.template = ["elementwise", "scatter"], exec.workspace = 0
func.func private @scatter(%x: tensor<2048x768xf32>, %ids: tensor<2048xi32>,
    %start: tensor<512x768xf32>) -> tensor<512x768xf32> attributes {exec.kernel} {
  %0 = train.scatter_rows %x, %ids init %start
      : (tensor<2048x768xf32>, tensor<2048xi32>, tensor<512x768xf32>) -> tensor<512x768xf32>
  return %0 : tensor<512x768xf32>
}

// -----

// Functions that are no kernels stay as they are.
// CHECK-LABEL: func.func private @other
// CHECK-NOT: exec.
func.func private @other(%x: tensor<4xf64>) -> tensor<4xf64> {
  return %x : tensor<4xf64>
}

// -----

// expected-error @+1 {{kernel @wide touches memory of type 'tensor<4xf64>'; generated kernels hold statically shaped tensors of f32, bf16, f16, f8E4M3FN, f8E5M2, i32, i16 or i8}}
func.func private @wide(%x: tensor<4xf64>) -> tensor<4xf64> attributes {exec.kernel} {
  %0 = arith.addf %x, %x : tensor<4xf64>
  return %0 : tensor<4xf64>
}

// -----

func.func private @narrow(%x: tensor<4xbf16>) -> tensor<4xbf16> attributes {exec.kernel} {
  // expected-error @+1 {{computes in bf16 or f16, but kernels compute in f32: extend its operands and round its results}}
  %0 = arith.addf %x, %x : tensor<4xbf16>
  return %0 : tensor<4xbf16>
}

// -----

func.func private @narrow_sum(%x: tensor<4x8xf16>) -> tensor<4xf16> attributes {exec.kernel} {
  // expected-error @+1 {{sums in bf16 or f16, but kernels compute in f32: extend its operand and round its result}}
  %0 = train.reduce sum %x over [1] : (tensor<4x8xf16>) -> tensor<4xf16>
  return %0 : tensor<4xf16>
}

// -----

func.func private @undecomposed(%x: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {exec.kernel} {
  // expected-error @+1 {{cannot be part of a generated kernel: expected element-wise arith and math ops and train's kernel primitives}}
  %0 = train.relu %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

func.func private @odd(%x: tensor<4x7xf32>) -> tensor<4x7xf32> attributes {exec.kernel} {
  // expected-error @+1 {{needs an even last dimension, found 'tensor<4x7xf32>'}}
  %0 = train.rotate_half %x : (tensor<4x7xf32>) -> tensor<4x7xf32>
  return %0 : tensor<4x7xf32>
}

// -----

func.func private @both(%x: tensor<4x8x2xf32>) -> tensor<4xf32> attributes {exec.kernel} {
  // expected-error @+1 {{reduces rows and over rows at once, found dimensions 1, 2: make it one reduction over the last and one over the others}}
  %0 = train.reduce sum %x over [1, 2] : (tensor<4x8x2xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
