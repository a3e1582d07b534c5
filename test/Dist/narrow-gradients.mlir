// Where a module says in which type gradients are sent, sums over devices of these say it too; sums of other values do not.
// RUN: sed s/TYPE/bf16/ %s | meshwright-opt -split-input-file --dist-partition | FileCheck %s --check-prefixes=CHECK,BF16
// RUN: sed s/TYPE/fp8/ %s | meshwright-opt -split-input-file --dist-partition | FileCheck %s --check-prefixes=CHECK,FP8
// RUN: sed "s/attributes {dist.gradient_wire = .TYPE.}//" %s | meshwright-opt -split-input-file --dist-partition | FileCheck %s --check-prefix=NONE
// RUN: not meshwright-opt %s -split-input-file --dist-partition 2>&1 | FileCheck %s --check-prefix=TYPE
// NONE-NOT: dist.wire
// TYPE: error: dist.gradient_wire is 'TYPE'; gradients are sent in bf16 or fp8

// CHECK-NOT: dist.gradient_wire
// CHECK-LABEL: func.func @step
// BF16: dist.all_reduce sum %{{.*}} over <@mesh {data}> {dist.wire = "bf16"} : (tensor<4xf32>) -> tensor<4xf32>
// FP8: dist.all_reduce sum %{{.*}} over <@mesh {data}> {dist.wire = "fp8"} : (tensor<4xf32>) -> tensor<4xf32>
module attributes {dist.gradient_wire = "TYPE"} {
dist.mesh @mesh ["data" = 2]
train.variable @w : tensor<4xf32, #dist.sharding<@mesh, [{}]>> init <"normal", 1.0>
func.func @step(%x: tensor<8x4xf32, #dist.sharding<@mesh, [{data}, {}]>>, %clip: tensor<f32, #dist.sharding<@mesh, []>>, %lr: tensor<f32, #dist.sharding<@mesh, []>>) {
  %old = train.get @w : tensor<4xf32, #dist.sharding<@mesh, [{}]>>
  %part = train.reduce sum %x over [0] : (tensor<8x4xf32, #dist.sharding<@mesh, [{data}, {}]>>) -> tensor<4xf32, #dist.sharding<@mesh, [{}], partial = {data}>>
  %dw = dist.reshard %part : (tensor<4xf32, #dist.sharding<@mesh, [{}], partial = {data}>>) -> tensor<4xf32, #dist.sharding<@mesh, [{}]>>
  %new = train.update "sgd" %old, %dw, %clip, %lr : (tensor<4xf32, #dist.sharding<@mesh, [{}]>>, tensor<4xf32, #dist.sharding<@mesh, [{}]>>, tensor<f32, #dist.sharding<@mesh, []>>, tensor<f32, #dist.sharding<@mesh, []>>) -> tensor<4xf32, #dist.sharding<@mesh, [{}]>>
  train.set @w, %new : tensor<4xf32, #dist.sharding<@mesh, [{}]>>
  return
}
}

// -----

// In a layer, before it is added to those of other microbatches and stacked (ZeRO 2). The gradient of the activation is none of a
// parameter: neither is what a gradient of a bias is a sum of.
// CHECK-LABEL: func.func private @layer
// CHECK: dist.all_reduce sum %{{.*}} over <@mesh {tensor}> : (tensor<2x8xf32>) -> tensor<2x8xf32>
// BF16: dist.reduce_scatter sum %{{.*}} dim 0 over <@mesh {data}> {dist.wire = "bf16"} : (tensor<8xf32>) -> tensor<4xf32>
// CHECK-LABEL: func.func @step
// CHECK-NOT: dist.wire
module attributes {dist.gradient_wire = "TYPE"} {
dist.mesh @mesh ["data" = 2, "tensor" = 2]
train.variable @w : tensor<3x8xf32, #dist.sharding<@mesh, [{}, {data}]>> stacked init <"normal", 1.0>
func.func private @layer(%dy: tensor<4x6xf32, #dist.sharding<@mesh, [{data}, {tensor}]>>, %sum: tensor<8xf32, #dist.sharding<@mesh, [{data}]>>, %v: tensor<6x8xf32, #dist.sharding<@mesh, [{tensor}, {}]>>) -> tensor<8xf32, #dist.sharding<@mesh, [{data}]>> {
  %dx = train.contract "b i, i j -> b j" %dy, %v : (tensor<4x6xf32, #dist.sharding<@mesh, [{data}, {tensor}]>>, tensor<6x8xf32, #dist.sharding<@mesh, [{tensor}, {}]>>) -> tensor<4x8xf32, #dist.sharding<@mesh, [{data}, {}], partial = {tensor}>>
  %all = dist.reshard %dx : (tensor<4x8xf32, #dist.sharding<@mesh, [{data}, {}], partial = {tensor}>>) -> tensor<4x8xf32, #dist.sharding<@mesh, [{data}, {}]>>
  %part = train.reduce sum %all over [0] : (tensor<4x8xf32, #dist.sharding<@mesh, [{data}, {}]>>) -> tensor<8xf32, #dist.sharding<@mesh, [{}], partial = {data}>>
  %db = dist.reshard %part : (tensor<8xf32, #dist.sharding<@mesh, [{}], partial = {data}>>) -> tensor<8xf32, #dist.sharding<@mesh, [{data}]>>
  %next = train.accumulate %sum, %db : (tensor<8xf32, #dist.sharding<@mesh, [{data}]>>, tensor<8xf32, #dist.sharding<@mesh, [{data}]>>) -> tensor<8xf32, #dist.sharding<@mesh, [{data}]>>
  return %next : tensor<8xf32, #dist.sharding<@mesh, [{data}]>>
}
func.func @step(%dys: tensor<3x4x6xf32, #dist.sharding<@mesh, [{}, {data}, {tensor}]>>, %v: tensor<6x8xf32, #dist.sharding<@mesh, [{tensor}, {}]>>, %sums: tensor<3x8xf32, #dist.sharding<@mesh, [{}, {data}]>>, %clip: tensor<f32, #dist.sharding<@mesh, []>>, %lr: tensor<f32, #dist.sharding<@mesh, []>>) {
  %old = train.get @w : tensor<3x8xf32, #dist.sharding<@mesh, [{}, {data}]>>
  %dw = train.repeat @layer x 3 carry() each(%dys, %sums) shared(%v) : (tensor<3x4x6xf32, #dist.sharding<@mesh, [{}, {data}, {tensor}]>>, tensor<3x8xf32, #dist.sharding<@mesh, [{}, {data}]>>, tensor<6x8xf32, #dist.sharding<@mesh, [{tensor}, {}]>>) -> tensor<3x8xf32, #dist.sharding<@mesh, [{}, {data}]>>
  %new = train.update "sgd" %old, %dw, %clip, %lr : (tensor<3x8xf32, #dist.sharding<@mesh, [{}, {data}]>>, tensor<3x8xf32, #dist.sharding<@mesh, [{}, {data}]>>, tensor<f32, #dist.sharding<@mesh, []>>, tensor<f32, #dist.sharding<@mesh, []>>) -> tensor<3x8xf32, #dist.sharding<@mesh, [{}, {data}]>>
  train.set @w, %new : tensor<3x8xf32, #dist.sharding<@mesh, [{}, {data}]>>
  return
}
}

// -----

// Sums of microbatches along `data`, and of the sum of these along `replica`.
// CHECK-LABEL: func.func private @microbatch
// BF16: dist.reduce_scatter sum %{{.*}} dim 0 over <@mesh {data}> {dist.wire = "bf16"} : (tensor<4xf32>) -> tensor<2xf32>
// CHECK-LABEL: func.func @step
// BF16: dist.all_reduce sum %{{.*}} over <@mesh {replica}> {dist.wire = "bf16"} : (tensor<2xf32>) -> tensor<2xf32>
module attributes {dist.gradient_wire = "TYPE"} {
dist.mesh @mesh ["replica" = 2, "data" = 2]
train.variable @w : tensor<4xf32, #dist.sharding<@mesh, [{data}]>> init <"normal", 1.0>
func.func private @microbatch(%sum: tensor<4xf32, #dist.sharding<@mesh, [{data}], partial = {replica}>>, %x: tensor<8x4xf32, #dist.sharding<@mesh, [{replica, data}, {}]>>) -> tensor<4xf32, #dist.sharding<@mesh, [{data}], partial = {replica}>> {
  %part = train.reduce sum %x over [0] : (tensor<8x4xf32, #dist.sharding<@mesh, [{replica, data}, {}]>>) -> tensor<4xf32, #dist.sharding<@mesh, [{}], partial = {replica, data}>>
  %db = dist.reshard %part : (tensor<4xf32, #dist.sharding<@mesh, [{}], partial = {replica, data}>>) -> tensor<4xf32, #dist.sharding<@mesh, [{data}], partial = {replica}>>
  %next = train.accumulate %sum, %db : (tensor<4xf32, #dist.sharding<@mesh, [{data}], partial = {replica}>>, tensor<4xf32, #dist.sharding<@mesh, [{data}], partial = {replica}>>) -> tensor<4xf32, #dist.sharding<@mesh, [{data}], partial = {replica}>>
  return %next : tensor<4xf32, #dist.sharding<@mesh, [{data}], partial = {replica}>>
}
func.func @step(%xs: tensor<3x8x4xf32, #dist.sharding<@mesh, [{}, {replica, data}, {}]>>, %clip: tensor<f32, #dist.sharding<@mesh, []>>, %lr: tensor<f32, #dist.sharding<@mesh, []>>) {
  %old = train.get @w : tensor<4xf32, #dist.sharding<@mesh, [{data}]>>
  %zero = train.fill 0.0 : () -> tensor<4xf32, #dist.sharding<@mesh, [{data}], partial = {replica}>>
  %sum = train.repeat @microbatch x 3 carry(%zero) each(%xs) shared() : (tensor<4xf32, #dist.sharding<@mesh, [{data}], partial = {replica}>>, tensor<3x8x4xf32, #dist.sharding<@mesh, [{}, {replica, data}, {}]>>) -> tensor<4xf32, #dist.sharding<@mesh, [{data}], partial = {replica}>>
  %dw = dist.reshard %sum : (tensor<4xf32, #dist.sharding<@mesh, [{data}], partial = {replica}>>) -> tensor<4xf32, #dist.sharding<@mesh, [{data}]>>
  %new = train.update "sgd" %old, %dw, %clip, %lr : (tensor<4xf32, #dist.sharding<@mesh, [{data}]>>, tensor<4xf32, #dist.sharding<@mesh, [{data}]>>, tensor<f32, #dist.sharding<@mesh, []>>, tensor<f32, #dist.sharding<@mesh, []>>) -> tensor<4xf32, #dist.sharding<@mesh, [{data}]>>
  train.set @w, %new : tensor<4xf32, #dist.sharding<@mesh, [{data}]>>
  return
}
}
