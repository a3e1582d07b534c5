// RUN: meshwright-opt %s --dist-partition -split-input-file | FileCheck %s

// BEGIN EXAMPLE --dist-partition
dist.mesh @mesh ["data" = 2]
func.func @f(%x: tensor<8x4xf32, #dist.sharding<@mesh, [{data}, {}]>>) -> tensor<4xf32, #dist.sharding<@mesh, [{}]>> {
  %0 = train.reduce sum %x over [0] : (tensor<8x4xf32, #dist.sharding<@mesh, [{data}, {}]>>) -> tensor<4xf32, #dist.sharding<@mesh, [{}], partial = {data}>>
  %1 = dist.reshard %0 : (tensor<4xf32, #dist.sharding<@mesh, [{}], partial = {data}>>) -> tensor<4xf32, #dist.sharding<@mesh, [{}]>>
  return %1 : tensor<4xf32, #dist.sharding<@mesh, [{}]>>
}
// END EXAMPLE

// CHECK-LABEL: func.func @f(
// CHECK-SAME: tensor<4x4xf32> {dist.global = tensor<8x4xf32, #dist.sharding<@mesh, [{data}, {}]>>}
// CHECK: %[[SUM:.*]] = train.reduce sum %{{.*}} over [0] : (tensor<4x4xf32>) -> tensor<4xf32>
// CHECK: dist.all_reduce sum %[[SUM]] over <@mesh {data}>

// -----

dist.mesh @mesh ["a" = 2, "b" = 4]
// CHECK: train.variable @w : tensor<4x8xf32> {{.*}} {dist.global = tensor<8x8xf32, #dist.sharding<@mesh, [{a}, {}]>>}
train.variable @w : tensor<8x8xf32, #dist.sharding<@mesh, [{a}, {}]>> init <"normal", 2.0e-02 : f64>

// CHECK: func.func private @layer(%{{.*}}: tensor<2x8xf32>) -> tensor<2x8xf32>
func.func private @layer(%x: tensor<8x8xf32, #dist.sharding<@mesh, [{b}, {}]>>) -> tensor<8x8xf32, #dist.sharding<@mesh, [{b}, {}]>> {
  %0 = train.gelu %x : (tensor<8x8xf32, #dist.sharding<@mesh, [{b}, {}]>>) -> tensor<8x8xf32, #dist.sharding<@mesh, [{b}, {}]>>
  return %0 : tensor<8x8xf32, #dist.sharding<@mesh, [{b}, {}]>>
}

// CHECK: func.func @main(%[[X:.*]]: tensor<2x8xf32> {dist.global = tensor<8x8xf32, #dist.sharding<@mesh, [{b}, {}]>>}) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x1xf32>)
func.func @main(%x: tensor<8x8xf32, #dist.sharding<@mesh, [{b}, {}]>>)
    -> (tensor<8x8xf32, #dist.sharding<@mesh, [{}, {}]>>, tensor<8x8xf32, #dist.sharding<@mesh, [{}, {}]>>, tensor<8x8xf32, #dist.sharding<@mesh, [{}, {a, b}]>>) {
  // CHECK: %[[Y:.*]] = train.repeat @layer x 2 {{.*}} -> tensor<2x8xf32>
  %y = train.repeat @layer x 2 carry(%x) each() shared() : (tensor<8x8xf32, #dist.sharding<@mesh, [{b}, {}]>>) -> tensor<8x8xf32, #dist.sharding<@mesh, [{b}, {}]>>
  // CHECK: %[[W:.*]] = train.get @w : tensor<4x8xf32>
  %w = train.get @w : tensor<8x8xf32, #dist.sharding<@mesh, [{a}, {}]>>
  // CHECK: %[[G:.*]] = dist.all_gather %[[W]] dim 0 over <@mesh {a}> : (tensor<4x8xf32>) -> tensor<8x8xf32>
  %all = dist.reshard %w : (tensor<8x8xf32, #dist.sharding<@mesh, [{a}, {}]>>) -> tensor<8x8xf32, #dist.sharding<@mesh, [{}, {}]>>
  // CHECK: %[[P:.*]] = train.contract "s i, s j -> i j" %[[Y]], %[[X]] : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<8x8xf32>
  %p = train.contract "s i, s j -> i j" %y, %x : (tensor<8x8xf32, #dist.sharding<@mesh, [{b}, {}]>>, tensor<8x8xf32, #dist.sharding<@mesh, [{b}, {}]>>) -> tensor<8x8xf32, #dist.sharding<@mesh, [{}, {}], partial = {b}>>
  // CHECK: %[[R:.*]] = dist.all_reduce sum %[[P]] over <@mesh {b}>
  %r = dist.reshard %p : (tensor<8x8xf32, #dist.sharding<@mesh, [{}, {}], partial = {b}>>) -> tensor<8x8xf32, #dist.sharding<@mesh, [{}, {}]>>
  // CHECK: %[[S:.*]] = dist.slice %[[P]] dim 1 over <@mesh {a}> : (tensor<8x8xf32>) -> tensor<8x4xf32>
  // CHECK: %[[T:.*]] = dist.reduce_scatter sum %[[S]] dim 1 over <@mesh {b}> : (tensor<8x4xf32>) -> tensor<8x1xf32>
  %t = dist.reshard %p : (tensor<8x8xf32, #dist.sharding<@mesh, [{}, {}], partial = {b}>>) -> tensor<8x8xf32, #dist.sharding<@mesh, [{}, {a, b}]>>
  // A reshard of a reshard.
  // CHECK: dist.all_to_all %[[Y]] split 1 concat 0 over <@mesh {b}> : (tensor<2x8xf32>) -> tensor<8x2xf32>
  // CHECK: dist.all_gather %{{.*}} dim 1 over <@mesh {b}> : (tensor<8x2xf32>) -> tensor<8x8xf32>
  %u = dist.reshard %y : (tensor<8x8xf32, #dist.sharding<@mesh, [{b}, {}]>>) -> tensor<8x8xf32, #dist.sharding<@mesh, [{}, {b}]>>
  %v = dist.reshard %u : (tensor<8x8xf32, #dist.sharding<@mesh, [{}, {b}]>>) -> tensor<8x8xf32, #dist.sharding<@mesh, [{}, {}]>>
  return %r, %all, %t : tensor<8x8xf32, #dist.sharding<@mesh, [{}, {}]>>, tensor<8x8xf32, #dist.sharding<@mesh, [{}, {}]>>, tensor<8x8xf32, #dist.sharding<@mesh, [{}, {a, b}]>>
}
