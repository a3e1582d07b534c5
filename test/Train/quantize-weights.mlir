// RUN: meshwright-opt %s --train-quantize-weights -split-input-file -verify-diagnostics | FileCheck %s

// BEGIN EXAMPLE --train-quantize-weights
module attributes {train.precision = "bf16"} {
  train.variable @up : tensor<2x8x4xbf16> stacked init <"normal", 0.02> storage <"{layer}.up"> {train.frozen}
  train.variable @a : tensor<2x2x4xbf16> stacked init <"normal", 0.02> storage <"{layer}.a"> {train.adapter}
  train.variable @head : tensor<16x8xbf16> init <"normal", 0.02> {train.frozen}
  func.func private @layer(%x: tensor<3x4xbf16>, %up: tensor<8x4xbf16>, %a: tensor<2x4xbf16>) -> (tensor<3x4xbf16>, tensor<3x8xbf16>) {
    %0 = train.linear %x, %up : (tensor<3x4xbf16>, tensor<8x4xbf16>) -> tensor<3x8xbf16>
    %1 = train.linear %x, %a : (tensor<3x4xbf16>, tensor<2x4xbf16>) -> tensor<3x2xbf16>
    %2 = train.pad %1 dim 1 rows 4 : (tensor<3x2xbf16>) -> tensor<3x4xbf16>
    return %2, %0 : tensor<3x4xbf16>, tensor<3x8xbf16>
  }
  func.func @loss(%x: tensor<3x4xbf16>, %z: tensor<3x8xbf16>) -> tensor<f32> {
    %up = train.get @up : tensor<2x8x4xbf16>
    %a = train.get @a : tensor<2x2x4xbf16>
    %head = train.get @head : tensor<16x8xbf16>
    %y, %ups = train.repeat @layer x 2 carry(%x) each(%up, %a) shared() : (tensor<3x4xbf16>, tensor<2x8x4xbf16>, tensor<2x2x4xbf16>) -> (tensor<3x4xbf16>, tensor<2x3x8xbf16>)
    %logits = train.linear %z, %head : (tensor<3x8xbf16>, tensor<16x8xbf16>) -> tensor<3x16xbf16>
    %loss = train.reduce sum %logits over [0, 1] : (tensor<3x16xbf16>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// END EXAMPLE

// CHECK: train.variable @up : tensor<2x8x4xi8> stacked init <"normal", 2.000000e-02 : f64> storage <"{layer}.up"> {train.frozen}
// CHECK-NEXT: train.variable @up.scale : tensor<2x8xf32> stacked state "scale" of @up
// CHECK-NEXT: train.variable @a : tensor<2x2x4xbf16>
// CHECK-NEXT: train.variable @head : tensor<16x8xbf16>
// Arguments that layers get slices of come before those that they share.
// CHECK-LABEL: func.func private @layer
// CHECK-SAME: (%[[X:.*]]: tensor<3x4xbf16>, %[[UP:.*]]: tensor<8x4xi8>, %[[A:.*]]: tensor<2x4xbf16>, %[[SCALE:.*]]: tensor<8xf32>)
// CHECK: %[[W:.*]] = train.dequantize_rows %[[UP]] by %[[SCALE]] : (tensor<8x4xi8>, tensor<8xf32>) -> tensor<8x4xbf16>
// CHECK-NEXT: train.linear %[[X]], %[[W]]
// CHECK-NEXT: train.linear %[[X]], %[[A]]
// CHECK-LABEL: func.func @loss
// CHECK: %[[CODES:.*]] = train.get @up : tensor<2x8x4xi8>
// CHECK-NEXT: %[[SCALES:.*]] = train.get @up.scale : tensor<2x8xf32>
// CHECK: each(%[[CODES]], %{{.*}}, %[[SCALES]])
// CHECK: train.linear {{.*}} tensor<16x8xbf16>

// -----

// A layer that two repetitions call gets its argument once. One of its weights is trained in the second, a router's is full, and
// a vector is: they stay. So does the type of what layers share.
module {
  train.variable @q.0 : tensor<1x4x4xf32> stacked init <"normal", 0.02> storage <"{layer}.q"> {train.frozen}
  train.variable @q.1 : tensor<1x4x4xf32> stacked init <"normal", 0.02> storage <"{layer+1}.q"> {train.frozen}
  train.variable @k.0 : tensor<1x4x4xf32> stacked init <"normal", 0.02> storage <"{layer}.k"> {train.frozen}
  train.variable @k.1 : tensor<1x4x4xf32> stacked init <"normal", 0.02> storage <"{layer+1}.k">
  train.variable @router : tensor<4x4xf32> init <"normal", 0.02> {train.frozen}
  train.variable @all : tensor<4x4xf32> init <"normal", 0.02> {train.frozen}
  func.func private @layer(%x: tensor<3x4xf32>, %q: tensor<4x4xf32>, %k: tensor<4x4xf32>, %r: tensor<4x4xf32>, %s: tensor<4x4xf32>) -> tensor<3x4xf32> {
    %0 = train.linear %x, %q : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
    %1 = train.linear %0, %k : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
    %2 = train.linear %1, %r : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
    %3 = train.top_k %2 k 2 : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %4 = train.linear %3, %s : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
    return %4 : tensor<3x4xf32>
  }
  func.func @loss(%x: tensor<3x4xf32>) -> tensor<f32> {
    %q0 = train.get @q.0 : tensor<1x4x4xf32>
    %q1 = train.get @q.1 : tensor<1x4x4xf32>
    %k0 = train.get @k.0 : tensor<1x4x4xf32>
    %k1 = train.get @k.1 : tensor<1x4x4xf32>
    %r = train.get @router : tensor<4x4xf32>
    %s = train.get @all : tensor<4x4xf32>
    %y = train.repeat @layer x 1 carry(%x) each(%q0, %k0) shared(%r, %s) : (tensor<3x4xf32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
    %z = train.repeat @layer x 1 carry(%y) each(%q1, %k1) shared(%r, %s) : (tensor<3x4xf32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
    %loss = train.reduce sum %z over [0, 1] : (tensor<3x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK: train.variable @q.0 : tensor<1x4x4xi8>
// CHECK: train.variable @q.1 : tensor<1x4x4xi8>
// CHECK: train.variable @k.0 : tensor<1x4x4xf32>
// CHECK: train.variable @router : tensor<4x4xf32>
// CHECK: train.variable @all : tensor<4x4xi8>
// CHECK-NEXT: train.variable @all.scale : tensor<4xf32> state "scale" of @all
// CHECK-LABEL: func.func private @layer
// CHECK-SAME: (%{{.*}}: tensor<3x4xf32>, %[[Q:.*]]: tensor<4x4xi8>, %{{.*}}: tensor<4x4xf32>, %[[QS:.*]]: tensor<4xf32>, %{{.*}}: tensor<4x4xf32>, %[[S:.*]]: tensor<4x4xi8>, %[[SS:.*]]: tensor<4xf32>)
// CHECK: train.dequantize_rows %[[Q]] by %[[QS]]
// CHECK: train.dequantize_rows %[[S]] by %[[SS]]
// CHECK-LABEL: func.func @loss
// CHECK: train.repeat @layer x 1 carry(%{{.*}}) each(%{{.*}}, %{{.*}}, %{{.*}}) shared(%{{.*}}, %{{.*}}, %{{.*}})
// CHECK: train.repeat @layer x 1 carry(%{{.*}}) each(%{{.*}}, %{{.*}}, %{{.*}}) shared(%{{.*}}, %{{.*}}, %{{.*}})

// -----

// expected-error @+1 {{has no weight to store in 8 bits: layers have no product train.linear with a frozen matrix; leave --frozen-weights int8 out}}
module {
  train.variable @w : tensor<1x4x4xf32> stacked init <"normal", 0.02> storage <"{layer}.w">
  func.func private @layer(%x: tensor<3x4xf32>, %w: tensor<4x4xf32>) -> tensor<3x4xf32> {
    %0 = train.linear %x, %w : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
    return %0 : tensor<3x4xf32>
  }
  func.func @loss(%x: tensor<3x4xf32>) -> tensor<f32> {
    %w = train.get @w : tensor<1x4x4xf32>
    %y = train.repeat @layer x 1 carry(%x) each(%w) shared() : (tensor<3x4xf32>, tensor<1x4x4xf32>) -> tensor<3x4xf32>
    %loss = train.reduce sum %y over [0, 1] : (tensor<3x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
