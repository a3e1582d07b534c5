// RUN: meshwright-opt %s --canonicalize -split-input-file -verify-diagnostics | FileCheck %s

// There and back is nothing where the type in between holds every number.
// CHECK-LABEL: func.func @fold
// CHECK: %[[LOST:.*]] = train.cast %arg1
// CHECK: %[[BACK:.*]] = train.cast %[[LOST]]
// CHECK: %[[OTHER:.*]] = train.cast %arg0 {{.*}} -> tensor<4xf16>
// CHECK: %[[AGAIN:.*]] = train.cast %[[OTHER]]
// CHECK: return %arg0, %arg1, %[[BACK]], %[[AGAIN]]
func.func @fold(%x: tensor<4xbf16>, %y: tensor<4xf32>) -> (tensor<4xbf16>, tensor<4xf32>, tensor<4xf32>, tensor<4xbf16>) {
  %0 = train.cast %x : (tensor<4xbf16>) -> tensor<4xf32>
  %1 = train.cast %0 : (tensor<4xf32>) -> tensor<4xbf16>
  %2 = train.cast %y : (tensor<4xf32>) -> tensor<4xf32>
  %3 = train.cast %y : (tensor<4xf32>) -> tensor<4xbf16>
  %4 = train.cast %3 : (tensor<4xbf16>) -> tensor<4xf32>
  %5 = train.cast %x : (tensor<4xbf16>) -> tensor<4xf16>
  %6 = train.cast %5 : (tensor<4xf16>) -> tensor<4xbf16>
  return %1, %2, %4, %6 : tensor<4xbf16>, tensor<4xf32>, tensor<4xf32>, tensor<4xbf16>
}

// -----

func.func @shape(%x: tensor<4xf32>) -> tensor<2x2xbf16> {
  // expected-error @+1 {{makes 'tensor<2x2xbf16>' of 'tensor<4xf32>'; only the element type may differ}}
  %0 = train.cast %x : (tensor<4xf32>) -> tensor<2x2xbf16>
  return %0 : tensor<2x2xbf16>
}

// -----

// A sum with zeros is the other term, if that has the sum's shape.
// CHECK-LABEL: func.func @zeros
// CHECK: %[[ZERO:.*]] = train.fill 0.000000e+00 : () -> tensor<2x4xf32>
// CHECK: %[[ROWS:.*]] = train.add %[[ZERO]], %arg1 : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
// CHECK: return %arg0, %arg0, %[[ROWS]]
func.func @zeros(%x: tensor<2x4xf32>, %row: tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) {
  %zero = train.fill 0.0 : () -> tensor<2x4xf32>
  %0 = train.add %x, %zero : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = train.add %zero, %x : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = train.add %zero, %row : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  return %0, %1, %2 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
}
