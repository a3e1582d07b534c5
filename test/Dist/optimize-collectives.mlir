// RUN: meshwright-opt %s --dist-optimize-collectives -split-input-file | FileCheck %s

// BEGIN EXAMPLE --dist-optimize-collectives
dist.mesh @mesh ["data" = 2]
func.func @scatter(%x: tensor<8x4xf32>) -> tensor<8x2xf32> {
  %0 = dist.all_reduce sum %x over <@mesh {data}> : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = dist.slice %0 dim 1 over <@mesh {data}> : (tensor<8x4xf32>) -> tensor<8x2xf32>
  return %1 : tensor<8x2xf32>
}
// END EXAMPLE

// CHECK-LABEL: func.func @scatter
// CHECK-NEXT: dist.reduce_scatter sum %arg0 dim 1 over <@mesh {data}> : (tensor<8x4xf32>) -> tensor<8x2xf32>
// CHECK-NEXT: return

// -----

dist.mesh @mesh ["a" = 2, "b" = 2]
// The whole sum is used too, or the group is another one: nothing to save.
// CHECK-LABEL: func.func @kept
func.func @kept(%x: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x2xf32>, tensor<8x2xf32>) {
  // CHECK: dist.all_reduce
  // CHECK: dist.slice
  // CHECK: dist.all_reduce
  // CHECK: dist.slice
  %0 = dist.all_reduce sum %x over <@mesh {a}> : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = dist.slice %0 dim 1 over <@mesh {a}> : (tensor<8x4xf32>) -> tensor<8x2xf32>
  %2 = dist.all_reduce max %x over <@mesh {a}> : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %3 = dist.slice %2 dim 1 over <@mesh {b}> : (tensor<8x4xf32>) -> tensor<8x2xf32>
  return %0, %1, %3 : tensor<8x4xf32>, tensor<8x2xf32>, tensor<8x2xf32>
}

// CHECK-LABEL: func.func @own
func.func @own(%x: tensor<8x2xf32>) -> tensor<8x2xf32> {
  // CHECK-NEXT: return %arg0
  %0 = dist.all_gather %x dim 1 over <@mesh {a}> : (tensor<8x2xf32>) -> tensor<8x4xf32>
  %1 = dist.slice %0 dim 1 over <@mesh {a}> : (tensor<8x4xf32>) -> tensor<8x2xf32>
  return %1 : tensor<8x2xf32>
}

// CHECK-LABEL: func.func @once
func.func @once(%x: tensor<8x2xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  // CHECK-NEXT: %[[G:.*]] = dist.all_gather
  // CHECK-NEXT: return %[[G]], %[[G]]
  %0 = dist.all_gather %x dim 1 over <@mesh {a}> : (tensor<8x2xf32>) -> tensor<8x4xf32>
  %1 = dist.all_gather %x dim 1 over <@mesh {a}> : (tensor<8x2xf32>) -> tensor<8x4xf32>
  return %0, %1 : tensor<8x4xf32>, tensor<8x4xf32>
}
