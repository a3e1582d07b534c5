// RUN: meshwright-opt %s -split-input-file --dist-partition -verify-diagnostics

dist.mesh @mesh ["a" = 4]
// expected-error @+1 {{argument 0 of @f has 5 elements in dimension 1, which do not divide by the 4 devices along {a}; choose a size or a mesh that divides}}
func.func @f(%x: tensor<8x5xf32, #dist.sharding<@mesh, [{}, {a}]>>) {
  return
}

// -----

dist.mesh @mesh ["a" = 4]
// expected-error @+1 {{variable of type 'tensor<8x5xf32>' has no sharding; run dist-propagate first}}
train.variable @w : tensor<8x5xf32> init <"normal", 2.0e-02 : f64>

// -----

dist.mesh @mesh ["a" = 4]
func.func @f(%x: tensor<8xf32, #dist.sharding<@mesh, [{}]>>) {
  // expected-error @+1 {{cannot make [{}] partial {a} of [{}]: nothing becomes partial by moving}}
  %0 = dist.reshard %x : (tensor<8xf32, #dist.sharding<@mesh, [{}]>>) -> tensor<8xf32, #dist.sharding<@mesh, [{}], partial = {a}>>
  return
}
