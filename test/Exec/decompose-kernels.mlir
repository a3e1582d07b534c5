// RUN: meshwright-opt %s --exec-decompose-kernels -split-input-file -verify-diagnostics | FileCheck %s

// BEGIN EXAMPLE --exec-decompose-kernels
func.func private @k(%x: tensor<8x64xf32>, %bias: tensor<64xf32>) -> tensor<8x64xf32> attributes {exec.kernel} {
  %0 = train.add %x, %bias : (tensor<8x64xf32>, tensor<64xf32>) -> tensor<8x64xf32>
  %1 = train.relu %0 : (tensor<8x64xf32>) -> tensor<8x64xf32>
  return %1 : tensor<8x64xf32>
}
// END EXAMPLE

// CHECK-LABEL: func.func private @k
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<8x64xf32>
// CHECK: %[[BIAS:.*]] = train.broadcast %arg1 along [0]
// CHECK: %[[SUM:.*]] = arith.addf %arg0, %[[BIAS]]
// CHECK: arith.maximumf %[[SUM]], %[[ZERO]]
// CHECK-NOT: train.relu

// -----

// A norm and its gradient share the statistics of the row: one sum of squares.
// CHECK-LABEL: func.func private @statistics
// CHECK-COUNT-1: math.sqrt
// CHECK-NOT: math.sqrt
func.func private @statistics(%dy: tensor<8x64xf32>, %x: tensor<8x64xf32>, %w: tensor<64xf32>)
    -> (tensor<8x64xf32>, tensor<8x64xf32>, tensor<64xf32>) attributes {exec.kernel} {
  %y = train.rms_norm %x, %w eps 1.0e-05 : (tensor<8x64xf32>, tensor<64xf32>) -> tensor<8x64xf32>
  %dx, %dw = train.rms_norm_grad %dy, %x, %w eps 1.0e-05 : (tensor<8x64xf32>, tensor<8x64xf32>, tensor<64xf32>) -> (tensor<8x64xf32>, tensor<64xf32>)
  return %y, %dx, %dw : tensor<8x64xf32>, tensor<8x64xf32>, tensor<64xf32>
}

// -----

// Functions that are no kernels stay.
// CHECK-LABEL: func.func @program
// CHECK: train.relu
func.func @program(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = train.relu %x : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func private @library(%x: tensor<8x64xf32>, %w: tensor<4x64xf32>) -> tensor<8x4xf32> attributes {exec.kernel} {
  // expected-error @+1 {{is in kernel @library but has no decomposition}}
  %0 = train.linear %x, %w : (tensor<8x64xf32>, tensor<4x64xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

// A norm and its gradient share their statistics: one mean, one variance.
// CHECK-LABEL: func.func private @norm
// CHECK-COUNT-2: train.reduce
// CHECK: math.sqrt
// CHECK-NOT: math.sqrt
// CHECK-NOT: train.layer_norm
func.func private @norm(%dy: tensor<4x8xf32>, %x: tensor<4x8xf32>, %w: tensor<8xf32>, %b: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) attributes {exec.kernel} {
  %0 = train.layer_norm %x, %w, %b eps 1.0e-05 : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %dx, %dw, %db = train.layer_norm_grad %dy, %x, %w eps 1.0e-05 : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
  return %0, %dx : tensor<4x8xf32>, tensor<4x8xf32>
}

// Arithmetic with constants folds, also through broadcasts.
// CHECK-LABEL: func.func private @constants
// CHECK-NEXT: %[[C:.*]] = arith.constant dense<6.0{{.*}}> : tensor<4x8xf32>
// CHECK-NEXT: return %[[C]]
func.func private @constants() -> tensor<4x8xf32> attributes {exec.kernel} {
  %0 = train.fill 2.0 : () -> tensor<8xf32>
  %1 = train.scale %0 by 3.0 : (tensor<8xf32>) -> tensor<8xf32>
  %2 = train.broadcast %1 along [0] : (tensor<8xf32>) -> tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}

// Functions that are no kernels stay as they are.
// CHECK-LABEL: func.func @other
// CHECK: train.gelu
func.func @other(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = train.gelu %x : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func private @k(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x8xf32> attributes {exec.kernel} {
  // expected-error @below {{'train.linear' op is in kernel @k but has no decomposition}}
  %0 = train.linear %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// A kernel reduces rows, or over rows: both at once are two reductions.
// CHECK-LABEL: func.func private @both
// CHECK-NEXT: %[[ROWS:.*]] = train.reduce max %arg0 over [3] : (tensor<2x3x4x5xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT: %[[MOST:.*]] = train.reduce max %[[ROWS]] over [2] : (tensor<2x3x4xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: %[[ALL:.*]] = train.reduce max %[[MOST]] over [0] : (tensor<2x3xf32>) -> tensor<3xf32>
// CHECK-NEXT: return %[[ALL]]
func.func private @both(%x: tensor<2x3x4x5xf32>) -> tensor<3xf32> attributes {exec.kernel} {
  %0 = train.reduce max %x over [0, 2, 3] : (tensor<2x3x4x5xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

// Rows of equal ids are summed in f32, and the last of these ids adds the sum: once it is rounded.
// CHECK-LABEL: func.func private @embedding_grad
// CHECK: %[[LAST:.*]] = train.reduce max %{{.*}} over [1] : (tensor<4x4xf32>) -> tensor<4xf32>
// CHECK: %[[SUMS:.*]] = train.scatter_rows %{{.*}}, %[[AT:.*]] : (tensor<4x8xf32>, tensor<4xi32>) -> tensor<4x8xf32>
// CHECK: %[[ADDS:.*]] = arith.cmpi eq, %[[AT]], %[[NUMBER:.*]] : tensor<4xi32>
// CHECK: %[[IDS:.*]] = arith.select %[[ADDS]], %arg1, %{{.*}} : tensor<4xi1>, tensor<4xi32>
// CHECK: %[[ROWS:.*]] = train.gather_rows %[[SUMS]], %[[NUMBER]] : (tensor<4x8xf32>, tensor<4xi32>) -> tensor<4x8xf32>
// CHECK: train.scatter_rows %[[ROWS]], %[[IDS]] init %arg2 : (tensor<4x8xf32>, tensor<4xi32>, tensor<64x8xbf16>) -> tensor<64x8xbf16>
func.func private @embedding_grad(%dy: tensor<4x8xbf16>, %ids: tensor<4xi32>, %start: tensor<64x8xbf16>) -> tensor<64x8xbf16> attributes {exec.kernel} {
  %0 = train.embedding_grad %dy, %ids init %start rows 64 : (tensor<4x8xbf16>, tensor<4xi32>, tensor<64x8xbf16>) -> tensor<64x8xbf16>
  return %0 : tensor<64x8xbf16>
}

// A target of fewer rows than there are ids is summed whole.
// CHECK-LABEL: func.func private @small_target
// CHECK: %[[SUM:.*]] = train.scatter_rows {{.*}} -> tensor<3x8xf32>
// CHECK-NEXT: arith.truncf %[[SUM]]
func.func private @small_target(%dy: tensor<4x8xbf16>, %ids: tensor<4xi32>) -> tensor<3x8xbf16> attributes {exec.kernel} {
  %0 = train.embedding_grad %dy, %ids rows 3 : (tensor<4x8xbf16>, tensor<4xi32>) -> tensor<3x8xbf16>
  return %0 : tensor<3x8xbf16>
}

// So is one without ids, which stays as it was.
// CHECK-LABEL: func.func private @no_ids
// CHECK: train.scatter_rows {{.*}} -> tensor<64x8xf32>
// CHECK-NEXT: arith.truncf
func.func private @no_ids(%dy: tensor<0x8xbf16>, %ids: tensor<0xi32>, %start: tensor<64x8xbf16>) -> tensor<64x8xbf16> attributes {exec.kernel} {
  %0 = train.embedding_grad %dy, %ids init %start rows 64 : (tensor<0x8xbf16>, tensor<0xi32>, tensor<64x8xbf16>) -> tensor<64x8xbf16>
  return %0 : tensor<64x8xbf16>
}

// Ids of two dimensions are compared with all of both.
// CHECK-LABEL: func.func private @two_dimensions
// CHECK: %[[ROWS:.*]] = train.reduce max %{{.*}} over [3] : (tensor<2x3x2x3xf32>) -> tensor<2x3x2xf32>
// CHECK: %[[LAST:.*]] = train.reduce max %[[ROWS]] over [2] : (tensor<2x3x2xf32>) -> tensor<2x3xf32>
// CHECK: train.scatter_rows %{{.*}} : (tensor<2x3x8xf32>, tensor<2x3xi32>) -> tensor<6x8xf32>
func.func private @two_dimensions(%dy: tensor<2x3x8xf16>, %ids: tensor<2x3xi32>) -> tensor<64x8xf16> attributes {exec.kernel} {
  %0 = train.embedding_grad %dy, %ids rows 64 : (tensor<2x3x8xf16>, tensor<2x3xi32>) -> tensor<64x8xf16>
  return %0 : tensor<64x8xf16>
}
