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

// -----

// An accumulator becomes the init of the contraction, where that is.
// CHECK-LABEL: func.func @accumulator
func.func @accumulator(%acc: tensor<4x8xf32>, %dy: tensor<2x4xf32>, %x: tensor<2x8xf32>) -> (tensor<2x4xf32>, tensor<4x8xf32>) {
  // CHECK-NEXT: %[[SUM:.*]] = train.contract "n o, n i -> o i" %arg1, %arg2 init %arg0
  // CHECK-NEXT: train.gelu
  // CHECK-NOT: train.accumulate
  // CHECK: return %{{.*}}, %[[SUM]]
  %0 = train.contract "n o, n i -> o i" %dy, %x : (tensor<2x4xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>
  %1 = train.gelu %dy : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = train.accumulate %acc, %0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %1, %2 : tensor<2x4xf32>, tensor<4x8xf32>
}

// Contractions of one sum form a chain; what they add to comes first in it.
// CHECK-LABEL: func.func @chain
func.func @chain(%acc: tensor<7x8xf32>, %dy: tensor<2x7xf32>, %x: tensor<2x8xf32>, %dx: tensor<2x8xf32>, %ids: tensor<2xi32>) -> tensor<7x8xf32> {
  // CHECK-NEXT: %[[FIRST:.*]] = train.contract "n v, n d -> v d" %arg1, %arg2 init %arg0
  // CHECK-NEXT: %[[SECOND:.*]] = train.embedding_grad %arg3, %arg4 init %[[FIRST]] rows 7
  // CHECK-NEXT: return %[[SECOND]]
  %0 = train.contract "n v, n d -> v d" %dy, %x : (tensor<2x7xf32>, tensor<2x8xf32>) -> tensor<7x8xf32>
  %1 = train.embedding_grad %dx, %ids rows 7 : (tensor<2x8xf32>, tensor<2xi32>) -> tensor<7x8xf32>
  %2 = train.add %0, %1 : (tensor<7x8xf32>, tensor<7x8xf32>) -> tensor<7x8xf32>
  %3 = train.accumulate %acc, %2 : (tensor<7x8xf32>, tensor<7x8xf32>) -> tensor<7x8xf32>
  return %3 : tensor<7x8xf32>
}

// A term that is computed later moves the contraction down, no further.
// CHECK-LABEL: func.func @later
func.func @later(%dy: tensor<2x4xf32>, %x: tensor<2x8xf32>, %z: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // CHECK-NEXT: %[[Z:.*]] = train.gelu %arg2
  // CHECK-NEXT: train.contract {{.*}} init %[[Z]]
  // CHECK-NEXT: return
  %0 = train.contract "n o, n i -> o i" %dy, %x : (tensor<2x4xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>
  %1 = train.gelu %z : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = train.add %0, %1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}

// Zeros add nothing.
// CHECK-LABEL: func.func @zeros
func.func @zeros(%dy: tensor<2x4xf32>, %x: tensor<2x8xf32>, %y: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  // CHECK: train.contract "n o, n i -> o i" %arg0, %arg1 :
  // CHECK-NEXT: return %{{.*}}, %arg2
  %zero = train.fill 0.0 : () -> tensor<4x8xf32>
  %0 = train.contract "n o, n i -> o i" %dy, %x init %zero : (tensor<2x4xf32>, tensor<2x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = train.accumulate %zero, %y : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0, %1 : tensor<4x8xf32>, tensor<4x8xf32>
}

// Left alone: a term or a contraction that something else reads too, for which
// adding in place would take a copy.
// CHECK-LABEL: func.func @shared
func.func @shared(%x: tensor<2x8xf32>, %w: tensor<8x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) {
  // CHECK-COUNT-2: train.add
  %0 = train.contract "n i, o i -> n o" %x, %w : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %1 = train.add %x, %0 : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %2 = train.gelu %1 : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %3 = train.contract "n i, o i -> n o" %2, %w : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %4 = train.add %2, %3 : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %4, %3, %0 : tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>
}

// -----

// What a loop over parts of the tokens adds up begins at the accumulator, and what is added behind goes on.
func.func private @loss(%sum: tensor<8x4xf32>, %dy: tensor<1x8xf32>, %x: tensor<1x4xf32>) -> tensor<8x4xf32> attributes {train.role = #train.role<loss>} {
  %0 = train.contract "b o, b i -> o i" %dy, %x : (tensor<1x8xf32>, tensor<1x4xf32>) -> tensor<8x4xf32>
  %1 = train.accumulate %sum, %0 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}
// CHECK-LABEL: func.func @parts
// CHECK-NEXT: %[[A:.*]] = train.repeat @loss x 2 carry(%arg0) each(%arg1, %arg2)
// CHECK-NEXT: %[[B:.*]] = train.embedding_grad %arg3, %arg4 init %[[A]]
// CHECK-NEXT: return %[[B]]
func.func @parts(%acc: tensor<8x4xf32>, %dy: tensor<2x1x8xf32>, %x: tensor<2x1x4xf32>, %e: tensor<2x4xf32>, %ids: tensor<2xi32>) -> tensor<8x4xf32> {
  %zeros = train.fill 0.0 : () -> tensor<8x4xf32>
  %0 = train.repeat @loss x 2 carry(%zeros) each(%dy, %x) shared() {train.role = #train.role<loss>}
      : (tensor<8x4xf32>, tensor<2x1x8xf32>, tensor<2x1x4xf32>) -> tensor<8x4xf32>
  %1 = train.embedding_grad %e, %ids rows 8 : (tensor<2x4xf32>, tensor<2xi32>) -> tensor<8x4xf32>
  %2 = train.add %0, %1 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %3 = train.accumulate %acc, %2 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %3 : tensor<8x4xf32>
}
