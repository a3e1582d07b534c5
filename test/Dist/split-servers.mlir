// RUN: meshwright-opt %s -split-input-file --dist-split-servers -verify-diagnostics | FileCheck %s

// BEGIN EXAMPLE --dist-split-servers
dist.mesh @mesh ["data" = 4]
train.variable @w : tensor<8xf32> init <"normal", 1.0> {dist.global = tensor<8xf32, #dist.sharding<@mesh, [{}]>>}
train.variable @w.sum : tensor<8xf32> init <"constant", 0.0> state "sum" of @w {dist.global = tensor<8xf32, #dist.sharding<@mesh, [{}], root = {data}>>}
func.func @step(%gradient: tensor<8xf32>) {
  %w = train.get @w : tensor<8xf32>
  %old = train.get @w.sum : tensor<8xf32>
  %g = dist.reduce sum %gradient root 0 over <@mesh {data}> : (tensor<8xf32>) -> tensor<8xf32>
  %new = train.add %old, %g : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  train.set @w.sum, %new : tensor<8xf32>
  %next = train.mul %w, %new : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %everywhere = dist.broadcast %next root 0 over <@mesh {data}> : (tensor<8xf32>) -> tensor<8xf32>
  train.set @w, %everywhere : tensor<8xf32>
  return
}
// END EXAMPLE

// CHECK-LABEL: module @server attributes {dist.coordinates = {data = 0 : i64}}
// CHECK: dist.mesh @mesh ["data" = 4]
// CHECK: train.variable @w.sum
// CHECK: train.mul
// CHECK-LABEL: module @workers attributes {dist.coordinates = {data = [1, 2, 3]}}
// CHECK: dist.mesh @mesh ["data" = 4]
// CHECK: train.variable @w :
// CHECK-NOT: train.variable
// CHECK: func.func @step(%[[GRADIENT:.*]]: tensor<8xf32>)
// CHECK-NEXT: %[[W:.*]] = train.get @w
// CHECK-NEXT: dist.reduce sum %[[GRADIENT]]
// CHECK-NEXT: %[[NEXT:.*]] = dist.broadcast %[[W]]
// CHECK-NEXT: train.set @w, %[[NEXT]]
// CHECK-NEXT: return

// -----

// What leaves the program comes back from the server too; nobody reads a worker's zeros. Two axes: workers are those
// of other replicas, and the other ones of the server's.
dist.mesh @mesh ["replica" = 2, "data" = 2, "tensor" = 2]
func.func @norm(%part: tensor<8xf32>) -> tensor<f32> {
  %g = dist.reduce sum %part root 0 over <@mesh {replica, data}> : (tensor<8xf32>) -> tensor<8xf32>
  %own = train.reduce sum %g over [0] : (tensor<8xf32>) -> tensor<f32>
  %all = dist.all_reduce sum %own over <@mesh {tensor}> : (tensor<f32>) -> tensor<f32>
  %y = dist.broadcast %all root 0 over <@mesh {replica, data}> : (tensor<f32>) -> tensor<f32>
  return %y : tensor<f32>
}
// CHECK-LABEL: module @server attributes {dist.coordinates = {data = 0 : i64, replica = 0 : i64}}
// CHECK: dist.all_reduce
// CHECK-LABEL: module @workers.replica attributes {dist.coordinates = {replica = [1]}}
// CHECK: dist.reduce
// CHECK-NEXT: %[[ZERO:.*]] = train.fill 0.0
// CHECK-NEXT: %[[Y:.*]] = dist.broadcast %[[ZERO]]
// CHECK-NEXT: return %[[Y]]
// CHECK-LABEL: module @workers.data attributes {dist.coordinates = {data = [1], replica = 0 : i64}}
// CHECK-NOT: dist.all_reduce

// -----

// A sum that only the server uses further on is added up there, not everywhere: workers leave out what they do not
// use, and an all_reduce among some of its devices would never end. Along `tensor` all devices of it are servers.
dist.mesh @mesh ["data" = 2, "tensor" = 2]
train.variable @w : tensor<8xf32> init <"normal", 1.0> {dist.global = tensor<8xf32, #dist.sharding<@mesh, [{}], root = {data}>>}
func.func @step(%part: tensor<4xf32>, %other: tensor<4xf32>, %gather: tensor<4xf32>) {
  %w = train.get @w : tensor<8xf32>
  %a = dist.all_reduce sum %part over <@mesh {data}> : (tensor<4xf32>) -> tensor<4xf32>
  %b = dist.all_reduce sum %other over <@mesh {data, tensor}> : (tensor<4xf32>) -> tensor<4xf32>
  %c = train.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %d = train.pad %c rows 8 : (tensor<4xf32>) -> tensor<8xf32>
  %e = dist.all_gather %gather dim 0 over <@mesh {data}> : (tensor<4xf32>) -> tensor<8xf32>
  %f = train.add %d, %e : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %new = train.add %w, %f : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  train.set @w, %new : tensor<8xf32>
  return
}
// CHECK-LABEL: module @server
// CHECK: func.func @step(%[[PART:.*]]: tensor<4xf32>, %[[OTHER:.*]]: tensor<4xf32>, %[[GATHER:.*]]: tensor<4xf32>)
// CHECK: dist.reduce sum %[[PART]] root 0 over <@mesh {data}>
// CHECK-NEXT: %[[SUM:.*]] = dist.all_reduce sum %[[OTHER]] over <@mesh {tensor}>
// CHECK-NEXT: dist.reduce sum %[[SUM]] root 0 over <@mesh {data}>
// CHECK: dist.gather %[[GATHER]] dim 0 root 0 over <@mesh {data}>
// CHECK: train.set @w
// CHECK-LABEL: module @workers
// CHECK: func.func @step(%[[PART:.*]]: tensor<4xf32>, %[[OTHER:.*]]: tensor<4xf32>, %[[GATHER:.*]]: tensor<4xf32>)
// CHECK-NEXT: dist.reduce sum %[[PART]] root 0 over <@mesh {data}>
// CHECK-NEXT: %[[SUM:.*]] = dist.all_reduce sum %[[OTHER]] over <@mesh {tensor}>
// CHECK-NEXT: dist.reduce sum %[[SUM]] root 0 over <@mesh {data}>
// CHECK-NEXT: dist.gather %[[GATHER]] dim 0 root 0 over <@mesh {data}>
// CHECK-NEXT: return

// -----

// Parts along both axes are gathered from the inner axis on; among the server's devices that is in its program
// alone. What they are made of by everybody, workers still make.
dist.mesh @mesh ["data" = 2, "tensor" = 2]
train.variable @w : tensor<8xf32> init <"normal", 1.0> {dist.global = tensor<8xf32, #dist.sharding<@mesh, [{}], root = {data}>>}
func.func @step(%part: tensor<4xf32>, %other: tensor<2xf32>) {
  %a = dist.reduce_scatter sum %part dim 0 over <@mesh {data}> : (tensor<4xf32>) -> tensor<2xf32>
  %b = dist.all_gather %a dim 0 over <@mesh {tensor, data}> : (tensor<2xf32>) -> tensor<8xf32>
  %c = dist.all_gather %other dim 0 over <@mesh {data, tensor}> : (tensor<2xf32>) -> tensor<8xf32>
  %new = train.add %b, %c : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  train.set @w, %new : tensor<8xf32>
  return
}
// CHECK-LABEL: module @server
// CHECK: func.func @step(%[[PART:.*]]: tensor<4xf32>, %[[OTHER:.*]]: tensor<2xf32>)
// CHECK-NEXT: %[[A:.*]] = dist.reduce_scatter sum %[[PART]] dim 0 over <@mesh {data}>
// CHECK-NEXT: %[[ROOT:.*]] = dist.gather %[[A]] dim 0 root 0 over <@mesh {data}> : (tensor<2xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[B:.*]] = dist.all_gather %[[ROOT]] dim 0 over <@mesh {tensor}> : (tensor<4xf32>) -> tensor<8xf32>
// CHECK-NEXT: %[[INNER:.*]] = dist.all_gather %[[OTHER]] dim 0 over <@mesh {tensor}> : (tensor<2xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[C:.*]] = dist.gather %[[INNER]] dim 0 root 0 over <@mesh {data}> : (tensor<4xf32>) -> tensor<8xf32>
// CHECK-NEXT: train.add %[[B]], %[[C]]
// CHECK-LABEL: module @workers
// CHECK: func.func @step(%[[PART:.*]]: tensor<4xf32>, %[[OTHER:.*]]: tensor<2xf32>)
// CHECK-NEXT: %[[A:.*]] = dist.reduce_scatter sum %[[PART]] dim 0 over <@mesh {data}>
// CHECK-NEXT: dist.gather %[[A]] dim 0 root 0 over <@mesh {data}>
// CHECK-NEXT: %[[INNER:.*]] = dist.all_gather %[[OTHER]] dim 0 over <@mesh {tensor}>
// CHECK-NEXT: dist.gather %[[INNER]] dim 0 root 0 over <@mesh {data}>
// CHECK-NEXT: return

// -----

// One program.
// CHECK-LABEL: module
// CHECK-NOT: module
dist.mesh @mesh ["data" = 2]
func.func @same(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = dist.all_reduce sum %x over <@mesh {data}> : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

dist.mesh @mesh ["data" = 2]
func.func @leaves(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = dist.reduce sum %x root 0 over <@mesh {data}> : (tensor<8xf32>) -> tensor<8xf32>
  // expected-error @+1 {{uses result 0 of dist.reduce in @leaves, which only the root over {data} has, as a result; constrain it to a sharding without root first}}
  return %0 : tensor<8xf32>
}

// -----

dist.mesh @mesh ["data" = 2]
func.func private @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
func.func @calls(%x: tensor<8xf32>) {
  %0 = dist.reduce sum %x root 0 over <@mesh {data}> : (tensor<8xf32>) -> tensor<8xf32>
  // expected-error @+1 {{which only the root over {data} has, in a call}}
  %1 = func.call @f(%0) : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

dist.mesh @mesh ["data" = 2, "tensor" = 2]
func.func @two(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = dist.reduce sum %x root 0 over <@mesh {data}> : (tensor<8xf32>) -> tensor<8xf32>
  // expected-error @+1 {{which only the root over {data} has, in a program whose servers are those over {data, tensor}; give all seeds one root}}
  %1 = dist.broadcast %0 root 0 over <@mesh {data}> : (tensor<8xf32>) -> tensor<8xf32>
  %2 = dist.reduce sum %x root 0 over <@mesh {tensor}> : (tensor<8xf32>) -> tensor<8xf32>
  %3 = dist.broadcast %2 root 0 over <@mesh {tensor}> : (tensor<8xf32>) -> tensor<8xf32>
  return %1, %3 : tensor<8xf32>, tensor<8xf32>
}
