// RUN: meshwright-opt %s --train-autodiff --train-accumulate --train-build-optimizer=optimizer=adafactor --train-verify | FileCheck %s
// RUN: meshwright-opt %s --train-autodiff --train-accumulate --train-build-optimizer="optimizer=adafactor moments-dtype=bf16" | FileCheck %s --check-prefix=STATES
// RUN: meshwright-opt %s --train-autodiff --train-accumulate --train-build-optimizer=optimizer=adafactor-scaled \
// RUN:     --dist-apply-strategy="mesh=data=2 zero=3" --dist-propagate --dist-partition | FileCheck %s --check-prefix=ZERO
// RUN: meshwright-opt %s --train-autodiff --train-accumulate --train-build-optimizer="optimizer=normuon muon-scale=keller" \
// RUN:     --dist-apply-strategy="mesh=data=2 zero=1" --dist-propagate --dist-partition | FileCheck %s --check-prefix=NORMUON

// Squared gradients are averaged by rows and columns of each layer's and expert's matrix, and by elements of vectors.
module attributes {train.microbatches = 1 : i64} {
  train.variable @w : tensor<3x6x4xf32> stacked init <"normal", 0.02> storage <"{layer}.w">
  train.variable @e : tensor<3x2x4x6xf32> stacked experts 1 init <"normal", 0.02> storage <"{layer}.{expert}.e">
  train.variable @v : tensor<3x4xf32> stacked init <"normal", 0.02> storage <"{layer}.v">
  func.func private @layer(%x: tensor<2x4xf32>, %w: tensor<6x4xf32>, %e: tensor<2x4x6xf32>, %v: tensor<4xf32>) -> tensor<2x4xf32> {
    %y = train.linear %x, %w : (tensor<2x4xf32>, tensor<6x4xf32>) -> tensor<2x6xf32>
    %z = train.contract "e i, e o i -> e o" %y, %e : (tensor<2x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4xf32>
    %r = train.add %z, %v : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    return %r : tensor<2x4xf32>
  }
  func.func @loss(%x: tensor<2x4xf32> {train.input = "x"}) -> tensor<f32> {
    %w = train.get @w : tensor<3x6x4xf32>
    %e = train.get @e : tensor<3x2x4x6xf32>
    %v = train.get @v : tensor<3x4xf32>
    %y = train.repeat @layer x 3 carry(%x) each(%w, %e, %v) shared() : (tensor<2x4xf32>, tensor<3x6x4xf32>, tensor<3x2x4x6xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    %loss = train.reduce sum %y over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
// STATES: train.variable @w.row : tensor<3x6x1xf32> stacked state "row" of @w
// STATES: train.variable @w.column : tensor<3x1x4xf32> stacked state "column" of @w
// STATES: train.variable @e.row : tensor<3x2x4x1xf32> stacked experts 1 state "row" of @e
// STATES: train.variable @e.column : tensor<3x2x1x6xf32> stacked experts 1 state "column" of @e
// STATES: train.variable @v.variance : tensor<3x4xf32> stacked state "variance" of @v
// STATES-NOT: train.variable

// CHECK-LABEL: func.func @step
// CHECK-SAME: %[[WEIGHT:[a-z0-9]*]]: tensor<f32> {train.input = "beta2_weight"}, %[[EPS:[a-z0-9]*]]: tensor<f32> {train.input = "eps"}
// CHECK: %[[OLD:.*]] = train.get @w.row
// CHECK: %[[G:.*]] = train.mul %{{.*}}, %{{.*}} : (tensor<3x6x4xf32>, tensor<f32>)
// CHECK: %[[SQUARES:.*]] = train.mul %[[G]], %[[G]]
// CHECK: %[[BEFORE:.*]] = train.reduce sum %[[OLD]] over [2] : (tensor<3x6x1xf32>) -> tensor<3x6xf32>
// CHECK: %[[SUM:.*]] = train.reduce sum %[[SQUARES]] over [2] : (tensor<3x6x4xf32>) -> tensor<3x6xf32>
// CHECK: %[[MEAN:.*]] = train.scale %[[SUM]] by 2.5
// CHECK: %[[ROWS:.*]] = train.lerp %[[BEFORE]] to %[[MEAN]] by %[[WEIGHT]]
// CHECK: train.reduce sum %[[SQUARES]] over [1] : (tensor<3x6x4xf32>) -> tensor<3x4xf32>
// CHECK: %[[NEW:.*]] = train.broadcast %[[ROWS]] along [2] : (tensor<3x6xf32>) -> tensor<3x6x1xf32>
// What is added to squares is added to their averages, whose padding stays zero.
// CHECK: train.add %[[ROWS]], %[[EPS]]
// CHECK: %[[SCALED:.*]] = train.mul %[[G]]
// CHECK: %[[U:.*]] = train.mul %[[SCALED]]
// CHECK: %[[SQUARE:.*]] = train.mul %[[U]], %[[U]]
// CHECK: train.reduce sum %[[SQUARE]] over [1, 2] : (tensor<3x6x4xf32>) -> tensor<3xf32>
// CHECK: train.clamp {{.*}} from 1.0
// CHECK: %[[D:.*]] = train.mul %[[U]]
// CHECK: %[[KEPT:.*]] = train.guard %[[NEW]], %[[OLD]]
// CHECK: train.set @w.row, %[[KEPT]]
// CHECK: train.update "adafactor" decay %{{.*}}, %{{.*}}, %[[D]], {{.*}} -> tensor<3x6x4xf32>
// CHECK: train.reduce sum {{.*}} over [2, 3] : (tensor<3x2x4x6xf32>) -> tensor<3x2xf32>
// CHECK: train.update "adafactor" decay {{.*}} -> tensor<3x2x4x6xf32>
// CHECK: train.reduce sum {{.*}} over [1] : (tensor<3x4xf32>) -> tensor<3xf32>
// CHECK: train.update "adafactor" %{{.*}} -> tensor<3x4xf32>

// Shards are summed where they are stored; nothing of a matrix's shape is gathered, the parameter neither.
// ZERO: train.variable @w.row : tensor<3x3x1xf32>
// ZERO: train.variable @w.column : tensor<3x1x4xf32>
// ZERO-LABEL: func.func @step
// ZERO: train.global_norm
// ZERO: %[[W:.*]] = train.get @w : tensor<3x3x4xf32>
// ZERO-NOT: dist.all_gather
// ZERO: dist.all_reduce sum %{{.*}} over <@mesh {data}> : (tensor<3x4xf32>) -> tensor<3x4xf32>
// ZERO-NOT: dist.all_gather
// ZERO: train.mul %[[W]], %[[W]]
// ZERO-NOT: dist.all_gather
// ZERO: dist.all_reduce sum %{{.*}} over <@mesh {data}> : (tensor<3xf32>) -> tensor<3xf32>
// ZERO: train.clamp %{{.*}} from 9.99
// ZERO-NOT: dist.all_gather
// ZERO: return

// Rows of orthogonalized matrices, which are gathered inside of a layer, and behind that only means.
// NORMUON: train.variable @w.row : tensor<3x3x1xf32> stacked state "row" of @w
// NORMUON: train.variable @e.row : tensor<3x1x4x1xf32>
// NORMUON-NOT: @v.row
// NORMUON-LABEL: func.func @step
// NORMUON: %[[O:.*]] = train.repeat @w.orthogonalize
// NORMUON: %[[OO:.*]] = train.mul %[[O]], %[[O]] : (tensor<3x3x4xf32>
// NORMUON: train.reduce sum %[[OO]] over [2]
// NORMUON: train.add {{.*}} : (tensor<3x3xf32>
// NORMUON: dist.all_reduce sum %{{.*}} over <@mesh {data}> : (tensor<3xf32>) -> tensor<3xf32>
// NORMUON: train.scale %{{.*}} by 1.224744
// NORMUON: train.mul %[[O]]
// NORMUON: train.update "normuon" decay
// NORMUON: train.repeat @e.orthogonalize
// NORMUON: train.update "adamw" %
// NORMUON-LABEL: func.func private @w.orthogonalize(
// NORMUON: dist.all_gather
