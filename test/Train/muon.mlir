// RUN: meshwright-opt %s --train-autodiff --train-accumulate --train-build-optimizer=optimizer=muon --train-verify | FileCheck %s
// RUN: meshwright-opt %s --train-autodiff --train-accumulate --train-build-optimizer="optimizer=muon muon-scale=keller muon-coefficients=polar-express" \
// RUN:   | FileCheck %s --check-prefix=POLAR
// RUN: meshwright-opt %s --train-autodiff --train-accumulate --train-build-optimizer=optimizer=muon \
// RUN:     --dist-apply-strategy="mesh=data=2 zero=1" --dist-propagate --dist-partition | FileCheck %s --check-prefix=ZERO
// RUN: not meshwright-opt %s --train-autodiff --train-accumulate --train-build-optimizer=optimizer=muon \
// RUN:     --dist-apply-strategy="mesh=data=2 data-sync=parameter-server" 2>&1 | FileCheck %s --check-prefix=SERVER
// SERVER: parameter @w is updated on one device, but {{.*}} --data-sync parameter-server does not go with --optimizer muon and normuon; use --data-sync all-reduce

// Matrices of layers are orthogonalized, experts one by one; the table outside of layers and vectors are AdamW's.
module attributes {train.microbatches = 1 : i64} {
  train.variable @table : tensor<4x6xf32> init <"normal", 0.02> storage <"table">
  train.variable @w : tensor<3x6x4xf32> stacked init <"normal", 0.02> storage <"{layer}.w">
  train.variable @e : tensor<3x2x4x6xf32> stacked experts 1 init <"normal", 0.02> storage <"{layer}.{expert}.e">
  train.variable @v : tensor<3x4xf32> stacked init <"normal", 0.02> storage <"{layer}.v">
  func.func private @layer(%x: tensor<2x4xf32>, %w: tensor<6x4xf32>, %e: tensor<2x4x6xf32>, %v: tensor<4xf32>) -> tensor<2x4xf32> {
    %y = train.linear %x, %w : (tensor<2x4xf32>, tensor<6x4xf32>) -> tensor<2x6xf32>
    %z = train.contract "e i, e o i -> e o" %y, %e : (tensor<2x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4xf32>
    %r = train.add %z, %v : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    return %r : tensor<2x4xf32>
  }
  func.func @loss(%a: tensor<2x6xf32> {train.input = "x"}) -> tensor<f32> {
    %t = train.get @table : tensor<4x6xf32>
    %w = train.get @w : tensor<3x6x4xf32>
    %e = train.get @e : tensor<3x2x4x6xf32>
    %v = train.get @v : tensor<3x4xf32>
    %x = train.linear %a, %t : (tensor<2x6xf32>, tensor<4x6xf32>) -> tensor<2x4xf32>
    %y = train.repeat @layer x 3 carry(%x) each(%w, %e, %v) shared() : (tensor<2x4xf32>, tensor<3x6x4xf32>, tensor<3x2x4x6xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    %loss = train.reduce sum %y over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// CHECK: train.variable @table.momentum
// CHECK: train.variable @table.variance
// CHECK: train.variable @w.momentum
// CHECK-NOT: @w.variance
// CHECK: train.variable @v.variance
// CHECK-LABEL: func.func @step
// CHECK: train.update "adamw" decay {{.*}} : (tensor<4x6xf32>,
// Nesterov's momentum, and a step along its orthogonalized direction.
// CHECK: %[[M:.*]] = train.get @w.momentum
// CHECK: %[[G:.*]] = train.mul
// CHECK: %[[AVERAGE:.*]] = train.lerp %[[G]] to %[[M]] by %[[MU:.*]] :
// CHECK: %[[AHEAD:.*]] = train.lerp %[[G]] to %[[AVERAGE]] by %[[MU]]
// CHECK: %[[D:.*]] = train.repeat @w.orthogonalize x 3 carry() each(%[[AHEAD]]) shared() {train.role = #train.role<update>}
// CHECK: train.update "muon" decay %{{.*}}, %{{.*}}, %[[M]], %[[D]], %{{.*}} : (tensor<3x6x4xf32>, tensor<3x6x4xf32>, tensor<3x6x4xf32>, tensor<3x6x4xf32>, tensor<f32>,
// CHECK: train.update "adamw" %{{.*}} : (tensor<3x4xf32>,

// With more rows than columns the smaller product is X^T X. The last factor is 0.2 sqrt(6).
// CHECK-LABEL: func.func private @w.orthogonalize
// CHECK: train.inverse_root
// CHECK: %[[X:.*]] = train.mul %{{.*}} : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
// CHECK: %[[A:.*]] = train.contract "k i, k j -> i j" %[[X]], %[[X]] : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<4x4xf32>
// CHECK: %[[AA:.*]] = train.contract "i k, k j -> i j" %[[A]], %[[A]]
// CHECK: %[[BA:.*]] = train.scale %[[A]] by -4.775
// CHECK: %[[CAA:.*]] = train.scale %[[AA]] by 2.0315
// CHECK: %[[B:.*]] = train.add %[[BA]], %[[CAA]]
// CHECK: train.contract "i k, k j -> i j" %[[X]], %[[B]]
// CHECK: train.scale %[[X]] by 3.4445
// CHECK: train.scale {{.*}} by 0.48989
// CHECK-LABEL: func.func private @e.orthogonalize
// CHECK: train.reduce sum %{{.*}} over [1, 2] : (tensor<2x4x6xf32>) -> tensor<2xf32>
// CHECK: train.contract "e0 i k, e0 j k -> e0 i j" {{.*}} -> tensor<2x4x4xf32>

// POLAR-LABEL: func.func private @w.orthogonalize
// POLAR: train.scale {{.*}} by 1.0201
// POLAR: train.scale {{.*}} by 8.2051
// POLAR: train.scale {{.*}} by 4.0663
// POLAR: train.scale {{.*}} by 1.224744

// A layer's parts are gathered once, and every data rank computes with the whole matrix.
// ZERO-LABEL: func.func private @w.orthogonalize(
// ZERO-SAME: tensor<3x4xf32>) -> tensor<3x4xf32>
// ZERO: dist.all_gather {{.*}} (tensor<3x4xf32>) -> tensor<6x4xf32>
// ZERO-NOT: dist.all_
// ZERO: dist.slice
// ZERO-NOT: dist.all_
// ZERO: return
// Each rank has whole experts.
// ZERO-LABEL: func.func private @e.orthogonalize(
// ZERO-SAME: tensor<1x4x6xf32>) -> tensor<1x4x6xf32>
// ZERO-NOT: dist.
// ZERO: return
