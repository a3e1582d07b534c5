// RUN: meshwright-opt %s --dist-loop-collectives -split-input-file -verify-diagnostics | FileCheck %s
// RUN: meshwright-opt %s --dist-loop-collectives=max-devices=2 -split-input-file 2>&1 | FileCheck %s --check-prefix SHORT

// BEGIN EXAMPLE --dist-loop-collectives
dist.mesh @mesh ["tensor" = 2]
func.func @rows(%x: tensor<4x8xf32>, %w: tensor<6x8xf32>) -> tensor<8x6xf32> {
  %0 = dist.all_gather %x dim 0 over <@mesh {tensor}> : (tensor<4x8xf32>) -> tensor<8x8xf32>
  %1 = train.linear %0, %w : (tensor<8x8xf32>, tensor<6x8xf32>) -> tensor<8x6xf32>
  return %1 : tensor<8x6xf32>
}
func.func @scattered(%x: tensor<8x4xf32>, %w: tensor<6x4xf32>) -> tensor<4x6xf32> {
  %0 = train.linear %x, %w : (tensor<8x4xf32>, tensor<6x4xf32>) -> tensor<8x6xf32>
  %1 = dist.reduce_scatter sum %0 dim 0 over <@mesh {tensor}> : (tensor<8x6xf32>) -> tensor<4x6xf32>
  return %1 : tensor<4x6xf32>
}
// END EXAMPLE

// The part is sent on before it is multiplied.
// CHECK-LABEL: func.func @rows
// CHECK-NEXT: %[[P:.*]] = dist.permute %arg0 from [1, 0]
// CHECK-NEXT: %[[A:.*]] = train.linear %arg0, %arg1
// CHECK-NEXT: %[[B:.*]] = train.linear %[[P]], %arg1
// CHECK-NEXT: %[[Y:.*]] = dist.concat %[[A]], %[[B]] dim 0 over <@mesh {tensor}> : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
// CHECK-NEXT: return %[[Y]]

// The sum on its way is the other device's part; its own comes last.
// CHECK-LABEL: func.func @scattered
// CHECK-NEXT: %[[X1:.*]] = dist.slice %arg0 dim 0 shift 1 over
// CHECK-NEXT: %[[A:.*]] = train.linear %[[X1]], %arg1
// CHECK-NEXT: %[[P:.*]] = dist.permute %[[A]] from [1, 0]
// CHECK-NEXT: %[[X0:.*]] = dist.slice %arg0 dim 0 over
// CHECK-NEXT: %[[B:.*]] = train.linear %[[X0]], %arg1
// CHECK-NEXT: %[[Y:.*]] = train.add %[[P]], %[[B]]
// CHECK-NEXT: return %[[Y]]

// -----

dist.mesh @mesh ["tensor" = 3]
// One loop for both readers: rows of dx, and a sum over rows in dw.
// CHECK-LABEL: func.func @both
// CHECK-NOT: all_gather
// CHECK: %[[P1:.*]] = dist.permute %arg0 from [1, 2, 0]
// CHECK: %[[DX0:.*]] = train.linear %arg0, %arg1
// CHECK: %[[H0:.*]] = dist.slice %arg2 dim 1 over
// CHECK: %[[DW0:.*]] = train.contract "b s o, b s i -> o i" %arg0, %[[H0]] :
// CHECK: %[[P2:.*]] = dist.permute %[[P1]] from [1, 2, 0]
// CHECK: train.linear %[[P1]], %arg1
// CHECK: dist.slice %arg2 dim 1 shift 1 over
// CHECK: %[[DW1:.*]] = train.contract
// CHECK: %[[S1:.*]] = train.add %[[DW0]], %[[DW1]]
// CHECK-NOT: dist.permute
// CHECK: train.linear %[[P2]], %arg1
// CHECK: dist.slice %arg2 dim 1 shift 2 over
// CHECK: %[[DW2:.*]] = train.contract
// CHECK: %[[S2:.*]] = train.add %[[S1]], %[[DW2]]
// CHECK: %[[DX:.*]] = dist.concat %[[DX0]], {{.*}} dim 1 over
// CHECK: return %[[DX]], %[[S2]]
// SHORT-LABEL: func.func @both
// SHORT: dist.all_gather
func.func @both(%dy: tensor<2x4x6xf32>, %w: tensor<8x6xf32>, %h: tensor<2x12x8xf32>)
    -> (tensor<2x12x8xf32>, tensor<6x8xf32>) {
  %0 = dist.all_gather %dy dim 1 over <@mesh {tensor}> : (tensor<2x4x6xf32>) -> tensor<2x12x6xf32>
  %1 = train.linear %0, %w : (tensor<2x12x6xf32>, tensor<8x6xf32>) -> tensor<2x12x8xf32>
  %2 = train.contract "b s o, b s i -> o i" %0, %h : (tensor<2x12x6xf32>, tensor<2x12x8xf32>) -> tensor<6x8xf32>
  return %1, %2 : tensor<2x12x8xf32>, tensor<6x8xf32>
}

// A weight whose summed index is cut: products that are added in place later.
// CHECK-LABEL: func.func @weight
// CHECK: dist.slice %arg0 dim 1 over
// CHECK: train.contract "i1 i0, i2 i0 -> i1 i2"
// CHECK: dist.slice %arg0 dim 1 shift 1 over
// CHECK: train.contract
// CHECK: train.add
func.func @weight(%x: tensor<4x12xf32>, %w: tensor<6x4xf32>) -> tensor<4x6xf32> {
  %0 = dist.all_gather %w dim 1 over <@mesh {tensor}> : (tensor<6x4xf32>) -> tensor<6x12xf32>
  %1 = train.linear %x, %0 : (tensor<4x12xf32>, tensor<6x12xf32>) -> tensor<4x6xf32>
  return %1 : tensor<4x6xf32>
}

// A sum of products is scattered at once; what is no product is cut.
// CHECK-LABEL: func.func @sum
// CHECK-NOT: reduce_scatter
// CHECK: train.linear {{.*}} -> tensor<2x6xf32>
// CHECK: dist.slice %arg4 dim 0 shift 1 over
// CHECK-COUNT-2: dist.permute
// CHECK-NOT: dist.permute
func.func @sum(%x: tensor<6x8xf32>, %u: tensor<6x8xf32>, %y: tensor<6x4xf32>, %v: tensor<6x4xf32>,
               %z: tensor<6x6xf32>) -> tensor<2x6xf32> {
  %0 = train.linear %x, %u : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x6xf32>
  %1 = train.linear %y, %v : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x6xf32>
  %2 = train.add %0, %1 : (tensor<6x6xf32>, tensor<6x6xf32>) -> tensor<6x6xf32>
  %3 = train.add %2, %z : (tensor<6x6xf32>, tensor<6x6xf32>) -> tensor<6x6xf32>
  %4 = dist.reduce_scatter sum %3 dim 0 over <@mesh {tensor}> : (tensor<6x6xf32>) -> tensor<2x6xf32>
  return %4 : tensor<2x6xf32>
}

// -----

dist.mesh @mesh ["tensor" = 2]
// CHECK-LABEL: func.func @needed_whole
func.func @needed_whole(%x: tensor<4x8xf32>, %w: tensor<6x8xf32>) -> (tensor<8x6xf32>, tensor<8x8xf32>) {
  // CHECK: dist.all_gather
  // expected-remark @+1 {{stays one call: train.silu is no matrix product, and needs the gathered value whole}}
  %0 = dist.all_gather %x dim 0 over <@mesh {tensor}> : (tensor<4x8xf32>) -> tensor<8x8xf32>
  %1 = train.linear %0, %w : (tensor<8x8xf32>, tensor<6x8xf32>) -> tensor<8x6xf32>
  %2 = train.silu %0 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1, %2 : tensor<8x6xf32>, tensor<8x8xf32>
}

// CHECK-LABEL: func.func @no_product
func.func @no_product(%x: tensor<8x6xf32>) -> tensor<4x6xf32> {
  // CHECK: dist.reduce_scatter
  %0 = train.silu %x : (tensor<8x6xf32>) -> tensor<8x6xf32>
  // expected-remark @+1 {{stays one call: train.silu is no matrix product}}
  %1 = dist.reduce_scatter sum %0 dim 0 over <@mesh {tensor}> : (tensor<8x6xf32>) -> tensor<4x6xf32>
  return %1 : tensor<4x6xf32>
}

// CHECK-LABEL: func.func @chain
func.func @chain(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // CHECK: dist.all_gather
  // expected-remark @+1 {{products that read the gathered value need each other's results}}
  %0 = dist.all_gather %x dim 0 over <@mesh {tensor}> : (tensor<4x8xf32>) -> tensor<8x8xf32>
  %1 = train.linear %0, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = train.linear %0, %1 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// CHECK-LABEL: func.func @narrow
func.func @narrow(%x: tensor<8x4xf32>, %w: tensor<6x4xf32>) -> tensor<4x6xf32> {
  %0 = train.linear %x, %w : (tensor<8x4xf32>, tensor<6x4xf32>) -> tensor<8x6xf32>
  // CHECK: dist.reduce_scatter
  // expected-remark @+1 {{its terms are sent in another type than they are added in}}
  %1 = dist.reduce_scatter sum %0 dim 0 over <@mesh {tensor}> {dist.wire = "bf16"} : (tensor<8x6xf32>) -> tensor<4x6xf32>
  return %1 : tensor<4x6xf32>
}

// CHECK-LABEL: func.func @maximum
func.func @maximum(%x: tensor<8x6xf32>) -> tensor<4x6xf32> {
  // CHECK: dist.reduce_scatter
  // expected-remark @+1 {{it takes the maximum}}
  %0 = dist.reduce_scatter max %x dim 0 over <@mesh {tensor}> : (tensor<8x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// CHECK-LABEL: func.func @bucket
func.func @bucket(%x: tensor<4x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  // CHECK: dist.all_gather
  // expected-remark @+1 {{it has several tensors}}
  %0, %1 = dist.all_gather %x, %x dim [0, 0] over <@mesh {tensor}> : (tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>)
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
}
