// RUN: meshwright-opt %s --train-split-layers=chunks=2 | FileCheck %s

// A layer costs what its rounds do, of which one counts: without them three layers and one with the head would be
// the evenest split.
train.variable @h.w : tensor<4x4x4xf32> stacked init <"normal", 0.02> storage <"h.{layer}.w">
train.variable @head : tensor<7x4xf32> init <"normal", 0.02>
func.func private @round(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> {
  %y = train.linear %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
func.func private @layer(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>, %n: tensor<i32>) -> tensor<2x4xf32> {
  %y = train.linear %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %z = train.repeat @round x 8 times %n carry(%y) each() shared(%w) : (tensor<2x4xf32>, tensor<4x4xf32>, tensor<i32>) -> tensor<2x4xf32>
  return %z : tensor<2x4xf32>
}
func.func @loss(%x: tensor<2x4xf32>, %n: tensor<i32>) -> tensor<f32> {
  %w = train.get @h.w : tensor<4x4x4xf32>
  %y = train.repeat @layer x 4 carry(%x) each(%w) shared(%n) : (tensor<2x4xf32>, tensor<4x4x4xf32>, tensor<i32>) -> tensor<2x4xf32>
  %h = train.get @head : tensor<7x4xf32>
  %l = train.linear %y, %h : (tensor<2x4xf32>, tensor<7x4xf32>) -> tensor<2x7xf32>
  %loss = train.reduce sum %l over [0, 1] : (tensor<2x7xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func.func @loss
// CHECK: train.repeat @layer.0 x 2 {{.*}} {train.chunk = 0 : i64}
// CHECK: train.repeat @layer.2 x 2 {{.*}} {train.chunk = 1 : i64}
