// RUN: meshwright-opt %s --exec-slice-collectives=min-bytes=48 -split-input-file | FileCheck %s
// RUN: sed '/^\/\/ -----/,$d' %s > %t.before.mlir && meshwright-opt %t.before.mlir --exec-slice-collectives=min-bytes=0 -o %t.after.mlir
// RUN: meshwright-interpret --compare %t.before.mlir %t.after.mlir --function move --ranks 2

// BEGIN EXAMPLE --exec-slice-collectives=min-bytes=0
dist.mesh @mesh ["data" = 2]
func.func @move(%w: tensor<4x3x2xf32> {train.input = "w"}, %g: tensor<4x2x6xf32> {train.input = "g"}) -> (tensor<4x6x2xf32>, tensor<4x2x6xf32>) {
  %0 = dist.all_gather %w dim 1 over <@mesh {data}> : (tensor<4x3x2xf32>) -> tensor<4x6x2xf32>
  %1 = dist.reduce_scatter sum %g dim 2 over <@mesh {data}> : (tensor<4x2x6xf32>) -> tensor<4x2x3xf32>
  %2 = dist.all_gather %1 dim 2 over <@mesh {data}> : (tensor<4x2x3xf32>) -> tensor<4x2x6xf32>
  return %0, %2 : tensor<4x6x2xf32>, tensor<4x2x6xf32>
}
// END EXAMPLE

// CHECK-LABEL: func.func @move
// CHECK: %[[W:.*]] = train.repeat @all_gather.slice x 4 carry() each(%arg0) shared() : (tensor<4x3x2xf32>) -> tensor<4x6x2xf32>
// CHECK: %[[G:.*]] = train.repeat @reduce_scatter.slice x 4 carry() each(%arg1) shared() : (tensor<4x2x6xf32>) -> tensor<4x2x3xf32>
// CHECK: %[[ALL:.*]] = train.repeat @all_gather.slice_{{.*}} x 4 carry() each(%[[G]]) shared() : (tensor<4x2x3xf32>) -> tensor<4x2x6xf32>
// CHECK: return %[[W]], %[[ALL]]
// CHECK: func.func private @all_gather.slice(%arg0: tensor<3x2xf32>) -> tensor<6x2xf32>
// CHECK-NEXT: dist.all_gather %arg0 dim 0
// CHECK: func.func private @reduce_scatter.slice(%arg0: tensor<2x6xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: dist.reduce_scatter sum %arg0 dim 1

// -----

// Contiguous parts, small slices, and several tensors in one call stay as they are.
// CHECK-LABEL: func.func @stay
// CHECK-NEXT: dist.all_gather %arg0 dim 0
// CHECK-NEXT: dist.all_gather %arg1 dim 1
// CHECK-NEXT: dist.all_gather %arg2, %arg2 dim [1, 1]
dist.mesh @mesh ["data" = 2]
func.func @stay(%a: tensor<4x100xf32>, %b: tensor<4x5xf32>, %c: tensor<4x100xf32>) -> (tensor<8x100xf32>, tensor<4x10xf32>, tensor<4x200xf32>, tensor<4x200xf32>) {
  %0 = dist.all_gather %a dim 0 over <@mesh {data}> : (tensor<4x100xf32>) -> tensor<8x100xf32>
  %1 = dist.all_gather %b dim 1 over <@mesh {data}> : (tensor<4x5xf32>) -> tensor<4x10xf32>
  %2:2 = dist.all_gather %c, %c dim [1, 1] over <@mesh {data}> : (tensor<4x100xf32>, tensor<4x100xf32>) -> (tensor<4x200xf32>, tensor<4x200xf32>)
  return %0, %1, %2#0, %2#1 : tensor<8x100xf32>, tensor<4x10xf32>, tensor<4x200xf32>, tensor<4x200xf32>
}
