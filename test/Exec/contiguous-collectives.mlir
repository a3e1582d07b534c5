// RUN: meshwright-opt %s --exec-contiguous-collectives -split-input-file | FileCheck %s

// BEGIN EXAMPLE --exec-contiguous-collectives
dist.mesh @mesh ["tensor" = 2]
func.func @gather(%x: tensor<4x6xf32>) -> tensor<4x12xf32> {
  %0 = dist.all_gather %x dim 1 over <@mesh {tensor}> : (tensor<4x6xf32>) -> tensor<4x12xf32>
  return %0 : tensor<4x12xf32>
}
// END EXAMPLE

// CHECK-LABEL: func.func @gather
// CHECK: %[[X:.*]] = train.reshape %arg0 : (tensor<4x6xf32>) -> tensor<1x4x6xf32>
// CHECK: %[[PARTS:.*]] = dist.all_gather %[[X]] dim 0 over <@mesh {tensor}> : (tensor<1x4x6xf32>) -> tensor<2x4x6xf32>
// CHECK: %[[ROWS:.*]] = train.transpose_blocks %[[PARTS]] : (tensor<2x4x6xf32>) -> tensor<4x2x6xf32>
// CHECK: train.reshape %[[ROWS]] : (tensor<4x2x6xf32>) -> tensor<4x12xf32>

// -----

// CHECK-LABEL: func.func @scatter
// CHECK: %[[X:.*]] = train.reshape %arg0 : (tensor<4x12x5xf32>) -> tensor<4x2x30xf32>
// CHECK: %[[PARTS:.*]] = train.transpose_blocks %[[X]] : (tensor<4x2x30xf32>) -> tensor<2x4x30xf32>
// CHECK: %[[PART:.*]] = dist.reduce_scatter sum %[[PARTS]] dim 0 {{.*}} -> tensor<1x4x30xf32>
// CHECK: train.reshape %[[PART]] : (tensor<1x4x30xf32>) -> tensor<4x6x5xf32>
dist.mesh @mesh ["tensor" = 2]
func.func @scatter(%x: tensor<4x12x5xf32>) -> tensor<4x6x5xf32> {
  %0 = dist.reduce_scatter sum %x dim 1 over <@mesh {tensor}> : (tensor<4x12x5xf32>) -> tensor<4x6x5xf32>
  return %0 : tensor<4x6x5xf32>
}

// -----

// From rows to columns: what is cut is contiguous already, what arrives is not.
// CHECK-LABEL: func.func @rows_to_columns
// CHECK-NOT: train.transpose_blocks
// CHECK: dist.all_to_all %{{.*}} split 0 concat 1 {{.*}} (tensor<2x1x12xf32>) -> tensor<1x2x12xf32>
// CHECK: train.transpose_blocks %{{.*}} : (tensor<2x4x3xf32>) -> tensor<4x2x3xf32>
// CHECK-LABEL: func.func @columns_to_rows
// CHECK: train.transpose_blocks %{{.*}} : (tensor<4x2x3xf32>) -> tensor<2x4x3xf32>
// CHECK: dist.all_to_all
// CHECK-NOT: train.transpose_blocks
// CHECK: return
dist.mesh @mesh ["tensor" = 2]
func.func @rows_to_columns(%x: tensor<8x3xf32>) -> tensor<4x6xf32> {
  %0 = dist.all_to_all %x split 0 concat 1 over <@mesh {tensor}> : (tensor<8x3xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
func.func @columns_to_rows(%x: tensor<4x6xf32>) -> tensor<8x3xf32> {
  %0 = dist.all_to_all %x split 1 concat 0 over <@mesh {tensor}> : (tensor<4x6xf32>) -> tensor<8x3xf32>
  return %0 : tensor<8x3xf32>
}

// -----

// A part inside rows is copied from where it begins; a contiguous one is left to be
// a window of memory.
// CHECK-LABEL: func.func @own_columns
// CHECK: %[[BEGIN:.*]] = dist.offset 6 over <@mesh {tensor}> : tensor<i32>
// CHECK: train.dynamic_slice %arg0 dim 1 at %[[BEGIN]] : (tensor<4x12xf32>, tensor<i32>) -> tensor<4x6xf32>
// CHECK-LABEL: func.func @own_rows
// CHECK: dist.slice %arg0 dim 1
dist.mesh @mesh ["tensor" = 2]
func.func @own_columns(%x: tensor<4x12xf32>) -> tensor<4x6xf32> {
  %0 = dist.slice %x dim 1 over <@mesh {tensor}> : (tensor<4x12xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
func.func @own_rows(%x: tensor<1x12x3xf32>) -> tensor<1x6x3xf32> {
  %0 = dist.slice %x dim 1 over <@mesh {tensor}> : (tensor<1x12x3xf32>) -> tensor<1x6x3xf32>
  return %0 : tensor<1x6x3xf32>
}

// -----

// Contiguous parts are left alone.
// CHECK-LABEL: func.func @contiguous
// CHECK-NOT: train.
// CHECK: return
dist.mesh @mesh ["tensor" = 2]
func.func @contiguous(%x: tensor<1x4x3xf32>) -> tensor<1x4x3xf32> {
  %0 = dist.all_gather %x dim 1 over <@mesh {tensor}> : (tensor<1x4x3xf32>) -> tensor<1x8x3xf32>
  %1 = dist.reduce_scatter sum %0 dim 1 over <@mesh {tensor}> : (tensor<1x8x3xf32>) -> tensor<1x4x3xf32>
  return %1 : tensor<1x4x3xf32>
}

// -----

// Of a call's tensors, those whose parts are inside rows.
// CHECK-LABEL: func.func @bucket
// CHECK: %[[PACKED:.*]] = train.transpose_blocks %{{.*}} : (tensor<4x2x3xf32>) -> tensor<2x4x3xf32>
// CHECK: %[[PARTS:.*]]:2 = dist.reduce_scatter sum %[[PACKED]], %arg1 dim [0, 0] over <@mesh {tensor}> : (tensor<2x4x3xf32>, tensor<8xf32>) -> (tensor<1x4x3xf32>, tensor<4xf32>)
// CHECK: %[[X:.*]] = train.reshape %[[PARTS]]#0 : (tensor<1x4x3xf32>) -> tensor<4x3xf32>
// CHECK: dist.all_gather %{{.*}}, %[[PARTS]]#1 dim [0, 0] {{.*}} -> (tensor<2x4x3xf32>, tensor<8xf32>)
// CHECK: train.transpose_blocks
// CHECK-NOT: train.transpose_blocks
dist.mesh @mesh ["tensor" = 2]
func.func @bucket(%x: tensor<4x6xf32>, %y: tensor<8xf32>) -> (tensor<4x6xf32>, tensor<8xf32>) {
  %0:2 = dist.reduce_scatter sum %x, %y dim [1, 0] over <@mesh {tensor}> : (tensor<4x6xf32>, tensor<8xf32>) -> (tensor<4x3xf32>, tensor<4xf32>)
  %1:2 = dist.all_gather %0#0, %0#1 dim [1, 0] over <@mesh {tensor}> : (tensor<4x3xf32>, tensor<4xf32>) -> (tensor<4x6xf32>, tensor<8xf32>)
  return %1#0, %1#1 : tensor<4x6xf32>, tensor<8xf32>
}

// -----

// CHECK-LABEL: func.func @roots
// CHECK: dist.gather %{{.*}} dim 0 root 1 {{.*}} (tensor<1x4x3xf32>) -> tensor<2x4x3xf32>
// CHECK: train.transpose_blocks
// CHECK: train.transpose_blocks
// CHECK: dist.scatter %{{.*}} dim 0 root 0 {{.*}} (tensor<2x4x3xf32>) -> tensor<1x4x3xf32>
dist.mesh @mesh ["tensor" = 2]
func.func @roots(%x: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %0 = dist.gather %x dim 1 root 1 over <@mesh {tensor}> : (tensor<4x3xf32>) -> tensor<4x6xf32>
  %1 = dist.scatter %0 dim 1 root 0 over <@mesh {tensor}> : (tensor<4x6xf32>) -> tensor<4x3xf32>
  return %1 : tensor<4x3xf32>
}
