// RUN: meshwright-opt %s --dist-optimize-collectives -split-input-file | FileCheck %s
// RUN: meshwright-opt %s --dist-optimize-collectives=bucket-bytes=64 -split-input-file | FileCheck %s --check-prefix SMALL

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

// -----

// Gradients share a call; what reads the first waits for the last. An A100's network sends 1 MB while four messages
// arrive, so that calls of two devices with fewer bytes are merged in any case, and tensors of a 64th of that are no reason
// for a call of their own.
// CHECK-LABEL: func.func @bucket
// SMALL-LABEL: func.func @bucket
// SMALL: dist.all_reduce sum %arg0 over
// SMALL: dist.all_reduce sum %{{.*}}, %arg2 over
// CHECK: %[[B:.*]] = train.scale
// CHECK-NEXT: %[[SUMS:.*]]:3 = dist.all_reduce sum %arg0, %[[B]], %arg2 over <@mesh {data}> : (tensor<262144xf32>, tensor<512x512xf32>, tensor<512xf32>)
// CHECK-NEXT: train.square_sum %[[SUMS]]#0
// CHECK-NEXT: train.square_sum %[[SUMS]]#1
dist.mesh @mesh ["data" = 2]
func.func @bucket(%x: tensor<262144xf32>, %y: tensor<512x512xf32>, %z: tensor<512xf32>) -> (tensor<f32>, tensor<f32>, tensor<512xf32>) {
  %0 = dist.all_reduce sum %x over <@mesh {data}> : (tensor<262144xf32>) -> tensor<262144xf32>
  %1 = train.square_sum %0 : (tensor<262144xf32>) -> tensor<f32>
  %2 = train.scale %y by 2.0 : (tensor<512x512xf32>) -> tensor<512x512xf32>
  %3 = dist.all_reduce sum %2 over <@mesh {data}> : (tensor<512x512xf32>) -> tensor<512x512xf32>
  %4 = train.square_sum %3 : (tensor<512x512xf32>) -> tensor<f32>
  %5 = dist.all_reduce sum %z over <@mesh {data}> : (tensor<512xf32>) -> tensor<512xf32>
  return %1, %4, %5 : tensor<f32>, tensor<f32>, tensor<512xf32>
}

// -----

// Stacks whose layers have 1 MiB or more move layer by layer later: nothing joins them. Shards along the first dimension,
// and stacks of small layers, do not.
// CHECK-LABEL: func.func @stacks
// CHECK-DAG: dist.reduce_scatter sum %arg0 dim 1 over
// CHECK-DAG: dist.reduce_scatter sum %arg1, %arg2 dim [1, 0] over
dist.mesh @mesh ["data" = 64]
func.func @stacks(%x: tensor<32x512x512xf32>, %y: tensor<32x128x512xf32>, %z: tensor<64x131072xf32>) -> (tensor<32x8x512xf32>, tensor<32x2x512xf32>, tensor<1x131072xf32>) {
  %0 = dist.reduce_scatter sum %x dim 1 over <@mesh {data}> : (tensor<32x512x512xf32>) -> tensor<32x8x512xf32>
  %1 = dist.reduce_scatter sum %y dim 1 over <@mesh {data}> : (tensor<32x128x512xf32>) -> tensor<32x2x512xf32>
  %2 = dist.reduce_scatter sum %z dim 0 over <@mesh {data}> : (tensor<64x131072xf32>) -> tensor<1x131072xf32>
  return %0, %1, %2 : tensor<32x8x512xf32>, tensor<32x2x512xf32>, tensor<1x131072xf32>
}

// -----

// The larger the group, the more is sent while a ring waits: 69 MB among 70 devices.
// CHECK-LABEL: func.func @large
// CHECK: dist.all_reduce sum %arg0 over <@mesh {tensor}>
// CHECK: dist.all_reduce sum %arg1 over <@mesh {tensor}>
// CHECK: dist.all_reduce sum %arg0, %arg1 over <@mesh {data}>
dist.mesh @mesh ["data" = 70, "tensor" = 2]
func.func @large(%x: tensor<8388608xf32>, %y: tensor<8192x1024xf32>) -> (tensor<8388608xf32>, tensor<8192x1024xf32>, tensor<8388608xf32>, tensor<8192x1024xf32>) {
  %0 = dist.all_reduce sum %x over <@mesh {tensor}> : (tensor<8388608xf32>) -> tensor<8388608xf32>
  %1 = dist.all_reduce sum %y over <@mesh {tensor}> : (tensor<8192x1024xf32>) -> tensor<8192x1024xf32>
  %2 = dist.all_reduce sum %x over <@mesh {data}> : (tensor<8388608xf32>) -> tensor<8388608xf32>
  %3 = dist.all_reduce sum %y over <@mesh {data}> : (tensor<8192x1024xf32>) -> tensor<8192x1024xf32>
  return %0, %1, %2, %3 : tensor<8388608xf32>, tensor<8192x1024xf32>, tensor<8388608xf32>, tensor<8192x1024xf32>
}

// -----

// Of one group and kind, along any dimensions.
// CHECK-LABEL: func.func @alike
// CHECK-DAG: dist.all_gather %arg0, %arg1 dim [1, 0] over <@mesh {a}>
// CHECK-DAG: dist.all_gather %arg0 dim 1 over <@mesh {b}>
// CHECK-DAG: dist.reduce_scatter sum %arg0, %arg1 dim [0, 1] over <@mesh {a}>
// CHECK-DAG: dist.reduce_scatter max %arg0 dim 0 over <@mesh {a}>
dist.mesh @mesh ["a" = 2, "b" = 2]
func.func @alike(%x: tensor<8x2xf32>, %y: tensor<4x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>) {
  %0 = dist.all_gather %x dim 1 over <@mesh {a}> : (tensor<8x2xf32>) -> tensor<8x4xf32>
  %1 = dist.all_gather %x dim 1 over <@mesh {b}> : (tensor<8x2xf32>) -> tensor<8x4xf32>
  %2 = dist.all_gather %y dim 0 over <@mesh {a}> : (tensor<4x4xf32>) -> tensor<8x4xf32>
  %3 = dist.reduce_scatter sum %x dim 0 over <@mesh {a}> : (tensor<8x2xf32>) -> tensor<4x2xf32>
  %4 = dist.reduce_scatter max %x dim 0 over <@mesh {a}> : (tensor<8x2xf32>) -> tensor<4x2xf32>
  %5 = dist.reduce_scatter sum %y dim 1 over <@mesh {a}> : (tensor<4x4xf32>) -> tensor<4x2xf32>
  return %0, %1, %2, %3, %4, %5 : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>
}

// -----

// What depends on a result cannot share its call, nor does what a matrix product
// has to wait for.
// CHECK-LABEL: func.func @dependent
// CHECK: dist.all_reduce sum %arg0 over
// CHECK: train.linear
// CHECK: dist.all_reduce sum %{{.*}} over
dist.mesh @mesh ["data" = 2]
func.func @dependent(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = dist.all_reduce sum %x over <@mesh {data}> : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = train.linear %0, %0 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = dist.all_reduce sum %1 over <@mesh {data}> : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}

// -----

// CHECK-LABEL: func.func @sum
// CHECK-NEXT: %[[SUM:.*]] = train.add %arg0, %arg1
// CHECK-NEXT: dist.all_reduce sum %[[SUM]] over
// CHECK-NEXT: return
dist.mesh @mesh ["data" = 2]
func.func @sum(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = dist.all_reduce sum %x over <@mesh {data}> : (tensor<4xf32>) -> tensor<4xf32>
  %1 = dist.all_reduce sum %y over <@mesh {data}> : (tensor<4xf32>) -> tensor<4xf32>
  %2 = train.add %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

// A sum of maxima is no maximum of sums.
// CHECK-LABEL: func.func @maxima
// CHECK-NEXT: %[[M:.*]]:2 = dist.all_reduce max %arg0, %arg1 over <@mesh {data}>
// CHECK-NEXT: train.add %[[M]]#0, %[[M]]#1
dist.mesh @mesh ["data" = 2]
func.func @maxima(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = dist.all_reduce max %x over <@mesh {data}> : (tensor<4xf32>) -> tensor<4xf32>
  %1 = dist.all_reduce max %y over <@mesh {data}> : (tensor<4xf32>) -> tensor<4xf32>
  %2 = train.add %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

// Another device's part of a sum stays a slice.
// CHECK-LABEL: func.func @shifted
// CHECK-NEXT: %[[SUM:.*]] = dist.all_reduce sum %arg0
// CHECK-NEXT: dist.slice %[[SUM]] dim 1 shift 1 over <@mesh {a}>
dist.mesh @mesh ["a" = 2]
func.func @shifted(%x: tensor<8x4xf32>) -> tensor<8x2xf32> {
  %0 = dist.all_reduce sum %x over <@mesh {a}> : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = dist.slice %0 dim 1 shift 1 over <@mesh {a}> : (tensor<8x4xf32>) -> tensor<8x2xf32>
  return %1 : tensor<8x2xf32>
}

// -----

// In which type a sum is sent stays, and sums of one type share a call.
// CHECK-LABEL: func.func @wire
// CHECK: %[[WIDE:.*]] = dist.all_reduce sum %arg0 over <@mesh {data}> :
// CHECK: %[[NARROW:.*]]:2 = dist.all_reduce sum %arg1, %arg2 over <@mesh {data}> {dist.wire = "bf16"} :
// CHECK: return %[[WIDE]], %[[NARROW]]#0, %[[NARROW]]#1
// CHECK-LABEL: func.func @wire_of_a_part
// CHECK-NEXT: dist.reduce_scatter sum %arg0 dim 1 over <@mesh {data}> {dist.wire = "bf16"} :
dist.mesh @mesh ["data" = 2]
func.func @wire(%x: tensor<4xf32>, %y: tensor<4xf32>, %z: tensor<8xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<8xf32>) {
  %0 = dist.all_reduce sum %x over <@mesh {data}> : (tensor<4xf32>) -> tensor<4xf32>
  %1 = dist.all_reduce sum %y over <@mesh {data}> {dist.wire = "bf16"} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = dist.all_reduce sum %z over <@mesh {data}> {dist.wire = "bf16"} : (tensor<8xf32>) -> tensor<8xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<8xf32>
}
func.func @wire_of_a_part(%x: tensor<8x4xf32>) -> tensor<8x2xf32> {
  %0 = dist.all_reduce sum %x over <@mesh {data}> {dist.wire = "bf16"} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = dist.slice %0 dim 1 over <@mesh {data}> : (tensor<8x4xf32>) -> tensor<8x2xf32>
  return %1 : tensor<8x2xf32>
}
