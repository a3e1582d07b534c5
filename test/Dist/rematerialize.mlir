// RUN: meshwright-opt %s --dist-rematerialize=policy=full -split-input-file | FileCheck %s --check-prefix FULL
// RUN: meshwright-opt %s --dist-rematerialize=policy=every:1 -split-input-file | FileCheck %s --check-prefix FULL
// RUN: meshwright-opt %s --dist-rematerialize=policy=selective -split-input-file | FileCheck %s --check-prefix SELECTIVE
// RUN: meshwright-opt %s --dist-rematerialize=policy=none -split-input-file | FileCheck %s --check-prefix NONE
// RUN: meshwright-opt %s --dist-rematerialize=policy=every:2 -split-input-file | FileCheck %s --check-prefix EVERY
// Equal subexpressions are removed afterwards; what runs again still does.
// RUN: meshwright-opt %s --dist-rematerialize=policy=full --dist-optimize-collectives --canonicalize -split-input-file | FileCheck %s --check-prefix AGAIN

// RUN: meshwright-opt %s --annotate-recompute -split-input-file | FileCheck %s --check-prefix CHOICES

// BEGIN EXAMPLE --dist-rematerialize=policy=full
dist.mesh @mesh []
// y = relu(x W): the matrix product, before and after relu, is kept for the backward.
func.func private @layer(%x: tensor<2x64xf32>, %w: tensor<64x64xf32>)
    -> (tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x64xf32>) attributes {train.role = #train.role<forward>} {
  %h = train.linear %x, %w : (tensor<2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
  %y = train.relu %h : (tensor<2x64xf32>) -> tensor<2x64xf32>
  return %y, %x, %h, %y : tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x64xf32>
}
func.func private @back(%dy: tensor<2x64xf32>, %w: tensor<64x64xf32>, %x: tensor<2x64xf32>, %h: tensor<2x64xf32>, %y: tensor<2x64xf32>)
    -> (tensor<2x64xf32>, tensor<64x64xf32>) attributes {train.role = #train.role<backward>} {
  %s = train.mul %dy, %y : (tensor<2x64xf32>, tensor<2x64xf32>) -> tensor<2x64xf32>
  %dh = train.relu_grad %s, %h : (tensor<2x64xf32>, tensor<2x64xf32>) -> tensor<2x64xf32>
  %dw = train.contract "b o, b i -> o i" %dh, %x : (tensor<2x64xf32>, tensor<2x64xf32>) -> tensor<64x64xf32>
  %dx = train.contract "b o, o i -> b i" %dh, %w : (tensor<2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
  return %dx, %dw : tensor<2x64xf32>, tensor<64x64xf32>
}
func.func @step(%x: tensor<2x64xf32>, %w: tensor<4x64x64xf32>) -> tensor<4x64x64xf32> {
  %y:4 = train.repeat @layer x 4 carry(%x) each(%w) shared() {train.role = #train.role<forward>}
      : (tensor<2x64xf32>, tensor<4x64x64xf32>)
      -> (tensor<2x64xf32>, tensor<4x2x64xf32>, tensor<4x2x64xf32>, tensor<4x2x64xf32>)
  %d:2 = train.repeat @back x 4 reverse carry(%y#0) each(%w, %y#1, %y#2, %y#3) shared() {train.role = #train.role<backward>}
      : (tensor<2x64xf32>, tensor<4x64x64xf32>, tensor<4x2x64xf32>, tensor<4x2x64xf32>, tensor<4x2x64xf32>)
      -> (tensor<2x64xf32>, tensor<4x64x64xf32>)
  return %d#1 : tensor<4x64x64xf32>
}
// END EXAMPLE

// NONE-LABEL: func.func private @layer(
// NONE: return %1, %arg0, %0, %1 :

// What the choice is made from: all three values, of 512 bytes each, all but y, or x alone are cheapest at some price.
// CHOICES-LABEL: func.func private @layer(
// CHOICES-SAME: dist.backward = @back, dist.choices = [
// CHOICES-SAME: {bytes = 1536 : i64, flops = 0.000000e+00 : f64, redone = array<i64>},
// CHOICES-SAME: {bytes = 1024 : i64, flops = 1.280000e+02 : f64, redone = array<i64: 1>},
// CHOICES-SAME: {bytes = 512 : i64, flops = 1.651200e+04 : f64, redone = array<i64: 0, 1>}]
// CHOICES-NEXT: train.linear {{.*}} {dist.flops = 1.638400e+04 : f64, dist.needed}
// CHOICES-NEXT: train.relu {{.*}} {dist.flops = 1.280000e+02 : f64, dist.needed}

// What runs again stands at the start of the backward; the forward stacks its input.
// FULL-LABEL: func.func private @layer(
// FULL: return %1, %arg0 : tensor<2x64xf32>, tensor<2x64xf32>
// FULL-LABEL: func.func private @back(%arg0: tensor<2x64xf32>, %arg1: tensor<64x64xf32>, %arg2: tensor<2x64xf32>)
// FULL-NEXT: %[[H:.*]] = train.linear %arg2, %arg1 {train.recomputed}
// FULL-NEXT: %[[Y:.*]] = train.relu %[[H]]
// FULL-NEXT: %[[S:.*]] = train.mul %arg0, %[[Y]]
// FULL-NEXT: train.relu_grad %[[S]], %[[H]]
// FULL-LABEL: func.func @step
// FULL: %[[F:.*]]:2 = train.repeat @layer x 4 carry(%arg0) each(%arg1) shared()
// FULL: train.repeat @back x 4 reverse carry(%[[F]]#0) each(%arg1, %[[F]]#1) shared()

// AGAIN-LABEL: func.func private @back(
// AGAIN: train.linear %arg2, %arg1 {train.recomputed}

// A product of 64 terms is 32 FLOPs a byte: kept. Relu is computed again.
// SELECTIVE-LABEL: func.func private @layer(
// SELECTIVE: return %1, %arg0, %0 :
// SELECTIVE-LABEL: func.func private @back(
// SELECTIVE-NEXT: train.relu %arg3
// SELECTIVE-NOT: train.linear
// SELECTIVE-LABEL: func.func @step

// EVERY-LABEL: func.func private @layer(
// EVERY-LABEL: func.func private @layer.group(%arg0: tensor<2x64xf32>, %arg1: tensor<2x64x64xf32>)
// EVERY-NEXT: %[[G:.*]] = train.repeat @layer.again x 2 carry(%arg0) each(%arg1) shared()
// EVERY-NEXT: return %[[G]], %arg0 : tensor<2x64xf32>, tensor<2x64xf32>
// EVERY-LABEL: func.func private @back.group(
// EVERY-NEXT: %[[F:.*]]:4 = train.repeat @layer x 2 carry(%arg2) each(%arg1) shared() {train.recomputed, train.role = #train.role<forward>}
// EVERY-NEXT: %[[B:.*]]:2 = train.repeat @back x 2 reverse carry(%arg0) each(%arg1, %[[F]]#1, %[[F]]#2, %[[F]]#3) shared() {train.role = #train.role<backward>}
// EVERY-NEXT: return %[[B]]#0, %[[B]]#1
// EVERY-LABEL: func.func @step
// EVERY-NEXT: %[[W:.*]] = train.reshape %arg1 : (tensor<4x64x64xf32>) -> tensor<2x2x64x64xf32>
// EVERY-NEXT: %[[F:.*]]:2 = train.repeat @layer.group x 2 carry(%arg0) each(%[[W]]) shared()
// EVERY-NEXT: %[[B:.*]]:2 = train.repeat @back.group x 2 reverse carry(%[[F]]#0) each(%[[W]], %[[F]]#1) shared()
// EVERY-NEXT: train.reshape %[[B]]#1 : (tensor<2x2x64x64xf32>) -> tensor<4x64x64xf32>

// -----

// The layer's number, from which dropout's key is made, is the same in groups and again.
dist.mesh @mesh []
func.func private @layer(%i: tensor<i32>, %x: tensor<2x8xf32>, %ids: tensor<2xi32>, %key: tensor<2xi32>)
    -> (tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) attributes {train.role = #train.role<forward>} {
  %k = train.fold_in %key, %i : (tensor<2xi32>, tensor<i32>) -> tensor<2xi32>
  %y = train.dropout %x, %ids, %k rate 0.5 stream 0 : (tensor<2x8xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<2x8xf32>
  return %y, %x, %y : tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>
}
func.func private @back(%i: tensor<i32>, %dy: tensor<2x8xf32>, %x: tensor<2x8xf32>, %y: tensor<2x8xf32>) -> tensor<2x8xf32> attributes {train.role = #train.role<backward>} {
  %0 = train.mul %dy, %x : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %1 = train.mul %0, %y : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %1 : tensor<2x8xf32>
}
func.func @step(%x: tensor<2x8xf32>, %ids: tensor<2xi32>, %key: tensor<2xi32>) -> tensor<2x8xf32> {
  %y:3 = train.repeat @layer x 4 indexed carry(%x) each() shared(%ids, %key) {train.role = #train.role<forward>}
      : (tensor<2x8xf32>, tensor<2xi32>, tensor<2xi32>) -> (tensor<2x8xf32>, tensor<4x2x8xf32>, tensor<4x2x8xf32>)
  %d = train.repeat @back x 4 reverse indexed carry(%y#0) each(%y#1, %y#2) shared() {train.role = #train.role<backward>}
      : (tensor<2x8xf32>, tensor<4x2x8xf32>, tensor<4x2x8xf32>) -> tensor<2x8xf32>
  return %d : tensor<2x8xf32>
}

// FULL-LABEL: func.func private @back(%arg0: tensor<i32>, %arg1: tensor<2x8xf32>, %arg2: tensor<2x8xf32>, %arg3: tensor<2xi32>, %arg4: tensor<2xi32>)
// FULL-NEXT: %[[K:.*]] = train.fold_in %arg3, %arg0
// FULL-NEXT: %[[Y:.*]] = train.dropout %arg2, %arg4, %[[K]] rate 5.000000e-01 stream 0

// EVERY-LABEL: func.func private @layer.number(%arg0: tensor<i32>)
// EVERY-LABEL: func.func @step
// EVERY: %[[N:.*]] = train.repeat @layer.number x 4 indexed carry() each() shared() : () -> tensor<4xi32>
// EVERY: train.reshape %[[N]] : (tensor<4xi32>) -> tensor<2x2xi32>

// -----

// What a collective computed is dearer than anything: its result is kept, not its operand.
dist.mesh @mesh ["tensor" = 2]
func.func private @layer(%x: tensor<2x8xf32>, %w: tensor<8x64xf32>) -> (tensor<2x8xf32>, tensor<2x64xf32>, tensor<2x8xf32>) attributes {train.role = #train.role<forward>} {
  %n = train.silu %x : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %u = train.contract "b i, i o -> b o" %n, %w : (tensor<2x8xf32>, tensor<8x64xf32>) -> tensor<2x64xf32>
  %h = dist.all_reduce sum %u over <@mesh {tensor}> : (tensor<2x64xf32>) -> tensor<2x64xf32>
  %y = train.contract "b o, i o -> b i" %h, %w : (tensor<2x64xf32>, tensor<8x64xf32>) -> tensor<2x8xf32>
  return %y, %h, %x : tensor<2x8xf32>, tensor<2x64xf32>, tensor<2x8xf32>
}
func.func private @back(%dy: tensor<2x8xf32>, %h: tensor<2x64xf32>, %x: tensor<2x8xf32>, %w: tensor<8x64xf32>) -> tensor<2x8xf32> attributes {train.role = #train.role<backward>} {
  %0 = train.contract "b i, i o -> b o" %dy, %w : (tensor<2x8xf32>, tensor<8x64xf32>) -> tensor<2x64xf32>
  %1 = train.mul %0, %h : (tensor<2x64xf32>, tensor<2x64xf32>) -> tensor<2x64xf32>
  %2 = train.contract "b o, i o -> b i" %1, %w : (tensor<2x64xf32>, tensor<8x64xf32>) -> tensor<2x8xf32>
  %3 = train.mul %2, %x : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %3 : tensor<2x8xf32>
}
func.func @step(%x: tensor<2x8xf32>, %w: tensor<8x64xf32>) -> tensor<2x8xf32> {
  %y:3 = train.repeat @layer x 2 carry(%x) each() shared(%w) {train.role = #train.role<forward>}
      : (tensor<2x8xf32>, tensor<8x64xf32>) -> (tensor<2x8xf32>, tensor<2x2x64xf32>, tensor<2x2x8xf32>)
  %d = train.repeat @back x 2 reverse carry(%y#0) each(%y#1, %y#2) shared(%w) {train.role = #train.role<backward>}
      : (tensor<2x8xf32>, tensor<2x2x64xf32>, tensor<2x2x8xf32>, tensor<8x64xf32>) -> tensor<2x8xf32>
  return %d : tensor<2x8xf32>
}

// SELECTIVE-LABEL: func.func private @back(%arg0: tensor<2x8xf32>, %arg1: tensor<2x64xf32>
// SELECTIVE-NOT: dist.all_reduce
// FULL-LABEL: func.func private @back(%arg0: tensor<2x8xf32>, %arg1: tensor<2x8xf32>, %arg2: tensor<8x64xf32>)
// FULL: dist.all_reduce
