// Sums over devices of gradients that layers' backward makes, too, if that is asked for; scalars, several tensors in one call, what the
// backward hands to the layer before and activations of a batch stay as they are.
// RUN: meshwright-opt %s --exec-slice-collectives="min-bytes=48 sums=true" -o %t.mlir && FileCheck %s < %t.mlir
// RUN: meshwright-interpret --compare %s %t.mlir --function sum --ranks 2
// RUN: meshwright-opt %s --exec-slice-collectives=min-bytes=48 | FileCheck %s --check-prefix=WHOLE

// WHOLE-NOT: all_reduce.slice
// CHECK-LABEL: func.func @sum
// CHECK: %[[MADE:.*]]:4 = train.repeat @layer
// CHECK: train.repeat @all_reduce.slice x 4 carry() each(%[[MADE]]#1) shared() : (tensor<4x3x4xf32>) -> tensor<4x3x4xf32>
// CHECK: %[[HALF:.*]] = train.cast %[[MADE]]#2
// CHECK: train.repeat @all_reduce.slice_0 x 4 carry() each(%[[HALF]]) shared() : (tensor<4x3x8xbf16>) -> tensor<4x3x8xbf16>
// CHECK: dist.all_reduce sum %[[MADE]]#3
// CHECK: dist.all_reduce sum %[[MADE]]#0
// CHECK: dist.all_reduce sum %arg0
// CHECK: dist.all_reduce sum %arg1
// CHECK: func.func private @all_reduce.slice(%arg0: tensor<3x4xf32>) -> tensor<3x4xf32>
// CHECK-NEXT: dist.all_reduce sum %arg0
dist.mesh @mesh ["data" = 2]
func.func private @layer(%d: tensor<4x3x4xf32>, %x: tensor<3x4xf32>, %b: tensor<4xf32>, %w: tensor<3x8xf32>) -> (tensor<4x3x4xf32>, tensor<3x4xf32>, tensor<3x8xf32>, tensor<4xf32>) attributes {train.role = #train.role<backward>} {
  return %d, %x, %w, %b : tensor<4x3x4xf32>, tensor<3x4xf32>, tensor<3x8xf32>, tensor<4xf32>
}
func.func @sum(%x: tensor<4x3x4xf32> {train.input = "x"}, %s: tensor<f32> {train.input = "s"}, %b: tensor<4x4xf32> {train.input = "b"}, %w: tensor<4x3x8xf32> {train.input = "w"}) -> (tensor<4x3x4xf32>, tensor<4x3x8xbf16>, tensor<4x4xf32>, tensor<4x3x4xf32>, tensor<4x3x4xf32>, tensor<f32>) {
  %m:4 = train.repeat @layer x 4 carry(%x) each(%x, %b, %w) shared() {train.role = #train.role<backward>} : (tensor<4x3x4xf32>, tensor<4x3x4xf32>, tensor<4x4xf32>, tensor<4x3x8xf32>) -> (tensor<4x3x4xf32>, tensor<4x3x4xf32>, tensor<4x3x8xf32>, tensor<4x4xf32>)
  %0 = dist.all_reduce sum %m#1 over <@mesh {data}> : (tensor<4x3x4xf32>) -> tensor<4x3x4xf32>
  %half = train.cast %m#2 : (tensor<4x3x8xf32>) -> tensor<4x3x8xbf16>
  %1 = dist.all_reduce sum %half over <@mesh {data}> : (tensor<4x3x8xbf16>) -> tensor<4x3x8xbf16>
  %2 = dist.all_reduce sum %m#3 over <@mesh {data}> : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = dist.all_reduce sum %m#0 over <@mesh {data}> : (tensor<4x3x4xf32>) -> tensor<4x3x4xf32>
  %4 = dist.all_reduce sum %x over <@mesh {data}> : (tensor<4x3x4xf32>) -> tensor<4x3x4xf32>
  %5 = dist.all_reduce sum %s over <@mesh {data}> : (tensor<f32>) -> tensor<f32>
  return %0, %1, %2, %3, %4, %5 : tensor<4x3x4xf32>, tensor<4x3x8xbf16>, tensor<4x4xf32>, tensor<4x3x4xf32>, tensor<4x3x4xf32>, tensor<f32>
}
