// RUN: meshwright-opt %s --dist-apply-strategy=mesh=data=4 -split-input-file | FileCheck %s --check-prefix=EXAMPLE
// RUN: meshwright-opt %s --dist-apply-strategy=mesh=pipe=1,replica=2,data=2 -split-input-file | FileCheck %s

// BEGIN EXAMPLE --dist-apply-strategy=mesh=data=4
module attributes {train.batch = 8 : i64, train.microbatches = 1 : i64} {
  train.variable @w : tensor<16x16xf32> init <"normal", 0.02>
  func.func @loss(%tokens: tensor<8x16xi32> {train.input = "tokens"}) {
    return
  }
}
// END EXAMPLE

// EXAMPLE: dist.mesh @mesh ["data" = 4]
// EXAMPLE: train.variable @w {{.*}} {dist.reason = "data parallel", dist.seed = #R_R}
// EXAMPLE: func.func @loss(%{{.*}}: tensor<8x16xi32> {dist.reason = "data parallel", dist.seed = #dist.sharding<@mesh, [{data}, {}]>, train.input = "tokens"})

// -----

// CHECK: dist.mesh @mesh ["pipe" = 1, "replica" = 2, "data" = 2]
module attributes {train.batch = 8 : i64, train.microbatches = 2 : i64} {
  // CHECK: train.variable @w {{.*}} {dist.reason = "data parallel", dist.seed = #R_R}
  train.variable @w : tensor<16x4xf32> init <"normal", 2.0e-02 : f64>
  // CHECK: func.func @step
  // CHECK-SAME: tensor<2x4x8xi32> {dist.reason = "data parallel", dist.seed = #dist.sharding<@mesh, [{}, {replica, data}, {}]>, train.input = "tokens"}
  // CHECK-SAME: tensor<2x4xi32> {dist.reason = "data parallel", dist.seed = #dist.sharding<@mesh, [{}, {replica, data}]>, train.input = "sequence_ids"}
  // CHECK-SAME: tensor<f32> {train.input = "lr"}
  func.func @step(%tokens: tensor<2x4x8xi32> {train.input = "tokens"},
                  %ids: tensor<2x4xi32> {train.input = "sequence_ids"},
                  %lr: tensor<f32> {train.input = "lr"}) {
    return
  }
  // Without microbatches the batch comes first.
  // CHECK: func.func @loss
  // CHECK-SAME: tensor<4x8xi32> {dist.reason = "data parallel", dist.seed = #dist.sharding<@mesh, [{replica, data}, {}]>, train.input = "targets"}
  func.func @loss(%targets: tensor<4x8xi32> {train.input = "targets"}) {
    return
  }
}
