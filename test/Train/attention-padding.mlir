// What attention makes of padding that is zero is not always zero.
// RUN: meshwright-opt %s -split-input-file --dist-pad | FileCheck %s

// Heads in the padding share the one value head with the others.
dist.mesh @mesh ["tensor" = 2]
// CHECK-LABEL: func.func @shared_value
func.func @shared_value(%q: tensor<1x4x3x2xf32> {dist.seed = #dist.sharding<@mesh, [{}, {}, {tensor}, {}]>}, %k: tensor<1x4x1x2xf32>) -> tensor<1x4x2xf32> {
  // CHECK: %[[SHOWN:.*]] = train.mask %{{.*}} dim 2 below 3 : (tensor<1x4x4x2xf32>) -> tensor<1x4x4x2xf32>
  // CHECK: train.reduce sum %[[SHOWN]] over [2]
  %o, %lse = train.attention %q, %k, %k scale 1.0 : (tensor<1x4x3x2xf32>, tensor<1x4x1x2xf32>, tensor<1x4x1x2xf32>) -> (tensor<1x4x3x2xf32>, tensor<1x3x4xf32>)
  %sum = train.reduce sum %o over [2] : (tensor<1x4x3x2xf32>) -> tensor<1x4x2xf32>
  return %sum : tensor<1x4x2xf32>
}

// -----

// A query of zeros gets a mean of values.
dist.mesh @mesh ["context" = 2]
// CHECK-LABEL: func.func @padded_query
func.func @padded_query(%q: tensor<2x7x2x2xf32> {dist.seed = #dist.sharding<@mesh, [{}, {context}, {}, {}]>}, %k: tensor<2x7x2x2xf32>) -> tensor<2x2x2xf32> {
  // CHECK: %[[SHOWN:.*]] = train.mask %{{.*}} dim 1 below 7 : (tensor<2x8x2x2xf32>) -> tensor<2x8x2x2xf32>
  // CHECK: train.reduce sum %[[SHOWN]] over [1]
  %o, %lse = train.attention %q, %k, %k scale 1.0 : (tensor<2x7x2x2xf32>, tensor<2x7x2x2xf32>, tensor<2x7x2x2xf32>) -> (tensor<2x7x2x2xf32>, tensor<2x2x7xf32>)
  %sum = train.reduce sum %o over [1] : (tensor<2x7x2x2xf32>) -> tensor<2x2x2xf32>
  return %sum : tensor<2x2x2xf32>
}
