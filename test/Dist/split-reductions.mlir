// RUN: meshwright-opt %s -split-input-file --dist-split-reductions | FileCheck %s

// BEGIN EXAMPLE --dist-split-reductions
dist.mesh @mesh ["tensor" = 2]
func.func @f(%x: tensor<8x6xf32>, %w: tensor<10x6xf32> {dist.seed = #dist.sharding<@mesh, [{tensor}, {}]>}, %t: tensor<8xi32>) -> tensor<f32> {
  %logits = train.linear %x, %w : (tensor<8x6xf32>, tensor<10x6xf32>) -> tensor<8x10xf32>
  %loss, %lse = train.cross_entropy %logits, %t scale 0.125 : (tensor<8x10xf32>, tensor<8xi32>) -> (tensor<f32>, tensor<8xf32>)
  return %loss : tensor<f32>
}
// END EXAMPLE

// CHECK-LABEL: func.func @f
// CHECK: %[[LOGITS:.*]] = train.linear
// CHECK: %[[MOST:.*]] = train.reduce max %[[LOGITS]] over [1]
// CHECK: train.exp
// CHECK: %[[SUM:.*]] = train.reduce sum
// CHECK: %[[PICKED:.*]] = train.pick %[[LOGITS]], %{{.*}}
// CHECK: train.log %[[SUM]]
// CHECK: train.token_loss {{.*}} below 10 scale 1.250000e-01

// -----

// The features of the stream are sharded by a seed elsewhere; the norm is in their way.
dist.mesh @mesh ["tensor" = 2]
// CHECK-LABEL: func.func @norm
func.func @norm(%x: tensor<8x6xf32>, %w: tensor<6xf32>, %c: tensor<6xf32>, %v: tensor<4x6xf32> {dist.seed = #dist.sharding<@mesh, [{}, {tensor}]>}) -> tensor<8x4xf32> {
  // CHECK-NOT: train.layer_norm
  // CHECK: train.reduce sum
  // CHECK: train.reduce sum
  // CHECK: train.inverse_root
  %y = train.layer_norm %x, %w, %c eps 1.0e-5 : (tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<8x6xf32>
  %z = train.linear %y, %v : (tensor<8x6xf32>, tensor<4x6xf32>) -> tensor<8x4xf32>
  return %z : tensor<8x4xf32>
}

// -----

// Nothing cuts the row: the norm stays one op.
dist.mesh @mesh ["tensor" = 2]
// CHECK-LABEL: func.func @whole
func.func @whole(%x: tensor<8x6xf32> {dist.seed = #dist.sharding<@mesh, [{tensor}, {}]>}, %w: tensor<6xf32>) -> tensor<8x6xf32> {
  // CHECK: train.rms_norm
  %y = train.rms_norm %x, %w eps 1.0e-5 : (tensor<8x6xf32>, tensor<6xf32>) -> tensor<8x6xf32>
  return %y : tensor<8x6xf32>
}
