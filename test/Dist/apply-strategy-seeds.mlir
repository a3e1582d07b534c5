// RUN: meshwright-opt %s --dist-apply-strategy | FileCheck %s

// A mesh and seeds that are there stay, and bring axes that no strategy has.
dist.mesh @grid ["data" = 2, "tensor" = 2]
// CHECK: train.variable @w {{.*}} {dist.seed = #dist.sharding<@grid, [{tensor}, {?}]>}
train.variable @w : tensor<16x4xf32> init <"normal", 2.0e-02 : f64> {dist.seed = #dist.sharding<@grid, [{tensor}, {?}]>}
// CHECK: train.variable @b {{.*}} {dist.reason = "tensor parallel", dist.seed = #R}
train.variable @b : tensor<16xf32> init <"normal", 2.0e-02 : f64>
// CHECK: @step(%{{.*}}: tensor<1x4x8xi32> {dist.seed = #dist.sharding<@grid, [{}, {}, {data}]>,
// CHECK-SAME: tensor<1x4x8xi32> {dist.reason = "data parallel", dist.seed = #dist.sharding<@grid, [{}, {data}, {}]>,
func.func @step(%tokens: tensor<1x4x8xi32> {train.input = "tokens", dist.seed = #dist.sharding<@grid, [{}, {}, {data}]>},
                %targets: tensor<1x4x8xi32> {train.input = "targets"}) {
  return
}
