// RUN: meshwright-opt %s --annotate-index-classes | FileCheck %s

// Heads and what is inside of them are two indices, 0 and 1, of one dimension of both weights; the first weight's inputs
// are those of the residual stream, the other's outputs are not: nothing adds the two.
// CHECK: module attributes {dist.index_sizes = [6, 4, 16, 16, 2, 5]}
// CHECK: train.variable @q {{.*}} {dist.indices = [array<i64: 0, 1>, array<i64: 2>]}
train.variable @q : tensor<24x16xf32> init <"normal", 1.0>
// CHECK: train.variable @o {{.*}} {dist.indices = [array<i64: 3>, array<i64: 0, 1>]}
train.variable @o : tensor<16x24xf32> init <"normal", 1.0>
// CHECK: func.func @f(%{{.*}}: tensor<2x5x16xf32> {dist.indices = [array<i64: 4>, array<i64: 5>, array<i64: 2>]})
func.func @f(%x: tensor<2x5x16xf32>) -> tensor<2x5x16xf32> {
  %q = train.get @q : tensor<24x16xf32>
  %o = train.get @o : tensor<16x24xf32>
  %0 = train.linear %x, %q : (tensor<2x5x16xf32>, tensor<24x16xf32>) -> tensor<2x5x24xf32>
  // CHECK: train.reshape {{.*}} {dist.indices = {{\[\[}}array<i64: 4>, array<i64: 5>, array<i64: 0>, array<i64: 1>]]}
  %1 = train.reshape %0 : (tensor<2x5x24xf32>) -> tensor<2x5x6x4xf32>
  // CHECK: train.reshape {{.*}} {dist.indices = {{\[\[}}array<i64: 4>, array<i64: 5>, array<i64: 0, 1>]]}
  %2 = train.reshape %1 : (tensor<2x5x6x4xf32>) -> tensor<2x5x24xf32>
  %3 = train.linear %2, %o : (tensor<2x5x24xf32>, tensor<16x24xf32>) -> tensor<2x5x16xf32>
  return %3 : tensor<2x5x16xf32>
}
