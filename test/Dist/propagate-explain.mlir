// RUN: meshwright-opt %s --dist-propagate=explain=w -verify-diagnostics -o /dev/null

// -verify-diagnostics compares the first line of a remark's text by substring.
dist.mesh @mesh ["a" = 2]
// expected-remark-re @+1 {{@w is [{a}, {}]{{.*}}dimension 0 along a: from result 0 of train.linear in @f dimension 1 through train.linear in @f; from result 0 of @f dimension 1 through func.return; by seed}}
train.variable @w : tensor<6x4xf32> init <"normal", 2.0e-02 : f64>
func.func @f(%x: tensor<8x4xf32>) -> (tensor<8x6xf32> {dist.seed = #dist.sharding<@mesh, [{}, {a}]>}) {
  %w = train.get @w : tensor<6x4xf32>
  %0 = train.linear %x, %w : (tensor<8x4xf32>, tensor<6x4xf32>) -> tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}
