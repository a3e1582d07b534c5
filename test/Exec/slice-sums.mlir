// Sums over devices, too, if that is asked for; scalars and several tensors in one call stay as they are.
// RUN: meshwright-opt %s --exec-slice-collectives="min-bytes=48 sums=true" -o %t.mlir && FileCheck %s < %t.mlir
// RUN: meshwright-interpret --compare %s %t.mlir --function sum --ranks 2
// RUN: meshwright-opt %s --exec-slice-collectives=min-bytes=48 | FileCheck %s --check-prefix=WHOLE

// WHOLE-NOT: train.repeat
// CHECK-LABEL: func.func @sum
// CHECK: %[[G:.*]] = train.repeat @all_reduce.slice x 4 carry() each(%arg0) shared() : (tensor<4x3x4xf32>) -> tensor<4x3x4xf32>
// CHECK: %[[SMALL:.*]] = dist.all_reduce sum %arg1
// CHECK: %[[SCALAR:.*]] = dist.all_reduce sum %arg2
// CHECK: return %[[G]], %[[SMALL]], %[[SCALAR]]
// CHECK: func.func private @all_reduce.slice(%arg0: tensor<3x4xf32>) -> tensor<3x4xf32>
// CHECK-NEXT: dist.all_reduce sum %arg0
dist.mesh @mesh ["data" = 2]
func.func @sum(%g: tensor<4x3x4xf32> {train.input = "g"}, %b: tensor<4x4xf32> {train.input = "b"}, %s: tensor<f32> {train.input = "s"}) -> (tensor<4x3x4xf32>, tensor<4x4xf32>, tensor<f32>) {
  %0 = dist.all_reduce sum %g over <@mesh {data}> : (tensor<4x3x4xf32>) -> tensor<4x3x4xf32>
  %1 = dist.all_reduce sum %b over <@mesh {data}> : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = dist.all_reduce sum %s over <@mesh {data}> : (tensor<f32>) -> tensor<f32>
  return %0, %1, %2 : tensor<4x3x4xf32>, tensor<4x4xf32>, tensor<f32>
}
