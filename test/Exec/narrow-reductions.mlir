// Sums over devices of which the terms are sent in another type than they are added in.
// RUN: meshwright-opt %s --exec-contiguous-collectives -split-input-file -verify-diagnostics | FileCheck %s

dist.mesh @mesh ["data" = 2]
func.func @sum(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = dist.all_reduce sum %x over <@mesh {data}> {dist.wire = "bf16"} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: func.func @sum
// CHECK: %[[ROW:.*]] = train.reshape %arg0 : (tensor<4x6xf32>) -> tensor<24xf32>
// CHECK: %[[PARTS:.*]] = train.reshape %[[ROW]] : (tensor<24xf32>) -> tensor<2x1x12xf32>
// CHECK: %[[SENT:.*]] = train.cast %[[PARTS]] : (tensor<2x1x12xf32>) -> tensor<2x1x12xbf16>
// CHECK: %[[TERMS:.*]] = dist.all_to_all %[[SENT]] split 0 concat 1 over <@mesh {data}> : (tensor<2x1x12xbf16>) -> tensor<1x2x12xbf16>
// CHECK: %[[PART:.*]] = train.reduce sum %[[TERMS]] over [1] : (tensor<1x2x12xbf16>) -> tensor<1x12xbf16>
// CHECK: %[[ALL:.*]] = dist.all_gather %[[PART]] dim 0 over <@mesh {data}> : (tensor<1x12xbf16>) -> tensor<2x12xbf16>
// CHECK: train.cast %{{.*}} -> tensor<4x6xf32>
// CHECK-NEXT: return

// -----

// Other sums stay; those of a bucket have one all_gather; zeros fill the last part.
dist.mesh @mesh ["data" = 3]
// CHECK-LABEL: func.func @bucket
// CHECK: train.pad %{{.*}} rows 9 : (tensor<8xf32>) -> tensor<9xf32>
// CHECK: dist.all_to_all {{.*}} -> tensor<1x3x3xbf16>
// CHECK: dist.all_to_all {{.*}} -> tensor<1x3x2xbf16>
// CHECK: dist.all_gather %{{.*}}, %{{.*}} dim [0, 0] over <@mesh {data}> : (tensor<1x3xbf16>, tensor<1x2xbf16>) -> (tensor<3x3xbf16>, tensor<3x2xbf16>)
// CHECK: train.slice %{{.*}} rows 8 : (tensor<9x{{.*}}>) -> tensor<8x
// CHECK: dist.all_reduce sum %arg2 over <@mesh {data}> : (tensor<f32>) -> tensor<f32>
func.func @bucket(%x: tensor<8xf32>, %y: tensor<2x3xf32>, %norm: tensor<f32>) -> (tensor<8xf32>, tensor<2x3xf32>, tensor<f32>) {
  %0:2 = dist.all_reduce sum %x, %y over <@mesh {data}> {dist.wire = "bf16"} : (tensor<8xf32>, tensor<2x3xf32>) -> (tensor<8xf32>, tensor<2x3xf32>)
  %1 = dist.all_reduce sum %norm over <@mesh {data}> : (tensor<f32>) -> tensor<f32>
  return %0#0, %0#1, %1 : tensor<8xf32>, tensor<2x3xf32>, tensor<f32>
}

// -----

// Parts of rows are laid out part by part. A part of the sum is not rounded; a gradient in bf16 is again.
dist.mesh @mesh ["data" = 2]
// CHECK-LABEL: func.func @scatter
// CHECK: train.transpose_blocks %{{.*}} : (tensor<4x2x15xf32>) -> tensor<2x4x15xf32>
// CHECK: dist.all_to_all {{.*}} (tensor<2x1x60xbf16>) -> tensor<1x2x60xbf16>
// CHECK: %[[PART:.*]] = train.reduce sum {{.*}} : (tensor<1x2x60xbf16>) -> tensor<1x60xf32>
// CHECK-NEXT: %[[Y:.*]] = train.reshape %[[PART]] : (tensor<1x60xf32>) -> tensor<4x3x5xf32>
// CHECK-NEXT: return %[[Y]]
// CHECK-LABEL: func.func @narrow_scatter
// CHECK-NOT: train.cast
// CHECK: train.reduce sum {{.*}} : (tensor<1x2x6xbf16>) -> tensor<1x6xbf16>
func.func @scatter(%x: tensor<4x6x5xf32>) -> tensor<4x3x5xf32> {
  %0 = dist.reduce_scatter sum %x dim 1 over <@mesh {data}> {dist.wire = "bf16"} : (tensor<4x6x5xf32>) -> tensor<4x3x5xf32>
  return %0 : tensor<4x3x5xf32>
}
func.func @narrow_scatter(%x: tensor<4x3xbf16>) -> tensor<2x3xbf16> {
  %0 = dist.reduce_scatter sum %x dim 0 over <@mesh {data}> {dist.wire = "bf16"} : (tensor<4x3xbf16>) -> tensor<2x3xbf16>
  return %0 : tensor<2x3xbf16>
}

// -----

// One scale for the terms of all devices, and one for their sum.
dist.mesh @mesh ["data" = 2]
// CHECK-LABEL: func.func @fp8
// CHECK: %[[AMAX:.*]] = train.amax %[[X:.*]] : (tensor<2x1x12xf32>) -> tensor<f32>
// CHECK: %[[MOST:.*]] = dist.all_reduce max %[[AMAX]] over <@mesh {data}>
// CHECK: %[[SCALE:.*]] = train.quantization_scale %[[MOST]] to f8E4M3FN
// CHECK: %[[SENT:.*]] = train.quantize %[[X]] by %[[SCALE]] : {{.*}} -> tensor<2x1x12xf8E4M3FN>
// CHECK: %[[TERMS:.*]] = dist.all_to_all %[[SENT]] split 0 concat 1
// CHECK: train.scaled_contract "a n c, n -> a c" %[[TERMS]], %{{.*}} scales(%[[SCALE]], %{{.*}}) : {{.*}} -> tensor<1x12xf32>
// CHECK: dist.all_reduce max
// CHECK: dist.all_gather {{.*}} (tensor<1x12x1xf8E4M3FN>) -> tensor<2x12x1xf8E4M3FN>
// CHECK: train.scaled_contract "p c n, n -> p c"
func.func @fp8(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = dist.all_reduce sum %x over <@mesh {data}> {dist.wire = "fp8"} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// -----

dist.mesh @mesh ["data" = 2]
func.func @type(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{has dist.wire 'fp4'; sums are sent in bf16 or fp8}}
  %0 = dist.all_reduce sum %x over <@mesh {data}> {dist.wire = "fp4"} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

dist.mesh @mesh ["data" = 2]
func.func @most(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{has dist.wire, which is for all_reduce and reduce_scatter of sums}}
  %0 = dist.all_reduce max %x over <@mesh {data}> {dist.wire = "bf16"} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
