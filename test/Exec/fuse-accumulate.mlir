// RUN: meshwright-opt %s --exec-fuse-accumulate -split-input-file | FileCheck %s

// BEGIN EXAMPLE --exec-fuse-accumulate
func.func @f(%acc: tensor<8x4xf32>, %dy: tensor<2x8xf32>, %x: tensor<2x4xf32>) -> tensor<8x4xf32> {
  %0 = train.contract "b o, b i -> o i" %dy, %x : (tensor<2x8xf32>, tensor<2x4xf32>) -> tensor<8x4xf32>
  %1 = train.accumulate %acc, %0 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}
// END EXAMPLE

// CHECK-LABEL: func.func @f
// CHECK-NEXT: %[[SUM:.*]] = train.contract "b o, b i -> o i" %arg1, %arg2 init %arg0
// CHECK-NEXT: return %[[SUM]]

// -----

// A sum of zeros and one term is the term.
// CHECK-LABEL: func.func @zero
// CHECK: return %arg0
func.func @zero(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = train.fill 0.0 : () -> tensor<4xf32>
  %1 = train.add %0, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// Two uses of a parameter and what was there before: one chain.
// CHECK-LABEL: func.func @chain
// CHECK-NEXT: %[[A:.*]] = train.contract "b o, b i -> o i" %arg1, %arg2 init %arg0
// CHECK-NEXT: %[[B:.*]] = train.embedding_grad %arg2, %arg3 init %[[A]]
// CHECK-NEXT: return %[[B]]
func.func @chain(%acc: tensor<8x4xf32>, %dy: tensor<2x8xf32>, %x: tensor<2x4xf32>, %ids: tensor<2xi32>) -> tensor<8x4xf32> {
  %0 = train.contract "b o, b i -> o i" %dy, %x : (tensor<2x8xf32>, tensor<2x4xf32>) -> tensor<8x4xf32>
  %1 = train.embedding_grad %x, %ids rows 8 : (tensor<2x4xf32>, tensor<2xi32>) -> tensor<8x4xf32>
  %2 = train.add %0, %1 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %3 = train.accumulate %acc, %2 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %3 : tensor<8x4xf32>
}

// -----

// The accumulator is read again, and the term is too: nothing may change in place.
// CHECK-LABEL: func.func @kept
// CHECK-NOT: init
// CHECK: train.accumulate
// CHECK: train.accumulate
func.func @kept(%acc: tensor<8x4xf32>, %dy: tensor<2x8xf32>, %x: tensor<2x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %0 = train.contract "b o, b i -> o i" %dy, %x : (tensor<2x8xf32>, tensor<2x4xf32>) -> tensor<8x4xf32>
  %1 = train.accumulate %acc, %0 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = train.accumulate %acc, %1 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0, %2 : tensor<8x4xf32>, tensor<8x4xf32>
}
