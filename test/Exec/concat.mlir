// RUN: meshwright-opt %s --exec-contiguous-collectives --exec-fuse-accumulate --exec-form-kernels --exec-decompose-kernels --exec-schedule-kernels --exec-order --exec-bufferize -split-input-file | FileCheck %s

// Parts that come round are computed where they belong; the next one is on its way before.
dist.mesh @mesh ["tensor" = 2]
// CHECK-LABEL: exec.program @rows
// CHECK-NOT: exec.copy
// CHECK: exec.permute %[[X:.*]] to %[[NEXT:.*]] from
// CHECK: %[[W0:.*]] = exec.window %[[Y:.*]] over ["tensor"] : memref<8x6xf32> -> memref<4x6xf32>
// CHECK-NEXT: exec.matmul %[[X]], %{{.*}}, %[[W0]] trans
// CHECK-NEXT: %[[W1:.*]] = exec.window %[[Y]] shift 1 over ["tensor"]
// CHECK-NEXT: exec.matmul %[[NEXT]], %{{.*}}, %[[W1]] trans
// CHECK-NOT: exec
// CHECK: }
func.func @rows(%x: tensor<4x8xf32> {train.input = "x"}, %w: tensor<6x8xf32> {train.input = "w"})
    -> (tensor<8x6xf32> {train.output = "y"}) {
  %0 = dist.permute %x from [1, 0] over <@mesh {tensor}> : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = train.linear %x, %w : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  %2 = train.linear %0, %w : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  %3 = dist.concat %1, %2 dim 0 over <@mesh {tensor}> : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  return %3 : tensor<8x6xf32>
}

// Inside rows: part after part, then one kernel.
// CHECK-LABEL: exec.program @inside
// CHECK-NOT: exec.copy
// CHECK: exec.permute
// CHECK: exec.window %[[Y:.*]] over ["tensor"] : memref<2x3x8xf32> -> memref<3x2x4xf32>
// CHECK-NEXT: exec.matmul
// CHECK-NEXT: exec.window %[[Y]] shift 1 over ["tensor"] : memref<2x3x8xf32> -> memref<3x2x4xf32>
// CHECK-NEXT: exec.matmul
// CHECK: exec.launch
// CHECK-NOT: exec.launch
// CHECK: }
func.func @inside(%x: tensor<3x2x4xf32> {train.input = "x"}, %w: tensor<4x4xf32> {train.input = "w"})
    -> (tensor<3x4x4xf32> {train.output = "y"}) {
  %0 = dist.permute %x from [1, 0] over <@mesh {tensor}> : (tensor<3x2x4xf32>) -> tensor<3x2x4xf32>
  %1 = train.linear %x, %w : (tensor<3x2x4xf32>, tensor<4x4xf32>) -> tensor<3x2x4xf32>
  %2 = train.linear %0, %w : (tensor<3x2x4xf32>, tensor<4x4xf32>) -> tensor<3x2x4xf32>
  %3 = dist.concat %1, %2 dim 1 over <@mesh {tensor}> : (tensor<3x2x4xf32>, tensor<3x2x4xf32>) -> tensor<3x4x4xf32>
  return %3 : tensor<3x4x4xf32>
}

// What has memory of its own already is copied: an input, and a value with another reader.
// CHECK-LABEL: exec.program @elsewhere
// CHECK-DAG: exec.copy
// CHECK-DAG: exec.copy
// CHECK-NOT: exec.copy
// CHECK: }
func.func @elsewhere(%x: tensor<4x4xf32> {train.input = "x"})
    -> (tensor<8x4xf32> {train.output = "y"}, tensor<4x4xf32> {train.output = "z"}) {
  %0 = train.linear %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = dist.concat %x, %0 dim 0 over <@mesh {tensor}> : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  return %1, %0 : tensor<8x4xf32>, tensor<4x4xf32>
}

// -----

// A product does not wait for what it is added to when that is on its way.
dist.mesh @mesh ["tensor" = 2]
// CHECK-LABEL: exec.program @added
// CHECK: exec.permute
// CHECK: exec.matmul {{.*}} beta 0
// CHECK: exec.launch
func.func @added(%x: tensor<4x4xf32> {train.input = "x"}, %s: tensor<4x4xf32> {train.input = "s"})
    -> (tensor<4x4xf32> {train.output = "y"}) {
  %0 = dist.permute %s from [1, 0] over <@mesh {tensor}> : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = train.contract "a b, c b -> a c" %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = train.add %0, %1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}
