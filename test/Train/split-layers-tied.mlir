// RUN: meshwright-opt %s --train-split-layers="chunks=4 cuts=1,2,3" | FileCheck %s

// Layers that run twice over the same weights have the same parts. What runs as often as data says is no layer.
train.variable @tied.w : tensor<2x4x4xf32> stacked init <"normal", 0.02>
func.func private @layer(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> {
  %y = train.linear %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
func.func private @round(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %y = train.scale %x by 0.5 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
func.func @loss(%x: tensor<2x4xf32>, %n: tensor<i32>) -> tensor<f32> {
  %w = train.get @tied.w : tensor<2x4x4xf32>
  %a = train.repeat @layer x 2 carry(%x) each(%w) shared() : (tensor<2x4xf32>, tensor<2x4x4xf32>) -> tensor<2x4xf32>
  %b = train.repeat @layer x 2 carry(%a) each(%w) shared() : (tensor<2x4xf32>, tensor<2x4x4xf32>) -> tensor<2x4xf32>
  %c = train.repeat @round x 4 times %n carry(%b) each() shared() : (tensor<2x4xf32>, tensor<i32>) -> tensor<2x4xf32>
  %loss = train.reduce sum %c over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
// CHECK: train.variable @tied.0.w : tensor<1x4x4xf32> stacked {{.*}} storage <"tied.w.{layer}">
// CHECK: train.variable @tied.1.w : tensor<1x4x4xf32> stacked {{.*}} storage <"tied.w.{layer+1}">
// CHECK-NOT: train.variable
// CHECK-LABEL: func.func @loss
// CHECK: %[[A0:.*]] = train.get @tied.0.w
// CHECK: train.repeat @layer.0 x 1 {{.*}} each(%[[A0]]) {{.*}} {train.chunk = 0 : i64}
// CHECK: %[[B0:.*]] = train.get @tied.1.w
// CHECK: train.repeat @layer.1 x 1 {{.*}} each(%[[B0]]) {{.*}} {train.chunk = 1 : i64}
// CHECK: %[[A1:.*]] = train.get @tied.0.w
// CHECK: train.repeat @layer.2 x 1 {{.*}} each(%[[A1]]) {{.*}} {train.chunk = 2 : i64}
// CHECK: %[[B1:.*]] = train.get @tied.1.w
// CHECK: train.repeat @layer.3 x 1 {{.*}} each(%[[B1]]) {{.*}} {train.chunk = 3 : i64}
// CHECK: train.repeat @round x 4 times %{{[^{]*$}}

