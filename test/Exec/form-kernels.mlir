// RUN: meshwright-opt %s --exec-form-kernels -split-input-file | FileCheck %s

// BEGIN EXAMPLE --exec-form-kernels
func.func @f(%x: tensor<8x64xf32>, %w: tensor<32x64xf32>, %bias: tensor<32xf32>) -> tensor<8x32xf32> {
  %0 = train.linear %x, %w : (tensor<8x64xf32>, tensor<32x64xf32>) -> tensor<8x32xf32>
  %1 = train.add %0, %bias : (tensor<8x32xf32>, tensor<32xf32>) -> tensor<8x32xf32>
  %2 = train.gelu tanh %1 : (tensor<8x32xf32>) -> tensor<8x32xf32>
  return %2 : tensor<8x32xf32>
}
// END EXAMPLE

// CHECK-LABEL: func.func @f(
// CHECK-NEXT: %[[H:.*]] = train.linear
// CHECK-NEXT: %[[Y:.*]] = exec.launch @f.k0 ins(%[[H]], %arg2
// CHECK-NEXT: return %[[Y]]
// CHECK-LABEL: func.func private @f.k0
// CHECK-SAME: attributes {exec.kernel}
// CHECK-NEXT: train.add
// CHECK-NEXT: train.gelu tanh

// -----

// Two readers of one tensor share a kernel; a sum over rows leaves it, so what reads
// the sum is another kernel.
// CHECK-LABEL: func.func @readers
// CHECK-NEXT: %[[BOTH:.*]]:2 = exec.launch @[[A:.*]] ins(%arg0
// CHECK-NEXT: exec.launch @[[B:.*]] ins(
// CHECK: func.func private @[[A]]
// CHECK: train.silu
// CHECK: train.reduce
// CHECK: func.func private @[[B]]
func.func @readers(%x: tensor<8x64xf32>) -> (tensor<8x64xf32>, tensor<64xf32>) {
  %0 = train.silu %x : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %1 = train.reduce sum %x over [0] : (tensor<8x64xf32>) -> tensor<64xf32>
  %2 = train.relu %1 : (tensor<64xf32>) -> tensor<64xf32>
  return %0, %2 : tensor<8x64xf32>, tensor<64xf32>
}

// -----

// Equal kernels are one function; an op between two others keeps them apart.
// CHECK-LABEL: func.func @equal
// CHECK-NEXT: exec.launch @equal.k0
// CHECK-NEXT: train.linear
// CHECK-NEXT: exec.launch @equal.k0
// CHECK: func.func private @equal.k0
// CHECK-NOT: func.func
func.func @equal(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = train.silu %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = train.linear %0, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = train.silu %1 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// -----

// Constants are made again by each kernel that reads them.
// CHECK-LABEL: func.func @constants
// CHECK: func.func private
// CHECK: train.fill
// CHECK: train.mul
func.func @constants(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = train.fill 2.0 : () -> tensor<8x8xf32>
  %1 = train.mul %x, %0 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
