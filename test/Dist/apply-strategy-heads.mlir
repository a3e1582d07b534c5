// Two groups of three heads among four devices: groups are padded, not heads inside them, whose padding would lie in the middle.
// RUN: meshwright-opt %s --dist-apply-strategy=mesh=tensor=4 | FileCheck %s

// CHECK: dist.mesh @mesh ["tensor" = 4]
// CHECK: @q {{.*}}, dist.seed = #tensor_R}
// CHECK: @k {{.*}}, dist.seed = #tensor_R}
// CHECK: @v {{.*}}, dist.seed = #tensor_R}
// CHECK: @o {{.*}}, dist.seed = #R_tensor}
train.variable @norm : tensor<16xf32> init <"constant", 1.0>
train.variable @q : tensor<24x16xf32> init <"normal", 1.0>
train.variable @k : tensor<8x16xf32> init <"normal", 1.0>
train.variable @v : tensor<8x16xf32> init <"normal", 1.0>
train.variable @o : tensor<16x24xf32> init <"normal", 1.0>
func.func @step(%x: tensor<2x5x16xf32> {train.input = "x"}) -> tensor<2x5x16xf32> {
  %wq = train.get @q : tensor<24x16xf32>
  %wk = train.get @k : tensor<8x16xf32>
  %wv = train.get @v : tensor<8x16xf32>
  %wo = train.get @o : tensor<16x24xf32>
  %weight = train.get @norm : tensor<16xf32>
  %n = train.rms_norm %x, %weight eps 1.0e-5 : (tensor<2x5x16xf32>, tensor<16xf32>) -> tensor<2x5x16xf32>
  %1 = train.linear %n, %wq : (tensor<2x5x16xf32>, tensor<24x16xf32>) -> tensor<2x5x24xf32>
  %2 = train.linear %n, %wk : (tensor<2x5x16xf32>, tensor<8x16xf32>) -> tensor<2x5x8xf32>
  %3 = train.linear %n, %wv : (tensor<2x5x16xf32>, tensor<8x16xf32>) -> tensor<2x5x8xf32>
  %q = train.reshape %1 : (tensor<2x5x24xf32>) -> tensor<2x5x6x4xf32>
  %k = train.reshape %2 : (tensor<2x5x8xf32>) -> tensor<2x5x2x4xf32>
  %v = train.reshape %3 : (tensor<2x5x8xf32>) -> tensor<2x5x2x4xf32>
  %out, %lse = train.attention %q, %k, %v scale 0.5 causal : (tensor<2x5x6x4xf32>, tensor<2x5x2x4xf32>, tensor<2x5x2x4xf32>) -> (tensor<2x5x6x4xf32>, tensor<2x6x5xf32>)
  %4 = train.reshape %out : (tensor<2x5x6x4xf32>) -> tensor<2x5x24xf32>
  %5 = train.linear %4, %wo : (tensor<2x5x24xf32>, tensor<16x24xf32>) -> tensor<2x5x16xf32>
  %6 = train.add %x, %5 : (tensor<2x5x16xf32>, tensor<2x5x16xf32>) -> tensor<2x5x16xf32>
  return %6 : tensor<2x5x16xf32>
}
