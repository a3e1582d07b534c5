// Keys and values have the same four heads. Of more devices each head's values are divided, not its keys, which are summed over: neither in
// the forward, where keys have more elements than values, nor in the backward, which gradients of keys leave.
// RUN: meshwright-opt %s --train-autodiff --dist-apply-strategy="mesh=context=8 context-parallel=gather" | FileCheck %s

// CHECK: dist.mesh @mesh ["context.0" = 4, "context.1" = 2]
// CHECK-LABEL: @layer(%
// CHECK: dist.constrain %{{.*}} to #R_R_context_0 boundary {{.*}} : (tensor<2x24x24xf32>)
// CHECK: dist.constrain %{{.*}} to #R_R_context_0-context_1 boundary {{.*}} : (tensor<2x24x16xf32>)
// CHECK: dist.constrain %{{.*}} to #R_context_0-context_1_R_R boundary {{.*}} : (tensor<2x24x4x4xf32>)
// CHECK-LABEL: @layer.backward(%
// CHECK: dist.constrain %{{.*}} to #R_R_context_0_context_1 boundary {{.*}} : (tensor<2x24x4x4xf32>)
// CHECK: dist.constrain %{{.*}} to #R_context_0-context_1_R boundary {{.*}} : (tensor<2x24x16xf32>)
// CHECK: dist.constrain %{{.*}} to #R_context_0-context_1_R boundary {{.*}} : (tensor<2x24x24xf32>)
train.variable @k : tensor<1x24x16xf32> stacked init <"normal", 1.0>
train.variable @v : tensor<1x16x16xf32> stacked init <"normal", 1.0>
train.variable @o : tensor<1x16x16xf32> stacked init <"normal", 1.0>
func.func private @layer(%x: tensor<2x24x16xf32>, %wk: tensor<24x16xf32>, %wv: tensor<16x16xf32>, %wo: tensor<16x16xf32>) -> tensor<2x24x16xf32> {
  %1 = train.linear %x, %wk : (tensor<2x24x16xf32>, tensor<24x16xf32>) -> tensor<2x24x24xf32>
  %2 = train.linear %x, %wv : (tensor<2x24x16xf32>, tensor<16x16xf32>) -> tensor<2x24x16xf32>
  %3 = train.slice %1 dim 1 rows 24 {train.redistributes} : (tensor<2x24x24xf32>) -> tensor<2x24x24xf32>
  %4 = train.slice %2 dim 1 rows 24 {train.redistributes} : (tensor<2x24x16xf32>) -> tensor<2x24x16xf32>
  %k = train.reshape %3 : (tensor<2x24x24xf32>) -> tensor<2x24x4x6xf32>
  %v = train.reshape %4 : (tensor<2x24x16xf32>) -> tensor<2x24x4x4xf32>
  %state = train.contract "b t h k, b t h v -> b h k v" %k, %v : (tensor<2x24x4x6xf32>, tensor<2x24x4x4xf32>) -> tensor<2x4x6x4xf32>
  %y = train.contract "b t h k, b h k v -> b t h v" %k, %state : (tensor<2x24x4x6xf32>, tensor<2x4x6x4xf32>) -> tensor<2x24x4x4xf32>
  %5 = train.slice %y dim 1 rows 24 {train.redistributes} : (tensor<2x24x4x4xf32>) -> tensor<2x24x4x4xf32>
  %6 = train.reshape %5 : (tensor<2x24x4x4xf32>) -> tensor<2x24x16xf32>
  %7 = train.linear %6, %wo : (tensor<2x24x16xf32>, tensor<16x16xf32>) -> tensor<2x24x16xf32>
  %8 = train.add %x, %7 : (tensor<2x24x16xf32>, tensor<2x24x16xf32>) -> tensor<2x24x16xf32>
  return %8 : tensor<2x24x16xf32>
}
func.func @loss(%tokens: tensor<2x24xi32> {train.input = "tokens"}, %table: tensor<8x16xf32> {train.input = "table"}) -> (tensor<f32> {train.output = "loss"}) {
  %k = train.get @k : tensor<1x24x16xf32>
  %v = train.get @v : tensor<1x16x16xf32>
  %o = train.get @o : tensor<1x16x16xf32>
  %x = train.embedding %table, %tokens : (tensor<8x16xf32>, tensor<2x24xi32>) -> tensor<2x24x16xf32>
  %y = train.repeat @layer x 1 carry(%x) each(%k, %v, %o) shared() : (tensor<2x24x16xf32>, tensor<1x24x16xf32>, tensor<1x16x16xf32>, tensor<1x16x16xf32>) -> tensor<2x24x16xf32>
  %s = train.reduce sum %y over [0, 1, 2] : (tensor<2x24x16xf32>) -> tensor<f32>
  return %s : tensor<f32>
}
