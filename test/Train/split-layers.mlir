// RUN: meshwright-opt %s --train-split-layers=chunks=2 -split-input-file | FileCheck %s
// RUN: meshwright-opt %s --train-split-layers="chunks=3 cuts=1,2" -split-input-file | FileCheck %s --check-prefix=THREE
// RUN: meshwright-opt %s --train-split-layers=every=2 -split-input-file | FileCheck %s --check-prefix=TAIL
// RUN: meshwright-opt %s --train-split-layers="chunks=2 cuts=1 every=2,1" -split-input-file | FileCheck %s --check-prefix=OWN
// RUN: meshwright-opt %s --train-split-layers="chunks=4 cuts=1,2,3" -split-input-file | FileCheck %s --check-prefix=HEAD

// BEGIN EXAMPLE --train-split-layers=chunks=2
train.variable @h.w : tensor<3x4x4xf32> stacked init <"normal", 0.02> storage <"h.{layer}.w">
func.func private @layer(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> {
  %y = train.linear %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
func.func @loss(%x: tensor<2x4xf32>) -> tensor<f32> {
  %w = train.get @h.w : tensor<3x4x4xf32>
  %y = train.repeat @layer x 3 carry(%x) each(%w) shared() : (tensor<2x4xf32>, tensor<3x4x4xf32>) -> tensor<2x4xf32>
  %loss = train.reduce sum %y over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
// END EXAMPLE

// The sum after the layers makes the last one dearer.
// CHECK-DAG: train.variable @h.0.w : tensor<2x4x4xf32> stacked {{.*}} storage <"h.{layer}.w">
// CHECK-DAG: train.variable @h.2.w : tensor<1x4x4xf32> stacked {{.*}} storage <"h.{layer+2}.w">
// CHECK-LABEL: func.func @loss
// CHECK: %[[A:.*]] = train.repeat @layer.0 x 2 carry(%arg0) {{.*}} {train.chunk = 0 : i64}
// CHECK: %[[B:.*]] = train.repeat @layer.2 x 1 carry(%[[A]]) {{.*}} {train.chunk = 1 : i64}
// CHECK: train.reduce sum %[[B]]
// The last chunk may have the head alone: its layer passes on what it is given.
// HEAD: func.func private @head.pass(%[[X:.*]]: tensor<2x4xf32>) -> tensor<2x4xf32>
// HEAD-NEXT: return %[[X]]
// HEAD: train.repeat @layer.0 x 1 {{.*}} {train.chunk = 0 : i64}
// HEAD: %[[LAST:.*]] = train.repeat @layer.2 x 1 {{.*}} {train.chunk = 2 : i64}
// HEAD: %[[PASSED:.*]] = train.repeat @head.pass x 1 carry(%[[LAST]]) each() shared() {train.chunk = 3 : i64}
// HEAD: train.reduce sum %[[PASSED]]
// Three layers in groups of two are a run of two and a run of one; without stages nothing else is cut.
// TAIL-LABEL: func.func @loss
// TAIL-NOT: train.chunk
// TAIL: train.repeat @layer.0 x 2
// TAIL-NOT: train.chunk
// TAIL: train.repeat @layer.2 x 1
// TAIL-NOT: train.chunk
// The second chunk has no groups.
// OWN: train.repeat @layer.0 x 1 {{.*}} {train.chunk = 0 : i64}
// OWN: train.repeat @layer.1 x 2 {{.*}} {train.chunk = 1 : i64}
// THREE: train.repeat @layer.0 x 1 {{.*}} {train.chunk = 0 : i64}
// THREE: train.repeat @layer.1 x 1 {{.*}} {train.chunk = 1 : i64}
// THREE: train.repeat @layer.2 x 1 {{.*}} {train.chunk = 2 : i64}

// -----

// Runs that begin later have their numbers already. Dropout goes on counting layers.
train.variable @h.0.w : tensor<1x4x4xf32> stacked init <"normal", 0.02> storage <"h.{layer}.w">
train.variable @h.1.w : tensor<2x4x4xf32> stacked init <"normal", 0.02> storage <"h.{layer+1}.w">
func.func private @layer.0(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> {
  %y = train.linear %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
func.func private @layer.1(%n: tensor<i32>, %x: tensor<2x4xf32>, %w: tensor<4x4xf32>, %ids: tensor<2xi32>, %key: tensor<2xi32>) -> tensor<2x4xf32> {
  %k = train.fold_in %key, %n : (tensor<2xi32>, tensor<i32>) -> tensor<2xi32>
  %d = train.dropout %x, %ids, %k rate 0.1 stream 0 : (tensor<2x4xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<2x4xf32>
  %y = train.linear %d, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
func.func @loss(%x: tensor<2x4xf32>, %ids: tensor<2xi32>, %key: tensor<2xi32>) -> tensor<f32> {
  %w0 = train.get @h.0.w : tensor<1x4x4xf32>
  %w1 = train.get @h.1.w : tensor<2x4x4xf32>
  %y = train.repeat @layer.0 x 1 carry(%x) each(%w0) shared() : (tensor<2x4xf32>, tensor<1x4x4xf32>) -> tensor<2x4xf32>
  %z = train.repeat @layer.1 x 2 indexed carry(%y) each(%w1) shared(%ids, %key) : (tensor<2x4xf32>, tensor<2x4x4xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<2x4xf32>
  %loss = train.reduce sum %z over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
// THREE-DAG: train.variable @h.1.w : tensor<1x4x4xf32> {{.*}} storage <"h.{layer+1}.w">
// THREE-DAG: train.variable @h.2.w : tensor<1x4x4xf32> {{.*}} storage <"h.{layer+2}.w">
// THREE: func.func private @layer.1(
// THREE: train.fold_in %{{.*}}, %arg0 :
// THREE: func.func private @layer.2(
// THREE: train.fold_in %{{.*}}, %arg0 from 1 :
