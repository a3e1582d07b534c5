// Products of quantized tensors in the memory form.
// RUN: meshwright-opt %s --exec-bufferize -split-input-file | meshwright-opt -split-input-file | FileCheck %s

// CHECK-LABEL: exec.program @step
// CHECK-DAG: %[[X:.*]] = exec.buffer "x" input input "x" : memref<4x16xf8E5M2>
// CHECK-DAG: %[[W:.*]] = exec.buffer "w" input input "w" : memref<16x32xf8E4M3FN>
// CHECK-DAG: %[[S:.*]] = exec.buffer "s" input input "s" : memref<f32>
// CHECK-DAG: %[[T:.*]] = exec.buffer "t" input input "t" : memref<f32>
// CHECK: exec.scaled_matmul %[[X]], %[[W]], %[[Y:.*]] scales(%[[S]], %[[T]]) trans(false, false) sizes(4, 32, 16) ld(16, 32, 32) batch 1 strides(0, 0, 0) beta 0.0
// CHECK-SAME: : memref<4x16xf8E5M2>, memref<16x32xf8E4M3FN>, memref<4x32xbf16>, memref<f32>, memref<f32>
// The other factor's index is contiguous in the result: factors and scales change places, and the sum is added.
// CHECK: exec.scaled_matmul %[[X]], %[[W]], %[[Z:.*]] scales(%[[S]], %[[T]]) {{.*}} beta 1.0
func.func @step(%x: tensor<4x16xf8E5M2> {train.input = "x"}, %w: tensor<16x32xf8E4M3FN> {train.input = "w"}, %s: tensor<f32> {train.input = "s"}, %t: tensor<f32> {train.input = "t"}, %z: tensor<4x32xf32> {train.input = "z"}) -> (tensor<4x32xbf16> {train.output = "y"}, tensor<4x32xf32> {train.output = "sum"}) {
  %y = train.scaled_contract "b i, i o -> b o" %x, %w scales(%s, %t) : (tensor<4x16xf8E5M2>, tensor<16x32xf8E4M3FN>, tensor<f32>, tensor<f32>) -> tensor<4x32xbf16>
  %sum = train.scaled_contract "i o, b i -> b o" %w, %x scales(%t, %s) init %z : (tensor<16x32xf8E4M3FN>, tensor<4x16xf8E5M2>, tensor<f32>, tensor<f32>, tensor<4x32xf32>) -> tensor<4x32xf32>
  return %y, %sum : tensor<4x32xbf16>, tensor<4x32xf32>
}
