// RUN: meshwright-opt %s --annotate-replication | FileCheck %s

dist.mesh @mesh ["data" = 2, "tensor" = 2]
func.func @step(%x: tensor<4xf32> {dist.global = tensor<8xf32, #dist.sharding<@mesh, [{data}]>>}) -> tensor<4xf32> {
  // CHECK: train.add {{.*}} {dist.replicated = {{\[\[}}"tensor"]]}
  %0 = train.add %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: dist.all_reduce {{.*}} {dist.replicated = {{\[\[}}"data", "tensor"]]}
  %1 = dist.all_reduce sum %0 over <@mesh {data}> : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: dist.slice {{.*}} {dist.replicated = {{\[\[}}"data"]]}
  %2 = dist.slice %1 dim 0 over <@mesh {tensor}> : (tensor<4xf32>) -> tensor<2xf32>
  // What differs along both axes and is gathered along one differs along the other still.
  // CHECK: dist.slice {{.*}} {dist.replicated = {{\[\[\]\]}}}
  %3 = dist.slice %0 dim 0 over <@mesh {tensor}> : (tensor<4xf32>) -> tensor<2xf32>
  // CHECK: train.add {{.*}} {dist.replicated = {{\[\[\]\]}}}
  %4 = train.add %2, %3 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  // CHECK: dist.all_gather {{.*}} {dist.replicated = {{\[\[}}"tensor"]]}
  %5 = dist.all_gather %4 dim 0 over <@mesh {tensor}> : (tensor<2xf32>) -> tensor<4xf32>
  return %5 : tensor<4xf32>
}
